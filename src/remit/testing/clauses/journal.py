"""Clauses on the journal: one hashed event for each change, found by every condition, delivered to sinks and listeners,
and pruned with its runs."""

import asyncio
import logging
from collections.abc import Sequence
from itertools import islice, product
from typing import Final

from remit.core.breaker import Breaker
from remit.core.entry import Draft, Message, Writer, touched
from remit.core.events import GENESIS, Event, Gap, Head, Place, Unsealed
from remit.core.identity import UsedKey
from remit.core.kinds.money import ledger_event
from remit.core.kinds.sharing import entries_removed, entry_touched, message_sent, messages_taken
from remit.core.kinds.tasks import Begun, Queued, ended, started, tokens_used
from remit.core.kinds.upkeep import journal_cut, keys_kept, runs_pruned
from remit.core.kinds.workspace import breaker_set, step_ended
from remit.core.lifecycle import NO_RUN
from remit.core.remit import Remit, place
from remit.core.times import SECOND
from remit.core.values import Json
from remit.errors import Conflict
from remit.ports import Database, Decide, Decision, Span, Store, View
from remit.testing.clauses.making import (
    NOW,
    NOWHERE,
    Dice,
    answer_or_error,
    answer_to,
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
    must,
    pruned_run,
    putting,
    raising,
    sound,
    starting,
)

# -- events --------------------------------------------------------------------------------------------------


async def events_are_found_by_every_condition(database: Database) -> None:
    """All conditions must hold. The limit counts the events found, not the events read, from the beginning or from the
    end."""
    store = database.store("one")
    await _some_history(store)
    everything = await journal(store)
    equal(
        [event.seq for event in everything],
        list(range(1, len(everything) + 1)),
        "events count from 1 without a gap",
    )
    runs, sessions, agents = (
        (None, "run0", "run1", "none"),
        (None, "s0", "s1"),
        (None, "lead", "helper0", "helper1"),
    )
    times = ((None, None), (NOW + 3, None), (None, NOW + 6), (NOW + 2, NOW + 5), (NOW + 5, NOW + 5))
    pages = ((0, None), (0, 1), (0, 3), (7, 4), (len(everything), 5))
    for run, session, agent in product(runs, sessions, agents):
        spans = [Span(run, session, agent, *time, *page) for time, page in product(times, pages)]
        found = await store.read(lambda view, spans=spans: [view.events(span) for span in spans])
        for span, events in zip(spans, found, strict=True):
            expected = _expected(everything, span)
            equal([event.seq for event in events], [event.seq for event in expected], f"the events of {span}")
            equal(events, expected, f"the events of {span}, whole")
    places = ((None, None), (None, 2), (9, 3), (1, 3))
    for run, session, agent, (before, limit) in product((None, "run1"), (None, "s1"), (None, "lead"), places):
        for latest in (True, False):
            span = Span(run, session, agent, limit=limit, before=before, latest=latest)
            events = await store.read(lambda view, span=span: view.events(span))
            equal(events, _expected(everything, span), f"the events of {span}")


async def events_are_found_by_task_and_kind(database: Database) -> None:
    """Task and kinds are combined with the other conditions. The limit counts the events found, not the events read."""
    store = database.store("one")
    await _some_history(store)
    everything = await journal(store)
    kinds = (None, frozenset[str](), frozenset({"task.started"}), frozenset({"entry.set", "task.completed"}))
    tasks, pages = (None, "run1", "run1part0", "*"), ((0, None, False), (3, 2, False), (0, 2, True))
    for task, wanted, run, session, (after, limit, latest) in product(
        tasks, kinds, (None, "run1"), (None, "s1"), pages
    ):
        span = Span(run, session, after=after, limit=limit, task=task, kinds=wanted, latest=latest)
        expected = _expected(everything, span)
        equal(await store.read(lambda view, span=span: view.events(span)), expected, f"the events of {span}")


async def a_long_journal_is_searched_as_a_short_one(database: Database) -> None:
    """A journal of several chapters is searched by agent, kind and time, from either end, although clocks step back.
    Each chapter has the agents, kinds and times of all its events."""
    store = database.store("one")
    for part, later in enumerate((0, 5_000, 2_000, 9_000)):  # the third part is written by a clock that is behind
        await store.tx(f"part {part}", lambda _, part=part, later=later: Decision(None, _many(part, NOW + later)))
    everything = await journal(store)
    agents = (None, "a0", "a3", "rare", "nobody", "")
    kinds = (None, frozenset({"work.left"}), frozenset({"effect.done", "work.left"}), frozenset({"task.died"}))
    times = ((None, None), (NOW + 4_000, None), (None, NOW + 700), (NOW + 2_100, NOW + 5_100), (NOW + 99_999, None))
    pages = ((0, None, None), (0, 3, None), (1_500, 40, 2_700), (0, 2, 1_000), (3_000, None, None))
    # Test every seventh combination: 7 divides no length of these lists, so each value still meets each other value.
    for agent, wanted, (since, until), (after, limit, before) in islice(
        product(agents, kinds, times, pages), 0, None, 7
    ):
        for latest in (False, True):
            span = Span(None, None, agent, since, until, after, limit, kinds=wanted, before=before, latest=latest)
            found = await store.read(lambda view, span=span: [event.seq for event in view.events(span)])
            equal(found, [event.seq for event in _expected(everything, span)], f"the events of {span}")
    for at in (NOW, NOW + 1, NOW + 2_500, NOW + 6_000, NOW + 99_999):
        last = await store.read(lambda view, at=at: view.last_before(at))
        must(all(event.seq <= last for event in everything if event.at < at), f"no later event is before {at}")
    equal(await store.read(lambda view: view.last_before(NOW)), 0, "nothing has happened before the first event")
    chapters = await store.read(lambda view: view.chapters(0, 100))
    must(len(chapters) >= 2 and chapters[0].first == 1, "a journal of some thousand events has chapters")
    for chapter in chapters:
        part = [event for event in everything if chapter.first <= event.seq <= chapter.last]
        must(all(chapter.has(event) for event in part), f"{chapter} tells of all its events")


def _many(part: int, at: int) -> list[Unsealed]:
    """Return 900 events of a few agents, and one `work.left`, whose agent is "rare" in part 1 and empty in the
    others."""
    kinds = ("effect.done", "plan.started", "tool.begun")
    events = [
        Unsealed(kinds[number % 3], at + number, {}, "run", "s", "run", f"a{number % (2 + part)}")
        for number in range(900)
    ]
    odd = Unsealed("work.left", at + 900, {}, "run", "s", "run", "rare" if part == 1 else "")
    return [*events, odd]


async def an_event_is_kept_whole(database: Database) -> None:
    """The hashed text is returned byte for byte, with the operation and its answer."""
    store = database.store("one")
    heard: list[Event] = []
    store.subscribe(heard.extend)
    value: Json = {"ü": ["u\u0308", "\U0001f600", "'\"\\\n", 0.1, 1e16, -0.0, 2**63 - 1, None]}
    refusal = Unsealed("hop.refused", NOW, {"value": value}, run="run", session="s ü", task="task", agent="agent")
    await store.tx("op ü'\"", lambda _view: Decision[Json]({"answer": value}, (refusal, refusal)))
    first, second = await journal(store)
    equal([first, second], heard, "an event is read as it was sealed")
    equal(first[:8], ("one", 1, "hop.refused", NOW, "run", "s ü", "task", "agent"), "an event's fields")
    equal(first.data, refusal.data, "an event's data")
    equal((first.op, second.op, second.answer), ("op ü'\"", None, None), "the first event carries the operation")
    must(
        first.answer is not None and first.hash not in (second.hash, GENESIS),
        "an event carries its answer and hash",
    )
    await sound(store)


async def an_operation_and_an_event_are_found_again(database: Database) -> None:
    store = database.store("one")
    root = first_remit("root", session="s")
    await store.tx("none", lambda _: Decision(None, starting(root)(_).events))
    await store.tx("some", lambda _: Decision[Json]({"a": 1}, ending(root)(_).events))
    answers = await look(store, lambda view: (view.done("none"), view.done("some"), view.done("never")))
    equal(answers, ((None,), ({"a": 1},), None), "what operations answered")
    events = await journal(store)
    by_place = await look(store, lambda view: [view.event(1), view.event(2), view.event(3)])
    equal(by_place, [*events, None], "events by their place")
    for since, limit, expected in ((0, 9, events), (2, 9, events[1:]), (1, 1, events[:1]), (3, 9, [])):
        marks = await look(store, lambda view, since=since, limit=limit: view.marks(since, limit))
        equal(marks, [mark_of(event) for event in expected], f"that there are events, {limit} at most from {since} on")

    def within(view: View) -> Decision[Json]:
        return Decision([view.done("some") is not None, view.done("within") is not None])

    equal(
        (await store.tx("within", within)).answer, [True, False], "what operations answered, asked within a transaction"
    )


async def the_head_is_where_the_journal_ends(database: Database) -> None:
    """Readers see the committed end; a decision also sees the events of earlier decisions in the same transaction."""
    store = database.store("one")
    equal(await store.read(lambda view: view.head()), Head(), "the head of an empty journal")

    def two(view: View) -> Decision[Json]:
        head = view.head()
        return Decision([*head], tuple(entry_event(view, Draft("notes", f"{head.seq} {key}", 1)) for key in "ab"))

    heads = await asyncio.gather(*(answer_to(store, f"op {number}", two) for number in range(60)))
    events = await journal(store)
    ends = [[0, GENESIS], *([event.seq, event.hash] for event in events[1::2])]
    equal(sorted(heads, key=str), sorted(ends[:-1], key=str), "the heads that decisions saw, one after the other")
    equal([*await store.read(lambda view: view.head())], ends[-1], "the head of a journal")
    await answer_or_error(store, "raises", raising(Conflict("no")))
    equal(
        (await store.tx("look", lambda view: Decision([*view.head()]))).answer, ends[-1], "the head, within a decision"
    )
    await sound(store)


async def the_journal_tells_the_tables(database: Database) -> None:
    """The tables follow from the journal after 400 random operations, serial and concurrent, in each of two
    workspaces."""
    for workspace in ("one", "two"):
        store = database.store(workspace)
        actor = _Actor(store, Dice(f"the journal tells the tables of {workspace}"))
        for round_ in range(10):
            for _ in range(10):
                await actor.act()
            await asyncio.gather(*(actor.act() for _ in range(30)))
            await sound(store)
            must(len(await journal(store)) > round_, "operations leave events")
    kinds = {event.kind for event in await journal(database.store("one"))}
    must(len(kinds) >= 9, f"the operations by chance are of all kinds, got {sorted(kinds)}")


def _expected(everything: list[Event], span: Span) -> list[Event]:
    found = [event for event in everything if _within(event, span)]
    if span.limit is None:
        return found
    return found[-span.limit :] if span.latest else found[: span.limit]


def _within(event: Event, span: Span) -> bool:
    return (
        event.seq > span.after
        and (span.before is None or event.seq < span.before)
        and (span.run is None or event.run == span.run)
        and (span.session is None or event.session == span.session)
        and (span.agent is None or event.agent == span.agent)
        and (span.since is None or event.at >= span.since)
        and (span.until is None or event.at < span.until)
        and (span.task is None or event.task == span.task)
        and (span.kinds is None or event.kind in span.kinds)
    )


async def _some_history(store: Store) -> None:
    """Write three interleaved runs in two sessions, and a person's action outside of any run."""
    roots = [first_remit(f"run{n}", session=f"s{n % 2}", at=NOW + n) for n in range(3)]
    for at, root in enumerate(roots):
        parts = [child_remit(root, f"{root.id}part{part}", holder=f"helper{part}") for part in range(2)]
        await store.tx(f"start {root.id}", starting(root, *parts, at=NOW + at))
    await store.tx("person", putting(Draft("notes", "a", 1), at=NOW + 3, agent=""))
    for at, root in enumerate(roots, 4):
        parts = [child_remit(root, f"{root.id}part{part}", holder=f"helper{part}") for part in range(2)]
        for part in parts:
            await store.tx(f"end {part.id}", ending(part, at=NOW + at))
        await store.tx(f"end {root.id}", ending(root, at=NOW + at))


def _is_running(view: View, task: str) -> bool:
    standing = view.standing(task)
    return standing is not None and standing.state == "running"


class _Actor:
    """Makes the same changes as the engine, at random."""

    def __init__(self, store: Store, dice: Dice) -> None:
        self._store = store
        self._dice = dice
        self._op = 0
        self._live: list[Remit] = []

    async def act(self) -> None:
        self._op += 1
        # Sometimes repeat an operation.
        again = self._dice.below(12) == 0
        op = f"op {self._dice.below(self._op) if again else self._op}"
        deeds = (
            self._put,
            self._put,
            self._put,
            self._touch,
            self._clean,
            self._start,
            self._end,
            self._send,
            self._take,
        )
        await self._store.tx(op, self._dice.chosen(deeds))

    def _now(self) -> int:
        return NOW + self._op * SECOND

    def _key(self) -> str:
        return self._dice.one(("a", "b", "a%", "ü", "u\u0308", "\U0001f600"))

    def _put(self) -> Decide[Json]:
        values: tuple[Json, ...] = ("text", {"n": self._op}, [1.5, None], "", "ü\U0001f600'\"\\")
        lifetime = None if self._dice.below(2) else self._dice.below(60) * SECOND + 1
        draft = Draft(self._dice.one(("x", "y")), self._key(), values[self._dice.below(5)], lifetime)
        now = self._now()
        at = place(self._live[-1]) if self._live else NOWHERE
        return lambda view: Decision(None, (entry_event(view, draft, at=now, place=at),))

    def _touch(self) -> Decide[Json]:
        key, now, by = self._key(), self._now(), self._dice.below(90) * SECOND + 1

        def decide(view: View) -> Decision[Json]:
            new = touched(view.entry("x", key), by, now)
            return Decision(None, (entry_touched(new, Writer("toucher"), NOWHERE, now),) if new else ())

        return decide

    def _clean(self) -> Decide[Json]:
        now, most = self._now(), 1 + self._dice.below(3)

        def decide(view: View) -> Decision[Json]:
            keys = view.expired(now, most)
            return Decision(None, (entries_removed(keys, "expired", Writer(""), NOWHERE, now),) if keys else ())

        return decide

    def _start(self) -> Decide[Json]:
        task = f"task{self._op}"
        if self._live and self._dice.below(3):
            remit = child_remit(self._live[-1], task, holder="helper", at=self._now())
        else:
            remit = first_remit(task, session=f"s{self._op % 3}", workspace=self._store.workspace, at=self._now())
        self._live.append(remit)
        return starting(remit, at=self._now())

    def _end(self) -> Decide[Json]:
        if not self._live:
            return self._start()
        remit = self._live.pop(self._dice.below(len(self._live)))
        end = ending(remit, self._dice.one(("task.completed", "task.failed", "task.cancelled")), self._now())
        return lambda view: end(view) if _is_running(view, remit.id) else Decision(None)

    def _send(self) -> Decide[Json]:
        message = Message(f"message{self._op}", "s1", "lead", "helper", f"text {self._op}", self._now())
        return lambda _view: Decision(None, (message_sent(message, Place(session="s1")),))

    def _take(self) -> Decide[Json]:
        now, most = self._now(), 1 + self._dice.below(3)

        def decide(view: View) -> Decision[Json]:
            ids = [message.id for message in view.waiting("", "helper", "", most)]
            taken = messages_taken(ids, "helper", Place("", "s1", "task"), now)
            return Decision(list(ids), (taken,) if ids else ())

        return decide


# -- sinks and listeners -------------------------------------------------------------------------------------


async def sinks_hear_everything_once_in_order(database: Database) -> None:
    """When a transaction returns, the sinks have its events: all of one transaction at once, in order."""
    store = database.store("one")
    heard: list[Sequence[Event]] = []
    stop = store.subscribe(lambda events: heard.append(tuple(events)))

    def two(view: View) -> Decision[Json]:
        return Decision(None, tuple(entry_event(view, Draft("notes", key, 1)) for key in "ab"))

    await store.tx("two", two)
    equal(
        [[event.seq for event in events] for events in heard],
        [[1, 2]],
        "what a sink heard of one transaction",
    )
    await asyncio.gather(*(store.tx(f"op {n}", putting(Draft("notes", f"key {n}", n))) for n in range(300)))
    equal(
        [event for events in heard for event in events],
        await journal(store),
        "a sink hears all events, in order",
    )
    count = len(heard)
    await store.tx("two", two)
    await answer_or_error(store, "raises", raising(Conflict("no")))
    await store.tx("looks", lambda _view: Decision(None))
    await database.store("two").tx("two", two)
    equal(
        len(heard),
        count,
        "nothing is heard of what was done before, failed, changed nothing or is another workspace's",
    )
    stop()
    await store.tx("unheard", putting(Draft("notes", "unheard", 1)))
    equal(len(heard), count, "a sink that was stopped hears nothing more")


async def a_failing_sink_harms_no_one(database: Database) -> None:
    """A sink that raises affects neither the work nor the journal nor other sinks; not even if it modifies the events
    it is given."""
    store = database.store("one")
    before: list[Event] = []
    after: list[Event] = []

    def fails(_events: Sequence[Event]) -> None:
        raise RuntimeError("this sink fails on purpose")

    def takes_apart(events: Sequence[Event]) -> None:
        if isinstance(events, list):
            events.clear()
        raise RuntimeError("this sink fails on purpose")

    store.subscribe(before.extend)
    store.subscribe(fails)
    store.subscribe(takes_apart)
    store.subscribe(after.extend)
    logging.getLogger("remit").addFilter(_not_on_purpose)
    try:
        asked = (answer_to(store, f"op {n}", putting(Draft("notes", f"key {n}", n), answer=n)) for n in range(20))
        equal(await asyncio.gather(*asked), list(range(20)), "a failing sink does not fail the work")
    finally:
        logging.getLogger("remit").removeFilter(_not_on_purpose)
    equal(before, await journal(store), "a sink before a failing one hears everything")
    equal(after, await journal(store), "a sink after a failing one hears everything")
    await sound(store)


async def who_listens_is_told_in_vain_at_most(database: Database) -> None:
    """Starting and stopping to listen has no side effects. A listener may be called without a change, but never after
    it was stopped."""
    store = database.store("one")
    rung: list[int] = []
    stops = [store.listen(lambda number=number: rung.append(number)) for number in range(3)]
    await store.tx("op", starting(first_remit("root", session="s")))
    for stop in stops:
        stop()
    await asyncio.sleep(0)
    rung.clear()
    await store.tx("more", starting(first_remit("more", session="s")))
    await asyncio.sleep(0.3)
    equal(rung, [], "what rings after everyone has stopped listening")
    for stop in stops:
        stop()


def _not_on_purpose(record: logging.LogRecord) -> bool:
    """Whether a log record is not one that this clause provokes."""
    return not (record.exc_info and "on purpose" in str(record.exc_info[1]))


# -- pruning -------------------------------------------------------------------------------------------------


async def old_runs_are_found_and_pruned(database: Database) -> None:
    """The tasks, figures and events of a pruned run are deleted, and the chain of hashes is valid across the gap."""
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
    """The entries, breakers and messages of a run are found. The messages of a pruned run are deleted with it."""
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
    """An event that declares a gap deletes the events in it. A larger gap replaces the gaps inside it. A gap is found
    by the event after it, by a range of events that it overlaps or touches, and by the event that declares it."""
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
    events_are_found_by_every_condition,
    events_are_found_by_task_and_kind,
    a_long_journal_is_searched_as_a_short_one,
    an_event_is_kept_whole,
    an_operation_and_an_event_are_found_again,
    the_head_is_where_the_journal_ends,
    the_journal_tells_the_tables,
    sinks_hear_everything_once_in_order,
    a_failing_sink_harms_no_one,
    who_listens_is_told_in_vain_at_most,
    old_runs_are_found_and_pruned,
    what_may_outlive_a_run_is_found,
    a_journal_is_cut_where_an_event_says_so,
    versions_that_are_forgotten_are_not_used_again,
    a_used_key_outlives_its_run,
)
