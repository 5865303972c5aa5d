"""Payments that lack money: a person is asked for more. Imported with `Policy(short="ask")` when a payment lacks
money."""

from __future__ import annotations

from typing import Final, NamedTuple

from remit.core.money import Amounts, Lease
from remit.core.raising import Want
from remit.engine.attempt.live import LiveTask
from remit.engine.door import purse_in
from remit.engine.money import Bill, Holding
from remit.engine.people import Questions
from remit.engine.raising import Shortage, draft, kept_of, shortage
from remit.ports import View

_GOING_ON: Final = "answers after its next one"


class MoreMoney(NamedTuple):
    """Asks people for the money that a payment lacks."""

    questions: Questions

    async def get(self, holding: Holding, live: LiveTask, bill: Bill, full: Amounts) -> bool:
        """Ask a person for the money that a payment lacks. Return whether the payment should be tried again, because a
        person has given more or there is enough by now. If money is lacking again later, ask a new question. After a
        no, ask in this turn only for a smaller amount."""

        def look(view: View) -> Shortage | bool:
            live.must_hold(view)
            return not holding.lacking(view, live, bill, {}).sentences or _short_of(view, holding, live, bill, full)

        found = await self.questions.ground.store.read(look)
        if isinstance(found, bool):
            return found
        unit, amount = found.want.unit, found.want.amount
        if amount >= live.denied.get(unit, amount + 1):
            return False
        op = live.operations.asking("money", unit, bill.why)[0]
        with live.verb():
            said = await self.questions.ask(live, draft(found, live.remit, bill.why), op)
        if not said.approved:
            live.denied = {**live.denied, unit: amount}
        return said.approved

    async def go_on(self, holding: Holding, live: LiveTask, lease: Lease, share: int) -> bool:
        """If a run has money for one more answer only, ask a person whether it continues. The question proposes to
        double what the run was granted. Return whether the run has more money. After a no, this turn does not ask
        again."""
        unit, enough = lease.unit, 2 * share
        bill = Bill({unit: enough}, _GOING_ON)
        given = await self.get(holding, live, bill, {unit: enough + lease.granted})
        if live.denied.get(unit) == enough:
            live.denied = {**live.denied, unit: 0}
        return given


def _short_of(view: View, holding: Holding, live: LiveTask, bill: Bill, full: Amounts) -> Shortage | bool:
    """Return the first shortage of a payment; False if more money would not make it possible."""
    remit, purse = live.remit, bill.paid_from(purse_in(view, live.remit.id))
    if view.disputed(remit.holder) is not None or holding.exceeds(view, live, bill):
        return False
    shorts: list[Shortage] = []
    for unit, amount in bill.amounts.items():
        if not holding.lacking(view, live, bill._replace(amounts={unit: amount}), {}).sentences:
            continue
        kept = kept_of(view, holding.last_word, remit.root, unit) if remit.id != remit.root else 0
        short = shortage(view, purse.get(unit, ()), Want(unit, amount, remit.root, kept), full.get(unit, 0))
        if short is None:
            return False
        shorts.append(short)
    return shorts[0]
