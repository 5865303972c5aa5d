"""Calling an agent so that it can be left behind: it runs in the task of whoever asked, but is driven step by step, so
that nothing is paid for it by those that stop when they are told to."""

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
from typing import Any, Final, NamedTuple, NoReturn, cast

from anyio import CancelScope

from remit.ports import Clock, Timer

_AGAIN_SECONDS: Final = 1.0  # between leaving what is inside and leaving what is around it

_log = logging.getLogger("remit")


class LeftBehind(Exception):
    """An agent was cancelled and did not stop; nobody waits for it any more."""


class Leaving(NamedTuple):
    """How agents are left behind: after how many seconds of grace. `deeper` gives the calls under way inside of one:
    they are left first, since the one that will not stop is one of them."""

    clock: Clock
    grace: float
    deeper: Callable[[Call], list[Call]]


class Call:
    """One call of an agent, in a cancel scope. Await it for the answer.

    When it is cancelled it has its grace to stop. After that it is left behind: `LeftBehind` is raised, and whatever
    the agent still does is done without us.
    """

    __slots__ = ("_answer", "_base", "_firm", "_leaving", "_left", "_scope", "_timer", "name", "own", "task")

    def __init__(self, name: str, answer: Awaitable[object], scope: CancelScope, leaving: Leaving) -> None:
        self.name = name
        self.task = cast("asyncio.Task[object]", asyncio.current_task())
        self.own = 0  # how often the agent's own code has cancelled the task that it runs in
        self._answer = answer.__await__()
        self._scope = scope
        self._leaving = leaving
        self._base = self.task.cancelling()
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
            self._timer = self._leaving.clock.call_later(self._leaving.grace, self._grace_is_over)

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
                if cancelling() != before or self._timer is not None:
                    self._stepped(before)
                value = error = None
                try:
                    value = yield waits
                except GeneratorExit:
                    answer.close()
                    raise
                except BaseException as thrown:  # noqa: BLE001 - the agent is told, whatever it is
                    error = thrown
                before = cancelling()
                waits = answer.send(value) if error is None and not self._left else self._told(error)
        except StopIteration as stop:
            return stop.value
        finally:
            if not self._left:
                self._stepped(before)
            if self._timer is not None:
                self._timer.cancel()

    def _stepped(self, before: int) -> None:
        """Note what the agent's code that just ran did to the task it runs in: but for a signal, nobody else can have
        cancelled it meanwhile.

        Its grace is taken back if what was cancelled was something inside of the agent, as its own time limits do.
        """
        after = self.task.cancelling()
        own = self.own + max(0, after - before - _interrupts(self.task)) if after > before else self.own
        self.own = min(own, max(0, after - self._base))  # less if it was taken back
        if self._timer is not None and not (self._firm or self._left or self.is_cancelled):
            self._timer.cancel()
            self._timer = None

    def _told(self, error: BaseException | None) -> Any:
        """Tell the agent of an error, unless it is left behind."""
        if self._left or error is None:
            self._abandon()
        elif isinstance(error, CancelledError) and self.is_cancelled:
            self.stop_soon(firm=False)
        return self._answer.throw(error)

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
        """Go on without the agent. It is told once more, whatever shields it; if it ignores that too, it runs on in a
        task of its own."""
        self.task.uncancel()  # our own, which woke us
        grace = self._leaving.grace
        _log.warning("agent '%s' was cancelled and did not stop within %g s; it is left behind", self.name, grace)
        try:
            waits = self._answer.throw(CancelledError("left behind"))
        except BaseException as error:  # noqa: BLE001 - whatever it says counts for nothing
            _log.debug("agent '%s', left behind, ended with %s", self.name, type(error).__name__)
        else:
            _leave_scopes(self._scope)
            _keep(asyncio.get_running_loop().create_task(_run_on(self._answer, waits)))
        raise LeftBehind(self.name)


def _leave_scopes(outer: CancelScope) -> None:
    """Leave the cancel scopes that code left behind has not left itself: those are of the task that it ran in."""
    inner: list[CancelScope] = []
    here = CancelScope()
    with here:  # only to see where we are
        pass
    scope: CancelScope | None = getattr(here, "_parent_scope", outer)
    while scope is not None and scope is not outer:
        inner.append(scope)
        scope = getattr(scope, "_parent_scope", None)
    for scope in inner:
        scope.__exit__(None, None, None)


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
    """What is left of a call, to be awaited by a task of its own; `waits` is what it waits for."""

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
                except BaseException as error:  # noqa: BLE001 - the agent is told, whatever it is
                    waits = answer.throw(error)
                    if isinstance(error, CancelledError) and _is_cancelled():  # its loop is closed: it ends here
                        _GIVEN_UP.append(answer)
                        return
                else:
                    waits = answer.send(value)
        except StopIteration:
            return


# Kept, because to be collected is one more thing that such code would ignore.
_GIVEN_UP: Final[list[Generator[Any, Any, object]]] = []


def _is_cancelled() -> bool:
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


async def _run_on(answer: Generator[Any, Any, object], waits: object) -> None:
    await _Rest(answer, waits)


def _interrupts(task: asyncio.Task[object]) -> int:
    """Tell how often a person's Ctrl-C has cancelled this task: at most once, by the handler that `asyncio.run` sets,
    and then while any code runs."""
    handler = signal.getsignal(signal.SIGINT)
    if not isinstance(handler, partial) or handler.keywords.get("main_task") is not task:
        return 0
    runner = getattr(cast("object", handler.func), "__self__", None)
    return 1 if getattr(runner, "_interrupt_count", 0) else 0


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
