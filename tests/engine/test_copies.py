"""What a turn or a listener is given are copies: changing them in place changes nothing for anyone else."""

from collections.abc import Sequence
from typing import Any

import pytest

from engine.helping import PATIENCE, Shaky, ends, sound
from remit import Card, Command, Event, Runtime, Send, Turn
from remit.runtime.workspace import subscribe
from teams import team

pytestmark = pytest.mark.anyio


@pytest.mark.rule("copies.turn")
@pytest.mark.case("state_in_place")
async def test_state_changed_in_place_is_handed_to_nobody_also_not_on_a_retry(rt: Runtime, clock):
    seen: list[Any] = []
    order = {"context": {"order": 1, "parts": ["a"], "deep": {"x": [1]}}, "artifacts": {"file": {"lines": [1]}}}

    @rt.agent(asks="*")
    async def first(turn: Turn) -> Command:
        return Command("second", order)

    @rt.agent(asks="*")
    async def second(turn: Turn) -> Command:
        state: Any = turn.handoff.state
        state.context["order"] = 999
        state.context["deep"]["x"].append(2)
        state.artifacts["file"]["lines"].clear()
        state.context["parts"].append("b")
        return Command("third", {"phase": "p"})

    @rt.agent
    async def third(turn: Turn) -> list[Any]:
        state = turn.handoff.state
        seen.append([dict(state.context), dict(state.artifacts)])
        if len(seen) == 1:
            state.context["order"] = 7
            raise Shaky
        return seen

    as_given = [order["context"], order["artifacts"]]
    assert (await ends(clock, await rt.submit("first", "x"))).value == [as_given, as_given]
    await sound(rt)


@pytest.mark.rule("copies.turn")
async def test_changing_a_command_after_it_was_returned_changes_nothing(rt: Runtime):
    kept: list[Command] = []

    @rt.agent(asks="*")
    async def first(turn: Turn) -> Command:
        kept.append(Command("second", {"context": {"list": [1]}}))
        return kept[0]

    @rt.agent
    async def second(turn: Turn) -> object:
        kept[0].update["context"]["list"].append("later")
        return turn.handoff.state.context

    assert await rt.run("first", "x") == {"list": [1]}


@pytest.mark.rule("copies.turn")
async def test_results_of_a_parallel_handoff_are_copies_for_each_turn(rt: Runtime):
    seen: list[Any] = []

    async def part(turn: Turn) -> list[str]:
        return [turn.task]

    @rt.agent(asks="*")
    async def lead(turn: Turn) -> object:
        if not turn.handoff.results:
            return Command([Send("part", "a"), Send("part", "b")])
        seen.append([outcome.value for outcome in turn.handoff.results])
        for value in seen[0]:
            value.append("spoiled")
        return Command("last", {"phase": "p"})

    @rt.agent
    async def last(turn: Turn) -> object:
        return [outcome.value for outcome in turn.handoff.results]

    rt.add(Card("part"), part)
    assert await rt.run("lead", "x") == [["a"], ["b"]]


@pytest.mark.rule("copies.turn")
async def test_the_result_of_a_delegation_changed_in_place_changes_no_record(rt: Runtime, clock):
    tries: list[Any] = []

    async def helper(turn: Turn) -> dict[str, list[int]]:
        return {"numbers": [1, 2]}

    @rt.agent(asks="*")
    async def lead(turn: Turn) -> object:
        got = await turn.delegate("helper", "x")
        kept = await turn.once("note", lambda: {"a": [1]})
        tries.append([dict(got), {**kept, "a": list(kept["a"])}])
        got["numbers"] = "spoiled"
        kept["a"].append("spoiled")
        if len(tries) == 1:
            raise Shaky
        return tries

    rt.add(Card("helper"), helper)
    as_given = [{"numbers": [1, 2]}, {"a": [1]}]
    assert (await ends(clock, await rt.submit("lead", "x"))).value == [as_given, as_given]


@pytest.mark.rule("copies.listener")
@pytest.mark.case("state_in_place")
async def test_a_listener_changes_neither_the_record_nor_what_others_get(rt: Runtime):
    heard: list[Event] = []

    def spoils(events: Sequence[Event]) -> None:
        for event in events:
            for value in event.data.values():
                if isinstance(value, dict | list):
                    value.clear()
            event.data.clear()

    async def helper(turn: Turn) -> dict[str, list[int]]:
        return {"numbers": [1, 2]}

    @rt.agent(asks="*")
    async def lead(turn: Turn) -> object:
        task = await turn.submit("helper", "queued")
        return [await turn.delegate("helper", "x"), await task.result()]

    rt.add(Card("helper"), helper)
    subscribe(rt.workspace, spoils)
    subscribe(rt.workspace, heard.extend)
    subscribe(rt.workspace, spoils)
    task = await rt.submit("lead", "go")
    assert await task.result(PATIENCE) == [{"numbers": [1, 2]}] * 2
    history = await rt.workspace.journal.history()
    assert [event for event in heard if event.kind != "cards.published"] == [
        event for event in history if event.kind != "cards.published"
    ]
    await sound(rt)


@pytest.mark.rule("copies.listener")
async def test_a_listener_does_not_change_what_is_still_to_be_claimed():
    """What was submitted a moment ago is remembered; the memory is not what listeners are given."""

    def spoils(events: Sequence[Event]) -> None:
        for event in events:
            event.data.clear()

    with team(hands=1) as rt:

        async def helper(turn: Turn) -> str:
            return turn.task

        rt.add(Card("helper"), helper)
        subscribe(rt.workspace, spoils)
        tasks = [await rt.submit("helper", str(n)) for n in range(5)]
        assert [await task.result(PATIENCE) for task in tasks] == [str(n) for n in range(5)]
