"""Trying again: only what may go better, not too soon, not for ever, and never past the deadline."""

import anyio
import pytest

from engine.helping import PATIENCE, Shaky, ends, found, happened, life, reached, sound
from remit import Bounds, Refused, Runtime, Turn
from remit.core.breaker import BreakerPolicy
from remit.core.lifecycle import Record
from remit.core.times import SECOND
from remit.errors import BadInput, Conflict, TimedOut
from remit.ports import View
from remit.settings import RetryPolicy
from remit.testing import CountedIds, FakeClock
from teams import echo, team

pytestmark = pytest.mark.anyio

PATIENT = BreakerPolicy(failures=1_000)  # a breaker that stays out of it


class Gone(Exception):
    """What a client raises for a page that is not there."""

    status_code = 404


class Chancy(CountedIds):
    """Ids with dice that always show the same."""

    def __init__(self, chance: float) -> None:
        super().__init__()
        self._chance = chance

    def chance(self) -> float:
        return self._chance


@pytest.fixture(params=["memory", "file"])
def rt(request, tmp_path, clock: FakeClock):
    where = ":memory:" if request.param == "memory" else tmp_path / "team.db"
    with team(where, clock=clock, breaker=PATIENT, ids=CountedIds()) as runtime:
        yield runtime


async def next_try(rt: Runtime, clock: FakeClock, task: str, tries: int = 1) -> float:
    """Waits until the task has failed so often, lets the time pass until it is due, and says how long that was."""

    def look(view: View) -> Record | None:
        record = view.record(task)
        return record if record is not None and (record.state, record.failures) == ("pending", tries) else None

    wait = (await found(rt, look)).ready_at - clock.now()
    clock.advance(wait / SECOND)
    return wait / SECOND


@pytest.mark.rule("retry.only-retryable")
@pytest.mark.parametrize(
    "error",
    [ValueError("no"), Gone("404: no order 5003, 500 looked like it"), Refused("no", rule="x"), KeyError("timeout")],
)
async def test_what_cannot_go_better_fails_at_once(rt: Runtime, error: Exception):
    tries: list[int] = []

    @rt.agent
    async def coder(turn: Turn) -> None:
        tries.append(1)
        raise error

    outcome = await (await rt.submit("coder", "x")).wait(PATIENCE)
    assert (outcome.state, len(tries)) == ("failed", 1)
    assert outcome.error is not None
    assert not outcome.error.retryable
    await sound(rt)


@pytest.mark.rule("retry.only-retryable")
@pytest.mark.parametrize("error", [Shaky("busy"), ConnectionError("gone"), TimeoutError("slow"), Conflict("moved")])
async def test_what_may_go_better_is_tried_again(rt: Runtime, clock, error: Exception):
    tries: list[int] = []

    @rt.agent
    async def coder(turn: Turn) -> str:
        tries.append(1)
        if len(tries) == 1:
            raise error
        return "second time"

    task = await rt.submit("coder", "x")
    await next_try(rt, clock, task.id)
    assert await task.result(PATIENCE) == "second time"
    assert (await task.status()).attempt == 2
    assert (await life(rt, task.id))[-3:] == ["retrying", "claimed", "completed"]
    await sound(rt)


@pytest.mark.rule("retry.delays")
@pytest.mark.parametrize(("chance", "waits"), [(0.0, [1, 2, 4, 8, 10, 10]), (0.5, [1.1, 2.2, 4.4, 8.8, 11, 11])])
async def test_each_wait_is_longer_than_the_last_up_to_ten_seconds(clock, chance: float, waits: list[float]):
    with team(clock=clock, breaker=PATIENT, ids=Chancy(chance)) as rt:

        @rt.agent
        async def coder(turn: Turn) -> None:
            raise Shaky

        task = await rt.submit("coder", "x", attempts=7)
        assert [await next_try(rt, clock, task.id, tries + 1) for tries in range(6)] == waits
        assert (await task.wait(PATIENCE)).state == "dead"
        await sound(rt)


@pytest.mark.rule("retry.delays")
async def test_it_is_not_tried_before_its_time(rt: Runtime, clock):
    tries: list[int] = []

    @rt.agent
    async def coder(turn: Turn) -> None:
        tries.append(1)
        raise Shaky

    @rt.agent
    async def other(turn: Turn) -> str:
        return "ok"

    task = await rt.submit("coder", "x")
    await reached(rt, task.id, "pending")
    clock.advance(0.999)
    assert await (await rt.submit("other", "x")).result(PATIENCE) == "ok"  # someone was there to try it
    assert (len(tries), (await task.status()).state) == (1, "pending")
    await sound(rt)


@pytest.mark.rule("retry.dead")
@pytest.mark.parametrize("attempts", [None, 1, 2])
async def test_after_so_many_attempts_it_is_dead_and_seen_to_be(rt: Runtime, clock, attempts: int | None):
    tries: list[int] = []

    @rt.agent
    async def coder(turn: Turn) -> None:
        tries.append(1)
        raise Shaky("still busy")

    how = {} if attempts is None else {"attempts": attempts}
    task = await rt.submit("coder", "x", **how)
    most = attempts or 4
    for tries_before in range(1, most):
        await next_try(rt, clock, task.id, tries_before)
    outcome = await task.wait(PATIENCE)
    assert (outcome.state, len(tries)) == ("dead", most)
    assert str(outcome.error).startswith("'coder' failed: Shaky: still busy (test_retry.py:")
    assert str(outcome.error).endswith(f" in coder); that was attempt {most} of {most}")
    assert [one.id for one in await rt.workspace.tasks.list(state="dead")] == [task.id]
    assert (await life(rt, task.id)).count("died") == 1
    clock.advance(3_600)
    assert (await task.status()).state == "dead"
    await sound(rt)


@pytest.mark.rule("retry.dead")
async def test_an_agent_waiting_for_it_learns_that_it_died(rt: Runtime):
    @rt.agent(asks="*")
    async def lead(turn: Turn) -> str:
        return (await (await turn.submit("coder", "x", attempts=1)).wait(PATIENCE)).state

    @rt.agent
    async def coder(turn: Turn) -> None:
        raise Shaky

    assert await rt.run("lead", "go") == "dead"
    await sound(rt)


@pytest.mark.rule("retry.dead", "breaker.once")
async def test_the_attempts_of_one_task_never_open_its_agents_breaker(clock):
    with team(clock=clock, ids=CountedIds()) as rt:
        tries: list[int] = []

        @rt.agent
        async def coder(turn: Turn) -> str:
            tries.append(1)
            if len(tries) < 4:
                raise Shaky
            return "fourth time"

        task = await rt.submit("coder", "x")
        for failures in (1, 2, 3):
            await next_try(rt, clock, task.id, failures)
            assert await rt.workspace.agents.breakers() == {}
        clock.advance(10)
        assert await task.result(PATIENCE) == "fourth time"
        await sound(rt)


@pytest.mark.rule("retry.timeout")
async def test_the_time_of_an_attempt_ends_the_code_and_the_next_attempt_has_its_own_time(rt: Runtime, clock):
    stopped: list[str] = []
    tries: list[int] = []

    @rt.agent(asks="*")
    async def coder(turn: Turn) -> str:
        tries.append(1)
        if len(tries) > 1:
            return "in time"
        try:
            return await turn.delegate("below", "x")
        finally:
            stopped.append("coder")

    inside = anyio.Event()

    @rt.agent
    async def below(turn: Turn) -> None:
        try:
            inside.set()
            await anyio.sleep_forever()
        finally:
            stopped.append("below")

    task = await rt.submit("coder", "x", timeout=5)
    await happened(inside)
    clock.advance(5)
    await next_try(rt, clock, task.id)
    assert await task.result(PATIENCE) == "in time"
    assert stopped == ["below", "coder"]
    await sound(rt)


@pytest.mark.rule("retry.timeout")
async def test_attempts_that_all_take_too_long_end_in_death(rt: Runtime, clock):
    inside = [anyio.Event(), anyio.Event()]
    tries: list[int] = []

    @rt.agent
    async def slow(turn: Turn) -> None:
        tries.append(1)
        inside[len(tries) - 1].set()
        await anyio.sleep_forever()

    task = await rt.submit("slow", "x", timeout=5, attempts=2)
    await happened(inside[0])
    clock.advance(5)
    await next_try(rt, clock, task.id)
    await happened(inside[1])
    clock.advance(5)
    outcome = await task.wait(PATIENCE)
    assert outcome.state == "dead"
    assert "ran out of time" in str(outcome.error)
    await sound(rt)


@pytest.mark.rule("retry.timeout")
async def test_the_deadline_is_final_even_if_the_clock_was_set_back(rt: Runtime, clock):
    """Its own time is up, not only that of one attempt: trying again would be too late by any clock."""
    tries: list[int] = []
    inside = anyio.Event()

    @rt.agent
    async def slow(turn: Turn) -> None:
        tries.append(1)
        clock.jump(-3_600)
        inside.set()
        await anyio.sleep_forever()

    task = await rt.submit("slow", "x", timeout=10, within=Bounds(deadline=clock.now() + 5 * SECOND))
    await happened(inside)
    clock.advance(5)
    outcome = await task.wait(PATIENCE)
    assert (outcome.state, len(tries)) == ("timed-out", 1)
    assert isinstance(outcome.error, TimedOut)
    assert not outcome.error.retryable
    await sound(rt)


@pytest.mark.rule("retry.timeout")
async def test_what_would_be_tried_after_the_deadline_fails_now(rt: Runtime, clock):
    @rt.agent
    async def coder(turn: Turn) -> None:
        raise Shaky

    task = await rt.submit("coder", "x", within=Bounds(deadline=clock.now() + 2 * SECOND))
    until = (await task.status()).until
    assert await next_try(rt, clock, task.id) == 1
    outcome = await task.wait(PATIENCE)  # the second wait would be two seconds
    assert (outcome.state, clock.now() < until) == ("failed", True)
    assert (await task.status()).until == until
    await sound(rt)


@pytest.mark.rule("crash.replay")
async def test_a_message_is_sent_once_however_often_its_sender_is_tried(rt: Runtime, clock):
    tries: list[int] = []

    @rt.agent(asks="*")
    async def lead(turn: Turn) -> object:
        await turn.send("coder", "hello")
        tries.append(1)
        if len(tries) == 1:
            raise Shaky
        return await turn.delegate("coder", "read")

    @rt.agent
    async def coder(turn: Turn) -> list[str]:
        return [one.text for one in await turn.inbox()]

    task = await rt.submit("lead", "go", session="s")
    await next_try(rt, clock, task.id)
    assert (await task.wait(PATIENCE)).value == ["hello"]
    await sound(rt)


async def test_a_write_that_expects_nothing_there_does_not_conflict_with_its_own_earlier_try(clock):
    with team(clock=clock, breaker=PATIENT, ids=CountedIds()) as rt:
        tries: list[int] = []

        @rt.agent
        async def coder(turn: Turn) -> int:
            version = await turn.context.set("notes", "k", "v", expect=0)
            tries.append(1)
            if len(tries) == 1:
                raise Shaky
            return version

        task = await rt.submit("coder", "x", attempts=2)
        await next_try(rt, clock, task.id)
        assert await task.result(PATIENCE) == 1


@pytest.mark.rule("retry.policy")
async def test_an_agents_policy_says_how_often_and_how_soon_and_the_submission_goes_before(rt: Runtime, clock):
    tries: list[int] = []

    @rt.agent(retry=RetryPolicy(attempts=6, first=0.5, cap=0.5))
    async def keen(turn: Turn) -> None:
        tries.append(clock.now())
        raise Shaky

    assert (await ends(clock, await rt.submit("keen", "x"))).state == "dead"
    assert len(tries) == 6
    await rt.workspace.agents.reset("keen")
    tries.clear()
    assert (await ends(clock, await rt.submit("keen", "y", attempts=2))).state == "dead"
    assert len(tries) == 2
    await sound(rt)


@pytest.mark.rule("retry.policy")
def test_a_policy_is_a_value_of_the_settings():
    with pytest.raises(BadInput, match=r"retry takes RetryPolicy\(...\)"):
        team().agent("x", retry=3)(echo)  # pyright: ignore[reportArgumentType]


@pytest.mark.rule("retry.after")
async def test_a_server_that_wants_to_be_left_alone_is_left_alone(rt: Runtime, clock):
    tries: list[int] = []

    class Busy(Exception):
        status = 429
        retry_after = 42

    @rt.agent
    async def client(turn: Turn) -> str:
        tries.append(clock.now())
        if len(tries) == 1:
            raise Busy
        return "ok"

    task = await rt.submit("client", "x")
    assert await next_try(rt, clock, task.id) == 42
    assert (await ends(clock, task)).value == "ok"


@pytest.mark.rule("retry.after")
async def test_what_could_only_be_tried_after_its_deadline_has_failed(rt: Runtime, clock):
    class Busy(Exception):
        status = 429
        retry_after = 42

    @rt.agent
    async def client(turn: Turn) -> None:
        raise Busy

    task = await rt.submit("client", "x", within=Bounds(deadline=clock.now() + 30 * 1_000_000))
    assert (await task.wait(PATIENCE)).state == "failed"
