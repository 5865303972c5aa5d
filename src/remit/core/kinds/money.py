"""Events of the ledger: grants, holds, charges.

`purse` has, for each unit, the path along which a task pays: lists of lease ids. A payment uses all leases of the first
list; a charge that is higher than they allow continues with the next list. `steps` are charges beyond a hold: for each
lease, the amount it paid and the amount it lacked.
"""

from collections.abc import Mapping
from typing import Any, Final, NotRequired, cast

from remit.core.events import Event, Place, Unsealed
from remit.core.records import NamedTuple, TypedDict
from remit.core.values import Json


class Opens(TypedDict, total=False):
    """The money data of an event that starts a task or hands it over: the paths along which it pays, and the leases
    that open with it, each with unit, kind and amount."""

    purse: dict[str, list[list[str]]]
    opens: list[tuple[str, str, int]]


class Closes(TypedDict, total=False):
    """The money data of a task's end. `leaves` are shared leases that it stops using, `closing` its own leases that
    stay open for other users. `closes` are leases that close, each with its unit, kind, the leases above it, and its
    granted amount, spending and overrun."""

    leaves: list[tuple[str, str]]
    closing: list[tuple[str, str]]
    closes: list[tuple[str, str, str, list[str], int, int, int]]


class AccountGranted(TypedDict):
    """The data of `account.granted`: an amount of a unit, credits or tokens, that an owner adds to the account. `first`
    is true for the first grant of the unit, from which on remit limits the spending."""

    unit: str
    amount: int
    first: NotRequired[bool]
    why: str
    by: str


class AccountSet(TypedDict):
    """The data of `account.set`: frozen, or open again."""

    unit: str
    state: str
    why: str
    by: NotRequired[str]


class LeaseRaised(TypedDict):
    """The data of `lease.raised`: a person gave a task more money. `adds` has the amount that each lease gets, `takes`
    the amount that each lease above sets aside for the one below it."""

    question: str
    unit: str
    amount: int
    adds: list[tuple[str, int]]
    takes: list[tuple[str, int]]
    why: str
    by: str


class HoldPlaced(TypedDict):
    """The data of `hold.placed`. `own_key` names the provider whose key the workspace brought: nothing is charged.
    `person` started the run, if one is named."""

    hold: str
    state: str
    amounts: dict[str, int]
    purse: dict[str, list[list[str]]]
    fence: int
    until: int
    why: str
    model: NotRequired[str]
    own_key: NotRequired[str]
    person: NotRequired[str]


class HoldNamed(TypedDict):
    """The data of `hold.started`: the id of the hold whose call has started."""

    hold: str


class HoldResolved(TypedDict):
    """The data of `hold.settled` and `hold.released`. `costs` is the billed amount. `uncertain` is set if no cost was
    reported, or if the bill exceeded the lease; then `billed` is the bill. `because` is the reason of a release."""

    hold: str
    amounts: dict[str, int]
    purse: dict[str, list[list[str]]]
    costs: NotRequired[dict[str, int]]
    steps: NotRequired[dict[str, list[list[Any]]]]
    uncertain: NotRequired[bool]
    billed: NotRequired[dict[str, int]]
    because: NotRequired[str]
    why: str
    model: NotRequired[str]
    own_key: NotRequired[str]
    person: NotRequired[str]


class HoldReconciled(TypedDict):
    """The data of `hold.reconciled`: the amount that was charged, the real cost, and the refund to each lease."""

    hold: str
    charged: dict[str, int]
    costs: dict[str, int]
    back: NotRequired[dict[str, tuple[int, list[str]]]]
    steps: NotRequired[dict[str, list[list[Any]]]]
    hour: str
    why: str
    by: str
    model: NotRequired[str]
    own_key: NotRequired[str]
    person: NotRequired[str]


class CreditsSpent(TypedDict):
    """The data of `credits.spent`: a payment without a hold."""

    costs: dict[str, int]
    steps: dict[str, list[list[Any]]]
    why: str
    model: NotRequired[str]
    own_key: NotRequired[str]
    person: NotRequired[str]


class LedgerCarried(TypedDict):
    """The data of `ledger.carried`: rows of the ledger, copied because the events that they come from are being removed
    from the journal. Meter rows of hours before `forgotten` are deleted."""

    leases: list[dict[str, Json]]
    holds: list[dict[str, Json]]
    meters: list[dict[str, Json]]
    forgotten: str


def ledger_event(kind: str, at: Place, agent: str, now: int, data: dict[str, Any]) -> Unsealed:
    """Return an event of the ledger."""
    return Unsealed(kind, now, data, at.run, at.session, at.task, agent)


# -- sums ----------------------------------------------------------------------------------------------------------

# Events that add to the spending; a reconciliation may subtract.
SPENDS: Final = frozenset(("hold.settled", "hold.reconciled", "credits.spent", "tokens.used"))


class Spent(NamedTuple):
    """The amounts that an event of `SPENDS` adds to the spending, for every payer."""

    credits: int
    tokens: int


def spent_in(event: Event) -> Spent:
    """Return the amounts that an event adds to the spending."""
    if event.kind == "tokens.used":
        return Spent(0, cast("int", event.data["tokens"]))
    costs = cast("Mapping[str, int]", event.data.get("costs", {}))
    charged = cast("Mapping[str, int]", event.data.get("charged", {}))
    credits_, tokens = costs.get("credits", 0), costs.get("tokens", 0)
    return Spent(credits_ - charged.get("credits", 0), tokens - charged.get("tokens", 0))


class Outlay(NamedTuple):
    """What an event of `SPENDS` adds to the spending: amounts, paid calls, the part with unknown cost (a correction
    subtracts it), and the part paid with a key of the workspace."""

    credits: int = 0
    tokens: int = 0
    calls: int = 0
    uncertain: int = 0
    own_key: int = 0

    def plus(self, other: "Outlay") -> "Outlay":
        """Return the sum of both."""
        return Outlay(*(one + more for one, more in zip(self, other, strict=True)))


def charge_in(event: Event) -> Outlay:
    """Return the amounts and the call that an event of `SPENDS` adds to the spending."""
    spent, data = spent_in(event), cast("dict[str, Any]", event.data)
    uncertain = data["costs"].get("credits", 0) if data.get("uncertain") else 0
    if event.kind == "hold.reconciled":
        uncertain = -data["charged"].get("credits", 0)
    called = event.kind in ("hold.settled", "credits.spent")
    return Outlay(*spent, int(called), uncertain, spent.credits if data.get("own_key") else 0)


SHAPES: Final[dict[str, type]] = {
    "account.granted": AccountGranted,
    "account.set": AccountSet,
    "lease.raised": LeaseRaised,
    "hold.placed": HoldPlaced,
    "hold.started": HoldNamed,
    "hold.settled": HoldResolved,
    "hold.released": HoldResolved,
    "hold.reconciled": HoldReconciled,
    "credits.spent": CreditsSpent,
    "ledger.carried": LedgerCarried,
}
