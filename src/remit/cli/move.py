"""`remit move`: move a workspace to another database."""

from contextlib import closing
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter
from rich.text import Text

from remit.cli.options import AsJson, OwnStore, emit, now, out, store_at
from remit.core.values import shown, workspace_name
from remit.errors import BadInput, NotFound
from remit.report.figures import count
from remit.report.printable import escaped
from remit.stores.addresses import each_address, is_server
from remit.stores.moving import MoveSummary, WorkspaceMove
from remit.stores.opening import members_at
from remit.stores.several import SeveralDatabases


def move(
    workspace: str, *, to: Annotated[str, Parameter(required=True)], store: OwnStore = None, json: AsJson = False
) -> None:
    """Move a workspace to another database, with its journal, money, artifacts and open questions.

    Other workspaces are not affected. This one can be read meanwhile; writes wait for the end of the move, or are
    refused with an error that names it. If a worker was started with both databases, its running tasks continue in the
    new one; otherwise another worker takes them over. If the command is killed, run it again: it continues or starts
    over. To undo an unfinished move, run it again with `--to` the database that the workspace is in.

    Parameters
    ----------
    workspace
        Workspace to move.
    to
        Database to move it to: a SQLite file or a postgresql:// URL. It is created or migrated if needed.
    store
        Databases that are used together, the one that keeps their placement first. [default: from remit.toml]
    json
        Print JSON.
    """
    name = workspace_name(workspace)
    given = each_address(store_at(store))
    addresses = given if to in given else [*given, to]
    if len(addresses) == 1:
        raise BadInput("--to is the store itself; name another database to move the workspace to")
    if not is_server(to) and not Path(to).exists():  # a mistyped name must not leave an empty file
        with closing(SeveralDatabases(members_at(given, create=False))) as known:
            _must_have(known, name, given)
    with closing(SeveralDatabases(members_at(addresses, create=to))) as several:
        _must_have(several, name, given)
        target = [*several.members][addresses.index(to)]
        summary = WorkspaceMove(several, name, now).move(target)
    if json:
        emit(summary._asdict())
    else:
        out().print(Text(_sentence(summary)))


def _must_have(several: SeveralDatabases, name: str, given: list[str]) -> None:
    if name not in several.workspaces():
        raise NotFound(f"there is no workspace {shown(name)} in {', '.join(given)}; nothing was moved")


def _sentence(summary: MoveSummary) -> str:
    name = escaped(summary.workspace, 64)
    if summary.source == summary.target:
        return f"workspace {name} is in {summary.target}; nothing was moved"
    rows, contents = count(summary.rows, "row"), count(summary.contents, "artifact")
    return f"workspace {name} moved from {summary.source} to {summary.target}: {rows} and {contents}"
