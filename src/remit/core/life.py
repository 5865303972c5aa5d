"""The life of an attempt in the process that runs it, as one automaton. The diagram in the docs is drawn by running it.

`Life` decides and has no side effects. Each method is an input, takes the time in ticks of the attempt's clock, and
returns the action for the engine: leave the attempt's cancel scope, or set its timer.
"""

from __future__ import annotations

from typing import Final, Literal, TypeAlias

from remit.core.records import NamedTuple
from remit.core.times import SECOND

Stop: TypeAlias = Literal["", "expired", "released", "failed", "cancelled"]
State: TypeAlias = Literal[
    "ready", "running", "waiting", "asking", "expired", "released", "failed", "cancelled", "over"
]

# A stronger stop replaces a weaker one; of two equal ones the first counts. So a task that was requeued and is then
# cancelled does not run again.
STRENGTH: Final[dict[str, int]] = {"": 0, "expired": 1, "released": 2, "failed": 3, "cancelled": 4}
NEVER: Final = 1 << 62  # in ticks


class SetTimer(NamedTuple):
    """An instruction to set the attempt's timer to this many seconds; None stops the timer. With `deadline` the timer
    also runs while the machine sleeps; otherwise only while this process can run."""

    seconds: float | None
    deadline: bool


class Life:
    """Whether an attempt may act, what it waits for, and when its time is up.

    `above` is the life of the attempt that waits for this one: an attempt whose asker has stopped may not act.
    """

    # Defaults of the class: an instance has only the values that differ, and there may be thousands of attempts.
    above: Life | None = None
    stop: Stop = ""
    why: str = ""  # the reason for a cancel
    error: Exception | None = None  # the error it fails with, whatever its agent returns
    hurries: bool = False  # whether its process is closing: failed writes for it are not retried any more
    is_over: bool = False
    told: int = 0  # how often its agent was cancelled
    waits: int = 0  # number of tasks it waits for
    apart: int = 0  # how many of these run outside its slot
    rests: bool = False  # whether the store has it as waiting
    asking: int = 0  # open questions to people, its own and those of its subtasks
    ends: int = NEVER  # when its time is up
    own: int = NEVER  # when its time would be up if its asker had more
    hard: int | None = None  # the deadline that a caller set
    left: int = 0  # time left when its clock stopped
    has_timer: bool = False  # False if its asker's timer ends it in time
    final: bool = True  # whether a deadline ends it, not only the time of one attempt
    short: bool = False  # whether it has less time than the default
    stood_still: bool = False  # whether its clock has ever stopped: then its expiry in the store is too early

    @property
    def state(self) -> State:
        if self.is_over:
            return "over"
        if self.stop:
            return self.stop
        if self.asking:
            return "asking"
        if self.waits:
            return "waiting"
        return "ready" if self.own == NEVER else "running"

    # -- time ----------------------------------------------------------------------------------------------------

    def begin(
        self, now: int, span: int, usual: int, deadline: int | None = None, above: Life | None = None
    ) -> SetTimer | None:
        """Start the attempt with `span` ticks, or fewer if its `deadline` (in ticks from now) or its asker ends
        earlier. `usual` is the default time of an attempt. Like the methods below, return the timer to set, or None if
        no timer changes."""
        self.final = deadline is not None and deadline <= span
        own = max(0, deadline) if deadline is not None and self.final else span
        self.hard = None if deadline is None else now + max(0, deadline)
        self.ends = self.own = now + own
        self.above = above
        if above is not None and above.ends <= self.ends:
            self.ends, self.short = above.ends, True
            return None  # the asker's timer ends it, because its scope encloses ours
        self.short, self.has_timer = own < usual, True
        return SetTimer(own / SECOND, self.final)

    def shorten(self, now: int, by: int) -> SetTimer | None:
        """Set a deadline this many ticks from now, unless the attempt ends before that."""
        ends = now + max(0, by)
        self.hard = ends if self.hard is None else min(self.hard, ends)  # applies even while its clock is stopped
        self.own = min(self.own, ends)
        if self.ends <= ends:
            return None
        self.ends, self.final = ends, True
        return self._timer(ends, now, deadline=True)

    def arm(self, now: int) -> SetTimer | None:
        """Start a timer of its own if the attempt has none: its asker's timer is about to stop, because the asker asks
        a person."""
        if self.has_timer or self.own == NEVER:
            return None
        self.ends, self.final = self.own, self.hard is not None and self.hard <= self.own
        return self._timer(self.own, now, deadline=self.final)

    def ask(self, now: int) -> SetTimer | None:
        """Stop the attempt's clock, because a person is asked. A deadline that a caller set still applies."""
        self.asking += 1
        self.stood_still = True
        if self.asking > 1 or self.final:
            return None
        self.left, self.ends = max(0, self.ends - now), NEVER if self.hard is None else self.hard
        return self._timer(self.ends, now, deadline=True)

    def answered(self, now: int) -> SetTimer | None:
        """Restart the attempt's clock with the remaining time, once no question is open."""
        self.asking -= 1
        if self.asking or self.final:
            return None
        self.ends = now + self.left if self.hard is None else min(now + self.left, self.hard)
        self.final = self.ends == self.hard
        return self._timer(self.ends, now, deadline=self.final)

    def _timer(self, ends: int, now: int, *, deadline: bool) -> SetTimer:
        self.has_timer = True
        return SetTimer(None if ends == NEVER else max(0, ends - now) / SECOND, deadline)

    # -- stopping --------------------------------------------------------------------------------------------------

    def cancel(self, why: str) -> bool:
        """Mark the attempt as cancelled. Return whether its cancel scope must now be cancelled: False if the end of the
        attempt is already recorded."""
        if self._stops("cancelled"):
            self.why = why
        return not self.is_over

    def fail(self, error: Exception) -> bool:
        """Stop the attempt as failed. Return like `cancel`."""
        if self._stops("failed"):
            self.error = error
        return not self.is_over

    def release(self) -> bool:
        """Stop the attempt and requeue its task. Return like `cancel`."""
        self.hurries = True
        self._stops("released")
        return not self.is_over

    def expire(self, now: int) -> bool:
        """Stop the attempt because its time is up. Return like `cancel`."""
        if self._stops("expired") and self.hard is not None and now >= self.hard:
            self.final = True
        return not self.is_over

    def tell(self) -> int:
        """Count one cancellation of the agent's code. Return the number of cancellations so far."""
        self.told += 1
        return self.told

    def end(self) -> None:
        """Record that the attempt's end is in the journal: nothing can stop it any more."""
        self.is_over = True

    def _stops(self, stop: Stop) -> bool:
        if self.is_over or STRENGTH[stop] <= STRENGTH[self.stop]:
            return False
        self.stop = stop
        return True

    def has_stopped(self, now: int) -> bool:
        """Whether the attempt was stopped or its time is up, even if code that blocks the event loop has not noticed
        yet."""
        return self.stop != "" or (self.has_timer and now >= self.ends)

    def why_stopped(self, now: int) -> str:
        """Return why the attempt may not act any more, or "" if it may."""
        life: Life | None = self
        while life is not None:
            # Inlined from `has_stopped`, because every verb checks this.
            if life.stop or (life.has_timer and now >= life.ends):
                return life.reason
            life = life.above
        return ""

    @property
    def reason(self) -> str:
        """Why the attempt has stopped."""
        if self.stop == "cancelled":
            return f"it was cancelled: {self.why}"
        if self.stop == "failed":
            return f"it was given up: {self.error}"
        return "it went back into the queue" if self.stop == "released" else "its time is up"

    def is_under(self, other: Life) -> bool:
        """Whether the other attempt waits for this one, directly or through others."""
        above = self.above
        while above is not None and above is not other:
            above = above.above
        return above is not None

    # -- waiting ---------------------------------------------------------------------------------------------------

    def wait(self) -> bool:
        """Count one more task that the attempt waits for. Return whether it is the only one: until now the attempt was
        working."""
        self.waits += 1
        return self.waits == 1

    def go_on(self) -> bool:
        """Count one task fewer that the attempt waits for. Return whether it waits for none any more and works
        again."""
        self.waits -= 1
        return not self.waits

    def step_aside(self) -> None:
        """Count one more wait for something outside this process's task tree, such as a queued task."""
        self.apart += 1

    def step_in(self) -> None:
        """End one wait that `step_aside` began."""
        self.apart -= 1

    def rest(self) -> None:
        """Record that the store has the task as waiting."""
        self.rests = True

    def wake(self) -> None:
        """Record that the store has the task as running again."""
        self.rests = False
