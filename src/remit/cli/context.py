"""`remit context`: the entries that agents share, as the owner of the workspace sees them."""

import asyncio
from typing import Annotated

from cyclopts import Parameter
from rich.table import Table
from rich.text import Text

from remit.cli.options import HERE, AsJson, Where, emit, opened, out
from remit.cli.terminal import moment
from remit.core import checks
from remit.core import entry as entries
from remit.core.entry import Draft, Entry
from remit.core.scope import Scope
from remit.core.text import shown
from remit.core.values import Json, decode
from remit.engine.sharing.entries import Entries
from remit.engine.system import SystemClock, TimedIds
from remit.errors import BadInput, NotFound
from remit.ports import Store
from remit.report import wire
from remit.report.figures import duration
from remit.report.printable import block, escaped


def listing(
    namespace: str = "", *, place: Where = HERE, prefix: str = "", limit: int = 100, json: AsJson = False
) -> None:
    """List namespaces and how many entries each has; or the entries of one.

    Parameters
    ----------
    namespace
        List the entries of this namespace.
    prefix
        Only keys that begin with exactly this.
    limit
        At most this many.
    json
        Print JSON instead of a table.
    """
    clock = SystemClock()
    with opened(place) as (_, store):
        if not namespace:
            namespaces = asyncio.run(store.read(lambda view: view.namespaces(clock.now())))
            _print_namespaces(namespaces, as_json=json)
            return
        scope = Scope(namespace, prefix=prefix)
        rows = asyncio.run(_entries(store).by_key([scope], checks.limit(limit)))
    if json:
        emit([wire.entry(entry) for entry in rows])
    else:
        out().print(_table(rows, clock.now()) if rows else Text(f"nothing in {namespace}", "dim"))


def get(namespace: str, key: str, *, place: Where = HERE, json: AsJson = False) -> None:
    """Print one entry's value; with --json all that is known of it."""
    with opened(place) as (_, store):
        entry = asyncio.run(_entries(store).get(namespace, key))
    if entry is None:
        raise NotFound(f"there is no entry {shown(f'{namespace}/{key}')}, or it has expired")
    if json:
        emit(wire.entry(entry))
    else:
        console = out()
        # A terminal obeys escape codes, a file or a pipe gets the value as it is.
        console.print(Text(block(entry.text) if console.is_terminal else entry.text), soft_wrap=True)


def put(
    namespace: str,
    key: str,
    value: str,
    *,
    place: Where = HERE,
    ttl: float | None = None,
    as_json: Annotated[bool, Parameter(name="--as-json", negative="")] = False,
    json: AsJson = False,
) -> None:
    """Write an entry.

    Parameters
    ----------
    ttl
        Seconds until it expires; without it, it never does.
    as_json
        The value is JSON, not text.
    json
        Print what was written as JSON.
    """
    draft = Draft(namespace, key, _parsed(value) if as_json else value, entries.lifetime(ttl))
    with opened(place, create=True) as (_, store):
        shared = _entries(store)
        version = asyncio.run(shared.put(draft, shared.owner()))
    if json:
        emit({"namespace": namespace, "key": key, "version": version})
    else:
        out().print(Text(f"{namespace}/{key} is now at version {version}"))


def remove(namespace: str, key: str, *, place: Where = HERE, json: AsJson = False) -> None:
    """Remove an entry."""
    with opened(place) as (_, store):
        shared = _entries(store)
        gone = asyncio.run(shared.remove(namespace, key, shared.owner()))
    if not gone:
        raise NotFound(f"there is no entry {shown(f'{namespace}/{key}')}, or it has expired")
    if json:
        emit({"namespace": namespace, "key": key, "removed": True})
    else:
        out().print(Text(f"{namespace}/{key} is removed; what it said is still in the journal"))


def cleanup(*, place: Where = HERE, json: AsJson = False) -> None:
    """Remove entries that have expired."""
    with opened(place) as (_, store):
        count = asyncio.run(_entries(store).cleanup())
    if json:
        emit({"removed": count})
    else:
        out().print(Text(f"{count} expired entries removed"))


def _entries(store: Store) -> Entries:
    return Entries(store, SystemClock(), TimedIds())


def _parsed(value: str) -> Json:
    try:
        return decode(value)
    except ValueError as error:
        raise BadInput(f"the value is not JSON ({error}); leave out --as-json to write it as text") from error


def _print_namespaces(namespaces: list[tuple[str, int]], *, as_json: bool) -> None:
    if as_json:
        emit([{"namespace": namespace, "entries": count} for namespace, count in namespaces])
        return
    console = out()
    if not namespaces:
        console.print(Text("no entries yet", "dim"))
    for namespace, count in namespaces:
        console.print(Text.assemble((f"{count:>7}  ", "dim"), (escaped(namespace, 64), "blue")))


def _table(rows: list[Entry], now: int) -> Table:
    table = Table(box=None, pad_edge=False, header_style="dim")
    for name in ("key", "version", "by", "updated", "expires in", "value"):
        table.add_column(name, no_wrap=True)
    for entry in rows:
        left = "never" if entry.expires_at is None else duration(entry.expires_at - now)
        table.add_row(
            Text(escaped(entry.key, 48), "blue"),
            f"v{entry.version}",
            Text(entry.agent or "person"),
            moment(entry.updated_at),
            left,
            Text(escaped(entry.text, 60)),
        )
    return table
