"""Doing what the life of an attempt decides: its cancel scope, its timer, its place in its line of work."""

from __future__ import annotations

import asyncio
from typing import Generic

from anyio import CancelScope

from remit.core.life import Life, SetTimer
from remit.core.times import SECOND
from remit.engine.attempt.calls import Call
from remit.engine.attempt.lines import Line, Member
from remit.engine.owners import owners_fault
from remit.engine.timing import call_later
from remit.ports import Clock, Timer


class Control(Generic[Member]):
    """Stops an attempt, whoever holds its task. Enter it for a verb of its turn.

    From the moment that it is stopped, or its time is up, it has no rights any more, whatever its code does meanwhile.
    """

    __slots__ = ("_runs", "_timer", "calls", "clock", "first_timer", "life", "line", "scope")

    clock: Clock  # known from the moment its time is limited

    def __init__(self) -> None:
        self.life = Life()
        self.line: Line[Member] | None = None  # known from the moment it is alive
        self.scope = CancelScope()
        self.calls: list[Call] = []  # the agent's code that is under way, the innermost last
        self.first_timer: SetTimer | None = None  # from when it runs
        self._runs = False
        self._timer: Timer | None = None

    def __enter__(self) -> None:
        """Begin a verb of the turn."""

    def __exit__(self, _kind: object, error: BaseException | None, _trace: object) -> None:
        """Fail the task if the verb came upon a function of the owner that raised, whatever its agent makes of that."""
        if error is not None and (fault := owners_fault(error)) is not None and self.life.fail(fault):
            # Not at once: what is cancelled while its own code runs is taken for cancelled by that code.
            asyncio.get_running_loop().call_soon(self._leave_scope)

    def run(self) -> CancelScope:
        """Let its timer run, until `end`. Returns the scope to run in."""
        self._runs = True
        if self.first_timer is not None:
            self.set_timer(self.first_timer)
        return self.scope

    def end(self) -> None:
        """Let its timer go."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def stop(self, why: str) -> None:
        if self.life.cancel(why):
            self._leave_scope()

    def give_up(self, failure: Exception) -> None:
        """Stop it as failed."""
        if self.life.fail(failure):
            self._leave_scope()

    def release(self) -> None:
        """Stop it, and put it back into the queue."""
        if self.life.release():
            self._leave_scope()

    def shorten(self, seconds: float) -> None:
        """Set a deadline in so many seconds, unless its time is up before that."""
        self.set_timer(self.life.shorten(self.clock.ticks(), round(seconds * SECOND)))

    def arm(self) -> None:
        """Give it a timer of its own if it has none, because its asker's is about to stand still."""
        self.set_timer(self.life.arm(self.clock.ticks()))

    def pause(self) -> None:
        """Stop its clock, because a person is asked."""
        self.set_timer(self.life.ask(self.clock.ticks()))

    def go_on(self) -> None:
        """Let its clock go on: the person has answered."""
        self.set_timer(self.life.answered(self.clock.ticks()))

    def set_timer(self, timer: SetTimer | None) -> None:
        """Set its timer anew, if there is something to set; from when it runs."""
        if timer is None:
            return
        if not self._runs:
            self.first_timer = timer
            return
        self.end()
        if timer.seconds is not None:
            self._timer = call_later(self.clock, timer.seconds, self._expire, deadline=timer.deadline)

    @property
    def has_stopped(self) -> bool:
        """Whether it was stopped or its time is up."""
        return self.life.has_stopped(self.clock.ticks())

    def lost(self) -> str:
        """Say why nothing can be done in the task's name any more; nothing if something can."""
        return self.life.lost(self.clock.ticks())

    # -- waiting ---------------------------------------------------------------------------------------------

    @property
    def own_line(self) -> Line[Member]:
        """The line of work that it belongs to."""
        assert self.line is not None  # it is alive
        return self.line

    def step_back(self) -> None:
        """Wait for one more task."""
        if self.life.wait():
            line = self.line
            assert line is not None  # it is alive
            line.working -= 1

    def step_up(self) -> bool:
        """Wait for one task less. Return whether there is more to do: it must take its slot again, or its line has
        nobody left who works."""
        line = self.line
        assert line is not None  # it is alive
        if not self.life.go_on():
            return not line.working and line.queued and not line.rests
        line.working += 1
        return self.life.rests or (line.rests and line.queued)

    # -- inside ----------------------------------------------------------------------------------------------

    def _expire(self) -> None:
        if self.life.expire(self.clock.ticks()):
            self._leave_scope()

    def _leave_scope(self) -> None:
        self.scope.cancel()
        for call in self.calls:
            call.stop_soon()
