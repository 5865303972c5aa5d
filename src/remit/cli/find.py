"""`remit find`: agents by capability, and the one that a delegation would choose."""

import asyncio
from pathlib import Path

from rich.text import Text

from remit.cli.loading import has_team, is_file, load_team
from remit.cli.options import (
    AsJson,
    InWorkspace,
    OwnStore,
    emit,
    out,
    refuse_server,
    store_at,
    usual_team,
    workspace_at,
)
from remit.cli.terminal import Rows
from remit.core.checks import between
from remit.core.match import BEST, MATCHES, Match
from remit.core.values import shown
from remit.engine.settings import Serving
from remit.errors import BadInput
from remit.report import wire
from remit.report.printable import escaped
from remit.runtime.workspace import Workspace

NOT_FOUND = 4


def find(
    *request: str,
    store: OwnStore = None,
    workspace: InWorkspace = None,
    limit: int = BEST,
    json: AsJson = False,
) -> int:
    """Search agents by capability. List the best matches first, and the agent that remit would choose.

    Searches the agents that workers of this store have published. With a module, REMIT_TEAM or a remit.toml in this
    folder, searches the agents of that team. Exits with 4 if no agent matches.

    Parameters
    ----------
    request
        `[TEAM] CAPABILITY`: a few words or a sentence; TEAM is `module:name`.
    store
        The store. With a module, used instead of the team's own.
    workspace
        Workspace in the store. A module has its own.
    limit
        Maximum number of rows.
    json
        Print JSON.
    """
    if len(request) not in (1, 2):
        raise BadInput(
            f"usage: remit find [module:runtime] 'capability'; got {len(request)} words, so quote the capability"
        )
    *module, wanted = request
    between(limit, "--limit", 1, MATCHES)
    with _open_workspace(module, store, workspace) as owner:
        matches = asyncio.run(owner.agents.find(wanted, limit=MATCHES))
    chosen = next((match for match in matches if match.chosen), None)
    listed = matches[:limit]
    if json:
        emit([wire.match(match, chosen=match is chosen) for match in listed])
    else:
        _tell(wanted, listed, chosen)
    return 0 if listed else NOT_FOUND


def _open_workspace(module: list[str], store: str | None, workspace: str | None) -> Workspace:
    if not module and not has_team():
        return Workspace(store_at(store), workspace_at(workspace), create=False)
    team = module[0] if module else usual_team()
    if store is None and is_file(team):
        refuse_server(Path(team))
    return load_team(*module, looks=True).runtime.at(store, serving=Serving(concurrency=0)).workspace


def _tell(wanted: str, matches: list[Match], chosen: Match | None) -> None:
    if not matches:
        out().print(Text(f"no agent here can do {shown(wanted)}", "dim"))
        return
    rows = [[Text(escaped(one.card.name, 64), "bold"), escaped(one.why, 200), f"{one.score:.2f}"] for one in matches]
    out().print(Rows(("agent", "why", "score"), rows, left=2, gives_way="why"))
    if chosen is None:
        out().print(Text("no clear match; name one of these agents", "dim"))
    else:
        out().print(Text(f"remit would choose {escaped(chosen.card.name, 64)}", "dim"))
