"""Runs: their figures are what their events say, whatever happens meanwhile; and old runs are pruned."""

import asyncio
from collections.abc import Callable
from typing import Final

from remit.core import lifecycle
from remit.core.chain import STAND_IN
from remit.core.events import Event, Mark, Unsealed
from remit.core.identity import UsedKey
from remit.core.kinds import (
    Begun,
    Queued,
    Requeue,
    TokensUsed,
    ended,
    handed,
    place,
    read,
    refused,
    requeued,
    runs_pruned,
    started,
    submitted,
    tokens_used,
)
from remit.core.record import NO_RUN, RunFacts
from remit.core.remit import Pass, Remit
from remit.core.times import SECOND
from remit.core.values import Json
from remit.errors import StoreError
from remit.ports import Database, Decide, Decision, Store, View
from remit.testing.clauses.making import (
    NOW,
    Content,
    Dice,
    answer_or_error,
    append,
    child_remit,
    equal,
    first_remit,
    journal,
    look,
    must,
    pruned_run,
    record_of,
    sound,
    starting,
    unchanged,
)

_AGENTS: Final = ("lead", "helper", "writer", "tester")
_QUEUED: Final = Queued("submit", timeout=SECOND, attempts=3, ready_at=NOW)


async def the_figures_of_a_run_are_what_its_events_say(database: Database) -> None:
    """After two hundred operations by chance, one by one and many at once: as a reader sees them, and as a decision
    does."""
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
    figures: list[object] = ["root", {"lead"}, 1, 0, 0, 0]
    retried = requeued("task.retrying", place(part), "helper", NOW, Requeue("", 2, NOW, 1, 1), {"more_refused": 4})
    steps: tuple[tuple[Unsealed, dict[int, object]], ...] = (
        (started(root, NOW, Begun(by="ann")), {}),
        (started(part, NOW, Begun(joins=True)), {1: {"lead", "helper"}, 2: 2}),
        (submitted(waits, NOW, _QUEUED), {2: 3}),
        (no, {5: 1}),
        (tokens_used(root, 5, NOW), {4: 5}),
        (handed(root, "writer", NOW, {"joins": True, "tokens": 5}), {1: {"lead", "helper", "writer"}, 3: 1}),
        (handed(root, ["helper", "writer"], NOW, {"more_refused": 2}), {3: 2, 5: 3}),
        (handed(root, "helper", NOW, {"of_parts": True}), {}),
        (tokens_used(part, 7, NOW), {4: 12}),
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


async def whoever_leads_a_plan_for_a_person_is_no_member(database: Database) -> None:
    store = database.store("one")
    root = first_remit("root", session="s")
    await append(store, "start", started(root, NOW, Begun(led_as=STAND_IN)))
    equal(await _both_ways(store, lambda view: [*view.run("root")]), ["root", set[str](), 1, 0, 0, 0], "a plan's run")
    part = child_remit(root, "part", holder="helper")
    await append(store, "part", started(part, NOW, Begun(joins=True)))
    figures: list[object] = ["root", {"helper"}, 2, 0, 0, 0]
    equal(await _both_ways(store, lambda view: [*view.run("root")]), figures, "a plan's run with one step")


async def what_is_undone_does_not_count(database: Database) -> None:
    """A decision that the tables refuse has counted by then; what it counted goes with it."""
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


async def old_runs_are_found_and_pruned(database: Database) -> None:
    """Their tasks and figures go; that they happened stays, and the chain of hashes with it."""
    store = database.store("one")
    roots = [first_remit(f"run{number}", session="s") for number in range(3)]
    for number, root in enumerate(roots):
        part = child_remit(root, f"part{number}", holder="helper")
        await store.tx(f"start {number}", starting(root, part))
        await append(store, f"used {number}", tokens_used(part, 3, NOW + number))
        await append(store, f"part {number}", ended(part, "task.completed", NOW + number, {"tokens": 3}))
        if number < 2:
            await append(store, f"used more {number}", tokens_used(root, 4, NOW + number))
            await append(store, f"end {number}", ended(root, "task.completed", NOW + number, {"tokens": 4}))
    found = await look(store, lambda view: view.roots(0, 10))
    ends = [("run0", NOW), ("run1", NOW + 1), ("run2", None)]
    equal([(one.id, one.ended_at) for one in found], ends, "the first tasks of all runs, and when they ended")
    page = await look(store, lambda view: view.roots(found[0].began, 1))
    equal(page, found[1:2], "the next of them")
    for run, before, tasks in (
        ("run0", NOW, None),
        ("run0", NOW + 1, [("part0", "completed", NOW), ("run0", "completed", NOW)]),
        ("run2", NOW + 9, None),
    ):
        listed = await look(store, lambda view, run=run, before=before: view.prunable(run, before))
        equal(listed and sorted(listed), tasks, f"the tasks of {run}, if all of them ended before {before}")
    events = await journal(store)
    emptied = await look(store, lambda view: view.to_empty("run0"))
    equal([*emptied], [Mark.of(event) for event in events if event.run == "run0"], "what stays of what is pruned")
    await append(store, "prune", runs_pruned([pruned_run(roots[0], "part0")], NOW + 20))
    gone = await look(store, lambda view: (view.record("run0"), view.record("part0"), len(view.of_run("run0"))))
    equal(gone, (None, None, 0), "the tasks of a run that was pruned")
    equal([line.record.id for line in await look(store, lambda view: view.runs(10))], ["run2", "run1"], "what is left")
    pruned = await journal(store)
    equal([event.hash for event in pruned[:-1]], [event.hash for event in events], "the hashes of a journal stay")
    texts = [event.text for event in pruned if event.run == "run0"]
    must(bool(texts) and not any(texts), "what the events of a run that was pruned said is gone")
    await record_of(store, "run1")
    await _figures_are_told(store, "run1", "run2")
    equal(await _both_ways(store, lambda view: [*view.run("run0")]), [*NO_RUN], "the figures of a run that was pruned")
    equal((await look(store, lambda view: view.run("run1"))).tokens, 7, "the figures of another run")


async def a_used_key_outlives_its_run(database: Database) -> None:
    """What an idempotency key was used for is known while its task is there, and after its run was pruned."""
    store = database.store("one")
    root = first_remit("root", session="s")
    queued = Queued("submit", timeout=1, attempts=1, ready_at=NOW, dedup_key="key/k", content="all of it")
    used = UsedKey("key/k", "root", "root", "all of it", "", None)
    equal(await look(store, lambda view: view.used_key("key/k")), None, "a key that nobody used")
    await append(store, "start", started(root, NOW, Begun("w"), queued))
    equal(await _both_ways(store, _keys), [[*used]] * 3, "a key that was used")
    await append(store, "end", ended(root, "task.completed", NOW + 1, {"result": None}))
    used = used._replace(state="completed", ended_at=NOW + 1)
    await append(store, "prune", runs_pruned([{**pruned_run(root), "keys": [[*used]]}], NOW + 2))
    equal(await look(store, lambda view: view.record("root")), None, "the task of a run that was pruned")
    equal(await _both_ways(store, _keys), [[*used]] * 3, "a key whose run was pruned")


def _keys(view: View) -> list[object]:
    found = (view.used_key("key/k"), view.key_of_task("root"), *view.keys_of_run("root"))
    return [[*used] if used is not None else None for used in found]


# -- what the events say ------------------------------------------------------------------------------------


async def _figures_are_told(store: Store, *runs: str) -> None:
    events = await journal(store)
    for run in runs:
        figures = await _both_ways(store, lambda view, run=run: [*view.run(run)])
        equal(figures, [*_told([event for event in events if event.run == run])], f"the figures of {run}")


async def _both_ways(store: Store, read: Callable[[View], list[object]]) -> list[object]:
    """Read within a decision, where a store may answer from memory, and outside of one."""
    _, within = await store.transact("look", lambda view: Decision(None, aside=read(view)))
    outside = await store.read(read)
    equal(within, outside, "what a decision sees is what a reader sees")
    return outside


def _told(events: list[Event]) -> RunFacts:
    """Add the figures of a run up from its events."""
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
    """Lets runs grow by chance, as the engine does on purpose."""

    def __init__(self, dice: Dice) -> None:
        self._dice = dice
        self._roots: list[Remit] = []
        self._number = 0

    def begin(self, run: str) -> Decide[Json]:
        root = first_remit(run, session="s")
        self._roots.append(root)
        return lambda _view: Decision(None, (started(root, NOW, Begun(by="ann")),))

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


CLAUSES: Final = (
    the_figures_of_a_run_are_what_its_events_say,
    the_figures_of_a_run_are_told_one_by_one,
    whoever_leads_a_plan_for_a_person_is_no_member,
    what_is_undone_does_not_count,
    old_runs_are_found_and_pruned,
    a_used_key_outlives_its_run,
)
