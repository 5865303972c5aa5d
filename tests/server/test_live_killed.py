"""Live events across kill -9 and between servers: a reader that resumes by its last id has the journal, gapless and
without doubles."""

import os
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import anyio
import httpx
import pytest

from deep import some
from programs import Program, running
from remit import Workspace

pytestmark = [pytest.mark.anyio, pytest.mark.long]
PATIENCE = 60
TEAM = """
import os, remit
from remit.settings import Serving
rt = remit.Runtime(os.environ["STORE"], serving=Serving(heartbeat_timeout=1))

@rt.agent(asks=["helper"])
async def lead(turn):
    return await turn.delegate("helper", turn.task)

@rt.agent
async def helper(turn):
    return "done"
"""


class Served(NamedTuple):
    program: Program
    url: str
    headers: dict[str, str]


@contextmanager
def serving(folder: Path, store: str) -> Iterator[Served]:
    """`remit serve` in a process of its own."""
    (folder / "team.py").write_text(TEAM)
    env = {**os.environ, "STORE": store, "XDG_STATE_HOME": str(folder / "state"), "COLUMNS": "200"}
    with running("-m", "remit", "serve", "team:rt", "--port", "0", cwd=folder, env=env) as program:
        url = program.stdout.readline().split()[1]
        token = program.stdout.readline().split()[1]
        yield Served(program, url, {"authorization": f"Bearer {token}"})


class Resuming:
    """A reader that has seen some events, and goes on after the last of them wherever it is told to."""

    def __init__(self) -> None:
        self.seen: list[int] = []

    async def read(self, served: Served, until: int) -> None:
        """Read until there are so many events, or the server is gone."""
        headers = {
            **served.headers,
            "accept": "text/event-stream",
            "last-event-id": str(self.seen[-1] if self.seen else 0),
        }
        try:
            async with (
                httpx.AsyncClient(timeout=None) as client,
                client.stream("GET", f"{served.url}/v1/events", headers=headers) as answer,
            ):
                assert answer.status_code == 200
                async for seq in _ids(answer):
                    self.seen.append(seq)
                    if len(self.seen) >= until:
                        return
        except httpx.TransportError:
            pass


async def _ids(answer: httpx.Response) -> AsyncIterator[int]:
    seq, is_event = 0, False
    async for line in answer.aiter_lines():
        if line.startswith("id: "):
            seq = int(line.removeprefix("id: "))
        elif line.startswith("event: "):
            is_event = True
        elif not line:
            if is_event:
                yield seq
            is_event = False


async def submit(served: Served, keys: range) -> None:
    """Submit tasks until the server is gone; each under a key of its own, so that it may be repeated."""
    async with httpx.AsyncClient(base_url=served.url, headers=served.headers, timeout=PATIENCE) as client:
        for key in keys:
            try:
                answer = await client.post(
                    "/v1/tasks", json={"agent": "lead", "task": "x"}, headers={"idempotency-key": f"k{key}"}
                )
            except httpx.TransportError:
                return
            assert answer.status_code == 202, answer.text


async def wait_for_end(served: Served, count: int) -> list[dict[str, Any]]:
    async with httpx.AsyncClient(base_url=served.url, headers=served.headers, timeout=PATIENCE) as client:
        while True:
            answer = (await client.get("/v1/tasks", params={"limit": 1000})).json()["tasks"]
            if len(answer) == count and all(task["state"] == "completed" for task in answer):
                return answer
            for task in answer:
                if task["state"] != "completed":
                    await client.get(f"/v1/tasks/{task['id']}/wait")


@pytest.mark.rule("http.live-killed")
@pytest.mark.parametrize("where", some(["file", "postgres"]))
async def test_a_reader_misses_nothing_and_sees_nothing_twice_when_servers_are_killed(
    where: str, tmp_path: Path, request: pytest.FixtureRequest
):
    store = request.getfixturevalue("address") if where == "postgres" else str(tmp_path / "team.db")
    reader, tasks = Resuming(), 12
    with anyio.fail_after(PATIENCE):
        for kill_after in (10, 25):
            with serving(tmp_path, store) as served:
                async with anyio.create_task_group() as both:
                    both.start_soon(submit, served, range(tasks))
                    await reader.read(served, kill_after)
                    served.program.kill()
        with serving(tmp_path, store) as served:
            await submit(served, range(tasks))
            await wait_for_end(served, 2 * tasks)
            with Workspace(store) as workspace:
                journal = [event.seq for event in await workspace.journal.history()]
            await reader.read(served, len(journal))
    assert reader.seen == journal
