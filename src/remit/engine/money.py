"""Money in a turn: hold, start, settle or release; pay at once, around a call, or for an effect."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, Protocol, Self, TypeAlias

from remit.core.checks import between
from remit.core.events import Unsealed
from remit.core.kinds.money import ledger_event
from remit.core.kinds.tasks import Wait, tokens_used
from remit.core.limits import Exceeded, Limit
from remit.core.money import (
    ACCOUNT,
    UNITS,
    Amounts,
    Book,
    Hold,
    Lease,
    Purse,
    Unit,
    figures,
    lease_name,
    out_of,
    purse_data,
)
from remit.core.prices import CreditsGiven, Usage, amount
from remit.core.prices import credits as read_credits
from remit.core.records import NamedTuple
from remit.core.times import SECOND
from remit.core.values import NAME_LIMIT, Json, endpoint, line
from remit.engine.accounts import Charge, asked_about, charged, frozen_because, reported
from remit.engine.attempt.live import NOTHING_HELD, LiveTask
from remit.engine.attempt.replay import Effects, must_not_differ
from remit.engine.attempt.slots import Slots
from remit.engine.door import purse_in, resolution
from remit.engine.ground import Ground
from remit.engine.presence.bell import MONEY
from remit.engine.presence.insisting import Insisting
from remit.engine.timing import move_on_after, shielded
from remit.engine.traces import owners_function
from remit.errors import BadInput, Conflict, Refused
from remit.ports import Decision, Prices, View, Wants

if TYPE_CHECKING:
    from remit.core.bounds import Bounds
    from remit.engine.last_share import KeptBack

HELD_FOR: Final = 900 * SECOND  # lifetime of an unsent hold
RULE: Final = "credits"


class Bill(NamedTuple):
    """The purpose of a call and its highest cost; `own_key` names the provider whose workspace key is used."""

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
        """Return the part of a purse that is charged. With the workspace's own key no credits are charged, because the
        workspace pays the provider directly."""
        return {unit: path for unit, path in purse.items() if unit != "credits"} if self.own_key else purse


class Lack(NamedTuple):
    """Why a payment is impossible: all reasons, and whether waiting may help."""

    sentences: tuple[str, ...]
    may_pass: bool


_NO_LACK: Final = Lack((), may_pass=False)
Placing: TypeAlias = Callable[[View, bool], Decision[Json]]  # if patient, returns None while waiting may help


class GetsMoney(Protocol):
    """Asks a person for the money that a payment lacks."""

    async def get(self, holding: Holding, live: LiveTask, bill: Bill, full: Amounts) -> bool:
        """Ask a person for the money that a payment lacks. Return whether the payment should be tried again. `full` is
        the amount that the payment would take if there were enough money."""
        ...

    async def go_on(self, holding: Holding, live: LiveTask, lease: Lease, share: int) -> bool:
        """If a run can pay only one more answer, ask a person for more money. Return whether the person gave more."""
        ...


class Holding(NamedTuple):
    """Places, charges and releases holds. `limits` are the spending limits of the workspace. `wait` is how many seconds
    a payment waits for money that other calls hold."""

    ground: Ground
    slots: Slots
    insisting: Insisting
    limits: tuple[Limit, ...]
    wait: float
    last_word: Bounds | None = None
    more: Callable[[], GetsMoney] | None = None  # set if people are asked for more money

    # -- before the call -------------------------------------------------------------------------------------

    async def place(self, live: LiveTask, bill: Bill, *, started: bool, asks: bool = True) -> str:
        """Place a hold for a call, and return its id. If the hold cannot be paid, raise `Refused` with all figures.
        With `asks`, a person is asked for more money first, if the policy says so. With `started`, the call counts as
        sent at once."""
        live.must_be_at_work()
        # The fence is part of the operation id: a later attempt makes the call again and needs a hold of its own.
        op, hold = live.op("hold", bill.why, str(live.attempt.fence)), self.ground.ids.new()
        state, mine = "started" if started else "held", _held_by_flow(live) if live.holds else {}

        def decide(view: View, patient: bool) -> Decision[Json]:
            live.must_hold(view)
            lack = self.lacking(view, live, bill, mine)
            if lack.sentences:
                # This may interrupt the decision: a dead process may hold the missing money.
                self.slots.admission.refuses_payment(view, lack.sentences)
                if patient and lack.may_pass:
                    return Decision(None)
                raise _unpaid(live, lack)
            now = self.ground.clock.now()
            purse = bill.paid_from(purse_in(view, live.remit.id))
            data = {"hold": hold, "state": state, "amounts": {**bill.amounts}, "purse": purse_data(purse)}
            data |= {"fence": live.attempt.fence, "until": now + HELD_FOR, **bill.said, **_person(live)}
            return Decision(hold, (ledger_event("hold.placed", live.place, live.remit.holder, now, data),))

        placed = ""
        while not placed:
            try:
                placed = await self._placed(live, bill, mine, op, decide)
            except Refused as no:
                if not asks or not await self.has_more(live, bill, no):
                    raise
        _note(live, placed, bill.amounts)
        return placed

    async def has_more(self, live: LiveTask, bill: Bill, no: Refused, full: Amounts | None = None) -> bool:
        """Ask a person for more money after a refusal, if the policy says so. Return whether the payment should be
        tried again. `full` is the amount that the payment would take if there were enough money."""
        if self.more is None or no.rule != RULE:
            return False
        return await self.more().get(self, live, bill, bill.amounts if full is None else full)

    async def _placed(self, live: LiveTask, bill: Bill, mine: Amounts, op: str, decide: Placing) -> str:
        """Place the hold and return its id. While other calls hold the money, wait for it, up to the time limit."""
        wants, clock, until = paying_wants(live), self.ground.clock, 0
        patient = self.wait > 0
        while True:
            placed = (await self.ground.store.tx(op, lambda view, patient=patient: decide(view, patient), wants)).answer
            if placed is not None:
                return str(placed)
            until = until or clock.ticks() + round(self.wait * SECOND)
            with live.verb():
                async with self.slots.given_up(live, Wait("money")):
                    await self._wait(live, bill, mine, (until - clock.ticks()) / SECOND)
            patient = clock.ticks() < until

    async def _wait(self, live: LiveTask, bill: Bill, mine: Amounts, seconds: float) -> None:
        def fits(view: View) -> bool | None:
            lack = self.lacking(view, live, bill, mine)
            return True if not lack.sentences or not lack.may_pass else None

        with move_on_after(self.ground.clock, seconds):
            await self.slots.bell.until(MONEY, fits)

    def lacking(self, view: View, live: LiveTask, bill: Bill, mine: Amounts) -> Lack:
        """Return the reasons why a payment is impossible: an open dispute, leases with too little money, the last
        share, or spending limits. `mine` are the amounts that the caller holds itself."""
        purse, book = bill.paid_from(purse_in(view, live.remit.id)), Book(view.lease)
        sentences: list[str] = []
        passes = True
        if (purse or self.limits) and (disputed := view.disputed(live.remit.holder)) is not None:
            sentences.append(frozen_because(disputed))
            passes = False
        run = live.remit.root
        for unit, wanted in bill.amounts.items():
            path, own = purse.get(unit, ()), mine.get(unit, 0)
            shorts = book.shorts(path, unit, wanted, own)
            for short in shorts:
                sentences.append(figures(short, run))
                passes = passes and not short.for_good
            used = book.half_used(run, path, unit, wanted) if not shorts and run != live.remit.id else None
            if used is not None and (kept := self._kept_back(view, used, wanted, own)) is not None:
                sentences.append(kept.sentence)
                passes = passes and not kept.for_good
            for over in self._exceeded(view, live, unit, wanted):
                sentences.append(over.sentence)
                passes = passes and not over.for_good
        return Lack(tuple(sentences), passes) if sentences else _NO_LACK

    def _kept_back(self, view: View, lease: Lease, wanted: int, own: int) -> KeptBack | None:
        from remit.engine.last_share import kept_back  # noqa: PLC0415 - a run that has enough does not need it

        return kept_back(view, self.last_word, lease, wanted, own)

    def exceeds(self, view: View, live: LiveTask, bill: Bill) -> bool:
        """Whether a payment exceeds a limit, whatever pays for it."""
        return any(self._exceeded(view, live, unit, wanted) for unit, wanted in bill.amounts.items())

    def _exceeded(self, view: View, live: LiveTask, unit: Unit, wanted: int) -> list[Exceeded]:
        found: list[Exceeded] = []
        remit = live.remit
        for limit in self.limits:
            most, metered = limit.most(unit), limit.meters(remit.holder, remit.session, remit.by)
            if most is None or metered is None:
                continue
            spent = view.metered(metered.scope, metered.name, unit, limit.since(self.ground.clock.now()))
            held = view.on_hold(unit, **metered.narrowed)
            if spent + held + wanted > most:
                found.append(Exceeded(limit, unit, metered, spent, held, wanted))
        return found

    async def start(self, live: LiveTask, hold: str) -> None:
        """Mark the call as sent. From then on it is charged, even if no cost is reported. Raise `Refused` if the hold
        has expired."""

        def decide(view: View) -> Decision[bool]:
            live.must_hold(view)
            found = view.hold(hold)
            if found is None or found.state != "held":
                why = "it was held for too long without starting" if found is None else f"it is {found.state}"
                raise Refused(f"the call of '{live.remit.holder}' cannot start: {why}; hold it again", rule=RULE)
            now = self.ground.clock.now()
            return Decision(True, (ledger_event("hold.started", live.place, live.remit.holder, now, {"hold": hold}),))

        await self.ground.store.tx(f"{hold}/start", decide, live.wants)

    # -- after the call ----------------------------------------------------------------------------------------

    async def settle(self, live: LiveTask, hold: str, costs: Amounts | None) -> bool:
        """Charge the cost of a call. If `costs` is None, charge the full hold and mark the call as uncertain. Return
        False if the hold is already resolved, such as by a process that has taken over the task."""
        return await self._resolved(live, hold, lambda view, held: self.settled(view, live, held, costs))

    async def release(self, live: LiveTask, hold: str, why: str) -> bool:
        """Release a whole hold, because the call was not sent. Return False if the hold is already resolved, such as by
        a process that has taken over the task."""
        return await self._resolved(live, hold, lambda _view, held: self.released(live, held, why))

    def released(self, live: LiveTask, hold: Hold, why: str) -> list[Unsealed]:
        """Return the events that release a hold."""
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
            done = (await shielded(write)).answer
        except Refused:
            return False  # the takeover or cancellation has settled the call
        finally:
            live.holds.pop(hold, None)
        return done

    def disputed(self, live: LiveTask, id_: str, purse: Purse, taken: int, said: int) -> list[Unsealed]:
        """Return the events for reported tokens that exceed the lease. They record an uncertain call that is charged
        with `taken` tokens, and ask a person for the real number."""
        now, remit, fence = self.ground.clock.now(), live.remit, live.attempt.fence
        amounts: dict[Unit, int] = {"tokens": taken} if taken else {}
        data: dict[str, Any] = {
            "hold": id_,
            "amounts": amounts,
            "purse": purse_data(purse),
            "why": _REPORTED,
            **_person(live),
        }
        placed = {**data, "state": "started", "fence": fence, "until": now}
        charge = Charge(amounts, {}, {"tokens": said})
        settled = {**data, "costs": charge.costs, "uncertain": True, "billed": charge.billed}
        where = (remit.id, remit.root, remit.session, remit.holder)
        hold = Hold(id_, *where, fence, "uncertain", 0, taken, "", now, "", _REPORTED, "", "", person=remit.by)
        return [
            ledger_event("hold.placed", live.place, remit.holder, now, placed),
            ledger_event("hold.settled", live.place, remit.holder, now, settled),
            asked_about(hold, charge, live.place, now),
        ]

    def settled(
        self, view: View, live: LiveTask, hold: Hold, costs: Amounts | None, at_most: Amounts | None = None
    ) -> list[Unsealed]:
        """Return the events that charge a call. If `costs` is None, the call is uncertain, and the full hold is
        charged, but no more than `at_most`. If the costs exceed the hold by too much, a person is asked."""
        data = resolution(hold)
        if costs is None:
            most = {unit: min(amount, (at_most or {}).get(unit, amount)) for unit, amount in hold.amounts.items()}
            data |= {"costs": most, "uncertain": True}
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


def _person(live: LiveTask) -> dict[str, Any]:
    """Return the person who started the run, as data for the spending limits of a person. Return {} if no person is
    named."""
    return {"person": live.remit.by} if live.remit.by else {}


def paying_wants(live: LiveTask) -> Wants:
    """Return the records that a decision about a payment reads, so that the store can fetch them together."""
    return Wants((live.remit.id,), leases=(ACCOUNT,), disputes=(live.remit.holder,))


def _held_by_flow(live: LiveTask) -> dict[Unit, int]:
    """Return the amounts that the current asyncio task already holds. A payment must not wait for these holds, because
    they end only after it."""
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


WHY_LIMIT = 200
NOT_SENT = "it was not sent"
MOST_TOKENS = 1_000_000_000_000  # of one report, so that sums stay within 64 bits


class InstalledPrices:
    """The price list of the installed package, for a runtime without one. Importing it takes half a second, so it is
    loaded when money is first limited; until then no price is known."""

    def __init__(self, find: Callable[[], Prices | None]) -> None:
        self._find = find
        self._found: Prices | None = None
        self.is_loaded = False

    def load(self) -> None:
        """Load the list, if the package is installed."""
        if not self.is_loaded:
            self._found = self._find()
            self.is_loaded = True

    def cost(self, model: str, usage: Usage) -> int | None:
        return None if self._found is None else self._found.cost(model, usage)

    def worst(self, model: str, input_tokens: int, max_output: int) -> int | None:
        return None if self._found is None else self._found.worst(model, input_tokens, max_output)

    @property
    def is_there(self) -> bool:
        """Whether the price list has been loaded and its package is installed."""
        return self._found is not None


class OwnersPrices(NamedTuple):
    """The price list that an owner passed."""

    given: Prices

    def cost(self, model: str, usage: Usage) -> int | None:
        with owners_function("System(prices=...)"):
            return self.given.cost(model, usage)

    def worst(self, model: str, input_tokens: int, max_output: int) -> int | None:
        with owners_function("System(prices=...)"):
            return self.given.worst(model, input_tokens, max_output)


class Tariff(NamedTuple):
    """The prices of calls. `prices` is the price list. `refuse_unknown` says that a model with an unknown price is
    refused. `has_key` returns whether the workspace has its own key for a provider. `in_file` says that the team is a
    file, so that errors name settings as the file does."""

    prices: Prices
    refuse_unknown: bool
    has_key: Any  # (provider) -> awaitable bool
    in_file: bool = False

    def load(self) -> None:
        """Load the prices, because money is limited."""
        if isinstance(self.prices, InstalledPrices):
            self.prices.load()


class PaidCall:
    """A call that costs money: `async with turn.paid_call("$0.05", why="photo") as call`.

    remit places a hold before the body runs, and charges the cost afterwards: the amount that `cost` reported, or the
    full hold, as uncertain, without a report. `not_sent` releases the hold. In a rerun the body runs again and is paid
    again; `turn.once(..., estimate="$0.05")` is paid once.
    """

    def __init__(self, live: LiveTask, holding: Holding, tariff: Tariff, bill: Bill, *, start: bool) -> None:
        self._live = live
        self._holding = holding
        self._tariff = tariff
        self._bill = bill
        self._starts = start
        self._started = False
        self._sent = True
        self._costs: dict[Unit, int] | None = None
        self.hold = ""  # its id, once placed

    async def __aenter__(self) -> Self:
        if self.hold:
            raise Conflict("a paid call is entered once; make another one")
        self._bill = await with_key(self._bill, self._tariff)
        self.hold = await self._holding.place(self._live, self._bill, started=self._starts)
        self._started = self._starts
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if not self._started or not self._sent:
            await self._holding.release(self._live, self.hold, NOT_SENT)
        else:
            await self._holding.settle(self._live, self.hold, self._costs)

    def charged(self, view: View) -> list[Unsealed]:
        """Return the events that charge the call, for the transaction that records its result: the estimate, unless
        another cost was reported."""
        hold = view.hold(self.hold)
        if hold is None or hold.state == "uncertain":
            return []
        if not self._sent:
            return self._holding.released(self._live, hold, NOT_SENT)
        if self._costs is None:
            self._costs = dict(hold.amounts)
        return self._holding.settled(view, self._live, hold, self._costs)

    async def start(self) -> None:
        """Mark the request as sent, if it was only held so far."""
        if not self._started:
            await self._holding.start(self._live, self.hold)
            self._started = True

    def cost(self, credits: CreditsGiven = None, *, tokens: int = 0) -> None:
        """Report the cost of the call."""
        self._costs = amounts(credits, tokens, "the cost of a call")

    def report_usage(self, usage: Usage) -> None:
        """Report the model's usage. The cost is computed from the usage and the price of the model."""
        self._costs = costs_of(usage, self._bill.model, self._tariff)

    def not_sent(self) -> None:
        """Report that the request was not sent: nothing is charged."""
        self._sent = False


class Paying(NamedTuple):
    ground: Ground
    holding: Holding
    tariff: Tariff

    def call(self, live: LiveTask, bill: Bill, *, start: bool) -> PaidCall:
        return PaidCall(live, self.holding, self.tariff, bill, start=start)

    async def spend(self, live: LiveTask, bill: Bill) -> None:
        """Pay at once. In a rerun, the recorded payment is found and not repeated."""
        live.must_be_at_work()
        bill = await with_key(bill, self.tariff)
        op = live.operations.spend(bill.why, *(f"{unit}={cost}" for unit, cost in bill.amounts.items()))

        def decide(view: View) -> Decision[bool]:
            live.must_hold(view)
            lack = self.holding.lacking(view, live, bill, {})
            if lack.sentences:
                what = "; ".join(lack.sentences)
                raise Refused(f"'{live.remit.holder}' may not spend this: {what}; go on without it", rule=RULE)
            book, purse, now = Book(view.lease), bill.paid_from(purse_in(view, live.remit.id)), self.ground.clock.now()
            wanted: dict[Unit, int] = {unit: cost for unit, cost in bill.amounts.items() if unit in purse}
            steps = {unit: book.charge(purse[unit], unit, cost) for unit, cost in wanted.items()}
            data = {"costs": {**bill.amounts}, "steps": steps, **bill.said, **_person(live)}
            return Decision(True, (ledger_event("credits.spent", live.place, live.remit.holder, now, data),))

        if live.attempt.is_rerun:
            await must_not_differ(self.ground, live, op, bill.why)
        paid = False
        while not paid:
            try:
                paid = (await self.ground.store.tx(op, decide, paying_wants(live))).answer
            except Refused as no:
                if not await self.holding.has_more(live, bill, no):
                    raise
        live.spends = True

    async def report_tokens(self, live: LiveTask, tokens: int) -> None:
        """Record the tokens that an agent has used, even if they exceed the budget. If they do, raise `Refused`
        afterwards, unless a person gives more tokens."""
        live.must_be_at_work()
        between(tokens, "tokens", 0, MOST_TOKENS)
        remit, now, new = live.remit, self.ground.clock.now(), self.ground.ids.new()

        def decide(view: View) -> Decision[str]:
            if not tokens:
                return Decision("")
            purse = purse_in(view, remit.id)
            report = reported(view, purse, tokens)
            told = _used_up(report.short, tokens, remit.root) if report.short is not None else ""
            if report.believed:
                return Decision(told, (tokens_used(remit, tokens, now, report.steps),))
            return Decision(told, self.holding.disputed(live, new, purse, report.taken, tokens))

        used = (await self.ground.store.tx(live.op("used", str(tokens)), live.guarded(decide), live.wants)).answer
        live.tokens += tokens
        live.spends = True
        if used and not await self._goes_on(live, tokens):
            raise Refused(f"{used}; '{remit.holder}' has to finish with what it has", rule="tier")

    async def _goes_on(self, live: LiveTask, tokens: int) -> bool:
        """Ask a person to add as many tokens as were reported, if the policy says so. Return whether the task may
        continue."""
        holding, bill = self.holding, Bill({"tokens": tokens}, "as many tokens again as it reported")
        return holding.more is not None and await holding.more().get(holding, live, bill, bill.amounts)


def _used_up(lease: Lease, tokens: int, run: str) -> str:
    """Return the sentence for an exceeded token budget."""
    return f"{lease_name(lease, run)} has used {out_of(lease.unit, lease.spent + tokens, lease.granted)}"


# -- bills ------------------------------------------------------------------------------------------------------


def amounts(credits: CreditsGiven, tokens: int, what: str) -> dict[Unit, int]:
    """Return an amount of money and a number of tokens by unit."""
    between(tokens, "tokens", 0, MOST_TOKENS)
    found: dict[Unit, int] = {}
    if credits is not None:
        found["credits"] = read_credits(credits, what) or 0
    if tokens:
        found["tokens"] = tokens
    return found


def billed(credits: CreditsGiven, tokens: int, why: str, model: str, provider: str) -> Bill:
    """Return the bill of an agent's payment."""
    line(why, "why", WHY_LIMIT)
    if credits is None and not tokens:
        raise BadInput('pass an amount such as "$0.05", a number of tokens, or the usage of a model')
    between(tokens, "tokens", 0, MOST_TOKENS)
    found: dict[Unit, int] = {"credits": amount(credits, "what is paid")} if credits is not None else {}
    if tokens:
        found["tokens"] = tokens
    if model != "":
        line(model, "a model", NAME_LIMIT)
    return Bill(found, why, model, endpoint(provider) if provider != "" else "")


def costs_of(usage: Usage, model: str, tariff: Tariff) -> dict[Unit, int]:
    """Return the cost of a model's usage. If the price is unknown, raise `Refused`, or count only the tokens."""
    found: dict[Unit, int] = {"tokens": usage.input + usage.output}
    tariff.load()
    cost = tariff.prices.cost(model, usage)
    if cost is not None:
        found["credits"] = cost
    elif tariff.refuse_unknown:
        raise unknown_price(model, tariff)
    return {unit: amount_ for unit, amount_ in found.items() if amount_}


def unknown_price(model: str, tariff: Tariff) -> Refused:
    """Return the refusal for a model with an unknown price, where money is limited, in the words of the team's file or
    of Python."""
    if isinstance(tariff.prices, InstalledPrices) and not tariff.prices.is_there:
        why = "there is no price list: pip install 'remit[prices]', or name this price"
    else:
        why = "name it"
    if tariff.in_file:
        how = f'[prices."{model}"] with input = "$1" and output = "$2" for a million tokens'
        tokens = 'unknown_price = "tokens" in [policy]'
    else:
        how = f'System(prices=KnownPrices({{"{model}": Price(...)}})), of remit.adapters.prices'
        tokens = 'Policy(unknown_price="tokens")'
    sentence = f"the price of '{model}' is not known; {why} with {how}, or count tokens only with {tokens}"
    return Refused(sentence, rule="price")


async def with_key(bill: Bill, tariff: Tariff) -> Bill:
    """Return the bill, with its provider only if the workspace has its own key for it."""
    if bill.own_key and not await tariff.has_key(bill.own_key):
        return bill._replace(own_key="")
    return bill


class MoneyServices(NamedTuple):
    paying: Paying
    effects: Effects
