"""Retrying writes while the store is busy or unreachable, and waiting for a store at the start."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine
from typing import Final, Protocol, TypeVar

from remit.core.times import PAUSES, SECOND
from remit.errors import StoreError
from remit.ports import Clock

T = TypeVar("T")

REMIND: Final = 30 * SECOND  # between two equal warnings

_log = logging.getLogger("remit")


class Releasable(Protocol):
    """The life of an attempt. `hurries` is true once the attempt is being released; then failed writes are no longer
    retried."""

    hurries: bool


class Insisting:
    """Retries a write while the store is busy, unreachable or out of disk space.

    It gives up after `seconds`, when the task is requeued, or when the caller is cancelled. `tasks` are the tasks whose
    end is being written; `unkept` are those whose end could not be written, and which the caretaker requeues or fails.
    """

    def __init__(self, clock: Clock, seconds: float) -> None:
        self.tasks: set[str] = set()
        self.unkept: set[str] = set()
        self._clock = clock
        self._limit = round(seconds * SECOND)
        self._pausing: set[asyncio.Event] = set()
        self._beside: set[asyncio.Task[object]] = set()

    async def insist(self, life: Releasable, what: str, write: Callable[[], Awaitable[T]]) -> T:
        """Call `write`, and retry it if the store fails. `what` names the data in the warning, such as `the end of task
        b7k2`."""
        try:
            return await write()
        except StoreError as error:
            return await self.again(life, what, write, error)

    def go_on(self, writing: Coroutine[object, object, object]) -> None:
        """Run `writing`, a write with its retries, in the background, for a caller that cannot wait."""
        task = asyncio.get_running_loop().create_task(writing)
        self._beside.add(task)
        task.add_done_callback(self._forget)

    def hurry(self) -> None:
        """Retry all pending writes now; for tasks that are being released this is the last try."""
        for event in self._pausing:
            event.set()

    async def again(self, life: Releasable, what: str, write: Callable[[], Awaitable[T]], error: StoreError) -> T:
        """Retry `write` after `error`. Raise the latest error if a retry cannot help, if the time limit is over, or if
        the attempt is being released."""
        if not error.retryable:
            raise error
        began = now = self._clock.ticks()
        told = now - REMIND
        tries = 0
        while not life.hurries and now - began < self._limit:
            if now - told >= REMIND:
                told = now
                _log.warning("%s could not be recorded, trying again: %s", what, error)
            await self._pause(PAUSES[min(tries, len(PAUSES) - 1)])
            tries += 1
            try:
                return await write()
            except StoreError as again:
                if not again.retryable:
                    raise
                error = again
            now = self._clock.ticks()
        raise error

    async def _pause(self, seconds: float) -> None:
        event = asyncio.Event()
        self._pausing.add(event)
        try:
            await _until(self._clock, seconds, event)
        finally:
            self._pausing.discard(event)

    def _forget(self, task: asyncio.Task[object]) -> None:
        self._beside.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            _log.warning("the end of a task could not be recorded: %s", error)


async def until_there(clock: Clock, open_: Callable[[], Awaitable[T]]) -> T:
    """Open a store. Wait if it is not available yet, because its server is starting or another process holds it."""
    tries, told = 0, clock.ticks() - REMIND
    while True:
        try:
            return await open_()
        except StoreError as error:
            if not error.retryable:
                raise
            if clock.ticks() - told >= REMIND:
                told = clock.ticks()
                _log.warning("the store is not there yet, waiting for it: %s", error)
        await _until(clock, PAUSES[min(tries, len(PAUSES) - 1)], asyncio.Event())
        tries += 1


async def _until(clock: Clock, seconds: float, event: asyncio.Event) -> None:
    """Wait for an event, at most this many seconds."""
    timer = clock.call_later(seconds, event.set)
    try:
        await event.wait()
    finally:
        timer.cancel()
