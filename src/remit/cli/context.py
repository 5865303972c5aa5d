"""`remit context`: the shared entries, as the owner of the workspace sees them."""

import asyncio
import sys
from typing import Annotated

from cyclopts import Parameter
from rich.text import Text

from remit.cli.options import HERE, MYSELF, Acting, AsJson, Where, emit, now, opened_workspace, out
from remit.cli.terminal import Rows, moment
from remit.core import entry as entries
from remit.core.entry import Draft, Entry
from remit.core.scope import BOARD_PREFIX
from remit.core.values import Json, decode, shown
from remit.errors import BadInput, NotFound
from remit.report import wire
from remit.report.figures import duration
from remit.report.printable import block, escaped, harmless
from remit.runtime.workspace import Workspace


def listing(
    namespace: str = "", *, place: Where = HERE, prefix: str = "", limit: int = 100, json: AsJson = False
) -> None:
    """List namespaces with their number of entries, or the entries of one namespace.

    Parameters
    ----------
    namespace
        List the entries of this namespace.
    prefix
        Only keys that start with exactly this text.
    limit
        Maximum number of rows.
    json
        Print JSON.
    """
    with opened_workspace(place) as workspace:
        if not namespace:
            _print_namespaces(asyncio.run(workspace.context.namespaces()), as_json=json)
            return
        rows = asyncio.run(workspace.looks.entries(namespace, prefix=prefix, limit=limit))
    if json:
        emit([wire.entry(entry) for entry in rows])
    else:
        out().print(_table(rows, now()) if rows else Text(f"nothing in {namespace}", "dim"))


def get(namespace: str, key: str, *, place: Where = HERE, json: AsJson = False) -> None:
    """Print the value of an entry. With --json, print the whole entry.

    Parameters
    ----------
    namespace
        Namespace of the entry; `remit context ls` lists them.
    key
        Key of the entry; `remit context ls NAMESPACE` lists them.
    json
        Print the whole entry as JSON.
    """
    entries.address(namespace, key)
    with opened_workspace(place) as workspace:
        entry = asyncio.run(workspace.looks.entry(namespace, key))
    if entry is None:
        raise NotFound(f"there is no entry {shown(f'{namespace}/{key}')}, or it has expired")
    if json:
        emit(wire.entry(entry))
    else:
        # A pipe gets the value as it is, except for control characters, which would act on a terminal behind it.
        sys.stdout.write(f"{block(entry.text) if sys.stdout.isatty() else harmless(entry.text)}\n")


def put(
    namespace: str,
    key: str,
    value: str,
    *,
    place: Where = HERE,
    act: Acting = MYSELF,
    ttl: float | None = None,
    as_json: Annotated[bool, Parameter(name="--as-json", negative="")] = False,
    json: AsJson = False,
) -> None:
    """Write an entry. An entry of the same namespace and key is replaced.

    Parameters
    ----------
    namespace
        Namespace of the entry.
    key
        Key of the entry.
    value
        New value: text, or JSON with `--as-json`.
    ttl
        Time to live in seconds. [default: no expiry]
    as_json
        Parse the value as JSON.
    json
        Print the entry as JSON.
    """
    # Check first, before a file is created.
    draft = Draft(namespace, key, _parsed(value) if as_json else value, entries.lifetime(ttl))
    with opened_workspace(place, create=True) as workspace:
        version = asyncio.run(_put(workspace, draft, ttl, act))
    if json:
        emit({"namespace": namespace, "key": key, "version": version})
    else:
        out().print(Text(f"{namespace}/{key} is now at version {version}"))


def remove(namespace: str, key: str, *, place: Where = HERE, act: Acting = MYSELF, json: AsJson = False) -> None:
    """Remove an entry.

    Parameters
    ----------
    namespace
        Namespace of the entry.
    key
        Key of the entry.
    """
    with opened_workspace(place) as workspace:
        gone = asyncio.run(_remove(workspace, namespace, key, act))
    if not gone:
        raise NotFound(f"there is no entry {shown(f'{namespace}/{key}')}, or it has expired")
    if json:
        emit({"namespace": namespace, "key": key, "removed": True})
    else:
        out().print(Text(f"{namespace}/{key} removed; its old value is still in the journal"))


def cleanup(*, place: Where = HERE, act: Acting = MYSELF, json: AsJson = False) -> None:
    """Remove expired entries."""
    with opened_workspace(place) as workspace:
        count = asyncio.run(workspace.context.cleanup(**act.said))
    if json:
        emit({"removed": count})
    else:
        out().print(Text(f"{count} expired {'entry' if count == 1 else 'entries'} removed"))


async def _put(workspace: Workspace, draft: Draft, ttl: float | None, act: Acting) -> int:
    if (session := _session(draft.namespace)) is not None:
        return await workspace.context(session, **act.said).board.set(draft.key, draft.value, ttl)
    return await workspace.context(**act.said).set(draft.namespace, draft.key, draft.value, ttl)


async def _remove(workspace: Workspace, namespace: str, key: str, act: Acting) -> bool:
    if (session := _session(namespace)) is not None:
        return await workspace.context(session, **act.said).board.remove(key)
    return await workspace.context(**act.said).remove(namespace, key)


def _session(namespace: str) -> str | None:
    """Return the session whose board a namespace is, or None."""
    return namespace.removeprefix(BOARD_PREFIX) if namespace.startswith(BOARD_PREFIX) else None


def _parsed(value: str) -> Json:
    try:
        return decode(value)
    except ValueError as error:
        raise BadInput(f"the value is not JSON ({error}); leave out --as-json to write it as text") from error


def _print_namespaces(namespaces: dict[str, int], *, as_json: bool) -> None:
    if as_json:
        emit([{"namespace": namespace, "entries": count} for namespace, count in namespaces.items()])
        return
    console = out()
    if not namespaces:
        console.print(Text("no entries yet", "dim"))
    for namespace, count in namespaces.items():
        console.print(Text.assemble((f"{count:>7}  ", "dim"), (escaped(namespace, 64), "blue")))


def _table(rows: list[Entry], now: int) -> Rows:
    names = ("key", "version", "by", "updated", "expires in", "value")
    return Rows(names, [_row(entry, now) for entry in rows], left=len(names), gives_way="value")


def _row(entry: Entry, now: int) -> list[Text | str]:
    return [
        Text(escaped(entry.key, 128), "blue"),
        f"v{entry.version}",
        Text(entry.agent or "person"),
        moment(entry.updated_at),
        "never" if entry.expires_at is None else duration(entry.expires_at - now),
        Text(escaped(entry.text, 200)),
    ]
