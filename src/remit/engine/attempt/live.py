"""What is alive: the tree of running tasks, each with the scope that cancels it and everything below it."""

from functools import cached_property
from typing import Final, NamedTuple, TypeVar

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
from remit.core.remit import Remit
from remit.core.scope import Scope, Sees
from remit.core.values import digest
from remit.errors import Refused
from remit.ports import Decide, Decision, View

T = TypeVar("T")

_IN_HAND: Final = frozenset(("running", "waiting", "pending"))  # pending: it waits for a slot to go on
_STOPPED: Final = frozenset(("cancelling", "cancelled"))


class Attempt(NamedTuple):
    """By which right this process carries a task out: a claim, and what the queue said about it.

    `origin` is the first task of those that were retried by hand, so that what they finished is found again; `failures` is
    how often it has failed before; `again` says that this is not the first time it is carried out.
    """

    fence: int = 1
    attempt: int = 1
    failures: int = 0
    origin: str = ""
    asked_how: str = "delegate"
    queued: bool = False
    timeout: int = 0
    attempts: int = ATTEMPTS

    @property
    def is_rerun(self) -> bool:
        return self.fence > 1 or self.failures > 0  # being put back takes an attempt back, and no fence


FIRST: Final = Attempt()


def op_name(turns: int, what: str, *about: str) -> str:
    return f"{turns}/{what}/{digest(chr(0).join(about))}" if about else f"{turns}/{what}"


def ops(task: str, hold: Attempt, counts: dict[str, int], name: str) -> list[str]:
    """The ids of the next operation of this name in a task's name, the latest try first; `counts` is how many there
    were."""
    count = counts[name] = counts.get(name, 0) + 1
    if hold.failures == 0:  # nearly always
        return [f"{hold.origin or task}/0/{name}/{count}"]
    origin = hold.origin or task
    return [f"{origin}/{tried}/{name}/{count}" for tried in range(hold.failures, -1, -1)]


class LiveTask:
    """One task being carried out. The engine's own record: what a turn may do is read here, not in the turn."""

    def __init__(self, remit: Remit, card: Card, scope: CancelScope, hold: Attempt = FIRST) -> None:
        self.remit = remit
        self.card = card
        self.scope = scope
        self.attempt = hold
        self.turns = 0  # how often it has changed hands, or gone out and come back
        self.waits = 0  # for how many tasks it waits right now
        self.final = True  # whether its timer is that of the deadline, and not only of this attempt
        self.released = False  # whether it goes back into the queue when it has stopped
        self._counts: dict[str, int] = {}
        self.receipt = Receipt()
        self.wrote: dict[tuple[str, str], Scope] = {}
        self.stopped = ""
        self.over = False
        self.tokens = 0  # what the agent said it used, in this turn
        self.breaker_was_open = False  # whether its breaker had something to recover from when it was asked
        self.heir_breaker_was_open = False  # the same of whom it is handing over to
        self.stand_in = False  # whether the engine itself holds it, for a person
        self.phase = ""  # of a coordinator: planning, or putting together
        self.team: frozenset[str] | None = None  # whom it may write to, as a member of a team
        self.state = HandoffState()
        self.trail: tuple[Move, ...] = ()
        self.sender = ""
        self.refusal = ""
        self.results: tuple[Outcome, ...] = ()

    def succeeded_by(self, remit: Remit, card: Card) -> "LiveTask":
        """The next turn of the same task, in the same or other hands; this one has no rights any more."""
        heir = LiveTask(remit, card, self.scope, self.attempt)
        heir.state, heir.trail, heir.team, heir.stopped = self.state, self.trail, self.team, self.stopped
        heir.breaker_was_open, heir.released, heir.final = self.breaker_was_open, self.released, self.final
        heir.turns, heir._counts = self.turns, self._counts
        self.over = True
        return heir

    def moved_on(self) -> None:
        """A handoff is on record: should the work be carried out again, it begins here."""
        self.turns += 1
        self._counts = {}

    # -- operations in its name ------------------------------------------------------------------------

    def op(self, what: str, *about: str) -> str:
        """The id of an operation: the same when the task is carried out again, so that it is not done twice."""
        return self.ops(what, *about)[0]

    def ops(self, what: str, *about: str) -> list[str]:
        """The same, followed by what it was called in earlier tries, the latest first."""
        return ops(self.remit.id, self.attempt, self._counts, op_name(self.turns, what, *about))

    def effect(self, key: str) -> str:
        """The id of an effect: the same in every try, because what has taken effect is not taken back."""
        name = f"{self.turns}/effect/{key}"
        count = self._counts[name] = self._counts.get(name, 0) + 1
        return f"{self.attempt.origin or self.remit.id}/{name}/{count}"

    def guarded(self, decide: Decide[T]) -> Decide[T]:
        """Refuses to decide anything once the task is not this process's any more."""

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

    @cached_property
    def memory(self) -> str:
        return self.card.memory

    def why(self, namespace: str, key: str) -> Why:
        """By which right the holder sees an entry; the most specific one is named."""
        if namespace == self.memory:
            return "memory"
        if (namespace, key) in self.wrote:
            return "wrote"
        if scope.covers(self.remit.sees, namespace, key):
            return "passed"
        return "card"

    def must_be_at_work(self) -> None:
        """A turn that someone kept after its end has no rights any more."""
        if self.over:
            raise Refused(f"the turn of '{self.remit.holder}' is over; nothing can be done in its name", rule="over")

    def stop(self, why: str) -> None:
        self.stopped = self.stopped or why
        self.scope.cancel()

    def release(self) -> None:
        """Stops, and goes back into the queue."""
        self.released = True
        self.scope.cancel()


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
        """The task is over, in whoever's hands it ended."""
        live.over = True
        last = self._live.pop(live.remit.id, None)
        if last is not None:
            last.over = True

    def latest(self, live: LiveTask) -> LiveTask:
        """The same task in the hands that hold it now."""
        return self._live.get(live.remit.id, live)

    def line(self, live: LiveTask) -> list[LiveTask]:
        """The task and those it is nested in, as far as they are alive here."""
        found: list[LiveTask] = []
        one: LiveTask | None = live
        while one is not None:
            found.append(one)
            one = self._live.get(one.remit.parent)
        return found

    def get(self, task: str) -> LiveTask | None:
        return self._live.get(task)

    def below(self, task: str) -> list[LiveTask]:
        """The task and every living one under it."""
        found: list[LiveTask] = []
        for live in self._live.values():
            one: LiveTask | None = live
            while one is not None and one.remit.id != task:
                one = self._live.get(one.remit.parent)
            if one is not None:
                found.append(live)
        return found

    def __len__(self) -> int:
        return len(self._live)
