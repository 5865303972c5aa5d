"""Spending, and the audit of the ledger. Spending is the journal's charges as lines that add up, by day, agent, model,
session, person or run; the audit checks that every lease balances, and that spent, held and reserved amounts add up.

Each charge counts once; every other figure is a sum of charges. The correction of an uncertain call counts on the day
of the correction. The spending of pruned runs is one line, computed from the account, so that the lines still add up to
what the account has spent.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, Final, Literal, NamedTuple, TypeAlias, cast, get_args

from remit.core.events import Event
from remit.core.kinds.money import Outlay, charge_in
from remit.core.ledger import unbalanced
from remit.core.money import ACCOUNT, UNITS, Hold, Lease, Unit, amount_text
from remit.core.tally import Figures, SpendOver, SpendSeries
from remit.core.times import iso
from remit.core.values import decode
from remit.report.figures import decimal

SpendBy: TypeAlias = Literal["day", "agent", "model", "session", "person", "run"]
SPEND_BY: Final[tuple[str, ...]] = get_args(SpendBy)
SPEND_SERIES: Final[tuple[str, ...]] = get_args(SpendSeries)
SPEND_OVER: Final[tuple[str, ...]] = get_args(SpendOver)
PRUNED: Final = "pruned runs"
TOTAL: Final = "total"
_NOTHING: Final = Outlay()

# Whether the last lease of a charge got its money from the account; called only for other leases than the account.
Backed: TypeAlias = Callable[[str, Unit], bool]


@dataclass(frozen=True, slots=True)
class SpendLine:
    """The spending of one name. `uncertain` is the part of `credits` with unknown cost. `own_key` is the part paid
    directly to the provider with a key of the workspace: counted, not charged. `calls` counts paid calls and payments.
    """

    name: str
    credits: int = 0
    tokens: int = 0
    calls: int = 0
    uncertain: int = 0
    own_key: int = 0

    @property
    def charged(self) -> int:
        """The amount charged to leases and the account."""
        return self.credits - self.own_key


@dataclass(frozen=True, slots=True)
class Spending:
    """Spending as lines, the highest first (days in their order), the spending of pruned runs, if any, and the
    total."""

    by: str
    lines: tuple[SpendLine, ...]
    total: SpendLine
    pruned: SpendLine | None = None

    @property
    def rows(self) -> list[SpendLine]:
        """All rows: the lines, the pruned runs, and the total."""
        return [*self.lines, *([self.pruned] if self.pruned is not None else []), self.total]


@dataclass(frozen=True, slots=True)
class SpendPoint:
    """The spending of one day, agent and model. If a series is not grouped by one of these three, that one is empty.
    `day` is in UTC. The figures are those of `SpendLine`."""

    day: str
    agent: str
    model: str
    credits: int = 0
    tokens: int = 0
    calls: int = 0
    uncertain: int = 0
    own_key: int = 0

    @property
    def counts(self) -> tuple[int, int]:
        """Its tokens and calls."""
        return self.tokens, self.calls


def spend_points(days: Mapping[int, Mapping[str, Figures]], by: SpendOver) -> list[SpendPoint]:
    """Return the spending grouped `by` day, agent, model or several of these, in their order. `days` has the statistics
    of each agent by the start of the day, in microseconds since 1970."""
    chosen, sums = by.split(","), dict[tuple[str, str, str], Outlay]()
    for start, agents in days.items():
        for agent, figures in agents.items():
            for model, charge in figures.charges().items():
                day = iso(start)[:10] if "day" in chosen else ""
                place = (day, agent if "agent" in chosen else "", model if "model" in chosen else "")
                sums[place] = sums.get(place, _NOTHING).plus(charge)
    return [SpendPoint(*place, *charge) for place, charge in sorted(sums.items()) if any(charge)]


class Spends:
    """Adds up charges; feed it the events of `SPENDS`, in any order."""

    def __init__(self, by: SpendBy, backed: Backed) -> None:
        self._by: SpendBy = by
        self._backed = backed
        self._sums: dict[str, Outlay] = {}
        self._told: dict[Unit, int] = dict.fromkeys(UNITS, 0)

    def add(self, event: Event) -> None:
        if event.kind == "hold.reconciled" and not event.run:
            return  # a charge of a pruned run: part of the row for pruned runs
        charge, data = charge_in(event), cast("dict[str, Any]", event.data)
        name = _group(self._by, event)
        self._sums[name] = self._sums.get(name, _NOTHING).plus(charge)
        for unit, amount in zip(UNITS, charge, strict=False):
            if amount and self._charges_account(data, unit):
                self._told[unit] += amount

    @property
    def told(self) -> dict[Unit, int]:
        """The amounts that these charges took from the account, by unit."""
        return {**self._told}

    def _charges_account(self, data: Mapping[str, Any], unit: Unit) -> bool:
        lease = _charged_last(data, unit)
        return lease == ACCOUNT or (lease != "" and self._backed(lease, unit))

    def result(self, account: Mapping[Unit, int] | None = None, uncertain: int = 0) -> Spending:
        """Return the spending. `account` is the total spending of the account in each unit: the part that no charge
        explains is that of pruned runs. `uncertain` is the total of uncertain cost. Leave both out for a part of the
        time, for which they are unknown; then there is no line for pruned runs."""
        lines = [SpendLine(name, *sums) for name, sums in self._sums.items()]
        lines.sort(key=lambda line: line.name if self._by == "day" else (-line.credits, -line.tokens, line.name))
        pruned = None if account is None else self._pruned(account, uncertain - sum(line.uncertain for line in lines))
        total = summed_lines([*lines, *([pruned] if pruned is not None else [])])
        return Spending(self._by, tuple(lines), total, pruned)

    def _pruned(self, account: Mapping[Unit, int], uncertain: int) -> SpendLine | None:
        credits_, tokens = (max(0, account.get(unit, 0) - self._told[unit]) for unit in UNITS)
        found = SpendLine(PRUNED, credits_, tokens, 0, min(max(0, uncertain), credits_))
        return found if credits_ or tokens else None


def summed_lines(lines: Iterable[SpendLine], name: str = TOTAL) -> SpendLine:
    """Return the sum of the lines."""
    figures = [field.name for field in fields(SpendLine)[1:]]
    every = [*lines]
    return SpendLine(name, *(sum(getattr(line, figure) for line in every) for figure in figures))


def account_spent(leases: Sequence[Lease]) -> dict[Unit, int]:
    """Return the account's spending in each unit, from its own figures: its charges, its overrun, and the spending so
    far of all reservations from it. A unit without a grant is left out."""
    known: dict[tuple[str, Unit], Lease] = {(lease.id, lease.unit): lease for lease in leases}
    found: dict[Unit, int] = {}
    for unit in UNITS:
        account = known.get((ACCOUNT, unit))
        if account is not None:
            aside = [lease for lease in leases if lease.unit == unit and lease.kind == "carve"]
            set_aside = sum(lease.spent for lease in aside if from_account(lease, known))
            found[unit] = account.spent + account.overrun + set_aside
    return found


def from_account(lease: Lease, known: Mapping[tuple[str, Unit], Lease]) -> bool:
    """Whether a lease's money came from the account, through any number of other leases."""
    at: Lease | None = lease
    while at is not None and at.above:
        source = at.above[-1]  # the lease above that has money of its own
        if source == ACCOUNT:
            return True
        at = known.get((source, at.unit))
    return False


def csv_points(points: Sequence[SpendPoint]) -> list[list[str]]:
    """Return a series as rows of a table, the column names first. Money is in US dollars."""
    rows = [["day", "agent", "model", "credits_usd", "tokens", "calls", "uncertain_usd", "own_key_usd"]]
    for point in points:
        money = [decimal(amount) for amount in (point.credits, point.uncertain, point.own_key)]
        names = [_cell(name) for name in (point.day, point.agent, point.model)]
        rows.append([*names, money[0], str(point.tokens), str(point.calls), *money[1:]])
    return rows


def csv_rows(spending: Spending) -> list[list[str]]:
    """Return the spending as rows of a table: column names, lines, total. Money is in US dollars."""
    rows = [[spending.by, "credits_usd", "tokens", "calls", "uncertain_usd", "own_key_usd"]]
    for line in spending.rows:
        money = [decimal(amount) for amount in (line.credits, line.uncertain, line.own_key)]
        rows.append([_cell(line.name), money[0], str(line.tokens), str(line.calls), *money[1:]])
    return rows


# -- one event ------------------------------------------------------------------------------------------------------


def _group(by: SpendBy, event: Event) -> str:
    if by == "day":
        return iso(event.at)[:10]
    return cast("str", event.data.get(by, "")) if by in ("model", "person") else getattr(event, by)


def _charged_last(data: Mapping[str, Any], unit: Unit) -> str:
    """Return the last lease that a charge reached, or "" if it was charged to none."""
    path = data.get("purse", {}).get(unit)
    if path:
        return path[-1][-1]
    steps = data.get("steps", {}).get(unit)
    if steps:
        return steps[-1][0]
    back = data.get("back", {}).get(unit)
    return back[1][-1] if back and back[1] else ""


def _cell(text: str) -> str:
    """Return a name that a spreadsheet cannot take for a formula."""
    return f"'{text}" if text[:1] in ("=", "+", "-", "@", "\t", "\r") else text


# -- the audit of the ledger ---------------------------------------------------------------------------------


class LedgerAudit(NamedTuple):
    """The result of an audit: what was checked, and what is wrong. `told` is the account's spending according to the
    journal, `spent` according to the account. `cut` says that events were removed from the journal, so `told` may be
    lower."""

    leases: int
    holds: int
    uncertain: int
    told: dict[Unit, int]
    spent: dict[Unit, int]
    cut: bool
    broken: tuple[str, ...]

    @property
    def sound(self) -> bool:
        return not self.broken


def ledger_audit(
    leases: Sequence[Lease],
    holds: Sequence[Hold],
    has_ended: Callable[[str], bool],
    told: Mapping[Unit, int],
    *,
    cut: bool,
) -> LedgerAudit:
    """Return the audit of a ledger. `has_ended` says whether a task has ended; `told` is the account's spending
    according to the journal."""
    spent = account_spent(leases)
    broken = [sentence for lease in leases if (sentence := unbalanced(lease._asdict()))]
    broken += _held_and_lent(leases, holds)
    broken += [
        f"call {hold.id} of task {hold.task} is {hold.state}, although the task has ended"
        for hold in holds
        if hold.state != "uncertain" and has_ended(hold.task)
    ]
    broken += _untold(spent, told, cut=cut)
    uncertain = sum(hold.state == "uncertain" for hold in holds)
    return LedgerAudit(len(leases), len(holds), uncertain, dict(told), spent, cut, tuple(broken))


def _held_and_lent(leases: Sequence[Lease], holds: Sequence[Hold]) -> list[str]:
    """Return where the held and lent amounts of leases differ from the existing holds and leases."""
    reserved: Counter[tuple[str, Unit]] = Counter()
    lent: Counter[tuple[str, Unit]] = Counter()
    for hold in holds:
        if hold.state == "uncertain":
            continue
        purse = cast("dict[str, Any]", decode(hold.purse)) if hold.purse else {}
        for unit, amount in hold.amounts.items():
            first, *rest = (purse.get(unit) or [[""]])[0]
            reserved[first, unit] += amount
            lent.update({(lease, unit): amount for lease in rest})
    for lease in leases:
        if lease.kind == "carve":
            lent.update({(above, lease.unit): lease.granted for above in lease.above})
    found: list[str] = []
    for lease in leases:
        unit, name = lease.unit, _name(lease)
        pairs = (("held", lease.reserved, reserved[lease.id, unit]), ("lent", lease.lent, lent[lease.id, unit]))
        for word, has, wants in pairs:
            if has != wants:
                amounts = (
                    f"{amount_text(lease.unit, has)} is {word} of it, and there is {amount_text(lease.unit, wants)}"
                )
                found.append(f"{name} says that {amounts}")
    return found


def _untold(spent: Mapping[Unit, int], told: Mapping[Unit, int], *, cut: bool) -> list[str]:
    """Return where the account's spending differs from the sum of its charges. If events were removed, the sum may be
    lower."""
    found: list[str] = []
    for unit in UNITS:
        if unit not in spent:
            continue
        has, sums = spent[unit], told.get(unit, 0)
        if sums > has or (sums < has and not cut):
            amounts = (
                f"the account has spent {amount_text(unit, has)}, and all charges come to {amount_text(unit, sums)}"
            )
            found.append(f"in {unit}, {amounts}")
    return found


def _name(lease: Lease) -> str:
    return f"the account of {lease.unit}" if lease.id == ACCOUNT else f"lease {lease.id} of {lease.unit}"
