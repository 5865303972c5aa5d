"""`remit serve`: the workspaces of a store over HTTP, with the workers of the team in this folder."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from secrets import token_urlsafe
from typing import TYPE_CHECKING, Annotated, Final, NamedTuple

from cyclopts import Parameter
from rich.text import Text

from remit.cli.completing import TeamName
from remit.cli.interrupts import INTERRUPTED, Interrupts, interrupts
from remit.cli.loading import has_team, lasting, load_team
from remit.cli.observing import LogFormat, json_logs, observed, saying
from remit.cli.options import InWorkspace, OwnStore, aside, store_at, workspace_at
from remit.config.tokens import forget_token, keep_token, session_secret
from remit.core.checks import between, whole
from remit.engine.settings import HANDS
from remit.errors import BadInput
from remit.report.figures import count
from remit.runtime.workspace import Workspace, opening_of

if TYPE_CHECKING:
    from remit.runtime.runtime import Runtime
    from remit.server.app import ServerSettings
    from remit.server.auth import StoreDoorkeeper
    from remit.server.serve import PortServer
    from remit.server.sessions import Sessions

_PORTS: Final = 65_535


class ServeAddress(NamedTuple):
    """Where a server is reached, and for which hosts and pages it answers."""

    host: str
    port: int
    hosts: tuple[str, ...] = ()
    origins: tuple[str, ...] = ()


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

    On this machine a token is enough, which is printed at the start; other commands find it. To be reached from other
    machines, the server needs keys: `remit access` makes them. The first SIGTERM or Ctrl-C ends it cleanly.

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
    try:
        from remit.server.serve import run
    except ImportError as error:
        raise BadInput(f"serving needs more packages: pip install 'remit[server]' ({error})") from error
    address = ServeAddress(host, port, tuple(allow_host or ()), tuple(allow_origin or ()))
    eyes = partial(_eyes, metrics, log_format)
    try:
        if concurrency == 0 or not (runtime or has_team()):
            if concurrency:
                raise BadInput("there is no team to run tasks with: pass one, or leave out --concurrency")
            with Workspace(store_at(store), workspace_at(workspace)) as alone, eyes(None):
                return run(_serve(alone, address, log_format))
        own = load_team(runtime).runtime
        serving = replace(own.serving_settings, concurrency=concurrency or own.concurrency or HANDS)
        with own.at(store, serving=serving) as team, eyes(team):
            return run(_serve(team.workspace, address, log_format, team, drain_timeout))
    except asyncio.CancelledError:  # the second signal
        return INTERRUPTED


@contextmanager
def _eyes(metrics: int | None, log_format: str, team: Runtime | None) -> Generator[None]:
    with json_logs(log_format), observed(team, metrics, saying(log_format), serves=True):
        yield


async def _serve(
    workspace: Workspace, address: ServeAddress, log_format: str, team: Runtime | None = None, drain: float = 0
) -> int:
    from remit.server.app import create_app
    from remit.server.auth import StoreDoorkeeper, has_access
    from remit.server.callers import TokenDoorkeeper
    from remit.server.carrying import carrying
    from remit.server.serve import PortServer, is_loopback, listening, may_bind
    from remit.server.tenants import Tenants

    database, clock = opening_of(workspace).database, opening_of(workspace).clock
    is_own = is_loopback(address.host)
    may_bind(address.host, has_access=is_own or await has_access(database, workspace.name, clock.now()))
    with interrupts() as heard, listening(address.host, address.port) as socket:
        if team is not None:
            await team.available()
            lasting(team, "no other process could see it")
        bound: int = socket.getsockname()[1]
        token = token_urlsafe(32) if is_own else ""
        doorkeeper = StoreDoorkeeper(database, clock, TokenDoorkeeper(token, workspace.name) if token else None)
        tenants = Tenants(database, (workspace,))
        sessions = _sessions(workspace, doorkeeper, address)
        server = PortServer(create_app(tenants, doorkeeper, _settings(address, bound, workspace.name), sessions))
        file = keep_token(bound, token) if token else ""
        try:
            async with hands(team, drain), carrying(tenants, workspace.name if team is not None else ""):
                serving = asyncio.create_task(server.serve([socket]))
                saying(log_format)(_greeting(workspace, address._replace(port=bound), team))
                if token and log_format == "text":  # a log is kept, and a token is a secret
                    _say_token(token, f"http://{_named(address.host)}:{bound}", file)
                for sentence in await _warnings(workspace, team):
                    aside().print(Text(sentence, "yellow"), soft_wrap=True)
                await _until_told(server, serving, heard)
        finally:
            await doorkeeper.close()
            if token:
                forget_token(bound, token)
    return 0


def _say_token(token: str, url: str, file: object) -> None:
    say = saying("text")
    say(f"token: {token}")
    say(f"dashboard: {url}/#key={token}")
    aside().print(Text(f"commands on this machine find it in {file}", "dim"), soft_wrap=True)


def _sessions(workspace: Workspace, doorkeeper: StoreDoorkeeper, address: ServeAddress) -> Sessions:
    """Return the sessions of browsers. Those of a store on disk outlive a restart of the server."""
    from remit.server.sessions import Sessions

    opened = opening_of(workspace)
    secret = session_secret(_identity(workspace)) if opened.database.lasting else None
    return Sessions(doorkeeper, opened.clock, https=_over_tls(address), secret=secret)


def _settings(address: ServeAddress, port: int, workspace: str) -> ServerSettings:
    """Return the settings of a server: it answers its own pages, and those that were given."""
    from remit.server.app import ServerSettings
    from remit.server.serve import own_origins

    hosts = _hosts(address, port)
    origins = own_origins(hosts) | {one.lower() for one in address.origins}
    return ServerSettings(hosts, origins, workspace=workspace)


def _identity(workspace: Workspace) -> str:
    """Return what sessions are for: a workspace of one store, wherever it is opened from."""
    from remit.stores.addresses import is_server

    where = workspace.where if is_server(workspace.where) else str(Path(workspace.where).absolute())
    return f"{where}\n{workspace.name}"


def _over_tls(address: ServeAddress) -> frozenset[str]:
    """Return the hosts that browsers reach by https: a proxy in front of the server speaks it."""
    return frozenset(one.lower().removeprefix("https://") for one in address.origins if one.lower().startswith("https"))


def _hosts(address: ServeAddress, port: int) -> frozenset[str]:
    """Return the Host headers to answer: the address itself, the names of this machine for itself, and those given."""
    names = {_named(address.host), "localhost", "127.0.0.1", "[::1]"}
    return frozenset(f"{name}:{port}" for name in names) | {one.lower() for one in address.hosts}


def _named(host: str) -> str:
    return f"[{host}]" if ":" in host else host


@asynccontextmanager
async def hands(team: Runtime | None, drain: float) -> AsyncGenerator[None]:
    """Run the team's queued tasks while the body runs, and let them finish afterwards."""
    if team is None:
        yield
        return
    working = asyncio.create_task(team.serve())
    try:
        yield
        await team.drain(drain)
        await working
    finally:
        working.cancel()
        with suppress(asyncio.CancelledError):
            await working


async def _until_told(server: PortServer, serving: asyncio.Task[None], heard: Interrupts) -> None:
    told = asyncio.create_task(heard.first.wait())
    await asyncio.wait((serving, told), return_when=asyncio.FIRST_COMPLETED)
    told.cancel()
    server.end()
    await serving


async def _warnings(workspace: Workspace, team: Runtime | None) -> list[str]:
    """Return what the owner of a SQLite file should know if other processes write it, too."""
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
    return f"serving http://{_named(address.host)}:{address.port} on {where}, {hands}; Ctrl-C ends it"
