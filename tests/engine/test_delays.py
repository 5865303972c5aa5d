"""Tasks that start later: no worker starts them before their time, and their own time starts then."""

from datetime import UTC, datetime, timedelta, timezone

import anyio
import pytest

from engine.helping import PATIENCE, ends, happened, life, quiet, serving, sound
from remit import Bounds, Card, Plan, Runtime, Step, Turn
from remit.core.times import DAY, SECOND, aware, moment
from remit.errors import BadInput, Conflict
from remit.settings import RetryPolicy
from remit.testing import FakeClock
from teams import echo, team

pytestmark = pytest.mark.anyio

BERLIN = timezone(timedelta(hours=1))


@pytest.mark.rule("delay.due")
@pytest.mark.parametrize(
    "later",
    [
        lambda now: {"after": 90},
        lambda now: {"after": timedelta(seconds=90)},
        lambda now: {"at": now + timedelta(seconds=90)},
        lambda now: {"at": (now + timedelta(seconds=90)).astimezone(BERLIN)},
    ],
)
async def test_a_delayed_task_starts_when_it_is_due_and_not_before(anywhere: Runtime, clock: FakeClock, later):
    anywhere.add(Card("coder"), echo)
    due = clock.now() + 90 * SECOND
    async with serving(anywhere):
        task = await anywhere.submit("coder", "x", **later(aware(clock.now())))
        status = await task.status()
        assert (status.state, status.ready_at, status.due) == ("pending", due, aware(due))
        clock.advance(89.9)
        await quiet()
        assert (await task.status()).state == "pending"
        clock.advance(0.1)
        assert await task.result(PATIENCE) == "x"
    assert ((await task.status()).claimed_at or 0) >= due
    assert await life(anywhere, task.id) == ["submitted", "claimed", "completed"]
    await sound(anywhere)


@pytest.mark.rule("delay.due")
@pytest.mark.parametrize("how", [{"after": 0}, {"after": timedelta()}, {"at": datetime(1969, 7, 20, tzinfo=UTC)}])
async def test_a_moment_that_has_passed_means_at_once(anywhere: Runtime, how):
    anywhere.add(Card("coder"), echo)
    task = await anywhere.submit("coder", "x", **how)
    assert await task.result(PATIENCE) == "x"
    assert (await task.status()).ready_at <= (await task.status()).asked_at
    assert (await task.status()).due == (await task.status()).asked


@pytest.mark.rule("delay.due")
async def test_a_delayed_task_holds_up_no_other(rt: Runtime, clock: FakeClock):
    rt.add(Card("coder", concurrency=1), echo)
    later = await rt.submit("coder", "later", after=60)
    assert await (await rt.submit("coder", "now")).result(PATIENCE) == "now"
    assert (await later.status()).state == "pending"
    assert (await ends(clock, later)).value == "later"


@pytest.mark.rule("delay.verbs")
@pytest.mark.parametrize("verb", ["submit", "spawn"])
async def test_an_agent_delays_what_it_submits_and_spawns(anywhere: Runtime, clock: FakeClock, verb: str):
    @anywhere.agent(asks="*")
    async def lead(turn: Turn) -> str:
        return (await getattr(turn, verb)("coder", "x", after=600)).id

    anywhere.add(Card("coder"), echo)
    task = anywhere.workspace.tasks.get(await anywhere.run("lead", "go"))
    status = await task.status()
    assert (status.state, status.ready_at - status.asked_at) == ("pending", 600 * SECOND)
    clock.advance(598)
    await quiet()
    assert (await task.status()).state == "pending"
    assert (await ends(clock, task)).value == "x"
    assert ((await task.status()).claimed_at or 0) >= status.ready_at
    await sound(anywhere)


@pytest.mark.rule("delay.verbs")
async def test_plans_and_teams_and_requests_of_other_agents_are_delayed_too(rt: Runtime, clock: FakeClock):
    @rt.agent(asks="*")
    async def boss(turn: Turn) -> object:
        return {"steps": [{"id": "a", "title": "A", "agent": "coder"}]} if turn.phase == "plan" else "done"

    rt.add(Card("coder"), echo)
    tasks = [
        await rt.submit_plan(Plan([Step("a", "A", agent="coder")]), after=60),
        await rt.submit_team("a cake", "boss", after=60),
        await rt.workspace.submit("coder", "x", asker="boss", after=60),
    ]
    for task in tasks:
        assert (await task.status()).ready_at == clock.now() + 60 * SECOND
    for task in tasks:
        assert (await ends(clock, task)).state == "completed"
    await sound(rt)


@pytest.mark.rule("delay.due")
async def test_a_task_that_was_delayed_in_a_process_that_died_starts_in_another(tmp_path, clock: FakeClock):
    with team(tmp_path / "team.db", clock=clock, hands=0) as asking:
        asking.add(Card("coder"), echo)
        task = (await asking.submit("coder", "x", after=3_600)).id
    clock.advance(24 * 3_600)
    with team(tmp_path / "team.db", clock=clock) as working:
        working.add(Card("coder"), echo)
        async with serving(working):
            assert await working.workspace.tasks.get(task).result(PATIENCE) == "x"
        await sound(working)


# -- its time ------------------------------------------------------------------------------------------------


@pytest.mark.rule("delay.time")
async def test_the_time_in_the_queue_and_of_an_attempt_start_when_the_task_is_due(rt: Runtime, clock: FakeClock):
    inside = anyio.Event()

    @rt.agent(retry=RetryPolicy(attempts=1))
    async def slow(turn: Turn) -> None:
        inside.set()
        await anyio.sleep_forever()

    task = await rt.submit("slow", "x", after=40 * 86_400, timeout=10)
    due = clock.now() + 40 * DAY
    assert (await task.status()).until == due + 30 * DAY
    clock.advance(40 * 86_400 - 1)
    await quiet()
    assert (await task.status()).state == "pending"
    clock.advance(1)
    await happened(inside)
    clock.advance(9.9)
    await quiet()
    assert (await task.status()).state == "running"
    clock.advance(0.1)
    assert "ran out of time" in str((await task.wait(PATIENCE)).error)


@pytest.mark.rule("delay.time")
async def test_a_deadline_before_the_task_is_due_is_an_error(rt: Runtime, clock: FakeClock):
    rt.add(Card("coder"), echo)
    soon = Bounds(deadline=aware(clock.now() + 3_600 * SECOND))
    with pytest.raises(BadInput, match=r"would be due at .* and its deadline is .* later Bounds\(deadline=...\)"):
        await rt.submit("coder", "x", after=3_600, within=soon)
    task = await rt.submit("coder", "x", after=60, within=soon)
    assert (await task.status()).until == soon.deadline
    assert (await ends(clock, task)).state == "completed"

    @rt.agent(asks="*")
    async def lead(turn: Turn) -> None:
        with pytest.raises(BadInput, match="could never start"):
            await turn.submit("coder", "y", after=60)

    until = Bounds(deadline=aware(clock.now() + 60 * SECOND))
    await rt.run("lead", "go", within=until)
    await sound(rt)


@pytest.mark.rule("delay.time")
@pytest.mark.parametrize("passed", [60, 7_200])
async def test_a_retry_by_hand_starts_at_once_with_the_time_that_the_task_had(
    rt: Runtime, clock: FakeClock, passed: float
):
    @rt.agent
    async def coder(turn: Turn) -> None:
        raise ValueError("no")

    until = Bounds(deadline=aware(clock.now() + 4_600 * SECOND))
    task = await rt.submit("coder", "x", after=3_600, within=until)  # 1,000 seconds from when it is due
    clock.advance(passed)
    await task.cancel() if passed < 3_600 else await task.wait(PATIENCE)
    again = await task.retry()
    assert (await again.wait(PATIENCE)).state == "failed"
    status = await again.status()
    assert (status.ready_at <= status.asked_at, status.until - status.asked_at) == (True, 1_000 * SECOND)
    await sound(rt)


@pytest.mark.rule("delay.due")
async def test_a_delayed_task_can_be_cancelled(anywhere: Runtime, clock: FakeClock):
    anywhere.add(Card("coder"), echo)
    task = await anywhere.submit("coder", "x", after=60)
    await task.cancel()
    assert (await task.wait(PATIENCE)).state == "cancelled"
    clock.advance(60)
    await quiet()
    assert await life(anywhere, task.id) == ["submitted", "cancelled"]
    await sound(anywhere)


# -- sameness ------------------------------------------------------------------------------------------------


@pytest.mark.rule("delay.same")
async def test_the_same_delay_is_the_same_request_whenever_it_is_made(rt: Runtime, clock: FakeClock):
    rt.add(Card("coder"), echo)
    for how in ({"key": "k"}, {"same_within": 300}):
        first = await rt.submit("coder", "x", after=60, **how)  # pyright: ignore[reportArgumentType]
        due = (await first.status()).due
        clock.advance(30)
        again = await rt.submit("coder", "x", after=timedelta(minutes=1), **how)  # pyright: ignore[reportArgumentType]
        assert (again.id, again.existing, (await again.status()).due) == (first.id, True, due)
    when = aware(clock.now() + 60 * SECOND)
    first = await rt.submit("coder", "x", at=when, key="at")
    assert (await rt.submit("coder", "x", at=when.astimezone(BERLIN), key="at")).id == first.id


@pytest.mark.rule("delay.same")
async def test_another_delay_is_another_request(rt: Runtime, clock: FakeClock):
    rt.add(Card("coder"), echo)
    when = aware(clock.now() + 60 * SECOND)
    await rt.submit("coder", "x", key="k", after=60)
    for how in ({}, {"after": 61}, {"at": when}):
        with pytest.raises(Conflict, match="was used for another request"):
            await rt.submit("coder", "x", key="k", **how)
    tasks = [await rt.submit("coder", "x", same_within=300, **how) for how in ({}, {"after": 60}, {"at": when})]
    assert len({task.id for task in tasks}) == 3


@pytest.mark.rule("delay.same")
async def test_an_agent_that_is_rerun_delays_a_task_once(rt: Runtime, clock: FakeClock):
    tries: list[str] = []

    @rt.agent(asks="*")
    async def lead(turn: Turn) -> str:
        at = aware(clock.now() + 600 * SECOND)  # another moment in every attempt
        tries.append((await turn.submit("coder", "x", at=at)).id)
        if len(tries) == 1:
            raise ConnectionError("once")
        return tries[-1]

    rt.add(Card("coder"), echo)
    assert (await ends(clock, await rt.submit("lead", "go"))).state == "completed"
    assert tries[0] == tries[1]
    assert len(await rt.workspace.tasks.list(agent="coder")) == 1


# -- bad input -----------------------------------------------------------------------------------------------


@pytest.mark.rule("delay.input")
@pytest.mark.parametrize(
    ("how", "sentence"),
    [
        ({"at": datetime(2026, 12, 1, 8)}, "at needs a time zone; pass"),  # noqa: DTZ001 - that is the mistake
        ({"at": 1_800_000_000}, "at is a datetime with a time zone, not 1800000000; pass after= for a number"),
        ({"at": "2026-12-01"}, "at is a datetime with a time zone, not '2026-12-01'"),
        ({"after": -1}, "after must be a positive number of seconds, got -1"),
        ({"after": "10m"}, "after is a number of seconds, not '10m'"),
        ({"after": True}, "after is a number of seconds, not True"),
        ({"after": 1, "at": datetime(2026, 12, 1, 8, tzinfo=UTC)}, "after= and at= both say when .* pass one"),
    ],
)
async def test_a_delay_that_cannot_be_used_is_an_error_that_says_why(rt: Runtime, how, sentence: str):
    rt.add(Card("coder"), echo)
    with pytest.raises(BadInput, match=sentence):
        await rt.submit("coder", "x", **how)

    @rt.agent(asks="*")
    async def lead(turn: Turn) -> None:
        for verb in (turn.submit, turn.spawn):
            with pytest.raises(BadInput, match=sentence):
                await verb("coder", "x", **how)

    await rt.run("lead", "go")


def test_a_moment_is_exact_to_the_microsecond():
    when = datetime(2026, 12, 1, 8, 0, 0, 123_456, tzinfo=BERLIN)
    assert aware(moment(when, "at")) == when
