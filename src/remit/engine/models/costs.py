"""What a request to a model may cost, and what it has cost."""

from __future__ import annotations

from asyncio import to_thread
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any, NamedTuple

from remit.core.events import Unsealed
from remit.core.kinds import ledger_event
from remit.core.money import Purse, Unit, first_line, fitting
from remit.core.prices import Usage
from remit.core.recovery import ModelFailure, ModelTry, charged, on_loopback, own_key
from remit.engine.attempt.live import LiveTask
from remit.engine.door.funding import purse_in
from remit.engine.money.holding import Bill
from remit.engine.money.paying import NOT_SENT, InstalledPrices, Paying, unknown_price
from remit.errors import Refused
from remit.ports import View
from remit.ports.models import ModelAnswer, ModelCall


class PaidRequest(NamedTuple):
    """What is sent: to whom, for how many tokens at most, and what is held for it; `hold` is empty if nothing has to
    be."""

    attempt: ModelTry
    most: int
    hold: str = ""


class Costs(NamedTuple):
    paying: Paying

    async def prepared(self, live: LiveTask, call: ModelCall, attempt: ModelTry, purse: Purse) -> PaidRequest:
        """Hold what a request may cost, if anything limits that. When less is left than it may cost at most, fewer
        tokens may be written. Raises Refused with all figures if it cannot be paid."""
        store, holding = self.paying.ground.store, self.paying.holding
        if not purse and not holding.limits:
            return PaidRequest(attempt, call.most)
        bill = Bill({}, attempt.model, attempt.model, own_key(attempt))
        read, priced = call.size(attempt.trim), await self._is_priced(live, bill, purse, attempt)
        units: tuple[Unit, ...] = ("credits", "tokens") if priced else ("tokens",)

        def worst(unit: Unit, most: int) -> int:
            return read + most if unit == "tokens" else self._worst(attempt, read, most)

        async def fits(most: int) -> int:
            left = await store.read(lambda view: [self._left(view, live, bill, unit) for unit in units])
            return _fitting(worst, zip(units, left, strict=True), most)

        most = await fits(call.most)
        while True:
            held = bill._replace(amounts={unit: worst(unit, most) for unit in units})
            try:
                return PaidRequest(attempt, most, await holding.place(live, held, started=True))
            except Refused:
                fewer = await fits(most)  # whoever held something has spent some of it while this one waited
                if fewer == most:
                    raise
            most = fewer

    def cost(self, attempt: ModelTry, usage: Usage | None) -> int | None:
        """Tell what was used costs; None if nobody knows. A model on this machine costs nothing unless it is priced."""
        prices = self.paying.tariff.prices
        if usage is None or (isinstance(prices, InstalledPrices) and not prices.is_loaded):
            return None
        found = prices.cost(attempt.model, usage)
        return 0 if found is None and on_loopback(attempt.endpoint) else found

    def charge(
        self, view: View, live: LiveTask, request: PaidRequest, reply: ModelAnswer, cost: int | None
    ) -> list[Unsealed]:
        """Give the events that charge an answer: what it has cost, or all that was held if nobody counted."""
        costs: dict[Unit, int] | None = None
        if reply.usage is not None:
            costs = {"tokens": reply.usage.input + reply.usage.output}
            if cost is not None:
                costs["credits"] = cost
        if request.hold:
            held = view.hold(request.hold)
            if held is None or held.state == "uncertain":
                return []
            if costs is not None and "credits" in held.amounts and cost is None:
                costs = None
            return self.paying.holding.settled(view, live, held, costs)
        if not costs:
            return []
        model, now = request.attempt.model, self.paying.ground.clock.now()
        data: dict[str, Any] = {"costs": costs, "steps": {}, "why": model, "model": model}
        if own := own_key(request.attempt):
            data["own_key"] = own
        return [ledger_event("credits.spent", live.place, live.remit.holder, now, data)]

    def charge_failure(
        self, view: View, live: LiveTask, request: PaidRequest, failure: ModelFailure | None
    ) -> list[Unsealed]:
        """Give the events that charge a request without an answer: nothing if it never left or an error was answered;
        otherwise all that was held."""
        held = view.hold(request.hold) if request.hold else None
        if held is None or held.state == "uncertain":
            return []
        if failure is not None and charged(failure) == "nothing":
            why = f"{failure.kind}: nothing is charged for that" if failure.sent else NOT_SENT
            return self.paying.holding.released(live, held, why)
        return self.paying.holding.settled(view, live, held, None)

    # -- inside -----------------------------------------------------------------------------------------

    async def _is_priced(self, live: LiveTask, bill: Bill, purse: Purse, attempt: ModelTry) -> bool:
        """Tell whether credits are held. Where they are limited a model without a known price is refused, or, if that
        is the policy, only its tokens count."""
        tariff = self.paying.tariff
        limited = "credits" in bill.paid_from(purse) or any(
            limit.most("credits") is not None and limit.meters(live.remit.holder, live.remit.session)
            for limit in self.paying.holding.limits
        )
        if limited and isinstance(tariff.prices, InstalledPrices) and not tariff.prices.is_loaded:
            await to_thread(tariff.prices.load)
        if self._priced(attempt, 0, 1) is not None:
            return True
        if limited and tariff.refuse_unknown:
            raise unknown_price(attempt.model, tariff)
        return False

    def _priced(self, attempt: ModelTry, read: int, most: int) -> int | None:
        found = self.paying.tariff.prices.worst(attempt.model, read, most)
        return 0 if found is None and on_loopback(attempt.endpoint) else found

    def _worst(self, attempt: ModelTry, read: int, most: int) -> int:
        return self._priced(attempt, read, most) or 0

    def _left(self, view: View, live: LiveTask, bill: Bill, unit: Unit) -> int | None:
        """Tell how much there is, with what others hold for now; None if nothing limits it."""
        holding = self.paying.holding
        path = bill.paid_from(purse_in(view, live.remit.id)).get(unit, ())
        leases = [lease for id_ in first_line(path) if (lease := view.lease(id_, unit)) is not None]
        left = [lease.available + lease.reserved for lease in leases]
        for limit in holding.limits:
            most, metered = limit.most(unit), limit.meters(live.remit.holder, live.remit.session)
            if most is not None and metered is not None:
                since = limit.since(self.paying.ground.clock.now())
                left.append(most - view.metered(metered.scope, metered.name, unit, since))
        return max(0, min(left)) if left else None


def _fitting(worst: Callable[[Unit, int], int], left: Iterable[tuple[Unit, int | None]], most: int) -> int:
    """Tell how many tokens may be written with what is left of each unit."""
    for unit, there in left:
        if there is not None:
            most = fitting(partial(worst, unit), there, most)
    return most
