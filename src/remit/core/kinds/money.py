"""Events of the ledger: what the owner grants, what is held for a call, and what it cost.

`purse` has the path of each unit, as `core.ledger` explains it; `steps` are charges beyond what was held, each with its
lease, what it gave and what it lacked.
"""

from collections.abc import Mapping
from typing import Any, Final, NamedTuple, NotRequired, TypedDict, cast

from remit.core.events import Event, Unsealed
from remit.core.kinds.place import Place
from remit.core.values import Json


class Opens(TypedDict, total=False):
    """What the event says that begins a task or hands it over: the paths it pays along, and the leases that begin with
    it: unit, kind and amount of each."""

    purse: dict[str, list[list[str]]]
    opens: list[tuple[str, str, int]]


class Closes(TypedDict, total=False):
    """What the end of a task says about leases: those that it shared and leaves, those of its own that wait for others,
    and those that close, each with its unit, kind, line above, and figures."""

    leaves: list[tuple[str, str]]
    closing: list[tuple[str, str]]
    closes: list[tuple[str, str, str, list[str], int, int, int]]


class AccountGranted(TypedDict):
    """The data of `account.granted`."""

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


class HoldPlaced(TypedDict):
    """The data of `hold.placed`. `own_key` names the provider whose key the workspace brought: nothing is charged."""

    hold: str
    state: str
    amounts: dict[str, int]
    purse: dict[str, list[list[str]]]
    fence: int
    until: int
    why: str
    model: NotRequired[str]
    own_key: NotRequired[str]


class HoldNamed(TypedDict):
    """The data of `hold.started`."""

    hold: str


class HoldResolved(TypedDict):
    """The data of `hold.settled` and `hold.released`. `costs` are what was billed; `uncertain` says that nobody told,
    or that a bill was more than its lease had: then `billed` is the bill; `because` is why it was released."""

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


class HoldReconciled(TypedDict):
    """The data of `hold.reconciled`: what was charged, what it really was, and which leases get how much back."""

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


class CreditsSpent(TypedDict):
    """The data of `credits.spent`: paid at once."""

    costs: dict[str, int]
    steps: dict[str, list[list[Any]]]
    why: str
    model: NotRequired[str]
    own_key: NotRequired[str]


class LedgerCarried(TypedDict):
    """The data of `ledger.carried`: rows of the ledger as they are, because events that led to them are cut out of the
    journal; and the hour before which nothing is metered any more."""

    leases: list[dict[str, Json]]
    holds: list[dict[str, Json]]
    meters: list[dict[str, Json]]
    forgotten: str


def ledger_event(kind: str, at: Place, agent: str, now: int, data: dict[str, Any]) -> Unsealed:
    """Make an event of the ledger."""
    return Unsealed(kind, now, data, at.run, at.session, at.task, agent)


# -- what they come to ---------------------------------------------------------------------------------------------

# What adds to what was spent; one that reconciles may take something back.
SPENDS: Final = frozenset(("hold.settled", "hold.reconciled", "credits.spent", "tokens.used"))


class Spent(NamedTuple):
    """What an event of `SPENDS` adds to what was spent, whoever paid for it."""

    credits: int
    tokens: int


def spent_in(event: Event) -> Spent:
    """Tell what an event adds to what was spent."""
    if event.kind == "tokens.used":
        return Spent(0, cast("int", event.data["tokens"]))
    costs = cast("Mapping[str, int]", event.data.get("costs", {}))
    charged = cast("Mapping[str, int]", event.data.get("charged", {}))
    credits_, tokens = costs.get("credits", 0), costs.get("tokens", 0)
    return Spent(credits_ - charged.get("credits", 0), tokens - charged.get("tokens", 0))
