"""The vocabulary of the journal: one maker for each kind of fact."""

from dataclasses import dataclass
from typing import Final, NamedTuple

from remit.core import scope
from remit.core.bounds import names_data
from remit.core.breaker import Breaker
from remit.core.entry import Entry, Writer
from remit.core.events import Fact
from remit.core.remit import Pass, Remit
from remit.core.values import Json


@dataclass(frozen=True, slots=True)
class Message:
    """What one agent sends another; it reaches the other's inbox of the same session, once.

    An announcement tells of the end of task `about`, to whoever holds task `reader`, and to nobody else.
    """

    id: str
    session: str
    sender: str
    to: str
    text: str
    sent_at: int
    reader: str = ""
    about: str = ""


class Place(NamedTuple):
    """Which run, session and task a fact belongs to; all empty for what a person does outside a run."""

    run: str = ""
    session: str = ""
    task: str = ""


def place(remit: Remit) -> Place:
    return Place(remit.root, remit.session, remit.id)


class Begun(NamedTuple):
    """What the record of a new task says besides its remit."""

    worker: str = ""
    step: str = ""  # of a plan, if it carries one out
    lead: str = ""  # what the engine does in its holder's place: run a plan, lead a team


class Queued(NamedTuple):
    """How a task is to be carried out that nobody waits for: `way` is submit or spawn."""

    way: str
    timeout: int
    attempts: int
    ready_at: int
    twin: str = ""  # what another asking for the same would have too


BEGUN: Final = Begun()
_BEGUN: Final = Begun._fields


def started(remit: Remit, now: int, begun: Begun = BEGUN, queued: Queued | None = None) -> Fact:
    """A task that is carried out at once: by whoever delegates it, or by a process that had a hand free for it."""
    data = _asked(remit)
    if begun is not BEGUN:
        data |= {name: value for name, value in zip(_BEGUN, begun, strict=True) if value}
    if queued is not None:
        data |= queued._asdict()
    return Fact("task.started", now, data, remit.root, remit.session, remit.id, remit.holder)


def submitted(remit: Remit, now: int, queued: Queued) -> Fact:
    data = {**_asked(remit), **queued._asdict()}
    return Fact("task.submitted", now, data, remit.root, remit.session, remit.id, remit.holder)


def _asked(remit: Remit) -> dict[str, Json]:
    names = remit.names
    return {
        "asker": names[-2] if len(names) > 1 else "",
        "bounds": remit.bounds.data,
        "chain": [*names],
        "parent": remit.parent,
        "sees": [*scope.spelled(remit.sees)] if remit.sees else [],
        "task": remit.task,
        "tools": names_data(remit.tools) if remit.tools else [],
    }


def ended(remit: Remit, kind: str, now: int, data: dict[str, Json]) -> Fact:
    return Fact(kind, now, data, remit.root, remit.session, remit.id, remit.holder)


def moved(kind: str, at: Place, agent: str, now: int, data: dict[str, Json]) -> Fact:
    """A task goes from one state to another."""
    return Fact(kind, now, data, at.run, at.session, at.task, agent)


class Rest(NamedTuple):
    """How a task is put back into the queue: for whom, from when, and how often it has been tried by then."""

    worker: str
    fence: int
    ready_at: int
    attempt: int
    tries: int


def rested(kind: str, at: Place, agent: str, now: int, rest: Rest, data: dict[str, Json]) -> Fact:
    return moved(kind, at, agent, now, {**data, **rest._asdict()})


class Claim(NamedTuple):
    """Who has a task now. A write that carries an older fence changes nothing."""

    worker: str
    fence: int
    attempt: int


def claimed(at: Place, agent: str, now: int, claim: Claim) -> Fact:
    return moved("task.claimed", at, agent, now, {**claim._asdict()})


def fenced(at: Place, agent: str, now: int, claim: Claim) -> Fact:
    """A task that was delegated is taken from a process that is gone; it waits until its asker asks again."""
    return moved("task.fenced", at, agent, now, {**claim._asdict()})


def effect_done(remit: Remit, key: str, result: Json, now: int) -> Fact:
    data: dict[str, Json] = {"key": key, "result": result}
    return Fact("effect.done", now, data, remit.root, remit.session, remit.id, remit.holder)


def runs_pruned(runs: list[dict[str, Json]], now: int) -> Fact:
    """What is kept of runs whose records are taken away."""
    return Fact("runs.pruned", now, {"runs": [*runs]})


def handed(remit: Remit, to: str | list[str], now: int, data: dict[str, Json]) -> Fact:
    """The holder gives the task to another, or parts of it to several at once."""
    given: Json = to if isinstance(to, str) else [*to]
    return Fact("task.handed", now, {**data, "to": given}, remit.root, remit.session, remit.id, remit.holder)


def breaker_set(name: str, breaker: Breaker, at: Place, now: int) -> Fact:
    return Fact("breaker.set", now, {**breaker._asdict(), "name": name}, at.run, at.session, at.task, name)


def plan_started(remit: Remit, steps: list[Json], now: int, data: dict[str, Json]) -> Fact:
    return Fact("plan.started", now, {**data, "steps": steps}, remit.root, remit.session, remit.id, remit.holder)


def step_ended(remit: Remit, step: str, state: str, reason: str, now: int) -> Fact:
    """A step that ended without a task of its own: what it waited for failed, or the plan was stopped."""
    data: dict[str, Json] = {"step": step, "state": state, "reason": reason}
    return Fact("step.ended", now, data, remit.root, remit.session, remit.id, remit.holder)


def refused(remit: Remit, wish: Pass, now: int, *, rule: str, sentence: str, handoff: bool = False) -> Fact:
    data: dict[str, Json] = {"rule": rule, "sentence": sentence, "task": wish.task, "to": wish.to}
    if handoff:
        data["handoff"] = True
    return Fact("hop.refused", now, data, remit.root, remit.session, remit.id, remit.holder)


def entry_set(entry: Entry, at: Place) -> Fact:
    data: dict[str, Json] = {
        "chain": list(entry.chain),
        "created_at": entry.created_at,
        "digest": entry.digest,
        "expires_at": entry.expires_at,
        "extension": entry.extension,
        "key": entry.key,
        "namespace": entry.namespace,
        "trust": entry.trust,
        "value": entry.value,
        "version": entry.version,
    }
    return Fact("entry.set", entry.updated_at, data, at.run, at.session, at.task, entry.agent)


def entry_touched(entry: Entry, by: Writer, at: Place, now: int) -> Fact:
    data: dict[str, Json] = {"expires_at": entry.expires_at, "key": entry.key, "namespace": entry.namespace}
    return Fact("entry.touched", now, data, at.run, at.session, at.task, by.agent)


def entries_removed(keys: list[tuple[str, str]], why: str, by: Writer, at: Place, now: int) -> Fact:
    data: dict[str, Json] = {"keys": [[namespace, key] for namespace, key in keys], "why": why}
    return Fact("entries.removed", now, data, at.run, at.session, at.task, by.agent)


def message_sent(message: Message, at: Place) -> Fact:
    data: dict[str, Json] = {"id": message.id, "text": message.text, "to": message.to}
    if message.reader:
        data |= {"reader": message.reader, "about": message.about}
    return Fact("message.sent", message.sent_at, data, at.run, message.session, at.task, message.sender)


def messages_taken(ids: list[str], agent: str, at: Place, now: int) -> Fact:
    return Fact("messages.taken", now, {"ids": list(ids)}, at.run, at.session, at.task, agent)
