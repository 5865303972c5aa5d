"""Cancelling: the whole tree at once, nothing recorded in its name after that, and one end for each task."""

import anyio
import pytest

from deep import some
from engine.helping import PATIENCE, a_few_rounds, ends, happened, life, named, quiet, reached, serving, sound, until
from remit import Card, Refused, Runtime, Turn
from remit.core.lifecycle import ENDS
from remit.errors import Conflict
from teams import echo, team

pytestmark = pytest.mark.anyio


async def stay(turn: Turn) -> None:
    await anyio.sleep_forever()


def a_tree(rt: Runtime) -> anyio.Event:
    """A lead with one delegated, one submitted and one spawned child, two of which have a child; set when all run."""
    ready = anyio.Event()
    inside: list[str] = []

    async def leaf(turn: Turn) -> None:
        inside.append(turn.task)
        if len(inside) == 3:
            ready.set()
        await anyio.sleep_forever()

    async def middle(turn: Turn) -> None:
        await turn.delegate("leaf", f"under {turn.agent}")

    async def lead(turn: Turn) -> None:
        await turn.submit("second", "x")
        await turn.spawn("leaf", "spawned")
        await turn.delegate("first", "x")

    rt.add(Card("leaf"), leaf)
    rt.add(Card("first", asks="*"), middle)
    rt.add(Card("second", asks="*"), middle)
    rt.add(Card("lead", asks="*"), lead)
    return ready


@pytest.mark.rule("cancel.tree")
async def test_one_transaction_fences_the_whole_tree(rt: Runtime):
    ready = a_tree(rt)
    task = await rt.submit("lead", "go")
    await happened(ready)
    assert await task.cancel("changed my mind") == 6
    outcome = await task.wait(PATIENCE)
    assert (outcome.state, "changed my mind" in str(outcome.error)) == ("cancelled", True)
    events = await rt.workspace.journal.history()
    fences = [event for event in events if event.kind == "task.cancelling"]
    assert len(fences) == 6
    assert [event.seq for event in fences] == list(range(fences[0].seq, fences[0].seq + 6))
    assert fences[0].op is not None
    assert {event.op for event in fences[1:]} == {None}
    assert {one.state for one in await rt.workspace.tasks.list()} == {"cancelled"}
    await until(lambda: not rt.running())
    await sound(rt)


@pytest.mark.rule("cancel.tree")
async def test_what_is_cancelled_before_its_first_step_is_stopped_too(rt: Runtime):
    rt.add(Card("stuck"), stay)
    task = await rt.submit("stuck", "x")
    await task.cancel()
    assert (await task.wait(PATIENCE)).state == "cancelled"
    await sound(rt)


@pytest.mark.rule("cancel.tree")
async def test_a_parent_is_cancelled_after_its_children(rt: Runtime):
    ready = a_tree(rt)
    task = await rt.submit("lead", "go")
    await happened(ready)
    await task.cancel()
    await task.wait(PATIENCE)
    ended = {event.task: event.seq for event in await rt.workspace.journal.history() if event.kind == "task.cancelled"}
    for one in await rt.workspace.tasks.list():
        assert not one.parent or ended[one.id] < ended[one.parent], one
    await sound(rt)


@pytest.mark.rule("cancel.tree")
async def test_a_parent_waits_for_a_child_that_takes_long_to_stop(rt: Runtime):
    """The child was submitted and is nobody's guest: its asker's scope does not hold it."""
    inside, cleaned = anyio.Event(), anyio.Event()

    @rt.agent(asks="*")
    async def lead(turn: Turn) -> None:
        await turn.submit("slow", "x")
        await anyio.sleep_forever()

    @rt.agent
    async def slow(turn: Turn) -> None:
        try:
            inside.set()
            await anyio.sleep_forever()
        finally:
            with anyio.CancelScope(shield=True):
                await happened(cleaned)

    task = await rt.submit("lead", "go")
    await happened(inside)
    await task.cancel()
    await quiet()
    assert (await task.status()).state == "cancelling"
    cleaned.set()
    assert (await task.wait(PATIENCE)).state == "cancelled"
    await sound(rt)


@pytest.mark.rule("cancel.tree")
async def test_what_is_pending_never_starts(rt: Runtime):
    began: list[str] = []
    go = anyio.Event()

    @rt.agent(concurrency=1)
    async def coder(turn: Turn) -> None:
        began.append(turn.task)
        await go.wait()

    first = await rt.submit("coder", "first")
    await reached(rt, first.id, "running")
    second = await rt.submit("coder", "second")
    assert await second.cancel() == 1
    assert (await second.status()).state == "cancelled"
    go.set()
    await first.wait(PATIENCE)
    third = await rt.submit("coder", "third")
    await third.wait(PATIENCE)
    assert began == ["first", "third"], await life(rt, third.id)
    assert await life(rt, second.id) == ["submitted", "cancelled"]
    await sound(rt)


@pytest.mark.rule("cancel.tree")
async def test_a_waiting_parent_and_its_pending_child_are_cancelled_together(clock):
    with team(clock=clock, hands=1) as rt:

        @rt.agent(asks="*")
        async def lead(turn: Turn) -> None:
            tasks = [await turn.submit("stuck", str(n)) for n in range(2)]
            for task in tasks:
                await task.wait()

        rt.add(Card("stuck"), stay)
        task = await rt.submit("lead", "go")
        await reached(rt, task.id, "waiting")
        assert await task.cancel() == 3
        assert (await task.wait(PATIENCE)).state == "cancelled"
        assert {one.state for one in await rt.workspace.tasks.list()} == {"cancelled"}
        await until(lambda: rt.running() == 0)
        one, other = [await rt.submit("stuck", name) for name in ("one", "other")]
        await reached(rt, one.id, "running")
        await quiet()
        assert (await other.status()).state == "pending"  # whoever waited has left no hand too many behind
        await sound(rt)


@pytest.mark.rule("cancel.tree")
async def test_nothing_is_recorded_in_the_name_of_a_cancelled_task(rt: Runtime):
    """Its code runs on, because it will not be stopped; whatever it tries is refused."""
    rules: list[str] = []
    inside, go = anyio.Event(), anyio.Event()

    @rt.agent(asks="*")
    async def stubborn(turn: Turn) -> str:
        child = await turn.submit("coder", "before")
        await child.wait()
        inside.set()
        with anyio.CancelScope(shield=True):
            await happened(go)
            for verb in (
                lambda: turn.context.set("a", "k", "v"),
                lambda: turn.context.remove("memory:stubborn", "k"),
                lambda: turn.context.board.set("k", "v"),
                lambda: turn.send("coder", "hello"),
                turn.inbox,
                lambda: turn.delegate("coder", "x"),
                lambda: turn.submit("coder", "x"),
                lambda: turn.spawn("coder", "x"),
                lambda: turn.once("charge", lambda: 1),
                lambda: turn.hand_off("coder"),
            ):
                try:
                    await verb()
                    rules.append("allowed")
                except Refused as no:
                    rules.append(no.rule)
        return "done anyway"

    rt.add(Card("coder"), echo)
    task = await rt.submit("stubborn", "go")
    await happened(inside)
    assert await task.cancel() == 1
    before = len(await rt.workspace.journal.history())
    go.set()
    assert (await task.wait(PATIENCE)).state == "cancelled"
    assert rules == ["over"] * 10
    assert [event.kind for event in (await rt.workspace.journal.history())[before:]] == ["task.cancelled"]
    await sound(rt)


@pytest.mark.rule("cancel.tree")
@pytest.mark.parametrize("how", ["completed", "failed", "been cancelled"])
async def test_what_has_ended_cannot_be_cancelled_and_says_so(rt: Runtime, how: str):
    @rt.agent
    async def coder(turn: Turn) -> str:
        if turn.task == "failed":
            raise ValueError("no")
        return "ok"

    task = await rt.submit("coder", how)
    if how == "been cancelled":
        await task.cancel()
    await task.wait(PATIENCE)
    with pytest.raises(Conflict, match=f"has {how} already; there is nothing left to cancel"):
        await task.cancel()
    await sound(rt)


@pytest.mark.rule("cancel.tree")
async def test_cancelling_twice_is_harmless_while_it_stops(rt: Runtime):
    inside, go = anyio.Event(), anyio.Event()

    @rt.agent
    async def slow(turn: Turn) -> None:
        try:
            inside.set()
            await anyio.sleep_forever()
        finally:
            with anyio.CancelScope(shield=True):
                await happened(go)

    task = await rt.submit("slow", "x")
    await happened(inside)
    assert [await task.cancel(), await task.cancel()] == [1, 1]
    go.set()
    assert (await task.wait(PATIENCE)).state == "cancelled"
    assert (await life(rt, task.id))[-2:] == ["cancelling", "cancelled"]
    await sound(rt)


@pytest.mark.rule("cancel.tree")
@pytest.mark.parametrize("asked_how", ["run", "submit"])
async def test_another_process_can_cancel_what_runs_here(tmp_path, clock, asked_how: str):
    with (
        team(tmp_path / "team.db", clock=clock) as here,
        team(tmp_path / "team.db", clock=clock, hands=0) as there,
    ):
        inside, stopped = anyio.Event(), anyio.Event()

        @here.agent
        async def forever(turn: Turn) -> None:
            try:
                inside.set()
                await anyio.sleep_forever()
            finally:
                stopped.set()

        async with anyio.create_task_group() as group:
            if asked_how == "run":
                group.start_soon(here.outcome, "forever", "x")
            else:
                await here.submit("forever", "x")
            await happened(inside)
            task = await named(there, "forever")
            await there.workspace.tasks.cancel(task, "by hand")
            await happened(stopped)
            outcome = await there.workspace.tasks.get(task).wait(PATIENCE)
        assert outcome.state == "cancelled"  # pyright: ignore[reportPossiblyUnboundVariable]
        await until(lambda: not here.running())  # it is on record a moment before
        await sound(here)


@pytest.mark.rule("cancel.tree")
async def test_a_submitted_child_outlives_its_asker_but_not_the_cancelling_of_the_run(rt: Runtime):
    @rt.agent(asks="*")
    async def lead(turn: Turn) -> str:
        return (await turn.submit("middle", "x")).id

    @rt.agent(asks="*")
    async def middle(turn: Turn) -> str:
        return (await turn.submit("stuck", "x")).id

    rt.add(Card("stuck"), stay)
    outcome = await rt.outcome("lead", "go")
    assert outcome.ok
    stuck = await rt.workspace.tasks.get(str(outcome.value)).result(PATIENCE)
    await reached(rt, stuck, "running")
    with pytest.raises(Conflict):  # the run itself has completed; what it left behind is cancelled by its own id
        await rt.workspace.tasks.cancel(outcome.id)
    assert await rt.workspace.tasks.cancel(stuck) == 1
    assert (await rt.workspace.tasks.get(stuck).wait(PATIENCE)).state == "cancelled"
    await sound(rt)


async def nothing_after_the_end(rt: Runtime) -> None:
    ended: set[str] = set()
    for event in await rt.workspace.journal.history():
        assert event.task not in ended, event
        if event.kind in ENDS:
            ended.add(event.task)


@pytest.mark.long
@pytest.mark.rule("cancel.race")
@pytest.mark.parametrize("times", some([100, 1_000]))
async def test_cancelling_races_completing_many_times(clock, times: int):
    """Each time the cancel comes some turns of the loop earlier or or from inside, or from a child."""
    with team(clock=clock) as rt:

        @rt.agent(asks="*")
        async def worker(turn: Turn) -> str:
            number = int(turn.task)
            await a_few_rounds(number % 7)
            if number % 5 == 0:
                await turn.delegate("helper", turn.remit.id if number % 10 == 0 else "-")
            if number % 11 == 0:
                await rt.workspace.tasks.cancel(turn.remit.id)
            return "done"

        @rt.agent
        async def helper(turn: Turn) -> str:
            if turn.task != "-":
                await rt.workspace.tasks.cancel(turn.task)
            return "helped"

        async def cancel(task: str, after: int) -> None:
            await a_few_rounds(after)
            try:
                await rt.workspace.tasks.cancel(task)
            except Conflict:
                return

        tasks = []
        with anyio.fail_after(60):
            for number in range(times):
                task = await rt.submit("worker", str(number))
                tasks.append(task)
                async with anyio.create_task_group() as group:
                    group.start_soon(cancel, task.id, number % 13)
                    group.start_soon(task.wait)
        states = [(await task.status()).state for task in tasks]
        assert set(states) == {"completed", "cancelled"}, set(states)
        assert min(states.count("completed"), states.count("cancelled")) > times / 20  # it was a race
        await nothing_after_the_end(rt)
        await sound(rt)


@pytest.mark.rule("cancel.tree")
async def test_a_lost_task_is_cancelled_even_though_no_one_has_it(clock):
    """Put back with a child of its own still open: both end, with nobody's code to wait for."""
    with team(clock=clock) as rt:
        inside = anyio.Event()

        @rt.agent(asks="*")
        async def lead(turn: Turn) -> None:
            inside.set()
            await turn.delegate("stuck", "x")

        rt.add(Card("stuck"), stay)
        task = await rt.submit("lead", "go")
        await happened(inside)
        await reached(rt, await named(rt, "stuck"), "running")
        assert await rt.drain(0) == 1
        assert (await task.status()).state == "pending"
        assert await task.cancel() == 2
        async with serving(rt):
            await ends(clock, task)
        assert {one.state for one in await rt.workspace.tasks.list()} == {"cancelled"}
        await sound(rt)


@pytest.mark.rule("cancel.tree")
async def test_a_handle_kept_after_its_turn_cancels_and_retries_nothing(rt: Runtime):
    kept: list = []

    @rt.agent(asks="*")
    async def lead(turn: Turn) -> None:
        kept.append(await turn.submit("stuck", "x"))

    rt.add(Card("stuck"), stay)
    await rt.run("lead", "go")
    for verb in (kept[0].cancel, kept[0].retry, kept[0].wait, kept[0].status):
        with pytest.raises(Refused, match="has ended"):
            await verb()
    assert (await rt.workspace.tasks.get(kept[0].id).status()).state in ("pending", "running")
    await sound(rt)
