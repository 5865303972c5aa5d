"""A server of this process: its socket, its token and its sessions; and the dashboard beside a run, in the browser."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from secrets import token_urlsafe
from typing import TYPE_CHECKING, Annotated, Final, NamedTuple

from cyclopts import Parameter
from rich.text import Text

from remit.cli.options import aside
from remit.config.tokens import forget_page, forget_token, keep_page, keep_token, session_secret
from remit.errors import BadInput
from remit.runtime.workspace import Workspace, announce, expect_words, opening_of, subscribe

if TYPE_CHECKING:
    import socket

    from remit.adapters.asking.server import AnswerServer
    from remit.cli.interrupts import Interrupts
    from remit.core.events import Event
    from remit.runtime.runtime import Runtime
    from remit.server.app import ServerSettings
    from remit.server.auth import StoreDoorkeeper
    from remit.server.serve import PortServer
    from remit.server.sessions import Sessions
    from remit.server.tenants import Tenants

HERE: Final = "127.0.0.1"
PORT: Final = 8377
DRAIN: Final = 5.0  # seconds for tasks that the page has started


class ServeAddress(NamedTuple):
    """The address of a server, and the hosts and origins that it answers."""

    host: str = HERE
    port: int = PORT  # the usual one, so that a browser finds its session again
    hosts: tuple[str, ...] = ()
    origins: tuple[str, ...] = ()

    @property
    def url(self) -> str:
        return f"http://{_host_in_url(self.host)}:{self.port}"


class OpenServer(NamedTuple):
    """A server that listens. `token` opens it, "" if it takes keys only; `file` is where the token is kept."""

    address: ServeAddress
    server: PortServer
    socket: socket.socket
    tenants: Tenants
    token: str
    file: str

    @property
    def dashboard(self) -> str:
        """The address of the dashboard. What follows the # stays in the browser."""
        return f"{self.address.url}/#key={self.token}" if self.token else self.address.url

    async def serve(self) -> None:
        await self.server.serve([self.socket])


def must_have_server() -> None:
    """Raise `BadInput` if the packages of the server are missing."""
    try:
        import_module("remit.server.serve")
    except ImportError as error:
        raise BadInput(f"serving needs more packages: pip install 'remit[server]' ({error})") from error


@asynccontextmanager
async def open_server(
    workspace: Workspace, address: ServeAddress, team: Runtime | None = None, *, or_any: bool = False
) -> AsyncGenerator[OpenServer]:
    """Listen for requests to the workspaces of a store and to the links of the team's channels. If only this machine
    reaches the address, create a token. With `or_any`, use any free port if the port is in use. Raise `BadInput` if
    other machines reach the address and the store has no access key."""
    from remit.server.app import create_app
    from remit.server.auth import StoreDoorkeeper, has_access
    from remit.server.callers import TokenDoorkeeper
    from remit.server.serve import PortServer, is_loopback, may_bind
    from remit.server.tenants import Tenants

    database, clock = opening_of(workspace).database, opening_of(workspace).clock
    is_own = is_loopback(address.host)
    may_bind(address.host, has_access=is_own or await has_access(database, workspace.name, clock.now()))
    with _listening(address, or_any=or_any) as opened:
        bound = address._replace(port=opened.getsockname()[1])
        token = token_urlsafe(32) if is_own else ""
        doorkeeper = StoreDoorkeeper(database, clock, TokenDoorkeeper(token, workspace.name) if token else None)
        tenants = Tenants(database, (workspace,))
        sessions = _sessions(workspace, doorkeeper, bound)
        server = PortServer(create_app(tenants, doorkeeper, _settings(bound, workspace.name), sessions, _answers(team)))
        file = str(keep_token(bound.port, token)) if token else ""
        try:
            yield OpenServer(bound, server, opened, tenants, token, file)
        finally:
            await doorkeeper.close()
            if token:
                forget_token(bound.port, token)


def _answers(team: Runtime | None) -> list[AnswerServer]:
    """Return the channels of the team that serve the links in questions."""
    if team is None or not team.serving_settings.channels:
        return []
    from remit.adapters.asking.server import AnswerServer

    return [one for one in team.serving_settings.channels if isinstance(one, AnswerServer)]


def _listening(address: ServeAddress, *, or_any: bool) -> socket.socket:
    from remit.server.serve import listening

    try:
        return listening(address.host, address.port)
    except BadInput:
        if not or_any:
            raise
        return listening(address.host, 0)


def _sessions(workspace: Workspace, doorkeeper: StoreDoorkeeper, address: ServeAddress) -> Sessions:
    """Return the sessions of browsers. Those of a store on disk outlive a restart of the server."""
    from remit.server.sessions import Sessions

    opened = opening_of(workspace)
    secret = session_secret(_identity(workspace)) if opened.database.lasting else None
    return Sessions(doorkeeper, opened.clock, https=_over_tls(address), secret=secret)


def _settings(address: ServeAddress, workspace: str) -> ServerSettings:
    """Return the settings of a server: it answers requests from its own pages and from those of the given origins."""
    from remit.server.app import ServerSettings
    from remit.server.serve import own_origins

    hosts = _hosts(address)
    origins = own_origins(hosts) | {one.lower() for one in address.origins}
    return ServerSettings(hosts, origins, workspace=workspace)


def _identity(workspace: Workspace) -> str:
    """Return the identity of sessions: the same for one workspace of one store, wherever the store is opened from."""
    from remit.stores.addresses import is_server

    where = workspace.where if is_server(workspace.where) else str(Path(workspace.where).absolute())
    return f"{where}\n{workspace.name}"


def _over_tls(address: ServeAddress) -> frozenset[str]:
    """Return the hosts that browsers reach by https: a proxy in front of the server speaks it."""
    return frozenset(one.lower().removeprefix("https://") for one in address.origins if one.lower().startswith("https"))


def _hosts(address: ServeAddress) -> frozenset[str]:
    """Return the Host headers to answer: the address itself, the names of this machine for itself, and those given."""
    names = {_host_in_url(address.host), "localhost", "127.0.0.1", "[::1]"}
    return frozenset(f"{name}:{address.port}" for name in names) | {one.lower() for one in address.hosts}


def _host_in_url(host: str) -> str:
    return f"[{host}]" if ":" in host else host


@asynccontextmanager
async def hands(team: Runtime | None, drain: float) -> AsyncGenerator[None]:
    """Run the team's queued tasks while the body runs. Afterwards give running tasks `drain` seconds to finish, and
    requeue the rest. Without a team, do nothing."""
    if team is None:
        yield
        return
    await announce(team.workspace)
    expect_words(team.workspace)
    working = asyncio.create_task(team.serve())
    try:
        yield
        await team.drain(drain)
        await working
    finally:
        working.cancel()
        with suppress(asyncio.CancelledError):
            await working


# -- the dashboard beside a run ----------------------------------------------------------------------------------------


@Parameter(name="*")
@dataclass(frozen=True)
class WebOptions:
    """The dashboard beside a run."""

    web: Annotated[bool, Parameter(negative="")] = False
    """Show the run in the dashboard, in a browser. It stays open after the run, until Ctrl-C."""

    no_open: Annotated[bool, Parameter(name="--no-open", negative="")] = False
    """With --web: print the address of the dashboard, and open no browser."""


NO_WEB: Final = WebOptions()


class Dashboard:
    """The dashboard of a run in this process. It does nothing unless it was asked for."""

    def __init__(self, opened: OpenServer | None = None) -> None:
        self._opened = opened

    async def stay(self, runtime: Runtime, heard: Interrupts) -> None:
        """Keep the dashboard open, and run the tasks that people start in it, until a signal. Return at once if there
        is no dashboard or a signal has come already."""
        if self._opened is None or heard.count:
            return
        aside().print(Text(f"the dashboard stays at {self._opened.address.url}; Ctrl-C ends it", "dim"))
        async with hands(runtime, DRAIN):
            await heard.first.wait()


@asynccontextmanager
async def dashboard(workspace: Workspace, options: WebOptions) -> AsyncGenerator[Dashboard]:
    """Serve the dashboard while the body runs, if it was asked for, and open it at the first run that starts."""
    if not options.web:
        yield Dashboard()
        return
    must_have_server()
    async with open_server(workspace, ServeAddress(), or_any=True) as opened:
        serving = asyncio.create_task(opened.serve())
        aside().print(Text(f"dashboard: {opened.dashboard}"), soft_wrap=True)
        expect_words(workspace)  # the page is opened when the first answer may be under way
        stop = _open_at_first_run(workspace, opened) if not options.no_open and has_display() else None
        try:
            yield Dashboard(opened)
        finally:
            if stop is not None:
                stop.cancel()
            opened.server.end()
            await serving
            forget_page()


def has_display() -> bool:
    """Whether a browser with windows can be opened here."""
    return sys.platform in ("darwin", "win32") or bool(os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"))


def _open_at_first_run(workspace: Workspace, opened: OpenServer) -> asyncio.Task[None]:
    first: asyncio.Future[str] = asyncio.get_running_loop().create_future()

    def note(events: Sequence[Event]) -> None:
        for event in events:
            if event.task and event.task == event.run and not first.done():
                first.set_result(event.run)

    async def show() -> None:
        stop = subscribe(workspace, note)
        try:
            run = await first
        finally:
            stop()
        await asyncio.to_thread(_open_browser, f"{opened.address.url}/runs/{run}#key={opened.token}")

    return asyncio.create_task(show(), name="opening the dashboard")


def _open_browser(address: str) -> None:
    """Open a page that leads to the address. The arguments of a browser are visible to all users of a machine, and the
    address has the key; the file is for this user only."""
    import webbrowser

    webbrowser.open(keep_page(address).as_uri())
