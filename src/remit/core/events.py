"""Events: facts in the order they happened, each sealed with the hash of the one before.

These are named tuples: as immutable as everything in the core, and made several times in every delegation.
"""

import hashlib
from datetime import datetime
from typing import Final, NamedTuple, cast

from remit.core.times import aware
from remit.core.values import Json, decode

GENESIS: Final = "0" * 64


class Unsealed(NamedTuple):
    """An event before it has its place in the journal."""

    kind: str
    at: int
    data: dict[str, Json]
    run: str = ""
    session: str = ""
    task: str = ""
    agent: str = ""


class Event(NamedTuple):
    """A fact with its place: `seq` counts from 1 per workspace, `hash` covers this event and the previous hash.

    `at` is microseconds since 1970, and `happened` the same as a datetime. `text` is `data` as it was sealed: the hash
    is over these very bytes, so it does not depend on how a value is written as JSON. `op` is the operation it belongs
    to and `answer` what that operation answered, as JSON text. Like every named tuple it is a list to a JSON encoder;
    `remit.report.wire.event` makes an object of it.
    """

    workspace: str
    seq: int
    kind: str
    at: int
    run: str
    session: str
    task: str
    agent: str
    text: str
    op: str | None
    answer: str | None
    hash: str
    data: dict[str, Json]

    @property
    def happened(self) -> datetime:
        return aware(self.at)

    def __repr__(self) -> str:
        return f"<Event {self.seq} {self.kind} by {self.agent or 'person'}{f', task {self.task}' if self.task else ''}>"


def apart(event: Event) -> Event:
    """Give an event that was just sealed with data of its own, read from its text."""
    return event._replace(data=cast("dict[str, Json]", decode(event.text)))


class Head(NamedTuple):
    """Where the journal of a workspace ends."""

    seq: int = 0
    hash: str = GENESIS


class Stamp(NamedTuple):
    """The operation that an event belongs to, and its answer as JSON text; on the first event of a transaction."""

    op: str | None = None
    answer: str | None = None


NO_STAMP: Final = Stamp()


def seal(event: Unsealed, text: str, workspace: str, head: Head, stamp: Stamp = NO_STAMP) -> Event:
    """Give an event its place after `head`; `text` is its data as JSON.

    The hash is over one part a line: JSON text has no line breaks of its own, and the names are checked for them.
    """
    kind, at, data, run, session, task, agent = event
    before, last = head
    seq = before + 1
    op, answer = stamp
    lines = f"{last}{workspace}\n{seq}\n{kind}\n{at}\n{run}\n{session}\n{task}\n{agent}\n{op!r}\n{answer!r}\n{text}\n"
    sealed = hashlib.sha256(lines.encode()).hexdigest()
    return Event(workspace, seq, kind, at, run, session, task, agent, text, op, answer, sealed, data)


def genuine(event: Event, head: Head) -> bool:
    """Tell whether the event is what was sealed after `head`."""
    unsealed = Unsealed(event.kind, event.at, event.data, event.run, event.session, event.task, event.agent)
    return event == seal(unsealed, event.text, event.workspace, head, Stamp(event.op, event.answer))
