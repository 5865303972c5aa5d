"""Journal events. The hash of each event covers the hash of the previous one.

Events are named tuples: immutable, and cheaper to create than dataclasses. A delegation creates several.
"""

import hashlib
import hmac
from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any, Final, NamedTuple, TypeVar, cast

from remit.core.times import aware
from remit.core.values import Json, decode
from remit.errors import BadInput

GENESIS: Final = "0" * 64
KEYED: Final = "hmac-"  # the prefix of hashes made with a key
KEY_LENGTH: Final = 16


class Unsealed(NamedTuple):
    """An event that has no place in the journal yet."""

    kind: str
    at: int
    data: dict[str, Json]
    run: str = ""
    session: str = ""
    task: str = ""
    agent: str = ""


class Event(NamedTuple):
    """A journal event. `seq` counts from 1 per workspace; `hash` covers this event and the previous hash.

    `at` is microseconds since 1970, and `happened` the same as a datetime. `text` is `data` as it was hashed: the hash
    is over exactly these bytes, so it does not depend on how JSON is written. `op` is the operation that the event
    belongs to, and `answer` the result of that operation as JSON text, or its digest if it is long (see
    `blob_reference`). An event is a named tuple, so a JSON encoder writes a list; `remit.report.wire.event` returns an
    object.
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
    """Return a new event with data of its own, parsed from its text. The data of the sealed event may be shared."""
    return event._replace(data=cast("dict[str, Json]", decode(event.text)))


class Head(NamedTuple):
    """The end of a workspace's journal: the last number and its hash."""

    seq: int = 0
    hash: str = GENESIS


class Stamp(NamedTuple):
    """The operation that an event belongs to, and the operation's result as JSON text. Set on the first event of a
    transaction."""

    op: str | None = None
    answer: str | None = None


NO_STAMP: Final = Stamp()
INLINE: Final = 64 * 1024  # characters; a longer answer is stored next to its event
_BLOB: Final = "blob:"  # no JSON text has this prefix


def blob_reference(text: str) -> str:
    """Return the text that replaces a long answer in its event: the digest of the answer, so that the event's hash
    covers it, and its size. The answer itself is stored next to the event, as a blob."""
    return f"{_BLOB}{hashlib.sha256(text.encode()).hexdigest()}:{len(text)}"


def is_blob(answer: str | None) -> bool:
    """Whether the answer of an event is stored as a blob."""
    return answer is not None and answer.startswith(_BLOB)


class SealKey:
    """A secret key for event hashes (HMAC). Without it, a changed journal cannot be given valid hashes. `mark` is the
    prefix of all hashes made with this key; it identifies the key without revealing it."""

    __slots__ = ("_secret", "mark")

    def __init__(self, secret: str) -> None:
        if not isinstance(secret, str) or len(secret) < KEY_LENGTH:  # pyright: ignore[reportUnnecessaryIsInstance] - it comes from users
            raise BadInput(f"a journal's key is text of at least {KEY_LENGTH} characters; make one at random")
        self._secret = secret.encode()
        self.mark = f"{KEYED}{self._digest(b'which key is this?')[:8]}-"

    def seal(self, sealed: bytes) -> str:
        return f"{self.mark}{self._digest(sealed)}"

    def _digest(self, text: bytes) -> str:
        return hmac.digest(self._secret, text, "sha256").hex()


def seal(
    event: Unsealed,
    text: str,
    workspace: str,
    head: tuple[int, str],
    stamp: Stamp = NO_STAMP,
    key: SealKey | None = None,
) -> Event:
    """Return the event with its place after `head`; `text` is its data as JSON.

    The hash covers one field a line. No field contains a line break: JSON text has none, and names are checked.
    """
    kind, at, data, run, session, task, agent = event
    before, last = head
    seq = before + 1
    op, answer = stamp
    # `!r` distinguishes None from the text "None", and escapes line breaks.
    lines = f"{last}{workspace}\n{seq}\n{kind}\n{at}\n{run}\n{session}\n{task}\n{agent}\n{op!r}\n{answer!r}\n{text}\n"
    sealed = hashlib.sha256(lines.encode()).hexdigest() if key is None else key.seal(lines.encode())
    return Event(workspace, seq, kind, at, run, session, task, agent, text, op, answer, sealed, data)


def genuine(event: Event, head: Head, key: SealKey | None = None) -> bool:
    """Whether the event is exactly the one that was sealed after `head`. An event sealed with a key needs that key."""
    unsealed = Unsealed(event.kind, event.at, event.data, event.run, event.session, event.task, event.agent)
    with_key = key if event.hash.startswith(KEYED) else None
    return event == seal(unsealed, event.text, event.workspace, head, Stamp(event.op, event.answer), with_key)


class Mark(NamedTuple):
    """The header of an event, without its data."""

    seq: int
    kind: str
    at: int
    run: str
    session: str
    task: str
    agent: str
    op: str | None
    hash: str


class Gap(NamedTuple):
    """A range of the journal whose events were removed: the first and the last missing number, and the hash of the
    last, which the event after the gap continues.

    An event that is still in the journal declares every gap, so an undeclared gap reveals that events were removed by
    other means.
    """

    first: int
    last: int
    hash: str


class Chapter(NamedTuple):
    """A summary of a range of events: their earliest and latest times, their agents and their kinds. Names and kinds
    are separated by spaces; `*` stands for any agent.

    Times grow with sequence numbers only as far as clocks agree, so a chapter has the times of all its events, not only
    of its first and last one.
    """

    first: int
    last: int
    earliest: int
    latest: int
    agents: str
    kinds: str

    def may_have(self, kinds: Iterable[str]) -> bool:
        """Whether an event of one of these kinds is in the chapter."""
        return any(f" {kind} " in self.kinds for kind in kinds)

    def has(self, event: "Event") -> bool:
        """Whether the chapter covers this event, as it must cover every event in its range."""
        return (
            self.earliest <= event.at <= self.latest
            and f" {event.kind} " in self.kinds
            and (self.agents == "*" or f" {event.agent} " in self.agents)
        )


def chapter_of(first: int, last: int, facts: Iterable[Sequence[Any]]) -> Chapter:
    """Return the chapter of events whose kinds, agents, earliest and latest times are these."""
    kinds, agents, earliest, latest = zip(*facts, strict=True)
    names = sorted({*agents})
    told = "*" if any(" " in name for name in names) else f" {' '.join(names)} "
    return Chapter(first, last, min(earliest), max(latest), told, f" {' '.join(sorted({*kinds}))} ")


def joined(gaps: Iterable[Gap]) -> list[Gap]:
    """Return the gaps in order, with adjacent gaps merged."""
    found: list[Gap] = []
    for gap in sorted(gaps):
        if found and found[-1].last + 1 == gap.first:
            found[-1] = gap._replace(first=found[-1].first)
        else:
            found.append(gap)
    return found


Shape = TypeVar("Shape")


def read(event: Event | Unsealed, shape: type[Shape]) -> Shape:
    """Return an event's data as the TypedDict of its kind."""
    return cast("Shape", event.data)


class Place(NamedTuple):
    """The run, session and task that an event belongs to. All are empty for an action of a person outside a run."""

    run: str = ""
    session: str = ""
    task: str = ""
