"""Pruning: deleting old runs and compacting the journal, by the owner or by a worker in small steps."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Callable, Container, Iterable, Iterator, Sequence
from functools import partial
from operator import methodcaller
from typing import Any, Final, NamedTuple, cast

from anyio.lowlevel import checkpoint

from remit.core.card import restored as card_restored
from remit.core.entry import counts_up
from remit.core.events import Event, Gap, Mark, Place, Unsealed, joined, read
from remit.core.identity import UsedKey
from remit.core.kinds.models import CoolingSet
from remit.core.kinds.money import ledger_event
from remit.core.kinds.sharing import EntriesRemoved, EntrySet, EntryTouched, MessageSent, MessagesTaken
from remit.core.kinds.tasks import FirstData
from remit.core.kinds.upkeep import PrunedRun, journal_cut, keys_kept, runs_pruned
from remit.core.kinds.workspace import BreakerSet, KeySet
from remit.core.ledger import counted_in
from remit.core.limits import LONGEST, TASKS, MeterUnit
from remit.core.money import ACCOUNT, UNITS, Hold, Lease
from remit.core.projection import FLOOR
from remit.core.remit import task_of
from remit.core.times import HOUR, SECOND, hour_of
from remit.core.values import Json, encode
from remit.engine.artifacts import clear
from remit.engine.context import Entries
from remit.engine.ground import Ground
from remit.engine.settings import Serving
from remit.engine.upkeep.tallying import keep_figures
from remit.errors import NewerStore, StoreError
from remit.ports import Decision, Span, Store, View

CHARGES: Final = frozenset(("hold.settled", "hold.reconciled", "credits.spent", "tokens.used", "account.set"))
_METERED: Final = LONGEST + 2  # hours


def carry_over(view: View, events: Iterable[Event], holds: Iterable[Hold], now: int) -> list[Unsealed]:
    """Return the event that carries over the money of events that are about to be deleted: the balances of the account,
    calls of uncertain cost, and the meters of spending limits. The list is empty if they moved no money."""
    charges = [event for event in events if event.kind in CHARGES or "metered" in event.data]
    uncertain = [_hold_row(hold) for hold in holds]
    if not charges and not uncertain:
        return []
    forgotten = hour_of(now - _METERED * HOUR)
    data = {
        "leases": accounts(view),
        "holds": uncertain,
        "meters": [row for row in _meters(view, charges) if cast("str", row["hour"]) >= forgotten],
        "forgotten": forgotten,
    }
    return [ledger_event("ledger.carried", Place(), "", now, data)]


def counted_tasks(view: View, tasks: Iterable[str], now: int) -> list[Event]:
    """Return the first events of those tasks that still count for limits on tasks."""
    since = hour_of(now - _METERED * HOUR)
    if not view.metered("workspace", "", TASKS, since):
        return []  # nearly always: there is no limit on tasks
    records = (view.record(task) for task in tasks)
    firsts = (view.event(record.began) for record in records if record is not None)
    return [event for event in firsts if event is not None and "metered" in event.data]


def carried_again(view: View, gone: Iterable[Event], now: int) -> list[Unsealed]:
    """Return the event that replaces earlier carry-over events which are about to be deleted: it has the account, and
    the calls whose cost is still uncertain. The list is empty if none of the events is one."""
    old = [event for event in gone if event.kind == "ledger.carried"]
    if not old:
        return []
    named = [cast("str", row["id"]) for event in old for row in cast("list[dict[str, Any]]", event.data["holds"])]
    found = [hold for id_ in dict.fromkeys(named) if (hold := view.hold(id_)) is not None]
    data: dict[str, Any] = {"leases": accounts(view), "holds": [_hold_row(hold) for hold in found], "meters": []}
    data["forgotten"] = hour_of(now - _METERED * HOUR)
    return [ledger_event("ledger.carried", Place(), "", now, data)]


def accounts(view: View) -> list[dict[str, Any]]:
    """Return the rows of the account."""
    found = [view.lease(ACCOUNT, unit) for unit in UNITS]
    return [_lease_row(lease) for lease in found if lease is not None]


def is_metered(view: View, event: Event) -> bool:
    """Whether the meters in a carry-over event (`ledger.carried`) are still stored."""
    meters = cast("list[dict[str, Any]]", event.data["meters"])
    latest = max(meters, key=lambda row: row["hour"], default=None)
    return (
        latest is not None and view.meter(latest["scope"], latest["name"], latest["unit"], latest["hour"]) is not None
    )


def _meters(view: View, charges: list[Event]) -> list[dict[str, Any]]:
    keys: dict[tuple[str, str, Any, str], None] = {}
    for event in charges:
        hour = cast("str", event.data.get("hour", "")) or hour_of(event.at)
        units: tuple[MeterUnit, ...] = (TASKS,) if "metered" in event.data else UNITS
        person = event.data.get("by" if "metered" in event.data else "person", "")
        whose = {"unit": "", "hour": hour, "agent": event.agent, "session": event.session, "person": person}
        for scope, name, _, _ in counted_in(whose):
            keys |= {(scope, name, unit, hour): None for unit in units}
    rows: list[dict[str, Any]] = []
    for scope, name, unit, hour in keys:
        spent = view.meter(scope, name, unit, hour)
        if spent is not None:
            rows.append({"scope": scope, "name": name, "unit": unit, "hour": hour, "spent": spent})
    return rows


def _lease_row(lease: Lease) -> dict[str, Any]:
    return {**lease._asdict(), "above": encode([*lease.above])}


def _hold_row(hold: Hold) -> dict[str, Any]:
    return hold._asdict()


_STEP: Final = 250  # tasks and events looked at or deleted in one step
_APART: Final = 500  # events between gaps that are searched separately
_STATING: Final = ("runs.pruned", "journal.cut")
_RESTATED: Final = (*_STATING, "entries.removed")


class _Page(NamedTuple):
    """Some events that were checked: up to which number, which of them are removed, and whether there may be more."""

    upto: int
    gone: list[Event]
    more: bool


async def cut(ground: Ground, before: int, after: int = 0) -> int:
    """Remove the events before the time `before` that nothing needs, starting after event number `after`. Return the
    number of the last event that was checked. The work is done in small steps and can be cancelled between them."""
    store = ground.store
    counted = False
    while True:
        page = await store.read(lambda view, after=after: _looked_at(view, after, before))
        if page.gone:
            if not counted:  # statistics first, because they outlive the events
                await keep_figures(store)
                counted = True
            now = ground.clock.now()
            await store.tx(ground.ids.new(), lambda view, after=after, now=now: _cut_step(view, after, before, now))
        if not page.more:
            return page.upto
        after = page.upto
        await checkpoint()


def gaps_left_by(view: View, gone: Iterable[Event | Mark], restated: Sequence[Gap] = ()) -> list[Gap]:
    """Return the gaps after the removal of these events: new ones, joined with those they touch, and those whose
    declaring event is removed and which must be declared again."""
    fresh = joined(Gap(event.seq, event.seq, event.hash) for event in gone)
    known = {gap for first, last in _stretches(fresh) for gap in view.gaps_around(first, last)}
    found = [gap for gap in joined({*fresh, *known}) if gap not in known]
    return sorted([*found, *(gap for gap in restated if not any(_holds(one, gap) for one in found))])


def _stretches(gaps: list[Gap]) -> Iterator[tuple[int, int]]:
    """Yield the ranges in which gaps lie; distant gaps are in separate ranges, so that the events between need not be
    read."""
    if not gaps:
        return
    first, last = gaps[0].first, gaps[0].last
    for gap in gaps:
        if gap.first - last > _APART:
            yield first, last
            first = gap.first
        last = gap.last
    yield first, last


def _holds(outer: Gap, inner: Gap) -> bool:
    return outer.first <= inner.first and inner.last <= outer.last


def outlives(view: View, event: Event, going: Container[str] = ()) -> bool:
    """Whether an event says something that is still valid when its run and the messages in `going` are gone."""
    says = _SAYS.get(event.kind)
    return says is not None and says(view, event, going)


def _entry_stands(view: View, event: Event, _going: Container[str]) -> bool:
    told = read(event, EntrySet)
    entry = view.entry(told["namespace"], told["key"])
    return entry is not None and entry.version == told["version"]


def _expires_then(view: View, event: Event, _going: Container[str]) -> bool:
    told = read(event, EntryTouched)
    entry = view.entry(told["namespace"], told["key"])
    return entry is not None and entry.expires_at == told["expires_at"]


def _message_stays(view: View, event: Event, going: Container[str]) -> bool:
    """Whether the event says that a message was read which is still stored and not in `going`. This happens if a
    retried task read a message of another run."""
    ids = read(event, MessagesTaken)["ids"]
    return any(id_ not in going and view.has_message(id_) for id_ in ids)


def _breaker_stands(view: View, event: Event, _going: Container[str]) -> bool:
    return view.breaker_set_at(read(event, BreakerSet)["name"]) == event.at


def _cooling_stands(view: View, event: Event, _going: Container[str]) -> bool:
    return view.cooling_set_at(read(event, CoolingSet)["name"]) == event.at


def _card_stands(view: View, event: Event, _going: Container[str]) -> bool:
    cards = [card_restored(card) for card in cast("list[dict[str, Json]]", event.data["cards"])]
    return any(view.card(card.name) == card for card in cards)


def _is_metered(view: View, event: Event, _going: Container[str]) -> bool:
    return is_metered(view, event)


def _key_stands(view: View, event: Event, _going: Container[str]) -> bool:
    """Whether the event set the key that is stored now."""
    key = view.secret(read(event, KeySet)["name"])
    return key is not None and key.set_at == event.at


def _schedule_stands(view: View, event: Event, _going: Container[str]) -> bool:
    """Whether the event set a schedule, or changed it last."""
    schedule = view.schedule(cast("str", event.data["name"]))
    return schedule is not None and event.seq in (schedule.began, schedule.moved)


def _hook_stands(view: View, event: Event, _going: Container[str]) -> bool:
    """Whether the event added a hook, or changed it last."""
    hook = view.hook(cast("str", event.data["hook"]))
    return hook is not None and event.seq in (hook.began, hook.moved)


def _always(_view: View, _event: Event, _going: Container[str]) -> bool:
    return True


_SAYS: Final[dict[str, Callable[[View, Event, Container[str]], bool]]] = {
    "entry.set": _entry_stands,
    "entry.touched": _expires_then,
    "entries.removed": _always,
    "messages.taken": _message_stays,
    "breaker.set": _breaker_stands,
    "cards.published": _card_stands,
    "cooling.set": _cooling_stands,
    "keys.kept": _always,
    "account.granted": _always,
    "account.set": _always,
    "hold.reconciled": _always,
    "ledger.carried": _is_metered,
    "key.set": _key_stands,
    "access.made": _always,  # a row stays after it is revoked, so that its use can be traced
    "access.revoked": _always,
    "schedule.set": _schedule_stands,
    "schedule.fired": _schedule_stands,
    "schedule.skipped": _schedule_stands,
    "hook.added": _hook_stands,
    "hook.rotated": _hook_stands,
    "owner.acted": _always,  # operations are kept forever, like idempotency keys
}


def _looked_at(view: View, after: int, before: int) -> _Page:
    """Return the next page of events after number `after`, with those that can be removed. It ends before the first
    event that is not older than `before`: an event that undoes another one must not be removed before that one."""
    runs: dict[str, bool] = {"": False}  # whether each run still exists: in such a run any operation may be repeated
    gone: list[Event] = []
    upto, gaps = after, 0
    for event in view.events(Span(after=after, limit=_STEP)):
        if event.at >= before or gaps >= _STEP:
            return _Page(upto, gone, gaps >= _STEP)
        upto = event.seq
        if event.run not in runs:
            runs[event.run] = view.record(event.run) is not None
        if not runs[event.run] and (event.kind in _RESTATED or not outlives(view, event)):
            gone.append(event)
            gaps += len(view.gaps_stated(event.seq)) if event.kind in _STATING else 0
    return _Page(upto, gone, upto > after)


def _cut_step(view: View, after: int, before: int, now: int) -> Decision[int]:
    """Remove the events that nothing needs from one page of events. Facts in them that are still valid are recorded
    again."""
    gone = _looked_at(view, after, before).gone
    if not gone:
        return Decision(0)
    restated = [gap for event in gone if event.kind in _STATING for gap in view.gaps_stated(event.seq)]
    forgotten: dict[tuple[str, str], int] = {}
    floor = view.retired(*FLOOR).floor
    for event in gone:
        for namespace, key, version in read(event, EntriesRemoved)["keys"] if _removes(event) else ():
            if view.retired(namespace, key).version == version:
                forgotten[namespace, key] = version
    floor = max([floor, *filter(counts_up, forgotten.values())])
    gaps = gaps_left_by(view, gone, restated)
    events = (journal_cut(gaps, [*forgotten], floor, now), *carried_again(view, gone, now))
    return Decision(len(gone), events)


def _removes(event: Event) -> bool:
    return event.kind == "entries.removed"


_PAGE: Final = 500  # runs read in one step
_TASK: Final = 200  # characters


class Pruning(NamedTuple):
    """The runs to prune: those in which everything ended before the time `before`. `told` is called with the number of
    runs deleted so far.

    If `thorough`, the other old events that nothing needs and the unused artifact contents are also removed. A worker
    prunes without it, because it removes these itself."""

    before: int
    op: str = ""
    thorough: bool = True
    told: Callable[[int], None] | None = None
    by: str = ""


async def prune(ground: Ground, pruning: Pruning) -> int:
    """Delete the runs in which everything ended before the time `pruning.before`. Return the number of deleted runs.
    The work can be cancelled between two steps."""
    store, (before, op, thorough, told, by) = ground.store, pruning
    pruned = await _deleted_before(store, op) if op else 0
    kept = False
    async for old in old_runs(store, before):
        if not kept:  # statistics first, because they outlive the events
            await keep_figures(store)
            kept = True
        rest = old
        while rest:
            id_ = _id(op, pruned) if op else ground.ids.new()
            step = partial(_step, old=rest, before=before, now=ground.clock.now(), by=by)
            gone, looked_at = await store.tx(id_, step)
            rest = rest[looked_at or 1 :]
            pruned += gone
            if told is not None:
                told(pruned)
            await checkpoint()
    if thorough:
        await cut(ground, before)
        await clear(ground)
    return pruned


async def old_runs(store: Store, before: int) -> AsyncGenerator[list[str]]:
    """Yield pages of runs whose root task ended before the time `before`. Subtasks of these runs may still be open."""
    last, after = await store.read(lambda view: view.last_before(before)), 0
    while after < last and (page := await store.read(lambda view, after=after: view.roots(after, _PAGE))):
        after = page[-1].began
        if old := [root.id for root in page if root.ended_at is not None and root.ended_at < before]:
            yield old
        await checkpoint()


async def _deleted_before(store: Store, op: str) -> int:
    """Return how many runs an earlier request with the same operation id has deleted."""
    pruned = 0
    while (done := await store.read(methodcaller("done", _id(op, pruned)))) is not None:
        pruned += done[0]
    return pruned


def _id(op: str, pruned: int) -> str:
    return f"prune/{op}/{pruned}"


def _step(view: View, old: list[str], before: int, now: int, by: str) -> Decision[int]:
    """Delete the first runs of `old` in one transaction, as many as make a step. Return the number of deleted runs;
    `aside` is the number of checked runs."""
    runs: list[PrunedRun] = []
    keys: list[UsedKey] = []
    gone: list[Mark] = []
    ledger: list[Event] = []
    holds: list[Hold] = []
    looked_at = size = 0
    for run in old:
        looked_at += 1
        size += 1
        tasks = view.prunable(run, before)
        if tasks:
            lasting = view.lasting_of_run(run)
            messages = [read(event, MessageSent)["id"] for event in lasting if event.kind == "message.sent"]
            stays = {event.seq for event in lasting if outlives(view, event, messages)}
            goes = [mark for mark in view.marks_of_run(run) if mark.seq not in stays]
            ledger += [*lasting, *counted_tasks(view, (task for task, _, _ in tasks), now)]
            holds += view.holds_of_run(run)
            runs.append(_summary(view, run, tasks, messages))
            keys += _keys(view, run, tasks)
            gone += goes
            size += len(tasks) + len(goes)
        if size >= _STEP:
            break
    if not runs:
        return Decision(0, aside=looked_at)
    events = [runs_pruned(runs, gaps_left_by(view, gone), now, by)]
    events += carry_over(view, ledger, holds, now)
    if keys:
        events.append(keys_kept(keys, now))
    return Decision(len(runs), events, aside=looked_at)


def _summary(view: View, run: str, tasks: list[tuple[str, str, int]], messages: list[str]) -> PrunedRun:
    """Return the facts that are kept about a run."""
    record = view.record(run)
    assert record is not None
    began = view.event(record.began)
    assert began is not None
    summary: PrunedRun = {
        "id": run,
        "agent": record.holder,
        "session": record.session,
        "task": task_of(read(began, FirstData))[:_TASK],
        "state": record.state,
        "asked_at": record.asked_at,
        "ended_at": record.ended_at,
        "tasks": [task for task, _, _ in tasks],
    }
    if messages:
        summary["messages"] = messages
    if questions := view.questions_of_run(run):
        summary["questions"] = questions
    return summary


def _keys(view: View, run: str, tasks: list[tuple[str, str, int]]) -> list[UsedKey]:
    """Return the idempotency keys that were used in a run, each with the end of its task."""
    used = view.keys_of_run(run)
    ends = {task: (state, ended) for task, state, ended in tasks} if used else {}
    return [key._replace(state=ends[key.task][0], ended_at=ends[key.task][1]) for key in used]


_CLEANUP_EVERY: Final = 60 * SECOND
_CUT_ALL: Final = 24  # prunes after which all old events are checked again

_log = logging.getLogger("remit")


class Upkeep:
    """The upkeep of a long-running worker. A short-lived process does none of it."""

    def __init__(self, ground: Ground, serving: Serving) -> None:
        self._ground = ground
        self._entries = Entries(ground)
        self._keep = serving.keep
        self._prune_every = round(serving.pace.prune_interval * SECOND)
        self._cleaned = self._pruned = ground.clock.ticks()
        self._rounds = self._cut_upto = 0
        self._wanted = asyncio.Event()

    def look(self) -> None:
        """Trigger the work that is due; this is called more often than needed."""
        now = self._ground.clock.ticks()
        if now - self._cleaned >= _CLEANUP_EVERY or self._prunes(now):
            self._wanted.set()

    async def serve(self) -> None:
        """Remove expired entries and prune, each when `look` has found it due, until cancelled."""
        while True:
            await self._wanted.wait()
            self._wanted.clear()
            try:
                await self._do()
            except NewerStore:  # reported by the worker
                return
            except StoreError as error:
                _log.warning("what is old could not be deleted, which is tried again later: %s", error)
            except Exception as error:  # noqa: BLE001 - an error in an old record must not stop the work
                _log.error("deleting what is old failed, which is tried again later: %r", error, exc_info=error)

    async def _do(self) -> None:
        now = self._ground.clock.ticks()
        if now - self._cleaned >= _CLEANUP_EVERY:
            self._cleaned = now
            await self._entries.cleanup()
        if self._keep is not None and self._prunes(now):
            self._pruned = now
            before = self._ground.clock.now() - self._keep
            await prune(self._ground, Pruning(before, thorough=False))
            # Check events that became old since the last time, and from time to time also those that were still needed
            # then.
            self._cut_upto = await cut(self._ground, before, self._cut_upto if self._rounds % _CUT_ALL else 0)
            self._rounds += 1
            await clear(self._ground)

    def _prunes(self, now: int) -> bool:
        return self._keep is not None and now - self._pruned >= self._prune_every
