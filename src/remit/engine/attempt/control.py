"""What stops a task, and takes its rights: being cancelled, being put back, or running out of time."""

from __future__ import annotations

import asyncio
from contextlib import AbstractContextManager
from typing import Final, Generic

from anyio import CancelScope

from remit.core.times import SECOND
from remit.engine.attempt.calls import Call
from remit.engine.attempt.lines import Line, Member
from remit.engine.owners import owners_fault
from remit.engine.timing import call_later, move_on_after
from remit.ports import Clock, Timer

_NEVER: Final = 1 << 62  # in ticks


class Control(Generic[Member]):
    """What stops a task, whoever holds it: its cancel scope, its timer, and why it was stopped.

    From the moment that it is stopped, or its time is up, it has no rights any more, whatever its code does meanwhile.
    """

    __slots__ = (
        *(
            "above",
            "apart",
            "calls",
            "clock",
            "ends",
            "expired",
            "failure",
            "final",
            "line",
            "own",
            "released",
            "rests",
            "scope",
        ),
        *("asking", "hard", "left", "limit", "seconds", "short", "sooner", "stood_still", "stopped", "waits"),
    )

    def __init__(self) -> None:
        self.line: Line[Member] | None = None  # known from the moment it is alive
        self.scope = CancelScope()
        self.above: Control[Member] | None = None  # of the task that waits for this one
        self.clock: Clock | None = None
        self.ends = 0  # when its time is up, in ticks of that clock
        self.own = 0  # when it would be if its asker had more time
        self.seconds: float | None = None  # how long its own timer runs; None if its asker's own ends it in time
        self.final = True  # whether that is until the deadline, and not only the time of one attempt
        self.short = False  # whether it is less than an agent has when nobody says anything
        self.stopped = ""
        self.failure: Exception | None = None  # what it fails with, whatever its agent makes of it
        self.expired = False
        self.released = False  # whether it goes back into the queue when it has stopped
        self.sooner: Timer | None = None  # runs if its time was shortened on the way
        self.waits = 0  # for how many tasks it waits right now
        self.apart = 0  # for how many of these outside its line of work
        self.rests = False  # whether the store says that it waits
        self.hard: int | None = None  # when the deadline is that someone said, in ticks
        self.asking = 0  # how many questions to people are open in it, or below it
        self.left = 0  # how much time it had left when its clock stopped
        self.stood_still = False  # whether that has happened, so that its time on record is not when it ends
        self.limit: move_on_after | None = None  # its own timer
        self.calls: list[Call] = []  # the agent's code that is under way, the innermost last

    def stop(self, why: str) -> None:
        self.stopped = self.stopped or why
        self._cancel()

    def give_up(self, failure: Exception) -> None:
        """Stop it as failed."""
        self.failure = self.failure or failure
        self._cancel()

    def __enter__(self) -> None:
        """Begin a verb of the turn."""

    def __exit__(self, _kind: object, error: BaseException | None, _trace: object) -> None:
        """Fail the task if the verb came upon a function of the owner that raised, whatever its agent makes of that."""
        if error is not None and (fault := owners_fault(error)) is not None:
            self.failure = self.failure or fault
            # Not at once: what is cancelled while its own code runs is taken for cancelled by that code.
            asyncio.get_running_loop().call_soon(self._cancel)

    def release(self) -> None:
        """Stop, and go back into the queue."""
        self.released = True
        self._cancel()

    def shorten(self, clock: Clock, seconds: float) -> None:
        """Shorten the remaining time to this many seconds, if it is longer: a handoff has set a deadline."""
        ends = clock.ticks() + round(max(0.0, seconds) * SECOND)
        self.hard = ends if self.hard is None else min(self.hard, ends)  # for when its clock stands still
        self.own = min(self.own, ends)
        if self.clock is not None and self.ends <= ends:
            return
        self.clock, self.ends, self.seconds, self.final = clock, ends, seconds, True
        self.settle()
        self.sooner = call_later(clock, seconds, self._expire, deadline=True)

    def settle(self) -> None:
        """Forget the shorter time: it has ended."""
        if self.sooner is not None:
            self.sooner.cancel()
            self.sooner = None

    def limited(self, clock: Clock) -> AbstractContextManager[object, bool]:
        """Give the scope to run in, which ends when the task's time is up."""
        if self.seconds is None or self.sooner is not None:  # it was given a timer before it began
            return self.scope
        self.limit = move_on_after(clock, self.seconds, self.scope, self._expire, deadline=self.final)
        return self.limit

    def arm(self) -> None:
        """Give it a timer of its own if it has none, because its asker's is about to stand still."""
        if self.clock is None or self.seconds is not None:
            return
        self.ends, self.final = self.own, self.hard is not None and self.hard <= self.own
        self.seconds = max(0, self.own - self.clock.ticks()) / SECOND
        self._run_for(self.seconds, deadline=self.final)

    def pause(self) -> None:
        """Stop the clock, because a person is asked. A deadline that someone said comes all the same."""
        self.asking += 1
        self.stood_still = True
        if self.asking > 1 or self.clock is None or self.final:
            return
        now = self.clock.ticks()
        self.left, self.ends = max(0, self.ends - now), _NEVER if self.hard is None else self.hard
        self._run_for(None if self.hard is None else max(0, self.hard - now) / SECOND, deadline=True)

    def go_on(self) -> None:
        """Let the clock go on when the last question is answered: with what was left."""
        self.asking -= 1
        if self.asking or self.clock is None or self.final:
            return
        now = self.clock.ticks()
        self.ends = now + self.left if self.hard is None else min(now + self.left, self.hard)
        self.final = self.ends == self.hard
        self._run_for(max(0, self.ends - now) / SECOND, deadline=self.final)

    @property
    def is_over(self) -> bool:
        """Whether it was stopped or its time is up, even if the code that is to notice holds up the loop."""
        if self.stopped or self.released or self.expired or self.failure is not None:
            return True
        return self.seconds is not None and self.clock is not None and self.clock.ticks() >= self.ends

    def is_under(self, other: Control[Member]) -> bool:
        """Whether the other one's task waits for this one's, or for one that does."""
        above = self.above
        while above is not None and above is not other:
            above = above.above
        return above is not None

    def lost(self) -> str:
        """Say why nothing can be done in the task's name any more; nothing if it can."""
        control: Control[Member] | None = self
        while control is not None:
            # As `is_over` says, spelled out: every verb asks this several times.
            if control.stopped or control.released or control.expired or control.failure is not None:
                return control.why
            if control.seconds is not None and control.clock is not None and control.clock.ticks() >= control.ends:
                return control.why
            control = control.above
        return ""

    @property
    def why(self) -> str:
        """Why it is over."""
        if self.stopped:
            return f"it was cancelled: {self.stopped}"
        if self.failure is not None:
            return f"it was given up: {self.failure}"
        return "it went back into the queue" if self.released else "its time is up"

    # -- waiting ---------------------------------------------------------------------------------------------

    @property
    def own_line(self) -> Line[Member]:
        """The line of work that it belongs to."""
        assert self.line is not None  # it is alive
        return self.line

    def step_back(self) -> None:
        """Note that it waits for one more."""
        self.waits += 1
        if self.waits == 1:
            self.own_line.working -= 1

    def step_up(self) -> bool:
        """Note that it waits for one less; tell whether there is more to do: it must take its slot again, or its line
        has nobody left who works."""
        line = self.own_line
        self.waits -= 1
        if self.waits:
            return not line.working and line.queued and not line.rests
        line.working += 1
        return self.rests or (line.rests and line.queued)

    # -- inside ----------------------------------------------------------------------------------------------

    def _run_for(self, seconds: float | None, *, deadline: bool) -> None:
        """Set its timer anew; None for never."""
        if self.limit is not None:
            self.limit.run_for(seconds, deadline=deadline)
            return
        self.settle()
        if seconds is not None and self.clock is not None:
            self.sooner = call_later(self.clock, seconds, self._expire, deadline=deadline)

    def _expire(self) -> None:
        if self.hard is not None and self.clock is not None and self.clock.ticks() >= self.hard:
            self.final = True
        self.expired = True
        self._cancel()

    def _cancel(self) -> None:
        self.scope.cancel()
        for call in self.calls:
            call.stop_soon()
