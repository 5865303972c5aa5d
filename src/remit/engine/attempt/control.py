"""Lines of work and their worker slots; and carrying out what `Life` decides: cancel scope, timer, slot."""

from __future__ import annotations

import asyncio
from collections import deque
from functools import cache
from typing import Generic, TypeVar

from anyio import CancelScope

from remit.core.life import Life, SetTimer
from remit.core.times import SECOND
from remit.engine.attempt.calls import Call
from remit.engine.timing import call_later
from remit.engine.traces import owners_fault
from remit.ports import Clock, Timer

Member = TypeVar("Member")


class Hands:
    """The slots of one worker: the number of lines of work that it runs at once. A line that wants its slot back comes
    before new ones."""

    __slots__ = ("_returning", "held", "most")

    def __init__(self, most: int) -> None:
        self.most = most
        self.held = 0
        self._returning: deque[asyncio.Event] = deque()

    def free(self) -> int:
        """Return the number of free slots. Slots that resuming lines wait for do not count as free."""
        return self.most - self.held - len(self._returning)

    def take(self) -> None:
        self.held += 1

    def give(self) -> None:
        """Release a slot and pass it to the line that has waited longest."""
        self.held -= 1
        while self._returning and self.held < self.most:
            self.held += 1
            self._returning.popleft().set()

    async def take_again(self) -> None:
        """Wait for a slot. If the caller is cancelled meanwhile, take a slot anyway, even beyond the limit: the caller
        needs one to shut down."""
        if self.held < self.most and not self._returning:
            self.held += 1
            return
        turn = asyncio.Event()
        self._returning.append(turn)
        try:
            await turn.wait()
        except BaseException:
            if not turn.is_set():
                self._returning.remove(turn)
                self.held += 1
            raise


class Line(Generic[Member]):
    """A queued task (or a foreground run) with everything it delegates in this process. `hands` is the slot pool of the
    worker; None for a foreground run, which needs no slot.

    `working` counts the tasks that are not waiting. `rests` is True while all tasks wait and the slot is released.
    """

    __slots__ = ("_holds", "hands", "members", "rests", "working")

    def __init__(self, hands: Hands | None) -> None:
        self.hands = hands
        self.members: dict[str, Member] = {}
        self.working = 0
        self.rests = False
        self._holds = hands is not None
        if hands is not None:
            hands.take()

    @property
    def queued(self) -> bool:
        """Whether the line came from the queue and therefore needs a worker slot."""
        return self.hands is not None

    def enter(self, task: str, member: Member) -> None:
        """Add a task that starts. After a handoff, replace the task's member with that of its new turn."""
        if task not in self.members:
            self.working += 1
        self.members[task] = member

    def leave(self, task: str, *, waits: bool, last: bool) -> None:
        """Remove a task that has ended; `waits` is whether it was waiting and so was not counted as working. If it is
        the `last`, the queued task itself, release the worker slot."""
        if self.members.pop(task, None) is not None and not waits:
            self.working -= 1
        if last:
            self.let_go()

    def let_go(self) -> None:
        """Release this line's worker slot."""
        if self._holds and self.hands is not None:
            self._holds = False
            self.hands.give()

    async def hold(self) -> None:
        """Wait for a worker slot for this line, unless it needs none or already holds one. If another task of the line
        gets one meanwhile, release the second."""
        hands = self.hands
        if self._holds or hands is None:
            return
        try:
            await hands.take_again()
        finally:
            if self._holds:  # another task of the line was faster
                hands.give()
            self._holds = True


@cache
def _scope_type() -> type[CancelScope]:
    """Return anyio's class of cancel scopes on asyncio, cached. Creating a scope from this class is faster than
    `CancelScope()`, which looks the class up and initializes each scope twice."""
    return type(CancelScope())


class Control(Generic[Member]):
    """Stops an attempt at a task, across all its handoffs. Use it as a context manager around a verb of the turn.

    After the attempt was stopped or its time is up, it may do nothing more, whatever its code does."""

    __slots__ = ("_runs", "_timer", "calls", "clock", "first_timer", "life", "line", "scope")

    clock: Clock  # set when its time is limited

    def __init__(self) -> None:
        self.life = Life()
        self.line: Line[Member] | None = None  # set when it starts
        self.scope = _scope_type()()
        self.calls: list[Call] = []  # running calls of the agent's code, the innermost last
        self.first_timer: SetTimer | None = None  # set when `run` starts it
        self._runs = False
        self._timer: Timer | None = None

    def __enter__(self) -> None:
        """Start a verb of the turn."""

    def __exit__(self, _kind: object, error: BaseException | None, _trace: object) -> None:
        """Fail the task if a function of the owner raised during the verb, whatever the agent does with the error."""
        if error is not None and (fault := owners_fault(error)) is not None and self.life.fail(fault):
            # Not at once: a cancellation while the agent's code runs would be counted as that code's own.
            asyncio.get_running_loop().call_soon(self._leave_scope)

    def run(self) -> CancelScope:
        """Start the timer. Return the cancel scope to run in."""
        self._runs = True
        if self.first_timer is not None:
            self.set_timer(self.first_timer)
        return self.scope

    def end(self) -> None:
        """Cancel the timer."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def stop(self, why: str) -> None:
        if self.life.cancel(why):
            self._leave_scope()

    def give_up(self, failure: Exception) -> None:
        """Stop the attempt as failed."""
        if self.life.fail(failure):
            self._leave_scope()

    def release(self) -> None:
        """Stop the attempt and requeue the task."""
        if self.life.release():
            self._leave_scope()

    def shorten(self, seconds: float) -> None:
        """Set a deadline in so many seconds, unless the attempt ends before that."""
        self.set_timer(self.life.shorten(self.clock.ticks(), round(seconds * SECOND)))

    def arm(self) -> None:
        """Start a timer for this attempt if it relied on its asker's timer, because that one is about to stop."""
        self.set_timer(self.life.arm(self.clock.ticks()))

    def pause(self) -> None:
        """Stop the attempt's clock, because a person is asked."""
        self.set_timer(self.life.ask(self.clock.ticks()))

    def go_on(self) -> None:
        """Restart the attempt's clock: the person has answered."""
        self.set_timer(self.life.answered(self.clock.ticks()))

    def set_timer(self, timer: SetTimer | None) -> None:
        """Replace the running timer with the given one; if it has no seconds, only cancel the old one. None changes
        nothing. Before `run`, only remember it as the timer to start."""
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
        """Whether the attempt was stopped or its time is up."""
        return self.life.has_stopped(self.clock.ticks())

    def why_stopped(self) -> str:
        """Return why the attempt may not act any more, or "" if it may."""
        return self.life.why_stopped(self.clock.ticks())

    # -- waiting ---------------------------------------------------------------------------------------------

    @property
    def own_line(self) -> Line[Member]:
        """The line of work that the attempt belongs to."""
        assert self.line is not None  # a live task has a line
        return self.line

    def step_back(self) -> None:
        """Count one more wait of this task. When it is the first, the line counts the task as not working."""
        if self.life.wait():
            line = self.line
            assert line is not None  # a live task has a line
            line.working -= 1

    def step_up(self) -> bool:
        """Count one wait of this task fewer. When it was the last, the line counts the task as working again. Return
        whether the caller must act: take the task's slot again, or release the slot of a line in which no task
        works."""
        line = self.line
        assert line is not None  # a live task has a line
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
