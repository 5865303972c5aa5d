"""What models see of a team: whom they may ask, their memory, the board; and which tools they are shown."""

from typing import Any

import pytest

from adapters.places import KEY_NAME
from adapters.test_mixed_teams import KINDS, join, served
from remit import BOARD, Bounds, Card, Runtime, Turn
from remit.testing.models import Calls, ModelRequest, Says
from teams import echo

pytestmark = pytest.mark.anyio

CONTEXT = {"recall", "remember", "blackboard"}


@pytest.fixture(autouse=True)
def _key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(KEY_NAME, "k-place")


def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


@pytest.mark.rule("tools.shown", "verbs.offered")
@pytest.mark.parametrize("kind", KINDS)
async def test_no_model_is_shown_what_it_may_not_use_or_what_cannot_succeed(kind: str):
    async with served([Says("done")] * 4) as place, Runtime() as rt:
        rt.add(Card("coder"), echo)
        join(rt, kind, place, "it", tools=[add], asks=["coder"], deny=["add", "spawn_agent"])
        await rt.run("it", "go")
        await rt.run("it", "go", within=Bounds(depth=0))
        await rt.run("it", "go", within=Bounds(depth=0, handoffs=0))
        await rt.run("it", "go", within=Bounds(tools=["recall", "call_agent"]))
        shown = [set(request.tools) for request in place.server.requests]
    asks = {"call_agent", "call_agent_async", "check_delegation_status", "cancel_delegation", "handoff", "list_agents"}
    assert shown == [asks | CONTEXT, {"handoff", "list_agents"} | CONTEXT, CONTEXT, {"recall", "call_agent"}]


@pytest.mark.rule("prompt.around", "verbs.context")
@pytest.mark.parametrize("kind", KINDS)
async def test_a_model_remembers_and_finds_it_in_its_next_prompt_with_the_board_and_its_team(kind: str):
    replies = [
        Calls("remember", {"key": "style", "value": "tabs"}),
        Calls("blackboard", {"action": "write", "key": "plan", "value": "first the tests"}),
        Says("done"),
        Says("again"),
    ]
    async with served(replies) as place, Runtime() as rt:
        for number in range(21):
            rt.add(Card(f"helper {number:02}", "helps", can="help"), echo)
        join(rt, kind, place, "it", asks="*", reads=["code", BOARD], writes=["code", BOARD])
        assert await rt.run("it", "go", session="s") == "done"
        assert await rt.run("it", "go on", session="s") == "again"
        prompt = str(place.server.requests[-1].messages)
        ended = [event for event in await rt.workspace.journal.history() if event.kind == "task.completed"][-1]
    assert "### style (by it)" in prompt
    assert "### plan (by it)" in prompt
    assert "You may read: code (with recall)" in prompt
    assert "**helper-00**: helps; can: help" in prompt
    assert "helper-20" not in prompt
    assert "[1 more: use list_agents]" in prompt
    data: Any = ended.data
    assert {"memory:it/style", "board:s/plan"} <= {row[0] for row in data["receipt"]["saw"]}


@pytest.mark.rule("handoff.figures")
async def test_the_next_holder_is_told_what_the_model_before_it_has_used():
    async def heir(turn: Turn) -> list[Any]:
        return [turn.handoff.state.tokens, "tokens" in (await turn.prompt()).partition("[used for this task so far")[2]]

    async with served([Calls("handoff", {"agent": "heir"})]) as place, Runtime() as rt:
        rt.add(Card("heir"), heir)
        join(rt, "native", place, "it", asks=["heir"])
        tokens, told = await rt.run("it", "go")
        (run,) = await rt.workspace.tasks.runs()
    assert (tokens, told) == (run.facts.tokens, True)
    assert tokens > 0


@pytest.mark.rule("verbs.context")
async def test_a_team_of_models_shares_what_one_of_them_keeps():
    def script(asked: ModelRequest) -> Any:
        text = str(asked.messages)
        if "reviewer-task" in text and "coder-task" not in text:
            return Says(f"verdict: {'MVC' in text}")
        if "version" not in text:
            return Calls("remember", {"namespace": "codebase", "key": "auth", "value": "MVC in auth"})
        if "verdict" not in text:
            return Calls("call_agent", {"capability": "review", "task": "reviewer-task", "sees": ["codebase"]})
        return Says("done: " + asked.text)

    async with served(script) as place, Runtime() as rt:
        join(rt, "native", place, "coder", asks=["reviewer"], reads=["codebase"], writes=["codebase"])
        join(rt, "native", place, "reviewer", can="review")
        assert await rt.run("coder", "coder-task") == "done: verdict: True"
        assert await rt.workspace.context().get("codebase", "auth") == "MVC in auth"
