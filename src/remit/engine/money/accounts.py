"""What the owner does with money: grant it, look at it, say what an uncertain call has cost, let it flow again."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from remit.core.events import Unsealed
from remit.core.kinds import Place, ledger_event
from remit.core.money import ACCOUNT, UNITS, Amounts, Hold, Lease, Unit, spelled
from remit.core.text import line, shown
from remit.engine.acts import ONCE, Act, ActContent
from remit.engine.door.resolving import resolved
from remit.engine.ground import Ground
from remit.engine.money.bills import question_answered, reconciled
from remit.errors import Conflict, NotFound
from remit.ports import Decision, View

PAGE: Final = 500
_WHY: Final = 200


class Accounts(NamedTuple):
    ground: Ground

    async def grant(self, amounts: Amounts, why: str, act: Act = ONCE) -> None:
        """Add to the account. The first grant makes it: from then on nothing is spent that it does not have."""
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
        """Give the account as it is, by unit; nothing if nothing was ever granted."""

        def look(view: View) -> dict[Unit, Lease]:
            found: dict[Unit, Lease | None] = {unit: view.lease(ACCOUNT, unit) for unit in UNITS}
            return {unit: lease for unit, lease in found.items() if lease is not None}

        return await self.ground.store.read(look)

    async def leases(self) -> list[Lease]:
        """List all leases that are open."""

        def look(view: View) -> list[Lease]:
            found: list[Lease] = []
            while page := view.leases((found[-1].id, found[-1].unit) if found else ("", ""), PAGE):
                found += page
            return found

        return await self.ground.store.browse(look)

    async def uncertain(self, limit: int = PAGE) -> list[Hold]:
        """List the calls that were charged whole because nobody said what they cost."""
        return await self.ground.store.browse(lambda view: view.holds_uncertain("", limit))

    async def unfreeze(self, why: str, act: Act = ONCE) -> bool:
        """Let an account be spent from again; tells whether it was frozen."""

        def decide(view: View) -> Decision[bool]:
            now = self.ground.clock.now()
            frozen = [
                unit for unit in UNITS if (one := view.lease(ACCOUNT, unit)) is not None and one.state == "frozen"
            ]
            data = [{"unit": unit, "state": "open", "why": why, "by": act.by} for unit in frozen]
            return Decision(bool(data), [ledger_event("account.set", Place(), "", now, one) for one in data])

        return (await act.perform(self.ground, ActContent("unfreeze", "", why), decide)).answer

    async def reconcile(self, hold: str, costs: Amounts, why: str, act: Act = ONCE) -> dict[Unit, int]:
        """Say what an uncertain call really cost. What was charged too much goes back to the lease it came from, or to
        the account if that is closed; tells how much that was, by unit. Saying the same once more returns the same;
        another amount is refused, for the books of the first are closed."""
        id_ = f"{hold}/reconcile"

        def decide(view: View) -> Decision[list[dict[Unit, int]]]:
            found = _uncertain(view, hold)
            now, note = self.ground.clock.now(), {"why": why, "by": act.by}
            said: dict[Unit, int] = {**found.amounts, **costs}  # what nothing is said about was charged rightly
            back: dict[Unit, int] = {unit: found.amounts.get(unit, 0) - cost for unit, cost in said.items()}
            answer = question_answered(view, found, said, note, now)
            return Decision([said, back], [*reconciled(view, found, costs, note, now), *answer])

        def possible(view: View) -> Decision[None]:
            if view.done(id_) is None:
                _uncertain(view, hold)
            return Decision(None)

        if act.op:  # it is noted first: the call's own operation keeps what was reconciled, whoever did it
            await act.perform(self.ground, ActContent("reconcile", hold, [{**costs}, why]), possible)
        first, back = await self.ground.store.tx(id_, decide)
        charged = {unit: cost + back[unit] for unit, cost in first.items()}
        if {**charged, **costs} != first:
            raise _reconciled_already(hold, first)
        return back

    async def expire(self, limit: int = PAGE) -> int:
        """Release what was held for calls that did not leave in time; tells how many."""
        now = self.ground.clock.now()
        if not await self.ground.store.read(lambda view: bool(view.holds_expired(now, 1))):
            return 0

        def decide(view: View) -> Decision[int]:
            late = view.holds_expired(now, limit)
            return Decision(len(late), [resolved(hold, now, "it did not start in time") for hold in late])

        return await self.ground.store.tx(self.ground.ids.new(), decide)


def _uncertain(view: View, hold: str) -> Hold:
    found = view.hold(hold)
    if found is None:
        raise NotFound(f"there is no uncertain call {shown(hold)}; `remit ledger` lists them")
    if found.state != "uncertain":
        raise Conflict(f"call {hold} is {found.state}; it can be reconciled once it is uncertain")
    return found


def _reconciled_already(hold: str, costs: Amounts) -> Conflict:
    said = " and ".join(spelled(unit, cost) for unit, cost in costs.items())
    no = Conflict(f"call {hold} was reconciled already, with {said}; grant or spend the difference if that was wrong")
    no.retryable = False
    return no
