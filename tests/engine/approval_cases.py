"""Cases that are made for the safeguards of questions and approvals: each tells whether all goes as it should."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import anyio

from engine.helping import PATIENCE, doomed, found, happened, life, quiet, take_over
from engine.people import HOUR, asked, counted, deployer, running, settled, staying, the_question
from remit import Bounds, Card, Runtime, Turn
from remit.core.times import SECOND
from remit.errors import Conflict
from remit.settings import Policy, System
from remit.testing import FakeClock
from teams import team

NIGHT = 12 * HOUR
MOMENT = 0.5  # seconds after which what a safeguard sees to, and it is gone, is taken not to happen any more


class Place(NamedTuple):
    """Where a case is played: a folder, a clock, and for how many seconds is waited for what is to happen."""

    folder: Path
    clock: FakeClock
    patience: float = MOMENT

    def team(self, **how: Any) -> Runtime:
        return team(self.folder / "team.db", clock=self.clock, **how)


Case = Callable[[Place], Awaitable[bool]]  # whether all goes as it should


def asking(rt: Runtime, *names: str) -> None:
    """Agents in a row; the last one asks."""
    for name, following in zip(names, (*names[1:], ""), strict=True):

        async def ask(turn: Turn, following: str = following) -> str:
            return await (turn.delegate(following, "x") if following else turn.ask_human("Which?"))

        rt.add(Card(name, asks="*"), ask)


async def is_asked(rt: Runtime, outcome: "asyncio.Future[Any]") -> bool:
    """Wait until a person is asked, or the run has ended without that."""
    asking = asyncio.ensure_future(asked(rt))
    await asyncio.wait([asking, outcome], return_when=asyncio.FIRST_COMPLETED)
    if asking.done():
        return True
    asking.cancel()
    with suppress(asyncio.CancelledError):
        await asking
    return False


async def the_first_answer_wins(place: Place) -> bool:
    with place.team() as rt:
        asking(rt, "lead")
        async with running(rt, "lead"):
            question = await the_question(rt)
            await rt.workspace.questions.answer(question.id, "one")
            with suppress(Conflict):
                await rt.workspace.questions.answer(question.id, "two")
        return await counted(rt) == {"asked": 1, "answered": 1, "used": 0}


async def another_card_is_not_approved(place: Place) -> bool:
    with doomed(place.folder / "team.db", place.clock) as first, place.team() as heir:
        for rt, tools in ((first, ["helm"]), (heir, ["helm", "rm"])):
            told = deployer(rt, tools=tools)

            @rt.agent(asks="*")
            async def lead(turn: Turn) -> str:
                return await turn.delegate("deployer", "to prod")

        task = heir.workspace.tasks.get((await first.submit("lead", "x")).id)
        question = await the_question(first)
        await take_over(heir, place.clock, first)
        await heir.workspace.questions.approve(question.id)
        await task.wait(PATIENCE)
        return not told


async def the_same_again_is_asked_again(place: Place) -> bool:
    with place.team() as rt:

        @rt.agent
        async def ops(turn: Turn) -> None:
            for _ in range(2):
                await turn.ask_approval("deploy", {"env": "prod"})

        async with running(rt, "ops") as outcome:
            await rt.workspace.questions.approve((await the_question(rt)).id)
            if not await is_asked(rt, outcome):
                return False
            await rt.workspace.questions.approve((await the_question(rt)).id)
    return True


async def a_line_waits_longer_than_its_timers(place: Place) -> bool:
    with place.team() as rt:
        asking(rt, "lead", "middle", "last")
        async with running(rt, "lead") as outcome:
            question = await the_question(rt)
            place.clock.advance(NIGHT)
            await quiet()
            with suppress(Conflict):
                await rt.workspace.questions.answer(question.id, "blue")
        return outcome.result().value == "blue"


async def two_stop_the_clock_until_the_second(place: Place) -> bool:
    with place.team() as rt:

        @rt.agent(asks="*")
        async def lead(turn: Turn) -> list[object]:
            return [one.value for one in await turn.delegate_all([("asks", "one?"), ("asks", "two?")])]

        @rt.agent
        async def asks(turn: Turn) -> str:
            return await turn.ask_human(turn.task)

        async with running(rt, "lead") as outcome:
            first, second = await asked(rt, 2)
            place.clock.advance(HOUR)
            await rt.workspace.questions.answer(first.id, first.text)
            await rt.workspace.tasks.get(first.task).wait(PATIENCE)
            place.clock.advance(HOUR)
            await quiet()
            with suppress(Conflict):
                await rt.workspace.questions.answer(second.id, second.text)
        return outcome.result().ok


async def a_deadline_comes_after_an_answer(place: Place) -> bool:
    with place.team() as rt:
        again, stopped = staying(rt, "lead")

        until_ = place.clock.now() + round(HOUR * SECOND)
        outcome = asyncio.ensure_future(rt.outcome("lead", "x", within=Bounds(deadline=until_)))
        question = await the_question(rt)
        place.clock.advance(HOUR - 60)
        await rt.workspace.questions.answer(question.id, "x")
        await happened(again)
        place.clock.advance(60)
        with anyio.move_on_after(place.patience):
            await stopped.wait()
        held = stopped.is_set()
        place.clock.advance(NIGHT)
        await outcome
    return held


async def a_question_ends_with_the_deadline(place: Place) -> bool:
    with place.team() as rt:
        asking(rt, "lead")
        until_ = place.clock.now() + round(HOUR * SECOND)
        async with running(rt, "lead", within=Bounds(deadline=until_)):
            question = await the_question(rt)
            await rt.workspace.questions.answer(question.id, "x")
        return question.until == until_


async def who_hangs_beside_a_question_is_stopped(place: Place) -> bool:
    hangs, stopped = anyio.Event(), anyio.Event()
    with place.team() as rt:
        asking(rt, "asks")

        @rt.agent(asks="*")
        async def lead(turn: Turn) -> None:
            await turn.delegate_all([("hangs", "x"), ("asks", "x")])

        @rt.agent("hangs")
        async def hang(turn: Turn) -> None:
            hangs.set()
            try:
                await anyio.Event().wait()
            finally:
                stopped.set()

        outcome = asyncio.ensure_future(rt.outcome("lead", "x"))
        await the_question(rt)
        await happened(hangs)
        place.clock.advance(HOUR)
        with anyio.move_on_after(place.patience):
            await stopped.wait()
        held = stopped.is_set()
        outcome.cancel()
        with suppress(asyncio.CancelledError):
            await outcome
    return held


async def a_question_is_withdrawn_with_its_task(place: Place) -> bool:
    with place.team() as rt:
        asking(rt, "lead", "last")
        task = await rt.submit("lead", "x")
        await the_question(rt)
        await rt.workspace.tasks.cancel(task.id)
        await task.wait(PATIENCE)
        return not await rt.workspace.questions.list()


async def an_answer_from_elsewhere_wakes(place: Place) -> bool:
    with place.team() as rt, place.team(hands=0) as elsewhere:
        asking(rt, "lead")
        outcome = asyncio.ensure_future(rt.outcome("lead", "x"))
        question = await the_question(rt)
        await quiet()
        await elsewhere.workspace.questions.answer(question.id, "blue")
        with anyio.move_on_after(place.patience):
            await asyncio.shield(outcome)
        woken = outcome.done()
        outcome.cancel()
        with suppress(asyncio.CancelledError):
            await outcome
    return woken


async def nobody_takes_up_what_is_parked(place: Place) -> bool:
    """And what it delegated counts as nobody's work; when the answer is there it goes on."""
    with doomed(place.folder / "team.db", place.clock) as first, place.team() as heir:
        for rt in (first, heir):
            asking(rt, "lead", "last")
        task = heir.workspace.tasks.get((await first.submit("lead", "x")).id)
        question = await the_question(first)
        await take_over(heir, place.clock, first)
        await quiet()
        claimed = "claimed" in await life(heir, task.id)
        at_work = await heir.workspace.journal.read(lambda view: view.running("last", place.clock.now()))
        if claimed or at_work:
            return False
        await settled(heir, question, "blue")
        with anyio.move_on_after(place.patience):
            return await task.result() == "blue"
    return False


async def a_parked_task_goes_on_without_an_answer(place: Place) -> bool:
    with doomed(place.folder / "team.db", place.clock) as first, place.team() as heir:
        for rt in (first, heir):
            asking(rt, "lead", "last")
        task = heir.workspace.tasks.get((await first.submit("lead", "x")).id)
        question = await the_question(first)
        await take_over(heir, place.clock, first)
        await heir.workspace.tasks.cancel(question.task)
        with anyio.move_on_after(place.patience):
            return (await task.wait()).state == "failed"
    return False


async def it_expires_although_nobody_waits(place: Place) -> bool:
    with doomed(place.folder / "team.db", place.clock) as first, place.team() as heir:
        for rt in (first, heir):
            asking(rt, "lead")
        await first.submit("lead", "x")
        question = await the_question(first)
        await take_over(heir, place.clock, first)
        place.clock.advance(8 * 24 * HOUR)

        async def expired() -> bool:
            return (await heir.workspace.questions.get(question.id)).state == "expired"

        with anyio.move_on_after(place.patience):
            while not await expired():
                place.clock.advance(1)
                await quiet()
        return await expired()


async def others_go_on_beside_a_question(place: Place) -> bool:
    with place.team(hands=1) as rt:
        asking(rt, "lead")

        @rt.agent
        async def other(turn: Turn) -> str:
            return "done"

        await rt.submit("lead", "x")
        await found(rt, lambda view: view.questions_open(1) or None)
        task = await rt.submit("other", "x")
        with anyio.move_on_after(place.patience):
            return await task.result() == "done"
    return False


async def who_has_tools_is_asked_about(place: Place) -> bool:
    policy = Policy(needs_approval=lambda wanted: True)
    with Runtime(place.folder / "team.db", policy=policy, system=System(clock=place.clock)) as rt:
        told: list[str] = []

        async def note(turn: Turn) -> None:
            told.append(turn.task)

        rt.add(Card("deployer", tools=["rm"]), note)

        @rt.agent(asks="*")
        async def lead(turn: Turn) -> None:
            await turn.delegate("deployer", "x")

        async with running(rt, "lead") as outcome:
            if not await is_asked(rt, outcome):
                return False
            await rt.workspace.questions.reject((await the_question(rt)).id)
        return not told
