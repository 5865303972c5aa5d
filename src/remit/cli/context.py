"""`remit context`: the entries that agents share, as the owner of the workspace sees them."""

import asyncio
from typing import Annotated

from cyclopts import Parameter
from rich.table import Table
from rich.text import Text

from remit.cli.options import HERE, AsJson, Where, emit, opened, out
from remit.core import checks
from remit.core import entry as entries
from remit.core.entry import Draft, Entry
from remit.core.scope import Scope
from remit.core.text import shown
from remit.core.times import iso
from remit.core.values import Json, decode
from remit.engine.sharing.entries import Entries
from remit.engine.system import SystemClock, TimedIds
from remit.errors import BadInput, NotFound
from remit.ports import Store
from remit.report.printable import block, escaped
from remit.report.words import duration


def listing(
    namespace: str = "", *, place: Where = HERE, prefix: str = "", limit: int = 100, json: AsJson = False
) -> None:
    """Namespaces and how many entries each has; or the entries of one.

    Parameters
    ----------
    namespace
        Show the entries of this namespace.
    prefix
        Only keys that begin with exactly this.
    limit
        At most so many.
    json
        Print JSON instead of a table.
    """
    clock = SystemClock()
    with opened(place) as (_, store):
        if not namespace:
            found = asyncio.run(store.read(lambda view: view.namespaces(clock.now())))
            _print_namespaces(found, as_json=json)
            return
        wanted = Scope(namespace, prefix=prefix)
        rows = asyncio.run(_shelf(store).by_key([wanted], checks.limit(limit)))
    if json:
        emit([_data(entry) for entry in rows])
    else:
        out().print(_table(rows, clock.now()) if rows else Text(f"nothing in {namespace}", "dim"))


def get(namespace: str, key: str, *, place: Where = HERE, json: AsJson = False) -> None:
    """One entry's value; with --json all that is known of it."""
    with opened(place) as (_, store):
        found = asyncio.run(_shelf(store).get(namespace, key))
    if found is None:
        raise NotFound(f"there is no entry {shown(f'{namespace}/{key}')}, or it has expired")
    if json:
        emit(_data(found))
    else:
        console = out()
        # A terminal obeys escape codes, a file or a pipe gets the value as it is.
        console.print(Text(block(found.text) if console.is_terminal else found.text), soft_wrap=True)


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
        Seconds until it expires; for good if left out.
    as_json
        The value is JSON, not text.
    json
        Print what was written as JSON.
    """
    draft = Draft(namespace, key, _parsed(value) if as_json else value, entries.lifetime(ttl))
    with opened(place, create=True) as (_, store):
        shelf = _shelf(store)
        version = asyncio.run(shelf.put(draft, shelf.owner()))
    if json:
        emit({"namespace": namespace, "key": key, "version": version})
    else:
        out().print(Text(f"{namespace}/{key} is now at version {version}"))


def remove(namespace: str, key: str, *, place: Where = HERE, json: AsJson = False) -> None:
    """Take an entry away."""
    with opened(place) as (_, store):
        shelf = _shelf(store)
        gone = asyncio.run(shelf.remove(namespace, key, shelf.owner()))
    if not gone:
        raise NotFound(f"there is no entry {shown(f'{namespace}/{key}')}, or it has expired")
    if json:
        emit({"namespace": namespace, "key": key, "removed": True})
    else:
        out().print(Text(f"{namespace}/{key} is removed; what it said is still in the journal"))


def cleanup(*, place: Where = HERE, json: AsJson = False) -> None:
    """Remove what has expired."""
    with opened(place) as (_, store):
        count = asyncio.run(_shelf(store).cleanup())
    if json:
        emit({"removed": count})
    else:
        out().print(Text(f"{count} expired entries removed"))


def _shelf(store: Store) -> Entries:
    return Entries(store, SystemClock(), TimedIds())


def _parsed(value: str) -> Json:
    try:
        return decode(value)
    except ValueError as error:
        raise BadInput(f"the value is not JSON ({error}); leave out --as-json to write it as text") from error


def _print_namespaces(found: list[tuple[str, int]], *, as_json: bool) -> None:
    if as_json:
        emit([{"namespace": namespace, "entries": count} for namespace, count in found])
        return
    console = out()
    if not found:
        console.print(Text("no entries yet", "dim"))
    for namespace, count in found:
        console.print(Text.assemble((f"{count:>7}  ", "dim"), (escaped(namespace, 64), "blue")))


def _table(found: list[Entry], now: int) -> Table:
    table = Table(box=None, pad_edge=False, header_style="dim")
    for name in ("key", "version", "by", "updated", "expires in", "value"):
        table.add_column(name, no_wrap=True)
    for entry in found:
        left = "never" if entry.expires_at is None else duration(entry.expires_at - now)
        table.add_row(
            Text(escaped(entry.key, 48), "blue"),
            f"v{entry.version}",
            Text(entry.agent or "person"),
            f"{iso(entry.updated_at)[:19]}Z",
            left,
            Text(escaped(entry.text, 60)),
        )
    return table


def _data(entry: Entry) -> dict[str, Json]:
    return {
        "namespace": entry.namespace,
        "key": entry.key,
        "value": entry.value,
        "agent": entry.agent,
        "version": entry.version,
        "digest": entry.digest,
        "created_at": entry.created_at,
        "updated_at": entry.updated_at,
        "expires_at": entry.expires_at,
        "trust": entry.trust,
        "task": entry.task,
        "chain": list(entry.chain),
    }
