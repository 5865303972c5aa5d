"""Loops: agents that ask for the same again and again, or pass the same to and fro, come to an end by themselves."""

from contextlib import suppress
from time import monotonic
from typing import Any

import pytest

from engine.helping import sound
from remit import Bounds, Card, Command, Refused, Runtime, Turn, errors
from teams import echo

pytestmark = pytest.mark.anyio


@pytest.mark.rule("chain.loop")
async def test_two_agents_that_delegate_to_each_other_without_end_are_called_once_each(rt: Runtime):
    called: list[str] = []

    async def ask_the_other(turn: Turn) -> str:
        called.append(turn.agent)
        try:
            return await turn.delegate("b" if turn.agent == "a" else "a", "you do it")
        except Refused as no:
            return no.rule

    rt.add(Card("a", asks="*"), ask_the_other)
    rt.add(Card("b", asks="*"), ask_the_other)
    assert await rt.run("a", "go") == "loop"
    assert called == ["a", "b"]


@pytest.mark.rule("handoff.deadlock")
async def test_two_agents_that_hand_the_same_to_each_other_are_called_at_most_four_times(rt: Runtime):
    called: list[str] = []

    async def to_the_other(turn: Turn) -> Command:
        called.append(turn.agent)
        return Command("b" if turn.agent == "a" else "a", {"phase": "yours"})

    rt.add(Card("a", asks="*"), to_the_other)
    rt.add(Card("b", asks="*"), to_the_other)
    outcome = await rt.outcome("a", "go")
    assert outcome.state == "failed"
    assert len(called) <= 4


@pytest.mark.rule("repeat.same")
async def test_the_same_delegation_with_the_same_result_is_refused_at_twenty_and_ends_the_task_at_thirty(rt: Runtime):
    said: list[str] = []

    @rt.agent(asks="*")
    async def lead(turn: Turn) -> None:
        while True:
            try:
                said.append(await turn.delegate("worker", "again"))
            except Refused as no:
                said.append(no.rule)

    rt.add(Card("worker"), echo)
    with pytest.raises(errors.Failed, match="has made the same call 30 times, the last to 'worker'"):
        await rt.run("lead", "go")
    assert said == ["again"] * 19 + ["repeat"] * 10
    history = await rt.workspace.journal.history()
    warned = [
        event.data.get("repeats") for event in history if event.kind == "task.started" and event.agent == "worker"
    ]
    assert warned == [None] * 9 + list(range(10, 20))
    assert [event.data["rule"] for event in history if event.kind == "hop.refused"] == ["repeat"] * 11
    assert [event.kind for event in history[-2:]] == ["task.failed", "breaker.set"]  # that was its own doing
    await sound(rt)


@pytest.mark.rule("repeat.same")
async def test_an_agent_that_returns_after_a_refusal_completes(rt: Runtime):
    @rt.agent(asks="*")
    async def lead(turn: Turn) -> int:
        for number in range(100):
            try:
                await turn.delegate("worker", "again")
            except Refused:
                return number
        return 100

    rt.add(Card("worker"), echo)
    assert await rt.run("lead", "go") == 19
    assert await rt.run("lead", "go") == 19  # what was seen died with the first task


@pytest.mark.rule("repeat.progress")
async def test_results_that_change_are_progress(rt: Runtime):
    answers = iter(range(1_000))

    @rt.agent(asks="*")
    async def lead(turn: Turn) -> int:
        return [await turn.delegate("worker", "how far are you?") for _ in range(60)][-1]

    @rt.agent
    async def worker(turn: Turn) -> int:
        return next(answers)

    assert await rt.run("lead", "go") == 59


@pytest.mark.rule("repeat.same")
@pytest.mark.parametrize("how", [{"sees": ["notes"]}, {"tools": ["exec"]}, {"within": Bounds(tokens=5)}])
async def test_what_is_passed_along_makes_it_another_delegation(rt: Runtime, how: dict[str, Any]):
    @rt.agent(asks="*")
    async def lead(turn: Turn) -> int:
        for number in range(100):
            passed: dict[str, Any] = how if number % 3 else {}
            try:
                await turn.delegate("worker", "again", **passed)
            except Refused:
                return number
        return 100

    rt.add(Card("worker"), echo)
    assert 19 < await rt.run("lead", "go") <= 30


@pytest.mark.rule("repeat.turns")
async def test_two_delegations_in_turn_that_change_nothing_are_refused_too(rt: Runtime):
    said: list[str] = []

    @rt.agent(asks="*")
    async def lead(turn: Turn) -> str:
        try:
            while True:
                said.append(await turn.delegate("worker", "ping" if len(said) % 2 else "pong"))
        except Refused as no:
            return str(no)

    rt.add(Card("worker"), echo)
    assert "has made the same two calls in turn 20 times" in await rt.run("lead", "go")
    assert len(said) == 19


@pytest.mark.rule("repeat.same")
async def test_failures_and_refusals_that_do_not_change_are_repeats_but_what_passes_is_none(rt: Runtime):
    @rt.agent(asks="*")
    async def lead(turn: Turn) -> dict[str, list[str]]:
        said: dict[str, list[str]] = {"bad": [], "nobody": [], "away": []}
        for name, told in said.items():
            for _ in range(25):
                try:
                    await turn.delegate(name, "x")
                except errors.RemitError as no:
                    told.append(getattr(no, "rule", "failed"))
        return said

    @rt.agent
    async def bad(turn: Turn) -> None:
        raise Refused("not mine", rule="mine")  # spared: its breaker stays closed

    rt.add(Card("away"), echo)
    await rt.workspace.agents.trip("away", "on holiday")
    said = await rt.run("lead", "go")
    assert said["bad"] == ["failed"] * 19 + ["repeat"] * 6
    assert said["nobody"] == ["unknown"] * 25  # that there is no such agent is told first
    assert said["away"] == ["breaker"] * 25


@pytest.mark.rule("repeat.same")
async def test_an_agent_that_makes_a_refused_request_thirty_times_is_stopped(rt: Runtime):
    said: list[str] = []

    @rt.agent
    async def lead(turn: Turn) -> None:
        while True:
            try:
                await turn.delegate("nobody", "x")
            except Refused as no:
                said.append(no.rule)

    asked = "the same was asked 30 times, and each time it was: nobody: 'lead' may not ask"
    with pytest.raises(errors.Failed, match=asked):
        await rt.run("lead", "go")
    assert said == ["unknown"] * 29


@pytest.mark.rule("repeat.same")
@pytest.mark.parametrize("way", ["delegate", "submit", "hand_off", "send"])
async def test_an_agent_that_asks_in_vain_without_end_is_stopped_and_delays_no_other(way: str):
    with Runtime() as rt:  # on a real clock: there is nobody to move another
        rt.add(Card("worker"), echo)

        @rt.agent(asks=["worker"])
        async def lead(turn: Turn) -> None:
            number = 0
            while True:
                number += 1
                with suppress(Refused):
                    if way == "hand_off":
                        await turn.hand_off("nobody", {"phase": str(number)})
                    else:
                        await getattr(turn, way)("worker" if way == "send" else "nobody", str(number))

        assert (await rt.outcome("lead", "go", timeout=0.2)).state == "timed-out"


@pytest.mark.rule("truth.late")
@pytest.mark.parametrize("way", ["delegate", "submit", "send", "once", "inbox"])
async def test_an_agent_that_ignores_its_timeout_is_cancelled(way: str):
    """It lets nothing else run, so not even its own timer."""
    words = {"once": ("n", len, "x"), "inbox": ()}
    told: list[str] = []
    with Runtime() as rt:  # on a real clock, which goes on while the loop does not
        rt.add(Card("worker"), echo)

        @rt.agent(asks=["worker"])
        async def lead(turn: Turn) -> None:
            late = monotonic() + 0.02
            while monotonic() < late:
                pass
            while True:
                try:
                    await getattr(turn, way)(*words.get(way, ("worker", "x")))
                except Refused as no:
                    told.append(no.rule)

        assert (await rt.outcome("lead", "go", timeout=0.01)).state == "timed-out"
    assert set(told) == {"over"}


@pytest.mark.untraced
@pytest.mark.rule("repeat.same", "task.fan-out")
async def test_several_that_go_out_at_once_are_one_thing_even_if_they_are_the_same(rt: Runtime):
    rounds: list[int] = []

    @rt.agent(asks="*")
    async def lead(turn: Turn) -> None:
        while True:
            outcomes = await turn.delegate_all([("worker", "vote")] * 40, concurrency=3)
            rounds.append(sum(outcome.ok for outcome in outcomes))

    rt.add(Card("worker"), echo)
    with pytest.raises(errors.Failed, match="has made the same call 30 times"):
        await rt.run("lead", "go", within=Bounds(tasks=5_000))
    assert rounds == [40] * 19 + [0] * 10


async def test_asking_nobody_at_once_is_no_repeat(rt: Runtime):
    @rt.agent(asks="*")
    async def lead(turn: Turn) -> int:
        return sum([len(await turn.delegate_all([])) for _ in range(40)])

    assert await rt.run("lead", "go") == 0
