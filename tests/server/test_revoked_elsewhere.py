"""A key that one server process revokes, on another one: requests, open streams, calls of MCP and streams of A2A."""

import json
import os
from collections.abc import Awaitable, Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from time import perf_counter
from typing import Any

import anyio
import httpx
import pytest

from deep import some
from programs import running

pytestmark = [pytest.mark.anyio, pytest.mark.long]
PATIENCE = 60
TEAM = """
import os, remit
rt = remit.Runtime(os.environ["STORE"])

@rt.agent
async def waits(turn):
    return await turn.ask_human("when?") if turn.task == "ask" else await __import__("anyio").sleep(600)
"""
ACCEPT = {"accept": "application/json, text/event-stream", "a2a-version": "1.0", "mcp-protocol-version": "2026-07-28"}
META = "io.modelcontextprotocol"


@contextmanager
def serving(folder: Path, store: str) -> Iterator[tuple[str, str]]:
    """`remit serve` in a process of its own: its address and its token."""
    folder.mkdir()
    (folder / "team.py").write_text(TEAM)
    env = {**os.environ, "STORE": store, "XDG_STATE_HOME": str(folder / "state"), "COLUMNS": "200"}
    with running("-m", "remit", "serve", "team:rt", "--port", "0", cwd=folder, env=env) as program:
        yield program.stdout.readline().split()[1], program.stdout.readline().split()[1]


async def _stream(http: httpx.AsyncClient, began: Callable[[], object]) -> None:
    """Read live events to the end."""
    async with http.stream("GET", "/v1/events", headers={"accept": "text/event-stream"}) as answer:
        began()
        async for line in answer.aiter_lines():
            if line == "event: revoked":
                return


async def _requests(http: httpx.AsyncClient, began: Callable[[], object]) -> None:
    """Make requests until one is refused."""
    while (await http.get("/v1/tasks")).status_code == 200:
        began()
        await anyio.sleep(0.02)


async def _mcp(http: httpx.AsyncClient, began: Callable[[], object]) -> None:
    """Call an agent that does not answer."""
    meta: dict[str, Any] = {f"{META}/protocolVersion": "2026-07-28", f"{META}/clientCapabilities": {}}
    meta |= {f"{META}/clientInfo": {"name": "c", "version": "1"}, "progressToken": 1}
    params = {"name": "call_agent", "arguments": {"agent": "waits", "task": "x"}, "_meta": meta}
    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
    headers = {**ACCEPT, "mcp-method": "tools/call", "mcp-name": "call_agent"}
    async with http.stream("POST", "/mcp", json=body, headers=headers) as answer:
        async for line in answer.aiter_lines():
            if "task.started" in line or "task.claimed" in line:
                began()


async def _a2a(http: httpx.AsyncClient, began: Callable[[], object]) -> None:
    """Follow a task that asks something."""
    message = {"messageId": "m", "role": "ROLE_USER", "parts": [{"text": "ask"}]}
    sent = await http.post("/a2a/waits/rest/message:send", json={"message": message}, headers=ACCEPT)
    task = sent.json()["task"]["id"]
    async with http.stream("POST", f"/a2a/waits/rest/tasks/{task}:subscribe", json={}, headers=ACCEPT) as answer:
        async for line in answer.aiter_lines():
            if line.startswith("data:") and "task" in json.loads(line.removeprefix("data:")):
                began()


WAYS: tuple[Callable[[httpx.AsyncClient, Callable[[], object]], Awaitable[None]], ...] = (
    *(_requests, _stream, _mcp, _a2a),
)


async def _busy(http: httpx.AsyncClient, waits: list[float]) -> None:
    """Note how long the machine takes to answer at all."""
    while True:
        began = perf_counter()
        await http.get("/healthz")
        waits.append(perf_counter() - began)
        await anyio.sleep(0.05)


@pytest.mark.rule("access.elsewhere")
@pytest.mark.parametrize("where", some(["postgres", "file"]))
async def test_a_revoked_key_ends_everything_on_another_server_within_a_second(
    where: str, tmp_path: Path, request: pytest.FixtureRequest
):
    store = request.getfixturevalue("address") if where == "postgres" else str(tmp_path / "team.db")
    took, waits = dict[str, float](), list[float]()
    with ExitStack() as both:
        (here, token), (there, _) = (both.enter_context(serving(tmp_path / name, store)) for name in "ab")
        own: dict[str, Any] = {"base_url": here, "headers": {"authorization": f"Bearer {token}"}, "timeout": PATIENCE}
        async with httpx.AsyncClient(**own) as owner:
            made = (await owner.post("/v1/access", json={"name": "c", "scopes": ["run"]})).json()
            key = {"authorization": f"Bearer {made['key']}"}
            async with httpx.AsyncClient(base_url=there, headers=key, timeout=PATIENCE) as http:
                with anyio.fail_after(PATIENCE):
                    async with anyio.create_task_group() as group:
                        group.start_soon(_busy, http, waits)
                        await _revoked(owner, http, made["id"], took)
                        group.cancel_scope.cancel()
    assert len(took) == len(WAYS)
    assert max(took.values()) < 1 + 10 * max(waits), (took, max(waits))


async def _revoked(owner: httpx.AsyncClient, http: httpx.AsyncClient, access: str, took: dict[str, float]) -> None:
    """Begin in every way, revoke the key, and note how long each way lasts after that."""
    revoked = [0.0]

    async def last(way: Any, open_: anyio.Event) -> None:
        await way(http, open_.set)
        took[way.__name__] = perf_counter() - revoked[0]

    async with anyio.create_task_group() as group:
        opened = [anyio.Event() for _ in WAYS]
        for way, event in zip(WAYS, opened, strict=True):
            group.start_soon(last, way, event)
        for event in opened:
            await event.wait()
        assert (await owner.delete(f"/v1/access/{access}")).status_code == 204
        revoked[0] = perf_counter()
