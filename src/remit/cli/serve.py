"""`remit serve`: the workspaces of a store over HTTP, with the workers of the team in this folder."""

from __future__ import annotations

import asyncio
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Annotated, Final

from cyclopts import Parameter
from rich.text import Text

from remit.cli.completing import TeamName
from remit.cli.interrupts import INTERRUPTED, Interrupts, interrupts
from remit.cli.loading import has_team, lasting, load_team
from remit.cli.observing import LogFormat, json_logs, observed, saying
from remit.cli.options import InWorkspace, OwnStore, aside, store_at, workspace_at
from remit.cli.web import OpenServer, ServeAddress, hands, must_have_server, open_server
from remit.core.checks import between, whole
from remit.engine.settings import HANDS
from remit.errors import BadInput, NewerStore, StoreError
from remit.report.figures import count
from remit.runtime.workspace import Workspace, opening_of

if TYPE_CHECKING:
    from remit.config.teams import Team
    from remit.runtime.runtime import Runtime
    from remit.server.serve import PortServer

_PORTS: Final = 65_535
_LOOK_SECONDS: Final = 1.0  # at most so often, the store is asked whether a newer remit has migrated it


def serve(
    runtime: TeamName = "",
    *,
    host: str = "127.0.0.1",
    port: int = 8377,
    store: OwnStore = None,
    workspace: InWorkspace = None,
    concurrency: int | None = None,
    drain_timeout: float = 30.0,
    allow_host: Annotated[list[str] | None, Parameter(negative="", consume_multiple=False)] = None,
    allow_origin: Annotated[list[str] | None, Parameter(negative="", consume_multiple=False)] = None,
    metrics: int | None = None,
    log_format: LogFormat = "text",
) -> int:
    """Serve the store over HTTP. In a folder with a team, also run its queued tasks, like a worker.

    Callers on this machine use the token that the server prints; `remit` commands find it themselves. Callers on other
    machines need an access key: `remit access make`. The first SIGTERM or Ctrl-C drains the server; the second stops it
    at once.

    Parameters
    ----------
    runtime
        The Runtime as `team:rt` or `./team.py:rt`, or a team file. [default: REMIT_TEAM, else remit.toml, if any]
    host
        Address to serve on.
    port
        Port to serve on; 0 for any free one.
    store
        Store to serve: a SQLite file or a postgresql:// URL. [default: the team's own, else remit.db]
    workspace
        Workspace of the token. [default: from remit.toml, else "default"]
    concurrency
        Maximum number of tasks at a time; 0 for a server without workers. [default: the team's, else 100]
    drain_timeout
        Time for running tasks to finish on shutdown, in seconds.
    allow_host
        Host header to answer besides the address itself, with its port: remit.example.com. Repeat it for several.
    allow_origin
        Origin of pages that may call the server from a browser: https://remit.example.com. Repeat it for several.
    metrics
        Port on this machine for Prometheus; 0 for any free one. [default: /metrics only, for keys with the scope admin]
    log_format
        Format of the log: text, or json with one object per line.
    """
    whole(concurrency, "--concurrency")
    between(port, "--port", 0, _PORTS)
    if drain_timeout < 0:
        raise BadInput("--drain-timeout is a number of seconds, 0 to requeue at once")
    must_have_server()
    from remit.server.serve import run

    address = ServeAddress(host, port, tuple(allow_host or ()), tuple(allow_origin or ()))
    eyes = partial(_eyes, metrics, log_format)
    try:
        if concurrency == 0 or not (runtime or has_team()):
            if concurrency:
                raise BadInput("there is no team to run tasks with: pass one, or leave out --concurrency")
            with _alone(runtime, store, workspace) as alone, eyes(None):
                return run(_serve(alone, address, log_format))
        loaded = load_team(runtime)
        own = loaded.runtime
        serving = replace(own.serving_settings, concurrency=concurrency or own.concurrency or HANDS)
        with own.at(store, serving=serving) as team, eyes(team):
            return run(_serve(team.workspace, address, log_format, loaded._replace(runtime=team), drain_timeout))
    except asyncio.CancelledError:  # the second signal
        return INTERRUPTED


@contextmanager
def _alone(runtime: str | None, store: str | None, workspace: str | None) -> Generator[Workspace]:
    """Open the workspace that is served without workers: that of a team, if one is named, or of a store."""
    if runtime and not store:
        with load_team(runtime).runtime.at() as team:
            yield team.workspace
    else:
        with Workspace(store_at(store), workspace_at(workspace)) as found:
            yield found


@contextmanager
def _eyes(metrics: int | None, log_format: str, team: Runtime | None) -> Generator[None]:
    with json_logs(log_format), observed(team, metrics, saying(log_format), serves=True):
        yield


async def _serve(
    workspace: Workspace, address: ServeAddress, log_format: str, loaded: Team | None = None, drain: float = 0
) -> int:
    from remit.server.carrying import carrying

    team = None if loaded is None else loaded.runtime
    with interrupts() as heard:
        async with open_server(workspace, address, team) as opened:
            if team is not None:
                await team.available()
                lasting(team, "no other process could see it")
            async with hands(team, drain), carrying(opened.tenants, workspace.name if team is not None else ""):
                serving = asyncio.create_task(opened.serve())
                saying(log_format)(_greeting(workspace, opened.address, team))
                if opened.token and log_format == "text":  # a log is kept, and a token is a secret
                    _say_token(opened)
                for sentence, style in await _news(workspace, loaded):
                    aside().print(Text(sentence, style), soft_wrap=True)
                await _until_told(opened.server, serving, heard, workspace)
    return 0


def _say_token(opened: OpenServer) -> None:
    say = saying("text")
    say(f"token: {opened.token}")
    say(f"dashboard: {opened.dashboard}")
    aside().print(Text(f"commands on this machine find the token in {opened.file}", "dim"), soft_wrap=True)


async def _until_told(server: PortServer, serving: asyncio.Task[None], heard: Interrupts, workspace: Workspace) -> None:
    told = asyncio.create_task(heard.first.wait())
    outgrown = asyncio.create_task(_outgrown(workspace))
    await asyncio.wait((serving, told, outgrown), return_when=asyncio.FIRST_COMPLETED)
    told.cancel()
    server.end()
    await serving
    if not outgrown.cancel():
        outgrown.result()


async def _outgrown(workspace: Workspace) -> None:
    """Raise `NewerStore` when a newer remit has migrated the store: this server could only refuse requests from then
    on, and its supervisor starts the new version only after it has ended."""
    store = opening_of(workspace).records
    rung = asyncio.Event()
    stop = store.listen(rung.set)
    try:
        while True:
            try:
                await store.read(lambda view: view.head())
            except StoreError as error:
                if isinstance(error, NewerStore):
                    raise
                # Other errors may pass; each request reports them.
            await asyncio.sleep(_LOOK_SECONDS)
            await rung.wait()
            rung.clear()
    finally:
        stop()


async def _news(workspace: Workspace, loaded: Team | None) -> list[tuple[str, str]]:
    """Set the schedules of the team's file. Return what changed, and warnings, as sentences with their styles."""
    changed = list[tuple[str, str]]()
    if loaded is not None and loaded.file:
        from remit.cli.schedule import set_schedules

        changed = await set_schedules(loaded)
    warnings = await _warnings(workspace, None if loaded is None else loaded.runtime)
    return [*changed, *((sentence, "yellow") for sentence in warnings)]


async def _warnings(workspace: Workspace, team: Runtime | None) -> list[str]:
    """Return warnings for the owner of a SQLite file that other processes write too; an empty list if there are none,
    or for any other store."""
    from remit.stores.addresses import is_server

    database = opening_of(workspace).database
    if is_server(workspace.where) or not database.lasting:
        return []
    own = "" if team is None else team.worker
    others = [one.called for one in (await workspace.agents.workers()).workers if one.id != own]
    if not others:
        return []
    told = f"{len(others)} other worker{'' if len(others) == 1 else 's'} ({', '.join(others[:5])})"
    what = f"{told} also at work on {workspace.where}; let this server do all the work, or use PostgreSQL"
    return [what, *database.advice()]


def _greeting(workspace: Workspace, address: ServeAddress, team: Runtime | None) -> str:
    where = f"{workspace.where}, workspace {workspace.name}"
    hands = "no workers" if team is None else f"up to {count(team.concurrency, 'task')} at a time"
    return f"serving {address.url} on {where}, {hands}; Ctrl-C ends it"
