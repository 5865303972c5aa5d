"""What is alive: the tree of running tasks, each with the scope that cancels it and everything below it."""

from functools import cached_property

from anyio import CancelScope

from remit.core import remit as remits
from remit.core import scope
from remit.core.card import Card
from remit.core.command import Move, State
from remit.core.entry import Writer
from remit.core.facts import Place, place
from remit.core.outcome import Outcome
from remit.core.receipt import Receipt, Why
from remit.core.remit import Remit
from remit.core.scope import Scope, Sees
from remit.errors import Refused


class Live:
    """One task being carried out. The engine's own record: what a turn may do is read here, not in the turn."""

    def __init__(self, remit: Remit, card: Card, scope: CancelScope) -> None:
        self.remit = remit
        self.card = card
        self.scope = scope
        self.receipt = Receipt()
        self.wrote: dict[tuple[str, str], Scope] = {}
        self.stopped = ""
        self.over = False
        self.tokens = 0  # what the agent said it used, in this turn
        self.shaky = False  # whether its breaker had something to recover from when it was asked
        self.next_is_shaky = False  # the same of whom it is handing over to
        self.stand_in = False  # whether the engine itself holds it, for a person
        self.phase = ""  # of a coordinator: planning, or putting together
        self.team: frozenset[str] | None = None  # whom it may write to, as a member of a team
        self.state = State()
        self.trail: tuple[Move, ...] = ()
        self.sender = ""
        self.refusal = ""
        self.results: tuple[Outcome, ...] = ()
        self.decisions = 0  # about handing over, so far in this task: each is an operation of its own

    def succeeded_by(self, remit: Remit, card: Card) -> "Live":
        """The next turn of the same task, in the same or other hands; this one has no rights any more."""
        heir = Live(remit, card, self.scope)
        heir.state, heir.trail, heir.team, heir.stopped = self.state, self.trail, self.team, self.stopped
        heir.decisions, heir.shaky = self.decisions, self.shaky
        self.over = True
        return heir

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


class Runs:
    """The tasks alive in this process. Cancelling one cancels all below it, because their scopes nest."""

    __slots__ = ("_live",)

    def __init__(self) -> None:
        self._live: dict[str, Live] = {}

    def enter(self, live: Live) -> Live:
        self._live[live.remit.id] = live
        return live

    def leave(self, live: Live) -> None:
        """The task is over, in whoever's hands it ended."""
        live.over = True
        last = self._live.pop(live.remit.id, None)
        if last is not None:
            last.over = True

    def latest(self, live: Live) -> Live:
        """The same task in the hands that hold it now."""
        return self._live.get(live.remit.id, live)

    def get(self, task: str) -> Live | None:
        return self._live.get(task)

    def below(self, task: str) -> list[Live]:
        """The task and every living one under it."""
        found: list[Live] = []
        for live in self._live.values():
            one: Live | None = live
            while one is not None and one.remit.id != task:
                one = self._live.get(one.remit.parent)
            if one is not None:
                found.append(live)
        return found

    def __len__(self) -> int:
        return len(self._live)
