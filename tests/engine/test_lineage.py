"""What was finished below is not done again, whoever between it and the top is tried again."""

import asyncio
from collections.abc import Callable
from typing import Any

import anyio
import pytest

from engine.helping import PATIENCE, Shaky, doomed, ends, happened, sound, take_over, until
from engine.lives import Stage, played, result
from remit import Bounds, Card, Plan, Runtime, Step, Turn
from remit.core.lifecycle import ENDS
from remit.errors import Failed, StoreBusy
from remit.ports import Decide, Decision, View
from remit.settings import Pace
from teams import team
from wrapped import Wrapped

pytestmark = pytest.mark.anyio

DAY = 86_400


@pytest.mark.rule("lineage.below")
@pytest.mark.case("resume/grandchild")
async def test_what_completed_below_one_that_failed_is_not_done_again(rt: Runtime, clock):
    paid: list[str] = []
    tries = {"mid": 0}

    @rt.agent(asks="*")
    async def boss(turn: Turn) -> str:
        return await turn.delegate("mid", "month end")

    @rt.agent(asks="*")
    async def mid(turn: Turn) -> str:
        found = await turn.delegate("payer", "ann")
        tries["mid"] += 1
        if tries["mid"] < 3:
            raise Shaky("the mail server is busy")
        return found

    @rt.agent
    async def payer(turn: Turn) -> str:
        return await turn.once("pay", lambda: paid.append(turn.task) or f"paid {turn.task}")

    outcome = await ends(clock, await rt.submit("boss", "go"))
    assert (outcome.value, paid, tries) == ("paid ann", ["ann"], {"mid": 3})
    assert len(await rt.workspace.tasks.list(agent="payer")) == 1
    await sound(rt)


async def pays_and_fails(rt: Runtime, paid: list[str], fail: Callable[[], Any]) -> None:
    """A payer that has paid when it fails for the first time."""

    async def payer(turn: Turn) -> str:
        receipt = await turn.once("pay", lambda: paid.append("paid") or "receipt")
        if len(await rt.workspace.tasks.list(agent="payer")) == 1:
            await anyio.lowlevel.checkpoint()
            if (slow := fail()) is not None:
                await slow
        return receipt

    rt.add(Card("payer"), payer)


def raises() -> None:
    raise ConnectionError("the printer is off")


@pytest.mark.rule("lineage.below")
@pytest.mark.case("resume/pairing_more")
@pytest.mark.parametrize("how", ["raises", "takes too long"])
async def test_an_effect_of_one_that_failed_is_not_done_again(rt: Runtime, clock, how):
    paid: list[str] = []
    await pays_and_fails(rt, paid, raises if how == "raises" else anyio.sleep_forever)

    @rt.agent(asks="*")
    async def boss(turn: Turn) -> str:
        return await turn.delegate("payer", "salary")

    outcome = await ends(clock, await rt.submit("boss", "go", timeout=30))
    assert (outcome.value, paid) == ("receipt", ["paid"])
    await sound(rt)


@pytest.mark.rule("lineage.below")
@pytest.mark.case("resume/pairing_more")
async def test_the_retry_of_a_step_finds_what_the_first_try_did(rt: Runtime):
    paid: list[str] = []
    await pays_and_fails(rt, paid, raises)

    @rt.agent(asks="*")
    async def boss(turn: Turn) -> list:
        found = await turn.run_plan(Plan([Step("p", "salary", agent="payer", retries=1)]))
        return [step.value for step in found.steps.values()]

    assert await rt.run("boss", "go") == ["receipt"]
    assert paid == ["paid"]


@pytest.mark.rule("lineage.below")
@pytest.mark.parametrize("asked_how", ["delegate", "submit"])
async def test_asking_again_after_a_failure_is_trying_again(rt: Runtime, asked_how):
    """The agent itself asks for the same once more."""
    paid: list[str] = []
    await pays_and_fails(rt, paid, lambda: (_ for _ in ()).throw(ValueError("no")))

    @rt.agent(asks="*")
    async def boss(turn: Turn) -> str:
        async def ask() -> str:
            if asked_how == "delegate":
                return await turn.delegate("payer", "salary")
            return await (await turn.submit("payer", "salary")).result(PATIENCE)

        try:
            return await ask()
        except Failed:
            return await ask()

    assert await rt.run("boss", "go") == "receipt"
    assert paid == ["paid"]
    await sound(rt)


@pytest.mark.rule("lineage.below")
async def test_each_of_several_that_failed_is_tried_again_for_itself(rt: Runtime):
    """They ask the same, and yet are two: neither finds what the other did."""
    did: list[str] = []
    failed: list[str] = []

    @rt.agent(asks="*")
    async def boss(turn: Turn) -> list:
        first = await turn.delegate_all([("worker", "x"), ("worker", "x")])
        again = await turn.delegate_all([("worker", "x"), ("worker", "x")])
        return [[one.state for one in first], sorted(one.value for one in again)]

    @rt.agent
    async def worker(turn: Turn) -> str:
        number = await turn.once("count", lambda: did.append("x") or len(did))
        if len(failed) < 2:
            failed.append(turn.remit.id)
            raise ValueError("not yet")
        return f"worker {number}"

    assert await rt.run("boss", "go") == [["failed", "failed"], ["worker 1", "worker 2"]]
    assert len(did) == 2
    await sound(rt)


@pytest.mark.rule("lineage.below")
async def test_a_completed_delegation_runs_again_when_it_is_requested_twice(rt: Runtime, clock):
    """Asking the same again after a success is another question; tried again, both have their own answer."""
    rolled: list[int] = []

    @rt.agent(asks="*")
    async def player(turn: Turn) -> list:
        found = [await turn.delegate("die", "roll"), await turn.delegate("die", "roll")]
        if len(rolled) == 2:
            rolled.append(0)
            raise Shaky
        return found

    @rt.agent
    async def die(turn: Turn) -> int:
        rolled.append(len(rolled) + 1)
        return len(rolled)

    outcome = await ends(clock, await rt.submit("player", "go"))
    assert (outcome.value, rolled) == ([1, 2], [1, 2, 0])


@pytest.mark.rule("lineage.below")
async def test_what_a_failure_and_a_second_try_came_to_is_found_by_the_next_try(rt: Runtime, clock):
    """The first ask failed and the second completed; when the asker is tried again, the answer is there at once."""
    asked: list[str] = []

    @rt.agent(asks="*")
    async def boss(turn: Turn) -> str:
        try:
            found = await turn.delegate("helper", "x")
        except Failed:
            found = await turn.delegate("helper", "x")
        if len(asked) == 2:
            asked.append("boss failed")
            raise Shaky
        return found

    @rt.agent
    async def helper(turn: Turn) -> str:
        asked.append("helper")
        if len(asked) == 1:
            raise ValueError("not yet")
        return "helped"

    outcome = await ends(clock, await rt.submit("boss", "go"))
    assert (outcome.value, asked) == ("helped", ["helper", "helper", "boss failed"])


@pytest.mark.rule("lineage.below", "retry.operator")
async def test_a_retry_by_hand_finds_what_was_finished_at_any_depth(rt: Runtime):
    paid: list[str] = []
    stuck, go = anyio.Event(), anyio.Event()

    @rt.agent(asks="*")
    async def boss(turn: Turn) -> str:
        return await turn.delegate("mid", "month end")

    @rt.agent(asks="*")
    async def mid(turn: Turn) -> str:
        found = await turn.delegate("payer", "ann")
        stuck.set()
        await go.wait()
        return found

    @rt.agent
    async def payer(turn: Turn) -> str:
        return await turn.once("pay", lambda: paid.append(turn.task) or f"paid {turn.task}")

    task = await rt.submit("boss", "go")
    await happened(stuck)
    await task.cancel()
    assert (await task.wait(PATIENCE)).state == "cancelled"
    go.set()
    again = await task.retry()
    assert await again.result(PATIENCE) == "paid ann"
    assert paid == ["ann"]
    await sound(rt)


@pytest.mark.rule("lineage.below")
async def test_one_that_is_tried_again_goes_on_from_a_crash_with_what_its_line_finished(tmp_path, clock):
    """The second try of the one between dies with its process."""

    def crew(rt: Runtime, stage: Stage) -> None:
        async def lead(turn: Turn) -> str:
            try:
                return await turn.delegate("mid", "x")
            except Failed:
                return await turn.delegate("mid", "x")

        async def mid(turn: Turn) -> str:
            found = await turn.once("pay", lambda: stage.did.append("paid") or "receipt")
            stage.did.append("mid")
            if stage.did.count("mid") == 1:
                raise ValueError("not yet")
            await stage.crash()
            return found

        rt.add(Card("lead", asks="*"), lead)
        rt.add(Card("mid"), mid)

    stage = Stage()
    async with played(tmp_path, clock, crew, stage) as heir:
        assert await result(heir) == "receipt"
    assert stage.did == ["paid", "mid", "mid", "mid"]


# -- what follows a retry -----------------------------------------------------------------------------------------


@pytest.mark.rule("lineage.prune", "prune.retention")
@pytest.mark.case("resume/prune_origin")
async def test_what_one_that_is_tried_again_still_needs_is_not_pruned(tmp_path, clock):
    charged: list[str] = []
    broken = [True]

    def join(rt: Runtime) -> None:
        @rt.agent
        async def till(turn: Turn) -> str:
            receipt = await turn.once("charge", lambda: charged.append("x") or "receipt 4711")
            if broken[0]:
                raise ValueError("a bug in the code behind it")
            return f"order done, {receipt}"

    with team(tmp_path / "team.db", clock=clock) as first:
        join(first)
        task = await first.submit("till", "order 7")
        assert (await task.wait(PATIENCE)).state == "failed"
        second = await task.retry()
        assert (await second.wait(PATIENCE)).state == "failed"
        await first.drain(0)
    broken[0] = False
    clock.advance(4 * DAY - 60)
    with team(tmp_path / "team.db", clock=clock, hands=0) as asker:
        third = await asker.workspace.tasks.get(second.id).retry()
        clock.advance(120)
        assert await asker.workspace.prune(4) == 0
    with team(tmp_path / "team.db", clock=clock) as last:
        join(last)
        assert await last.workspace.tasks.get(third.id).result(PATIENCE) == "order done, receipt 4711"
        assert len(charged) == 1
        clock.advance(5 * DAY)
        assert await last.workspace.prune(4) == 3
        await sound(last)


@pytest.mark.rule("lineage.prune")
async def test_a_run_that_may_still_be_retried_keeps_those_it_came_from(rt: Runtime, clock):
    @rt.agent
    async def till(turn: Turn) -> str:
        receipt = await turn.once("charge", lambda: "receipt")
        if len(await rt.workspace.tasks.list()) < 3:
            raise ValueError("no")
        return receipt

    first = await rt.submit("till", "x")
    await first.wait(PATIENCE)
    clock.advance(3 * DAY)
    second = await first.retry()
    await second.wait(PATIENCE)
    clock.advance(2 * DAY)  # the first ended more than four days ago, the second did not
    assert await rt.workspace.prune(4) == 0
    assert await (await second.retry()).result(PATIENCE) == "receipt"


@pytest.mark.rule("lineage.told")
@pytest.mark.case("resume/announce_retry")
async def test_an_announcement_is_found_by_a_retried_task(rt: Runtime):
    did = {"lead": 0, "scout": 0}
    waits = anyio.Event()

    @rt.agent(asks="*")
    async def lead(turn: Turn) -> str:
        did["lead"] += 1
        await (await turn.spawn("scout", "look ahead")).wait(PATIENCE)
        if did["lead"] == 1:
            waits.set()
            await anyio.sleep_forever()
        [news] = await turn.inbox()
        assert await turn.inbox() == []
        return news.text

    @rt.agent
    async def scout(turn: Turn) -> str:
        did["scout"] += 1
        return "the bridge is out"

    task = await rt.submit("lead", "lead us")
    await happened(waits)
    await task.cancel()
    await task.wait(PATIENCE)
    [orphan] = await rt.workspace.tasks.orphans()
    assert "the bridge is out" in orphan.text
    again = await task.retry()
    assert "the bridge is out" in await again.result(PATIENCE)
    assert did == {"lead": 2, "scout": 1}
    assert await rt.workspace.tasks.orphans() == []
    await sound(rt)


@pytest.mark.rule("lineage.told")
async def test_what_is_announced_for_one_that_is_being_tried_again_is_no_orphan(rt: Runtime):
    go, waits = anyio.Event(), anyio.Event()
    lives: list[str] = []

    @rt.agent(asks="*")
    async def lead(turn: Turn) -> int:
        scout = await turn.spawn("scout", "look ahead")
        lives.append("lead")
        if len(lives) == 1:
            raise ValueError("no")
        await scout.wait(PATIENCE)
        waits.set()
        assert await rt.workspace.tasks.orphans() == []
        return len(await turn.inbox())

    @rt.agent
    async def scout(turn: Turn) -> str:
        await go.wait()
        return "seen"

    task = await rt.submit("lead", "x")
    assert (await task.wait(PATIENCE)).state == "failed"
    again = await task.retry()
    go.set()
    assert await again.result(PATIENCE) == 1
    await happened(waits)


# -- time that nobody used ----------------------------------------------------------------------------------------


@pytest.mark.rule("time.downtime")
@pytest.mark.case("resume/downtime")
@pytest.mark.parametrize("off", [10, 360, 3 * DAY])
async def test_time_in_which_nobody_was_there_is_nobodys(tmp_path, clock, off):
    """Every task has a delegation under way, which has 300 seconds like any other; one is only queued."""
    began = [anyio.Event() for _ in range(3)]

    def join(rt: Runtime, *, first: bool) -> None:
        async def lead(turn: Turn) -> str:
            return await turn.delegate("coder", f"part of {turn.task}")

        async def coder(turn: Turn) -> str:
            if first:
                began[int(turn.task[-1])].set()
                await anyio.sleep_forever()
            return "written"

        rt.add(Card("lead", asks="*"), lead)
        rt.add(Card("coder"), coder)

    with doomed(tmp_path / "team.db", clock) as dead, team(tmp_path / "team.db", clock=clock) as heir:
        join(dead, first=True)
        tasks = [await dead.submit("lead", f"job {number}") for number in range(3)]
        for one in began:
            await happened(one)
        clock.advance(off)
        join(heir, first=False)
        await take_over(heir, clock, dead)
        outcomes = [await heir.workspace.tasks.get(task.id).wait(PATIENCE) for task in tasks]
        assert [outcome.value for outcome in outcomes] == ["written"] * 3
        assert await heir.workspace.agents.breakers() == {}
        assert (await heir.outcome("lead", "a new 0")).state == "completed"
        await sound(heir)


@pytest.mark.rule("time.downtime")
async def test_a_deadline_that_was_said_holds_through_downtime(tmp_path, clock):
    began = anyio.Event()

    def join(rt: Runtime, *, first: bool) -> None:
        async def lead(turn: Turn) -> str:
            if first:
                began.set()
                await anyio.sleep_forever()
            return "late"

        rt.add(Card("lead"), lead)

    with doomed(tmp_path / "team.db", clock) as dead, team(tmp_path / "team.db", clock=clock) as heir:
        join(dead, first=True)
        task = await dead.submit("lead", "x", within=Bounds(deadline=clock.now() + 300 * 1_000_000))
        await happened(began)
        clock.advance(360)
        join(heir, first=False)
        await take_over(heir, clock, dead)
        assert (await heir.workspace.tasks.get(task.id).wait(PATIENCE)).state == "failed"


class Interrupted(Wrapped):
    """A database of a process that is gone before it can record that its lead has ended; from then on it can write
    nothing more."""

    gone = False

    def around(self, decide: Decide[Any]) -> Decide[Any]:
        def decided(view: View) -> Decision[Any]:
            decision = decide(view)
            ended = any(event.kind in ENDS and event.agent == "lead" for event in decision.events)
            self.gone = self.gone or ended
            if self.gone:
                raise StoreBusy("the process is gone")
            return decision

        return decided


@pytest.mark.rule("lineage.unheard")
async def test_a_task_that_was_stopped_with_its_asker_is_requested_again(tmp_path, clock):
    """Its end is on record when the process dies, and that of its asker is not: nobody ever heard of it."""
    inside, stopped = anyio.Event(), anyio.Event()
    did: list[str] = []

    async def leaves(turn: Turn) -> str:
        asked = asyncio.ensure_future(turn.delegate("coder", "x"))
        await inside.wait()
        assert not asked.done()
        return "left it running"

    async def coder(turn: Turn) -> str:
        paid = await turn.once("pay", lambda: did.append("paid") or "receipt")
        if not inside.is_set():
            inside.set()
            try:
                await anyio.sleep_forever()
            finally:
                stopped.set()
        return paid

    async def asks(turn: Turn) -> str:
        return await turn.delegate("coder", "x")

    gone = doomed(Interrupted(tmp_path / "team.db"), clock, pace=Pace(store_timeout=0))
    with gone as dead, team(tmp_path / "team.db", clock=clock) as heir:
        dead.add(Card("lead", asks="*"), leaves)
        dead.add(Card("coder"), coder)
        heir.add(Card("lead", asks="*"), asks)
        heir.add(Card("coder"), coder)
        task = await dead.submit("lead", "go")
        await happened(stopped)
        await until(lambda: not dead.running())
        await take_over(heir, clock, dead)
        assert await heir.workspace.tasks.get(task.id).result(PATIENCE) == "receipt"
        assert did == ["paid"]
        last, *others = [one.state for one in await heir.workspace.tasks.list(agent="coder")]
        assert (last, set(others)) == ("completed", {"cancelled"})
        await sound(heir)
