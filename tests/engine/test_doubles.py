"""The doubles that remit ships: a clock that wakes, ids that count, agents that follow a script."""

import asyncio

import pytest

from remit import Card, Failed, Runtime, Turn
from remit.testing import CountedIds, FakeClock, Scripted, pass_time

pytestmark = pytest.mark.anyio

SECOND = 1_000_000


async def test_timers_fire_in_order_each_at_its_time():
    clock = FakeClock()
    began, fired = clock.now(), []
    for seconds in (3, 1, 2, 5):
        clock.call_later(seconds, lambda seconds=seconds: fired.append((seconds, (clock.now() - began) / SECOND)))
    cancelled = clock.call_later(2, lambda: fired.append("never"))
    cancelled.cancel()
    clock.advance(0.999)
    assert fired == []
    clock.advance(3)
    assert fired == [(1, 1.0), (2, 2.0), (3, 3.0)]
    assert clock.now() - began == clock.ticks() == 3.999 * SECOND


async def test_a_timer_without_time_fires_on_its_own():
    clock, fired = FakeClock(), asyncio.Event()
    clock.call_later(0, fired.set)
    assert not fired.is_set()
    await asyncio.sleep(0)
    assert fired.is_set()


async def test_a_timer_that_sets_itself_again_fires_once_more_however_much_time_passes():
    clock = FakeClock()
    beats: list[int] = []

    def beat() -> None:
        beats.append(clock.ticks() // SECOND)
        clock.call_later(5, beat)

    clock.call_later(5, beat)
    clock.advance(1_000_000)
    assert beats == [5, 1_000_000]
    clock.advance(4)
    assert len(beats) == 2
    clock.advance(1)
    assert len(beats) == 3


async def test_setting_the_wall_clock_lets_no_time_pass():
    clock, fired = FakeClock(), []
    began = clock.now()
    clock.call_later(1, lambda: fired.append(1))
    clock.jump(3_600)
    assert (clock.now() - began, clock.ticks(), fired) == (3_600 * SECOND, 0, [])
    clock.jump(-7_200)
    clock.advance(1)
    assert fired == [1]
    with pytest.raises(ValueError, match="time does not go back"):
        clock.advance(-1)


async def test_time_passes_until_something_is_so():
    clock = FakeClock()
    done = asyncio.Event()
    clock.call_later(3, done.set)

    async def is_done() -> bool:
        return done.is_set()

    await pass_time(clock, is_done)
    assert clock.ticks() == 3 * SECOND
    await pass_time(clock, is_done)
    assert clock.ticks() == 3 * SECOND


async def test_ids_are_the_same_every_time_and_sort_as_they_were_made():
    first, second = CountedIds(), CountedIds()
    made = [first.new() for _ in range(100)]
    assert made == [second.new() for _ in range(100)] == sorted(set(made))
    assert {len(one) for one in made} == {16}


async def test_a_scripted_agent_answers_in_order_and_the_last_one_again():
    async def ask(turn: Turn) -> str:
        return f"asked by {turn.asker or 'a person'}"

    double = Scripted("one", ValueError("no"), lambda turn: turn.task.upper(), ask)
    with Runtime() as rt:
        rt.add(Card("double"), double)
        assert await rt.run("double", "a") == "one"
        with pytest.raises(Failed, match="ValueError: no"):
            await rt.run("double", "b")
        assert [await rt.run("double", task) for task in ("c", "d", "e")] == ["C", *["asked by a person"] * 2]
    assert double.tasks == ["a", "b", "c", "d", "e"]
