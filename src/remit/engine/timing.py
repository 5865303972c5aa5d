"""Time limits that use the clock, so that a test's clock controls them; and context managers."""

import asyncio
from collections.abc import Callable, Coroutine, Generator
from types import TracebackType
from typing import Any, Generic, Self, TypeVar

from anyio import CancelScope

from remit.engine.system import SystemClock
from remit.ports import Clock, Timer

T = TypeVar("T")


def call_later(clock: Clock, seconds: float, call: Callable[[], None], *, deadline: bool) -> Timer:
    """Call a function after this many seconds. If `deadline` is True, time in which the machine sleeps counts too.
    Otherwise only the time in which this process can run counts."""
    if deadline and isinstance(clock, SystemClock):
        return clock.call_later_asleep_too(seconds, call)
    return clock.call_later(seconds, call)


class move_on_after:  # noqa: N801 - used like the function of the same name
    """Cancel the body after this much time, and continue after it; None is no limit."""

    def __init__(
        self,
        clock: Clock,
        seconds: float | None,
        scope: CancelScope | None = None,
        time_is_up: Callable[[], None] | None = None,
        *,
        deadline: bool = False,
    ) -> None:
        self._clock = clock
        self._seconds = seconds
        self._scope = scope if scope is not None else CancelScope()
        self._time_is_up = time_is_up or self._scope.cancel
        self._timer: Timer | None = None
        self._deadline = deadline

    @property
    def ran_out(self) -> bool:
        """Whether the body was cancelled."""
        return self._scope.cancelled_caught

    def run_for(self, seconds: float | None, *, deadline: bool) -> None:
        """Restart the timer: cancel the body after this much time from now; None for never."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if seconds is not None:
            self._timer = call_later(self._clock, seconds, self._time_is_up, deadline=deadline)

    def __enter__(self) -> Self:
        if self._seconds is not None:
            self._timer = call_later(self._clock, self._seconds, self._time_is_up, deadline=self._deadline)
        self._scope.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> bool:
        if self._timer is not None:
            self._timer.cancel()
        return bool(self._scope.__exit__(kind, error, traceback))


class fail_after(move_on_after):  # noqa: N801
    """Cancel the body after this much time, and raise `TimeoutError`."""

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> bool:
        swallowed = super().__exit__(kind, error, traceback)
        if self.ran_out:
            raise TimeoutError
        return swallowed


class shielded(Generic[T]):  # noqa: N801 - awaited like a function
    """Await a coroutine that must not be interrupted by the cancel scopes around it.

    A shielding scope is created only if the coroutine has to wait. A coroutine that does not wait cannot be cancelled,
    and a write in memory is faster than the creation of a scope."""

    def __init__(self, coroutine: Coroutine[Any, Any, T]) -> None:
        self._coroutine = coroutine

    def __await__(self) -> Generator[Any, Any, T]:
        coroutine = self._coroutine
        try:
            waits = coroutine.send(None)
        except StopIteration as done:
            return done.value
        with CancelScope(shield=True):  # noqa: ASYNC100 - it waits where it yields
            return (yield from _rest(coroutine, waits))


def _rest(coroutine: Coroutine[Any, Any, T], waits: object) -> Generator[Any, Any, T]:
    """Run a coroutine to its end, after its first step has yielded `waits`, and return its result."""
    try:
        while True:
            try:
                value = yield waits
            except GeneratorExit:
                coroutine.close()
                raise
            except BaseException as error:  # noqa: BLE001 - any exception is thrown into the coroutine
                waits = coroutine.throw(error)
            else:
                waits = coroutine.send(value)
    except StopIteration as done:
        return done.value


async def together(do: Callable[[int], Coroutine[Any, Any, None]], count: int) -> None:
    """Call a function with each number below `count`, all concurrently. If one call raises, the others are cancelled,
    and the errors are raised as a group.

    A TaskGroup of asyncio costs a quarter of one of anyio. Its members must not raise: up to Python 3.12 the task
    around it would count as cancelled from then on.
    """
    errors: list[Exception] = []
    tasks: list[asyncio.Task[None]] = []

    async def one(number: int) -> None:
        try:
            await do(number)
        except Exception as error:  # noqa: BLE001 - it is raised below
            errors.append(error)
            for task in tasks:
                if task is not asyncio.current_task():
                    task.cancel()

    async with asyncio.TaskGroup() as group:
        tasks.extend(group.create_task(one(number)) for number in range(count))
    if errors:
        raise ExceptionGroup("unhandled errors of concurrent tasks", errors)


class While:
    """Calls one function before the body and another after it. It can be entered repeatedly, and nested."""

    __slots__ = ("_enter", "_leave")

    def __init__(self, enter: Callable[[], None], leave: Callable[[], None]) -> None:
        self._enter = enter
        self._leave = leave

    def __enter__(self) -> None:
        self._enter()

    def __exit__(self, *_: object) -> None:
        self._leave()


async def paused(clock: Clock, seconds: float) -> None:
    """Wait this many seconds, by the clock."""
    over = asyncio.Event()
    timer = clock.call_later(seconds, over.set)
    try:
        await over.wait()
    finally:
        timer.cancel()
