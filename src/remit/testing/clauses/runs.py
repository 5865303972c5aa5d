"""Clauses on runs and statistics: the figures of a run always follow from its events, and statistics are stored as
given, next to the journal and not in it."""

import asyncio
from collections import Counter
from typing import Any, Final, cast

from remit.core import lifecycle
from remit.core.events import Event, Labels, Unsealed, read
from remit.core.kinds.models import ToolDone, model_answered, model_failed, tool_done
from remit.core.kinds.tasks import (
    Begun,
    Queued,
    Requeue,
    TokensUsed,
    ended,
    handed,
    refused,
    requeued,
    started,
    submitted,
    tokens_used,
)
from remit.core.kinds.upkeep import runs_pruned
from remit.core.lifecycle import NO_RUN, RunFacts
from remit.core.recovery import ModelFailure, ModelTry
from remit.core.remit import STAND_IN, Pass, Remit, place
from remit.core.tally import HOUR_WIDE, BreakerStats, Figures, Period, Root, Times, UnderWay, Window
from remit.core.times import SECOND
from remit.core.values import Json
from remit.errors import StoreError
from remit.ports import Database, Decide, Decision, Store, Tallied, TallyRow, View
from remit.testing.clauses.making import (
    NOW,
    Content,
    Dice,
    answer_or_error,
    append,
    both_ways,
    child_remit,
    ending,
    equal,
    first_remit,
    journal,
    look,
    must,
    pruned_run,
    sound,
    starting,
    unchanged,
)

# -- runs ----------------------------------------------------------------------------------------------------


_AGENTS: Final = ("lead", "helper", "writer", "tester")
_QUEUED: Final = Queued("submit", timeout=SECOND, attempts=3, ready_at=NOW)


async def the_figures_of_a_run_are_what_its_events_say(database: Database) -> None:
    """The figures are right after 200 random operations, serial and concurrent, for readers and for decisions."""
    store = database.store("one")
    actor = _Actor(Dice("the figures of a run"))
    for number in range(3):
        await store.tx(f"start {number}", actor.begin(f"run{number}"))
    for round_ in range(5):
        for number in range(10):
            await store.tx(f"one {round_} {number}", actor.act())
        await asyncio.gather(*(store.tx(f"many {round_} {number}", actor.act()) for number in range(30)))
        await _figures_are_told(store, "run0", "run1", "run2")
    facts = await look(store, lambda view: view.run("run0"))
    must(min(facts.tasks, facts.handoffs, facts.tokens, facts.refusals) > 1, f"all figures grow, got {facts}")
    must(len(facts.members) > 1, f"a run knows who joined, got {facts}")
    lines = await look(store, lambda view: view.runs(10))
    equal([line.by for line in lines], ["ann"] * 3, "who started a run")
    await sound(store)


async def the_figures_of_a_run_are_told_one_by_one(database: Database) -> None:
    store = database.store("one")
    equal(await look(store, lambda view: view.run("none")), NO_RUN, "the figures of a run that is not there")
    root = first_remit("root", session="s")
    part, waits = (child_remit(root, name, holder="helper") for name in ("part", "waits"))
    no = refused(root, Pass("no-one", "work"), NOW, rule="unknown", sentence="no")
    figures: list[object] = ["root", {"lead"}, 1, 0, 0, 0, 0, 0]
    retried = requeued("task.retrying", place(part), "helper", NOW, Requeue("", 2, NOW, 1, 1), {"more_refused": 4})
    steps: tuple[tuple[Unsealed, dict[int, object]], ...] = (
        (started(root._replace(labels=Labels("ann")), NOW), {}),
        (started(part, NOW, Begun(joins=True)), {1: {"lead", "helper"}, 2: 2}),
        (submitted(waits, NOW, _QUEUED), {2: 3}),
        (no, {5: 1}),
        (tokens_used(root, 5, NOW), {4: 5}),
        (handed(root, "writer", NOW, {"joins": True, "tokens": 5}), {1: {"lead", "helper", "writer"}, 3: 1}),
        (handed(root, ["helper", "writer"], NOW, {"more_refused": 2}), {3: 2, 5: 3}),
        (handed(root, "helper", NOW, {"of_parts": True}), {}),
        (tokens_used(part, 7, NOW), {4: 12}),
        (model_answered(part, ModelTry("m"), {"named": "m", "calls": []}, NOW), {7: 1}),
        (model_failed(part, ModelTry("m"), ModelFailure("rate-limit"), NOW), {7: 2}),
        (retried, {5: 7}),
        (ended(root, "task.completed", NOW, {"tokens": 30, "more_refused": 1}), {5: 8}),
        (ended(part, "task.died", NOW, {}), {}),
    )
    for number, (event, added) in enumerate(steps):
        for column, value in added.items():
            figures[column] = value
        await append(store, f"op {number}", event)
        facts = await look(store, lambda view: view.run("root"))
        equal([*facts], figures, f"the figures of a run after event {number + 1}, {event.kind}")
    await sound(store)


async def the_leader_of_a_plan_for_a_person_is_no_member(database: Database) -> None:
    store = database.store("one")
    root = first_remit("root", session="s")
    await append(store, "start", started(root, NOW, Begun(led_as=STAND_IN)))
    equal(
        await both_ways(store, lambda view: [*view.run("root")]), ["root", set[str](), 1, 0, 0, 0, 0, 0], "a plan's run"
    )
    part = child_remit(root, "part", holder="helper")
    await append(store, "part", started(part, NOW, Begun(joins=True)))
    figures: list[object] = ["root", {"helper"}, 2, 0, 0, 0, 0, 0]
    equal(await both_ways(store, lambda view: [*view.run("root")]), figures, "a plan's run with one step")


async def what_was_asked_for_in_a_run_is_counted_until_it_is_pruned(database: Database) -> None:
    """The last figure counts, for readers and for decisions; other runs are not affected."""
    store, keys = database.store("one"), ("ask", "=pair", "!helper")
    roots = [first_remit(name, session="s") for name in ("run1", "run2")]
    for root in roots:
        await store.tx(f"start {root.id}", starting(root))
    equal(await _asks(store, "run1", keys), {}, "what was asked for in a run that has just begun")
    for number, root in enumerate((roots[0], roots[0], roots[1])):
        asks: dict[str, list[Json]] = {"ask": [number, 1, ""], "=pair": [0, 0, f"{number}"]}
        done: ToolDone = {"tool": "t", "call": f"{number}", "given": "", "outcome": "done", "asks": asks}
        await append(store, f"ask {number}", tool_done(root, done, NOW))
    await append(store, "end", ended(roots[0], "task.failed", NOW, {"error": "no", "strikes": {"helper": 2}}))
    one = {"ask": [1, 1, ""], "=pair": [0, 0, "1"], "!helper": [2, 0, ""]}
    two = {"ask": [2, 1, ""], "=pair": [0, 0, "2"]}
    equal(await _asks(store, "run1", keys), one, "what was asked for in a run")
    equal(await _asks(store, "run2", keys), two, "what was asked for in another")
    equal(await _asks(store, "run1", ("ask", "none", "none")), {"ask": one["ask"]}, "one of them")
    await sound(store)
    await append(store, "prune", runs_pruned([pruned_run(roots[0])], [], NOW + 2))
    equal(await _asks(store, "run1", keys), {}, "what was asked for in a run that was pruned")
    equal(await _asks(store, "run2", keys), two, "what was asked for in another")


async def _asks(store: Store, run: str, keys: tuple[str, str, str]) -> dict[str, list[Json]]:
    rows = await both_ways(store, lambda view: [[key, *row] for key, row in sorted(view.asks(run, keys).items())])
    return {key: figures for key, *figures in cast("list[list[Any]]", rows)}


async def what_is_undone_does_not_count(database: Database) -> None:
    """If the tables refuse a decision, the counts that it made are rolled back with it."""
    store = database.store("one")
    root = first_remit("root", session="s")
    await store.tx("start", starting(root))
    for number in range(3):
        part = child_remit(root, f"part{number}", holder="helper")
        before = await store.read(Content)
        spoilt = (started(part, NOW, Begun(joins=True)), handed(root, "x", NOW, {}), started(root, NOW))
        error = await answer_or_error(store, "spoilt", lambda _view, spoilt=spoilt: Decision(None, spoilt))
        must(isinstance(error, StoreError), f"a task that begins twice is a StoreError, got {error!r}")
        await unchanged(store, before, "after what the tables refuse")
        await _figures_are_told(store, "root")
        await store.tx(f"good {number}", starting(part))
    facts = await look(store, lambda view: view.run("root"))
    equal((facts.tasks, facts.handoffs, facts.tokens), (4, 0, 0), "the figures of a run after what was undone")
    await sound(store)


# -- expected figures ---------------------------------------------------------------------------------------


async def _figures_are_told(store: Store, *runs: str) -> None:
    events = await journal(store)
    for run in runs:
        figures = await both_ways(store, lambda view, run=run: [*view.run(run)])
        equal(figures, [*_run_figures([event for event in events if event.run == run])], f"the figures of {run}")


def _run_figures(events: list[Event]) -> RunFacts:
    """Return the figures of a run, added up from its events."""
    first = events[0]
    members, tasks, handoffs, tokens, refusals = {first.agent}, 0, 0, 0, 0
    for event in events:
        begins = event.kind in lifecycle.BEGINNINGS
        tasks += begins
        handoffs += event.kind == "task.handed"
        refusals += event.kind == "hop.refused"
        tokens += read(event, TokensUsed)["tokens"] if event.kind == "tokens.used" else 0
        if event.data.get("joins"):
            members.add(event.agent if begins else str(event.data["to"]))
    return RunFacts(first.run, frozenset(members), tasks, handoffs, tokens, refusals)


class _Actor:
    """Makes runs grow at random, as the engine does."""

    def __init__(self, dice: Dice) -> None:
        self._dice = dice
        self._roots: list[Remit] = []
        self._number = 0

    def begin(self, run: str) -> Decide[Json]:
        root = first_remit(run, session="s")
        self._roots.append(root)
        return lambda _view: Decision(None, (started(root._replace(labels=Labels("ann")), NOW),))

    def act(self) -> Decide[Json]:
        self._number += 1
        root, number = self._roots[self._dice.below(len(self._roots))], self._number
        deed, agent, tokens = self._dice.below(4), self._dice.one(_AGENTS), self._dice.below(50)
        part = child_remit(root, f"part{number}", holder=agent)

        def decide(view: View) -> Decision[Json]:
            joins = agent not in view.run(root.id).members
            begun = Begun(joins=joins)
            match deed:
                case 0:
                    end = ended(part, "task.failed", NOW, {"tokens": tokens})
                    return Decision(None, (started(part, NOW, begun), tokens_used(part, tokens, NOW), end))
                case 1:
                    return Decision(None, (submitted(part, NOW, _QUEUED, begun),))
                case 2:
                    data: dict[str, Json] = {"tokens": tokens, **({"joins": True} if joins else {})}
                    return Decision(None, (handed(root, agent, NOW, data),))
                case _:
                    no = refused(root, Pass(agent, "work"), NOW, rule="loop", sentence="no")
                    return Decision(None, (no,))

        return decide


# -- statistics ----------------------------------------------------------------------------------------------


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
    the_figures_of_a_run_are_what_its_events_say,
    the_figures_of_a_run_are_told_one_by_one,
    the_leader_of_a_plan_for_a_person_is_no_member,
    what_was_asked_for_in_a_run_is_counted_until_it_is_pruned,
    what_is_undone_does_not_count,
    figures_are_kept_as_they_are_given,
    what_is_under_way_is_remembered_until_it_ends,
    events_are_read_in_stretches,
)
