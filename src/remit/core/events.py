"""Journal events. The hash of each event covers the hash of the previous one.

Events are named tuples: immutable, and cheaper to create than dataclasses. A delegation creates several.
"""

import hmac
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from hashlib import sha256
from typing import Any, Final, TypeAlias, TypeVar, cast

from remit.core.checks import items
from remit.core.patterns import pattern
from remit.core.records import NamedTuple
from remit.core.times import DAY, aware
from remit.core.values import INT_LIMIT, NAME_LIMIT, Json, decode, decoded, line, plain, shown
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
    is over exactly these bytes, so it does not depend on how JSON is written. The first event of an operation has its
    id as `op`, and as `answer` its result as JSON text, or the digest of that text if it is long (see
    `blob_reference`); in the other events both are None. An event is a named tuple, so a JSON encoder writes a list;
    `remit.report.wire.event` returns an object.
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
    """Return a copy of the event with data of its own, parsed again from its text. The data of the given event may be
    shared with other readers, so a change to it would reach them."""
    return event._replace(data=cast("dict[str, Json]", decode(event.text)))


class Head(NamedTuple):
    """The end of a workspace's journal: number and hash of the last event. An empty journal has 0 and `GENESIS`."""

    seq: int = 0
    hash: str = GENESIS


# The id of an operation, and its result as JSON text or None. Only the first event of the operation has them.
Stamp: TypeAlias = tuple[str | None, str | None]
NO_STAMP: Final[Stamp] = (None, None)
INLINE: Final = 64 * 1024  # characters; a longer answer is stored next to its event
_BLOB: Final = "blob:"  # no JSON text has this prefix


def blob_reference(text: str) -> str:
    """Return the text that replaces a long answer in its event: the digest of the answer, so that the event's hash
    covers it, and its size. The answer itself is stored next to the event, as a blob."""
    return f"{_BLOB}{sha256(text.encode()).hexdigest()}:{len(text)}"


def answer_of(event: Event, long: str | None = None) -> Json:
    """Return the result of an event's operation, or None if the event has none. `long` is the result's text if it is
    stored next to the event. Without `long`, a long answer is returned as the reference in the event."""
    if long is not None:
        return decoded(long)
    return event.answer if is_blob(event.answer) or event.answer is None else decoded(event.answer)


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
    sealed = sha256(lines.encode()).hexdigest() if key is None else key.seal(lines.encode())
    return Event(workspace, seq, kind, at, run, session, task, agent, text, op, answer, sealed, data)


def genuine(event: Event, head: Head, key: SealKey | None = None) -> bool:
    """Whether the event is exactly the one that was written after `head`. An event that is signed with a key can be
    checked only with that key."""
    unsealed = Unsealed(event.kind, event.at, event.data, event.run, event.session, event.task, event.agent)
    with_key = key if event.hash.startswith(KEYED) else None
    return event == seal(unsealed, event.text, event.workspace, head, (event.op, event.answer), with_key)


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


# -- labels of a run, and where in the journal its tasks are ---------------------------------------------------------

MOST_TAGS: Final = 16
MOST_META: Final = 16
LABEL_LIMIT: Final = 64  # characters of a tag, and of a name in the metadata
VALUE_LIMIT: Final = 512  # characters of a text in the metadata
MetaValue: TypeAlias = str | int | float | bool


class Labels(NamedTuple):
    """The person who started a run, its tags, and its metadata by name; both in alphabetical order. `trace` is the
    W3C traceparent of the request that started it."""

    by: str = ""
    tags: tuple[str, ...] = ()
    meta: tuple[tuple[str, MetaValue], ...] = ()
    trace: str = ""

    @property
    def data(self) -> dict[str, Json]:
        """The labels that are set, as they are in the first event of a task."""
        data: dict[str, Json] = {"by": self.by} if self.by else {}
        if self.tags:
            data["tags"] = [*self.tags]
        if self.meta:
            data["meta"] = {**dict(self.meta)}
        if self.trace:
            data["trace"] = self.trace
        return data


NO_LABELS: Final = Labels()


_LABEL_NAMES: Final = frozenset(Labels._fields)
_TRACE: Final = pattern(r"(?!ff)[0-9a-f]{2}-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}")


def labels_given(by: object, tags: object, meta: object, trace: object = "") -> Labels:
    """Return the labels that a caller gives. Raise `BadInput` if there are too many, or if one is too long."""
    if by != "":
        line(by, "by", NAME_LIMIT)
    found = _tags(tags) if tags != () else (), _meta(meta) if meta != () else ()
    return Labels(cast("str", by), *found, "" if trace == "" else trace_given(trace))


def trace_given(given: object) -> str:
    """Return the given W3C traceparent. Raise `BadInput` if it is not one."""
    if not isinstance(given, str) or _TRACE.fullmatch(given) is None:
        raise BadInput(f"trace is a W3C traceparent, such as 00-{'4b' * 16}-{'f0' * 8}-01, not {shown(given)}")
    return given


def tag_given(given: object) -> str:
    """Return a tag. Raise `BadInput` unless it is one line of at most 64 characters."""
    return line(given, "a tag", LABEL_LIMIT)


def _tags(given: object) -> tuple[str, ...]:
    found = sorted({tag_given(one) for one in items(given, "tags is a list of texts, such as ['nightly']")})
    if len(found) > MOST_TAGS:
        raise BadInput(f"a run has at most {MOST_TAGS} tags, not {len(found)}")
    return tuple(found)


def _meta(given: object) -> tuple[tuple[str, MetaValue], ...]:
    if not isinstance(given, Mapping):
        raise BadInput(f"meta is a dict of names and values, such as {{'ticket': 'T-7'}}, not {shown(given)}")
    found = {
        line(name, "a name in meta", LABEL_LIMIT): value for name, value in cast("Mapping[Any, Any]", given).items()
    }
    if len(found) > MOST_META:
        raise BadInput(f"a run has at most {MOST_META} entries in meta, not {len(found)}; keep the rest in its context")
    return tuple((name, _value(name, found[name])) for name in sorted(found))


def _value(name: str, given: object) -> MetaValue:
    if isinstance(given, str):
        return plain(given, f"meta['{name}']", VALUE_LIMIT, empty=True)
    whole = isinstance(given, int) and -INT_LIMIT <= given <= INT_LIMIT
    if whole or (isinstance(given, float) and given - given == 0):  # neither infinite nor NaN
        return cast("MetaValue", given)
    raise BadInput(f"meta['{name}'] is a text, a number, True or False, not {shown(given)}")


def labels_restored(data: Mapping[str, Any]) -> Labels:
    """Return the labels in the first event of a task."""
    if _LABEL_NAMES.isdisjoint(data):
        return NO_LABELS
    meta: dict[str, MetaValue] = data.get("meta", {})
    return Labels(data.get("by", ""), tuple(data.get("tags", ())), tuple(meta.items()), data.get("trace", ""))


FIRST_KINDS: Final = ("task.started", "task.submitted")


def mark(kind: str, name: str) -> str:
    """Return the text that stands for a label in a chapter; `kind` is asker, by or tag."""
    return f"{kind} {name}"


def marks(data: Mapping[str, Any]) -> set[str]:
    """Return the marks of a task, from the data of its first event: its asker, the person who started its run, and its
    tags."""
    found = {mark(kind, str(data[kind])) for kind in ("asker", "by") if data.get(kind)}
    return found | {mark("tag", str(one)) for one in data.get("tags", ())}


_LABELS: Final = 16_384  # characters of the labels of a chapter; beyond that it may have any


class Gap(NamedTuple):
    """A range of the journal whose events were removed: the first and the last missing number, and the hash of the
    last, which the event after the gap continues.

    Each gap is declared by an event that is still in the journal, so an undeclared gap reveals that events were removed
    by other means. A reader of `ws.journal` gets gaps without a hash, each shortened to the range that is read.
    """

    first: int
    last: int
    hash: str = ""


class Chapter(NamedTuple):
    """A summary of a range of events: their earliest and latest times, their agents and their kinds, and the labels of
    the tasks that began there. Names and kinds are separated by spaces, labels by line breaks; `*` stands for any agent
    or any label.

    Times grow with sequence numbers only as far as clocks agree, so a chapter has the times of all its events, not only
    of its first and last one.
    """

    first: int
    last: int
    earliest: int
    latest: int
    agents: str
    kinds: str
    labels: str = "*"

    def may_have(self, kinds: Iterable[str]) -> bool:
        """Whether an event of one of these kinds is in the chapter."""
        return any(f" {kind} " in self.kinds for kind in kinds)

    def has(self, event: "Event") -> bool:
        """Whether the chapter covers this event, as it must cover every event in its range."""
        return (
            self.earliest <= event.at <= self.latest
            and f" {event.kind} " in self.kinds
            and (self.agents == "*" or f" {event.agent} " in self.agents)
            and (self.labels == "*" or event.kind not in FIRST_KINDS or self._has_labels(event))
        )

    def _has_labels(self, event: "Event") -> bool:
        return all(f"\n{mark}\n" in self.labels for mark in marks(event.data))


def chapter_of(first: int, last: int, facts: Iterable[Sequence[Any]], labels: Iterable[str] | None = ()) -> Chapter:
    """Return the chapter of the events from `first` to `last`. `facts` has at least one tuple of kind, agent, earliest
    and latest time. `labels` are the marks of the tasks that began there; None if they are not known."""
    kinds, agents, earliest, latest = zip(*facts, strict=True)
    names = sorted({*agents})
    told = "*" if any(" " in name for name in names) else f" {' '.join(names)} "
    all_kinds = f" {' '.join(sorted({*kinds}))} "
    return Chapter(first, last, min(earliest), max(latest), told, all_kinds, _label_text(labels))


def _label_text(labels: Iterable[str] | None) -> str:
    text = "*" if labels is None else "\n".join(("", *sorted({*labels}), ""))
    return text if len(text) <= _LABELS else "*"


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
    return event.data  # pyright: ignore[reportReturnType] - no cast: it would be a call in every projection


class Place(NamedTuple):
    """The run, session and task that an event belongs to. All are empty for an action of a person outside a run."""

    run: str = ""
    session: str = ""
    task: str = ""


FAMILY: Final = ".*"  # after the first word of some kinds: all of them
OVERLAP: Final = DAY  # the secret before the last rotation signs for this long, next to the new one


class Hook(NamedTuple):
    """A hook as the store keeps it. Times are microseconds since 1970.

    `kinds` are the wanted kinds of events, separated by spaces: `task.completed`, or `task.*` for a family. With `run`,
    only events of that run are sent. `generation` counts the secrets: the secret itself is derived, and in no table.
    `began` and `moved` are the numbers of the events that added it and that changed it last. With `task`, the address
    gets the present state of this A2A task each time that it changes, instead of events.
    """

    id: str
    url: str
    kinds: str
    run: str
    generation: int
    rotated_at: int | None
    added_by: str
    added_at: int
    began: int
    moved: int
    task: str = ""

    def wants(self, kind: str, run: str, task: str = "") -> bool:
        """Whether an event of this kind, run and task is sent. A hook for the root task of a run also gets the
        questions that its subtasks ask."""
        if self.run not in ("", run):
            return False
        if self.task not in ("", task) and not (self.task == run and kind.startswith("question.")):
            return False
        wanted = self.kinds.split()
        return kind in wanted or f"{kind.partition('.')[0]}{FAMILY}" in wanted

    def generations(self, now: int) -> list[int]:
        """Return the numbers of the secrets that sign a delivery now, the newest first. For a day after a rotation, the
        previous secret also signs."""
        overlaps = self.rotated_at is not None and now - self.rotated_at < OVERLAP
        return [self.generation, self.generation - 1] if overlaps else [self.generation]
