"""AG-UI: a page that speaks this protocol runs an agent and sees its run, as the protocol's own library reads it."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import anyio
import httpx
import pytest
from ag_ui.core import Event, RunAgentInput
from pydantic import TypeAdapter

from engine.talking import Talk
from remit import Card, Runtime, Turn
from remit.core.recovery import ModelTry
from remit.ports.models import Hear, ModelAnswer, ToolCall
from remit.server.app import Server
from remit.server.callers import READ, RUN
from remit.server.serve import PortServer, listening
from server.examples import agui_input
from server.serving import app_of, caller, client
from teams import echo, team

pytestmark = pytest.mark.anyio
EVENTS: TypeAdapter[Any] = TypeAdapter(Event)
PATIENCE = 30


@pytest.fixture
async def rt():
    with team() as runtime, anyio.fail_after(PATIENCE):
        runtime.agent(echo)
        async with runtime.serving():
            yield runtime


def read(text: str) -> list[dict[str, Any]]:
    """Read a stream as the protocol's library does, and hold its rules: whatever begins also ends, within the run."""
    found = [json.loads(block.removeprefix("data: ")) for block in text.split("\n\n") if block.startswith("data: ")]
    is_open = set[str]()
    for one in found:
        EVENTS.validate_python(one)
        kind, _, what = one["type"].rpartition("_")
        name = str(one.get("messageId") or one.get("toolCallId") or one.get("stepName") or "run")
        if what in ("START", "STARTED"):
            assert f"{kind} {name}" not in is_open, one
            is_open.add(f"{kind} {name}")
        elif what in ("END", "FINISHED") or one["type"] == "RUN_ERROR":
            is_open.remove(f"{kind} {name}")
    assert found[0]["type"] == "RUN_STARTED"
    assert is_open == set()
    return found


def kinds(found: list[dict[str, Any]]) -> list[str]:
    return [one["type"] for one in found]


def said(found: list[dict[str, Any]]) -> list[str]:
    """The texts of the messages."""
    texts = dict[str, str]()
    for one in found:
        if one["type"] == "TEXT_MESSAGE_CONTENT":
            texts[one["messageId"]] = texts.get(one["messageId"], "") + one["delta"]
    return [*texts.values()]


async def run_of(app: Server, agent: str, text: str = "x", **ids: str) -> list[dict[str, Any]]:
    asked = RunAgentInput.model_validate(agui_input(text, **ids)).model_dump(by_alias=True, exclude_none=True)
    async with client(app) as http:
        got = await http.post(f"/v1/ag-ui/{agent}", json=asked)
    assert (got.status_code, got.headers["content-type"].partition(";")[0]) == (200, "text/event-stream"), got.text
    return read(got.text)


@asynccontextmanager
async def on_a_port(app: Server) -> AsyncIterator[str]:
    with listening("127.0.0.1", 0) as own:
        server = PortServer(app)
        serving = asyncio.create_task(server.serve([own]))
        yield f"http://127.0.0.1:{own.getsockname()[1]}"
        server.end()
        await serving


@pytest.mark.rule("http.agui")
async def test_a_message_becomes_a_task_of_the_session_and_its_result_a_message(rt: Runtime):
    found = await run_of(app_of(rt), "echo", "hello", run="r1", thread="t1")
    messages = ["TEXT_MESSAGE_START", "TEXT_MESSAGE_CONTENT", "TEXT_MESSAGE_END"]
    assert kinds(found) == ["RUN_STARTED", *messages, "RUN_FINISHED"]
    (status,) = await rt.workspace.tasks.list()
    assert (status.task, status.session, status.by) == ("hello", "t1", "access:ann")
    assert said(found) == [status.result]
    assert found[-1] == {"type": "RUN_FINISHED", "threadId": "t1", "runId": "r1", "result": status.result}


@pytest.mark.rule("http.agui")
async def test_delegations_are_steps_and_tools_are_tool_calls(rt: Runtime):
    async def look(given: dict[str, Any]) -> str:
        return f"saw {given['what']}"

    async def desk(turn: Turn) -> dict[str, int]:
        await asyncio.gather(turn.delegate("echo", "a"), turn.delegate("echo", "b"))
        await turn.tool(ToolCall("look", {"what": "it"}, "c1"), look)
        return {"n": 1}

    rt.add(Card("desk", asks=["echo"], tools="look"), desk)
    found = await run_of(app_of(rt), "desk")
    steps = [one["stepName"] for one in found if one["type"] == "STEP_STARTED"]
    assert [name.partition(" ")[0] for name in steps] == ["echo", "echo"]
    tool = [one for one in found if one["type"].startswith("TOOL_CALL")]
    assert kinds(tool) == ["TOOL_CALL_START", "TOOL_CALL_ARGS", "TOOL_CALL_END", "TOOL_CALL_RESULT"]
    assert (tool[0]["toolCallName"], tool[1]["delta"], tool[3]["content"]) == ("look", '{"what":"it"}', "saw it")
    assert said(found) == ['{"n":1}']


@pytest.mark.rule("http.agui")
async def test_a_failure_is_an_error_and_a_cancelled_run_says_so(rt: Runtime):
    begun = asyncio.Event()

    @rt.agent
    async def fails(turn: Turn) -> None:
        raise ValueError("no luck")

    @rt.agent
    async def waits(turn: Turn) -> None:
        begun.set()
        await asyncio.Event().wait()

    app = app_of(rt)
    for _ in "ab":  # as it happens, and afterwards
        failed = await run_of(app, "fails")
        assert kinds(failed) == ["RUN_STARTED", "RUN_ERROR"]
        assert "no luck" in failed[-1]["message"]
    running = asyncio.create_task(run_of(app, "waits", run="r2"))
    await begun.wait()
    (task,) = await rt.workspace.tasks.list(agent="waits")
    await rt.workspace.tasks.cancel(task.id, "enough")
    assert (await running)[-1] == {
        "type": "RUN_FINISHED",
        "threadId": "t",
        "runId": "r2",
        "outcome": {"type": "cancelled"},
    }


@pytest.mark.rule("http.agui-again")
async def test_words_are_sent_once_and_a_page_that_left_finds_its_run_again(rt: Runtime):
    go_on = asyncio.Event()

    class Slow(Talk):
        async def send(self, attempt: ModelTry, most: int, hear: Hear | None) -> ModelAnswer:
            assert hear is not None, "somebody listens"
            hear("one ")
            await go_on.wait()
            hear("two")
            return await super().send(attempt, most, hear)

    talk = Slow("one two")

    @rt.agent
    async def coder(turn: Turn) -> str:
        return (await turn.model(talk.call("d", "big"))).text

    app, key = app_of(rt), {"authorization": "Bearer key-ann"}
    async with on_a_port(app) as url, httpx.AsyncClient(base_url=url, headers=key, timeout=PATIENCE) as http:
        for leaves in (True, False):
            async with http.stream("POST", "/v1/ag-ui/coder", json=agui_input("x")) as got:
                text = ""
                async for part in got.aiter_text():
                    text += part
                    if leaves and '"delta":"one "' in text:
                        break
            (task,) = await rt.workspace.tasks.list()
            assert task.state == ("running" if leaves else "completed")
            go_on.set()
    assert said(read(text)) == ["one two"]
    assert len(talk.asked) == 1


@pytest.mark.rule("http.agui-again")
async def test_the_same_run_with_other_words_is_a_conflict_and_other_callers_have_runs_of_their_own(rt: Runtime):
    app = app_of(rt, caller(), caller("bob", RUN), caller("eve", READ), caller("bot", RUN, agent="echo"))
    await run_of(app, "echo", "a")
    for name, text, status in (("ann", "b", 409), ("bob", "b", 200), ("eve", "a", 403), ("bot", "a", 403)):
        async with client(app, name) as http:
            assert (await http.post("/v1/ag-ui/echo", json=agui_input(text))).status_code == status, name
    assert sorted(one.task for one in await rt.workspace.tasks.list()) == ["a", "b"]


@pytest.mark.parametrize(
    ("content", "status"),
    [
        ([{"type": "text", "text": "a"}, {"type": "text", "text": "b"}], 200),
        ([{"type": "text", "text": "a"}, {"type": "image", "source": {"type": "url", "value": "x"}}], 422),
        ([], 422),
        ("", 422),
        (None, 422),
        ({"a": 1}, 422),
        (5, 422),
    ],
)
async def test_only_texts_of_the_user_are_taken(rt: Runtime, content: Any, status: int):
    messages = [{"id": "1", "role": "user", "content": content}, {"id": "2", "role": "assistant", "content": "no"}]
    async with client(app_of(rt)) as http:
        got = await http.post("/v1/ag-ui/echo", json={**agui_input(""), "messages": messages})
        nobody = await http.post("/v1/ag-ui/nobody", json=agui_input("x"))
    assert got.status_code == status, got.text
    assert (nobody.status_code, nobody.json()["code"]) == (403, "refused")
    assert [one.task for one in await rt.workspace.tasks.list()] == (["a\nb"] if status == 200 else [])
