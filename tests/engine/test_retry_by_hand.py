"""Retrying by hand: a new task, which repeats nothing that was finished."""

import anyio
import pytest

from engine.helping import PATIENCE, happened, sound
from remit import Bounds, Card, Runtime, Turn
from remit.core.times import SECOND
from remit.errors import Conflict

pytestmark = pytest.mark.anyio


@pytest.mark.rule("retry.operator")
async def test_an_operators_retry_is_a_new_task_that_repeats_nothing(rt: Runtime, clock):
    did: list[str] = []
    broken = [True]

    @rt.agent(asks="*")
    async def lead(turn: Turn) -> list:
        charged = await turn.once("charge", lambda: did.append("charge") or 5)
        found = await turn.delegate("good", "x")
        part = await (await turn.submit("good", "y")).result(PATIENCE)
        other = await turn.delegate("fragile", "x")
        return [charged, found, part, other]

    @rt.agent
    async def good(turn: Turn) -> str:
        did.append(f"good {turn.task}")
        return f"did {turn.task}"

    @rt.agent
    async def fragile(turn: Turn) -> str:
        did.append("fragile")
        if broken[0]:
            raise ValueError("no")
        return "mended"

    old = await rt.submit("lead", "go", session="s")
    assert (await old.wait(PATIENCE)).state == "failed"
    before = await old.status()
    broken[0] = False
    clock.advance(1_000)
    new = await rt.workspace.tasks.get(old.id).retry()
    assert new.id != old.id
    assert await new.result(PATIENCE) == [5, "did x", "did y", "mended"]
    assert did == ["charge", "good x", "good y", "fragile", "fragile"]
    assert await old.status() == before
    again = await new.status()
    assert (again.session, again.agent, again.task) == (before.session, before.agent, before.task)
    assert again.until - again.asked_at == before.until - before.asked_at
    await sound(rt)


@pytest.mark.rule("retry.operator")
async def test_only_what_did_not_complete_is_retried(rt: Runtime):
    go, inside = anyio.Event(), anyio.Event()

    @rt.agent
    async def coder(turn: Turn) -> str:
        inside.set()
        await go.wait()
        return "ok"

    task = await rt.submit("coder", "x")
    await happened(inside)
    with pytest.raises(Conflict, match="is running; only what failed, died or was cancelled is retried"):
        await task.retry()
    go.set()
    await task.wait(PATIENCE)
    with pytest.raises(Conflict, match="is completed"):
        await task.retry()
    await sound(rt)


@pytest.mark.rule("retry.operator")
@pytest.mark.parametrize("of", ["the old one", "the new one"])
async def test_what_was_retried_and_failed_again_can_be_retried_again(rt: Runtime, of: str):
    """Each retry tries what failed: the failure of an earlier retry is not held against a later one."""
    tries: list[int] = []

    @rt.agent(asks="*")
    async def lead(turn: Turn) -> str:
        return await turn.delegate("fragile", "x")

    @rt.agent
    async def fragile(turn: Turn) -> str:
        tries.append(1)
        if len(tries) < 3:
            raise ValueError("no")
        return "third time"

    old = await rt.submit("lead", "go")
    assert (await old.wait(PATIENCE)).state == "failed"
    new = await old.retry()
    assert (await new.wait(PATIENCE)).state == "failed"
    last = await (old if of == "the old one" else new).retry()
    assert await last.result(PATIENCE) == "third time"
    await sound(rt)


@pytest.mark.rule("retry.operator")
async def test_a_child_is_retried_within_its_run(rt: Runtime):
    tries: list[int] = []

    @rt.agent(asks="*")
    async def lead(turn: Turn) -> str:
        task = await turn.submit("fragile", "x")
        await task.wait(PATIENCE)
        return task.id

    @rt.agent
    async def fragile(turn: Turn) -> list[str]:
        tries.append(1)
        if len(tries) == 1:
            raise ValueError("no")
        return list(turn.remit.names)

    rt.add(Card("idle"), fragile)
    child = await rt.run("lead", "go", session="s")
    again = await rt.workspace.tasks.get(child).retry()
    assert await again.result(PATIENCE) == ["lead", "fragile"]
    old, new = await rt.workspace.tasks.get(child).status(), await again.status()
    assert (new.run, new.parent, new.session) == (old.run, old.parent, old.session)
    await sound(rt)


@pytest.mark.rule("retry.operator")
async def test_what_is_being_retried_is_not_retried_beside_that(rt: Runtime):
    go, inside = anyio.Event(), anyio.Event()

    @rt.agent
    async def coder(turn: Turn) -> str:
        if turn.remit.id == old.id:
            raise ValueError("no")
        inside.set()
        await go.wait()
        return "ok"

    old = await rt.submit("coder", "x")
    await old.wait(PATIENCE)
    new = await old.retry()
    await happened(inside)
    with pytest.raises(Conflict, match=f"was retried already, as {new.id}, which is running"):
        await old.retry()
    go.set()
    assert await new.result(PATIENCE) == "ok"
    with pytest.raises(Conflict, match="which is completed"):
        await old.retry()
    await sound(rt)


@pytest.mark.rule("retry.operator", "retry.timeout")
async def test_an_operators_retry_has_the_same_bounds_and_as_much_time_again(rt: Runtime, clock):
    seen: list[Bounds] = []

    @rt.agent
    async def bad(turn: Turn) -> None:
        seen.append(turn.remit.bounds)
        raise ValueError("no")

    within = Bounds(deadline=clock.now() + 50 * SECOND, credits="$0.50", tokens=9, depth=2)
    old = await rt.submit("bad", "x", within=within)
    await old.wait(PATIENCE)
    clock.advance(30)
    new = await old.retry()
    await new.wait(PATIENCE)

    before, after = seen
    assert (after.credits, after.tokens, after.depth) == (500_000, 9, 2)
    assert (before.deadline, after.deadline) == (within.deadline, (within.deadline or 0) + 30 * SECOND)
    await sound(rt)


@pytest.mark.rule("retry.operator", "retry.timeout")
async def test_an_agent_that_retries_gives_no_more_time_than_it_has(rt: Runtime, clock):
    @rt.agent(asks="*")
    async def lead(turn: Turn) -> bool:
        task = await turn.submit("bad", "x")
        await task.wait(PATIENCE)
        clock.advance(200)
        again = await task.retry()
        await again.wait(PATIENCE)
        third = await again.retry()  # a retry's handle is its asker's too
        until = [(await one.status()).until for one in (again, third)]
        return until == [turn.remit.bounds.deadline] * 2

    @rt.agent
    async def bad(turn: Turn) -> None:
        raise ValueError("no")

    assert await rt.run("lead", "go", timeout=300) is True
    await sound(rt)
