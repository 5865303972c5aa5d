"""The door of a task: whether a hop may begin, and with whose money."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from typing import Any, Final, cast

from remit.core import breaker as breakers
from remit.core import remit as remits
from remit.core.allow import ANY, Names
from remit.core.bounds import DEFAULT_HANDOFFS, SENDS, SPAWNED, Bounds
from remit.core.breaker import CLOSED, Breaker, BreakerPolicy
from remit.core.card import Card
from remit.core.events import Labels, Place, Unsealed
from remit.core.guards import ALLOW, Answer, Passage, Refusable, Verdict, affordable, deny, judge
from remit.core.kinds.money import ledger_event
from remit.core.kinds.tasks import FirstData, refused
from remit.core.kinds.workspace import breaker_set
from remit.core.lifecycle import TERMINAL, Record, RunFacts, Standing
from remit.core.limits import TASKS, Limit, TasksUsedUp
from remit.core.loops import HANDOFF_WINDOW, ONCE, USUAL, Repetition, Thresholds
from remit.core.money import (
    ACCOUNT,
    NO_PURSE,
    UNITS,
    Book,
    Hold,
    Lease,
    LeaseOpening,
    Path,
    Purse,
    Unit,
    amount_text,
    figures,
    first_line,
    lease_name,
    out_of,
    owned,
    purse_data,
    purse_restored,
    shared,
)
from remit.core.question import QuestionDraft
from remit.core.records import NamedTuple
from remit.core.remit import Origin, Pass, Remit, place
from remit.core.values import decode
from remit.engine.approvals import Approving, Permit, analysis_only, automatic, permit, wanted_hop
from remit.engine.directory import Directory, askable
from remit.engine.ground import Ground
from remit.engine.traces import OwnersFunctionFailed
from remit.errors import Refused
from remit.ports import View


class Funding(NamedTuple):
    """The purse of a task that is to start, and the leases that open with it; `lacks` says why it cannot be funded, by
    which `rule`."""

    purse: Purse = NO_PURSE
    opens: tuple[LeaseOpening, ...] = ()
    lacks: str = ""
    rule: str = "credits"

    @property
    def data(self) -> dict[str, Any] | None:
        """The money data of the task's first event, or None."""
        if not self.purse:
            return None
        funds: dict[str, Any] = {"purse": purse_data(self.purse)}
        if self.opens:
            funds["opens"] = [[*opening] for opening in self.opens]
        return funds


UNFUNDED: Final = Funding()
_ACCOUNT_ONLY: Final[Path] = ((ACCOUNT,),)


@lru_cache(maxsize=4096)
def purse_of(text: str) -> Purse:
    """Return the purse in a task's row."""
    return purse_restored(cast("dict[str, Any]", decode(text))) if text else NO_PURSE


def purse_in(view: View, task: str) -> Purse:
    """Return the purse of a task: for each unit, the path of leases that pay."""
    standing = view.standing(task)
    return purse_of(standing.purse) if standing is not None else NO_PURSE


def account_purse(view: View) -> Purse:
    """Return the account as the source of money, for each unit that has a grant."""
    purse: dict[Unit, Path] = {}
    for unit in UNITS:
        if view.lease(ACCOUNT, unit) is not None:
            purse[unit] = _ACCOUNT_ONLY
    return purse or NO_PURSE


def funded(view: View, child: Remit, under: Remit, wish: Pass, lease: str, door: Admission) -> Funding:
    """Return the funding of a task. If `wish` has an amount, that amount is reserved: it must be available, and must
    not touch the last share of the run. Otherwise the task shares its asker's money, and narrower bounds only limit its
    part. `lease` is the id of a new lease."""
    by_person = child is under or not under.id
    purse = account_purse(view) if by_person else purse_in(view, under.id)
    bounds = child.bounds
    limited = wish.credits is not None or bounds.credits is not None or bounds.tokens is not None
    opens = tuple(_openings(child, None if by_person else under, wish)) if limited else ()
    if not purse and not opens:
        return UNFUNDED
    return _open_leases(view, purse, opens, Begins(lease, wish.to, child.root), door)


def _openings(child: Remit, under: Remit | None, wish: Pass) -> list[LeaseOpening]:
    if wish.credits is not None:
        opens = [LeaseOpening("credits", "carve", wish.credits)]
    else:
        opens = (
            [] if _as_before(child, under, "credits") else [LeaseOpening("credits", "cap", child.bounds.credits or 0)]
        )
    if not _as_before(child, under, "tokens"):
        opens.append(LeaseOpening("tokens", "cap", child.bounds.tokens or 0))
    return opens


def _as_before(child: Remit, under: Remit | None, unit: Unit) -> bool:
    limit: int | None = getattr(child.bounds, unit)
    return limit is None or (under is not None and limit == getattr(under.bounds, unit))


class Begins(NamedTuple):
    """A task that is to start: the id of its own lease, its holder and its run."""

    lease: str
    to: str
    run: str


def _open_leases(
    view: View, purse: Purse, opens: tuple[LeaseOpening, ...], task: Begins, door: Admission | None = None
) -> Funding:
    book = Book(view.lease)
    rule, lacks = _nothing_left(book, purse, task, asks=door is not None and door.limits.asks_for_money)
    paths: dict[Unit, Path] = {**purse}
    for opening in opens:
        unit = opening.unit
        path = purse.get(unit, ())
        what = ""
        if opening.kind == "carve":
            what = "; ".join(figures(one, task.run) for one in book.shorts(path, unit, opening.amount))
            if not what and door is not None:
                what = door.kept_back(view, book.half_used(task.run, path, unit, opening.amount), opening.amount)
        if what:
            lacks = lacks or f"'{task.to}' was not asked: {what}; give it less, or finish with what you have"
        paths[unit] = shared(path, opening, task.lease)
    return Funding(paths, opens, lacks, rule)


def _nothing_left(book: Book, purse: Purse, task: Begins, *, asks: bool) -> tuple[str, str]:
    """Return the rule and the reason if a lease of the task has spent all its money, otherwise an empty reason. Held
    money does not count as spent. With `asks`, a lease that a person can raise from the account does not count
    either."""
    for unit, path in purse.items():
        for id_ in first_line(path):
            lease = book.lease(id_, unit)
            if lease is not None and _is_spent(lease) and not (asks and _can_be_raised(book, lease)):
                rule = "tier" if unit == "tokens" else "credits"
                return rule, f"{_spent(lease, task.run)}; '{task.to}' was not asked; finish with what you have"
    return "credits", ""


def _can_be_raised(book: Book, lease: Lease) -> bool:
    account = book.lease(ACCOUNT, lease.unit)
    return lease.id != ACCOUNT and (account is None or (account.available > 0 and account.state != "frozen"))


def _is_spent(lease: Lease) -> bool:
    return lease.state == "frozen" or (lease.granted > 0 and lease.spent == lease.granted)


def _spent(lease: Lease, run: str) -> str:
    if lease.state == "frozen":
        return f"the account is frozen, because {amount_text(lease.unit, lease.overrun)} more was spent than it had"
    return f"{lease_name(lease, run)} has used {out_of(lease.unit, lease.spent + lease.overrun, lease.granted)}"


def funded_again(view: View, record: Record, first: FirstData, lease: str) -> Funding:
    """Return the funding of a task that an owner retries. It opens the same leases as before, paid by the nearest asker
    that has not ended, or else by the account. Raise `Refused` if the money is not enough."""
    opens = tuple(LeaseOpening(*cast("tuple[Any, Any, int]", tuple(one))) for one in first.get("opens", ()))
    funding = _open_leases(view, _nearest(view, record.parent), opens, Begins(lease, record.holder, record.run))
    if funding.lacks:
        raise Refused(funding.lacks, rule="credits")
    return funding


def _nearest(view: View, task: str) -> Purse:
    while task:
        record = view.record(task)
        if record is None:
            break
        if record.state not in TERMINAL:
            return purse_of(record.purse)
        task = record.parent
    return account_purse(view)


def holds_resolve(view: View, event: Unsealed, standing: Standing | None) -> Sequence[Unsealed]:
    """Return the events that end the open calls of a task: unsent ones are released, sent ones are charged in full as
    uncertain, because their cost can no longer be reported."""
    if standing is None or not standing.ties:
        return ()
    return [resolved(hold, event.at, "its task ended or was taken over") for hold in view.holds(event.task)]


def resolution(hold: Hold) -> dict[str, Any]:
    """Return the data that every event which ends a hold has."""
    purse = purse_data(purse_of(hold.purse))
    data: dict[str, Any] = {"hold": hold.id, "amounts": hold.amounts, "purse": purse, "why": hold.why}
    if hold.model:
        data["model"] = hold.model
    if hold.own_key:
        data["own_key"] = hold.own_key
    if hold.person:
        data["person"] = hold.person
    return data


def resolved(hold: Hold, now: int, why: str) -> Unsealed:
    """Return the event that ends a hold without a report of its cost."""
    data = resolution(hold)
    place = Place(hold.run, hold.session, hold.task)
    if hold.state == "held":
        return ledger_event("hold.released", place, hold.agent, now, {**data, "because": why})
    data |= {"costs": hold.amounts, "uncertain": True}
    return ledger_event("hold.settled", place, hold.agent, now, data)


def leases_close(book: Book, event: Unsealed, standing: Standing | None) -> dict[str, Any]:
    """Return which leases a task stops using and closes with its end, for its end event."""
    if standing is None or not standing.purse:
        return {}
    purse = purse_of(standing.purse)
    own = owned(purse, event.task)
    closes: list[list[Any]] = []
    left = _shared(purse, event.task) if standing.asked_how != "delegate" else []
    for lease, unit in left:
        closes += book.leave(lease, unit)
    closing: list[list[str]] = []
    for lease, unit in own:
        closed = book.close(lease, unit)
        closes += closed
        if not closed and book.lease(lease, unit) is not None:
            book.owner_ended(lease, unit)
            closing.append([lease, unit])
    found = {"leaves": [[*one] for one in left], "closing": closing, "closes": closes}
    return {name: rows for name, rows in found.items() if rows}


def _shared(purse: Purse, task: str) -> list[tuple[str, Unit]]:
    """Return the leases that a queued task shares: for each unit without a lease of its own, the first lease of another
    task. Leases that opened at a handoff come first and are its own."""
    found: list[tuple[str, Unit]] = []
    mine = set(owned(purse, task))
    for unit in UNITS:
        others = [lease for lease in first_line(purse.get(unit, ())) if (lease, unit) not in mine]
        if others and others[0] != ACCOUNT and (task, unit) not in mine:
            found.append((others[0], unit))
    return found


LIMIT: Final = "limit"


def used_up(view: View, limits: Iterable[Limit], child: Remit, now: int) -> list[TasksUsedUp]:
    """Return the limits on tasks that do not let this task start."""
    found: list[TasksUsedUp] = []
    for limit in limits:
        metered = limit.meters(child.holder, child.session, child.by)
        if metered is None or limit.tasks is None:
            continue
        since = limit.since(now)
        begun = view.metered(metered.scope, metered.name, TASKS, since)
        if begun >= limit.tasks:
            hours = [(hour, count) for _, hour, count in view.meter_hours(metered.scope, metered.name, TASKS, since)]
            found.append(TasksUsedUp(limit, metered, begun, limit.room_at(TASKS, hours)))
    return found


def refusal(child: Remit, found: Iterable[TasksUsedUp], now: int, *, person: bool) -> str:
    """Return why the task may not start: the limits, the number of tasks that count, and when there is room again."""
    why = "; ".join(one.sentence(now) for one in found)
    return f"'{child.holder}' was not asked: {why}; {_PERSON if person else _AGENT}"


_PERSON: Final = "ask again then, or raise the limit"
_AGENT: Final = "finish with what you have"


_MANY: Final = 1_000_000


class TaskLimits(NamedTuple):
    """The limits of one task: handoffs, parts of a parallel handoff, and unfinished spawned tasks. `echo` is how often
    an agent may repeat an answer to a text that only grows; `begun` are the limits on started tasks per period;
    `repeats` are the thresholds for programs that repeat a request, `same_handoff` is the number of latest handoffs
    among which the same one is refused, and `last_word` is the share of a run's money that only its first task can
    spend. `asks_for_money` says that people are asked for missing money."""

    handoffs: int = DEFAULT_HANDOFFS
    sends: int = SENDS
    spawns: int = SPAWNED
    echo: int | None = None
    begun: tuple[Limit, ...] = ()
    repeats: Thresholds = USUAL
    same_handoff: int | None = HANDOFF_WINDOW
    last_word: Bounds | None = None
    asks_for_money: bool = False


_LIMITS: Final = TaskLimits()
NOBODY_ASKED: Final = Approving()
_NO_PERMIT: Final = Permit()


class Handing(NamedTuple):
    """The facts of a handoff: the number of handoffs so far, whether it repeats a recent one, the number of parts, and
    whether it joins such parts."""

    handoffs: int = 0
    repeats: bool = False
    sends: int = 0
    of_parts: bool = False


_NO_HANDOFF: Final = Handing()


class Proposal(NamedTuple):
    """A hop that is requested and not decided yet.

    `child` is the remit of the task that it starts or continues. It is judged under `under`: the asker's remit, or the
    child's own if no agent asks. `asker` is the asking agent's card; None for a person or a worker. `brought` is the
    card of a holder that the engine provides and that is not registered. `handing` is set for a handoff. `tally` counts
    the refusals of the asker's task; `repetition` says how often it has made the same request; `op` is its operation
    id, under which a person is asked. `again` says that an earlier try of the asker started it.
    """

    child: Remit
    under: Remit
    wish: Pass
    asker: Card | None
    now: int
    handing: Handing = _NO_HANDOFF
    brought: Card | None = None
    tally: Refusable | None = None
    repetition: Repetition = ONCE
    op: str = ""
    again: bool = False

    @property
    def counts(self) -> bool:
        """Whether the hop starts a task that counts for the limits on started tasks. Handoffs, retries and the task
        that leads a plan for a person do not count."""
        child, under = self.child, self.under
        return (child is under or child.id != under.id) and self.brought is None and not self.again

    def note_refusal(self) -> None:
        """Count the refusal, once it is committed."""
        if self.tally is not None:
            self.tally.refused()


class Admitted(NamedTuple):
    """The verdict on a hop and its events: if the hop is admitted, a breaker's probe and the use of an approval;
    otherwise the refusal. `joins` says that the agent is new to the run. `funds` is the money data of the task. `asks`
    is the question that a person must answer first."""

    verdict: Verdict
    events: tuple[Unsealed, ...] = ()
    joins: bool = False
    funds: dict[str, Any] | None = None
    asks: QuestionDraft | None = None

    @property
    def ok(self) -> bool:
        return self.verdict.answer is Answer.ALLOW

    @property
    def refusal(self) -> Refused:
        return Refused(self.verdict.sentence, rule=self.verdict.rule)


class HopFacts:
    """The facts about one hop, each looked up when a guard reads it."""

    __slots__ = (
        *("_door", "_funding", "_passage", "_proposal", "_view"),
        *("asks", "breaker", "card", "draft", "known", "limit", "now", "permit", "repetition"),
    )

    def __init__(self, view: View, door: Admission, passage: Passage, proposal: Proposal) -> None:
        self._view = view
        self._door = door
        self._passage = passage
        self._proposal = proposal
        self._funding: Funding | None = None
        self.draft: QuestionDraft | None = None
        self.permit = _NO_PERMIT
        if proposal.brought is not None:
            card = proposal.brought
        else:
            agent = door.directory.get(proposal.wish.to)
            card = agent.card if agent is not None else self._published()
        self.card = card
        self.known = card is not None
        self.limit = card.concurrency if card is not None else 0
        self.asks: Names = proposal.asker.asks if proposal.asker is not None else ANY
        self.now = proposal.now
        self.breaker: Breaker = view.breaker(proposal.wish.to)
        self.repetition = proposal.repetition

    def _published(self) -> Card | None:
        """Return the card that another process has published for the wanted agent, or None. Only a passage through the
        queue may use it; for others return None."""
        return self._view.card(self._proposal.wish.to) if self._passage.queued else None

    @property
    def roster(self) -> tuple[str, ...]:
        asker = self._proposal.asker
        names = set(self._door.directory.names())
        if self._passage.queued:
            names.update(card.name for card, _ in self._view.cards())
        if asker is None:
            return tuple(sorted(names))
        return askable(names, self._proposal.under, asker)

    @property
    def running(self) -> int:
        return self._view.running(self._proposal.wish.to, self._proposal.now)

    @property
    def run(self) -> RunFacts:
        return self._view.run(self._proposal.under.root)

    @property
    def spawned(self) -> int:
        return self._view.spawned(self._proposal.under.id)

    @property
    def most_spawned(self) -> int:
        return self._door.limits.spawns

    @property
    def handoffs(self) -> int:
        return self._proposal.handing.handoffs

    @property
    def most_handoffs(self) -> int:
        return self._door.limits.handoffs

    @property
    def run_handoffs(self) -> int:
        return self.run.handoffs - self._proposal.handing.of_parts  # the parts and their join count as one handoff

    @property
    def sends(self) -> int:
        return self._proposal.handing.sends

    @property
    def most_sends(self) -> int:
        return self._door.limits.sends

    @property
    def approval(self) -> Verdict:
        """The verdict of the approval rule. A granted approval is consumed when the hop is admitted."""
        card = self.card
        if card is None or not (card.needs_approval or self._door.approving.needs_approval):
            return ALLOW  # no rule requires approvals
        return self._approval_of(card)

    def _approval_of(self, card: Card) -> Verdict:
        proposal, kind = self._proposal, self._passage.name
        child, under, wish = proposal.child, proposal.under, proposal.wish
        why = self._door.approving.needed(kind, child, under, wish, card)
        if not why:
            return ALLOW
        draft = self._door.approving.draft(kind, child, under, wish, card, why)
        if not card.needs_approval and analysis_only(card):
            self.permit = Permit(automatic(f"q{child.id}", draft, under, self.now))
            return ALLOW
        if not proposal.op:
            return deny("approval", f"{why}, and there is no task that could wait for it; ask a person to start it")
        self.permit = permit(self._view, proposal.op, draft, under, wish.to, self.now)
        if self.permit.no:
            return deny("approval", self.permit.no)
        edited = self.permit.task and kind != "handoff" and child.task != wish.asking_for(self.permit.task).task
        if self.permit.asks or edited:
            self.draft = draft
            return Verdict(Answer.ASK, "approval", why)
        return ALLOW

    @property
    def funding(self) -> Funding:
        """The funding of the task. For a handoff with narrower bounds, it includes the new lease that applies from then
        on."""
        if self._funding is None:
            child, under, wish, *_ = self._proposal
            times = self._proposal.handing.handoffs + 1
            lease = f"{child.id}.{times}" if child.id == under.id and child is not under else child.id
            self._funding = funded(self._view, child, under, wish, lease, self._door)
        return self._funding

    @property
    def payment(self) -> Verdict:
        funding = self.funding
        if funding.lacks:
            asks = self._door.limits.asks_for_money and self._proposal.op != ""
            return self._asks_for_money(funding) if asks else deny(funding.rule, funding.lacks)
        limits, proposal = self._door.limits.begun, self._proposal
        if limits and proposal.counts and (found := used_up(self._view, limits, proposal.child, self.now)):
            return deny(LIMIT, refusal(proposal.child, found, self.now, person=proposal.asker is None))
        return ALLOW

    def _asks_for_money(self, funding: Funding) -> Verdict:
        from remit.engine.raising import WantedMoney, asks_for_hop  # noqa: PLC0415 - a hop with enough does not need it

        proposal, view, draft = self._proposal, self._view, None
        under, wish = proposal.under, proposal.wish
        self._door.refuses_payment(view, (funding.lacks,))
        if wish.credits is not None:
            path = purse_in(view, under.id).get("credits", ())
            wanted = WantedMoney(under, wish.to, wish.task, wish.credits, proposal.op)
            draft = asks_for_hop(view, path, wanted, self._door.limits.last_word)
        if draft is None:
            return deny(funding.rule, funding.lacks)
        self.draft = draft
        return Verdict(Answer.ASK, funding.rule, funding.lacks)

    @property
    def repeats(self) -> bool:
        return self._proposal.handing.repeats


class Admission:
    """Admission of hops, and the free capacity. `concurrency` is the number of queued tasks that the whole workspace
    may run at once."""

    def __init__(
        self,
        directory: Directory,
        breaker_policy: BreakerPolicy,
        concurrency: int | None = None,
        limits: TaskLimits = _LIMITS,
        approving: Approving = NOBODY_ASKED,
    ) -> None:
        self.directory = directory
        self.limits = limits
        self.approving = approving
        self._breaker_policy = breaker_policy
        self._concurrency = concurrency
        # May interrupt the decision if a dead process holds what is missing.
        self.about_to_refuse: Callable[[View, str, str], None] | None = None
        self.asked_for: dict[str, int] = {}  # number of callers here that wait for each busy agent

    def admit(self, view: View, passage: Passage, proposal: Proposal) -> Admitted:
        """Judge a hop and return the verdict with its events. If the hop is admitted, the caller adds the event of the
        hop itself: started, submitted, handed or claimed."""
        under, wish = proposal.under, proposal.wish
        facts = HopFacts(view, self, passage, proposal)
        verdict = judge(passage.guards, under, wish, facts)
        if self.directory.guards and passage.owners and verdict.answer is not Answer.DENY:
            verdict = self.owners_verdict(passage.name, proposal, facts.card) or verdict
        if facts.draft is not None and verdict.answer is Answer.ASK:
            return Admitted(verdict, asks=facts.draft)
        if verdict is not ALLOW:
            if self.about_to_refuse is not None:
                self.about_to_refuse(view, verdict.rule, verdict.sentence)
            return Admitted(verdict, self._refused(passage, proposal, verdict))
        joins = under is not proposal.child and wish.to not in view.run(under.root).members
        # A queued task, or a part of a parallel handoff, must not become the breaker's only probe.
        probes = facts.breaker is not CLOSED and not passage.queued and passage.name != "fan-out"
        pays = affordable in passage.guards
        funds = facts.funding.data if pays else None
        if self.limits.begun and pays and proposal.counts:
            funds = {**(funds or {}), "metered": True}
        events = self.probe(view, proposal) if probes else ()
        return Admitted(verdict, (*events, *facts.permit.events) if facts.permit.events else events, joins, funds)

    def owners_verdict(self, kind: str, proposal: Proposal, card: Card | None) -> Verdict | None:
        """Return the refusal of the first of the owner's guards that rejects the hop, or None. The guards do not judge
        the task that leads a plan for a person, because it has no agent; they judge each of its steps."""
        if proposal.brought is not None or card is None:
            return None
        hop = wanted_hop(kind, proposal.child, proposal.under, proposal.wish, card)
        try:
            return next((said for guard in self.directory.guards if (said := guard.verdict(hop)) is not None), None)
        except OwnersFunctionFailed as failed:
            if proposal.asker is not None:
                raise
            raise failed.error from None  # no task can fail: the caller gets the error of its own function

    def refuses_payment(self, view: View, sentences: Sequence[str]) -> None:
        """Check for dead processes before a payment is refused or waits for other holds. If a dead process holds the
        missing money, interrupt the decision: the money is released and the decision is repeated."""
        if self.about_to_refuse is not None:
            self.about_to_refuse(view, "credits", "; ".join(sentences))

    def kept_back(self, view: View, lease: Lease | None, amount: int) -> str:
        """Return why an amount cannot be reserved from the run's lease: it would use the last share. Return "" if it
        can be reserved. `lease` is the run's lease if the payment would leave less than half of it, otherwise None."""
        if lease is None:
            return ""
        from remit.engine.last_share import kept_back  # noqa: PLC0415 - a run that has enough does not need it

        kept = kept_back(view, self.limits.last_word, lease, amount)
        return kept.sentence if kept is not None else ""

    @staticmethod
    def _refused(passage: Passage, proposal: Proposal, verdict: Verdict) -> tuple[Unsealed, ...]:
        """Return the event of a refusal in the run of the asking agent; a person or a worker has no run to record it
        in."""
        if proposal.asker is None or (proposal.tally is not None and not proposal.tally.is_recorded()):
            return ()
        handoff = passage.name in ("handoff", "fan-out")
        rule, sentence = verdict.rule, verdict.sentence
        event = refused(proposal.under, proposal.wish, proposal.now, rule=rule, sentence=sentence, handoff=handoff)
        return (event,)

    def probe(self, view: View, proposal: Proposal) -> tuple[Unsealed, ...]:
        """Return the event that makes this task the breaker's probe. Return () if the breaker is closed or does not
        admit a probe now."""
        name = proposal.wish.to
        breaker = view.breaker(name)
        if breaker is CLOSED or breakers.admits(breaker, proposal.now) != "probe":
            return ()
        trying = breakers.probing(breaker, self._breaker_policy, proposal.child.id, proposal.now)
        return (breaker_set(name, trying, place(proposal.child), proposal.now),)

    # -- capacity --------------------------------------------------------------------------------------

    def room(self, view: View, *, resuming: bool = False) -> int:
        """Return how many more queued tasks the workspace may run.

        With `resuming`, reserve places for tasks that waited and want to resume.
        """
        if self._concurrency is None:
            return _MANY
        return max(0, self._concurrency - view.working() - (view.resuming("*") if resuming else 0))

    def room_for(self, view: View, holder: str, now: int, *, resuming: bool = False) -> int:
        """Return how many more tasks this agent may run; 0 if it is not registered here.

        With `resuming`, reserve places for tasks that come before new ones: those that want to resume, or wait for the
        agent here.
        """
        agent = self.directory.holder(holder)
        if agent is None:
            return 0
        limit = agent.card.concurrency
        if limit is None:
            return _MANY
        before = view.resuming(holder) + self.asked_for.get(holder, 0) if resuming else 0
        return max(0, limit - view.running(holder, now) - before)

    def may_begin_now(self, view: View, holder: str, now: int) -> bool:
        """Whether a task may start right now, and nothing has waited longer in its queue."""
        agent = self.directory.holder(holder)
        if agent is None:
            return False
        limited = self._concurrency is not None or agent.card.concurrency is not None
        if limited and (self.room(view, resuming=True) <= 0 or self.room_for(view, holder, now, resuming=True) <= 0):
            return False
        return not view.has_due(holder, now)

    def trusted(self, view: View, holder: str, now: int) -> int:
        """Return how many tasks the agent's breaker admits now."""
        breaker = view.breaker(holder)
        return _MANY if breaker is CLOSED else {"yes": _MANY, "probe": 1, "no": 0}[breakers.admits(breaker, now)]


def first_proposed(ground: Ground, wish: Pass, ceiling: Bounds, session: str, labels: Labels) -> Proposal:
    """Return the proposal of a person's request."""
    now = ground.clock.now()
    origin = Origin(ground.ids.new(), ground.store.workspace, session or ground.ids.new(), labels)
    first = remits.begin(origin, wish, ceiling, deadline(wish, now))
    return Proposal(first, first, wish, None, now)


def deadline(wish: Pass, now: int) -> int | None:
    """Return the deadline of a wish, or None. The default time is a timer of each attempt, not a deadline."""
    return None if wish.microseconds is None else now + wish.microseconds


def place_of(record: Record) -> Place:
    return Place(record.run, record.session, record.id)
