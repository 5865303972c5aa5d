"""Plain functions as agents: each call runs in a thread, and everything else is as for async functions."""

import threading
from collections.abc import Iterator
from functools import partial
from typing import Any

import anyio
import pytest
from anyio import from_thread

from engine.helping import happened, sound, until
from remit import Command, Failed, Runtime, Turn
from remit.errors import BadInput, Cancelled, TimedOut
from remit.testing import FakeClock
from teams import team

pytestmark = pytest.mark.anyio


@pytest.mark.rule("plain.thread")
async def test_a_plain_function_is_an_agent_and_does_not_block_the_event_loop(rt: Runtime):
    here, go = anyio.Event(), threading.Event()

    @rt.agent
    def reviewer(turn: Turn) -> str:
        assert rt.turn is turn
        assert threading.current_thread() is not threading.main_thread()
        from_thread.run_sync(here.set)
        assert go.wait(30)
        return f"{turn.agent}: {turn.task}"

    async def let_it_go() -> None:
        await here.wait()  # the loop turns while the function waits
        go.set()

    async with anyio.create_task_group() as group:
        group.start_soon(let_it_go)
        assert await rt.run("reviewer", "look") == "reviewer: look"


@pytest.mark.rule("plain.thread")
async def test_a_thread_uses_the_verbs_of_its_turn(rt: Runtime):
    @rt.agent(asks="*", writes="notes", reads="notes")
    def lead(turn: Turn) -> list[Any]:
        first = from_thread.run(turn.delegate, "worker", "first")
        second = from_thread.run(partial(turn.delegate, "worker", "second", timeout=9))
        from_thread.run(turn.context.set, "notes", "a", first)
        with pytest.raises(ValueError, match="no"):
            from_thread.run(turn.once, "fails", fails)
        return [first, second, from_thread.run(turn.context.get, "notes", "a")]

    @rt.agent
    def worker(turn: Turn) -> str:
        return turn.task.upper()

    def fails() -> None:
        raise ValueError("no")

    assert await rt.run("lead", "go") == ["FIRST", "SECOND", "FIRST"]
    await sound(rt)


@pytest.mark.rule("plain.thread")
async def test_many_functions_that_wait_for_functions_do_not_run_out_of_threads(rt: Runtime):
    @rt.agent(asks="*")
    async def fan(turn: Turn) -> int:
        return len([one for one in await turn.delegate_all([("middle", str(n)) for n in range(60)]) if one.ok])

    @rt.agent(asks="*")
    def middle(turn: Turn) -> Any:
        return from_thread.run(turn.delegate, "leaf", turn.task)

    @rt.agent
    def leaf(turn: Turn) -> str:
        return turn.task

    assert await rt.run("fan", "go") == 60


@pytest.mark.rule("plain.thread")
async def test_errors_handoffs_and_awaitables_come_out_of_the_thread_as_they_are(rt: Runtime):
    @rt.agent
    def fails(turn: Turn) -> None:
        raise KeyError("gone")

    @rt.agent(asks="*")
    def sends(turn: Turn) -> Command:
        return Command("later")

    @rt.agent
    def later(turn: Turn) -> Any:
        return answer(turn)

    async def answer(turn: Turn) -> str:
        return f"{turn.agent} has it"

    with pytest.raises(Failed, match="'fails' failed: KeyError: 'gone'") as info:
        await rt.run("fails", "go")
    assert isinstance(info.value.__cause__, KeyError)
    assert await rt.run("sends", "go") == "later has it"


class Reviewer:
    def __call__(self, turn: Turn) -> str:
        return "by an object"


@pytest.mark.rule("plain.thread")
async def test_objects_with_a_plain_call_are_agents_and_tests_may_override_with_plain_functions(rt: Runtime):
    rt.agent("reviewer")(Reviewer())

    assert await rt.run("reviewer", "go") == "by an object"
    with rt.override(reviewer=lambda turn: "by a test"):
        assert await rt.run("reviewer", "go") == "by a test"


def yields(turn: Turn) -> Iterator[str]:
    yield "a"


async def yields_later(turn: Turn) -> Any:
    yield "a"


@pytest.mark.rule("plain.clear")
@pytest.mark.parametrize("function", [yields, yields_later])
def test_a_generator_is_refused_with_what_to_write(rt: Runtime, function: Any):
    with pytest.raises(BadInput, match="is a generator, and an agent has one result: use return in place of yield"):
        rt.agent(function)


@pytest.mark.rule("plain.clear")
@pytest.mark.parametrize("function", [Reviewer, "text", 5])
def test_what_is_no_function_is_refused(rt: Runtime, function: Any):
    with pytest.raises(BadInput, match=r"agent 'a' needs a function of a turn, `def` or `async def`, got "):
        rt.agent("a")(function)


class Held:
    """A function that stays in its thread until it is let go."""

    def __init__(self) -> None:
        self.inside = anyio.Event()
        self.free = threading.Event()
        self.over = threading.Event()

    def __call__(self, turn: Turn) -> str:
        from_thread.run_sync(self.inside.set)
        assert self.free.wait(30)
        self.over.set()
        return "done"


@pytest.mark.rule("plain.grace")
async def test_a_cancelled_function_has_the_grace_period_to_end(rt: Runtime):
    held = Held()
    rt.agent("held")(held)
    async with anyio.create_task_group() as group:
        task = await rt.submit("held", "go")
        await happened(held.inside)
        await task.cancel("by hand")
        assert rt.running() == 1  # it waits for the thread
        held.free.set()
        with pytest.raises(Cancelled, match="by hand"):
            await task.result(30)
        group.cancel_scope.cancel()
    assert held.over.is_set()
    await until(lambda: not rt.running())
    await sound(rt)


@pytest.mark.rule("plain.grace")
async def test_a_function_that_does_not_end_in_the_grace_period_is_left_behind():
    clock, held = FakeClock(), Held()
    with team(clock=clock) as rt:
        rt.agent("held")(held)
        async with anyio.create_task_group() as group:

            async def timed_out() -> None:
                with pytest.raises(TimedOut):
                    await rt.run("held", "go", timeout=10)
                held.free.set()

            group.start_soon(timed_out)
            await happened(held.inside)
            clock.advance(11)
            await anyio.lowlevel.checkpoint()
            assert not held.free.is_set()
            clock.advance(6)
        assert await anyio.to_thread.run_sync(held.over.wait, 30)
        assert await rt.run("held", "again") == "done"


@pytest.mark.rule("plain.grace")
async def test_a_program_that_stops_waiting_waits_for_the_thread_too(rt: Runtime):
    held = Held()
    rt.agent("held")(held)
    async with anyio.create_task_group() as group:
        group.start_soon(rt.run, "held", "go")
        await happened(held.inside)
        group.cancel_scope.cancel()
        held.free.set()
    assert held.over.is_set()
    assert not rt.running()
    [task] = await rt.workspace.tasks.list()
    assert task.state == "cancelled"


@pytest.mark.rule("plain.grace")
async def test_a_verb_that_a_thread_waits_for_is_cancelled_with_its_task(rt: Runtime):
    inside = anyio.Event()
    seen: list[str] = []

    @rt.agent(asks="*")
    def lead(turn: Turn) -> Any:
        try:
            return from_thread.run(turn.delegate, "stuck", "wait")
        except BaseException as error:
            seen.append(type(error).__name__)
            raise

    @rt.agent
    async def stuck(turn: Turn) -> None:
        inside.set()
        await anyio.sleep_forever()

    task = await rt.submit("lead", "go")
    await happened(inside)
    await task.cancel("by hand")
    with pytest.raises(Cancelled, match="by hand"):
        await task.result(30)
    assert seen == ["CancelledError"]
    assert {one.state for one in await rt.workspace.tasks.list()} == {"cancelled"}
    await until(lambda: not rt.running())
    await sound(rt)
