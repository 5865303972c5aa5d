"""Lines of work and their slots; and carrying out what the life of an attempt decides: scope, timer, slot."""

from __future__ import annotations

import asyncio
from collections import deque
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
    """The hands of one worker: how many lines of work it carries at a time. Who had one before and wants it again comes
    before whatever is new."""

    __slots__ = ("_returning", "held", "most")

    def __init__(self, most: int) -> None:
        self.most = most
        self.held = 0
        self._returning: deque[asyncio.Event] = deque()

    def free(self) -> int:
        """Tell how many more may be taken by what is new."""
        return self.most - self.held - len(self._returning)

    def take(self) -> None:
        self.held += 1

    def give(self) -> None:
        """Give a hand back: to whoever has waited longest for one."""
        self.held -= 1
        while self._returning and self.held < self.most:
            self.held += 1
            self._returning.popleft().set()

    async def take_again(self) -> None:
        """Wait for a hand. Whoever is cancelled meanwhile has one all the same: it goes on, if only to stop."""
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
    """One line of work. `hands` are those of the worker that claimed it; None for a person's run, which needs none.

    `working` counts its members that do not wait. `rests` says that nobody in it works and its slot was given up.
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
        """Whether it came out of the queue, and so has a slot."""
        return self.hands is not None

    def enter(self, task: str, member: Member) -> None:
        """Take in a task that begins, or the same one in other hands."""
        if task not in self.members:
            self.working += 1
        self.members[task] = member

    def leave(self, task: str, *, waits: bool, last: bool) -> None:
        """Forget a task that is over; with the `last`, the one out of the queue, the line is over too."""
        if self.members.pop(task, None) is not None and not waits:
            self.working -= 1
        if last:
            self.let_go()

    def let_go(self) -> None:
        """Give up the hand."""
        if self._holds and self.hands is not None:
            self._holds = False
            self.hands.give()

    async def hold(self) -> None:
        """Take a hand again, unless another member has done so already."""
        hands = self.hands
        if self._holds or hands is None:
            return
        try:
            await hands.take_again()
        finally:
            if self._holds:  # another member was faster
                hands.give()
            self._holds = True


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
