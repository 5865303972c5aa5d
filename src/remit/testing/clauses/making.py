"""Helpers of the clauses: events as the engine makes them, and assertions."""

import hashlib
from collections.abc import Callable, Sequence
from typing import Final, TypeAlias, TypeVar

from remit.core import entry as entries
from remit.core import remit as remits
from remit.core.bounds import TOP
from remit.core.entry import Draft, Message, Writer
from remit.core.events import Event, Head, Hook, Mark, Place, Unsealed, genuine
from remit.core.kinds.sharing import entry_set, message_sent
from remit.core.kinds.tasks import BEGUN, Begun, Queued, ended, started, submitted
from remit.core.kinds.upkeep import PrunedRun
from remit.core.lifecycle import Record
from remit.core.projection import Tables, fold
from remit.core.remit import DELEGATION_TIME, NO_RIGHTS, Origin, Pass, Remit
from remit.core.times import SECOND, Schedule
from remit.core.values import Json
from remit.ports import Beat, Decide, Decision, Span, Store, View

NOW: Final = 1_800_000_000 * SECOND
NOWHERE: Final = Place()

Answer: TypeAlias = "Json | Exception"
T = TypeVar("T")


# -- assertions ---------------------------------------------------------------------------------------------


def must(held: bool, sentence: str) -> None:
    """Raise `AssertionError` with this sentence unless `held`."""
    if not held:
        raise AssertionError(sentence)


def equal(actual: object, expected: object, what: str) -> None:
    """Raise `AssertionError` unless both are equal; `what` names the promise that is checked."""
    if actual != expected:
        raise AssertionError(f"{what}: expected {_cut(expected)}, got {_cut(actual)}")


def _cut(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 600 else f"{text[:600]}…"


# -- events -------------------------------------------------------------------------------------------------


def entry_event(view: View, draft: Draft, *, at: int = NOW, agent: str = "writer", place: Place = NOWHERE) -> Unsealed:
    """Return the event that writes this draft, based on the present entry."""
    return entry_set(entries.after_write(view.entry(draft.namespace, draft.key), draft, Writer(agent), at), place)


def hooking(hook: str, url: str = "https://example.com/hook", run: str = "") -> Hook:
    """Return a hook that is sent the events of completed tasks."""
    return Hook(hook, url, "task.completed", run, 1, None, "ann", NOW, 0, 0)


def scheduling(name: str, planned: int, task: str = "tidy up") -> Schedule:
    """Return an active schedule that runs next at a planned time."""
    when = (name, "active", "0 3 * * *", "UTC", "latest", "helper", task, '{"ceiling":{},"keywords":{}}')
    return Schedule(*when, planned, None, "", 0, "ann", NOW, 0, 0)


def first_remit(task: str, *, session: str, holder: str = "lead", workspace: str = "one", at: int = NOW) -> Remit:
    wish = Pass(holder, f"the work of {task}")
    return remits.begin(Origin(task, workspace, session), wish, TOP, at + DELEGATION_TIME)


def child_remit(parent: Remit, task: str, *, holder: str, at: int = NOW, seconds: float = 300) -> Remit:
    wish = Pass(holder, f"a part, {task}", timeout=seconds)
    return remits.derive(parent, wish, task, NO_RIGHTS, at + round(seconds * SECOND))


def pruned_run(root: Remit, *parts: str, at: int = NOW) -> PrunedRun:
    """Return the facts that a journal keeps about a completed run with these other tasks."""
    return {
        "id": root.id,
        "agent": root.holder,
        "session": root.session,
        "task": root.task,
        "state": "completed",
        "asked_at": at,
        "ended_at": at,
        "tasks": [root.id, *parts],
    }


# -- decisions ----------------------------------------------------------------------------------------------


def putting(draft: Draft, *, answer: Json = None, at: int = NOW, agent: str = "writer") -> Decide[Json]:
    """Return a decision that writes this draft as an entry."""
    return lambda view: Decision(answer, (entry_event(view, draft, at=at, agent=agent),))


def raising(error: Exception) -> Decide[Json]:
    """Return a decision that reads something and then raises."""

    def decide(view: View) -> Decision[Json]:
        view.entry("notes", "any")
        raise error

    return decide


def starting(*remits: Remit, at: int = NOW) -> Decide[Json]:
    """Return a decision that starts these tasks at once, without the queue."""
    return lambda _view: Decision(None, tuple(started(remit, at) for remit in remits))


def queueing(*remits: Remit, at: int = NOW, queued: Queued | None = None, begun: Begun = BEGUN) -> Decide[Json]:
    """Return a decision that queues tasks."""
    how = queued or Queued("submit", timeout=60 * SECOND, attempts=3, ready_at=at)
    return lambda _view: Decision(None, tuple(submitted(remit, at, how, begun) for remit in remits))


def ending(remit: Remit, kind: str = "task.completed", at: int = NOW) -> Decide[Json]:
    """Return a decision that ends a task."""
    return lambda _view: Decision(None, (ended(remit, kind, at, {"result": f"of {remit.id}"}),))


def sending(message: Message, place: Place = NOWHERE) -> Decide[Json]:
    """Return a decision that sends a message."""
    return lambda _view: Decision(None, (message_sent(message, place),))


async def append(store: Store, op: str, *events: Unsealed) -> None:
    """Append these events, without reading anything."""
    await store.tx(op, lambda _view: Decision(None, events))


# -- reading ------------------------------------------------------------------------------------------------


class Content:
    """The whole content of a workspace: its journal, tables, workers and head."""

    __slots__ = ("events", "head", "tables", "workers")

    def __init__(self, view: View) -> None:
        self.events: list[Event] = view.events(Span())
        self.tables: Tables = view.tables()
        self.workers: list[Beat] = view.workers()
        self.head: Head = view.head()


async def unchanged(store: Store, before: Content, why: str) -> None:
    """Raise `AssertionError` unless the workspace has exactly the content of `before`."""
    now = await store.read(Content)
    equal(now.events, before.events, f"the journal {why}")
    for table, rows in before.tables.items():
        equal(now.tables[table], rows, f"table {table} {why}")
    equal((now.workers, now.head), (before.workers, before.head), f"the workers and the end of the journal {why}")


async def journal(store: Store) -> list[Event]:
    """Return all events of a store's journal."""
    return await store.read(lambda view: view.events(Span()))


def mark_of(event: Event) -> Mark:
    """Return the header of an event."""
    return Mark._make(getattr(event, name) for name in Mark._fields)


async def look(store: Store, read: Callable[[View], T]) -> T:
    """Return the result of a read."""
    return await store.read(read)


async def value_of(store: Store, namespace: str, key: str) -> Json:
    """Return the value of an entry, or None if there is none."""

    def read(view: View) -> Json:
        entry = view.entry(namespace, key)
        return None if entry is None else entry.value

    return await store.read(read)


async def record_of(store: Store, task: str) -> Record:
    """Return the record of a task, which must exist."""
    record = await store.read(lambda view: view.record(task))
    if record is None:
        raise AssertionError(f"there is no task {task}")
    return record


def ids(records: Sequence[Record]) -> list[str]:
    return [record.id for record in records]


async def answer_to(store: Store, op: str, decide: Decide[T]) -> T:
    """Do an operation and return its answer."""
    return (await store.tx(op, decide)).answer


async def answer_or_error(store: Store, op: str, decide: Decide[Json]) -> Answer:
    """Run an operation. Return its answer, or the exception that it raised."""
    try:
        return (await store.tx(op, decide)).answer
    except Exception as error:  # noqa: BLE001 - the clause compares any exception of a store
        return error


def check_journal(view: View) -> None:
    """Check that the chain of hashes is complete, and that the events give exactly the tables."""
    events = view.events(Span())
    head = Head()
    for event in events:
        gap = view.gap_before(event.seq)
        if gap is not None:
            equal(gap.first, head.seq + 1, f"where the gap begins that ends before event {event.seq}")
            head = Head(gap.last, gap.hash)
        must(
            genuine(event, head),
            f"event {event.seq} ({event.kind}) is not what was sealed after event {head.seq}",
        )
        head = Head(event.seq, event.hash)
    folded, tables = fold(events), view.tables()
    equal(set(tables), set(folded), "the tables there are")
    for table, rows in folded.items():
        equal(tables[table], rows, f"table {table} holds what the journal tells")


async def both_ways(store: Store, read: Callable[[View], list[object]]) -> list[object]:
    """Return the result of a read. Raise `AssertionError` if a decision, where a store may answer from its cache, sees
    another result."""
    _, within = await store.tx("look", lambda view: Decision(None, aside=read(view)))
    outside = await store.read(read)
    equal(within, outside, "what a decision sees is what a reader sees")
    return outside


async def sound(store: Store) -> None:
    await store.read(check_journal)


# -- random numbers -----------------------------------------------------------------------------------------


class Dice:
    """Pseudo-random numbers that depend on the seed only."""

    def __init__(self, seed: str) -> None:
        self._seed = seed
        self._thrown = 0

    def below(self, end: int) -> int:
        self._thrown += 1
        digest = hashlib.sha256(f"{self._seed}/{self._thrown}".encode()).digest()
        return int.from_bytes(digest[:8]) % end

    def one(self, items: Sequence[str]) -> str:
        return items[self.below(len(items))]

    def chosen(self, deeds: Sequence[Callable[[], Decide[Json]]]) -> Decide[Json]:
        return deeds[self.below(len(deeds))]()
