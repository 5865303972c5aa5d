"""Clauses on pruning: old runs are deleted, the journal is compacted, and what must outlive them stays."""

from typing import Final

from remit.core.breaker import Breaker
from remit.core.entry import Draft, Message, Writer
from remit.core.events import Gap, Unsealed
from remit.core.identity import UsedKey
from remit.core.kinds import (
    Begun,
    Place,
    Queued,
    breaker_set,
    ended,
    entries_removed,
    journal_cut,
    keys_kept,
    ledger_event,
    message_sent,
    place,
    runs_pruned,
    started,
    step_ended,
    tokens_used,
)
from remit.core.lifecycle import NO_RUN
from remit.ports import Database, Decision, Store, View
from remit.testing.clauses.making import (
    NOW,
    NOWHERE,
    append,
    both_ways,
    child_remit,
    ending,
    entry_event,
    equal,
    first_remit,
    journal,
    look,
    mark_of,
    pruned_run,
    sound,
    starting,
)


async def old_runs_are_found_and_pruned(database: Database) -> None:
    """Their tasks, figures and events are deleted, and the chain of hashes is valid across the gap."""
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
    of_run = [event for event in events if event.run == "run0"]
    equal(
        await look(store, lambda view: view.marks_of_run("run0")), [mark_of(event) for event in of_run], "that it was"
    )
    gap = Gap(of_run[0].seq, of_run[-1].seq, of_run[-1].hash)
    pruned = runs_pruned([pruned_run(roots[0], "part0")], [gap], NOW + 20)
    await append(store, "prune", pruned, await _metered(store))
    gone = await look(store, lambda view: (view.record("run0"), view.record("part0"), len(view.of_run("run0"))))
    equal(gone, (None, None, 0), "the tasks of a run that was pruned")
    equal([line.record.id for line in await look(store, lambda view: view.runs(10))], ["run2", "run1"], "what is left")
    left = [event for event in events if event.run != "run0"]
    equal((await journal(store))[:-2], left, "the events that are left")
    equal(await both_ways(store, lambda view: [*view.run("run0")]), [*NO_RUN], "the figures of a run that was pruned")
    equal((await look(store, lambda view: view.run("run1"))).tokens, 7, "the figures of another run")
    await sound(store)


async def _metered(store: Store) -> Unsealed:
    """Return the event that carries the meters over: the spending of a pruned run still counts."""
    meters = [*(await look(store, lambda view: view.tables()))["meter"].values()]
    carried = {"leases": [], "holds": [], "meters": [*meters], "forgotten": ""}
    return ledger_event("ledger.carried", Place(), "", NOW + 20, carried)


async def what_may_outlive_a_run_is_found(database: Database) -> None:
    """Its entries, breakers and messages are found; the messages of a pruned run are deleted with it."""
    store = database.store("one")
    root = first_remit("root", session="s")
    where = place(root)
    await store.tx("start", starting(root))
    sent = message_sent(Message("m1", "s", "lead", "helper", "hello", NOW), where)
    await store.tx("set", lambda view: Decision(None, (entry_event(view, Draft("notes", "a", 1), place=where),)))
    await append(store, "send", sent)
    await append(store, "trip", breaker_set("lead", Breaker("open", 3, NOW, "", "why"), where, NOW))
    await store.tx("end", ending(root))
    equal(await look(store, lambda view: view.has_message("m1")), True, "a message that nobody took")
    lasting = await look(store, lambda view: [event.kind for event in view.lasting_of_run("root")])
    equal(lasting, ["entry.set", "message.sent", "breaker.set"], "what may outlive a run")
    await append(store, "prune", runs_pruned([{**pruned_run(root), "messages": ["m1"]}], [], NOW + 20))
    gone = await look(store, lambda view: (view.has_message("m1"), len(view.waiting("root", "helper", "", 9))))
    equal(gone, (False, 0), "the messages of a pruned run")
    await sound(store)


async def a_journal_is_cut_where_an_event_says_so(database: Database) -> None:
    """The events in a gap are deleted. A gap absorbs smaller ones, and is found by its end, by its surroundings and by
    the event that declares it."""
    store = database.store("one")
    root = first_remit("root", session="s")
    await store.tx("start", starting(root))
    for number in range(2, 12):
        await append(store, f"step {number}", step_ended(root, f"step {number}", "skipped", "", NOW))
    events = await journal(store)

    def gap(first: int, last: int) -> Gap:
        return Gap(first, last, events[last - 1].hash)

    apart = [gap(2, 3), gap(5, 5), gap(8, 9)]
    await append(store, "cut", journal_cut(apart, [], 0, NOW))
    equal([event.seq for event in await journal(store)], [1, 4, 6, 7, 10, 11, 12], "the events around three gaps")
    await sound(store)
    for first, last, expected in (
        (4, 4, apart[:2]),
        (6, 6, [apart[1]]),
        (6, 7, apart[1:]),
        (1, 11, apart),
        (11, 11, []),
    ):
        around = await look(store, lambda view, first=first, last=last: view.gaps_around(first, last))
        equal(around, expected, f"the gaps around events {first} to {last}")
    for seq, expected in ((4, apart[0]), (5, None), (6, apart[1]), (10, apart[2]), (1, None)):
        equal(await look(store, lambda view, seq=seq: view.gap_before(seq)), expected, f"the gap before event {seq}")
    await append(store, "cut more", journal_cut([gap(2, 6)], [], 0, NOW))
    equal(await look(store, lambda view: view.gaps_after(0, 10)), [gap(2, 6), apart[2]], "a gap that took in two")
    equal(await look(store, lambda view: view.gaps_after(6, 10)), [apart[2]], "the gaps after one")
    stated = await look(store, lambda view: [view.gaps_stated(12), view.gaps_stated(13), view.gaps_stated(1)])
    equal(stated, [[apart[2]], [gap(2, 6)], []], "the gaps that each event states")
    found = await look(store, lambda view: [view.event(5), *view.marks(2, 2)])
    equal(found, [None, *map(mark_of, (events[6], events[9]))], "the events around a gap")
    await sound(store)


async def versions_that_are_forgotten_are_not_used_again(database: Database) -> None:
    """Removed entries are forgotten address by address; the highest of their versions counts for all addresses."""
    store = database.store("one")
    gone = [("notes", "a", 4), ("notes", "b", 2)]
    await append(store, "remove", entries_removed(gone, "removed", Writer(""), NOWHERE, NOW))
    await append(store, "forget", journal_cut([], [("notes", "a")], 4, NOW))
    retired = await look(store, lambda view: [view.retired("notes", key) for key in ("a", "b", "never")])
    equal(retired, [(0, 4), (2, 4), (0, 4)], "the versions that are used up")
    await sound(store)


async def a_used_key_outlives_its_run(database: Database) -> None:
    """The use of an idempotency key is known while its task exists, and after its run was pruned."""
    store = database.store("one")
    root = first_remit("root", session="s")
    queued = Queued("submit", timeout=1, attempts=1, ready_at=NOW, dedup_key="key/k", content="all of it")
    used = UsedKey("key/k", "root", "root", "all of it", "", None)
    equal(await look(store, lambda view: view.used_key("key/k")), None, "a key that nobody used")
    await append(store, "start", started(root, NOW, Begun("w"), queued))
    equal(await both_ways(store, _keys), [[*used]] * 3, "a key that was used")
    await append(store, "end", ended(root, "task.completed", NOW + 1, {"result": None}))
    used = used._replace(state="completed", ended_at=NOW + 1)
    await append(store, "prune", runs_pruned([pruned_run(root)], [], NOW + 2))
    await append(store, "keep", keys_kept([used], NOW + 2))
    equal(await look(store, lambda view: view.record("root")), None, "the task of a run that was pruned")
    equal(await both_ways(store, _keys), [[*used]] * 3, "a key whose run was pruned")


def _keys(view: View) -> list[object]:
    found = (view.used_key("key/k"), view.key_of_task("root"), *view.keys_of_run("root"))
    return [[*used] if used is not None else None for used in found]


CLAUSES: Final = (
    old_runs_are_found_and_pruned,
    what_may_outlive_a_run_is_found,
    a_journal_is_cut_where_an_event_says_so,
    versions_that_are_forgotten_are_not_used_again,
    a_used_key_outlives_its_run,
)
