"""The verbs of a turn that are about money."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, NamedTuple, TypedDict, Unpack

from remit.core.checks import of_type, refuse_strange, yes_or_no
from remit.core.credits import CreditsGiven
from remit.core.prices import Usage
from remit.engine.attempt.effects import Effects
from remit.engine.attempt.live import LiveTask
from remit.engine.money.paying import PaidCall, Paying, billed, costs_of
from remit.errors import BadInput


class MoneyServices(NamedTuple):
    paying: Paying
    effects: Effects


class Calling(TypedDict, total=False):
    """What may be said about a call that costs something: how many tokens it may take, what it is for, which model it
    asks and how much of it, whose key it uses, and whether it leaves at once."""

    tokens: int
    why: str
    model: str
    usage: Usage
    provider: str
    start: bool


class MoneyVerbs:
    """What an agent can pay for. All of it is charged to what its task may spend."""

    _live: LiveTask
    _money: MoneyServices

    async def spend(self, amount: CreditsGiven, *, why: str, provider: str = "") -> None:
        """Pay for something at once: `await turn.spend("$0.02", why="stock photo")`.

        When the task is run again the same payment is found, and not paid again. Raises `Refused` with all figures if
        it cannot be paid.
        """
        await self._money.paying.spend(self._live, billed(amount, 0, why, "", provider))

    def paid_call(self, amount: CreditsGiven = None, **about: Unpack[Calling]) -> PaidCall:
        """Hold what a call may cost while it is made: `async with turn.paid_call("$0.05", why="photo") as call`.

        Say `call.cost("$0.013")` in the body, or `call.report_usage(Usage(...))` for a `model` with a price: the rest
        goes back. If nobody says anything the whole hold is charged, as uncertain; `call.not_sent()` gives it back.
        Instead of an amount, `usage` is the most that the model may use. With `start=False` it is only held until
        `await call.start()`. `provider` names whose key is used: one that the workspace brought is not charged.

        Run again, so is the body, and it is paid again. `turn.once(..., estimate="$0.05")` is paid once.
        """
        refuse_strange("paid_call", about, Calling.__annotations__.keys())
        model, usage, tokens = about.get("model", ""), about.get("usage"), about.get("tokens", 0)
        why, provider = about.get("why", "") or model, about.get("provider", "")
        paying, start = self._money.paying, yes_or_no(about.get("start", True), "start")
        if usage is None:
            return paying.call(self._live, billed(amount, tokens, why, model, provider), start=start)
        if amount is not None or tokens:
            raise BadInput("say how much a call may cost, or the usage of its model: one of the two")
        worst = costs_of(of_type(usage, Usage, "usage takes Usage(...)"), model, paying.tariff)
        named = billed(None, 1, why, model, provider)
        return paying.call(self._live, named._replace(amounts=worst), start=start)

    async def report_tokens(self, tokens: int) -> None:
        """Say how many tokens this turn has used: `await turn.report_tokens(answer.usage.total_tokens)`.

        They are recorded and count at once. If they are more than may be used, this raises `Refused` afterwards; answer
        with what there is then, or let it through.
        """
        await self._money.paying.report_tokens(self._live, tokens)

    async def once(
        self,
        name: str,
        do: Callable[..., Awaitable[object] | object],
        *args: object,
        estimate: CreditsGiven = None,
        provider: str = "",
    ) -> Any:
        """Do something that must not be done twice: `await turn.once("charge", charge_card, 5)`.

        What it gives back is JSON and is kept; when the task is run again after a crash or a failure, it is read and
        not done. Only if the process dies between doing and keeping is it done again: a function that takes
        `idempotency_key` gets the same key both times. An effect is known by its name and its arguments.

        With an `estimate` it is paid for, once: that much is held while it is done, and charged when it is kept. A
        function that takes `paid` may say what it really cost: `paid.cost("$0.03")`.
        """
        effects, paying = self._money.effects, self._money.paying
        if estimate is None:
            return await effects.once(self._live, name, do, *args)
        paid = paying.call(self._live, billed(estimate, 0, name, "", provider), start=True)
        return await effects.once(self._live, name, do, *args, paid=paid)
