"""The queue: what is submitted runs, once, within its bounds, and never more of it at a time than allowed."""

import subprocess
import sys
from datetime import UTC, datetime
from typing import Any

import anyio
import pytest

from engine.helping import PATIENCE, happened, life, serving, sound, until
from remit import Bounds, Card, Refused, Runtime, Task, Turn
from remit.errors import Conflict, Failed, NotFound
from remit.testing import pass_time
from teams import echo, team
from wrapped import Counted

pytestmark = pytest.mark.anyio


# -- submitting and looking ---------------------------------------------------------------------------------


@pytest.mark.rule("task.submit")
async def test_submit_comes_back_at_once_and_the_task_runs_later(rt: Runtime, clock):
    go, inside = anyio.Event(), anyio.Event()

    @rt.agent
    async def coder(turn: Turn) -> str:
        inside.set()
        await go.wait()
        return f"done: {turn.task}"

    task = await rt.submit("coder", "write it", session="s")
    assert not inside.is_set()
    status = await task.status()
    assert status.state in ("pending", "running")
    assert (status.agent, status.task, status.session) == ("coder", "write it", "s")
    assert (status.asked_how, status.parent, status.ended_at) == ("submit", "", None)
    await happened(inside)
    assert ((await task.status()).state, (await task.status()).attempt) == ("running", 1)

    told = anyio.Event()

    async def wait_too_long() -> None:
        with pytest.raises(TimeoutError):
            await task.wait(5)
        told.set()

    async def is_told() -> bool:
        return told.is_set()

    async with anyio.create_task_group() as group:
        group.start_soon(wait_too_long)
        await pass_time(clock, is_told)
    go.set()
    assert await task.result(PATIENCE) == "done: write it"
    assert (await rt.workspace.tasks.get(task.id).status()).state == "completed"
    assert (await life(rt, task.id))[-1] == "completed"
    await sound(rt)


@pytest.mark.rule("task.submit")
async def test_what_nobody_has_hands_for_waits_until_someone_has(tmp_path, clock):
    with (
        team(tmp_path / "team.db", clock=clock, hands=0) as asking,
        team(tmp_path / "team.db", clock=clock) as working,
    ):
        asking.add(Card("coder"), echo)
        working.add(Card("coder"), echo)
        task = await asking.submit("coder", "x")
        assert (await task.status()).state == "pending"
        async with serving(working):
            assert await task.result(PATIENCE) == "x"
        assert await life(asking, task.id) == ["submitted", "claimed", "completed"]
        await sound(asking)


@pytest.mark.rule("task.submit")
async def test_a_failure_is_told_to_the_caller_that_waits(rt: Runtime):
    @rt.agent
    async def coder(turn: Turn) -> str:
        raise ValueError("no such module")

    task = await rt.submit("coder", "write it")
    outcome = await task.wait(PATIENCE)
    assert (outcome.state, outcome.agent, outcome.id) == ("failed", "coder", task.id)
    with pytest.raises(Failed, match="'coder' failed: ValueError: no such module"):
        await task.result(PATIENCE)
    assert (await task.status()).state == "failed"
    await sound(rt)


@pytest.mark.rule("task.submit")
async def test_a_task_that_is_not_there_is_not_found(rt: Runtime):
    for verb in ("status", "wait", "result", "cancel", "retry"):
        with pytest.raises(NotFound, match="no task"):
            await getattr(rt.workspace.tasks.get("nowhere"), verb)()


@pytest.mark.rule("task.submit")
async def test_a_task_of_another_workspace_is_not_found(tmp_path, clock):
    with (
        team(tmp_path / "team.db", clock=clock, workspace="one") as one,
        team(tmp_path / "team.db", clock=clock, workspace="two") as two,
    ):
        one.add(Card("coder"), echo)
        task = await one.submit("coder", "a secret")
        assert await task.result(PATIENCE) == "a secret"
        for verb in ("status", "wait", "cancel", "retry"):
            with pytest.raises(NotFound):
                await getattr(two.workspace.tasks.get(task.id), verb)()
        assert await two.workspace.tasks.list() == []
        await sound(one)


@pytest.mark.rule("task.submit", "session.record")
async def test_every_task_of_a_session_is_listed_with_state_and_times(rt: Runtime, clock):
    @rt.agent(asks="*")
    async def lead(turn: Turn) -> str:
        await turn.delegate("coder", "delegated")
        await (await turn.submit("coder", "submitted")).result(PATIENCE)
        await (await turn.spawn("bad", "spawned")).wait(PATIENCE)
        clock.advance(7)
        return "ok"

    @rt.agent
    async def bad(turn: Turn) -> str:
        raise ValueError("no")

    rt.add(Card("coder"), echo)
    began = clock.now()
    await rt.run("lead", "go", session="one")
    await rt.run("coder", "elsewhere", session="two")
    listed = await rt.workspace.tasks.list(session="one")
    assert [(one.task, one.agent, one.asked_how, one.state) for one in reversed(listed)] == [
        ("go", "lead", "delegate", "completed"),
        ("delegated", "coder", "delegate", "completed"),
        ("submitted", "coder", "submit", "completed"),
        ("spawned", "bad", "spawn", "failed"),
    ]
    root = listed[-1]
    assert (root.asked_at, root.ended_at) == (began, began + 7_000_000)
    assert {one.parent for one in listed[:-1]} == {root.id}
    assert {one.id for one in await rt.workspace.tasks.list(parent=root.id)} == {one.id for one in listed[:-1]}
    assert [one.task for one in await rt.workspace.tasks.list(agent="Bad")] == ["spawned"]
    assert [one.task for one in await rt.workspace.tasks.list(state="failed")] == ["spawned"]
    assert await rt.workspace.tasks.list(state="open") == []
    assert len(await rt.workspace.tasks.list(limit=2)) == 2
    await sound(rt)


# -- the same again ------------------------------------------------------------------------------------------


@pytest.mark.rule("task.dedup")
async def test_the_same_key_is_the_same_task_while_it_runs_and_after_it_failed(rt: Runtime, clock):
    go, inside = anyio.Event(), anyio.Event()

    @rt.agent
    async def coder(turn: Turn) -> str:
        inside.set()
        await go.wait()
        raise ValueError("no")

    first = await rt.submit("coder", "x", key="order 7")
    await happened(inside)
    assert (await rt.submit("coder", "x", key="order 7")).id == first.id
    go.set()
    assert (await first.wait(PATIENCE)).state == "failed"
    clock.advance(100_000)
    assert (await rt.submit("coder", "x", key="order 7")).id == first.id
    assert (await rt.submit("coder", "x", key="order 8")).id != first.id
    await sound(rt)


@pytest.mark.rule("task.dedup")
async def test_the_same_words_are_the_same_task_for_as_long_as_is_said(rt: Runtime, clock):
    async def submit(task: str, session: str, **how: Any) -> str:
        return (await rt.submit("coder", task, session=session, same_within=300, **how)).id

    rt.add(Card("coder"), echo)
    first = await rt.submit("coder", "x", session="s", same_within=300)
    assert await submit("x", "s") == first.id
    await first.wait(PATIENCE)
    clock.advance(299)
    assert await submit("x", "s") == first.id
    assert await submit("y", "s") != first.id
    assert await submit("x", "t") != first.id
    assert await submit("x", "s", by="ann") != first.id
    clock.advance(2)
    assert await submit("x", "s") != first.id
    await sound(rt)


@pytest.mark.rule("task.dedup", "task.dedup-person")
async def test_without_a_key_the_same_words_are_another_task(rt: Runtime):
    rt.add(Card("coder"), echo)
    ids = [(await rt.submit("coder", "x", session="s", by=by)).id for by in ("ann", "ann", "bob", "")]
    assert len({*ids}) == 4
    assert [line.by for line in await rt.workspace.tasks.runs()] == ["", "bob", "ann", "ann"]


@pytest.mark.rule("task.dedup-person")
async def test_two_persons_never_share_a_request(rt: Runtime):
    rt.add(Card("coder"), echo)
    ids = [(await rt.submit("coder", "x", session="s", by=by, same_within=300)).id for by in ("ann", "bob", "ann")]
    assert ids[0] == ids[2] != ids[1]
    first = await rt.submit("coder", "x", key="k", by="ann")
    with pytest.raises(Conflict, match="was used for another request"):
        await rt.submit("coder", "x", key="k", by="bob")
    assert (await rt.submit("coder", "x", key="k", by="ann")).id == first.id


@pytest.mark.rule("task.dedup")
async def test_what_failed_is_not_given_again_for_the_same_words(rt: Runtime):
    fails = [True]

    @rt.agent
    async def coder(turn: Turn) -> str:
        if fails.pop() if fails else False:
            raise ValueError("no")
        return "ok"

    first = await rt.submit("coder", "x", session="s", same_within=300)
    assert (await first.wait(PATIENCE)).state == "failed"
    second = await rt.submit("coder", "x", session="s", same_within=300)
    assert second.id != first.id
    assert await second.result(PATIENCE) == "ok"


@pytest.mark.rule("task.dedup")
async def test_an_agents_twins_stay_within_its_run_and_spawned_ones_are_all_different(rt: Runtime):
    @rt.agent(asks="*")
    async def lead(turn: Turn) -> list[list[str]]:
        submitted = [(await turn.submit("coder", "x", same_within=300)).id for _ in range(3)]
        apart = [(await turn.submit("coder", "y")).id for _ in range(3)]
        keyed = [(await turn.submit("coder", "k", key="k")).id for _ in range(2)]
        spawned = [(await turn.spawn("coder", "x")).id for _ in range(3)]
        return [submitted, keyed, spawned, apart]

    rt.add(Card("coder"), echo)
    one = await rt.run("lead", "go", session="same")
    two = await rt.run("lead", "go", session="same")
    for ids in (one, two):
        assert [len(set(some)) for some in ids] == [1, 1, 3, 3]
    assert not {*one[0], *one[1]} & {*two[0], *two[1]}  # a key of one run opens nothing of another
    await sound(rt)


# -- within its bounds ---------------------------------------------------------------------------------------


@pytest.mark.rule("task.guards")
@pytest.mark.parametrize("asked_how", ["submit", "spawn"])
async def test_the_guards_hold_for_what_is_queued(rt: Runtime, asked_how: str):
    rules: dict[str, str] = {}

    async def no(turn: Turn, to: str, **how: object) -> str:
        with pytest.raises(Refused) as info:
            await getattr(turn, asked_how)(to, "x", **how)
        return info.value.rule

    @rt.agent(asks="*")
    async def lead(turn: Turn) -> None:
        rules["self"] = await no(turn, "lead")
        rules["unknown"] = await no(turn, "nobody")
        rules["breaker"] = await no(turn, "resting")
        rules["bounds"] = await no(turn, "coder", within=Bounds(agents=["nobody"]))
        rules["deadline"] = await no(turn, "coder", within=Bounds(deadline=datetime(2000, 1, 1, tzinfo=UTC)))
        await (await getattr(turn, asked_how)("middle", "x")).result(PATIENCE)

    @rt.agent(asks=["lead", "coder"])
    async def middle(turn: Turn) -> None:
        rules["loop"] = await no(turn, "lead")
        rules["asks"] = await no(turn, "resting")
        await (await getattr(turn, asked_how)("coder", "x")).result(PATIENCE)

    @rt.agent(asks="*")
    async def coder(turn: Turn) -> None:
        rules["depth"] = await no(turn, "bottom")

    rt.add(Card("resting"), echo)
    rt.add(Card("bottom"), echo)
    await rt.workspace.agents.trip("resting", "closed for today")
    await rt.run("lead", "go", within=Bounds(depth=2))
    assert rules == {
        "self": "self",
        "unknown": "unknown",
        "breaker": "breaker",
        "bounds": "not-allowed",
        "deadline": "deadline",
        "loop": "loop",
        "asks": "not-allowed",
        "depth": "depth",
    }
    assert sum(event.kind == "hop.refused" for event in await rt.workspace.journal.history()) == len(rules)
    await sound(rt)


@pytest.mark.rule("task.guards")
async def test_a_person_is_refused_too_and_nothing_is_left_behind(rt: Runtime):
    rt.add(Card("coder"), echo)
    await rt.workspace.agents.trip("coder", "closed")
    for agent, rule in (("nobody", "unknown"), ("coder", "breaker")):
        with pytest.raises(Refused) as info:
            await rt.submit(agent, "x")
        assert info.value.rule == rule
    assert await rt.workspace.tasks.list() == []


@pytest.mark.rule("task.guards")
async def test_what_is_claimed_has_the_remit_it_was_submitted_with(rt: Runtime):
    kept: dict[str, object] = {}

    @rt.agent(asks="*", tools=["deploy"])
    async def lead(turn: Turn) -> list:
        await turn.context.set("code", "k", "v")
        how = {"sees": ["code"], "tools": ["deploy"], "within": Bounds(depth=2, credits="$1", sees=["code", "b"])}
        await turn.delegate("coder", "delegated", **how)
        for asked_how in (turn.submit, turn.spawn):
            await (await asked_how("coder", asked_how.__name__, **how)).result(PATIENCE)
        return [turn.remit.root, turn.remit.id]

    @rt.agent(reads=["b"])
    async def coder(turn: Turn) -> str:
        kept[turn.task] = turn.remit
        return str(await turn.context.get("code", "k")) + "".join(turn.tools)

    root, parent = await rt.run("lead", "go", session="s", within=Bounds(tools=["deploy", "x"]))
    one, *others = kept.values()
    for other in others:
        for name in ("session", "workspace", "root", "parent", "holder", "sees", "tools", "names", "asker"):
            assert getattr(other, name) == getattr(one, name), name
        assert other.bounds.data | {"deadline": 0} == one.bounds.data | {"deadline": 0}  # pyright: ignore[reportAttributeAccessIssue]
    assert (one.root, one.parent, one.names, one.session) == (root, parent, ("lead", "coder"), "s")  # pyright: ignore[reportAttributeAccessIssue]
    await sound(rt)


@pytest.mark.rule("task.guards")
async def test_a_queued_child_has_no_more_time_than_its_asker(rt: Runtime):
    @rt.agent(asks="*")
    async def lead(turn: Turn) -> bool:
        task = await turn.submit("coder", "x", timeout=10_000)
        return await task.result(PATIENCE) == turn.remit.bounds.deadline == (await task.status()).until

    @rt.agent
    async def coder(turn: Turn) -> int:
        return turn.remit.bounds.deadline  # pyright: ignore[reportReturnType]

    assert await rt.run("lead", "go", timeout=300) is True


@pytest.mark.rule("task.guards")
async def test_what_waits_past_its_time_fails_and_never_begins(rt: Runtime, clock):
    began: list[str] = []
    go = anyio.Event()

    @rt.agent(concurrency=1)
    async def coder(turn: Turn) -> None:
        began.append(turn.task)
        await go.wait()

    await rt.submit("coder", "first")
    late = await rt.submit("coder", "second", within=Bounds(deadline=clock.now() + 50_000_000))
    clock.advance(60)
    outcome = await late.wait(PATIENCE)
    assert outcome.state == "failed"
    assert "its time was up before it could begin" in str(outcome.error)
    go.set()
    assert began == ["first"]
    await sound(rt)


@pytest.mark.rule("task.guards")
async def test_a_breaker_that_opens_later_holds_back_what_is_queued(clock):
    with team(clock=clock, hands=0) as rt:
        rt.add(Card("coder"), echo)
        rt.add(Card("other"), echo)
        task = await rt.submit("coder", "x")
        await rt.workspace.agents.trip("coder", "closed")
        async with serving(rt):
            assert await (await rt.submit("other", "y")).result(PATIENCE) == "y"
            assert (await task.status()).state == "pending"
            await rt.workspace.agents.reset("coder")
            clock.advance(1)
            assert await task.result(PATIENCE) == "x"
        await sound(rt)


@pytest.mark.rule("task.submit")
async def test_many_who_wait_in_another_process_are_told(tmp_path):
    """Each of them once its own task has ended, however many others wait beside it."""
    with Runtime(tmp_path / "team.db") as here, team(tmp_path / "team.db", hands=0) as there:
        gates = {f"part {number}": anyio.Event() for number in range(20)}

        async def worker(turn: Turn) -> str:
            await gates[turn.task].wait()
            return turn.task

        here.add(Card("worker"), worker)
        there.add(Card("worker"), worker)
        told: list[str] = []

        async def wait(task: Task) -> None:
            told.append((await task.wait()).value)

        with anyio.fail_after(20):
            async with anyio.create_task_group() as group, serving(here):
                for name in gates:
                    group.start_soon(wait, await there.submit("worker", name))
                for name, gate in gates.items():
                    gate.set()
                    if name == "part 9":
                        await until(lambda: len(told) == 10)
                await until(lambda: len(told) == 20)
        assert sorted(told) == sorted(gates)
        await sound(here)


@pytest.mark.rule("queue.growth")
async def test_a_burst_for_an_agent_that_is_full_does_not_read_its_first_tasks_at_every_submission():
    with Counted(":memory:") as database, Runtime(database) as rt:
        gate, ran = anyio.Event(), list[str]()

        async def sender(turn: Turn) -> None:
            await gate.wait()
            ran.append(turn.task)

        rt.add(Card("sender", concurrency=1), sender)
        asked = database.asked
        async with serving(rt):
            tasks = [await rt.submit("sender", str(number)) for number in range(200)]
            await until(lambda: asked["queues"])
            before = asked.copy()
            for number in range(200, 220):
                tasks.append(await rt.submit("sender", str(number)))
                await until(lambda seen=asked["queues"]: asked["queues"] > seen)
            looks = asked - before
            assert looks["front"] <= looks["queues"] + 1  # whether one is due; the tasks themselves are not read
            gate.set()
            for task in tasks:
                await task.wait()
        assert ran == [str(number) for number in range(220)]
        await sound(rt)


@pytest.mark.parametrize("later", range(4))
def test_a_program_that_raises_after_its_first_submit_says_only_that(later: int):
    program = f"""
import asyncio
from remit import Runtime, Turn

rt = Runtime()

@rt.agent
async def coder(turn: Turn) -> str:
    return "x"

async def main() -> None:
    await rt.submit("coder", "x")
    for _ in range({later}):
        await asyncio.sleep(0)
    raise ValueError("boom")

asyncio.run(main())
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.stderr.splitlines()[-1] == "ValueError: boom"
    assert "never awaited" not in done.stderr
