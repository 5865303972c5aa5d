"""How a task ended is told truthfully: late answers, agents that will not stop, and errors nobody else made."""

import asyncio
import contextlib
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Awaitable, Callable, Iterator

import anyio
import pytest
import uvloop

from engine.helping import PATIENCE, a_few_rounds, happened, sound, until
from remit import Plan, Refused, Runtime, Send, Step, Turn
from remit.core.command import Command
from remit.runtime.runtime import run_main
from remit.settings import Pace
from remit.testing import FakeClock
from teams import team

pytestmark = pytest.mark.anyio


# -- late -----------------------------------------------------------------------------------------------------


@pytest.mark.rule("truth.late")
@pytest.mark.case("late_answer")
async def test_an_answer_after_its_time_does_not_count_and_nothing_is_written_in_its_name(
    rt: Runtime, clock: FakeClock
):
    begun = anyio.Event()
    refused: list[str] = []

    @rt.agent(asks="*")
    async def late(turn: Turn) -> str:
        begun.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            for write in (
                lambda: turn.context.set("n", "k", "late"),
                lambda: turn.send("other", "late"),
                lambda: turn.delegate("other", "late"),
                lambda: turn.submit("other", "late"),
                lambda: turn.once("late", str),
            ):
                with pytest.raises(Refused, match="its time is up") as no:
                    await write()
                refused.append(no.value.rule)
        return "a late answer"

    @rt.agent
    async def other(turn: Turn) -> str:
        return "ok"

    async with anyio.create_task_group() as group:

        async def ask() -> None:
            outcome = await rt.outcome("late", "x", timeout=10)
            assert (outcome.state, outcome.value) == ("timed-out", None)

        group.start_soon(ask)
        await happened(begun)
        clock.advance(10)
    assert refused == ["over"] * 5
    assert await rt.workspace.context().get("n", "k") is None
    assert [status.agent for status in await rt.workspace.tasks.list()] == ["late"]
    await sound(rt)


@pytest.mark.rule("truth.late")
async def test_code_that_holds_up_the_loop_past_its_time_is_late_too():
    with team() as rt:

        @rt.agent
        async def busy(turn: Turn) -> str:
            time.sleep(0.05)  # noqa: ASYNC251 - no timer gets to fire meanwhile
            with pytest.raises(Refused, match="its time is up"):
                await turn.context.set("n", "k", "late")
            return "done"

        assert (await rt.outcome("busy", "x", timeout=0.02)).state == "timed-out"
        await sound(rt)


@pytest.mark.rule("truth.late")
async def test_an_answer_after_a_cancel_does_not_count(rt: Runtime):
    begun = anyio.Event()
    refused: list[str] = []

    @rt.agent
    async def deaf(turn: Turn) -> str:
        begun.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            with pytest.raises(Refused, match="it was cancelled: enough") as no:
                await turn.context.set("n", "k", "late")
            refused.append(no.value.rule)
        return "a late answer"

    task = await rt.submit("deaf", "x")
    await happened(begun)
    await rt.workspace.tasks.cancel(task.id, "enough")
    assert (await task.wait(PATIENCE)).state == "cancelled"
    assert refused == ["over"]
    await sound(rt)


@pytest.mark.rule("truth.late")
async def test_a_caller_who_stops_waiting_is_not_given_an_answer_that_came_after(rt: Runtime):
    begun = anyio.Event()

    @rt.agent
    async def deaf(turn: Turn) -> str:
        begun.set()
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.Event().wait()
        return "a late answer"

    asking = asyncio.ensure_future(rt.run("deaf", "x"))
    await happened(begun)
    asking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asking
    [status] = await rt.workspace.tasks.list()
    assert status.state == "cancelled"
    await sound(rt)


# -- left behind ----------------------------------------------------------------------------------------------


async def deaf_to_cancelling(begun: anyio.Event, stop: anyio.Event) -> None:
    begun.set()
    while not stop.is_set():
        with contextlib.suppress(asyncio.CancelledError):
            await stop.wait()


async def deaf_to_everything(begun: anyio.Event, stop: anyio.Event) -> None:
    begun.set()
    while not stop.is_set():
        with contextlib.suppress(BaseException):
            await stop.wait()


async def shielded(begun: anyio.Event, stop: anyio.Event) -> None:
    begun.set()
    with anyio.CancelScope(shield=True):
        await stop.wait()


async def in_scopes_of_its_own(begun: anyio.Event, stop: anyio.Event) -> None:
    with anyio.CancelScope(shield=True), anyio.move_on_after(100):
        async with anyio.create_task_group() as group:
            group.start_soon(deaf_to_cancelling, begun, stop)
            await deaf_to_everything(begun, stop)


async def in_a_thread(begun: anyio.Event, stop: anyio.Event) -> None:
    loop = asyncio.get_running_loop()

    def work() -> None:
        loop.call_soon_threadsafe(begun.set)
        asyncio.run_coroutine_threadsafe(stop.wait(), loop).result(PATIENCE)  # a thread cannot be cancelled

    await anyio.to_thread.run_sync(work)


@pytest.mark.rule("truth.left-behind")
@pytest.mark.parametrize(
    "stubborn", [deaf_to_cancelling, deaf_to_everything, shielded, in_scopes_of_its_own, in_a_thread]
)
@pytest.mark.case("late_answer")
async def test_an_agent_that_will_not_stop_is_left_behind_after_the_grace_and_its_caller_goes_on(
    stubborn, caplog: pytest.LogCaptureFixture
):
    clock = FakeClock()
    begun, stop = anyio.Event(), anyio.Event()
    said: list[str] = []
    with team(clock=clock) as rt:

        @rt.agent
        async def mule(turn: Turn) -> str:
            await stubborn(begun, stop)
            try:
                await turn.context.set("n", "k", "late")
            except Refused as no:
                said.append(no.rule)
            return "stubborn answer"

        @rt.agent(asks="*")
        async def lead(turn: Turn) -> list[str]:
            outcomes = await turn.delegate_all([("mule", "x"), ("quick", "y")], timeout=10)
            return [outcome.state for outcome in outcomes]

        @rt.agent
        async def quick(turn: Turn) -> str:
            return "ok"

        asking = asyncio.ensure_future(rt.run("lead", "x"))
        await happened(begun)
        clock.advance(10)
        await a_few_rounds()
        assert not asking.done()  # it has its grace
        clock.advance(5)
        with anyio.fail_after(PATIENCE):
            assert await asking == ["timed-out", "completed"]
        assert "agent 'mule' was cancelled and did not stop within 5 s; it is left behind" in caplog.text
        assert rt.running() == 0
        stop.set()
        runs_on = stubborn in (deaf_to_cancelling, deaf_to_everything)  # but can do nothing any more
        if runs_on:
            await until(lambda: said)
        assert said == (["over"] if runs_on else [])
        assert await rt.workspace.context().get("n", "k") is None
        assert {status.agent: status.state for status in await rt.workspace.tasks.list()} == {
            "lead": "completed",
            "mule": "failed",
            "quick": "completed",
        }
        await sound(rt)


@pytest.mark.rule("truth.left-behind")
async def test_the_one_that_will_not_stop_is_left_and_not_those_who_wait_for_it():
    clock = FakeClock()
    begun, stop = anyio.Event(), anyio.Event()
    tidied: list[str] = []
    with team(clock=clock) as rt:

        @rt.agent(asks="*")
        async def lead(turn: Turn) -> str:
            try:
                return await turn.delegate("mule", "x")
            finally:
                tidied.append("lead")

        @rt.agent
        async def mule(turn: Turn) -> None:
            await shielded(begun, stop)

        asking = asyncio.ensure_future(rt.outcome("lead", "x", timeout=10))
        await happened(begun)
        clock.advance(10)
        await a_few_rounds()
        clock.advance(5)
        with anyio.fail_after(PATIENCE):
            assert (await asking).state == "timed-out"
        assert tidied == ["lead"]
        assert {status.agent: status.state for status in await rt.workspace.tasks.list()} == {
            "lead": "failed",
            "mule": "cancelled",
        }
        await sound(rt)


@pytest.mark.rule("truth.left-behind")
@pytest.mark.parametrize(("how", "state"), [("cancel", "cancelled"), ("drain", "pending")])
async def test_a_queued_agent_that_will_not_stop_is_left_when_it_is_cancelled_and_when_its_process_stops(how, state):
    clock = FakeClock()
    begun, stop = anyio.Event(), anyio.Event()
    with team(clock=clock) as rt:

        @rt.agent
        async def mule(turn: Turn) -> None:
            await deaf_to_cancelling(begun, stop)

        task = await rt.submit("mule", "x")
        await happened(begun)
        if how == "cancel":
            await task.cancel()
            leaving = asyncio.ensure_future(task.wait())
        else:
            leaving = asyncio.ensure_future(rt.drain(0))
            clock.advance(0.1)
        await a_few_rounds(20)
        clock.advance(5)
        with anyio.fail_after(PATIENCE):
            await leaving
        assert (await task.status()).state == state


@pytest.mark.rule("truth.left-behind")
async def test_an_agents_own_time_limits_are_its_own_affair(rt: Runtime, clock: FakeClock):
    @rt.agent
    async def careful(turn: Turn) -> str:
        for limit in (anyio.move_on_after, asyncio.timeout):
            try:
                scope = limit(0.001)
                if isinstance(scope, asyncio.Timeout):
                    async with scope:
                        await asyncio.Event().wait()
                else:
                    with scope:
                        await asyncio.Event().wait()
            except TimeoutError:
                pass
            clock.advance(10)
            await a_few_rounds()
        return "in time"

    assert await rt.run("careful", "x") == "in time"


@pytest.mark.rule("truth.left-behind")
async def test_the_grace_is_a_setting():
    clock = FakeClock()
    begun, stop = anyio.Event(), anyio.Event()
    with team(clock=clock, pace=Pace(grace=1)) as rt:

        @rt.agent
        async def mule(turn: Turn) -> None:
            await deaf_to_cancelling(begun, stop)

        asking = asyncio.ensure_future(rt.outcome("mule", "x", timeout=10))
        await happened(begun)
        clock.advance(10)
        await a_few_rounds()
        clock.advance(1)
        with anyio.fail_after(PATIENCE):
            assert (await asking).state == "timed-out"


# -- of its own making ----------------------------------------------------------------------------------------


async def cancels_a_helper() -> None:
    helper = asyncio.create_task(asyncio.Event().wait())
    await asyncio.sleep(0)
    helper.cancel()
    await helper


async def cancels_itself() -> None:
    task = asyncio.current_task()
    assert task is not None
    task.cancel()


async def cancels_itself_and_waits() -> None:
    await cancels_itself()
    await asyncio.Event().wait()


async def raises_cancelled() -> None:
    raise asyncio.CancelledError


async def exits() -> None:
    sys.exit(3)


async def interrupts() -> None:
    raise KeyboardInterrupt


async def closes() -> None:
    raise GeneratorExit


async def raises_a_group() -> None:
    raise BaseExceptionGroup("several", [asyncio.CancelledError(), SystemExit(1)])


class Unspeakable(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no words")

    __repr__ = __str__


async def is_unspeakable() -> None:
    raise Unspeakable


SLIPS = {
    slip.__name__: slip
    for slip in (
        cancels_a_helper,
        cancels_itself_and_waits,
        raises_cancelled,
        exits,
        interrupts,
        closes,
        raises_a_group,
        is_unspeakable,
    )
}


def slippery(rt: Runtime, slip) -> None:
    @rt.agent("slip")
    async def slips(turn: Turn) -> None:
        await slip()

    @rt.agent
    async def good(turn: Turn) -> str:
        await a_few_rounds(10)
        return "paid result"

    @rt.agent(asks="*")
    async def lead(turn: Turn) -> list[str]:
        outcomes = await turn.delegate_all([("good", "1"), ("slip", "2"), ("good", "3")])
        return [outcome.state for outcome in outcomes]

    @rt.agent(asks="*")
    async def sender(turn: Turn) -> object:
        if turn.handoff.results:
            return [outcome.state for outcome in turn.handoff.results]
        return Command([Send("slip", "1"), Send("good", "2")])


@pytest.mark.rule("truth.own-making")
@pytest.mark.parametrize("slip", SLIPS)
@pytest.mark.case("stray_cancel")
async def test_what_an_agent_makes_itself_is_its_own_failure_and_no_one_elses(slip: str):
    await fails_alone(SLIPS[slip])


async def fails_alone(slip: Callable[[], Awaitable[None]]) -> None:
    with team() as rt:
        slippery(rt, slip)
        assert await rt.run("lead", "x") == ["completed", "failed", "completed"]
        assert await rt.run("sender", "x") == ["failed", "completed"]
        assert (await rt.outcome("slip", "x")).state == "failed"
        await rt.workspace.agents.reset("slip")
        plan = await rt.run_plan(Plan([Step("1", "A", agent="slip"), Step("2", "B", agent="good")]))
        assert plan.states() == {"1": "failed", "2": "completed"}
        task = await rt.submit("slip", "y")
        assert (await task.wait(PATIENCE)).state == "failed"
        await asyncio.sleep(0)  # the caller has not been cancelled
        this = asyncio.current_task()
        assert this is not None
        assert this.cancelling() == 0
        await sound(rt)


async def gathers() -> None:
    await asyncio.gather(exits(), asyncio.sleep(0))


async def has_a_group() -> None:
    async with asyncio.TaskGroup() as group:
        group.create_task(exits())


@pytest.mark.rule("truth.own-making")
@pytest.mark.parametrize("loop", [asyncio.new_event_loop, uvloop.new_event_loop], ids=["asyncio", "uvloop"])
@pytest.mark.parametrize("slip", [gathers, has_a_group])
def test_an_exit_in_an_asyncio_task_of_an_agent_fails_only_that_agent(
    slip: Callable[[], Awaitable[None]],
    loop: Callable[[], asyncio.AbstractEventLoop],
    caplog: pytest.LogCaptureFixture,
):
    run_main(fails_alone(slip), loop)
    assert "SystemExit in an asyncio task or a callback (test_truth.py:" in caplog.text


@pytest.mark.rule("truth.own-making")
def test_an_exit_that_nobody_awaits_is_logged_and_the_agent_answers(caplog: pytest.LogCaptureFixture):
    async def main() -> str:
        with team() as rt:

            @rt.agent
            async def forgets(turn: Turn) -> str:
                asyncio.get_running_loop().call_soon(sys.exit, 3)
                await a_few_rounds(3)
                return "an answer"

            return await rt.run("forgets", "x")

    assert run_main(main()) == "an answer"
    assert "this process goes on" in caplog.text


@pytest.fixture
def hears_ctrl_c() -> Iterator[None]:
    """Let this process hear Ctrl-C, as a program in a terminal does: a shell has its background jobs ignore it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.rule("truth.own-making")
def test_the_main_task_of_a_program_ends_as_with_asyncio(hears_ctrl_c: None):
    ended: list[str] = []

    async def exits_itself() -> None:
        sys.exit(7)

    async def is_interrupted() -> None:
        asyncio.get_running_loop().call_soon(signal.raise_signal, signal.SIGINT)
        try:
            await asyncio.Event().wait()
        finally:
            ended.append("interrupted")

    async def is_cancelled() -> None:
        await cancels_itself_and_waits()

    async def answers() -> str:
        return "an answer"

    with pytest.raises(SystemExit, match="7"):
        run_main(exits_itself())
    with pytest.raises(KeyboardInterrupt):
        run_main(is_interrupted())
    with pytest.raises(asyncio.CancelledError):
        run_main(is_cancelled())
    assert (run_main(answers()), ended) == ("an answer", ["interrupted"])


@pytest.mark.rule("truth.own-making")
async def test_an_agent_that_cancels_its_task_and_answers_has_answered(rt: Runtime):
    @rt.agent
    async def odd(turn: Turn) -> str:
        await cancels_itself()
        return "an answer"

    assert await rt.run("odd", "x") == "an answer"


SCRIPT = """
import asyncio, os, signal, sys
import remit
rt = remit.Runtime()
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell ignores it for what it starts in the background

@rt.agent
async def slow(turn):
    print("begun", flush=True)
    {body}
    return "no"

asyncio.run(rt.run("slow", "x"))
"""


@pytest.mark.rule("truth.own-making")
@pytest.mark.parametrize("body", ["await asyncio.Event().wait()", "while True: pass"])
def test_a_persons_ctrl_c_stops_the_program(body: str):
    """Waiting code is cancelled by the first one; code that never waits is interrupted by the second."""
    program = textwrap.dedent(SCRIPT).replace("{body}", body)
    pipe = subprocess.PIPE
    with subprocess.Popen([sys.executable, "-c", program], stdout=pipe, stderr=pipe) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"begun\n"
        deadline = time.monotonic() + 15
        while process.poll() is None and time.monotonic() < deadline:
            process.send_signal(signal.SIGINT)
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(0.3)
        process.kill()
        _, errors = process.communicate()
    assert b"KeyboardInterrupt" in errors
    assert process.returncode not in (0, None)


# -- left running ---------------------------------------------------------------------------------------------


@pytest.mark.rule("turn.children")
@pytest.mark.case("left_running")
async def test_what_a_turn_left_running_is_cancelled_before_its_end_is_recorded(rt: Runtime):
    never = anyio.Event()
    stopped: list[str] = []

    @rt.agent(asks="*")
    async def lead(turn: Turn) -> str:
        race = [asyncio.create_task(turn.delegate(name, "x")) for name in ("fast", "slow")]
        done, _ = await asyncio.wait(race, return_when=asyncio.FIRST_COMPLETED)
        return done.pop().result()

    @rt.agent
    async def fast(turn: Turn) -> str:
        await a_few_rounds(10)
        return "fast"

    @rt.agent
    async def slow(turn: Turn) -> None:
        try:
            await never.wait()
        finally:
            stopped.append("slow")
            with pytest.raises(Refused, match="its asker ended without it"):
                await turn.context.set("n", "k", "written after the run")

    outcome = await rt.outcome("lead", "x")
    assert (outcome.value, stopped, rt.running()) == ("fast", ["slow"], 0)
    events = [(event.agent, event.kind) for event in await rt.workspace.journal.history(kinds=frozenset(ENDS))]
    assert events == [("fast", "task.completed"), ("slow", "task.cancelled"), ("lead", "task.completed")]
    [ended] = await rt.workspace.journal.history(kinds=frozenset({"task.cancelled"}))
    assert ended.data["error"] == "'slow' was cancelled: its asker ended without it"
    await sound(rt)


ENDS = {"task.completed", "task.cancelled", "task.failed", "task.died"}


@pytest.mark.rule("turn.children")
@pytest.mark.parametrize("verb", ["delegate_all", "run_plan", "wait"])
async def test_whatever_verb_it_left_running_is_stopped(rt: Runtime, verb: str):
    never = anyio.Event()
    begun = anyio.Event()
    left: list[asyncio.Task[object]] = []

    @rt.agent(asks="*")
    async def lead(turn: Turn) -> str:
        async def wait() -> None:
            await (await turn.submit("slow", "x")).wait()

        do = {
            "delegate_all": lambda: turn.delegate_all([("slow", "1"), ("slow", "2")]),
            "run_plan": lambda: turn.run_plan(Plan([Step("1", "A", agent="slow")])),
            "wait": wait,
        }[verb]
        left.append(asyncio.ensure_future(do()))
        await happened(begun)
        await a_few_rounds(20)
        return "done"

    @rt.agent
    async def slow(turn: Turn) -> None:
        begun.set()
        await never.wait()

    assert await rt.run("lead", "x") == "done"
    await asyncio.wait(left, timeout=PATIENCE)
    assert left[0].cancelled()
    states = {status.agent: status.state for status in await rt.workspace.tasks.list()}
    assert states == {"lead": "completed", "slow": "running" if verb == "wait" else "cancelled"}
    await rt.drain(0)
    await sound(rt)


@pytest.mark.rule("turn.children")
async def test_what_runs_elsewhere_ends_with_the_time_of_its_asker(rt: Runtime, clock: FakeClock):
    begun = anyio.Event()

    @rt.agent(asks="*")
    async def lead(turn: Turn) -> None:
        asyncio.create_task(turn.delegate("slow", "x"))  # noqa: RUF006
        await anyio.Event().wait()

    @rt.agent
    async def slow(turn: Turn) -> None:
        begun.set()
        await anyio.Event().wait()

    asking = asyncio.ensure_future(rt.outcome("lead", "x", timeout=10))
    await happened(begun)
    clock.advance(10)
    assert (await asking).state == "timed-out"
    assert {status.agent: status.state for status in await rt.workspace.tasks.list(state="open")} == {}
    await sound(rt)


@pytest.mark.rule("turn.inside")
async def test_a_persons_verbs_are_refused_inside_a_turn(rt: Runtime):
    @rt.agent(asks="*")
    async def lead(turn: Turn) -> list[str]:
        said: list[str] = []
        for ask in (
            lambda: rt.run("other", "x"),
            lambda: rt.submit("other", "x"),
            lambda: rt.workspace.submit("other", "x"),
            lambda: rt.run_plan(Plan([Step("1", "A", agent="other")])),
            lambda: rt.run_team("goal", "other"),
        ):
            with pytest.raises(Refused, match="inside a turn say") as no:
                await ask()
            said.append(str(no.value).rsplit("inside a turn say ", 1)[1])
        return said

    @rt.agent
    async def other(turn: Turn) -> None: ...

    wanted = ["turn.delegate", "turn.submit", "turn.submit", "turn.run_plan", "turn.run_team"]
    assert await rt.run("lead", "x") == wanted
    assert await rt.run("other", "x") is None


@pytest.mark.rule("turn.inside")
async def test_another_runtime_may_be_asked_inside_a_turn(rt: Runtime):
    with team() as elsewhere:

        @elsewhere.agent
        async def far(turn: Turn) -> str:
            return "from afar"

        @rt.agent
        async def near(turn: Turn) -> str:
            return await elsewhere.run("far", "x")

        assert await rt.run("near", "x") == "from afar"
