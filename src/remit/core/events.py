"""Events: facts in the order they happened, each sealed with the hash of the one before."""

import hashlib
from dataclasses import dataclass, field
from typing import Final

from remit.core.values import Json, encode

GENESIS: Final = "0" * 64


@dataclass(frozen=True, slots=True)
class Fact:
    """An event before it has its place in the journal."""

    kind: str
    at: int
    data: dict[str, Json]
    run: str = ""
    session: str = ""
    task: str = ""
    agent: str = ""


@dataclass(frozen=True, slots=True)
class Event:
    """A fact with its place: `seq` counts from 1 per workspace, `hash` covers this event and the previous hash.

    `op` is the operation it belongs to and `answer` what that operation answered, as JSON text. `text` is `data` as
    it was sealed: the hash is over these very bytes, so it does not depend on how a value is written as JSON.
    """

    seq: int
    workspace: str
    kind: str
    at: int
    run: str
    session: str
    task: str
    agent: str
    data: dict[str, Json] = field(compare=False)
    text: str = field(repr=False)
    op: str | None
    answer: str | None
    hash: str


@dataclass(frozen=True, slots=True)
class Head:
    """Where the journal of a workspace ends."""

    seq: int = 0
    hash: str = GENESIS


def seal(fact: Fact, workspace: str, head: Head, op: str | None = None, answer: str | None = None) -> Event:
    """Gives a fact its place after `head`."""
    seq = head.seq + 1
    text = encode(fact.data)
    event = Event(
        seq=seq,
        workspace=workspace,
        kind=fact.kind,
        at=fact.at,
        run=fact.run,
        session=fact.session,
        task=fact.task,
        agent=fact.agent,
        data=fact.data,
        text=text,
        op=op,
        answer=answer,
        hash="",
    )
    object.__setattr__(event, "hash", chained(event, head.hash))
    return event


def chained(event: Event, before: str) -> str:
    """The hash that binds an event to the one before it.

    One field a line: JSON text has no line breaks of its own, and the names in here are checked to have none.
    """
    lines = (
        f"{before}\n{event.workspace}\n{event.seq}\n{event.kind}\n{event.at}\n{event.run}\n{event.session}\n{event.task}\n"
        f"{event.agent}\n{event.op or ''}\n{event.answer or ''}\n{event.text}"
    )
    return hashlib.sha256(lines.encode()).hexdigest()


def genuine(event: Event, head: Head) -> bool:
    """Whether the event is what was sealed after `head`."""
    return event.seq == head.seq + 1 and event.hash == chained(event, head.hash)
