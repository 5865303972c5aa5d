"""`remit mcp`: the agents of a team or a store as an MCP server, on standard input and output."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Final

from cyclopts import Parameter
from rich.text import Text

from remit.cli.completing import TeamName
from remit.cli.interrupts import INTERRUPTED, interrupts
from remit.cli.loading import has_team, load_team
from remit.cli.options import HERE, InWorkspace, OwnStore, aside, at_terminal, opened_workspace, stay_at
from remit.cli.serve import hands
from remit.core.checks import whole
from remit.core.values import shown
from remit.engine.settings import HANDS
from remit.errors import BadInput, NotFound
from remit.report.figures import count
from remit.runtime.runtime import run_main
from remit.runtime.workspace import Workspace

if TYPE_CHECKING:
    from remit.adapters.mcp.stdio import ClientPipes
    from remit.runtime.runtime import Runtime

SESSION: Final = "mcp-stdio"
_DRAIN: Final = 1.0  # seconds: a client that has closed its side soon ends the process


def mcp(
    runtime: TeamName = "",
    *,
    as_: Annotated[str, Parameter(name="--as")] = "",
    store: OwnStore = None,
    workspace: InWorkspace = None,
    concurrency: int | None = None,
) -> int:
    """Serve agents to an MCP client on standard input and output. In a folder with a team, also run its queued tasks.

    Configure it in the client as the command `remit mcp`. Each call is a recorded run: `remit runs` lists them. The
    server ends when the client closes its side; open calls are then cancelled.

    Parameters
    ----------
    runtime
        The Runtime as `team:rt` or `./team.py:rt`, or a team file. [default: REMIT_TEAM, else remit.toml, if any]
    as_
        Call in the name of this agent's card: it says whom the client may ask, and which context it may read and
        write. [default: the owner of the workspace]
    store
        Store of the tasks: a SQLite file or a postgresql:// URL. [default: the team's own, else remit.db]
    workspace
        Workspace in the store, without a team. [default: from remit.toml, else "default"]
    concurrency
        Maximum number of tasks at a time; 0 to leave them to other workers. [default: the team's, else 100]
    """
    whole(concurrency, "--concurrency")
    try:
        from remit.adapters.mcp.stdio import own_pipes
    except ImportError as error:
        raise BadInput(f"serving MCP needs the mcp package: pip install 'remit[mcp]' ({error})") from error
    with own_pipes() as pipes:
        try:
            if concurrency == 0 or not (runtime or has_team()):
                if concurrency:
                    raise BadInput("there is no team to run tasks with: pass one, or leave out --concurrency")
                with opened_workspace(replace(HERE, store=store, workspace=workspace)) as alone:
                    return run_main(_serve(alone, pipes, as_))
            own = load_team(runtime).runtime
            serving = replace(own.serving_settings, concurrency=concurrency or own.concurrency or HANDS)
            with own.at(store, serving=serving) as team:
                stay_at(team.workspace, store)
                return run_main(_serve(team.workspace, pipes, as_, team))
        except asyncio.CancelledError:  # the second signal
            return INTERRUPTED


async def _serve(workspace: Workspace, pipes: ClientPipes, card: str, team: Runtime | None = None) -> int:
    from remit.adapters.mcp.stdio import serve_pipes
    from remit.runtime.outsiders import Outsider

    with interrupts() as heard:
        if team is not None:
            await team.available()
        async with hands(team, _DRAIN):
            outsider = Outsider(workspace, SESSION, card, by=at_terminal())
            await _must_exist(outsider.card, workspace)
            _greet(workspace, card, team)
            serving = asyncio.create_task(serve_pipes(outsider, pipes))
            told = asyncio.create_task(heard.first.wait())
            await asyncio.wait((serving, told), return_when=asyncio.FIRST_COMPLETED)
            told.cancel()
            if not serving.done():
                serving.cancel()
            with suppress(asyncio.CancelledError):
                await serving
    return 0


async def _must_exist(card: str, workspace: Workspace) -> None:
    """Raise `NotFound` if there is no such card."""
    cards = [one.name for one in await workspace.agents.list()]
    if card and card not in cards:
        there = ", ".join(cards) or "none"
        raise NotFound(f"there is no agent {shown(card)} in this workspace whose card --as could use; there is {there}")


def _greet(workspace: Workspace, card: str, team: Runtime | None) -> None:
    where = f"{workspace.where}, workspace {workspace.name}"
    hands = "no workers" if team is None else f"up to {count(team.concurrency, 'task')} at a time"
    whom = f"as {shown(card)}" if card else "as the owner"
    aside().print(Text(f"MCP server on standard input and output: {where}, {whom}, {hands}", "dim"), soft_wrap=True)
