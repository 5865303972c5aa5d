"""A clock under the test's control: time passes only when the test says so, and then the timers fire."""

import asyncio
import heapq
from collections.abc import Awaitable, Callable
from itertools import count
from pathlib import Path
from typing import Any

import anyio

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
    """Advance the clock step by step until a condition is true. Between two steps the tasks that were woken run, and
    stores answer: a store on disk works in threads, and this clock does not wait for threads."""
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
