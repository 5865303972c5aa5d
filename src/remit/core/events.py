"""Events: facts in the order they happened, each sealed with the hash of the one before.

These are named tuples: as immutable as everything in the core, and made several times in every delegation.
"""

import hashlib
import hmac
from collections.abc import Iterable
from datetime import datetime
from typing import Final, NamedTuple, cast

from remit.core.times import aware
from remit.core.values import Json, decode
from remit.errors import BadInput

GENESIS: Final = "0" * 64
KEYED: Final = "hmac-"  # how a hash begins that was made with a key
KEY_LENGTH: Final = 16


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
    to and `answer` what that operation answered, as JSON text; of a long one only the digest, see `blob_reference`.
    Like every named tuple it is a list to a JSON encoder; `remit.report.wire.event` makes an object of it.
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
INLINE: Final = 64 * 1024  # characters of an answer, up to which it is part of its event
_BLOB: Final = "blob:"  # no JSON text begins so


def blob_reference(text: str) -> str:
    """Give what stands in an event for an answer that is kept beside it as a blob: its digest, so that the seal covers
    it, and its size."""
    return f"{_BLOB}{hashlib.sha256(text.encode()).hexdigest()}:{len(text)}"


def is_blob(answer: str | None) -> bool:
    """Tell whether the answer of an event is kept beside it."""
    return answer is not None and answer.startswith(_BLOB)


class SealKey:
    """A secret that seals events: without it nobody can make a chain anew. `mark` begins the hashes made with it, and
    tells one key from another without telling the key."""

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
    event: Unsealed, text: str, workspace: str, head: Head, stamp: Stamp = NO_STAMP, key: SealKey | None = None
) -> Event:
    """Give an event its place after `head`; `text` is its data as JSON.

    The hash is over one part a line: JSON text has no line breaks of its own, and the names are checked for them.
    """
    kind, at, data, run, session, task, agent = event
    before, last = head
    seq = before + 1
    op, answer = stamp
    lines = f"{last}{workspace}\n{seq}\n{kind}\n{at}\n{run}\n{session}\n{task}\n{agent}\n{op!r}\n{answer!r}\n{text}\n"
    sealed = hashlib.sha256(lines.encode()).hexdigest() if key is None else key.seal(lines.encode())
    return Event(workspace, seq, kind, at, run, session, task, agent, text, op, answer, sealed, data)


def genuine(event: Event, head: Head, key: SealKey | None = None) -> bool:
    """Tell whether the event is what was sealed after `head`, with the key if it was sealed with one."""
    unsealed = Unsealed(event.kind, event.at, event.data, event.run, event.session, event.task, event.agent)
    with_key = key if event.hash.startswith(KEYED) else None
    return event == seal(unsealed, event.text, event.workspace, head, Stamp(event.op, event.answer), with_key)


class Mark(NamedTuple):
    """An event without what it says: that it happened, and its seal."""

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
    """A stretch of the journal whose events were removed, because nothing needs them any more: the first and the last
    number that is missing, and the hash of the last, from which the event behind the gap continues.

    Every gap is stated by an event that is still there, so whoever takes out more than that is found out.
    """

    first: int
    last: int
    hash: str


def joined(gaps: Iterable[Gap]) -> list[Gap]:
    """Put gaps in order, and make one of those that touch."""
    found: list[Gap] = []
    for gap in sorted(gaps):
        if found and found[-1].last + 1 == gap.first:
            found[-1] = gap._replace(first=found[-1].first)
        else:
            found.append(gap)
    return found
