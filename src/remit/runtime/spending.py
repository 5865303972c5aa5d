"""Reading the ledger, the charges of the journal, and who asks whom, on one snapshot."""

from collections.abc import Iterable, Iterator
from functools import cache, lru_cache
from typing import Any, Final, cast

from remit.core.kinds.money import SPENDS
from remit.core.lifecycle import TERMINAL
from remit.core.limits import EACH, TASKS, Limit, LimitUse, Metered, MeterUnit
from remit.core.money import ACCOUNT, Hold, Lease, Unit
from remit.core.tally import Window
from remit.engine.door import purse_of
from remit.ports import Span, View
from remit.report.edges import EDGE_KINDS, AskEdge, Asking, EdgeSums, asking_in
from remit.report.spend import Backed, LedgerAudit, SpendBy, Spending, Spends, account_spent, ledger_audit

_PAGE: Final = 1_000
_ALWAYS: Final = Window()


def spending_of(view: View, by: SpendBy, window: Window) -> Spending:
    """Return the spending within a window. Over all time, the spending of pruned runs is computed from the account."""
    spends = _spends(view, by, window)
    if window != _ALWAYS:
        return spends.result()
    uncertain = sum(hold.credits for hold in _holds(view) if hold.state == "uncertain")
    return spends.result(account_spent(_leases(view)), uncertain)


def edges_of(view: View, window: Window) -> list[AskEdge]:
    """Return the edges of the graph of who asks whom, summed over a window. The journal is read page by page."""

    @lru_cache(maxsize=10_000)  # most tasks end soon after they began
    def asking(task: str) -> Asking | None:
        record = view.record(task) if task else None
        first = view.event(record.began) if record is not None else None
        return None if first is None else asking_in(first)

    edges = EdgeSums(asking)
    span = Span(since=window.since, until=window.until, kinds=EDGE_KINDS, limit=_PAGE)
    while page := view.events(span):
        for event in page:
            edges.add(event)
        span = span._replace(after=page[-1].seq)
    return edges.result()


def limit_uses(view: View, limits: Iterable[Limit], now: int) -> list[LimitUse]:
    """Return the use of each limit, in each unit, for each subject."""
    return [use for limit in limits for unit in limit.units for use in _uses(view, limit, unit, now)]


def _uses(view: View, limit: Limit, unit: MeterUnit, now: int) -> Iterator[LimitUse]:
    scope, name = limit.of
    by_name: dict[str, list[tuple[str, int]]] = {} if name == EACH else {name: []}
    for whose, hour, spent in view.meter_hours(scope, name, unit, limit.since(now)):
        by_name.setdefault(whose, []).append((hour, spent))
    for whose, hours in (by_name or {EACH: []}).items():
        held = 0 if unit == TASKS else view.on_hold(unit, **Metered(scope, whose).narrowed)
        use = LimitUse(limit, unit, Metered(scope, whose), sum(spent for _, spent in hours), held)
        yield use if use.used < use.most else use._replace(room_at=limit.room_at(unit, hours))


def audit_of(view: View) -> LedgerAudit:
    """Check the whole ledger. Return what was checked, and what is wrong."""

    def has_ended(task: str) -> bool:
        standing = view.standing(task)
        return standing is None or standing.state in TERMINAL

    told = _spends(view, "agent", _ALWAYS).told
    return ledger_audit(_leases(view), [*_holds(view)], has_ended, told, cut=_is_cut(view))


def _is_cut(view: View) -> bool:
    """Whether events are missing: removed from the journal, or forgotten by a store in memory."""
    first = view.events(Span(limit=1))
    return bool(view.gaps_after(0, 1)) or bool(first and first[0].seq > 1)


def _spends(view: View, by: SpendBy, window: Window) -> Spends:
    spends = Spends(by, _backed(view))
    span = Span(since=window.since, until=window.until, kinds=SPENDS, limit=_PAGE)
    while page := view.events(span):
        for event in page:
            spends.add(event)
        span = span._replace(after=page[-1].seq)
    return spends


def _backed(view: View) -> Backed:
    """Return a function that says whether a task's lease got its money from the account, by the task's purse."""

    @cache
    def backed(lease: str, unit: Unit) -> bool:
        record = view.record(lease.partition(".")[0])
        path = purse_of(record.purse).get(unit) if record is not None else None
        return bool(path) and path[-1][-1] == ACCOUNT

    return backed


def _leases(view: View) -> list[Lease]:
    found: list[Lease] = []
    while page := view.leases((found[-1].id, found[-1].unit) if found else ("", ""), _PAGE):
        found += page
    return found


def _holds(view: View) -> Iterator[Hold]:
    page = view.page("hold", None, _PAGE)
    while page:
        yield from (Hold(**cast("dict[str, Any]", row)) for _, row in page)
        page = view.page("hold", page[-1][0], _PAGE)
