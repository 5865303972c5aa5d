"""Calling an agent so that it can be abandoned. It runs in the caller's asyncio task, but is driven step by step, so
that an agent that stops when cancelled costs nothing extra."""

from __future__ import annotations

import asyncio
import logging
import signal
from asyncio import CancelledError
from collections.abc import Awaitable, Callable, Generator
from dis import opname
from functools import partial
from traceback import walk_tb
from types import CodeType, FunctionType
from typing import Any, Final, NoReturn, cast

from anyio import CancelScope

from remit.core.records import NamedTuple
from remit.engine.traces import is_cancelled
from remit.ports import Clock, Timer

_AGAIN_SECONDS: Final = 1.0  # between abandoning an inner call and the call around it

_log = logging.getLogger("remit")


class LeftBehind(Exception):
    """An agent was cancelled, did not stop, and was abandoned."""


class Leaving(NamedTuple):
    """The settings for abandoning an agent: the clock, the grace period in seconds, and `deeper`. `deeper` returns the
    running calls inside a call. These are abandoned first, because one of them may be the call that does not stop."""

    clock: Clock
    grace: float
    deeper: Callable[[Call], list[Call]]


class Call:
    """One call of an agent, in a cancel scope. Await it for the answer.

    When it is cancelled, the agent has a grace period to stop. After that it is abandoned: `LeftBehind` is raised, and
    the agent's later actions have no effect here.
    """

    __slots__ = (
        *("_agent", "_answer", "_base", "_firm", "_groups", "_leaving", "_left", "_scope", "_timer"),
        *("name", "own", "task"),
    )

    def __init__(self, name: str, answer: Awaitable[object], scope: CancelScope, leaving: Leaving) -> None:
        self.name = name
        self.task = cast("asyncio.Task[object]", asyncio.current_task())
        self.own = 0  # how often the agent's own code has cancelled its asyncio task
        self._agent = answer
        self._answer = answer.__await__()
        self._scope = scope
        self._leaving = leaving
        self._base = self.task.cancelling()
        self._left = False
        self._firm = False  # whether the grace period ends in any case
        self._timer: Timer | None = None
        self._groups: tuple[asyncio.TaskGroup, ...] = ()  # the agent's own that have cancelled its task

    @property
    def is_cancelled(self) -> bool:
        """Whether code outside of the agent has cancelled its asyncio task."""
        return self.task.cancelling() > self._base + self.own

    def stop_soon(self, *, firm: bool = True) -> None:
        """Start the grace period after which the agent is abandoned. Unless `firm`, cancel the period if the asyncio
        task is no longer being cancelled."""
        self._firm = self._firm or firm
        if self._timer is None:
            self._timer = self._leaving.clock.call_later(self._leaving.grace, self._grace_is_over)

    def leave(self) -> None:
        """Abandon the agent at once: wake the caller."""
        if not self._left:
            self._left = True
            self.task.cancel()

    def __await__(self) -> Generator[Any, Any, object]:
        cancelling, answer = self.task.cancelling, self._answer
        before = self._base
        try:
            # Drive the agent's coroutine by hand, as `yield from` would, to see after each step whether its own code
            # has cancelled this asyncio task.
            waits = answer.send(None)
            while True:
                if cancelling() != before or self._timer is not None:
                    self._stepped(before)
                value = error = None
                try:
                    value = yield waits
                except GeneratorExit:
                    answer.close()
                    raise
                except BaseException as thrown:  # noqa: BLE001 - any exception is thrown into the agent
                    error = thrown
                before = cancelling()
                waits = answer.send(value) if error is None and not self._left else self._throw(error)
        except StopIteration as stop:
            return stop.value
        finally:
            if not self._left and cancelling() != before:
                self._stepped(before)
            if self._timer is not None:
                self._timer.cancel()

    def _stepped(self, before: int) -> None:
        """Count the cancellations that the agent's own code just requested on its asyncio task. Apart from signals, no
        other code ran in this step.

        Stop the grace period if the cancellation came from inside the agent, for example from its own timeout.
        """
        after = self.task.cancelling()
        own = self.own + max(0, after - before - _interrupts(self.task)) if after > before else self.own
        self.own = min(own, max(0, after - self._base))  # fewer if it called uncancel()
        if self._timer is not None and not (self._firm or self._left or self.is_cancelled):
            self._timer.cancel()
            self._timer = None

    def _throw(self, error: BaseException | None) -> Any:
        """Throw an error into the agent, unless it is abandoned."""
        if self._left or error is None:
            self._abandon()
        elif isinstance(error, CancelledError) and self.is_cancelled:
            group = _group_at_end(self._agent, self.task)
            if group is not None and group not in self._groups:
                self._groups = (*self._groups, group)
                self.own += 1
            if self.is_cancelled:
                self.stop_soon(firm=False)
        return self._answer.throw(error)

    async def forgive_own(self) -> None:
        """Undo the cancellations that the agent's own code requested on its asyncio task, so that they do not cancel
        the caller. If a cancellation from outside the agent is delivered meanwhile, raise it."""
        try:
            if not self.is_cancelled:
                await asyncio.sleep(0)  # a pending cancellation is delivered here
        except CancelledError:
            if self.is_cancelled:
                raise
        finally:
            while self.own:
                self.own -= 1
                self.task.uncancel()

    def _grace_is_over(self) -> None:
        self._timer = None
        if not (self._firm or self.is_cancelled):
            return
        if deeper := self._leaving.deeper(self):
            for call in deeper:
                call.leave()
            self._timer = self._leaving.clock.call_later(_AGAIN_SECONDS, self._grace_is_over)
            return
        self.leave()

    def _abandon(self) -> NoReturn:
        """Continue without the agent, and raise `LeftBehind`. First throw another CancelledError into the agent; if the
        agent ignores that too, let it run on in a detached asyncio task."""
        self.task.uncancel()  # undo our own cancel(), which woke us
        grace = self._leaving.grace
        _log.warning("agent '%s' was cancelled and did not stop within %g s; it is left behind", self.name, grace)
        try:
            waits = self._answer.throw(CancelledError("left behind"))
        except BaseException as error:  # noqa: BLE001 - its result is ignored
            _log.debug("agent '%s', left behind, ended with %s", self.name, type(error).__name__)
        else:
            _leave_scopes(self._scope)
            _keep(asyncio.get_running_loop().create_task(_run_on(self._answer, waits)))
        raise LeftBehind(self.name)


def _leave_scopes(outer: CancelScope) -> None:
    """Exit the cancel scopes inside `outer` that the abandoned agent has entered and not exited: they belong to the
    current asyncio task, which continues without the agent."""
    inner: list[CancelScope] = []
    here = CancelScope()
    with here:  # entered only to find the enclosing scope
        pass
    scope: CancelScope | None = getattr(here, "_parent_scope", outer)
    while scope is not None and scope is not outer:
        inner.append(scope)
        scope = getattr(scope, "_parent_scope", None)
    for scope in inner:
        scope.__exit__(None, None, None)


_KEPT: Final[set[asyncio.Task[None]]] = set()


def _keep(task: asyncio.Task[None]) -> None:
    """Keep a reference to the detached task, and retrieve its exception, so that asyncio does not report it."""
    _KEPT.add(task)

    def done(task: asyncio.Task[None]) -> None:
        _KEPT.discard(task)
        if not task.cancelled():
            task.exception()

    task.add_done_callback(done)


class _Rest:
    """The remaining execution of an abandoned agent, to be awaited by an asyncio task of its own. `waits` is the object
    that the agent last yielded to the event loop."""

    __slots__ = ("_answer", "_waits")

    def __init__(self, answer: Generator[Any, Any, object], waits: object) -> None:
        self._answer = answer
        self._waits = waits

    def __await__(self) -> Generator[Any, Any, None]:
        answer, waits = self._answer, self._waits
        try:
            while True:
                try:
                    value = yield waits
                except BaseException as error:  # noqa: BLE001 - any exception is thrown into the agent
                    waits = answer.throw(error)
                    if isinstance(error, CancelledError) and is_cancelled():  # the loop is closing: stop here
                        _GIVEN_UP.append(answer)
                        return
                else:
                    waits = answer.send(value)
        except StopIteration:
            return


# Kept alive: garbage collection would throw GeneratorExit, which such code ignores too.
_GIVEN_UP: Final[list[Generator[Any, Any, object]]] = []


async def _run_on(answer: Generator[Any, Any, object], waits: object) -> None:
    await _Rest(answer, waits)


_GROUP_ENDS: Final = asyncio.TaskGroup.__aexit__.__code__
_DRIVES: Final = Call.__await__.__code__


def _group_at_end(awaited: object, task: asyncio.Task[object]) -> asyncio.TaskGroup | None:
    """Return the agent's task group that has cancelled this asyncio task to wake itself, or None. A group does this
    when a member fails while the group waits for its members. Before Python 3.13, the group does not undo that
    cancellation."""
    while awaited is not None:
        frame = getattr(awaited, "cr_frame", None) or getattr(awaited, "gi_frame", None)
        if frame is None:
            return None
        if frame.f_code is _GROUP_ENDS:
            group = frame.f_locals["self"]
            requested = getattr(group, "_parent_cancel_requested", False)
            return group if requested and getattr(group, "_parent_task", None) is task else None
        if frame.f_code is _DRIVES:  # a delegation: what it waits for is inside
            awaited = frame.f_locals["self"]._agent  # noqa: SLF001 - of this class
        else:
            awaited = getattr(awaited, "cr_await", None) or getattr(awaited, "gi_yieldfrom", None)
    return None


def _interrupts(task: asyncio.Task[object]) -> int:
    """Return how often Ctrl-C has cancelled this task: at most once, by the handler that `asyncio.run` sets, and at any
    point of the code."""
    handler = signal.getsignal(signal.SIGINT)
    if not isinstance(handler, partial) or handler.keywords.get("main_task") is not task:
        return 0
    runner = getattr(cast("object", handler.func), "__self__", None)
    return 1 if getattr(runner, "_interrupt_count", 0) else 0


def is_interrupt(error: BaseException) -> bool:
    """Whether this is a person's Ctrl-C and not an agent's own `raise KeyboardInterrupt`: an agent's comes from a raise
    statement, a person's from the signal handler or from between two instructions."""
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
    """Return the code object of a function or method, or None."""
    function = getattr(handler, "__func__", handler)
    return function.__code__ if isinstance(function, FunctionType) else None
