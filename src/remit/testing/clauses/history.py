"""Clauses on the journal: one event for each change, hashed, and found by run, session, agent, task, kind and time."""

import asyncio
from itertools import islice, product
from typing import Final

from remit.core.entry import Draft, Message, Writer, touched
from remit.core.events import GENESIS, Event, Head, Unsealed
from remit.core.kinds import Place, entries_removed, entry_touched, message_sent, messages_taken, place
from remit.core.remit import Remit
from remit.core.times import SECOND
from remit.core.values import Json
from remit.errors import Conflict
from remit.ports import Database, Decide, Decision, Span, Store, View
from remit.testing.clauses.making import (
    NOW,
    NOWHERE,
    Dice,
    answer_or_error,
    child_remit,
    ending,
    entry_event,
    equal,
    first_remit,
    journal,
    look,
    mark_of,
    must,
    putting,
    raising,
    sound,
    starting,
)


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
    for run, session, agent, (since, until), (after, limit) in product(runs, sessions, agents, times, pages):
        span = Span(run, session, agent, since, until, after, limit)
        expected = _expected(everything, span)
        events = await store.read(lambda view, span=span: view.events(span))
        equal([event.seq for event in events], [event.seq for event in expected], f"the events of {span}")
        equal(events, expected, f"the events of {span}, whole")
    places = ((None, None), (None, 2), (9, 3), (1, 3))
    for run, session, agent, (before, limit) in product((None, "run1"), (None, "s1"), (None, "lead"), places):
        for latest in (True, False):
            span = Span(run, session, agent, limit=limit, before=before, latest=latest)
            events = await store.read(lambda view, span=span: view.events(span))
            equal(events, _expected(everything, span), f"the events of {span}")


async def events_are_found_by_task_and_kind(database: Database) -> None:
    """Together with the other conditions; here too the limit counts the events found."""
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
    """By agent, kind and time, from either end, although clocks step back; and each chapter knows what is in it."""
    store = database.store("one")
    for part, later in enumerate((0, 5_000, 2_000, 9_000)):  # the third part is written by a clock that is behind
        await store.tx(f"part {part}", lambda _, part=part, later=later: Decision(None, _many(part, NOW + later)))
    everything = await journal(store)
    agents = (None, "a0", "a3", "rare", "nobody", "")
    kinds = (None, frozenset({"work.left"}), frozenset({"effect.done", "work.left"}), frozenset({"task.died"}))
    times = ((None, None), (NOW + 4_000, None), (None, NOW + 700), (NOW + 2_100, NOW + 5_100), (NOW + 99_999, None))
    pages = ((0, None, None), (0, 3, None), (1_500, 40, 2_700), (0, 2, 1_000), (3_000, None, None))
    # Every seventh: 7 divides none of their numbers, so each value still meets each value of the others.
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
    """Make some hundred events of a few agents; one of them does something once only."""
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

    equal(await store.tx("within", within), [True, False], "what operations answered, asked within a transaction")


async def the_head_is_where_the_journal_ends(database: Database) -> None:
    """Readers see the committed end; a decision also sees the events of earlier decisions in the same transaction."""
    store = database.store("one")
    equal(await store.read(lambda view: view.head()), Head(), "the head of an empty journal")

    def two(view: View) -> Decision[Json]:
        head = view.head()
        return Decision([*head], tuple(entry_event(view, Draft("notes", f"{head.seq} {key}", 1)) for key in "ab"))

    heads = await asyncio.gather(*(store.tx(f"op {number}", two) for number in range(60)))
    events = await journal(store)
    ends = [[0, GENESIS], *([event.seq, event.hash] for event in events[1::2])]
    equal(sorted(heads, key=str), sorted(ends[:-1], key=str), "the heads that decisions saw, one after the other")
    equal([*await store.read(lambda view: view.head())], ends[-1], "the head of a journal")
    await answer_or_error(store, "raises", raising(Conflict("no")))
    equal(await store.tx("look", lambda view: Decision([*view.head()])), ends[-1], "the head, within a decision")
    await sound(store)


async def the_journal_tells_the_tables(database: Database) -> None:
    """After four hundred random operations, serial and concurrent, in two workspaces."""
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


CLAUSES: Final = (
    events_are_found_by_every_condition,
    events_are_found_by_task_and_kind,
    a_long_journal_is_searched_as_a_short_one,
    an_event_is_kept_whole,
    an_operation_and_an_event_are_found_again,
    the_head_is_where_the_journal_ends,
    the_journal_tells_the_tables,
)
