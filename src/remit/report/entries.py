"""The history of one context entry, from events: its versions with their writers, and the turns that read it."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final, cast

from remit.core.events import Event, read
from remit.core.kinds.sharing import EntriesRemoved, EntrySet
from remit.core.lifecycle import ENDS
from remit.core.scope import key_spelled
from remit.core.trust import TRUSTED, Trust
from remit.core.values import Json
from remit.report.receipts import saw

VERSION_KINDS: Final = frozenset(("entry.set", "entries.removed"))
# Events with a receipt: they end a turn.
READER_KINDS: Final = frozenset((*ENDS, "task.handed", "task.retrying", "task.released", "task.parked"))


@dataclass(frozen=True, slots=True)
class EntryVersion:
    """A version of an entry: who wrote it, in which task, and when. `agent` is empty for an owner, whom `by` names if
    one is known. For a removal, `removed` is the reason and `version` the last version; there is no value."""

    seq: int
    version: int
    at: int
    agent: str
    by: str
    run: str
    task: str
    value: Json = None
    digest: str = ""
    trust: Trust = TRUSTED
    expires_at: int | None = None
    removed: str = ""


@dataclass(frozen=True, slots=True)
class EntryReader:
    """A turn that read a version of an entry: the agent, its task, when the turn ended, and why the agent saw it."""

    seq: int
    version: int
    at: int
    agent: str
    run: str
    task: str
    why: str
    tokens: int


def versions_in(event: Event, namespace: str, key: str) -> Iterator[EntryVersion]:
    """Return the version that an event of `VERSION_KINDS` makes or removes, if it is about this entry."""
    by = cast("str", event.data.get("by", ""))
    if event.kind == "entry.set":
        data = read(event, EntrySet)
        if (data["namespace"], data["key"]) == (namespace, key):
            about: tuple[Any, ...] = (data["value"], data["digest"], data["trust"], data["expires_at"])
            yield EntryVersion(event.seq, data["version"], event.at, event.agent, by, event.run, event.task, *about)
        return
    gone = read(event, EntriesRemoved)
    for row in gone["keys"]:
        if [*row[:2]] == [namespace, key]:
            why = gone["why"] or "removed"
            yield EntryVersion(event.seq, row[2], event.at, event.agent, by, event.run, event.task, removed=why)


def readers_in(event: Event, namespace: str, key: str) -> Iterator[EntryReader]:
    """Return the versions of this entry that a turn read, from the event of `READER_KINDS` that ended the turn."""
    receipt = event.data.get("receipt")
    where = key_spelled(namespace, key)
    for part in saw(cast("dict[str, Json]", receipt)) if receipt else ():
        if part.what == where:
            about = (event.agent, event.run, event.task, part.why, part.tokens)
            yield EntryReader(event.seq, part.version, event.at, *about)
