"""Tools with which models read and save files."""

import hashlib
import re
from typing import Any

import pytest
from pydantic_ai import Agent
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models.function import AgentInfo, FunctionModel

from remit import Refused, Runtime, Turn
from remit.adapters.files import read_artifact, save_artifact
from remit.errors import BadInput
from remit.testing.models import Calls, Says, model_server

pytestmark = pytest.mark.anyio

DIGEST = f"sha256:{hashlib.sha256(b'all is well').hexdigest()}"
SAVES = [Calls("save_artifact", {"name": "report.txt", "text": "all is well"}), Says(f"it is {DIGEST}")]
READS = [Calls("read_artifact", {"digest": DIGEST}), Says("read")]


def add_lead(rt: Runtime) -> None:
    @rt.agent(asks="*")
    async def lead(turn: Turn) -> list[str]:
        said = await turn.delegate("writer", "write the report")
        text = await (await turn.artifacts.open(re.findall(r"sha256:\w+", said)[0])).text()
        return [text, await turn.delegate("reader", f"read {DIGEST}"), await turn.delegate("reader", "read it")]


@pytest.mark.rule("artifact.tools")
async def test_a_model_saves_a_file_names_it_in_its_answer_and_another_reads_it(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("OPENAI_KEY_A", "any")
    async with model_server([*SAVES, *READS, *READS]) as server, Runtime() as rt:
        how: Any = {"keys": ["OPENAI_KEY_A"], "base_url": f"{server.url}/v1", "tools": [read_artifact, save_artifact]}
        rt.model_agent("writer", "openai-chat:gpt-5", instructions="You write.", **how)
        rt.model_agent("reader", "openai-chat:gpt-5", instructions="You read.", **how)
        add_lead(rt)
        assert await rt.run("lead", "go") == ["all is well", "read", "read"]
        results = [event.data for event in await rt.workspace.journal.history() if event.kind == "tool.done"]
    assert [one["outcome"] for one in results] == ["done", "done", "refused"]


def scripted(*turns: list[Any]) -> FunctionModel:
    """A model of pydantic-ai that says these things, one after another."""
    left = [one for turn in turns for one in turn]

    def answer(_messages: list[ModelMessage], _info: AgentInfo) -> ModelResponse:
        one = left.pop(0)
        return ModelResponse([TextPart(one) if isinstance(one, str) else ToolCallPart(*one)])

    return FunctionModel(answer)


@pytest.mark.rule("artifact.tools")
async def test_a_guest_has_the_same_tools():
    saves = [("save_artifact", {"name": "report.txt", "text": "all is well"}), f"it is {DIGEST}"]
    reads = [("read_artifact", {"digest": DIGEST}), "read"]
    async with Runtime() as rt:
        rt.add(Agent(scripted(saves), name="writer", tools=[save_artifact]))
        rt.add(Agent(scripted(reads, reads), name="reader", tools=[read_artifact]))
        add_lead(rt)
        assert await rt.run("lead", "go") == ["all is well", "read", "read"]


@pytest.mark.rule("artifact.seen")
async def test_an_answer_in_words_gives_only_what_its_author_saved():
    async with Runtime() as rt:

        @rt.agent(asks="*")
        async def lead(turn: Turn) -> str:
            await turn.delegate("keeper", "keep it")
            await turn.delegate("liar", "name it")
            try:
                return await (await turn.artifacts.open(DIGEST)).text()
            except Refused as no:
                return no.rule

        @rt.agent
        async def keeper(turn: Turn) -> str:
            await turn.artifacts.save(b"all is well", "mine.txt")
            return "kept"

        @rt.agent
        async def liar(turn: Turn) -> str:
            return f"it is {DIGEST}"

        assert await rt.run("lead", "go") == "not-visible"


async def test_outside_of_a_turn_the_tools_say_where_they_work():
    with pytest.raises(BadInput, match="during its turn"):
        await read_artifact(DIGEST)
