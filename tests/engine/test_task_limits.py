"""Limits on how many tasks begin in an hour, a day, a week or a month."""

from pathlib import Path
from typing import Any

import anyio
import pytest

from bookkeeping import correct
from engine.helping import Shaky, ends
from remit import Card, Command, Refused, Runtime, Turn
from remit.core.limits import Limit, LimitUse
from remit.core.times import HOUR
from remit.settings import Policy, RetryPolicy, System
from remit.testing import FakeClock
from teams import echo

pytestmark = [pytest.mark.anyio, pytest.mark.rule("limits.tasks")]


def limited(clock: FakeClock, *limits: Limit, store: Any = ":memory:", **given: Any) -> Runtime:
    rt = Runtime(store, policy=Policy(limits=limits, **given), system=System(clock=clock))
    rt.add(Card("worker"), echo)
    rt.add(Card("other"), echo)
    return rt


async def used(rt: Runtime) -> list[int]:
    return [use.used for use in await rt.workspace.money.limits()]


async def test_no_more_tasks_begin_than_the_limit_says_and_the_refusal_says_when_there_is_room(clock: FakeClock):
    with limited(clock, Limit("day", tasks=2)) as rt:
        await rt.run("worker", "one")
        await (await rt.submit("other", "two")).wait()
        clock.jump(1_800)
        with pytest.raises(Refused) as no:
            await rt.run("worker", "three")
        assert no.value.rule == "limit"
        assert str(no.value) == (
            "'worker' was not asked: the workspace has begun 2 of 2 tasks a day, and there is room again "
            "in 1 d 30 min, at 2027-01-16T09:00Z; ask again then, or raise the limit"
        )
        clock.jump(24 * 3_600 + 1_800)
        assert await rt.run("worker", "four") == "four"
        await correct(rt)


async def test_what_agents_start_counts_however_they_start_it(clock: FakeClock):
    with limited(clock, Limit("hour", tasks=6)) as rt:

        @rt.agent(asks="*")
        async def lead(turn: Turn) -> str:
            await turn.delegate("worker", "delegated")
            await turn.submit("worker", "submitted")
            await turn.spawn("worker", "spawned")
            outcomes = await turn.delegate_all([("worker", f"part {number}") for number in range(4)])
            assert [one.ok for one in outcomes] == [True, True, False, False]
            with pytest.raises(Refused) as no:
                await turn.delegate("other", "one more")
            return str(no.value)

        assert await rt.run("lead", "x") == (
            "'other' was not asked: the workspace has begun 6 of 6 tasks an hour, and there is room again "
            "in 2 h, at 2027-01-15T10:00Z; finish with what you have"
        )
        assert await used(rt) == [6]
        await correct(rt)


async def test_a_limit_holds_for_an_agent_or_a_session_or_each_of_them(clock: FakeClock):
    limits = [
        Limit("day", tasks=1, agent="other"),
        Limit("week", tasks=3, agent="*"),
        Limit("month", tasks=2, session="*"),
    ]
    with limited(clock, *limits) as rt:
        for number in range(3):
            assert (await rt.outcome("worker", "x", session=f"s{number}")).ok
        assert (await rt.outcome("other", "x", session="s0")).ok
        agent = str((await rt.outcome("worker", "x", session="s3")).error)
        assert "agent 'worker' has been given 3 of 3 tasks a week" in agent
        both = str((await rt.outcome("other", "x", session="s0")).error)
        assert "agent 'other' has been given 1 of 1 task a day, and there is room again" in both
        assert "; session 's0' has begun 2 of 2 tasks a month, and there is room again" in both
        uses = await rt.workspace.money.limits()
        assert [(use.limit.per, str(use.metered), use.used, use.left) for use in uses] == [
            ("day", "agent 'other'", 1, 0),
            ("week", "agent 'other'", 1, 2),
            ("week", "agent 'worker'", 3, 0),
            ("month", "session 's0'", 2, 0),
            ("month", "session 's1'", 1, 1),
            ("month", "session 's2'", 1, 1),
        ]
        await correct(rt)


@pytest.mark.rule("limits.person")
async def test_the_tasks_of_a_persons_runs_count_for_the_person(clock: FakeClock):
    with limited(clock, Limit("day", tasks=2, by="*")) as rt:

        @rt.agent(asks="*")
        async def lead(turn: Turn) -> str:
            return await turn.delegate("worker", turn.task)

        assert await rt.run("lead", "x", by="ann") == "x"
        no = str((await rt.outcome("worker", "x", by="ann")).error)
        assert "'worker' was not asked: person 'ann' has begun 2 of 2 tasks a day, and there is room again" in no
        assert await (await rt.submit("worker", "x", by="bob")).result() == "x"
        assert await rt.run("lead", "x") == "x"
        uses = await rt.workspace.money.limits()
        assert [(str(use.metered), use.used, use.left) for use in uses] == [
            ("person 'ann'", 2, 0),
            ("person 'bob'", 1, 1),
        ]
        assert {one.by for one in await rt.workspace.tasks.list()} == {"", "ann", "bob"}
        clock.jump(3_600)
        await rt.workspace.prune(days=0.01)
        assert await used(rt) == [2, 1]  # pruned tasks still count
        assert not (await rt.workspace.check()).findings


async def test_a_limit_of_no_tasks_lets_none_begin(clock: FakeClock):
    with limited(clock, Limit("day", tasks=0, agent="worker")) as rt:
        no = await rt.outcome("worker", "x")
        assert "agent 'worker' has been given 0 of 0 tasks a day, so none may begin; ask again then" in str(no.error)
        assert (await rt.outcome("other", "x")).ok


async def test_what_is_refused_counts_nothing(clock: FakeClock):
    with limited(clock, Limit("day", tasks=2)) as rt:
        rt.add(Card("narrow", asks=["other"]), _asks_worker)
        assert (await rt.outcome("nobody", "x")).state == "refused"
        await rt.run("narrow", "x")
        assert await used(rt) == [1]
        assert await rt.run("worker", "the last") == "the last"
        for _ in range(3):
            assert (await rt.outcome("worker", "x")).state == "refused"
        assert await used(rt) == [2]


async def _asks_worker(turn: Turn) -> str:
    return (await turn.outcome("worker", "x")).state


async def test_what_is_tried_again_or_handed_over_is_no_new_task(clock: FakeClock):
    with limited(clock, Limit("day", tasks=3)) as rt:
        tries: list[int] = []

        @rt.agent(asks="*", retry=RetryPolicy(attempts=3))
        async def flaky(turn: Turn) -> str:
            tries.append(1)
            await turn.outcome("failing", "part")
            if len(tries) < 3:
                raise Shaky
            return "done"

        @rt.agent
        async def failing(turn: Turn) -> str:
            raise ValueError("never")

        @rt.agent(asks="*")
        async def hands(turn: Turn) -> Command:
            return Command("other", {"phase": "next"})

        assert (await ends(clock, await rt.submit("flaky", "x"))).ok
        assert len(tries) == 3
        assert await used(rt) == [2]
        await rt.run("hands", "x")
        assert await used(rt) == [3]
        failed = next(
            one for one in await rt.workspace.tasks.list() if one.agent == "failing" and one.state == "failed"
        )
        await rt.workspace.tasks.retry(failed.id)
        assert await used(rt) == [3]
        await correct(rt)


async def test_asking_again_under_the_same_key_gives_the_same_task_though_the_limit_is_used_up(clock: FakeClock):
    with limited(clock, Limit("day", tasks=1)) as rt:
        first = await rt.submit("worker", "x", key="order 1")
        again = await rt.submit("worker", "x", key="order 1")
        assert again.id == first.id
        with pytest.raises(Refused, match="1 of 1 task a day"):
            await rt.submit("worker", "x", key="order 2")


async def test_what_is_pruned_still_counts_until_its_time_has_passed(clock: FakeClock):
    with limited(clock, Limit("day", tasks=3)) as rt:

        @rt.agent(asks="*")
        async def lead(turn: Turn) -> str:
            return await turn.delegate("worker", "x")

        await rt.run("lead", "x")
        clock.jump(7_200)
        await rt.workspace.prune(days=1 / 24)
        assert not await rt.workspace.tasks.runs()
        assert await used(rt) == [2]
        await correct(rt)
        await rt.run("worker", "x")
        assert (await rt.outcome("worker", "x")).state == "refused"
        clock.jump(25 * 3_600)
        await rt.run("worker", "x")
        await correct(rt)


async def two_processes(clock: FakeClock, store: Any) -> None:
    """Two runtimes on one store begin as many as they can at once."""
    limit = Limit("day", tasks=5)
    with limited(clock, limit, store=store) as one, limited(clock, limit, store=store) as two:
        states: list[str] = []

        async def ask(rt: Runtime) -> None:
            states.append((await rt.outcome("worker", "x")).state)

        async with anyio.create_task_group() as group:
            for _ in range(6):
                group.start_soon(ask, one)
                group.start_soon(ask, two)
        assert (states.count("completed"), states.count("refused")) == (5, 7)
        assert await used(one) == await used(two) == [5]
        await correct(one)


async def test_two_processes_cannot_both_take_the_last_one(clock: FakeClock, tmp_path: Path):
    await two_processes(clock, tmp_path / "team.db")


async def test_two_processes_cannot_both_take_the_last_one_of_a_server(clock: FakeClock, address: str):
    await two_processes(clock, address)


async def test_a_limit_on_tasks_alone_prices_no_call_and_holds_no_money(clock: FakeClock):
    with limited(clock, Limit("day", tasks=5)) as rt:

        @rt.agent
        async def spends(turn: Turn) -> str:
            await turn.spend("$0.02", why="stamps")
            return "paid"

        assert await rt.run("spends", "x") == "paid"


async def test_the_use_of_every_limit_is_listed_with_what_is_held_and_when_there_is_room(clock: FakeClock):
    limits = [Limit("day", credits="$0.10", tasks=2), Limit("hour", tokens=500, agent="*")]
    with limited(clock, *limits) as rt:
        began = clock.now()
        assert [str(use.metered) for use in await rt.workspace.money.limits()] == ["the workspace"] * 2 + ["each agent"]
        seen: list[list[LimitUse]] = []

        @rt.agent
        async def buyer(turn: Turn) -> None:
            await turn.spend("$0.04", why="stamps")
            async with turn.paid_call("$0.05", why="photo") as call:
                seen.append(await rt.workspace.money.limits())
                call.cost("$0.06", tokens=500)

        await rt.run("buyer", "x")
        money, tasks, tokens = seen[0]
        assert (money.unit, money.used, money.held, money.left, money.room_at) == (
            "credits",
            40_000,
            50_000,
            10_000,
            None,
        )
        assert (tasks.unit, tasks.used, tasks.held, tasks.left) == ("tasks", 1, 0, 1)
        assert (tokens.unit, str(tokens.metered), tokens.used) == ("tokens", "each agent", 0)
        money, tasks, tokens = await rt.workspace.money.limits()
        assert (money.left, money.room_at, tokens.left) == (0, began + 25 * HOUR, 0)
        assert (str(tokens.metered), tokens.room_at) == ("agent 'buyer'", began + 2 * HOUR)
