"""Money as its owner sees it: grants, accounts, uncertain calls, and bills that are higher than the hold."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, Final

from remit.core.events import Place, Unsealed
from remit.core.kinds.money import ledger_event
from remit.core.kinds.people import question_asked
from remit.core.money import ACCOUNT, UNITS, Amounts, Book, Hold, Lease, Purse, Unit, amount_text, first_line
from remit.core.prices import credits  # noqa: A004 - the word of the domain
from remit.core.question import Question, QuestionDraft, Reply
from remit.core.records import NamedTuple
from remit.core.times import DAY
from remit.core.values import Json, line, shown
from remit.engine.acts import ONCE, Act, ActContent
from remit.engine.approvals import answered
from remit.engine.door import purse_of, resolved
from remit.engine.ground import Ground
from remit.errors import BadInput, Conflict, NotFound
from remit.ports import Decision, View

ASKS_FOR: Final = 3_650 * DAY  # effectively no expiry: the question must not decide itself
_DIGITS: Final = 12  # of a number of tokens
CALL: Final = "call"  # the key of the call's id in a question's `shows`


class Charge(NamedTuple):
    """The charge of a call by unit, and the leases that pay beyond the hold. `billed` is the whole bill if only a part
    is charged."""

    costs: dict[Unit, int]
    steps: dict[Unit, list[list[Any]]]
    billed: dict[Unit, int]


def charged(view: View, hold: Hold, costs: Amounts, limited: Collection[Unit]) -> Charge:
    """Return how much of a call's reported cost is charged. If the cost exceeds the hold by more than the leases allow,
    only a part is charged, and `billed` has the whole cost. `limited` are the units that have a spending limit: without
    a lease, the hold is then the most that may be charged beyond it."""
    book, purse = Book(view.lease), purse_of(hold.purse)
    over: dict[Unit, int] = {unit: cost - hold.amounts.get(unit, 0) for unit, cost in costs.items()}
    over = {unit: more for unit, more in over.items() if more > 0}
    rooms = {unit: _room(book, purse, unit, hold.amounts.get(unit, 0), limited=unit in limited) for unit in over}
    if all(more <= rooms[unit].most for unit, more in over.items()):
        return Charge({unit: cost for unit, cost in costs.items() if cost}, _steps(book, purse, over), {})
    taken: dict[Unit, int] = {unit: min(more, rooms[unit].taken) for unit, more in over.items()}
    spent: dict[Unit, int] = {
        unit: cost if unit not in over else hold.amounts.get(unit, 0) + taken[unit] for unit, cost in costs.items()
    }
    return Charge(spent, _steps(book, purse, taken), {**costs})


class _Room(NamedTuple):
    """The amount that may be charged beyond a hold. If the excess of a bill is at most `most`, the whole bill is
    charged. Otherwise only `taken` is charged beyond the hold."""

    most: int
    taken: int


def _room(book: Book, purse: Purse, unit: Unit, held: int, *, limited: bool) -> _Room:
    """Return how much may be charged beyond a hold. Under a lease, it is the balance of the lease. A call that draws on
    the account itself may cost up to twice its hold: another call of that size would be possible too. In a unit without
    a hold there was no estimate, so the account's balance applies."""
    found = [lease for id_ in first_line(purse.get(unit, ())) if (lease := book.lease(id_, unit)) is not None]
    if not found:
        return _Room(held, 0) if limited and held else _Room(_UNLIMITED, 0)
    has = min(lease.available for lease in found)
    if all(lease.id == ACCOUNT for lease in found):
        return _Room(min(has, held) if held else has, 0)
    return _Room(has, has)


_UNLIMITED: Final = 1 << 63


def _steps(book: Book, purse: Purse, taken: Amounts) -> dict[Unit, list[list[Any]]]:
    """Return the amount that each lease pays beyond the hold, by unit. Each lease on the first line of the path pays
    the same amount."""
    steps: dict[Unit, list[list[Any]]] = {}
    for unit, amount in taken.items():
        there = [id_ for id_ in first_line(purse.get(unit, ())) if book.lease(id_, unit) is not None]
        if amount and there:
            steps[unit] = [[id_, amount, 0] for id_ in there]
    return steps


class Reported(NamedTuple):
    """The charge of reported tokens: `steps` is the amount that each lease pays, and `short` is the first lease with
    fewer tokens left, or None. If `believed` is False, only `taken` is charged."""

    steps: list[list[Any]]
    short: Lease | None
    believed: bool
    taken: int


def reported(view: View, purse: Purse, tokens: int) -> Reported:
    """Return the charge of the tokens that an agent reports after a call, even if they exceed a lease. The report is
    believed up to the balance of each lease plus the amount that the lease was granted, if the payment does not
    overdraw the account."""
    book, path = Book(view.lease), purse.get("tokens", ())
    found = [one for id_ in first_line(path) if (one := book.lease(id_, "tokens")) is not None]
    short = next((lease for lease in found if lease.available < tokens), None)
    steps = book.charge(path, "tokens", tokens)
    own = [lease for lease in found if lease.id != ACCOUNT]
    near = all(tokens <= lease.available + lease.granted for lease in own)
    paid = not any(lease == ACCOUNT and lacked for lease, _, lacked in steps)
    return Reported(steps, short, near and paid, min((lease.available for lease in found), default=0) if own else 0)


# -- questions ------------------------------------------------------------------------------------------------------


def question_of(hold: str) -> str:
    """Return the id of the question about a call."""
    return f"q{hold}"


def asked_about(hold: Hold, charge: Charge, place: Place, now: int) -> Unsealed:
    """Return the event that asks a person for the real cost of a call. The question belongs to no task, so it stays
    open when the task ends."""
    billed, held, charged_ = map(_amounts_text, (charge.billed, hold.amounts, charge.costs))
    text = (
        f"'{hold.agent}' says that its call for {shown(hold.why)} cost {billed}; {held} was held for it, and "
        f"{charged_} is charged. Until you say what it really cost, '{hold.agent}' pays for nothing. "
        f"Answer with {_how(charge.billed)}, or reject the bill: then it stays at {charged_}"
    )
    shows: dict[str, Json] = {CALL: hold.id, "billed": billed, "held": held, "charged": charged_}
    draft = QuestionDraft("ask", text, shows=shows, about=(hold.id,))
    at = Place(place.run, place.session, "")
    return question_asked(question_of(hold.id), draft, now + ASKS_FOR, at, hold.agent, now)


def _amounts_text(amounts: Amounts) -> str:
    return " and ".join(amount_text(unit, amounts[unit]) for unit in UNITS if amounts.get(unit)) or "nothing"


def _how(billed: Amounts) -> str:
    return "an amount such as 0.20USD" if billed.get("credits") else "a number of tokens such as 1500"


def frozen_because(hold: Hold) -> str:
    """Return the reason why an agent may not pay: the bill of this call was higher than its lease, and no person has
    decided its real cost."""
    billed = _amounts_text(hold.claimed)
    return (
        f"its money is frozen, because its call for {shown(hold.why)} was billed {billed}, more than its lease had; a "
        f"person says what it really cost with `remit money reconcile {hold.id}`, or answers question "
        f"{question_of(hold.id)}"
    )


def settled_by_answer(view: View, asked: dict[str, Json], reply: Reply, now: int) -> list[Unsealed]:
    """Return the events that reconcile a call after a person has answered the question about its cost. If the question
    is about something else, return []. If the person rejects the bill, the amount that was charged stays."""
    hold = view.hold(str(asked[CALL])) if CALL in asked else None
    if hold is None:
        return []
    costs = {} if reply.state == "rejected" else _read(hold, reply.value)
    why = reply.why or "answered by a person"
    return reconciled(view, hold, costs, {"why": why, "by": reply.by}, now)


def _read(hold: Hold, value: Json) -> dict[Unit, int]:
    """Return a person's answer as a cost: an amount, or tokens if the bill had only tokens."""
    if "credits" in hold.claimed:
        return {"credits": credits(value, "what the call cost") or 0}
    text = str(value).replace(",", "").removesuffix("tokens").strip()
    if not (text.isascii() and text.isdigit() and len(text) <= _DIGITS):
        raise BadInput(f"what the call cost is a number of tokens such as 1500, not {shown(value)}")
    return {"tokens": int(text)}


# -- answers --------------------------------------------------------------------------------------------------------


def reconciled(view: View, hold: Hold, costs: Amounts, said: dict[str, Any], now: int) -> list[Unsealed]:
    """Return the events that replace the charge of an uncertain call by its real `costs`. A unit that is missing in
    `costs` keeps the charged amount."""
    book, purse = Book(view.lease), purse_of(hold.purse)
    costs = {**hold.amounts, **costs}
    data: dict[str, Any] = {"hold": hold.id, "charged": {**hold.amounts}, "hour": hold.hour, **said}
    data["costs"] = {**costs}
    if hold.model:
        data["model"] = hold.model
    if hold.own_key:
        data["own_key"] = hold.own_key
    if hold.person:
        data["person"] = hold.person
    steps: dict[Unit, list[list[Any]]] = {}
    for unit, cost in costs.items():
        path, differ = purse.get(unit, ()), hold.amounts.get(unit, 0) - cost
        if differ > 0:
            line_ = next((line for line in path if book.lease(line[-1], unit) is not None), ())
            there = [lease for lease in line_ if book.lease(lease, unit) is not None]
            data.setdefault("back", {})[unit] = [differ, there]
        elif differ < 0:
            steps[unit] = book.charge(path, unit, -differ)
    if steps:
        data["steps"] = steps
    run = hold.run if view.record(hold.run) is not None else ""  # the run may have been pruned
    place = Place(run, hold.session, hold.task if run else "")
    event = ledger_event("hold.reconciled", place, hold.agent, now, data)
    return [event, *frozen(steps, place, hold.agent, now)]


def question_answered(view: View, hold: Hold, costs: Amounts, said: dict[str, Any], now: int) -> list[Unsealed]:
    """Return the event that closes the open question to a person about the cost of a call, when an owner reconciles the
    call without answering it. Return [] if there is no open question."""
    found: Question | None = view.question(question_of(hold.id)) if hold.billed else None
    if found is None or not found.is_open:
        return []
    return [answered(found, Reply("answered", said["by"], "", said["why"], _amounts_text(costs)), now)]


def frozen(steps: dict[Unit, list[list[Any]]], place: Place, agent: str, now: int) -> list[Unsealed]:
    """Return the events that freeze the account, if it was charged more than it had."""
    events: list[Unsealed] = []
    for unit, taken in steps.items():
        if any(lease == ACCOUNT and lacked for lease, _, lacked in taken):
            data = {"unit": unit, "state": "frozen", "why": "more was spent than it had"}
            events.append(ledger_event("account.set", place, agent, now, data))
    return events


PAGE: Final = 500
_WHY: Final = 200


class Accounts(NamedTuple):
    ground: Ground

    async def grant(self, amounts: Amounts, why: str, act: Act = ONCE) -> None:
        """Add money to the account. The first grant creates it; from then on remit refuses payments that it cannot
        cover."""
        if why:
            line(why, "why", _WHY)

        def decide(view: View) -> Decision[bool]:
            now = self.ground.clock.now()
            events: list[Unsealed] = []
            for unit, amount in amounts.items():
                data: dict[str, Any] = {"unit": unit, "amount": amount, "why": why, "by": act.by}
                if view.lease(ACCOUNT, unit) is None:
                    data["first"] = True
                events.append(ledger_event("account.granted", Place(), "", now, data))
            return Decision(True, events)

        await act.perform(self.ground, ActContent("grant", "", [{**amounts}, why]), decide)

    async def account(self) -> dict[Unit, Lease]:
        """Return the account by unit; empty if there was no grant."""

        def look(view: View) -> dict[Unit, Lease]:
            found: dict[Unit, Lease | None] = {unit: view.lease(ACCOUNT, unit) for unit in UNITS}
            return {unit: lease for unit, lease in found.items() if lease is not None}

        return await self.ground.store.read(look)

    async def leases(self) -> list[Lease]:
        """Return all open leases."""

        def look(view: View) -> list[Lease]:
            found: list[Lease] = []
            while page := view.leases((found[-1].id, found[-1].unit) if found else ("", ""), PAGE):
                found += page
            return found

        return await self.ground.store.browse(look)

    async def uncertain(self, limit: int = PAGE) -> list[Hold]:
        """Return the calls that were charged in full because no cost was reported."""
        return await self.ground.store.browse(lambda view: view.holds_uncertain("", limit))

    async def unfreeze(self, why: str, act: Act = ONCE) -> bool:
        """Unfreeze the account. Return whether it was frozen."""

        def decide(view: View) -> Decision[bool]:
            now = self.ground.clock.now()
            frozen = [
                unit for unit in UNITS if (one := view.lease(ACCOUNT, unit)) is not None and one.state == "frozen"
            ]
            data = [{"unit": unit, "state": "open", "why": why, "by": act.by} for unit in frozen]
            return Decision(bool(data), [ledger_event("account.set", Place(), "", now, one) for one in data])

        return (await act.perform(self.ground, ActContent("unfreeze", "", why), decide)).answer

    async def reconcile(self, hold: str, costs: Amounts, why: str, act: Act = ONCE) -> dict[Unit, int]:
        """Enter the real cost of an uncertain call. The difference is refunded to the lease that paid, or to the
        account if that lease is closed. Return the refund by unit. Entering the same cost again returns the same;
        another amount raises `Conflict`."""
        id_ = f"{hold}/reconcile"

        def decide(view: View) -> Decision[list[dict[Unit, int]]]:
            found = _uncertain(view, hold)
            now, note = self.ground.clock.now(), {"why": why, "by": act.by}
            said: dict[Unit, int] = {**found.amounts, **costs}  # units that are left out were charged correctly
            back: dict[Unit, int] = {unit: found.amounts.get(unit, 0) - cost for unit, cost in said.items()}
            answer = question_answered(view, found, said, note, now)
            return Decision([said, back], [*reconciled(view, found, costs, note, now), *answer])

        def possible(view: View) -> Decision[None]:
            if view.done(id_) is None:
                _uncertain(view, hold)
            return Decision(None)

        if act.op:  # record the owner's action first: the call's own operation keeps only what was reconciled
            await act.perform(self.ground, ActContent("reconcile", hold, [{**costs}, why]), possible)
        first, back = (await self.ground.store.tx(id_, decide)).answer
        charged = {unit: cost + back[unit] for unit, cost in first.items()}
        if {**charged, **costs} != first:
            raise _reconciled_already(hold, first)
        return back

    async def expire(self, limit: int = PAGE) -> int:
        """Release holds whose calls were not sent in time. Return their number."""
        now = self.ground.clock.now()
        if not await self.ground.store.read(lambda view: bool(view.holds_expired(now, 1))):
            return 0

        def decide(view: View) -> Decision[int]:
            late = view.holds_expired(now, limit)
            return Decision(len(late), [resolved(hold, now, "it did not start in time") for hold in late])

        return (await self.ground.store.tx(self.ground.ids.new(), decide)).answer


def _uncertain(view: View, hold: str) -> Hold:
    found = view.hold(hold)
    if found is None:
        raise NotFound(f"there is no uncertain call {shown(hold)}; `remit money uncertain` lists them")
    if found.state != "uncertain":
        raise Conflict(f"call {hold} is {found.state}; it can be reconciled once it is uncertain")
    return found


def _reconciled_already(hold: str, costs: Amounts) -> Conflict:
    said = " and ".join(amount_text(unit, cost) for unit, cost in costs.items())
    no = Conflict(f"call {hold} was reconciled already, with {said}; grant or spend the difference if that was wrong")
    no.retryable = False
    return no
