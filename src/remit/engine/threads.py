"""Plain functions as agents: each call runs in a thread of its own, so that it cannot block the event loop. Imported
when the first is registered."""

import concurrent.futures
import inspect
import math
from asyncio import CancelledError
from collections.abc import Callable
from typing import Any

from anyio import CapacityLimiter, create_task_group, to_thread


class ThreadedAgent:
    """An agent function that runs in a thread. Everything else is passed to the wrapped function.

    A cancellation does not reach the thread. The call waits for the thread until the grace period is over; then the
    engine abandons it. Verbs that the thread awaits with `anyio.from_thread.run` are cancelled at once."""

    def __init__(self, function: Callable[[Any], object]) -> None:
        self.function = function

    def __getattr__(self, name: str) -> Any:
        return getattr(self.function, name)

    async def __call__(self, turn: Any) -> object:
        call = _ThreadCall(self.function, turn)
        try:
            # A task of its own: asyncio can cancel the task that waits, and not the thread that it waits for.
            async with create_task_group() as group:
                group.start_soon(call.run)
        except CancelledError:
            if not call.has_ended:
                raise
        answer = call.answer()
        return await answer if inspect.isawaitable(answer) else answer


class _ThreadCall:
    """One call of a function in a thread, with its answer or its error."""

    def __init__(self, function: Callable[[Any], object], turn: Any) -> None:
        self.has_ended = False
        self._function = function
        self._turn = turn
        self._answer: object = None
        self._error: BaseException | None = None

    async def run(self) -> None:
        # Without a limit: a function that delegates keeps its thread while it waits. Tasks are limited, each to one.
        await to_thread.run_sync(self._call, limiter=CapacityLimiter(math.inf))

    def answer(self) -> object:
        """Return what the function returned, or raise what it raised."""
        if self._error is not None:
            raise self._error
        return self._answer

    def _call(self) -> None:
        """Call the function, in its thread. An error is kept: a task group would wrap it."""
        try:
            self._answer = self._function(self._turn)
        except concurrent.futures.CancelledError as error:  # of a verb that was cancelled
            self._error = CancelledError(*error.args)
        except BaseException as error:  # noqa: BLE001 - raised again by `answer`
            self._error = error
        self.has_ended = True
