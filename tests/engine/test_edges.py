"""Who asks whom: figures by edge, against the journal."""

from collections import defaultdict
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from remit import Card, Event, Refused, Runtime, Turn
from remit.report.edges import AskEdge
from remit.settings import System
from remit.testing import FakeClock
from teams import echo

pytestmark = [pytest.mark.anyio, pytest.mark.rule("figures.edges")]

ENDS = {"task.completed": "completed", "task.failed": "failed", "task.cancelled": "cancelled", "task.died": "dead"}


def counted(events: list[Event], since: int, until: int) -> set[AskEdge]:
    """The same by a plain walk over all events."""
    pairs = {e.task: (e.data["asker"], e.agent) for e in events if e.kind in ("task.started", "task.submitted")}
    sums: dict[Any, dict[str, int]] = defaultdict(lambda: defaultdict(int))
    for event in events:
        if not since <= event.at < until:
            continue
        data: Any = event.data
        if event.kind in ("task.started", "task.submitted"):
            sums[pairs[event.task]]["asked"] += 1
        elif event.kind in ENDS:
            sums[pairs[event.task]][ENDS[event.kind]] += 1
        elif event.kind == "credits.spent":
            sums[pairs[event.task]]["credits"] += data["costs"].get("credits", 0)
        elif event.kind == "tokens.used":
            sums[pairs[event.task]]["tokens"] += data["tokens"]
        elif event.kind == "hop.refused":
            sums[event.agent if event.run else "", data["to"]]["refused"] += 1
    return {AskEdge(*pair, **figures) for pair, figures in sums.items()}


@given(
    st.lists(st.sampled_from(["pay", "fail", "ask other", "ask nobody", "later"]), max_size=8),
    st.integers(0, 30),
    st.integers(0, 30),
)
async def test_edges_are_exactly_what_the_journal_has(tasks: list[str], one: int, other: int):
    clock = FakeClock()
    with Runtime(system=System(clock=clock)) as rt:

        @rt.agent(asks="*")
        async def lead(turn: Turn) -> str:
            clock.jump(1)
            if turn.task.startswith("ask"):
                return (await turn.outcome(turn.task.partition(" ")[2], "x")).state
            if turn.task == "later":
                await (await turn.submit("other", "pay")).wait()
            return (await turn.outcome("worker", turn.task)).state

        @rt.agent
        async def worker(turn: Turn) -> str:
            clock.jump(1)
            if turn.task == "fail":
                raise ValueError("no")
            await turn.spend("$0.01", why="paper")
            await turn.report_tokens(7)
            return "done"

        rt.add(Card("other"), echo)
        begin = clock.now()
        for task in tasks:
            await rt.outcome("lead", task)
            clock.jump(1)
        events = await rt.workspace.journal.history()
        found = await rt.workspace.edges()
        assert len(found) == len(set(found))
        assert set(found) == counted(events, begin, clock.now() + 1)
        first, last = sorted((one, other))
        since, until = (begin + second * 1_000_000 for second in (first, last + 1))
        moments = [at / 1e6 for at in (since, until)]
        part = await rt.workspace.edges(since=_moment(moments[0]), until=_moment(moments[1]))
        assert set(part) == counted(events, since, until)
        assert await rt.workspace.edges(agent="worker") == [one for one in found if "worker" in (one.asker, one.agent)]


def _moment(seconds: float) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)


async def test_a_person_is_an_asker_and_a_refused_handoff_asks_nobody(rt: Runtime):
    rt.add(Card("worker"), echo)

    @rt.agent
    async def lead(turn: Turn) -> str:
        with pytest.raises(Refused):
            await turn.delegate("worker", "x")
        with pytest.raises(Refused):
            await turn.hand_off("worker")
        return "done"

    await rt.run("lead", "x")
    assert await rt.workspace.edges() == [
        AskEdge("", "lead", asked=1, completed=1),
        AskEdge("lead", "worker", refused=1),
    ]


async def test_the_charges_of_a_pruned_run_belong_to_no_edge(clock: FakeClock):
    with Runtime(system=System(clock=clock)) as rt:

        @rt.agent
        async def buyer(turn: Turn) -> str:
            async with turn.paid_call("$0.20", why="print"):
                return "done"

        await rt.run("buyer", "x")
        [edge] = await rt.workspace.edges()
        assert (edge.agent, edge.asked, edge.credits) == ("buyer", 1, 200_000)
        [call] = await rt.workspace.money.uncertain()
        clock.jump(3_600)
        await rt.workspace.prune(days=0.01)
        await rt.workspace.money.reconcile(call.id, "$0.05")
        assert await rt.workspace.edges() == []
