"""`ws.money`: the account of a workspace, its holds, its spending and its limits."""

from datetime import datetime
from typing import NamedTuple

from remit.core.checks import between, one_of
from remit.core.limits import LimitUse
from remit.core.money import Hold, Lease, Unit
from remit.core.prices import CreditsGiven, credits  # noqa: A004 - the word of the domain
from remit.core.prices import amount as read_amount
from remit.core.values import NAME_LIMIT, line, plain
from remit.engine.acts import act_of
from remit.errors import BadInput
from remit.report.spend import SPEND_BY, SpendBy, Spending
from remit.runtime.filters import StatsFilter, which_figures
from remit.runtime.opening import Opening
from remit.runtime.spending import limit_uses, spending_of

_MOST_TOKENS = 1_000_000_000_000
_WHY = 200


class Account(NamedTuple):
    """The account in each unit; None for a unit without a grant, which therefore limits nothing."""

    credits: Lease | None = None
    tokens: Lease | None = None


class WorkspaceMoney:
    """The money of a workspace: grants, reservations, holds and spending."""

    __slots__ = ("_opening",)

    def __init__(self, opening: Opening) -> None:
        self._opening = opening

    async def grant(
        self, amount: CreditsGiven = None, *, tokens: int = 0, why: str = "", op: str = "", by: str = ""
    ) -> Account:
        """Add money or tokens to the account: `await ws.money.grant("$10", why="November")`. After the first grant,
        remit refuses payments that the account cannot cover; before that, money is only counted. Return the account."""
        between(tokens, "tokens", 0, _MOST_TOKENS)
        amounts: dict[Unit, int] = {"tokens": tokens} if tokens else {}
        if amount is not None:
            amounts["credits"] = read_amount(amount, "a grant")
        if not amounts:
            raise BadInput('grant takes an amount, such as "$10", or tokens')
        await self._opening.engine.accounts.grant(amounts, plain(why, "why", _WHY, empty=True), act_of(op, by))
        return await self.account()

    async def account(self) -> Account:
        """Return the account: the available, reserved and spent amounts."""
        found = await self._opening.engine.accounts.account()
        return Account(found.get("credits"), found.get("tokens"))

    async def leases(self) -> list[Lease]:
        """Return the current reservations and caps, and the account."""
        return await self._opening.engine.accounts.leases()

    async def uncertain(self) -> list[Hold]:
        """Return the calls that were charged in full because their cost is unknown."""
        return await self._opening.engine.accounts.uncertain()

    async def reconcile(
        self,
        hold: str,
        cost: CreditsGiven = None,
        *,
        tokens: int | None = None,
        why: str = "",
        op: str = "",
        by: str = "",
    ) -> dict[Unit, int]:
        """Enter the real cost of an uncertain call, once. Return the refund by unit. A unit that is left out was
        charged correctly. The same cost again returns the same; another one raises `Conflict`."""
        line(hold, "a call's id", NAME_LIMIT)
        costs: dict[Unit, int] = {}
        if cost is not None:
            costs["credits"] = credits(cost, "a cost") or 0
        if tokens is not None:
            costs["tokens"] = between(tokens, "tokens", 0, _MOST_TOKENS)
        if not costs:
            raise BadInput('reconcile takes what the call cost: an amount such as "$0.01", tokens, or both')
        said = plain(why, "why", _WHY, empty=True)
        return await self._opening.engine.accounts.reconcile(hold, costs, said, act_of(op, by))

    async def unfreeze(self, why: str = "", *, op: str = "", by: str = "") -> bool:
        """Unfreeze the account after an overrun. Return whether it was frozen."""
        return await self._opening.engine.accounts.unfreeze(plain(why, "why", _WHY, empty=True), act_of(op, by))

    async def spend(
        self, by: SpendBy = "agent", *, since: datetime | None = None, until: datetime | None = None
    ) -> Spending:
        """Return the spending `by` "day", "agent", "model", "session", "person" or "run": credits, tokens and calls,
        the uncertain part, and the part paid with the workspace's own keys. The lines add up to the total; without
        `since` and `until`, the total equals what the account has spent."""
        one_of(by, SPEND_BY, "by")
        window, _ = which_figures(StatsFilter(since=since, until=until))
        return await self._opening.records.browse(lambda view: spending_of(view, by, window))

    async def limits(self) -> list[LimitUse]:
        """Return the use of each limit of `Policy(limits=...)`: one entry for each unit; for a limit with "*", one for
        each agent, session or person that has used something."""
        opening = self._opening
        limits, now = opening.settings.policy.limits, opening.clock.now()
        return await opening.records.browse(lambda view: limit_uses(view, limits, now))
