"""The one door: whatever is not a plain yes is a no, however one asks."""

from collections.abc import Callable

import pytest

from engine.helping import PATIENCE, quiet, serving, sound
from remit import Bounds, Card, Command, Pass, Refused, Runtime, Send, Turn
from remit.core.guards import ALLOW, PASSAGES, Answer, Facts, Passage, Verdict
from remit.core.remit import Origin, Remit, begin
from remit.engine.directory import Agent, Directory
from remit.engine.door import Admission, Admitted, Proposal
from remit.errors import StoreError
from remit.ports import View
from remit.runtime.opening import Opening, settings
from remit.settings import BreakerPolicy, Policy, Serving, System
from remit.testing import FakeClock
from teams import echo
from wrapped import Counted

pytestmark = pytest.mark.anyio

ASKS_FIRST = Verdict(Answer.ASK, "approval", "someone has to say yes to this first")


def ask_first(_remit: Remit, _wish: Pass, _facts: Facts) -> Verdict:
    return ASKS_FIRST


def guarded(passage: Passage) -> Passage:
    """The same way through the door, with a guard at its end that wants a person to be asked."""
    return passage._replace(guards=(*passage.guards, ask_first))


class Doors:
    """A runtime at whose door a person must be asked, for the ways in `closed`."""

    def __init__(self, hands: int = 100) -> None:
        parts = settings(Policy(), Serving(concurrency=hands), System(clock=FakeClock()))
        opening = Opening(":memory:", "default", parts)
        self.closed: set[str] = set()
        self.rt = Runtime(opening)
        admission = opening.engine.services.admission
        admit = admission.admit

        def asked(view: View, passage: Passage, proposal: Proposal) -> Admitted:
            return admit(view, guarded(passage) if passage.name in self.closed else passage, proposal)

        admission.admit = asked


@pytest.mark.rule("door.only-yes")
@pytest.mark.parametrize("passage", PASSAGES, ids=lambda one: f"{one.name}{'-queued' if one.queued else ''}")
async def test_at_no_way_through_the_door_is_asking_first_a_yes(passage: Passage):
    with Runtime() as rt:
        directory = Directory()
        directory.add(Agent(Card("coder"), echo))
        asker = Card("lead", asks="*")
        under = begin(Origin("run", "default", "s"), Pass("lead", "go"), Bounds(), 1_000)
        proposal = Proposal(under, under, Pass("coder", "x"), asker, 1)
        door = Admission(directory, BreakerPolicy())
        assert (await rt.workspace.journal.read(lambda view: door.admit(view, passage, proposal))).verdict == ALLOW
        admitted = await rt.workspace.journal.read(lambda view: door.admit(view, guarded(passage), proposal))
        assert (admitted.ok, admitted.refusal.rule) == (False, "approval")
        assert [event.kind for event in admitted.events] == ["hop.refused"]


WAYS: dict[str, Callable[[Turn], object]] = {
    "delegate": lambda turn: turn.delegate("coder", "x"),
    "submit": lambda turn: turn.submit("coder", "x"),
    "spawn": lambda turn: turn.spawn("coder", "x"),
    "handoff": lambda turn: turn.hand_off("coder"),
    "fan-out": lambda turn: turn.hand_off([Send("coder", "x")]),
}


@pytest.mark.rule("door.only-yes")
@pytest.mark.parametrize("way", WAYS)
async def test_an_agent_that_would_have_to_ask_first_is_refused(way: str):
    doors = Doors()
    doors.closed = {way}
    began: list[str] = []
    with doors.rt as rt:

        @rt.agent(asks="*")
        async def lead(turn: Turn) -> str:
            with pytest.raises(Refused, match="has to say yes") as no:
                await WAYS[way](turn)  # pyright: ignore[reportGeneralTypeIssues]
            return no.value.rule

        @rt.agent
        async def coder(turn: Turn) -> None:
            began.append(turn.task)

        assert await rt.run("lead", "go") == "approval"
        assert (began, await rt.workspace.tasks.list(agent="coder")) == ([], [])
        assert sum(event.kind == "hop.refused" for event in await rt.workspace.journal.history()) == 1
        await sound(rt)


@pytest.mark.rule("door.only-yes")
@pytest.mark.parametrize("goto", ["coder", [Send("coder", "x")]], ids=["handoff", "fan-out"])
async def test_a_command_that_is_returned_goes_through_the_same_door(goto):
    doors = Doors()
    doors.closed = {"handoff", "fan-out"}
    with doors.rt as rt:

        @rt.agent(asks="*")
        async def lead(turn: Turn) -> object:
            return turn.handoff.refused or Command(goto)

        rt.add(Card("coder"), echo)
        assert "has to say yes" in await rt.run("lead", "go")
        assert await rt.workspace.tasks.list(agent="coder") == []
        await sound(rt)


@pytest.mark.rule("door.only-yes")
async def test_a_person_who_would_have_to_ask_first_is_refused():
    doors = Doors()
    doors.closed = {"begin"}
    with doors.rt as rt:
        rt.add(Card("coder"), echo)
        for ask in (rt.run, rt.submit):
            with pytest.raises(Refused, match="has to say yes"):
                await ask("coder", "x")
        assert await rt.workspace.tasks.list() == []


@pytest.mark.rule("door.only-yes")
async def test_what_would_have_to_be_asked_first_is_not_claimed():
    doors = Doors(hands=0)
    with doors.rt as rt:
        rt.add(Card("coder"), echo)
        rt.add(Card("other"), echo)
        task = await rt.submit("coder", "x")
        doors.closed = {"claim"}
        async with serving(rt):
            await quiet()
            assert (await task.status()).state == "pending"
        doors.closed = set()
        async with serving(rt):
            assert await task.result(PATIENCE) == "x"
        await sound(rt)


@pytest.mark.rule("handoff.deadlock")
@pytest.mark.parametrize("first", ["worker", "ghost"])
async def test_a_fan_out_whose_first_member_is_unknown_escapes_no_limit(rt: Runtime, first: str):
    turns: list[int] = []

    @rt.agent(asks="*")
    async def chief(turn: Turn) -> object:
        turns.append(1)
        if turn.handoff.refused or len(turns) == 50:
            return turn.handoff.refused or "stopped by nobody"
        other = "worker" if first == "ghost" else "ghost"
        return Command([Send(first, "same"), Send(other, "same")])

    rt.add(Card("worker"), echo)
    assert "came back" in await rt.run("chief", "go")
    assert len(turns) == 3


class Blind:
    """A view that can look nothing up."""

    def __getattr__(self, name: str) -> object:
        raise StoreError(f"{name} cannot be read")


@pytest.mark.rule("door.facts")
@pytest.mark.parametrize("passage", PASSAGES, ids=lambda one: f"{one.name}{'-queued' if one.queued else ''}")
def test_a_fact_that_cannot_be_looked_up_is_never_a_yes(passage: Passage):
    directory = Directory()
    directory.add(Agent(Card("coder", concurrency=1), echo))
    under = begin(Origin("run", "default", "s"), Pass("lead", "go"), Bounds(members=2), 1_000)
    child = under._replace(id="child")
    proposal = Proposal(child, under, Pass("coder", "x"), Card("lead", asks="*"), 1)
    with pytest.raises(StoreError):
        Admission(directory, BreakerPolicy()).admit(Blind(), passage, proposal)


@pytest.mark.long
@pytest.mark.rule("door.flat")
async def test_the_thousandth_hop_asks_the_store_for_no_more_than_the_tenth():
    with Counted(":memory:") as database, Runtime(database, bounds=Bounds(tasks=2_000)) as rt:
        asked: list[dict[str, int]] = []

        @rt.agent(asks="*")
        async def lead(turn: Turn) -> None:
            for number in range(1_000):
                before = database.asked.copy()
                await turn.delegate("coder", str(number))
                asked.append(database.asked - before)

        rt.add(Card("coder", concurrency=5), echo)
        await rt.run("lead", "go", within=Bounds(members=5, tokens=10**9, deadline=None))
        assert asked[999] == asked[9]
        assert not asked[999].keys() & {"events", "event", "of_run", "below", "tasks", "runs"}
