"""What is alive: the tree of running tasks, each with the scope that cancels it and everything below it."""

from __future__ import annotations

from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from functools import cached_property
from typing import Final, NamedTuple, Self, TypeVar

from anyio import CancelScope

from remit.core import remit as remits
from remit.core import scope
from remit.core.backoff import ATTEMPTS
from remit.core.card import Card
from remit.core.command import HandoffState, Move
from remit.core.entry import Writer
from remit.core.kinds import Place, place
from remit.core.outcome import Outcome
from remit.core.receipt import Receipt, Why
from remit.core.refusals import Refusals
from remit.core.remit import Remit
from remit.core.repeats import Repeats
from remit.core.scope import Scope, Sees
from remit.core.values import digest
from remit.engine.directory import Agent
from remit.engine.timing import move_on_after
from remit.errors import Refused
from remit.ports import Clock, Decide, Decision, View, Wants

T = TypeVar("T")

_IN_HAND: Final = frozenset(("running", "waiting", "pending"))  # pending: it waits for a slot to go on
_STOPPED: Final = frozenset(("cancelling", "cancelled"))


class Attempt(NamedTuple):
    """One live try at a task: the claim under which this process runs it, and what the queue said about it.

    `number` counts the claims, `failures` how often it has failed before. `origin` is the first task of those that were
    retried by hand, so that what they finished is found again.
    """

    fence: int = 1
    number: int = 1
    failures: int = 0
    origin: str = ""
    asked_how: str = "delegate"
    queued: bool = False
    timeout: int = 0
    attempts: int = ATTEMPTS

    @property
    def is_rerun(self) -> bool:
        """Releasing a task gives its attempt back but never lowers the fence, so the fence tells."""
        return self.fence > 1 or self.failures > 0


FIRST: Final = Attempt()


@dataclass(frozen=True, slots=True)
class Handoff:
    """How a task came to its holder: from whom, what was handed over, and what came of the parts sent out.

    `sender` is empty if it was not handed over; `refused` says why it could not be handed on.
    """

    sender: str = ""
    state: HandoffState = field(default_factory=HandoffState)
    trail: tuple[Move, ...] = ()
    refused: str = ""
    results: tuple[Outcome, ...] = ()


NOT_HANDED: Final = Handoff()  # shared by all tasks, so it is not given out: its state could be changed in place


class Control:
    """What stops a task, whoever holds it: its cancel scope, its timer, and why it was stopped."""

    __slots__ = ("failure", "final", "released", "scope", "seconds", "stopped", "waits")

    def __init__(self) -> None:
        self.scope = CancelScope()
        self.seconds: float | None = None  # how long it may take; None if its asker's own timer ends it in time
        self.final = True  # whether that is until the deadline, and not only the time of one attempt
        self.stopped = ""
        self.failure: Exception | None = None  # what it fails with, whatever its agent makes of it
        self.released = False  # whether it goes back into the queue when it has stopped
        self.waits = 0  # for how many tasks it waits right now

    def stop(self, why: str) -> None:
        self.stopped = self.stopped or why
        self.scope.cancel()

    def give_up(self, failure: Exception) -> None:
        """Stop it as failed."""
        self.failure = self.failure or failure
        self.scope.cancel()

    def limited(self, clock: Clock) -> AbstractContextManager[object, bool]:
        """Give the scope to run in, which ends when the task's time is up."""
        return self.scope if self.seconds is None else move_on_after(clock, self.seconds, self.scope)

    def release(self) -> None:
        """Stop, and go back into the queue."""
        self.released = True
        self.scope.cancel()


class Operations:
    """The ids of what is done in a task's name: the same when it is run again, so that nothing is done twice.

    An id is made of the task, the try, the turn, what is done, and how often that was done before in this turn.
    """

    __slots__ = ("_counts", "_failures", "_origin", "turns")

    def __init__(self, task: str, attempt: Attempt, turns: int = 0) -> None:
        self._origin = attempt.origin or task
        self._failures = attempt.failures
        self.turns = turns  # how often it has changed hands, or gone out and come back
        self._counts: dict[str, int] = {}

    def next_turn(self) -> None:
        """Begin the ids of a new turn: should the task be run again, it begins there."""
        self.turns += 1
        self._counts = {}

    def ids(self, what: str, *about: str) -> list[str]:
        """Give the ids of the next operation of this name: in this try, then in the earlier ones, latest first."""
        name = f"{self.turns}/{what}/{digest(chr(0).join(about))}" if about else f"{self.turns}/{what}"
        count = self._counts[name] = self._counts.get(name, 0) + 1
        if self._failures == 0:  # nearly always
            return [f"{self._origin}/0/{name}/{count}"]
        return [f"{self._origin}/{failures}/{name}/{count}" for failures in range(self._failures, -1, -1)]

    def effect(self, key: str) -> str:
        """Give the id of an effect: the same in every try, because what has taken effect is not taken back."""
        name = f"{self.turns}/effect/{key}"
        count = self._counts[name] = self._counts.get(name, 0) + 1
        return f"{self._origin}/{name}/{count}"


class LiveTask:
    """One task being run. The engine's own record: what a turn may do is read here, not in the turn."""

    def __init__(
        self, remit: Remit, agent: Agent, attempt: Attempt = FIRST, handoff: Handoff = NOT_HANDED, turns: int = 0
    ) -> None:
        self.remit = remit
        self.agent = agent
        self.attempt = attempt
        self.handoff = handoff
        self.control = Control()
        self.operations = Operations(remit.id, attempt, turns)
        self.receipt = Receipt()
        self.wrote: dict[tuple[str, str], Scope] = {}
        self.tokens = 0  # what the agent said it used, in this turn
        self.refusals = Refusals()
        self.over = False
        self.phase = ""  # of a coordinator: planning, or putting together
        self.team: frozenset[str] | None = None  # whom it may write to, as a member of a team

    def limit_time(self, now: int, parent: Remit | None = None) -> Self:
        """Give the task the time that its deadline and its attempt leave it."""
        deadline = self.remit.bounds.deadline
        assert deadline is not None
        if parent is not None and deadline == parent.bounds.deadline:
            return self  # the asker's own timer ends it, as the scopes nest
        left, timeout = max(0, deadline - now), self.attempt.timeout
        self.control.final = not timeout or left <= timeout
        self.control.seconds = (left if self.control.final else timeout) / 1e6
        return self

    def succeeded_by(self, remit: Remit, agent: Agent, handoff: Handoff) -> LiveTask:
        """Make the next turn of the same task, in the same or other hands; this one has no rights any more."""
        heir = LiveTask(remit, agent, self.attempt, handoff)
        heir.control, heir.operations, heir.team = self.control, self.operations, self.team
        heir.refusals, heir.delegated = self.refusals, self.delegated
        self.over = True
        return heir

    def turn_recorded(self) -> None:
        """Begin anew what is said once per turn: its handoff is on record, with its receipt and tokens."""
        self.receipt, self.tokens = Receipt(), 0
        self.refusals.more = 0
        self.operations.next_turn()

    @property
    def card(self) -> Card:
        return self.agent.card

    # -- operations in its name ------------------------------------------------------------------------

    def op(self, what: str, *about: str) -> str:
        """Give the id of the next operation of this name."""
        return self.operations.ids(what, *about)[0]

    def guarded(self, decide: Decide[T]) -> Decide[T]:
        """Refuse to decide anything once the task is not this process's any more."""

        def decided(view: View) -> Decision[T]:
            self.must_hold(view)
            return decide(view)

        return decided

    def must_hold(self, view: View) -> None:
        standing = view.standing(self.remit.id)
        if standing is not None and standing.fence == self.attempt.fence and standing.state in _IN_HAND:
            return
        why = "it was cancelled" if standing and standing.state in _STOPPED else "another process has taken it over"
        raise Refused(f"the task of '{self.remit.holder}' is not its own any more: {why}", rule="over")

    def must_be_at_work(self) -> None:
        """Refuse a turn that someone kept after its end: it has no rights any more."""
        if self.over:
            raise Refused(f"the turn of '{self.remit.holder}' is over; nothing can be done in its name", rule="over")

    @cached_property
    def delegated(self) -> Repeats:
        """What it has delegated of late. Most tasks delegate nothing."""
        return Repeats()

    @cached_property
    def wants(self) -> Wants:
        """What the decisions on its delegations will ask for."""
        return Wants((self.remit.id,), (), (self.remit.root,))

    # -- what its holder sees and may write ----------------------------------------------------------------

    @property
    def sight(self) -> Sees:
        """Everything the holder sees right now."""
        return scope.either(self.base, frozenset(self.wrote.values())) if self.wrote else self.base

    @cached_property
    def base(self) -> Sees:
        """What it sees by card, pass and memory; fixed for the turn, so worked out once."""
        return remits.sight(self.remit, self.card)

    @cached_property
    def reach(self) -> Sees:
        """Where it may write."""
        return remits.reach(self.remit, self.card)

    def sees(self, namespace: str, key: str) -> bool:
        return scope.covers(self.base, namespace, key) or (namespace, key) in self.wrote

    @cached_property
    def place(self) -> Place:
        return place(self.remit)

    @cached_property
    def writer(self) -> Writer:
        return Writer(self.remit.holder, self.remit.id, self.remit.names)

    def why(self, namespace: str, key: str) -> Why:
        """Name the right by which the holder sees an entry; the most specific one."""
        if namespace == self.card.memory:
            return "memory"
        if (namespace, key) in self.wrote:
            return "wrote"
        if scope.covers(self.remit.sees, namespace, key):
            return "passed"
        return "card"


class LiveTasks:
    """The tasks alive in this process. Cancelling one cancels all below it, because their scopes nest."""

    __slots__ = ("_live", "waiting")

    def __init__(self) -> None:
        self._live: dict[str, LiveTask] = {}
        self.waiting = 0  # tasks from the queue that wait for another, and so need no hand

    def enter(self, live: LiveTask) -> LiveTask:
        self._live[live.remit.id] = live
        return live

    def leave(self, live: LiveTask) -> None:
        """Forget a task that is over, in whoever's hands it ended."""
        live.over = True
        last = self._live.pop(live.remit.id, None)
        if last is not None:
            last.over = True

    def latest(self, live: LiveTask) -> LiveTask:
        """Give the same task in the hands that hold it now."""
        return self._live.get(live.remit.id, live)

    def nested_in(self, live: LiveTask) -> list[LiveTask]:
        """List the task and those it is nested in, as far as they are alive here."""
        line: list[LiveTask] = []
        above: LiveTask | None = live
        while above is not None:
            line.append(above)
            above = self._live.get(above.remit.parent)
        return line

    def get(self, task: str) -> LiveTask | None:
        return self._live.get(task)

    def __len__(self) -> int:
        return len(self._live)
