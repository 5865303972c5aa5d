"""Tokens: they count for the run when they are said, also those of the turn that is under way."""

import pytest

from engine.helping import Shaky, ends, sound
from remit import Bounds, Card, Refused, Runtime, Turn, errors
from remit.report.stats import stats
from remit.report.tree import tree
from teams import echo

pytestmark = pytest.mark.anyio


@pytest.mark.rule("tier.at-once")
@pytest.mark.case("tokens_at_once")
async def test_what_the_turn_under_way_has_used_counts_for_the_next_hop(rt: Runtime):
    @rt.agent(asks="*")
    async def lead(turn: Turn) -> str:
        await turn.report_tokens(10)
        with pytest.raises(Refused, match="this run has used 10 of 10 tokens; 'worker' was not asked") as no:
            await turn.delegate("worker", "x")
        return no.value.rule

    rt.add(Card("worker"), echo)
    assert await rt.run("lead", "go", within=Bounds(tokens=10)) == "tier"


@pytest.mark.rule("tier.at-once")
async def test_an_agent_that_uses_more_than_the_run_may_is_stopped_and_its_usage_is_on_record(rt: Runtime):
    @rt.agent
    async def solo(turn: Turn) -> str:
        await turn.report_tokens(50_000)
        return "I used 50,000 of 10"

    with pytest.raises(errors.Failed, match="this run has used 50,000 of 10 tokens; 'solo' has to finish"):
        await rt.run("solo", "go", within=Bounds(tokens=10))
    assert (await rt.workspace.tasks.runs())[0].facts.tokens == 10  # no more than the run had: the rest is in doubt
    assert (await rt.workspace.agents.breakers()).get("solo") is None  # a refusal is no failure of its own


@pytest.mark.rule("tier.at-once")
async def test_an_agent_that_catches_the_refusal_returns_what_it_has(rt: Runtime):
    @rt.agent
    async def solo(turn: Turn) -> str:
        try:
            await turn.report_tokens(11)
        except Refused as no:
            return no.rule
        return "not reached"

    assert await rt.run("solo", "go", within=Bounds(tokens=10)) == "tier"


@pytest.mark.rule("tier.at-once")
async def test_exactly_what_is_allowed_may_be_used_and_those_below_share_it(rt: Runtime):
    @rt.agent(asks="*")
    async def lead(turn: Turn) -> list[str]:
        await turn.report_tokens(4)
        said = [
            str(outcome.error or "ok") for outcome in await turn.delegate_all([("a", "x"), ("b", "y")], concurrency=1)
        ]
        return [*said, str((await rt.workspace.tasks.runs())[0].facts.tokens)]

    async def spend(turn: Turn) -> None:
        await turn.report_tokens(3)

    rt.add(Card("a"), spend)
    rt.add(Card("b"), spend)
    assert await rt.run("lead", "go", within=Bounds(tokens=10)) == ["ok", "ok", "10"]
    assert "this run has used 10 of 9 tokens" in (await rt.run("lead", "go", within=Bounds(tokens=9)))[1]


@pytest.mark.rule("tier.at-once")
async def test_every_figure_is_what_the_turns_have_said(rt: Runtime):
    @rt.agent(asks="*")
    async def lead(turn: Turn) -> None:
        await turn.report_tokens(100)
        await turn.report_tokens(0)
        await turn.delegate("worker", "x")
        await turn.report_tokens(20)

    @rt.agent
    async def worker(turn: Turn) -> None:
        await turn.report_tokens(3)

    await rt.run("lead", "go")
    history = await rt.workspace.journal.history()
    root = tree(history)
    assert root is not None
    assert [node.tokens for node in root.walk()] == [120, 3]
    assert {name: agent.tokens for name, agent in stats(history).agents.items()} == {"lead": 120, "worker": 3}
    assert (await rt.workspace.tasks.runs())[0].facts.tokens == 123
    assert [event.data.get("tokens") for event in history if event.kind == "task.completed"] == [3, 120]
    await sound(rt)


@pytest.mark.rule("tier.at-once")
async def test_a_task_that_is_tried_again_has_used_what_all_tries_used(rt: Runtime, clock):
    tries: list[int] = []

    @rt.agent
    async def lead(turn: Turn) -> str:
        await turn.report_tokens(7)
        tries.append(1)
        if len(tries) == 1:
            raise Shaky
        return "done"

    task = await rt.submit("lead", "go")
    assert (await ends(clock, task)).value == "done"
    assert (await rt.workspace.tasks.runs())[0].facts.tokens == 14
    root = tree(await rt.workspace.journal.history())
    assert root is not None
    assert root.tokens == 14


@pytest.mark.rule("tier.at-once")
@pytest.mark.parametrize("tokens", [None, -1, 1.5, True, "7", 2**63 - 1])
async def test_figures_that_make_no_sense_are_refused_when_they_are_said(rt: Runtime, tokens):
    @rt.agent
    async def lead(turn: Turn) -> None:
        with pytest.raises(errors.BadInput, match="tokens is a whole number from 0 to 1,000,000,000,000"):
            await turn.report_tokens(tokens)

    await rt.run("lead", "go")


async def test_a_turn_kept_after_its_end_uses_nothing(rt: Runtime):
    kept: list[Turn] = []

    @rt.agent
    async def lead(turn: Turn) -> None:
        kept.append(turn)

    await rt.run("lead", "go")
    with pytest.raises(Refused, match="has ended"):
        await kept[0].report_tokens(1)
