"""Holding money for calls: hold, start, settle or release. What others hold for now is waited for, but not for ever."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, Final, NamedTuple, TypeAlias

from remit.core.events import Unsealed
from remit.core.kinds import ledger_event
from remit.core.limits import Exceeded, Limit
from remit.core.money import ACCOUNT, UNITS, Amounts, Book, Hold, Purse, Unit, figures, purse_data
from remit.core.times import SECOND
from remit.core.values import Json
from remit.engine.attempt.live import NOTHING_HELD, LiveTask
from remit.engine.attempt.slots import Slots
from remit.engine.door.funding import purse_in
from remit.engine.door.resolving import resolution
from remit.engine.ground import Ground
from remit.engine.money.bills import Charge, asked_about, charged, frozen_because
from remit.engine.presence.bell import MONEY
from remit.engine.presence.insisting import Insisting
from remit.engine.timing import move_on_after, shielded
from remit.errors import Refused
from remit.ports import Decision, View, Wants

HELD_FOR: Final = 900 * SECOND  # until what has not started expires
RULE: Final = "credits"


class Bill(NamedTuple):
    """What a call is for and what it may cost; `own_key` names the provider whose key the workspace brought."""

    amounts: Amounts
    why: str
    model: str = ""
    own_key: str = ""

    @property
    def said(self) -> dict[str, Any]:
        said: dict[str, Any] = {"why": self.why}
        if self.model:
            said["model"] = self.model
        if self.own_key:
            said["own_key"] = self.own_key
        return said

    def paid_from(self, purse: Purse) -> Purse:
        """Give the paths that are charged: with a key of its own the workspace pays the provider itself."""
        return {unit: path for unit, path in purse.items() if unit != "credits"} if self.own_key else purse


class Lack(NamedTuple):
    """Why something cannot be paid: all that speaks against it, and whether waiting may help."""

    sentences: tuple[str, ...]
    may_pass: bool


_NO_LACK: Final = Lack((), may_pass=False)
Placing: TypeAlias = Callable[[View, bool], Decision[Json]]  # a patient one answers None as long as waiting may help


class Holding(NamedTuple):
    """`limits` are those of the workspace; `wait` is how long one waits for what others hold, in seconds."""

    ground: Ground
    slots: Slots
    insisting: Insisting
    limits: tuple[Limit, ...]
    wait: float

    # -- before ----------------------------------------------------------------------------------------------

    async def place(self, live: LiveTask, bill: Bill, *, started: bool) -> str:
        """Hold what a call may cost, and tell the hold's id. Raises Refused with all figures if it cannot be paid."""
        live.must_be_at_work()
        op, hold = live.op("hold", bill.why, str(live.attempt.fence)), self.ground.ids.new()
        state, mine = "started" if started else "held", _held_by_flow(live) if live.holds else {}

        def decide(view: View, patient: bool) -> Decision[Json]:
            live.must_hold(view)
            lack = self.lacking(view, live, bill, mine)
            if lack.sentences:
                self.slots.admission.refuses_payment(view, lack.sentences)
                if patient and lack.may_pass:
                    return Decision(None)
                raise _unpaid(live, lack)
            now = self.ground.clock.now()
            purse = bill.paid_from(purse_in(view, live.remit.id))
            data = {"hold": hold, "state": state, "amounts": {**bill.amounts}, "purse": purse_data(purse)}
            data |= {"fence": live.attempt.fence, "until": now + HELD_FOR, **bill.said}
            return Decision(hold, (ledger_event("hold.placed", live.place, live.remit.holder, now, data),))

        placed = await self._placed(live, bill, mine, op, decide)
        _note(live, placed, bill.amounts)
        return placed

    async def _placed(self, live: LiveTask, bill: Bill, mine: Amounts, op: str, decide: Placing) -> str:
        """Wait while others hold what is wanted. Whoever was quicker than us is waited for again."""
        wants, clock, until = paying_wants(live), self.ground.clock, 0
        patient = self.wait > 0
        while True:
            placed = await self.ground.store.tx(op, lambda view, patient=patient: decide(view, patient), wants)
            if placed is not None:
                return str(placed)
            until = until or clock.ticks() + round(self.wait * SECOND)
            with live.verb():
                async with self.slots.given_up(live):
                    await self._wait(live, bill, mine, (until - clock.ticks()) / SECOND)
            patient = clock.ticks() < until

    async def _wait(self, live: LiveTask, bill: Bill, mine: Amounts, seconds: float) -> None:
        def fits(view: View) -> bool | None:
            lack = self.lacking(view, live, bill, mine)
            return True if not lack.sentences or not lack.may_pass else None

        with move_on_after(self.ground.clock, seconds):
            await self.slots.bell.until(MONEY, fits)

    def lacking(self, view: View, live: LiveTask, bill: Bill, mine: Amounts) -> Lack:
        """Tell what speaks against paying a bill: leases that have too little, and limits."""
        purse, book = bill.paid_from(purse_in(view, live.remit.id)), Book(view.lease)
        sentences: list[str] = []
        passes = True
        if (purse or self.limits) and (disputed := view.disputed(live.remit.holder)) is not None:
            sentences.append(frozen_because(disputed))
            passes = False
        for unit, amount in bill.amounts.items():
            for short in book.shorts(purse.get(unit, ()), unit, amount, mine.get(unit, 0)):
                sentences.append(figures(short, live.remit.root))
                passes = passes and not short.for_good
            for over in self._exceeded(view, live, unit, amount):
                sentences.append(over.sentence)
                passes = passes and not over.for_good
        return Lack(tuple(sentences), passes) if sentences else _NO_LACK

    def _exceeded(self, view: View, live: LiveTask, unit: Unit, wanted: int) -> list[Exceeded]:
        found: list[Exceeded] = []
        agent, session = live.remit.holder, live.remit.session
        for limit in self.limits:
            most, metered = limit.most(unit), limit.meters(agent, session)
            if most is None or metered is None:
                continue
            spent = view.metered(metered.scope, metered.name, unit, limit.since(self.ground.clock.now()))
            agents = metered.name if metered.scope == "agent" else "*"
            held = view.on_hold(unit, agents, metered.name if metered.scope == "session" else "*")
            if spent + held + wanted > most:
                found.append(Exceeded(limit, unit, metered, spent, held, wanted))
        return found

    async def start(self, live: LiveTask, hold: str) -> None:
        """Say that the call leaves now: from here on it is charged, whatever happens."""

        def decide(view: View) -> Decision[bool]:
            live.must_hold(view)
            found = view.hold(hold)
            if found is None or found.state != "held":
                why = "it was held for too long without starting" if found is None else f"it is {found.state}"
                raise Refused(f"the call of '{live.remit.holder}' cannot start: {why}; hold it again", rule=RULE)
            now = self.ground.clock.now()
            return Decision(True, (ledger_event("hold.started", live.place, live.remit.holder, now, {"hold": hold}),))

        await self.ground.store.tx(f"{hold}/start", decide, live.wants)

    # -- afterwards --------------------------------------------------------------------------------------------

    async def settle(self, live: LiveTask, hold: str, costs: Amounts | None) -> bool:
        """Charge what a call has cost; None if nobody knows: then the whole hold is, as uncertain. Tells whether it was
        charged here: if the task is another's by now, whoever took it has settled it."""
        return await self._resolved(live, hold, lambda view, held: self.settled(view, live, held, costs))

    async def release(self, live: LiveTask, hold: str, why: str) -> bool:
        """Give a hold back whole: the call never left."""
        return await self._resolved(live, hold, lambda _view, held: self.released(live, held, why))

    def released(self, live: LiveTask, hold: Hold, why: str) -> list[Unsealed]:
        """Give the events that give a hold back."""
        data = {**resolution(hold), "because": why}
        return [ledger_event("hold.released", live.place, live.remit.holder, self.ground.clock.now(), data)]

    async def _resolved(self, live: LiveTask, hold: str, events: Callable[[View, Hold], list[Unsealed]]) -> bool:
        store = self.ground.store

        def decide(view: View) -> Decision[bool]:
            live.must_own(view)
            held = view.hold(hold)
            if held is None or held.state == "uncertain" or held.fence != live.attempt.fence:
                return Decision(False)
            return Decision(True, events(view, held))

        done = False
        try:
            what = f"what a call of task {live.remit.id} has cost"
            write = self.insisting.insist(live.life, what, lambda: store.tx(f"{hold}/settle", decide))
            done = await shielded(write)
        except Refused:
            return False  # whoever took the task over, or cancelled it, has settled the call
        finally:
            live.holds.pop(hold, None)
        return done

    def disputed(self, live: LiveTask, id_: str, purse: Purse, taken: int, said: int) -> list[Unsealed]:
        """Give the events of tokens that an agent says it has used, more than its lease has: a call that was made and
        is uncertain."""
        now, remit, fence = self.ground.clock.now(), live.remit, live.attempt.fence
        amounts: dict[Unit, int] = {"tokens": taken} if taken else {}
        data: dict[str, Any] = {"hold": id_, "amounts": amounts, "purse": purse_data(purse), "why": _REPORTED}
        placed = {**data, "state": "started", "fence": fence, "until": now}
        charge = Charge(amounts, {}, {"tokens": said})
        settled = {**data, "costs": charge.costs, "uncertain": True, "billed": charge.billed}
        where = (remit.id, remit.root, remit.session, remit.holder)
        hold = Hold(id_, *where, fence, "uncertain", 0, taken, "", now, "", _REPORTED, "", "")
        return [
            ledger_event("hold.placed", live.place, remit.holder, now, placed),
            ledger_event("hold.settled", live.place, remit.holder, now, settled),
            asked_about(hold, charge, live.place, now),
        ]

    def settled(self, view: View, live: LiveTask, hold: Hold, costs: Amounts | None) -> list[Unsealed]:
        """Give the events that charge a call."""
        data = resolution(hold)
        if costs is None:
            data |= {"costs": hold.amounts, "uncertain": True}
        else:
            data["costs"] = {unit: cost for unit, cost in costs.items() if cost}
        now = self.ground.clock.now()
        event = ledger_event("hold.settled", live.place, live.remit.holder, now, data)
        if costs is None or all(cost <= hold.amounts.get(unit, 0) for unit, cost in costs.items()):
            return [event]
        charge = charged(
            view, hold, costs, [unit for unit in UNITS if any(one.most(unit) is not None for one in self.limits)]
        )
        data |= {"costs": charge.costs, "steps": charge.steps}
        if not charge.billed:
            return [event]
        data |= {"uncertain": True, "billed": charge.billed}
        return [event, asked_about(hold, charge, live.place, now)]


_REPORTED: Final = "tokens that it reported"


def paying_wants(live: LiveTask) -> Wants:
    """Tell what deciding about a payment asks its view for."""
    return Wants((live.remit.id,), leases=(ACCOUNT,), disputes=(live.remit.holder,))


def _held_by_flow(live: LiveTask) -> dict[Unit, int]:
    """Sum up what this flow of the turn holds itself: waiting for that would be waiting for itself."""
    own = asyncio.current_task()
    amounts = [amounts for task, amounts in live.holds.values() if task is own]
    return {unit: sum(amount.get(unit, 0) for amount in amounts) for unit in UNITS}


def _note(live: LiveTask, hold: str, amounts: Amounts) -> None:
    if live.holds is NOTHING_HELD:
        live.holds = {}
    live.holds[hold] = (asyncio.current_task(), amounts)
    live.spends = True


def _unpaid(live: LiveTask, lack: Lack) -> Refused:
    what = "; ".join(lack.sentences)
    return Refused(f"'{live.remit.holder}' may not pay for this: {what}; go on without it, or finish", rule=RULE)
