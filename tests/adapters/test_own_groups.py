"""Groups of tools that an owner defines: for agents of every kind, wherever tools are named."""

import pytest
from agents import Agent as OpenAIAgent
from agents import function_tool
from pydantic_ai.models.test import TestModel

from remit import Runtime, Turn
from remit.core.toolgroups import GROUPS
from remit.errors import BadInput
from remit.settings import Policy


def query(text: str) -> str:
    """Ask the database."""
    return text


def dump(text: str) -> str:
    """Read all of the database."""
    return text


def notify(text: str) -> str:
    """Tell somebody."""
    return text


POLICY = Policy(groups={"db": ["query", "dump"], "shell": ["group:exec", "bash"]})


@pytest.mark.rule("bounds.own-groups")
def test_an_agent_is_given_denied_and_asks_for_the_tools_of_a_group():
    with Runtime(policy=POLICY) as rt:
        rt.tool(query)
        rt.tool(dump)
        rt.model_agent("clerk", TestModel(), tools=["group:db", notify], deny="group:shell", approve_tools=["group:db"])
        stack = rt.stack("clerk")

        @rt.agent(tools=["group:db", "send"], deny=["group:shell"])
        async def plain(turn: Turn) -> None: ...

        @rt.agent(model=TestModel(), tools=["group:db"])
        async def written(turn: Turn) -> None:
            """Look things up."""

        rt.add(OpenAIAgent(name="guest", tools=[function_tool(query)]), deny=["group:shell"], approve_tools=["query"])
        cards = {card.name: card for card in rt.cards()}

    assert stack.approve_tools == ("dump", "query")
    assert stack.card.tools == {"query", "dump", "notify", *GROUPS["context"]}
    assert cards["plain"].tools == {"query", "dump", "send"}
    assert cards["written"].tools == {"query", "dump", *GROUPS["context"]}
    assert all(cards[name].deny == {"exec", "bash"} for name in ("clerk", "plain", "guest"))


@pytest.mark.rule("bounds.own-groups", "bounds.groups")
def test_a_group_in_approve_stands_for_those_of_its_tools_that_the_agent_has():
    with Runtime() as rt:
        rt.model_agent("clerk", TestModel(), tools=[notify, query], approve_tools=["group:comms", "query"])
        assert rt.stack("clerk").approve_tools == ("notify", "query")
        with pytest.raises(BadInput, match="there is no tool group 'group:coms'; the groups are"):
            rt.model_agent("other", TestModel(), tools=[notify], approve_tools=["group:coms"])


@pytest.mark.rule("bounds.own-groups")
def test_a_tool_of_a_group_that_is_nowhere_is_an_error():
    with Runtime(policy=POLICY) as rt:
        rt.tool(query)
        with pytest.raises(BadInput, match="there is no tool 'dump'; give the function, or register it first"):
            rt.model_agent("clerk", TestModel(), tools=["group:db"])


def test_a_policy_says_what_is_wrong_with_its_groups():
    with pytest.raises(BadInput, match="group:fs comes with remit"):
        Policy(groups={"fs": ["cat"]})
    assert POLICY.groups["shell"] == {"exec", "bash"}
