"""Statistics of the journal, stored by hour and day, so that a query does not read all events.

Writing an event counts nothing. Workers add a slice of events every minute and queries add the missing events, both
only if there are enough of them; pruning adds the events that it is about to delete. A slice is counted outside of any
transaction, and written unless another process was faster: the statistics record the last event that they include. They
can be deleted and computed again.
"""

from __future__ import annotations

import logging
from collections import Counter, defaultdict
from collections.abc import Iterator
from typing import Final, NamedTuple, TypeAlias

from remit.core.events import Event
from remit.core.tally import HOUR_WIDE, WIDTHS, Counting, Figures, Into, Period, Recall, UnderWay, Window, start_of
from remit.core.times import SECOND
from remit.engine.ground import Ground
from remit.errors import StoreError
from remit.ports import Decision, Store, Tallied, TallyRow, View

SLICE: Final = 2_000  # events processed at once, few enough not to block other work
ENOUGH: Final = 500  # least number of events: fewer are counted as quickly as they are processed
EVERY: Final = 60 * SECOND
_EVER: Final = 2**62

_NOT_ROLLED_UP: Final = "the figures of '%s' could not be rolled up: %s"

_log = logging.getLogger("remit")


class Sum(NamedTuple):
    """The result of a query: the figures of each agent, and the number of open runs by state."""

    figures: dict[str, Figures]
    open_runs: Counter[str]


Series: TypeAlias = dict[int, dict[str, Figures]]  # of each hour or day, by its start, and of each agent


class _Slice(NamedTuple):
    after: int
    tally: Tallied


class Tallying:
    """Updates the statistics in a worker, every minute if there are enough new events."""

    def __init__(self, ground: Ground) -> None:
        self._ground = ground
        self._next = ground.clock.ticks() + EVERY  # a short-lived process never does

    async def tidy(self) -> None:
        """Add a slice of events to the statistics if a minute has passed since the last try, or at once if that slice
        was full. Fewer than `ENOUGH` events wait."""
        now = self._ground.clock.ticks()
        if now < self._next:
            return
        self._next = now + EVERY
        try:
            if await roll_up(self._ground.store, ENOUGH) == SLICE:
                self._next = now
        except StoreError as error:  # statistics can wait, the worker's other duties cannot
            _log.warning(_NOT_ROLLED_UP, self._ground.store.workspace, error)


async def roll_up(store: Store, least: int = 1, most: int = SLICE) -> int:
    """Add the next events of the journal to the statistics: at most `most`, and none if there are fewer than `least`.
    Return how many, also if another process has added them meanwhile."""
    try:
        found = await store.browse(lambda view: _slice(view, least, most))
        return 0 if found is None else await _write_slice(store, found)
    except (OverflowError, TypeError) as error:  # numbers that no valid event has
        raise StoreError(
            f"the figures of '{store.workspace}' cannot be written: {error}; run `remit doctor`"
        ) from error


async def _write_slice(store: Store, found: _Slice) -> int:
    after, tally = found

    def decide(view: View) -> Decision[bool]:
        if view.tallied() != after:  # another process was faster
            return Decision(False)
        return Decision(True, tally=tally)

    await store.tx(f"tally/{tally.upto}", decide)
    return tally.upto - after


async def roll_up_all(store: Store, least: int = 1) -> None:
    """Add all events of the journal that are missing in the statistics, unless fewer than `least` are missing."""
    while await roll_up(store, least) >= SLICE:  # a full slice: there may be more
        pass


async def keep_figures(store: Store) -> None:
    """Add all missing events to the statistics before pruning removes them. If that fails, log it and prune."""
    try:
        await roll_up_all(store)
    except StoreError as error:
        _log.warning(_NOT_ROLLED_UP, store.workspace, error)


async def figures(store: Store, window: Window, agent: str | None = None) -> Sum:
    """Return the statistics of a window, of one agent or of all. If at least `ENOUGH` events are missing, add them
    first. Events that are still missing, or cannot be added because the store is read-only, are counted on each
    call."""
    await _catch_up(store)
    return await store.browse(lambda view: _sum_by_agent(view, window, agent))


async def figures_by(store: Store, width: int, window: Window, agent: str | None = None) -> Series:
    """Return the statistics of each hour or day (`width`) of the window in which something happened, by its start."""
    await _catch_up(store)
    return await store.browse(lambda view: _series(view, width, window, agent))


async def _catch_up(store: Store) -> None:
    try:
        await roll_up_all(store, ENOUGH)
    except StoreError as error:
        _log.info("the figures of '%s' are counted and not kept: %s", store.workspace, error)


# -- processing events ---------------------------------------------------------------------------------------


def _slice(view: View, least: int, most: int) -> _Slice | None:
    after = view.tallied()
    if view.head().seq - after < least:
        return None
    seq = after
    rows: dict[tuple[int, str], TallyRow] = {}

    def into(at: int, agent: str) -> Figures:
        start = start_of(at, HOUR_WIDE)
        row = rows.get((start, agent)) or TallyRow(HOUR_WIDE, start, agent, seq, seq, Figures())
        rows[start, agent] = row._replace(last=seq)
        return row.figures

    counting = Counting(into, lambda first: view.under_way(first.task))
    for event in view.events_between(after, _EVER, most):
        seq = event.seq
        _count(counting, event)
    kept = {task: known for task, known in counting.under_way.items() if known is not None or task in counting.recalled}
    return _Slice(after, Tallied(seq, _merged(view, rows), kept))


def _merged(view: View, fresh: dict[tuple[int, str], TallyRow]) -> list[TallyRow]:
    """Return the stored hourly and daily rows of statistics that these new rows fall into, with their figures added."""
    whole: dict[tuple[int, int, str], TallyRow] = {}
    for row in fresh.values():
        for width in WIDTHS:
            place = (width, start_of(row.start, width), row.agent)
            known = whole.get(place) or view.tally_row(*place) or TallyRow(*place, row.first, row.last, Figures())
            known.figures.merge(row.figures)
            whole[place] = known._replace(first=min(known.first, row.first), last=max(known.last, row.last))
    return list(whole.values())


def _count(counting: Counting, event: Event) -> None:
    try:
        counting.add(event)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        what = f"event {event.seq} of '{event.workspace}' cannot be read ({type(error).__name__}: {error})"
        raise StoreError(f"{what}; run `remit doctor`") from error


# -- queries -------------------------------------------------------------------------------------------------


def _sum_by_agent(view: View, window: Window, agent: str | None) -> Sum:
    found: defaultdict[str, Figures] = defaultdict(Figures)
    for period in window.whole():
        for row in view.tally(period, agent):
            found[row.agent].merge(row.figures)
    into: Into = lambda _at, who: found[who]  # noqa: E731 - one figure for the whole window
    for edge in window.edges():
        _add_edge(view, edge, into)
    return Sum(found, _add_rest(view, window, agent, into))


def _series(view: View, width: int, window: Window, agent: str | None) -> Series:
    found: defaultdict[int, defaultdict[str, Figures]] = defaultdict(lambda: defaultdict(Figures))

    def into(at: int, who: str) -> Figures:
        return found[start_of(at, width)][who]

    for period in window.hours() if width == HOUR_WIDE else window.whole():
        for row in view.tally(period, agent):
            into(row.start, row.agent).merge(row.figures)
    for edge in window.edges():
        _add_edge(view, edge, into)
    _add_rest(view, window, agent, into)
    chosen = {start: {who: one for who, one in some.items() if agent in (None, who)} for start, some in found.items()}
    return {start: some for start, some in sorted(chosen.items()) if some}


def _add_edge(view: View, edge: Window, into: Into) -> None:
    """Count the events of `edge`, a part of one hour. Read all events between the first and the last of that hour, so
    that the state of each task stays right even if a clock was wrong. The state of a task before that hour comes from
    the events of its run."""
    start = start_of(edge.start, HOUR_WIDE)
    rows = view.tally(Period(HOUR_WIDE, start, start + HOUR_WIDE))
    if rows:
        first, last = min(row.first for row in rows), max(row.last for row in rows)
        counting = Counting(_within(edge, into), _from_journal(view, first))
        for event in _events(view, first - 1, last):
            _count(counting, event)


def _add_rest(view: View, window: Window, agent: str | None, into: Into) -> Counter[str]:
    """Count the events that are newer than the statistics. Return the number of open runs by state."""
    runs = view.open_runs(window, agent)

    def recall(first: Event) -> UnderWay | None:
        known = view.under_way(first.task)
        if known is not None and known.root is not None and window.holds(known.root.at):
            runs[known.root.state] -= agent in (None, known.root.agent)
        return known

    counting = Counting(_within(window, into), recall)
    for event in _events(view, view.tallied(), _EVER):
        _count(counting, event)
    runs.update(run.state for run in counting.open_runs() if window.holds(run.at) and agent in (None, run.agent))
    return +runs


def _within(window: Window, into: Into) -> Into:
    elsewhere = Figures()
    return lambda at, who: into(at, who) if window.holds(at) else elsewhere


def _events(view: View, after: int, upto: int) -> Iterator[Event]:
    while page := view.events_between(after, upto, SLICE):
        yield from page
        after = page[-1].seq


def _from_journal(view: View, before: int) -> Recall:
    """Return a function that restores the state of a task by replaying its run's events up to `before`."""
    seen: dict[str, Counting] = {}

    def recall(first: Event) -> UnderWay | None:
        if first.run not in seen:
            elsewhere = Figures()
            earlier = seen[first.run] = Counting(lambda _at, _who: elsewhere)
            for event in view.events_of_run_before(first.run, before):
                _count(earlier, event)
        return seen[first.run].under_way.get(first.task)

    return recall
