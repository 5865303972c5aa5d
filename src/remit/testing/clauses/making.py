"""What the clauses share: facts as the engine would make them, and ways to say what is wrong."""

import hashlib
from collections.abc import Callable, Sequence
from typing import Final, TypeAlias

from remit.core import entry as entries
from remit.core import remit as remits
from remit.core.allow import NONE
from remit.core.bounds import TOP
from remit.core.entry import Draft, Writer
from remit.core.events import Event, Head, Unsealed, genuine
from remit.core.kinds import Place, PrunedRun, Queued, ended, entry_set, message_sent, started, submitted
from remit.core.message import Message
from remit.core.projection import fold
from remit.core.remit import Origin, Pass, Remit
from remit.core.scope import NOTHING
from remit.core.times import SECOND
from remit.core.values import Json
from remit.ports import Decide, Decision, Span, Store, View

NOW: Final = 1_800_000_000 * SECOND
NOWHERE: Final = Place()

Answer: TypeAlias = "Json | Exception"


# -- saying what is wrong -----------------------------------------------------------------------------------


def must(held: bool, sentence: str) -> None:
    if not held:
        raise AssertionError(sentence)


def equal(found: object, expected: object, what: str) -> None:
    """`what` says what is being compared, in the form of a promise."""
    if found != expected:
        raise AssertionError(f"{what}: expected {_cut(expected)}, got {_cut(found)}")


def _cut(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 600 else f"{text[:600]}…"


# -- facts --------------------------------------------------------------------------------------------------


def entry_fact(view: View, draft: Draft, *, at: int = NOW, agent: str = "writer", place: Place = NOWHERE) -> Unsealed:
    """The fact that a draft was written, as it follows from what is there."""
    return entry_set(entries.written(view.entry(draft.namespace, draft.key), draft, Writer(agent), at), place)


def putting(draft: Draft, *, answer: Json = None, at: int = NOW, agent: str = "writer") -> Decide[Json]:
    """Writes a draft and answers with what is given."""
    return lambda view: Decision(answer, (entry_fact(view, draft, at=at, agent=agent),))


def raising(error: Exception) -> Decide[Json]:
    """A decision that reads something and then raises."""

    def decide(view: View) -> Decision[Json]:
        view.entry("notes", "any")
        raise error

    return decide


def first_remit(task: str, *, session: str, holder: str = "lead", workspace: str = "one", at: int = NOW) -> Remit:
    wish = Pass(holder, f"the work of {task}")
    return remits.begin(Origin(task, workspace, session), wish, TOP, at + wish.microseconds)


def child_remit(parent: Remit, task: str, *, holder: str, at: int = NOW, seconds: float = 300) -> Remit:
    wish = Pass(holder, f"a part, {task}", seconds=seconds)
    return remits.derive(parent, wish, task, NOTHING, NONE, at + wish.microseconds)


def starting(*given: Remit, at: int = NOW) -> Decide[Json]:
    return lambda _view: Decision(None, tuple(started(one, at) for one in given))


def waiting_for(*given: Remit, at: int = NOW, queued: Queued | None = None) -> Decide[Json]:
    """Puts tasks into the queue."""
    how = queued or Queued("submit", timeout=60 * SECOND, attempts=3, ready_at=at)
    return lambda _view: Decision(None, tuple(submitted(one, at, how) for one in given))


def ending(remit: Remit, kind: str = "task.completed", at: int = NOW) -> Decide[Json]:
    return lambda _view: Decision(None, (ended(remit, kind, at, {"result": f"of {remit.id}"}),))


def sending(message: Message, place: Place = NOWHERE) -> Decide[Json]:
    return lambda _view: Decision(None, (message_sent(message, place),))


def pruned_run(root: Remit, *parts: str, at: int = NOW) -> PrunedRun:
    """What a journal keeps of a completed run with these other tasks."""
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


# -- reading ------------------------------------------------------------------------------------------------


async def journal(store: Store) -> list[Event]:
    return await store.read(lambda view: view.events(Span()))


async def value_of(store: Store, namespace: str, key: str) -> Json:
    """The value of an entry, or None."""

    def look(view: View) -> Json:
        found = view.entry(namespace, key)
        return None if found is None else found.value

    return await store.read(look)


async def answer_or_error(store: Store, op: str, decide: Decide[Json]) -> Answer:
    try:
        return await store.tx(op, decide)
    except Exception as error:  # noqa: BLE001 - whatever a store raises is what the clause wants to see
        return error


def check_journal(view: View) -> None:
    """The chain of hashes is whole, and the events tell exactly what the tables have."""
    events = view.events(Span())
    head = Head()
    for event in events:
        must(
            genuine(event, head),
            f"event {event.seq} ({event.kind}) is not what was sealed after event {head.seq}",
        )
        head = Head(event.seq, event.hash)
    told, found = fold(events), view.tables()
    for table, rows in told.items():
        equal(found[table], rows, f"table {table} holds what the journal tells")


async def sound(store: Store) -> None:
    await store.read(check_journal)


# -- chance that is the same every time ---------------------------------------------------------------------


class Dice:
    """Numbers that look random and depend on the seed only."""

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
