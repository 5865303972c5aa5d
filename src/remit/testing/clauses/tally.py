"""Clauses on statistics: they are stored as given, next to the journal and not in it."""

from collections import Counter
from typing import Final

from remit.core.tally import HOUR_WIDE, BreakerStats, Figures, Period, Root, Times, UnderWay, Window
from remit.ports import Database, Decision, Store, Tallied, TallyRow
from remit.testing.clauses.making import NOW, ending, equal, first_remit, journal, look, sound, starting

_HOUR: Final = Period(HOUR_WIDE, 0, 3 * HOUR_WIDE)


def _figures(events: int) -> Figures:
    times = Times()
    times.add(events * 1_000)
    breaker = BreakerStats("open", 3, NOW, "it broke", NOW, 7)
    counts = Counter(events=events, tokens=2**52)
    return Figures(counts, Counter(["completed"]), Counter(["loop"]), times, Times(), times, 2, 1, {"helper": breaker})


async def _write(store: Store, tally: Tallied) -> None:
    await store.tx(f"tally {tally.upto}", lambda _: Decision(None, tally=tally))


async def figures_are_kept_as_they_are_given(database: Database) -> None:
    """Rows are found by hour and agent and replaced as a whole; the position advances; none of this is an event."""
    store = database.store("one")
    equal(await look(store, lambda view: view.tallied()), 0, "where the tally ends before there is any")
    rows = [TallyRow(HOUR_WIDE, hour * HOUR_WIDE, who, 1, 4, _figures(4)) for hour in (0, 2) for who in ("", "helper")]
    await _write(store, Tallied(4, rows, {}))
    newer = rows[1]._replace(first=1, last=9, figures=_figures(9))
    await _write(store, Tallied(9, [newer], {}))
    found = sorted(await look(store, lambda view: view.tally(_HOUR)), key=lambda row: (row.start, row.agent))
    equal(found, [rows[0], newer, *rows[2:]], "the rows of all hours")
    found = await look(store, lambda view: view.tally(_HOUR._replace(stop=2 * HOUR_WIDE), "helper"))
    equal(found, [newer], "the rows of an agent, before the end of a time")
    equal(await look(store, lambda view: view.tally_row(HOUR_WIDE, 0, "helper")), newer, "one row")
    equal(await look(store, lambda view: view.tally_row(HOUR_WIDE, 0, "nobody")), None, "a row that is not there")
    equal(await look(store, lambda view: view.tallied()), 9, "where the tally ends")
    equal(await journal(store), [], "figures are no events")
    await sound(store)


async def what_is_under_way_is_remembered_until_it_ends(database: Database) -> None:
    store = database.store("one")
    root = UnderWay(turn=NOW, passed={"helper": 2}, root=Root("running", NOW, "lead"))
    part = UnderWay(handed=NOW, asked=NOW - 1)
    await _write(store, Tallied(1, [], {"root": root, "part": part, "other": root}))
    equal(await look(store, lambda view: view.under_way("root")), root, "what is remembered of a run")
    equal(await look(store, lambda view: view.under_way("part")), part, "what is remembered of a task")
    equal(await look(store, lambda view: view.under_way("none")), None, "what is remembered of nothing")
    later = UnderWay(root=Root("waiting", NOW, "lead"))
    await _write(store, Tallied(2, [], {"root": later, "part": None, "none": None}))
    equal(await look(store, lambda view: view.under_way("root")), later, "what is remembered since")
    equal(await look(store, lambda view: view.under_way("part")), None, "what is remembered of what has ended")
    both, nothing = Counter(waiting=1, running=1), Counter[str]()
    equal(await look(store, lambda view: view.open_runs(Window())), both, "the runs that are open")
    equal(await look(store, lambda view: view.open_runs(Window(NOW, NOW + 1), "lead")), both, "of an agent")
    equal(await look(store, lambda view: view.open_runs(Window(NOW + 1))), nothing, "that began later")
    equal(await look(store, lambda view: view.open_runs(Window(), "helper")), nothing, "of another agent")


async def events_are_read_in_stretches(database: Database) -> None:
    store = database.store("one")
    one, two = first_remit("one", session="s"), first_remit("two", session="s")
    for remit in (one, two):
        await store.tx(f"start {remit.id}", starting(remit))
    for remit in (one, two):
        await store.tx(f"end {remit.id}", ending(remit))
    events = await journal(store)
    equal(await look(store, lambda view: view.events_between(1, 3, 10)), events[1:3], "after one and up to another")
    equal(await look(store, lambda view: view.events_between(0, 9, 2)), events[:2], "no more than asked for")
    found = await look(store, lambda view: view.events_of_run_before("one", 3))
    equal(found, [event for event in events[:2] if event.run == "one"], "of a run, before an event")


CLAUSES: Final = (
    figures_are_kept_as_they_are_given,
    what_is_under_way_is_remembered_until_it_ends,
    events_are_read_in_stretches,
)
