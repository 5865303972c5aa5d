"""How tasks end: truthfully, once, in time, and without leaving anything behind."""

import gc
import tracemalloc

import anyio
import pytest

import remit
from deep import some
from engine.helping import happened, until
from remit import Bounds, Card, Failed, Runtime, Turn, errors
from remit.errors import Cancelled, TimedOut
from remit.report.tree import tree
from teams import echo

pytestmark = pytest.mark.anyio


@pytest.mark.rule("task.truth")
async def test_an_agent_that_raises_has_failed(rt: Runtime):
    @rt.agent(asks="*")
    async def lead(turn: Turn) -> str:
        with pytest.raises(Failed, match="'coder' failed: ValueError: no such module") as info:
            await turn.delegate("coder", "write it")
        assert isinstance(info.value.__cause__, ValueError)
        return "went on"

    @rt.agent
    async def coder(turn: Turn) -> str:
        raise ValueError("no such module")

    assert await rt.run("lead", "go") == "went on"
    root = tree(await rt.workspace.journal.history())
    assert (root.state, root.children[0].state) == ("completed", "failed")


@pytest.mark.rule("task.truth", "input.json")
@pytest.mark.parametrize("answer", [object(), float("nan"), {1: 2}, b"bytes", {"deep": {"set": {1}}}])
async def test_an_answer_that_is_not_json_is_a_failed_task(rt: Runtime, answer: object):
    @rt.agent
    async def coder(turn: Turn) -> object:
        return answer

    with pytest.raises(Failed, match="the result of 'coder'"):
        await rt.run("coder", "go")


async def test_an_error_with_text_no_database_keeps_is_recorded_all_the_same(rt: Runtime):
    @rt.agent
    async def coder(turn: Turn) -> str:
        raise ValueError("nul \0, half a pair \ud800, and " + "much " * 1000)

    with pytest.raises(Failed):
        await rt.run("coder", "go")
    assert [event.kind for event in await rt.workspace.journal.history()] == [
        "task.started",
        "task.failed",
        "breaker.set",
    ]


@pytest.mark.rule("task.deadline")
async def test_a_deadline_really_cancels_the_work_below(rt: Runtime, clock):
    stopped: list[str] = []
    inside = anyio.Event()

    async def forever(turn: Turn) -> None:
        try:
            inside.set()
            await anyio.sleep_forever()
        finally:
            stopped.append(turn.agent)

    @rt.agent(asks="*")
    async def middle(turn: Turn) -> str:
        try:
            return await turn.delegate("bottom", "x")
        finally:
            stopped.append("middle")

    rt.add(Card("bottom"), forever)

    async def run() -> None:
        with pytest.raises(TimedOut, match="'middle' ran out of time"):
            await rt.run("middle", "go", timeout=30)

    async with anyio.create_task_group() as group:
        group.start_soon(run)
        await happened(inside)
        clock.advance(30)
    assert stopped == ["bottom", "middle"]
    assert {node.agent: node.state for node in tree(await rt.workspace.journal.history()).walk()} == {
        "middle": "failed",
        "bottom": "cancelled",
    }


@pytest.mark.rule("task.deadline")
async def test_a_deadline_that_has_passed_refuses_the_hop(rt: Runtime, clock):
    @rt.agent(asks="*")
    async def lead(turn: Turn) -> str:
        clock.jump(400)  # its own timer has not gone off yet
        with pytest.raises(remit.Refused, match="deadline passed 100.0 s ago") as no:
            await turn.delegate("coder", "x")
        return no.value.rule

    rt.add(Card("coder"), echo)
    assert await rt.run("lead", "go", timeout=300) == "deadline"


@pytest.mark.rule("task.deadline")
async def test_a_child_never_gets_more_time_than_its_parent_has(rt: Runtime):
    @rt.agent(asks="*")
    async def lead(turn: Turn) -> bool:
        return await turn.delegate("coder", "x", timeout=10_000) == turn.remit.bounds.deadline

    @rt.agent
    async def coder(turn: Turn) -> int:
        return turn.remit.bounds.deadline  # pyright: ignore[reportReturnType]

    assert await rt.run("lead", "go", timeout=300) is True


@pytest.mark.rule("task.fan-out")
async def test_in_a_fan_out_one_bad_member_never_loses_the_others(rt: Runtime, clock):
    @rt.agent(asks="*")
    async def lead(turn: Turn) -> list:
        wishes = [("good", "1"), ("bad", "2"), ("nobody", "3"), ("slow", "4"), ("good", "5")]
        found = await turn.delegate_all(wishes, timeout=5)
        assert found[1].error is not None
        with pytest.raises(Failed):
            found[1].unwrap()
        return [[one.state, one.value] for one in found]

    @rt.agent
    async def bad(turn: Turn) -> str:
        raise RuntimeError("no")

    @rt.agent
    async def slow(turn: Turn) -> None:
        await until(lambda: rt.running() == 2)  # the others have ended
        clock.advance(5)
        await anyio.sleep_forever()

    rt.add(Card("good"), echo)
    assert await rt.run("lead", "go") == [
        ["completed", "1"],
        ["failed", None],
        ["refused", None],
        ["timed-out", None],
        ["completed", "5"],
    ]


@pytest.mark.parametrize("bad", [0, -1, 1.5, True, "2"])
async def test_at_once_is_a_number_of_at_least_one(rt: Runtime, bad):
    @rt.agent(asks="*")
    async def lead(turn: Turn) -> str:
        with pytest.raises(errors.BadInput, match="concurrency"):
            await turn.delegate_all([("coder", "x")], concurrency=bad)
        with pytest.raises(errors.BadInput, match="tokens"):
            await turn.report_tokens(tokens=None)
        return "ok"

    assert await rt.run("lead", "go") == "ok"


@pytest.mark.parametrize("bad", [7, None, object(), b"team.db"])
def test_a_store_that_is_none_is_told_so(bad):
    with pytest.raises(errors.BadInput, match="a store is a path"):
        Runtime(bad)


async def test_a_fan_out_of_nothing_is_nothing(rt: Runtime):
    @rt.agent(asks="*")
    async def lead(turn: Turn) -> list:
        return await turn.delegate_all([])

    assert await rt.run("lead", "go") == []


@pytest.mark.rule("task.cancel", "task.final")
async def test_cancelling_a_run_stops_everything_below_it(rt: Runtime):
    ready = anyio.Event()
    inside: list[str] = []

    async def forever(turn: Turn) -> None:
        inside.append(turn.agent)
        if len(inside) == 2:
            ready.set()
        await anyio.sleep_forever()

    @rt.agent(asks="*")
    async def lead(turn: Turn) -> object:
        return [str(one) for one in await turn.delegate_all([("left", "x"), ("right", "x")])]

    rt.add(Card("left"), forever)
    rt.add(Card("right"), forever)
    raised: list[Exception] = []

    async def start() -> None:
        with pytest.raises(Cancelled) as info:
            await rt.run("lead", "go")
        raised.append(info.value)

    async with anyio.create_task_group() as group:
        group.start_soon(start)
        await ready.wait()
        run = (await rt.workspace.journal.history())[0].run
        assert await rt.workspace.tasks.cancel(run, "changed my mind") == 3
    assert "changed my mind" in str(raised[0])
    root = tree(await rt.workspace.journal.history())
    assert {node.state for node in root.walk()} == {"cancelled"}
    assert rt.running() == 0
    with pytest.raises(errors.Conflict):
        await rt.workspace.tasks.cancel(run)  # pyright: ignore[reportPossiblyUnboundVariable]


@pytest.mark.rule("task.cancel")
async def test_a_completion_at_the_last_moment_does_not_overwrite_a_cancel(rt: Runtime):
    @rt.agent
    async def stubborn(turn: Turn) -> str:
        await rt.workspace.tasks.cancel(turn.remit.id, "stop")
        return "done anyway"

    with pytest.raises(Cancelled):
        await rt.run("stubborn", "go")
    assert [event.kind for event in await rt.workspace.journal.history()] == [
        "task.started",
        "task.cancelling",
        "task.cancelled",
    ]


@pytest.mark.rule("task.cancel")
async def test_cancelling_one_branch_leaves_the_rest(rt: Runtime):
    started = anyio.Event()

    @rt.agent(asks="*")
    async def lead(turn: Turn) -> list[str]:
        return [one.state for one in await turn.delegate_all([("stuck", "x"), ("good", "x")])]

    @rt.agent
    async def stuck(turn: Turn) -> None:
        started.set()
        await anyio.sleep_forever()

    @rt.agent
    async def good(turn: Turn) -> str:
        await started.wait()
        task = next(event.task for event in await rt.workspace.journal.history() if event.agent == "stuck")
        await rt.workspace.tasks.cancel(task)
        return "fine"

    assert await rt.run("lead", "go") == ["cancelled", "completed"]


@pytest.mark.rule("task.cancel")
async def test_a_run_whose_caller_goes_away_is_recorded_as_cancelled(rt: Runtime):
    inside = anyio.Event()

    @rt.agent
    async def forever(turn: Turn) -> None:
        inside.set()
        await anyio.sleep_forever()

    async with anyio.create_task_group() as group:
        group.start_soon(rt.run, "forever", "go")
        await happened(inside)
        group.cancel_scope.cancel()
    events = await rt.workspace.journal.history()
    assert [event.kind for event in events] == ["task.started", "task.cancelled"]
    assert "stopped waiting" in events[-1].data["error"]  # pyright: ignore[reportOperatorIssue]


@pytest.mark.long
@pytest.mark.rule("task.nothing-left")
@pytest.mark.parametrize(("first", "more"), some([(500, 500), (10_000, 1_000)]))
async def test_thousands_of_concurrent_delegations_leave_nothing_behind(first: int, more: int):
    with Runtime(bounds=Bounds(tasks=20_000)) as rt:
        rt.add(Card("worker"), echo)

        @rt.agent(asks="*")
        async def lead(turn: Turn) -> int:
            outcomes = await turn.delegate_all([("worker", "x")] * int(turn.task))
            return sum(one.ok for one in outcomes)

        assert await rt.run("lead", str(first)) == first
        tracemalloc.start()
        assert await rt.run("lead", str(more)) == more  # tables that grow to size once are created again, and counted
        gc.collect()
        before = tracemalloc.get_traced_memory()[0]
        assert await rt.run("lead", str(more)) == more
        gc.collect()
        after = tracemalloc.get_traced_memory()[0]
        tracemalloc.stop()
        assert rt.running() == 0
        # What stays is the last open transaction: nothing that grows with the work.
        assert after - before < 100_000


async def test_a_turn_kept_after_its_end_cannot_act(rt: Runtime):
    kept: list[Turn] = []

    @rt.agent(asks="*")
    async def lead(turn: Turn) -> str:
        kept.append(turn)
        return "done"

    rt.add(Card("coder"), echo)
    await rt.run("lead", "go")
    with pytest.raises(remit.Refused, match="has ended"):
        await kept[0].delegate("coder", "late")
    with pytest.raises(remit.Refused, match="has ended"):
        await kept[0].context.set("a", "b", "late")
    with pytest.raises(remit.Refused, match="has ended"):
        await kept[0].send("coder", "late")
    assert [event.kind for event in await rt.workspace.journal.history()] == ["task.started", "task.completed"]
