"""Test doubles: scripted agents, ids that are the same every time, a clock that moves only when the test says so, and a
process that others consider dead while its code runs on."""

import asyncio
import heapq
from collections.abc import Awaitable, Callable
from inspect import isawaitable
from itertools import count
from pathlib import Path
from typing import Any, Self, TypeVar

import anyio

from remit.engine.traces import OwnersFunctionFailed
from remit.errors import RemitError
from remit.ports import (
    NOTHING,
    Clock,
    Database,
    Decide,
    Decided,
    Decision,
    Dispatcher,
    Pulse,
    Store,
    Timer,
    View,
    Wants,
)
from remit.stores.opening import database_at

_SCRIPTED = "a function of Scripted(...)"

# -- agents --------------------------------------------------------------------------------------------------


class Scripted:
    """An agent that returns its answers in order, and the last one from then on. An answer that is an exception is
    raised; one that is a function is called with the turn. `tasks` lists the tasks it was given.

    To fail on purpose, give the exception or let the function return it. If a function raises, that is a bug in the
    test: `bug` is the first of them, the task fails without a retry, and under pytest the test fails with the bug.
    Errors of remit, such as `Refused`, pass through.
    """

    def __init__(self, *answers: object) -> None:
        self._answers = list(answers) or [None]
        self.tasks: list[str] = []
        self.bug: Exception | None = None

    async def __call__(self, turn: Any) -> Any:
        answer = self._answers[min(len(self.tasks), len(self._answers) - 1)]
        self.tasks.append(turn.task)
        if callable(answer):
            answer = await self._call_function(answer, turn)
        if isinstance(answer, Exception):
            raise answer
        return answer

    async def _call_function(self, function: Callable[[Any], object], turn: Any) -> object:
        try:
            given = function(turn)
            return await given if isawaitable(given) else given
        except RemitError:
            raise
        except Exception as error:
            self.bug = self.bug or error
            raise OwnersFunctionFailed(_SCRIPTED, error, in_script=True) from error


# -- ids -----------------------------------------------------------------------------------------------------


_LETTERS = "234567abcdefghijklmnopqrstuvwxyz"
_LENGTH = 16


class CountedIds:
    """Ids of sixteen characters, like real ones, that sort as text in the order they were created."""

    def __init__(self, first: int = 1) -> None:
        self._numbers = count(first)

    def chance(self) -> float:
        return 0.0

    def new(self) -> str:
        number = next(self._numbers)
        return "".join(_LETTERS[number >> 5 * place & 31] for place in reversed(range(_LENGTH)))


# -- the clock -----------------------------------------------------------------------------------------------


SECOND = 1_000_000
_MOMENT = 0.001
_ANSWERED = 2.0  # real seconds in which a store answers, on a busy machine too
_STORES = tuple(str(Path(__file__).parents[1] / "stores" / name) for name in ("sqlite", "postgres/database"))
PATIENCE = 30.0  # real seconds until a wait fails


class FakeTimer:
    """A timer of the fake clock."""

    __slots__ = ("_call",)

    def __init__(self, call: Callable[[], None]) -> None:
        self._call: Callable[[], None] | None = call

    def cancel(self) -> None:
        self._call = None

    def fire(self) -> None:
        call, self._call = self._call, None
        if call is not None:
            call()


class FakeClock:
    """A clock that stands still until `advance` moves it. Due timers fire in order, before the call returns, each at
    its own time. A timer that is set again meanwhile, like a heartbeat, fires once more at the end, not for every
    interval."""

    def __init__(self, now: int = 1_800_000_000 * SECOND) -> None:
        self._now = now
        self._ticks = 0
        self._until = 0  # the target of the current or last `advance`
        self._timers: list[tuple[int, int, FakeTimer]] = []
        self._numbers = count()

    def now(self) -> int:
        return self._now

    def ticks(self) -> int:
        return self._ticks

    def call_later(self, seconds: float, call: Callable[[], None]) -> FakeTimer:
        timer = FakeTimer(call)
        if seconds <= 0:  # due at once
            asyncio.get_running_loop().call_soon(timer.fire)
            return timer
        # During `advance` no other code runs that could react, so a new timer is due at its end at the earliest.
        due = max(self._ticks + round(seconds * SECOND), self._until)
        heapq.heappush(self._timers, (due, next(self._numbers), timer))
        return timer

    def advance(self, seconds: float) -> None:
        """Let time pass and fire the due timers."""
        if seconds < 0:
            raise ValueError("time does not go back; jump sets the wall clock")
        self._until = until = self._ticks + round(seconds * SECOND)
        while self._timers and self._timers[0][0] <= until:
            due, _, timer = heapq.heappop(self._timers)
            self._move(due)
            timer.fire()
        self._move(until)

    def jump(self, seconds: float) -> None:
        """Set the wall clock forwards or backwards, as a person would; no time passes and no timer fires."""
        self._now += round(seconds * SECOND)

    def _move(self, ticks: int) -> None:
        self._now += ticks - self._ticks
        self._ticks = ticks


async def pass_time(clock: FakeClock, until: Callable[[], Awaitable[object]], *, step: float = 1.0) -> None:
    """Advance the clock by `step` seconds at a time until a condition is true. Between two steps the tasks that were
    woken run, and stores answer: a store on disk works in threads, and this clock does not wait for threads. Raise
    `TimeoutError` after 30 real seconds."""
    with anyio.fail_after(PATIENCE):
        while not await until():
            clock.advance(step)
            await anyio.sleep(_MOMENT)
            with anyio.move_on_after(_ANSWERED):  # a store that is made to hang must not stop the time
                while any(map(waits_for_store, asyncio.all_tasks())):  # noqa: ASYNC110 - no event tells of it
                    await anyio.sleep(_MOMENT)


def waits_for_store(task: "asyncio.Task[Any]") -> bool:
    """Whether a task has called a store and awaits the answer."""
    awaited: Any = task.get_coro()
    while awaited is not None:
        kind = next((kind for kind in ("cr", "gi", "ag") if hasattr(awaited, f"{kind}_code")), None)
        if kind is None:
            return False
        if getattr(awaited, f"{kind}_code").co_filename.startswith(_STORES):
            return True
        awaited = getattr(awaited, "gi_yieldfrom" if kind == "gi" else f"{kind}_await")
    return False


# -- the zombie ----------------------------------------------------------------------------------------------


T = TypeVar("T")


class _NeverFires:
    """A timer of a stopped process."""

    def cancel(self) -> None:
        """Do nothing: the timer never fires."""


class StoppedClock:
    """A clock that returns the time and fires no timers."""

    def __init__(self, clock: Clock) -> None:
        self.now = clock.now
        self.ticks = clock.ticks

    def call_later(self, seconds: float, call: Callable[[], None]) -> Timer:
        return _NeverFires()


class DeafStore:
    """A store that does not report what others have written."""

    def __init__(self, store: Store, unheard: list[Callable[[], None]]) -> None:
        self._unheard = unheard
        self._store = store
        self.workspace = store.workspace
        self.read = store.read
        self.browse = store.browse
        self.subscribe = store.subscribe

    def tx(self, op: str, decide: Decide[T], wants: Wants = NOTHING) -> Awaitable[Decided[T]]:
        return self._store.tx(op, _elsewhere(decide), wants)

    def listen(self, ring: Callable[[], None]) -> Callable[[], None]:
        self._unheard.append(ring)

        def stop() -> None:
            if ring in self._unheard:
                self._unheard.remove(ring)

        return stop


def _elsewhere(decide: Decide[T]) -> Decide[T]:
    """Return a decision whose heartbeat claims another machine: on this one, every process could see that it is
    alive."""

    def decided(view: View) -> Decision[T]:
        decision = decide(view)
        beat = decision.beat
        return decision if beat is None else decision._replace(beat=beat._replace(home="another machine"))

    return decided


class DeafDatabase:
    """A database whose stores report nothing until `wake`, when the process notices what others have done."""

    def __init__(self, database: Database) -> None:
        self._unheard: list[Callable[[], None]] = []
        self._database = database
        self.lasting = database.lasting
        self.server_time = database.server_time
        self.workspaces = database.workspaces
        self.contents = database.contents
        self.key = database.key
        self.faulty = database.faulty
        self.remarks = database.remarks
        self.advice = database.advice
        self.close = database.close

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def store(self, workspace: str) -> Any:
        return DeafStore(self._database.store(workspace), self._unheard)

    def wake(self) -> None:
        """Notify all listeners."""
        for ring in list(self._unheard):
            ring()

    def dispatcher(self, workspace: str) -> Dispatcher | None:
        return None

    def pulse(self, workspace: str) -> Pulse | None:
        return None


class Zombie:
    """The parts of a runtime that all others consider dead: it writes no heartbeat, receives nothing, and claims to be
    on another machine.

    `Runtime(Zombie.database("team.db"), system=System(clock=Zombie.clock(clock)))` is such a process. Give it work, let
    time pass for the others, and check that nothing it does afterwards counts.
    """

    @staticmethod
    def database(store: str | Path) -> DeafDatabase:
        """Return a database that reports nothing to this process. Close it, like every database that you open."""
        return DeafDatabase(database_at(store))

    @staticmethod
    def clock(clock: Clock) -> StoppedClock:
        """Return a clock that follows another but fires no timers: no heartbeat is written."""
        return StoppedClock(clock)
