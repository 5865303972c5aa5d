"""Calling an agent so that it can be left behind: it runs in the task of whoever asked, but is driven step by step.

A task of its own for every call would do the same for twenty times the price.
"""

from __future__ import annotations

import asyncio
import logging
import signal
from asyncio import CancelledError
from collections.abc import Awaitable, Callable, Generator
from dis import opname
from traceback import walk_tb
from types import CodeType, FunctionType
from typing import Any, Final, cast

from remit.ports import Clock, Timer

_AGAIN_SECONDS: Final = 1.0  # between leaving what is inside and leaving what is around it

_log = logging.getLogger("remit")


class LeftBehind(Exception):
    """An agent was cancelled and did not stop; nobody waits for it any more."""


class Call:
    """One call of an agent. Await it for the answer.

    When it is cancelled it has `grace` seconds to stop. After that it is left behind: `LeftBehind` is raised, and
    whatever the agent still does is done without us. `deeper` gives the calls that are under way inside of this one:
    they are left first, since the one that will not stop is one of them.
    """

    __slots__ = ("_answer", "_base", "_clock", "_deeper", "_firm", "_grace", "_left", "_timer", "name", "own", "task")

    def __init__(
        self, name: str, answer: Awaitable[object], clock: Clock, grace: float, deeper: Callable[[Call], list[Call]]
    ) -> None:
        self.name = name
        self.task = cast("asyncio.Task[object]", asyncio.current_task())
        self._answer = answer.__await__()
        self._clock = clock
        self._deeper = deeper
        self._grace = grace
        self._base = self.task.cancelling()
        self.own = 0  # how often the agent's own code has cancelled the task that it runs in
        self._left = False
        self._firm = False  # whether the grace ends in any case
        self._timer: Timer | None = None

    @property
    def is_cancelled(self) -> bool:
        """Whether someone outside of the agent wants the task stopped that it runs in."""
        return self.task.cancelling() > self._base + self.own

    def stop_soon(self, *, firm: bool = True) -> None:
        """Give the agent its grace to stop, from now on; unless it is firm, only as long as the task it runs in stays
        cancelled."""
        self._firm = self._firm or firm
        if self._timer is None:
            self._timer = self._clock.call_later(self._grace, self._grace_is_over)

    def leave(self) -> None:
        """Leave the agent behind at once: wake whoever waits for it."""
        if not self._left:
            self._left = True
            self.task.cancel()

    def __await__(self) -> Generator[Any, Any, object]:
        cancelling, answer = self.task.cancelling, self._answer
        before = self._base
        try:
            waits = answer.send(None)
            while True:
                if (after := cancelling()) > before:
                    self.own += after - before  # nobody but the code that just ran can have done so
                if self._timer is not None and not self._left:
                    self._disarm_if_spared()
                try:
                    value = yield waits
                except GeneratorExit:
                    answer.close()
                    raise
                except BaseException as error:  # noqa: BLE001 - the agent is told, whatever it is
                    before = cancelling()
                    if self._left:
                        self._abandon()
                    if isinstance(error, CancelledError) and self.is_cancelled:
                        self.stop_soon(firm=False)
                    waits = answer.throw(error)
                else:
                    before = cancelling()
                    if self._left:
                        self._abandon()
                    waits = answer.send(value)
        except StopIteration as stop:
            return stop.value
        finally:
            if (after := cancelling()) > before and not self._left:
                self.own += after - before
            if self._timer is not None:
                self._timer.cancel()

    async def forgive_own(self) -> None:
        """Take back what the agent's code did to the task it ran in: whoever asked was not cancelled."""
        try:
            if not self.is_cancelled:
                await asyncio.sleep(0)  # a cancel that has not been delivered yet comes here
        except CancelledError:
            if self.is_cancelled:
                raise
        finally:
            while self.own:
                self.own -= 1
                self.task.uncancel()

    def _disarm_if_spared(self) -> None:
        """Take the grace back if what was cancelled was something inside of the agent, as its own time limits do."""
        if self._firm or self.is_cancelled or self._timer is None:
            return
        self._timer.cancel()
        self._timer = None

    def _grace_is_over(self) -> None:
        self._timer = None
        if deeper := self._deeper(self):
            for call in deeper:
                call.leave()
            self._timer = self._clock.call_later(_AGAIN_SECONDS, self._grace_is_over)
            return
        self.leave()

    def _abandon(self) -> None:
        """Go on without the agent. It is told to close, which ends all that does not insist; the rest runs on."""
        self.task.uncancel()  # our own, which woke us
        _log.warning("agent '%s' was cancelled and did not stop within %g s; it is left behind", self.name, self._grace)
        try:
            self._answer.close()
        except RuntimeError:  # it ignores even that
            _keep(asyncio.get_running_loop().create_task(_run_on(self._answer)))
        except BaseException as error:  # noqa: BLE001 - whatever it says counts for nothing
            _log.debug("agent '%s', left behind, said: %r", self.name, type(error))
        raise LeftBehind(self.name)


_KEPT: Final[set[asyncio.Task[None]]] = set()


def _keep(task: asyncio.Task[None]) -> None:
    """Keep what runs on from being collected, and from being told as an error that nobody looked at."""
    _KEPT.add(task)

    def done(task: asyncio.Task[None]) -> None:
        _KEPT.discard(task)
        if not task.cancelled():
            task.exception()

    task.add_done_callback(done)


class _Rest:
    """What is left of a call, to be awaited by a task of its own."""

    __slots__ = ("_answer",)

    def __init__(self, answer: Generator[Any, Any, object]) -> None:
        self._answer = answer

    def __await__(self) -> Generator[Any, Any, object]:
        return (yield from self._answer)


async def _run_on(answer: Generator[Any, Any, object]) -> None:
    await _Rest(answer)


def is_interrupt(error: BaseException) -> bool:
    """Whether this is a person's Ctrl-C and not an agent's own `raise KeyboardInterrupt`: an agent's comes from a raise
    statement, a person's from the handler of the signal or from between any two instructions."""
    if not isinstance(error, KeyboardInterrupt):
        return False
    frames = list(walk_tb(error.__traceback__))
    if not frames:
        return True
    code, at = frames[-1][0].f_code, _last_instruction(error)
    handler = signal.getsignal(signal.SIGINT)
    handlers = {_code(handler), _code(getattr(handler, "func", None))}
    return code in handlers or opname[code.co_code[at]] not in {"RAISE_VARARGS", "RERAISE"}


def _last_instruction(error: BaseException) -> int:
    trace = error.__traceback__
    assert trace is not None
    while trace.tb_next is not None:
        trace = trace.tb_next
    return trace.tb_lasti


def _code(handler: object) -> CodeType | None:
    """Give the code of a function or a method."""
    function = getattr(handler, "__func__", handler)
    return function.__code__ if isinstance(function, FunctionType) else None
