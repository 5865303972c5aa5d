"""Questions that outlive their process: what waits for a person is parked, and goes on after the answer, anywhere."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

import anyio
import pytest

from engine.helping import PATIENCE, doomed, found, life, quiet, reached, sound, take_over
from engine.people import HOUR, asked, counted, deployer, settled, the_question
from remit import Bounds, Card, Refused, Runtime, Task, Turn
from remit.engine.people import Inquiry
from remit.errors import Conflict
from remit.ports import View
from remit.testing import FakeClock, pass_time
from teams import team

pytestmark = pytest.mark.anyio

SECOND = 1_000_000
NIGHT = 12 * HOUR


def waits_at(view: View, task: str, worker: str) -> bool:
    record = view.record(task)
    return record is not None and (record.worker, record.state) == (worker, "waiting")


class Crew:
    """Three in a row, under money; the last one asks, and each notes what it did."""

    def __init__(self) -> None:
        self.did: list[str] = []

    def join(self, rt: Runtime, **card: object) -> None:
        async def lead(turn: Turn) -> str:
            await turn.once("lead", self.did.append, "lead paid")
            return f"lead: {await turn.delegate('middle', turn.task)}"

        async def middle(turn: Turn) -> str:
            await turn.once("middle", self.did.append, "middle paid")
            return f"middle: {await turn.delegate('last', turn.task)}"

        async def last(turn: Turn) -> str:
            if turn.task == "approve":
                return str(await turn.ask_approval("deploy", {"env": "prod"}))
            if turn.task == "hop":
                return await turn.delegate("deployer", "to prod")
            return await turn.ask_human("Which?")

        rt.add(Card("lead", asks="*", **card), lead)
        rt.add(Card("middle", asks="*", **card), middle)
        rt.add(Card("last", asks="*", **card), last)
        self.told = deployer(rt)


RESULTS = {
    "ask": ("lead: middle: blue", {"asked": 1, "answered": 1, "used": 0}),
    "approve": ("lead: middle: {'env': 'prod'}", {"asked": 1, "answered": 1, "used": 1}),
    "hop": ("lead: middle: deployed: to prod", {"asked": 1, "answered": 1, "used": 1}),
}


@asynccontextmanager
async def left_alone(
    tmp_path, clock: FakeClock, task: str, *, crew: Crew, drained: bool = False, **card: object
) -> AsyncIterator[tuple[Runtime, Task, Inquiry]]:
    """A question is open, and its process is gone; another one has seen to it."""
    first = team(tmp_path / "team.db", clock=clock) if drained else doomed(tmp_path / "team.db", clock)
    with first, team(tmp_path / "team.db", clock=clock) as heir:
        crew.join(first, **card)
        asked_for = await first.submit("lead", task)
        question = await the_question(first)
        await reached(first, asked_for.id, "waiting")
        if drained:
            await first.drain(0)
        crew.join(heir, **card)
        if drained:
            heir.lend()
        else:
            await take_over(heir, clock, first)
        yield heir, heir.workspace.tasks.get(asked_for.id), question
        await sound(heir)


@pytest.mark.rule("ask.parked")
@pytest.mark.parametrize("drained", [False, True], ids=["killed", "drained"])
@pytest.mark.parametrize("task", ["ask", "approve", "hop"])
async def test_a_question_outlives_its_process(tmp_path, clock: FakeClock, task: str, drained: bool):
    crew = Crew()
    async with left_alone(tmp_path, clock, task, crew=crew, drained=drained) as (heir, parked, question):
        await quiet()
        assert (await parked.status()).state == "waiting"
        assert (await parked.status()).worker == ""
        assert "parked" in await life(heir, parked.id)
        assert heir.running() == 0
        running = await heir.workspace.journal.read(
            lambda view: [view.running(n, clock.now()) for n in ("lead", "middle", "last")]
        )
        assert running == [0, 0, 0]
        clock.advance(NIGHT)  # and nobody takes it up for want of an answer
        await quiet()
        assert heir.running() == 0
        assert (await life(heir, parked.id)).count("claimed") == 0
        await settled(heir, question, "blue")
        result, counts = RESULTS[task]
        assert await parked.result(PATIENCE) == result
        assert await counted(heir) == counts
        assert crew.did == ["lead paid", "middle paid"]
        assert crew.told == (["to prod"] if task == "hop" else [])


@pytest.mark.rule("ask.parked")
async def test_a_question_is_answered_where_there_is_no_process_at_all(tmp_path, clock: FakeClock):
    crew = Crew()
    with team(tmp_path / "team.db", clock=clock) as first:
        crew.join(first)
        task = (await first.submit("lead", "hop")).id
        question = await the_question(first)
        await reached(first, task, "waiting")
        await first.drain(0)
    with team(tmp_path / "team.db", clock=clock, hands=0) as nobody:  # only its workspace is used
        [shown] = await nobody.workspace.questions.list()
        assert shown == question
        assert (await nobody.workspace.tasks.get(task).status()).state == "waiting"
        await nobody.workspace.questions.approve(question.id, by="ann")
        assert (await nobody.workspace.tasks.get(task).status()).state == "pending"
    clock.advance(NIGHT)
    with team(tmp_path / "team.db", clock=clock) as heir:
        crew.join(heir)
        heir.lend()
        assert await heir.workspace.tasks.get(task).result(PATIENCE) == "lead: middle: deployed: to prod"
        assert await counted(heir) == {"asked": 1, "answered": 1, "used": 1}
        assert crew.did == ["lead paid", "middle paid"]
        await sound(heir)


@pytest.mark.rule("ask.parked")
async def test_a_run_of_the_foreground_is_parked_and_goes_on_from_the_queue(tmp_path, clock: FakeClock):
    """Its caller is gone with its process; what it began is finished all the same."""
    crew = Crew()
    with doomed(tmp_path / "team.db", clock) as first, team(tmp_path / "team.db", clock=clock) as heir:
        crew.join(first)
        crew.join(heir)
        outcome = asyncio.ensure_future(first.outcome("lead", "hop"))
        question = await the_question(first)
        await take_over(heir, clock, first)
        outcome.cancel()
        with suppress(asyncio.CancelledError):
            await outcome
        parked = heir.workspace.tasks.get(question.run)
        assert (await parked.status()).state == "waiting"
        clock.advance(NIGHT)
        await heir.workspace.questions.approve(question.id)
        assert await parked.result(PATIENCE) == "lead: middle: deployed: to prod"
        assert await counted(heir) == {"asked": 1, "answered": 1, "used": 1}
        await sound(heir)


@pytest.mark.rule("ask.parked", "ask.clock")
async def test_a_task_that_resumes_after_the_night_has_its_whole_time_again(tmp_path, clock: FakeClock):
    crew, again, done = Crew(), anyio.Event(), anyio.Event()
    async with left_alone(tmp_path, clock, "ask", crew=crew) as (heir, parked, question):
        clock.advance(NIGHT)

        async def last(turn: Turn) -> str:
            answer = await turn.ask_human("Which?")
            again.set()
            await done.wait()
            return answer

        with heir.override(last=last):
            await heir.workspace.questions.answer(question.id, "blue")
            with anyio.fail_after(PATIENCE):
                await again.wait()
            clock.advance(250)
            await quiet()
            done.set()
            assert await parked.result(PATIENCE) == "lead: middle: blue"


@pytest.mark.rule("ask.parked", "ask.expires")
@pytest.mark.parametrize("default", ["blue", None])
async def test_a_question_expires_although_nobody_waits_for_it(tmp_path, clock: FakeClock, default: str | None):
    """The caretaker of whoever is there sees to it."""

    def join(rt: Runtime) -> None:
        @rt.agent
        async def lead(turn: Turn) -> str:
            try:
                return await turn.ask_human("Which?", default=default, timeout=HOUR)
            except Refused:
                return "went on without"

    with doomed(tmp_path / "team.db", clock) as first, team(tmp_path / "team.db", clock=clock) as heir:
        join(first)
        join(heir)
        parked = heir.workspace.tasks.get((await first.submit("lead", "x")).id)
        question = await the_question(first)
        await take_over(heir, clock, first)
        assert (await parked.status()).state == "waiting"

        async def over() -> bool:
            return (await parked.status()).ended is not None

        clock.advance(HOUR)
        await pass_time(clock, over)
        assert await parked.result() == (default or "went on without")
        assert (await heir.workspace.questions.get(question.id)).state == "expired"
        assert await counted(heir) == {"asked": 1, "answered": 1, "used": 0}
        await sound(heir)


@pytest.mark.rule("ask.parked", "ask.withdrawn")
async def test_what_is_parked_is_cancelled_whole(tmp_path, clock: FakeClock):
    async with left_alone(tmp_path, clock, "hop", crew=Crew()) as (heir, parked, question):
        await heir.workspace.tasks.cancel(parked.id)
        with anyio.fail_after(PATIENCE):
            assert (await parked.wait()).state == "cancelled"
        assert await heir.workspace.tasks.list(state="open") == []
        assert (await heir.workspace.questions.get(question.id)).state == "withdrawn"
        with pytest.raises(Conflict):
            await heir.workspace.questions.approve(question.id)


@pytest.mark.rule("ask.parked", "ask.withdrawn")
async def test_a_parked_task_goes_on_when_the_task_that_asked_is_cancelled(tmp_path, clock: FakeClock):
    """Nobody will answer any more, so nobody waits for an answer."""
    crew = Crew()
    async with left_alone(tmp_path, clock, "ask", crew=crew) as (heir, parked, question):
        await heir.workspace.tasks.cancel(question.task)
        with anyio.fail_after(PATIENCE):
            outcome = await parked.wait()
        assert outcome.state == "failed"
        assert (await heir.workspace.questions.get(question.id)).state == "withdrawn"
        assert await heir.workspace.tasks.list(state="open") == []


@pytest.mark.rule("ask.parked")
async def test_a_task_is_not_parked_for_what_it_only_submitted(tmp_path, clock: FakeClock):
    """The other one asks; whoever submitted it need not wait for that."""

    def join(rt: Runtime) -> None:
        @rt.agent(asks="*")
        async def lead(turn: Turn) -> str:
            await turn.submit("asks", "x")
            await the_question(rt)
            if rt is first:
                await anyio.Event().wait()
            return "went on"

        @rt.agent
        async def asks(turn: Turn) -> str:
            return await turn.ask_human("Which?")

    with doomed(tmp_path / "team.db", clock) as first, team(tmp_path / "team.db", clock=clock) as heir:
        join(first)
        join(heir)
        task = heir.workspace.tasks.get((await first.submit("lead", "x")).id)
        question = await the_question(first)
        await take_over(heir, clock, first)
        assert await task.result(PATIENCE) == "went on"
        await heir.workspace.questions.answer(question.id, "blue")
        assert await heir.workspace.tasks.get(question.task).result(PATIENCE) == "blue"
        await sound(heir)


@pytest.mark.rule("ask.parked")
async def test_a_task_with_two_questions_goes_on_when_both_are_answered(tmp_path, clock: FakeClock):
    def join(rt: Runtime) -> None:
        @rt.agent(asks="*")
        async def lead(turn: Turn) -> list[object]:
            outcomes = await turn.delegate_all([("asks", "one?"), ("asks", "two?")])
            return [outcome.value for outcome in outcomes]

        @rt.agent
        async def asks(turn: Turn) -> str:
            return await turn.ask_human(turn.task)

    with doomed(tmp_path / "team.db", clock) as first, team(tmp_path / "team.db", clock=clock) as heir:
        join(first)
        join(heir)
        task = heir.workspace.tasks.get((await first.submit("lead", "x")).id)
        one, two = await asked(first, 2)
        await take_over(heir, clock, first)
        await heir.workspace.questions.answer(one.id, f"to {one.text}")
        both = two.task, task.id  # taken up again, and the other's answer used: it waits only for this one
        await found(heir, lambda view: all(waits_at(view, one, heir.worker) for one in both) or None)
        clock.advance(NIGHT)
        await quiet()
        assert (await task.status()).state == "waiting"
        await heir.workspace.questions.answer(two.id, f"to {two.text}")
        assert await task.result(PATIENCE) == ["to one?", "to two?"]
        assert await counted(heir) == {"asked": 2, "answered": 2, "used": 0}
        await sound(heir)


@pytest.mark.rule("approval.exact")
async def test_an_approval_does_not_hold_for_a_card_that_may_do_more_by_then(tmp_path, clock: FakeClock):
    """What was shown is what was approved."""
    with doomed(tmp_path / "team.db", clock) as first, team(tmp_path / "team.db", clock=clock) as heir:
        for rt, tools in ((first, ["helm"]), (heir, ["helm", "rm"])):
            told = deployer(rt, tools=tools)

            @rt.agent(asks="*")
            async def lead(turn: Turn) -> str:
                return await turn.delegate("deployer", "to prod")

        task = heir.workspace.tasks.get((await first.submit("lead", "x")).id)
        question = await the_question(first)
        await take_over(heir, clock, first)
        await heir.workspace.questions.approve(question.id)
        outcome = await task.wait(PATIENCE)
        assert str(outcome.error).endswith(
            "asking 'deployer' was approved once, for something else; it is not approved again by itself"
        )
        assert told == []


@pytest.mark.rule("approval.exact")
async def test_how_much_time_it_has_makes_it_no_other_hop(tmp_path, clock: FakeClock):
    """It is computed again in every process."""
    with doomed(tmp_path / "team.db", clock) as first, team(tmp_path / "team.db", clock=clock) as heir:
        for rt, seconds in ((first, 3_000), (heir, 2_000)):
            told = deployer(rt)

            @rt.agent(asks="*")
            async def lead(turn: Turn, seconds: int = seconds) -> str:
                within = Bounds(deadline=clock.now() + seconds * SECOND)
                return await turn.delegate("deployer", "to prod", within=within)

        task = heir.workspace.tasks.get((await first.submit("lead", "x")).id)
        question = await the_question(first)
        await take_over(heir, clock, first)
        await heir.workspace.questions.approve(question.id)
        assert await task.result(PATIENCE) == "deployed: to prod"
        assert told == ["to prod"]


@pytest.mark.rule("ask.slot", "ask.parked")
async def test_what_is_parked_holds_no_slot_of_its_agents(tmp_path, clock: FakeClock):
    crew = Crew()
    async with left_alone(tmp_path, clock, "ask", crew=crew, concurrency=1) as (heir, parked, question):
        second = await heir.submit("lead", "approve")
        other = (await asked(heir, 2))[1]
        await heir.workspace.questions.approve(other.id)
        assert await second.result(PATIENCE) == "lead: middle: {'env': 'prod'}"
        await heir.workspace.questions.answer(question.id, "blue")
        assert await parked.result(PATIENCE) == "lead: middle: blue"


@pytest.mark.rule("crash.fence", "ask.once")
async def test_a_process_that_others_take_for_dead_asks_nothing_and_uses_nothing(tmp_path, clock: FakeClock):
    """It waits still, and hears of the answer late."""
    said: list[str] = []
    with doomed(tmp_path / "team.db", clock) as first, team(tmp_path / "team.db", clock=clock) as heir:

        def join(rt: Runtime) -> None:
            @rt.agent
            async def ops(turn: Turn) -> str:
                try:
                    return str(await turn.ask_approval("deploy", {"by": "prod"}))
                except Refused as no:
                    said.append(no.rule)
                    raise

        join(first)
        join(heir)
        task = heir.workspace.tasks.get((await first.submit("ops", "x")).id)
        question = await the_question(first)
        await take_over(heir, clock, first)
        await heir.workspace.questions.approve(question.id)
        assert await task.result(PATIENCE) == "{'by': 'prod'}"
        assert await counted(heir) == {"asked": 1, "answered": 1, "used": 1}
        await sound(heir)
