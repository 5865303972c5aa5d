"""Said is held: a name of a tool in deny, approve_tools or repeat is one that is there, or nothing runs."""

from typing import Any

import pytest
from pydantic_ai import Agent, FunctionToolset
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models.function import AgentInfo, FunctionModel

from adapters.places import KEY, KEY_NAME, KINDS, join, served
from remit import Card, Runtime
from remit.adapters.process import program
from remit.errors import BadInput
from remit.ports.tools import Tool
from remit.testing.models import Says

pytestmark = [pytest.mark.anyio, pytest.mark.rule("tools.named")]

kinds = pytest.mark.parametrize("kind", KINDS)


@pytest.fixture(autouse=True)
def key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(KEY_NAME, KEY)


def exec(cmd: str) -> str:  # noqa: A001 - the name that its group has
    """Run a command."""
    return f"ran {cmd}"


@kinds
@pytest.mark.parametrize(
    ("said", "hint"),
    [
        ({"deny": ["exce"]}, "did you mean exec"),
        ({"deny": ["Exec"]}, "did you mean exec"),
        ({"deny": "exce"}, "did you mean exec"),
        ({"approve_tools": ["exce"]}, "did you mean exec"),
        ({"approve_tools": ["group:web"]}, "of which this agent has no tool"),
        ({"deny": ["group:exce"]}, "there is no tool group"),
        ({"repeat": {"exce": "again"}}, "did you mean exec"),
    ],
)
async def test_a_name_that_no_tool_has_is_refused(kind: str, said: dict[str, Any], hint: str):
    if kind != "native" and "repeat" in said:
        said = {"repeat": said["repeat"]}
    async with served([]) as place, Runtime() as rt:
        with pytest.raises(BadInput, match=hint):
            join(rt, kind, place, tools=[exec], **said)


@kinds
@pytest.mark.parametrize(
    "said", [{"deny": ["exec"]}, {"deny": "group:exec"}, {"deny": "*"}, {"approve_tools": ["group:exec"]}]
)
async def test_a_name_that_a_tool_has_is_taken(kind: str, said: dict[str, Any]):
    async with served([Says("done")]) as place, Runtime() as rt:
        join(rt, kind, place, tools=[exec], **said)
        assert await rt.run("it", "go") == "done"


def test_what_is_denied_may_be_a_tool_that_another_agent_has():
    rt = Runtime()
    rt.tool(exec)
    rt.model_agent("reader", "openai:gpt-5", deny=["exec", "web_fetch"], keys=[KEY_NAME])
    with pytest.raises(BadInput, match="deny names 'shell'"):
        rt.model_agent("writer", "openai:gpt-5", deny=["shell"], keys=[KEY_NAME])


@pytest.mark.parametrize("said", [{"approve_tools": ["exce"]}, {"deny": ["exce"]}, {"repeat": {"exce": "again"}}])
async def test_names_of_tools_that_are_known_only_later_stop_the_turn_before_its_first_request(said: dict[str, Any]):
    asked: list[Any] = []

    def model(messages: list[ModelMessage], _info: AgentInfo) -> ModelResponse:
        asked.append(messages)
        return ModelResponse([ToolCallPart("exec", {"cmd": "x"}) if len(asked) == 1 else TextPart("done")])

    async with Runtime() as rt:
        rt.add(Agent(FunctionModel(model), name="it", toolsets=[FunctionToolset([exec])]), **said)
        outcome = await rt.outcome("it", "go")
        assert outcome.state == "failed"
        assert "which has no such tool; did you mean exec?" in str(outcome.error)
        assert asked == []


async def test_two_tools_of_one_name_are_refused_and_none_takes_the_place_of_a_verb():
    async def call(_given: object) -> str:
        return "theirs"

    def named(name: str) -> Tool:
        return Tool(name, "", {"type": "object"}, call)

    rt = Runtime()
    for tools, why in (
        ([named("look"), named("look")], "two of the tools are called 'look'"),
        ([named("recall")], "'recall' is a verb of remit"),
        ([named("handoff")], "'handoff' is a verb of remit"),
        ([named("final_result")], "is how a model hands in its result"),
    ):
        with pytest.raises(BadInput, match=why):
            rt.model_agent("it", "openai:gpt-5", tools=tools, keys=[KEY_NAME])
    same = named("look")
    rt.model_agent("it", "openai:gpt-5", tools=[same, same], keys=[KEY_NAME])


@pytest.mark.parametrize("said", [{"tools": ["exec"]}, {"deny": ["exec"]}])
async def test_a_program_cannot_be_watched_so_rules_for_its_tools_are_refused(said: dict[str, Any]):
    rt = Runtime()
    with pytest.raises(BadInput, match="does not see which tools a program uses"):
        rt.add(Card("linter", **said), program(["cat"]))
    rt.add(Card("linter", needs_approval=True), program(["cat"]))
