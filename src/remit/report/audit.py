"""The audit of the ledger: whether every lease balances, and whether spent, held and reserved amounts add up."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, cast

from remit.core.ledger import unbalanced
from remit.core.money import ACCOUNT, UNITS, Hold, Lease, Unit, spelled
from remit.core.values import decode
from remit.report.spend import account_spent


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


def audited(
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
                amounts = f"{spelled(lease.unit, has)} is {word} of it, and there is {spelled(lease.unit, wants)}"
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
            amounts = f"the account has spent {spelled(unit, has)}, and all charges come to {spelled(unit, sums)}"
            found.append(f"in {unit}, {amounts}")
    return found


def _name(lease: Lease) -> str:
    return f"the account of {lease.unit}" if lease.id == ACCOUNT else f"lease {lease.id} of {lease.unit}"
