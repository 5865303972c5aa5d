"""`remit mcp`: a process that serves one client on its standard input and output."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import AsyncGenerator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, cast

import anyio
import anyio.to_thread
import pytest
from agents.mcp import MCPServerStdio
from mcp import Client, StdioServerParameters
from mcp_types import ElicitResult, InputRequiredResult

from adapters.outsiders.visiting import MODERN, MODES, choose, shown_to, text_of, tour
from deep import some
from remit.runtime.workspace import Workspace
from standing_in import standing_in

pytestmark = [pytest.mark.anyio, pytest.mark.long]

TEAM = """
import sys
sys.path[:0] = {path}
print("a module that prints")
from remit import Runtime
from adapters.outsiders.visiting import add_agents
rt = add_agents(Runtime("team.db"))
"""
PAINT = {"agent": "painter", "task": "a wall"}


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    (tmp_path / "crew.py").write_text(TEAM.format(path=repr([str(Path(__file__).parents[1])])))
    with standing_in(tmp_path):
        yield tmp_path


def command(*options: str) -> list[str]:
    """The words in the folder of a test; its `remit` starts quickly."""
    return ["./remit", "mcp", "crew:rt", *options]


@asynccontextmanager
async def started(folder: Path, mode: str, *options: str) -> AsyncGenerator[Client]:
    program, *arguments = str(folder / "remit"), *command(*options)[1:]
    pipe = StdioServerParameters(command=program, args=arguments, cwd=str(folder))
    async with Client(pipe, mode=mode, elicitation_callback=shown_to(choose("blue"))) as client:
        yield client


def spoken(folder: Path, *lines: bytes, options: tuple[str, ...] = ()) -> subprocess.CompletedProcess[bytes]:
    """What a process answers to these lines, until its input ends."""
    return subprocess.run(command(*options), cwd=folder, input=b"\n".join(lines), capture_output=True, timeout=120)


@pytest.mark.rule("outsiders.tools", "outsiders.stdio")
@pytest.mark.parametrize("mode", some(MODES))
async def test_the_official_client_makes_the_whole_tour_over_pipes(folder: Path, mode: str):
    async with started(folder, mode) as client:
        await tour(client, [])
    with Workspace(folder / "team.db") as workspace:
        assert {one.record.session for one in await workspace.tasks.runs()} == {"mcp-stdio"}


@pytest.mark.rule("outsiders.card", "outsiders.stdio")
async def test_a_client_of_another_framework_acts_as_the_card_that_is_named(folder: Path):
    program, *arguments = str(folder / "remit"), *command("--as", "visitor")[1:]
    where: Any = {"command": program, "args": arguments, "cwd": str(folder)}
    async with MCPServerStdio(where, client_session_timeout_seconds=60) as guest:
        done = await guest.call_tool("call_agent", {"agent": "writer", "task": "a song"})
        assert cast("Any", done.content[0]).text == "wrote a song"
        refused = await guest.call_tool("call_agent", {"agent": "failing", "task": "a song"})
        assert cast("Any", refused.content[0]).text.startswith("'visitor' may not ask 'failing'")


def asked_by_a_server_that_is_killed(folder: Path) -> str:
    """Begin a call that needs an answer, kill the server with -9, and return the state that it had sent."""
    able = {"elicitation": {"form": {}}}
    about = {"io.modelcontextprotocol/protocolVersion": MODERN, "io.modelcontextprotocol/clientCapabilities": able}
    parameters = {"name": "call_agent", "arguments": PAINT, "_meta": about}
    request = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": parameters}
    with subprocess.Popen(command(), cwd=folder, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as server:
        assert server.stdin is not None
        assert server.stdout is not None
        server.stdin.write(json.dumps(request).encode() + b"\n")
        server.stdin.flush()
        asked = json.loads(server.stdout.readline())["result"]
        os.kill(server.pid, signal.SIGKILL)
    assert asked["resultType"] == "input_required"
    return asked["requestState"]


@pytest.mark.rule("outsiders.state")
async def test_an_answer_survives_kill_9_of_the_server(folder: Path):
    """The first server is killed while the person thinks. Another process takes the answer, and carries on the task."""
    state: str | None = await anyio.to_thread.run_sync(asked_by_a_server_that_is_killed, folder)
    async with started(folder, MODERN) as client:
        responses: Any = {"answer": ElicitResult(action="accept", content={"answer": "red"})}
        result = None
        with anyio.fail_after(120):
            while result is None or isinstance(result, InputRequiredResult):  # until the dead worker is taken over
                result = await client.session.call_tool(
                    "call_agent", PAINT, input_responses=responses, request_state=state, allow_input_required=True
                )
                state = result.request_state if isinstance(result, InputRequiredResult) else state
        assert text_of(result) == "painted it red"


@pytest.mark.rule("outsiders.stdio")
def test_only_the_protocol_is_on_the_output_and_wrong_lines_are_answered(folder: Path):
    hello = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "x", "version": "1"}}
    request = json.dumps({"jsonrpc": "2.0", "id": "a", "method": "initialize", "params": hello}).encode()
    wrong = (
        b'{"jsonrpc":"2.0","id":1,"id":2}',
        b"[" * 100,
        b"\xff",
        b"",
        b"[]",
        b'{"id":7,"method":5}',
        b"x" * 3_000_000,
    )
    done = spoken(folder, *wrong, request)
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    assert [(one["id"], one["error"]["code"]) for one in answers[:-1]] == [
        (None, -32700),
        (None, -32700),
        (None, -32700),
        (None, -32600),
        (7, -32600),
        (None, -32600),
    ]
    assert (answers[-1]["id"], answers[-1]["result"]["serverInfo"]["name"]) == ("a", "remit")
    assert b"a module that prints" in done.stderr
    assert done.returncode == 0


@pytest.mark.rule("outsiders.stdio")
def test_a_card_or_a_store_that_is_not_there_is_told_on_standard_error(folder: Path):
    done = spoken(folder, options=("--as", "nobody"))
    assert (done.returncode, done.stdout) == (4, b"")
    assert b"there is no agent 'nobody' in this workspace" in done.stderr
    alone = ["./remit", "mcp", "--concurrency", "0", "--store", "nothing.db"]
    done = subprocess.run(alone, cwd=folder, input=b"", capture_output=True, timeout=120)
    assert (done.returncode, done.stdout) == (4, b"")
    assert b"there is no store at nothing.db" in done.stderr


@pytest.mark.rule("outsiders.stdio")
def test_a_signal_ends_the_server_cleanly(folder: Path):
    real = [sys.executable, "-m", "remit", *command()[1:]]
    with subprocess.Popen(
        real, cwd=folder, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stderr is not None
        while b"MCP server" not in process.stderr.readline():
            pass
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 0
