"""Spawning: a few beside oneself, each announced once, to whoever spawned it and nobody else."""

import anyio
import pytest

from engine.helping import PATIENCE, Shaky, happened, named, quiet, reached, serving, sound, until
from remit import Bounds, Card, Command, Refused, Runtime, Turn
from remit.core.breaker import BreakerPolicy
from remit.settings import Pace, Policy, Serving
from teams import echo, team

pytestmark = pytest.mark.anyio


async def announced(rt: Runtime, turn: Turn, count: int) -> list[str]:
    """The texts of so many announcements, as they come."""
    texts: list[str] = []
    with anyio.fail_after(PATIENCE):
        async with rt.workspace.journal.follow() as follow:
            while True:
                texts += [one.text for one in await turn.inbox()]
                if len(texts) >= count:
                    return texts
                await follow.next()


@pytest.mark.rule("spawn.limit")
async def test_the_sixth_waits_until_one_of_five_has_ended(rt: Runtime):
    go = [anyio.Event() for _ in range(6)]
    inside: list[int] = []
    full, sixth = anyio.Event(), anyio.Event()

    @rt.agent(asks="*")
    async def lead(turn: Turn) -> list[str]:
        five = [await turn.spawn("coder", str(n)) for n in range(5)]
        full.set()
        last = await turn.spawn("coder", "5")
        sixth.set()
        return [str(await one.result(PATIENCE)) for one in (*five, last)]

    @rt.agent
    async def coder(turn: Turn) -> str:
        inside.append(int(turn.task))
        await go[int(turn.task)].wait()
        return turn.task

    async with anyio.create_task_group() as group:
        group.start_soon(rt.run, "lead", "go")
        await happened(full)
        await quiet()
        assert not sixth.is_set()
        assert len(await rt.workspace.tasks.list(agent="coder", state="open")) == 5
        go[3].set()
        await happened(sixth)
        for one in go:
            one.set()
    assert sorted(inside) == [0, 1, 2, 3, 4, 5]
    await sound(rt)


@pytest.mark.rule("spawn.limit")
@pytest.mark.parametrize("spawns", [1, 8])
async def test_how_many_there_are_at_a_time_is_a_setting(spawns: int):
    go = anyio.Event()
    policy, serving = Policy(spawns=spawns), Serving(pace=Pace(spawn_timeout=0.001))
    async with Runtime(policy=policy, serving=serving) as rt:

        @rt.agent(asks="*")
        async def lead(turn: Turn) -> str:
            for n in range(spawns):
                await turn.spawn("coder", str(n))
            with pytest.raises(Refused, match=f"has {spawns} tasks running beside it already") as no:
                await turn.spawn("coder", "one too many")
            go.set()
            return no.value.rule

        @rt.agent
        async def coder(turn: Turn) -> None:
            await go.wait()

        assert await rt.run("lead", "go") == "spawn"


@pytest.mark.rule("spawn.limit")
async def test_who_waits_too_long_for_a_slot_is_refused_and_can_go_on(rt: Runtime, clock):
    go = anyio.Event()
    said: list[str] = []

    @rt.agent(asks="*")
    async def lead(turn: Turn) -> str:
        for n in range(5):
            await turn.spawn("coder", str(n))
        with pytest.raises(Refused, match="has 5 tasks running beside it already") as no:
            await turn.spawn("coder", "5")
        go.set()
        await announced(rt, turn, 5)
        await turn.spawn("coder", "6")
        return no.value.rule

    @rt.agent
    async def coder(turn: Turn) -> None:
        await go.wait()

    async def run() -> None:
        said.append(await rt.run("lead", "go"))

    async with anyio.create_task_group() as group:
        group.start_soon(run)
        await reached(rt, await named(rt, "lead"), "waiting")
        await quiet()
        clock.advance(29.9)
        await quiet()
        assert (await rt.workspace.tasks.list(agent="lead"))[0].state == "waiting"
        clock.advance(0.1)
    assert said == ["spawn"]
    await sound(rt)


@pytest.mark.rule("spawn.limit", "concurrency.queue")
async def test_a_task_that_waits_for_a_slot_to_spawn_holds_none_itself(clock):
    """The only slot of the workspace: were the asker to keep it while it waits, nothing could ever end."""
    with team(clock=clock, concurrency=1) as rt:
        rt.add(Card("coder"), echo)

        @rt.agent(asks="*")
        async def lead(turn: Turn) -> int:
            for n in range(8):
                await turn.spawn("coder", str(n))
            return 8

        assert await (await rt.submit("lead", "go")).result(PATIENCE) == 8
        await sound(rt)


@pytest.mark.rule("spawn.limit")
async def test_each_asker_has_five_of_its_own(rt: Runtime):
    go, all_in = anyio.Event(), anyio.Event()
    inside: list[str] = []

    @rt.agent(asks="*")
    async def lead(turn: Turn) -> list[str]:
        return [str(one.value) for one in await turn.delegate_all([("left", "x"), ("right", "x")])]

    async def five(turn: Turn) -> str:
        for n in range(5):
            await turn.spawn("coder", f"{turn.agent} {n}")
        return "ok"

    @rt.agent
    async def coder(turn: Turn) -> None:
        inside.append(turn.task)
        if len(inside) == 10:
            all_in.set()
        await go.wait()

    rt.add(Card("left", asks="*"), five)
    rt.add(Card("right", asks="*"), five)
    assert await rt.run("lead", "go") == ["ok", "ok"]
    await happened(all_in)
    go.set()


@pytest.mark.rule("spawn.announce")
async def test_what_comes_of_it_is_announced_once_to_its_asker(rt: Runtime):
    @rt.agent(asks="*")
    async def lead(turn: Turn) -> list:
        task = await turn.spawn("coder", "write it")
        await task.result(PATIENCE)
        [message] = await turn.inbox()
        assert await turn.inbox() == []
        assert (message.sender, message.to, message.about) == ("coder", "lead", task.id)
        assert message.text == f"task {task.id} by 'coder' completed: write it"
        return await turn.inbox()

    rt.add(Card("coder", asks="*"), echo)
    assert await rt.run("lead", "go", session="s") == []
    assert await rt.run("lead", "go", session="s") == []
    assert await rt.workspace.tasks.orphans() == []
    await sound(rt)


@pytest.mark.rule("spawn.announce")
async def test_failed_dead_and_cancelled_ones_are_announced_too(rt: Runtime, clock):
    asked = anyio.Event()

    @rt.agent(asks="*")
    async def lead(turn: Turn) -> list[str]:
        await turn.spawn("bad", "x")
        await turn.spawn("shaky", "x", attempts=1)
        await turn.spawn("stuck", "x")
        asked.set()
        return sorted(text.split(" ", 2)[2].partition(":")[0] for text in await announced(rt, turn, 3))

    @rt.agent
    async def bad(turn: Turn) -> None:
        raise ValueError("no")

    @rt.agent
    async def shaky(turn: Turn) -> None:
        raise Shaky

    @rt.agent
    async def stuck(turn: Turn) -> None:
        await anyio.sleep_forever()

    async def cancel() -> None:
        await happened(asked)
        await rt.workspace.tasks.cancel(await named(rt, "stuck"))

    async with anyio.create_task_group() as group:
        group.start_soon(cancel)
        said = await rt.run("lead", "go")
    assert said == ["by 'bad' failed", "by 'shaky' dead", "by 'stuck' cancelled"]  # pyright: ignore[reportPossiblyUnboundVariable]
    await sound(rt)


@pytest.mark.rule("spawn.announce")
async def test_one_that_never_began_is_announced_when_it_is_cancelled_or_late(clock):
    with team(clock=clock, hands=0) as rt:
        asked = anyio.Event()

        @rt.agent(asks="*")
        async def lead(turn: Turn) -> list[str]:
            await turn.spawn("coder", "cancelled")
            await turn.spawn("coder", "late", within=Bounds(deadline=clock.now() + 10_000_000))
            asked.set()
            return await announced(rt, turn, 2)

        rt.add(Card("coder"), echo)
        texts: list[str] = []

        async def run() -> None:
            texts.extend(await rt.run("lead", "go"))

        async with anyio.create_task_group() as group:
            group.start_soon(run)
            await happened(asked)
            await rt.workspace.tasks.cancel(
                next(one.id for one in await rt.workspace.tasks.list() if one.task == "cancelled")
            )
            clock.advance(20)
            async with serving(rt):
                await until(lambda: texts)
        assert "cancelled: 'coder' was cancelled" in texts[0]
        assert "its time was up" in texts[1]
        await sound(rt)


@pytest.mark.rule("spawn.announce")
async def test_the_announcement_comes_with_the_last_attempt_only(rt: Runtime, clock):
    tries: list[int] = []

    @rt.agent(asks="*")
    async def lead(turn: Turn) -> list[str]:
        task = await turn.spawn("shaky", "x")
        await reached(rt, task.id, "pending")
        assert await turn.inbox() == []
        clock.advance(2)
        return await announced(rt, turn, 1)

    @rt.agent
    async def shaky(turn: Turn) -> str:
        tries.append(1)
        if len(tries) == 1:
            raise Shaky
        return "second"

    [text] = await rt.run("lead", "go")
    assert text.endswith("completed: second")
    await sound(rt)


@pytest.mark.rule("spawn.announce")
async def test_two_runs_of_one_agent_in_one_session_never_get_each_others(rt: Runtime):
    both = anyio.Event()
    inside: list[str] = []

    @rt.agent(asks="*")
    async def lead(turn: Turn) -> list[str]:
        inside.append(turn.task)
        if len(inside) == 2:
            both.set()
        await happened(both)
        for n in range(3):
            await turn.spawn("coder", f"{turn.task}{n}")
        return sorted(text.rpartition(" ")[2] for text in await announced(rt, turn, 3))

    rt.add(Card("coder"), echo)
    got: dict[str, list[str]] = {}

    async def run(name: str) -> None:
        got[name] = await rt.run("lead", name, session="same")

    async with anyio.create_task_group() as group:
        group.start_soon(run, "a")
        group.start_soon(run, "b")
    assert got == {"a": ["a0", "a1", "a2"], "b": ["b0", "b1", "b2"]}
    await sound(rt)


@pytest.mark.rule("spawn.announce")
async def test_the_agent_that_the_task_was_handed_to_gets_the_announcement(rt: Runtime):
    go = anyio.Event()

    @rt.agent(asks="*")
    async def first(turn: Turn) -> Command:
        await turn.spawn("coder", "x")
        return Command("second")

    @rt.agent(asks="*")
    async def second(turn: Turn) -> list[str]:
        go.set()
        return await announced(rt, turn, 1)

    @rt.agent
    async def coder(turn: Turn) -> str:
        await happened(go)
        return "for the heir"

    [text] = await rt.run("first", "go")
    assert text.endswith("for the heir")
    await sound(rt)


@pytest.mark.rule("spawn.orphan")
async def test_an_announcement_nobody_is_left_to_read_is_kept_and_shown(rt: Runtime):
    go = anyio.Event()

    @rt.agent(asks="*")
    async def lead(turn: Turn) -> str:
        return (await turn.spawn("coder", "x")).id

    @rt.agent
    async def coder(turn: Turn) -> str:
        await go.wait()
        return "too late"

    task = await rt.run("lead", "go", session="s")
    assert await rt.workspace.tasks.orphans() == []
    go.set()
    assert await rt.workspace.tasks.get(task).result(PATIENCE) == "too late"
    [orphan] = await rt.workspace.tasks.orphans()
    assert (orphan.to, orphan.about, orphan.session) == ("lead", task, "s")
    assert await rt.run("lead", "again", session="s")  # the next run of the same agent does not read it
    assert orphan in await rt.workspace.tasks.orphans()
    await sound(rt)


@pytest.mark.rule("spawn.orphan")
async def test_more_than_an_inbox_holds_wait_in_the_store_and_nobody_waits_for_them(clock):
    """Forty results for one who does not read, with a single slot: they are delivered all the same."""
    with team(clock=clock, concurrency=1, breaker=BreakerPolicy(failures=1_000)) as rt:
        rt.add(Card("coder"), echo)

        @rt.agent(asks="*")
        async def lead(turn: Turn) -> list[int]:
            tasks = [await turn.spawn("coder", str(n)) for n in range(40)]
            for task in tasks:
                await task.wait(PATIENCE)
            looks = []
            while found := await turn.inbox():
                looks.append(len(found))
            return looks

        with anyio.fail_after(2 * PATIENCE):
            assert await (await rt.submit("lead", "go")).result() == [32, 8]
        await sound(rt)


@pytest.mark.rule("task.guards")
async def test_depth_holds_down_a_chain_of_spawns(rt: Runtime):
    names = ["a", "b", "c", "d", "e"]

    async def go_on(turn: Turn) -> str:
        following = names[names.index(turn.agent) + 1]
        try:
            return str(await (await turn.spawn(following, "deeper")).result(PATIENCE))
        except Refused as no:
            return f"{no.rule} at {turn.agent}"

    for name in names:
        rt.add(Card(name, asks="*"), go_on)
    assert await rt.run("a", "go") == "depth at d"
    await sound(rt)
