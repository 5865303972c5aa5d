"""Agents that are models are found by their instructions, without being asked to repeat them on their card."""

from typing import Any

import pytest
from agents import Agent as OpenAIAgent
from langchain import agents
from langchain_core.language_models import FakeListChatModel
from langchain_core.messages import SystemMessage
from pydantic_ai import Agent as PydanticAgent
from pydantic_ai.agent import WrapperAgent
from pydantic_ai.models.test import TestModel

from remit import Runtime

pytestmark = pytest.mark.anyio

SAID = "You write sonnets and other verses."


def graph(said: str | SystemMessage | None) -> Any:
    make: Any = getattr(agents, "create_agent")  # noqa: B009 - its type is known in parts only
    return make(FakeListChatModel(responses=["x"]), tools=[], system_prompt=said, name="it")


GUESTS: dict[str, Any] = {
    "pydantic-ai, instructions": PydanticAgent(TestModel(), instructions=SAID, name="it"),
    "pydantic-ai, system prompt": PydanticAgent(TestModel(), system_prompt=SAID, name="it"),
    "pydantic-ai, wrapped": WrapperAgent(PydanticAgent(TestModel(), instructions=[SAID, lambda: "now"], name="it")),
    "openai-agents": OpenAIAgent(name="it", instructions=SAID),
    "langgraph": graph(SAID),
    "langgraph, message": graph(SystemMessage(SAID)),
}
SILENT: dict[str, Any] = {
    "pydantic-ai": PydanticAgent(TestModel(), instructions=lambda: SAID, name="it"),
    "openai-agents": OpenAIAgent(name="it", instructions=lambda _context, _agent: SAID),
    "langgraph": graph(None),
}


async def found(rt: Runtime) -> list[tuple[str, str]]:
    return [(match.card.name, match.why) for match in await rt.workspace.agents.find("a sonnet")]


@pytest.mark.rule("asks.instructions")
@pytest.mark.parametrize("guest", GUESTS.values(), ids=GUESTS)
async def test_a_guest_is_found_by_the_instructions_that_it_was_made_with(guest: Any):
    async with Runtime() as rt:
        rt.add(guest, name="it")
        assert rt.cards()[0].instructions == SAID
        assert await found(rt) == [("it", "its instructions say sonnet")]


@pytest.mark.rule("asks.instructions")
async def test_a_model_agent_is_found_by_its_docstring_and_by_its_instructions():
    async with Runtime() as rt:
        rt.model_agent("first", TestModel(), instructions=SAID)

        @rt.agent(model=TestModel())
        async def second(turn: Any) -> None:
            """Write a sonnet."""

        assert [name for name, _ in await found(rt)] == ["first", "second"]


@pytest.mark.rule("asks.instructions")
@pytest.mark.parametrize("guest", SILENT.values(), ids=SILENT)
async def test_instructions_that_are_made_for_each_task_are_not_on_the_card(guest: Any):
    async with Runtime() as rt:
        rt.add(guest, name="it")
        assert rt.cards()[0].instructions == ""


@pytest.mark.rule("asks.instructions")
async def test_instructions_that_are_given_when_a_guest_is_added_take_the_place_of_its_own():
    async with Runtime() as rt:
        rt.add(GUESTS["openai-agents"], name="it", instructions="Paints walls.")
        assert rt.cards()[0].instructions == "Paints walls."


@pytest.mark.rule("asks.instructions")
async def test_instructions_that_no_card_can_hold_are_cut_and_cleaned():
    async with Runtime() as rt:
        rt.add(OpenAIAgent(name="it", instructions="\0sonnet \ud800" + "x" * 70_000))
        card = rt.cards()[0]
        assert (card.instructions[:8], len(card.instructions)) == ("sonnet x", 65_536)
