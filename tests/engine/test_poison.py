"""Processes that die again and again: only the task that they die of pays for it, and what stands beside it goes on."""

from pathlib import Path
from typing import Any

import anyio
import pytest

from engine.helping import doomed, ends, life, sound, take_over, until
from remit import Card, Runtime, Task, Turn
from remit.testing import FakeClock
from teams import echo, team

pytestmark = pytest.mark.anyio


class Stuck:
    """An agent that notes who came in, and stays until its process dies."""

    def __init__(self) -> None:
        self.inside: list[str] = []

    async def __call__(self, turn: Turn) -> None:
        self.inside.append(turn.task)
        await anyio.sleep_forever()


class Lives:
    """One process after the other on the same file, each killed with all that it had in its hands."""

    def __init__(self, path: Path, clock: FakeClock, asking: Runtime, heir: Runtime) -> None:
        self.path, self.clock, self.asking, self.heir = path, clock, asking, heir

    async def die(self, *held: str, hands: int = 16) -> None:
        """Let a process begin exactly these and die of one of them."""
        dead, stuck = doomed(self.path, self.clock, hands=hands), Stuck()
        dead.add(Card("coder"), stuck)
        dead.lend()
        await until(lambda: len(stuck.inside) >= len(held))
        await anyio.wait_all_tasks_blocked()
        assert sorted(stuck.inside) == sorted(held)
        await take_over(self.heir, self.clock, dead)

    async def submit(self, text: str, **how: Any) -> Task:
        return await self.asking.submit("coder", text, **how)

    async def losses(self, task: Task) -> int:
        record = await self.heir.workspace.journal.read(lambda view: view.record(task.id))
        assert record is not None
        return record.losses


@pytest.fixture
def lives(tmp_path: Path, clock: FakeClock):
    path = tmp_path / "team.db"
    with team(path, clock=clock, hands=0) as asking, team(path, clock=clock) as heir:
        asking.add(Card("coder"), echo)
        yield Lives(path, clock, asking, heir)


@pytest.mark.rule("crash.neighbours")
async def test_a_loss_costs_nobody_an_attempt_while_it_is_not_known_whose_it_was(lives: Lives):
    tasks = [await lives.submit(text) for text in "abc"]
    await lives.die("a", "b", "c")
    assert [(await task.status()).attempt for task in tasks] == [0, 0, 0]
    assert [await lives.losses(task) for task in tasks] == [1, 1, 1]
    await lives.die("a", "b", "c")  # lost once they are claimed together as before
    assert [(await task.status()).attempt for task in tasks] == [0, 0, 0]
    await sound(lives.heir)


@pytest.mark.rule("crash.neighbours")
async def test_what_was_lost_twice_is_begun_one_at_a_time_and_what_is_fresh_goes_on_beside_it(lives: Lives):
    first, second = await lives.submit("a"), await lives.submit("b")
    await lives.die("a", "b")
    await lives.die("a", "b")
    fresh = await lives.submit("c")
    await lives.die("a", "c")
    assert [(await task.status()).attempt for task in (first, second, fresh)] == [1, 0, 0]
    assert [await lives.losses(task) for task in (first, second, fresh)] == [3, 2, 1]
    await sound(lives.heir)


@pytest.mark.rule("crash.neighbours")
async def test_suspects_do_not_hold_up_what_stands_behind_them(lives: Lives):
    """Also if there are more of them than hands."""
    for text in "abcd":
        await lives.submit(text)
    await lives.die("a", "b", "c", "d", hands=4)
    await lives.die("a", "b", "c", "d", hands=4)
    for text in "efgh":
        await lives.submit(text)
    await lives.die("a", "e", "f", "g", hands=4)


@pytest.mark.rule("crash.neighbours")
async def test_a_worker_with_many_hands_takes_a_few_suspects_together_before_each_is_alone(lives: Lives):
    tasks = [await lives.submit(text) for text in "abcd"]
    for _ in range(2):
        await lives.die("a", "b", "c", "d", hands=32)
    await lives.die("a", "b", hands=32)
    assert [(await task.status()).attempt for task in tasks] == [0, 0, 0, 0], "one of the two, but which?"
    await lives.die("a", hands=32)
    assert [(await task.status()).attempt for task in tasks] == [1, 0, 0, 0]
    await sound(lives.heir)


@pytest.mark.rule("crash.poison", "crash.neighbours")
@pytest.mark.parametrize("attempts", [2, 4])
async def test_a_poison_is_dead_after_its_attempts_and_its_neighbours_are_finished(
    lives: Lives, clock: FakeClock, attempts: int
):
    poison = await lives.submit("poison", attempts=attempts)
    others = [await lives.submit(text, attempts=attempts) for text in "ab"]
    for _ in range(2):
        await lives.die("poison", "a", "b")
    for _ in range(attempts):
        await lives.die("poison")
    lives.heir.add(Card("coder"), echo)
    outcome = await ends(clock, poison)
    assert outcome.state == "dead"
    assert f"the process that carried it out died {attempts + 2} times" in str(outcome.error)
    assert [(await ends(clock, task)).unwrap() for task in others] == ["a", "b"]
    assert {(await task.status()).attempt for task in others} == {1}
    await sound(lives.heir)


@pytest.mark.rule("crash.once")
async def test_what_may_be_begun_once_is_not_begun_again_after_a_loss(lives: Lives, clock: FakeClock):
    once, other = await lives.submit("once", attempts=1), await lives.submit("other")
    await lives.die("once", "other")
    lives.heir.add(Card("coder"), echo)
    outcome = await ends(clock, once)
    assert outcome.state == "dead"
    assert "died, and it may be begun only once (attempts=1)" in str(outcome.error)
    assert await life(lives.heir, once.id) == ["submitted", "claimed", "lost", "died"]
    assert (await ends(clock, other)).unwrap() == "other"


@pytest.mark.rule("crash.neighbours")
async def test_what_is_delegated_is_a_part_of_what_its_asker_does(lives: Lives, clock: FakeClock):
    """So a task that is alone in its process with all that it has delegated is the one to blame, from the second time
    on: the first time it may have been the machine."""
    lives.asking.add(Card("lead", asks="*"), echo)
    task = await lives.asking.submit("lead", "x")
    for attempt, losses in ((0, 1), (1, 2)):
        dead, stuck = doomed(lives.path, clock), Stuck()
        dead.add(Card("coder"), stuck)

        @dead.agent(asks="*")
        async def lead(turn: Turn) -> None:
            await turn.delegate_all([("coder", "a"), ("coder", "b")])

        dead.lend()
        await until(lambda stuck=stuck: len(stuck.inside) == 2)
        await take_over(lives.heir, clock, dead)
        assert ((await task.status()).attempt, await lives.losses(task)) == (attempt, losses)


@pytest.mark.rule("crash.neighbours")
async def test_a_suspect_that_waits_for_another_suspect_does_not_keep_it_from_being_begun(
    lives: Lives, clock: FakeClock
):
    lives.asking.add(Card("host", asks="*"), echo)
    host = await lives.asking.submit("host", "x")

    async def waits(turn: Turn) -> str:
        return await (await turn.submit("coder", "part")).result()

    for _ in range(2):
        dead, stuck = doomed(lives.path, clock, hands=16), Stuck()
        dead.add(Card("coder"), stuck)
        dead.add(Card("host", asks="*"), waits)
        dead.lend()
        await until(lambda stuck=stuck: stuck.inside == ["part"])
        await take_over(lives.heir, clock, dead)
    assert await lives.losses(host) == 2
    lives.heir.add(Card("coder"), echo)
    lives.heir.add(Card("host", asks="*"), waits)
    assert (await ends(clock, host)).unwrap() == "part"
    await sound(lives.heir)
