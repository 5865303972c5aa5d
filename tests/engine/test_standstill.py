"""Time that a process could use, and clocks that are wrong."""

import asyncio
import logging
import os
import signal
import subprocess
import sys
import threading
import time
from contextlib import ExitStack

import anyio
import pytest

from engine.helping import PATIENCE, happened
from remit import Card, Runtime
from remit.engine.system import AWAKE, SystemClock, Timers, UsableTime
from remit.errors import StoreError
from remit.settings import System
from teams import echo, team
from workers.crew import as_url

pytestmark = pytest.mark.anyio

# It goes on when it is told to, by a line: before that it was stopped for longer than its attempt may take.
STOPPED = """
import asyncio, sys, time
import remit
from remit import Bounds
from remit.core.times import SECOND

rt = remit.Runtime()


@rt.agent
async def coder(turn):
    print("inside", flush=True)
    return await asyncio.to_thread(sys.stdin.readline)


async def main():
    said = Bounds(deadline=time.time_ns() // 1000 + 4 * SECOND) if sys.argv[1] == "deadline" else Bounds()
    task = await rt.submit("coder", "x", timeout=4, within=said)
    outcome = await task.wait()
    print(outcome.state, (await task.status()).attempt, flush=True)


asyncio.run(main())
"""


@pytest.mark.rule("clock.stopped")
def test_the_time_of_an_attempt_does_not_run_while_its_process_is_stopped_and_a_deadline_does():
    ends = {"attempt": "completed", "deadline": "timed-out"}
    with ExitStack() as stack:
        pipe = subprocess.PIPE
        commands = ([sys.executable, "-c", STOPPED, limit] for limit in ends)
        stopped = [stack.enter_context(subprocess.Popen(one, stdin=pipe, stdout=pipe, text=True)) for one in commands]
        for process in stopped:
            assert process.stdout.readline() == "inside\n"
            os.kill(process.pid, signal.SIGSTOP)
        time.sleep(6.5)  # whoever is stopped does not say so; what is shorter than five seconds is no stop
        for process in stopped:
            os.kill(process.pid, signal.SIGCONT)
            process.stdin.write("go on\n")
            process.stdin.flush()
        assert [process.stdout.readline() for process in stopped] == [f"{end} 1\n" for end in ends.values()]


class Machine:
    """A machine under the test's control: what its clocks say, in nanoseconds, and a thread that wakes when told."""

    def __init__(self) -> None:
        self.ran, self.slept, self.computed = 1_000_000_000_000, 0, 0
        self._waits, self._go = threading.Semaphore(0), threading.Semaphore(0)

    def clock_gettime_ns(self, which: int) -> int:
        return self.ran if which == AWAKE else self.ran + self.slept

    def process_time_ns(self) -> int:
        return self.computed

    def sleep(self, _seconds: float) -> None:
        self._waits.release()
        self._go.acquire()

    def pass_(self, seconds: float, computed: float = 0) -> None:
        """Let time pass without a sign of life."""
        self.ran += round(seconds * 1e9)
        self.computed += round(computed * 1e9)

    def pulse(self) -> None:
        """Let the thread look at the clock, a second after it last did."""
        assert self._waits.acquire(timeout=PATIENCE)
        self.pass_(1)
        self._go.release()

    def looked(self) -> bool:
        """Whether the thread has come to wait again."""
        waits = self._waits.acquire(timeout=0.5)
        if waits:
            self._waits.release()
        return waits


@pytest.fixture
def system() -> Machine:
    return Machine()


@pytest.mark.rule("clock.stopped")
def test_a_stop_is_left_out_but_for_the_second_in_which_it_could_not_be_noticed(system: Machine):
    usable = UsableTime(system)
    usable.enter()
    before = usable.ticks()
    system.pass_(100)
    assert usable.ticks() - before == 1e6
    system.pass_(4)
    assert usable.ticks() - before == 5e6


@pytest.mark.rule("clock.stopped")
def test_an_agent_that_blocks_the_loop_for_long_has_used_that_time(system: Machine):
    usable = UsableTime(system)
    usable.enter()
    before = usable.ticks()
    system.pass_(100, computed=99)
    assert usable.ticks() - before == 100e6


@pytest.mark.rule("clock.stopped")
def test_a_process_that_does_nothing_is_not_stopped(system: Machine):
    """Nobody works here, so no thread looks at the clock, and nothing is known of gaps."""
    usable = UsableTime(system)
    before = usable.ticks()
    system.pass_(100)
    assert usable.ticks() - before == 100e6


@pytest.mark.rule("clock.stopped")
async def test_a_timer_that_is_woken_too_early_waits_on_for_what_is_left():
    now = [0.0]
    timers = Timers(asyncio.get_running_loop(), lambda: now[0])
    fired = anyio.Event()
    timers.call_later(0.05, fired.set)
    await anyio.sleep(0.1)
    assert not fired.is_set()  # by its own time nothing has passed
    now[0] = 0.06
    await happened(fired)


@pytest.mark.rule("clock.stopped")
async def test_after_a_sleep_deadlines_are_looked_at_at_once():
    now = [0.0]
    timers = Timers(asyncio.get_running_loop(), lambda: now[0])
    fired = anyio.Event()
    timers.call_later(3_600, fired.set)
    now[0] = 4_000.0  # the machine slept, and the loop does not know
    await anyio.to_thread.run_sync(timers.relook)
    await happened(fired)


def test_timers_of_a_loop_that_has_closed_are_not_looked_at():
    loop = asyncio.new_event_loop()
    timers = Timers(loop, time.monotonic)
    loop.close()
    timers.relook()


@pytest.mark.rule("clock.stopped")
def test_those_who_wait_for_deadlines_are_told_of_sleep(system: Machine):
    told: list[int] = []

    class Listens:
        def relook(self) -> None:
            told.append(1)

    usable, listens = UsableTime(system), Listens()
    usable.tell(listens)
    usable.enter()
    system.pulse()
    assert system.looked()
    assert told == []
    system.slept = 3_600 * 10**9
    system.pulse()
    assert system.looked()
    assert told == [1]


@pytest.mark.rule("clock.stopped")
def test_the_thread_ends_when_nobody_needs_it_and_begins_again(system: Machine):
    usable = UsableTime(system)
    usable.enter()
    usable.leave()
    for _ in range(10):
        system.pulse()
    assert not system.looked()
    usable.enter()
    before = usable.ticks()
    system.pass_(100)
    assert usable.ticks() - before == 1e6


# -- wrong clocks -------------------------------------------------------------------------------------------------


class Shifted(SystemClock):
    """A machine's clock that is wrong by so many seconds, until someone sets it."""

    def __init__(self, seconds: float, **how: float) -> None:
        self.wrong = seconds
        super().__init__(**how)

    def reread(self) -> None:
        super().reread()
        self._offset += round(self.wrong * 1e9)


HOUR = 3_600


@pytest.fixture
def on_file(tmp_path) -> str:
    return str(tmp_path / "team.db")


async def written(where: str) -> None:
    with team(where) as rt:
        rt.add(Card("coder"), echo)
        await rt.run("coder", "x")


@pytest.mark.rule("clock.wrong")
async def test_a_clock_that_is_behind_the_journal_is_refused_until_it_is_set(on_file: str):
    await written(on_file)
    clock = Shifted(-HOUR)
    with team(on_file, clock=clock) as rt:
        rt.add(Card("coder"), echo)
        with pytest.raises(StoreError, match="this machine's clock says .* the last thing in the store happened at"):
            await rt.run("coder", "y")
        assert len(await rt.workspace.tasks.list()) == 1  # whoever only looks is not refused
        clock.wrong = 0
        assert await rt.run("coder", "y") == "y"


@pytest.mark.rule("clock.wrong")
@pytest.mark.parametrize("wrong", [-HOUR, HOUR])
async def test_a_clock_that_differs_from_the_servers_is_refused(address: str, wrong: int):
    with team(as_url(address), clock=Shifted(wrong)) as rt:
        rt.add(Card("coder"), echo)
        with pytest.raises(StoreError, match=r"the server's clock says .*set REMIT_CHECK_CLOCK=no"):
            await rt.submit("coder", "y")
        assert await rt.workspace.tasks.list() == []
    with team(as_url(address), clock=Shifted(wrong / 10)) as rt:
        rt.add(Card("coder"), echo)
        assert await rt.run("coder", "y") == "y"


@pytest.mark.rule("clock.wrong")
async def test_a_clock_may_be_taken_as_it_is(on_file: str, monkeypatch: pytest.MonkeyPatch):
    await written(on_file)
    with Runtime(on_file, system=System(clock=Shifted(-HOUR), check_clock=False)) as rt:
        rt.add(Card("coder"), echo)
        assert await rt.run("coder", "y") == "y"
    monkeypatch.setenv("REMIT_CHECK_CLOCK", "no")
    with team(on_file, clock=Shifted(-HOUR)) as rt:
        rt.add(Card("coder"), echo)
        assert await rt.run("coder", "z") == "z"


@pytest.mark.rule("clock.wrong")
async def test_a_worker_that_is_idle_learns_that_its_clock_was_set(on_file: str):
    clock = Shifted(-300)
    with team(on_file, clock=clock, hands=1) as rt:
        rt.add(Card("coder"), echo)
        async with rt.serving():
            clock.wrong = 0
            with anyio.fail_after(PATIENCE):
                while abs(clock.now() - time.time_ns() // 1_000) > 1_000_000:  # noqa: ASYNC110
                    await anyio.sleep(0.05)


def is_by(clock: SystemClock, seconds: float) -> bool:
    """Whether a clock is wrong by so much."""
    return abs(clock.now() - time.time_ns() // 1_000 - seconds * 1_000_000) < 60_000_000


@pytest.mark.rule("clock.set")
@pytest.mark.parametrize("jump", [-25 * HOUR, 25 * HOUR, 31 * 24 * HOUR])
def test_a_clock_that_jumps_is_not_followed_until_it_has_stayed_there(jump: int):
    clock = Shifted(0)
    clock.wrong = jump
    for _ in range(3):
        clock.follow()
        assert is_by(clock, 0)
        assert clock.in_doubt
    clock.wrong = 0  # it was wrong for a while
    clock.follow()
    assert not clock.in_doubt

    clock = Shifted(0, patience=0)
    clock.wrong = jump
    clock.follow()
    assert is_by(clock, 0)
    clock.wrong = 2 * jump  # it does not stay
    clock.follow()
    assert is_by(clock, 0)
    clock.follow()
    assert is_by(clock, 2 * jump)
    assert not clock.in_doubt


@pytest.mark.rule("clock.set")
def test_small_steps_of_a_clock_do_not_add_up_to_a_jump():
    clock = Shifted(0)
    for step in range(1, 20):
        clock.wrong = step * 290
        clock.follow()
    assert is_by(clock, 580)
    assert clock.in_doubt


@pytest.mark.rule("clock.set")
def test_a_jump_is_followed_when_another_clock_says_the_same():
    clock = Shifted(0)
    clock.wrong = 25 * HOUR
    clock.compare(clock.now() + 25 * HOUR * 1_000_000)  # nobody doubts yet
    assert is_by(clock, 0)
    clock.follow()
    clock.compare(clock.now())
    assert is_by(clock, 0)
    clock.compare(clock.now() + 25 * HOUR * 1_000_000)
    assert is_by(clock, 25 * HOUR)
    assert not clock.in_doubt


@pytest.mark.rule("clock.set")
@pytest.mark.parametrize("where", ["file", "postgres"])
async def test_a_worker_whose_clock_jumps_prunes_nothing_ends_nothing_and_begins_no_new_day(
    where: str, request: pytest.FixtureRequest
):
    name = request.getfixturevalue("on_file") if where == "file" else as_url(request.getfixturevalue("address"))
    clock, looked = Shifted(0), anyio.Event()

    class Looks(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            looked.set()

    with team(name, clock=clock, hands=1, keep_days=30) as rt:
        rt.add(Card("coder"), echo)
        handler = Looks(logging.WARNING)
        logging.getLogger("remit").addHandler(handler)
        try:
            async with rt.serving():
                await (await rt.submit("coder", "before")).wait()
                clock.wrong = 31 * 24 * HOUR
                await happened(looked)
                task = await rt.submit("coder", "after")
                assert (await task.wait()).value == "after"
        finally:
            logging.getLogger("remit").removeHandler(handler)
        assert is_by(clock, 0)
        assert len(await rt.workspace.tasks.runs()) == 2
