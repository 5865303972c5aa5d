"""Paying in a turn: at once, around a call, and for an effect that is done once."""

from __future__ import annotations

from collections.abc import Callable
from types import TracebackType
from typing import Any, NamedTuple, Self

from remit.core.checks import between
from remit.core.credits import CreditsGiven, amount
from remit.core.credits import credits as read_credits
from remit.core.events import Unsealed
from remit.core.kinds import ledger_event, tokens_used
from remit.core.money import Book, Lease, Unit, called, out_of
from remit.core.prices import Usage
from remit.core.text import NAME_LIMIT, endpoint, line
from remit.engine.attempt.leftover import must_not_differ
from remit.engine.attempt.live import LiveTask
from remit.engine.door.funding import purse_in
from remit.engine.ground import Ground
from remit.engine.money.bills import reported
from remit.engine.money.holding import RULE, Bill, Holding, paying_wants
from remit.engine.owners import owners_function
from remit.errors import BadInput, Conflict, Refused
from remit.ports import Decision, Prices, View

WHY_LIMIT = 200
NOT_SENT = "it was not sent"
MOST_TOKENS = 1_000_000_000_000  # at a time: no model's answer has more, and any number of these can be added up


class InstalledPrices:
    """The list of prices of the installed package, for a runtime that was given none. It is half a second of importing,
    so it is loaded when money is limited for the first time; until then no price is known."""

    def __init__(self, find: Callable[[], Prices | None]) -> None:
        self._find = find
        self._found: Prices | None = None
        self.is_loaded = False

    def load(self) -> None:
        """Load the list, if the package is there."""
        if not self.is_loaded:
            self._found = self._find()
            self.is_loaded = True

    def cost(self, model: str, usage: Usage) -> int | None:
        return None if self._found is None else self._found.cost(model, usage)

    def worst(self, model: str, input_tokens: int, max_output: int) -> int | None:
        return None if self._found is None else self._found.worst(model, input_tokens, max_output)

    @property
    def is_there(self) -> bool:
        """Whether the package is installed."""
        return self._found is not None


class OwnersPrices(NamedTuple):
    """The prices that an owner gave."""

    given: Prices

    def cost(self, model: str, usage: Usage) -> int | None:
        with owners_function("System(prices=...)"):
            return self.given.cost(model, usage)

    def worst(self, model: str, input_tokens: int, max_output: int) -> int | None:
        with owners_function("System(prices=...)"):
            return self.given.worst(model, input_tokens, max_output)


class Tariff(NamedTuple):
    """What calls cost: the prices; whether a model whose price is not known is refused; for which providers the
    workspace has a key of its own; and whether the team is a file, whose words are spoken then."""

    prices: Prices
    refuse_unknown: bool
    has_key: Any  # (provider) -> awaitable bool
    in_file: bool = False

    def load(self) -> None:
        """Have the prices at hand: money is limited."""
        if isinstance(self.prices, InstalledPrices):
            self.prices.load()


class PaidCall:
    """A call that costs money: `async with turn.paid_call("$0.05", why="photo") as call`.

    What it may cost is held before the body runs, and what it did cost is charged after it: what `cost` said, or the
    whole hold, as uncertain, if nobody said anything. `not_sent` gives it back whole. Run again, the body runs again
    and is paid again: `turn.once(..., estimate="$0.05")` is paid once.
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
        self.hold = ""  # its id, once it is held

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
        """Give the events that charge it, for the transaction that keeps what came of it: what it was estimated to
        cost, unless someone said otherwise."""
        hold = view.hold(self.hold)
        if hold is None or hold.state == "uncertain":
            return []
        if not self._sent:
            return self._holding.released(self._live, hold, NOT_SENT)
        if self._costs is None:
            self._costs = dict(hold.amounts)
        return self._holding.settled(view, self._live, hold, self._costs)

    async def start(self) -> None:
        """Say that the request leaves now, if it was only held so far."""
        if not self._started:
            await self._holding.start(self._live, self.hold)
            self._started = True

    def cost(self, credits: CreditsGiven = None, *, tokens: int = 0) -> None:
        """Say what it has cost."""
        self._costs = amounts(credits, tokens, "the cost of a call")

    def report_usage(self, usage: Usage) -> None:
        """Say what the model has used; it is charged by its price."""
        self._costs = costs_of(usage, self._bill.model, self._tariff)

    def not_sent(self) -> None:
        """Say that the request never left: nothing is charged."""
        self._sent = False


class Paying(NamedTuple):
    ground: Ground
    holding: Holding
    tariff: Tariff

    def call(self, live: LiveTask, bill: Bill, *, start: bool) -> PaidCall:
        return PaidCall(live, self.holding, self.tariff, bill, start=start)

    async def spend(self, live: LiveTask, bill: Bill) -> None:
        """Pay at once; the same again when the task is run again is not paid again."""
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
            data = {"costs": {**bill.amounts}, "steps": steps, **bill.said}
            return Decision(True, (ledger_event("credits.spent", live.place, live.remit.holder, now, data),))

        if live.attempt.is_rerun:
            await must_not_differ(self.ground, live, op, bill.why)
        await self.ground.store.tx(op, decide, paying_wants(live))
        live.spends = True

    async def report_tokens(self, live: LiveTask, tokens: int) -> None:
        """Record the tokens, and refuse to go on if that is more than there were: what was used was used."""
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

        used = await self.ground.store.tx(live.op("used", str(tokens)), live.guarded(decide), live.wants)
        live.tokens += tokens
        live.spends = True
        if used:
            raise Refused(f"{used}; '{remit.holder}' has to finish with what it has", rule="tier")


def _used_up(lease: Lease, tokens: int, run: str) -> str:
    """Say that more was used than there was."""
    return f"{called(lease, run)} has used {out_of(lease.unit, lease.spent + tokens, lease.granted)}"


# -- what is asked for ------------------------------------------------------------------------------------------


def amounts(credits: CreditsGiven, tokens: int, what: str) -> dict[Unit, int]:
    """Read an amount of money and a number of tokens."""
    between(tokens, "tokens", 0, MOST_TOKENS)
    found: dict[Unit, int] = {}
    if credits is not None:
        found["credits"] = read_credits(credits, what) or 0
    if tokens:
        found["tokens"] = tokens
    return found


def billed(credits: CreditsGiven, tokens: int, why: str, model: str, provider: str) -> Bill:
    """Make the bill of something that an agent pays for."""
    line(why, "why", WHY_LIMIT)
    if credits is None and not tokens:
        raise BadInput('say how much: an amount such as "$0.05", a number of tokens, or the usage of a model')
    between(tokens, "tokens", 0, MOST_TOKENS)
    found: dict[Unit, int] = {"credits": amount(credits, "what is paid")} if credits is not None else {}
    if tokens:
        found["tokens"] = tokens
    if model != "":
        line(model, "a model", NAME_LIMIT)
    return Bill(found, why, model, endpoint(provider) if provider != "" else "")


def costs_of(usage: Usage, model: str, tariff: Tariff) -> dict[Unit, int]:
    """Tell what a model's usage costs. A price that is not known is refused, or only the tokens count."""
    found: dict[Unit, int] = {"tokens": usage.input + usage.output}
    tariff.load()
    cost = tariff.prices.cost(model, usage)
    if cost is not None:
        found["credits"] = cost
    elif tariff.refuse_unknown:
        raise unknown_price(model, tariff)
    return {unit: amount_ for unit, amount_ in found.items() if amount_}


def unknown_price(model: str, tariff: Tariff) -> Refused:
    """Refuse a model whose price nobody knows, where money is limited, in the words of the team's file or of Python."""
    if isinstance(tariff.prices, InstalledPrices) and not tariff.prices.is_there:
        why = "there is no list of prices: pip install 'remit[prices]', or name this price"
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
    """Keep the provider in a bill only if the workspace has a key of its own for it."""
    if bill.own_key and not await tariff.has_key(bill.own_key):
        return bill._replace(own_key="")
    return bill
