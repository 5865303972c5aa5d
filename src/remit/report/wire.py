"""The only conversion from remit's values to JSON: for `--json`, for servers, for pages.

Each function returns a dict of plain JSON. Times are whole microseconds since 1970, as everywhere inside. Fields have
the names of the values they come from.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import fields, is_dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeAlias, cast

from remit.core.events import answer_of
from remit.core.values import Json

if TYPE_CHECKING:
    from remit.core.access import AccessInfo
    from remit.core.breaker import Breaker
    from remit.core.card import Card
    from remit.core.entry import Entry, Message
    from remit.core.events import Event, Labels
    from remit.core.lifecycle import Outcome, Record
    from remit.core.limits import LimitUse
    from remit.core.match import Match
    from remit.core.money import Hold, Lease
    from remit.core.recovery import Resting
    from remit.core.times import Schedule
    from remit.ports import KeyInfo, RunLine, RunVitals
    from remit.report.detail import Detail, Failure
    from remit.report.edges import AskEdge
    from remit.report.spend import Spending, SpendPoint
    from remit.report.stats import AgentStats, BreakerStats, Stats, StatsPoint
    from remit.report.summary import Subtotal
    from remit.report.talk import TaskTalk
    from remit.report.tree import Node

Data: TypeAlias = dict[str, Json]


class IsWorker(Protocol):
    """A process that has announced itself; `number` is its process id on this machine, or empty. `seen_at` is when it
    sent its last heartbeat, in microseconds; 0 if that is unknown. `agents` are the agents whose queued tasks it
    runs."""

    @property
    def id(self) -> str: ...
    @property
    def number(self) -> str: ...
    @property
    def concurrency(self) -> int: ...
    @property
    def seen_at(self) -> int: ...
    @property
    def agents(self) -> tuple[str, ...]: ...


# -- tasks and runs ------------------------------------------------------------------------------------------


def task(record: Record, text: str, *, state: str, where: str) -> Data:
    """Return a task. `state` is the record's, or `lost`; `where` says which process runs it, which the record does not
    know."""
    return {
        "id": record.id,
        "state": state,
        "agent": record.holder,
        "task": text,
        "session": record.session,
        "run": record.run,
        "parent": record.parent,
        "asked_how": record.asked_how,
        "attempt": record.attempt,
        "worker": record.worker,
        "where": where,
        "asked_at": record.asked_at,
        "ready_at": record.ready_at,
        "priority": record.priority,
        "claimed_at": record.claimed_at,
        "ended_at": record.ended_at,
        "until": record.until,
    }


def labels(labels: Labels) -> Data:
    """Return the person who started a run, its tags and its metadata."""
    return {"by": labels.by, "tags": [*labels.tags], "meta": {**dict(labels.meta)}}


def task_detail(detail: Detail, *, state: str, where: str) -> Data:
    """Return a task with its history and its result."""
    return {
        **task(detail.record, detail.task, state=state, where=where),
        "asker": detail.asker,
        **labels(detail.labels),
        "attempts": detail.attempts,
        "earlier": value(detail.earlier),
        "below": value(detail.below),
        "result": detail.result,
        "error": detail.error,
        "credits": detail.credits,
        "questions": value(detail.questions),
        "models": value(detail.models),
        "tools": value(detail.tools),
    }


def failures(task: str, failures: Sequence[Failure]) -> Data:
    """Return the failed attempts of a task and of its subtasks."""
    return {"task": task, "failures": [object_of(failure) for failure in failures]}


def conversation(conversation: TaskTalk) -> Data:
    """Return the conversation of a task's models, with tool calls."""
    return object_of(conversation)


def outcome(outcome: Outcome) -> Data:
    return {**object_of(outcome), "error": None if outcome.error is None else str(outcome.error)}


def run(line: RunLine, *, state: str, vitals: RunVitals, signs: tuple[int, bool]) -> Data:
    """Return a run for a list; `signs` are its latest sign of life, and whether it has stalled."""
    return {
        "id": line.record.id,
        "state": state,
        "agent": line.record.holder,
        "task": line.task,
        "session": line.record.session,
        "tasks": line.facts.tasks,
        "states": {**vitals.states},
        "agents": [*sorted(line.facts.members)],
        "depth": vitals.depth,
        "handoffs": line.facts.handoffs,
        "tokens": line.facts.tokens,
        "credits": line.facts.credits,
        "held": vitals.held,
        "granted": vitals.granted,
        "refused": line.facts.refusals,
        "questions": vitals.questions,
        **labels(line.labels),
        "asked_at": line.record.asked_at,
        "ended_at": line.record.ended_at,
        "seen_at": signs[0],
        "stalled": signs[1],
    }


def tree(root: Node) -> Data:
    """Return a run as a tree; without recursion, because a run may be deeper than Python's stack."""
    from remit.report.summary import subtotals  # noqa: PLC0415 - nothing else here reads a tree, and it takes long

    whole = subtotals(root)
    made = {node.id: _node(node, whole[node.id]) for node in root.walk()}
    for node in root.walk():
        made[node.id]["children"] = [made[child.id] for child in node.children]
    return made[root.id]


def _node(node: Node, whole: Subtotal) -> Data:
    return {
        "id": node.id,
        "agent": node.agent,
        "first": node.first,
        "task": node.task,
        "state": node.state,
        "started_at": node.started_at,
        "ended_at": node.ended_at,
        "result": node.result,
        "error": node.error,
        "sees": [*node.sees],
        "receipt": node.receipt,
        "refusals": value(node.refusals),
        "more_refused": node.more_refused,
        "trail": value(node.trail),
        "plans": value(node.plans),
        "step": node.step,
        "tokens": node.tokens,
        "turn": node.turn,
        "asked_at": node.asked_at,
        "asked_how": node.asked_how,
        "attempts": node.attempts,
        "retries": value(node.retries),
        "credits": node.credits,
        "with_below": object_of(whole),
        "questions": value(node.questions),
        "models": value(node.models),
        "tools": value(node.tools),
        "left_over": [*node.left_over],
        "progress": node.progress,
    }


# -- journal and shared data ---------------------------------------------------------------------------------


def event(event: Event, long: str | None = None) -> Data:
    """Return an event. `answer` is the result of its operation, on the first event of the operation: a model's answer,
    a tool's result. `long` is that text if it is stored next to the event; without it, `answer` is a reference."""
    return {
        "seq": event.seq,
        "at": event.at,
        "kind": event.kind,
        "run": event.run,
        "session": event.session,
        "task": event.task,
        "agent": event.agent,
        "data": event.data,
        "op": event.op,
        "answer": answer_of(event, long),
        "hash": event.hash,
    }


def entry(entry: Entry) -> Data:
    return {
        "namespace": entry.namespace,
        "key": entry.key,
        "value": entry.value,
        "agent": entry.agent,
        "version": entry.version,
        "digest": entry.digest,
        "created_at": entry.created_at,
        "updated_at": entry.updated_at,
        "expires_at": entry.expires_at,
        "trust": entry.trust,
        "task": entry.task,
        "chain": [*entry.chain],
    }


def message(message: Message) -> Data:
    return object_of(message)


def announcement(message: Message) -> Data:
    """Return a result message that was not read: the task, the sender and the recipient."""
    return {
        "task": message.about,
        "by": message.sender,
        "to": message.to,
        "asker": message.reader,
        "text": message.text,
        "at": message.sent_at,
    }


# -- agents and processes ------------------------------------------------------------------------------------


def card(card: Card, published_at: int | None = None, workers: int | None = None) -> Data:
    """Return a card, when it was published, and how many workers have the agent, as far as they are given."""
    known = {"published_at": published_at, "workers": workers}
    return {**card.data, **{name: value for name, value in known.items() if value is not None}}


def match(match: Match, *, chosen: bool) -> Data:
    """Return an agent that was found, and whether a delegation by capability would call it."""
    return {"agent": match.card.name, "score": match.score, "why": match.why, "free": match.free, "chosen": chosen}


def breaker(agent: str, breaker: Breaker) -> Data:
    return {"agent": agent, **object_of(breaker)}


def key(key: KeyInfo) -> Data:
    return {"name": key.name, "key_id": key.key_id, "set_at": key.set_at}


def access(access: AccessInfo) -> Data:
    """Return an access key, without its text; its times are microseconds since 1970."""
    facts: Data = {name: value(getattr(access, name)) for name in access._fields if name not in ("scopes", "bounds")}
    return {**facts, "scopes": [*access.scopes], "bounds": access.bounds.data}


def schedule(schedule: Schedule) -> Data:
    """Return a schedule; its times are microseconds since 1970."""
    names = ("name", "state", "cron", "zone", "catch_up", "agent", "task", "next", "last", "last_task", "runs")
    facts: Data = {name: value(getattr(schedule, name)) for name in names}
    facts |= {"led_as": schedule.led_as, "source": schedule.source, "left": schedule.left}
    return {**facts, "keywords": schedule.keywords, "set_by": schedule.set_by, "set_at": schedule.set_at}


def resting(resting: Resting) -> Data:
    return object_of(resting)


def worker(worker: IsWorker) -> Data:
    data: Data = {"id": worker.id, "process": worker.number, "concurrency": worker.concurrency}
    return {**data, "seen_at": worker.seen_at or None, "agents": [*worker.agents]}


# -- money ---------------------------------------------------------------------------------------------------------


def lease(lease: Lease) -> Data:
    return object_of(lease)


def hold(hold: Hold) -> Data:
    """Return a call that was charged in full because its cost is unknown."""
    names = ("id", "task", "run", "session", "agent", "credits", "tokens", "why", "model", "own_key", "hour")
    return {**{name: value(getattr(hold, name)) for name in names}, "billed": value(hold.claimed)}


def limit_use(use: LimitUse) -> Data:
    """Return the use of a limit."""
    scope, name = use.metered
    told: Data = {"per": use.limit.per, "scope": scope, "name": name, "unit": use.unit, "most": use.most}
    return told | {"used": use.used, "held": use.held, "left": use.left, "room_at": use.room_at}


def edge(edge: AskEdge) -> Data:
    """Return how often an asker asked an agent, how it ended, and what it cost."""
    return object_of(edge)


def spending(spending: Spending) -> Data:
    return object_of(spending)


def spend_series(by: str, points: Iterable[SpendPoint]) -> Data:
    """Return a series of spending; each row has the names by which it is grouped."""
    left_out = {"day", "agent", "model"} - {*by.split(",")}
    rows = [object_of(point) for point in points]
    return {"by": by, "rows": [{name: one for name, one in row.items() if name not in left_out} for row in rows]}


# -- figures -------------------------------------------------------------------------------------------------


def stats(stats: Stats) -> Data:
    queue = stats.queue
    return {
        "events": stats.events,
        "runs": dict(sorted(stats.runs.items())),
        "tasks": stats.tasks,
        "handoffs": {
            "total": stats.total_handoffs,
            "mean": round(stats.mean_handoffs, 3),
            "max": stats.most_handoffs,
            "latency_mean": stats.latency.mean,
            "latency_p95": stats.latency.percentile(95),
        },
        "queue": {
            "attempts": stats.attempts,
            "retries": stats.retries,
            "dead": stats.dead,
            "mean": queue.mean,
            "p95": queue.percentile(95),
        },
        "deadlocks": stats.deadlocks,
        "tokens": stats.tokens,
        "credits": stats.credits,
        "refusals": dict(sorted(stats.refusals.items())),
        "refused_credits": stats.refused_credits,
        "agents": {name: _agent(agent) for name, agent in sorted(stats.agents.items())},
        "breakers": {name: _breaker(breaker) for name, breaker in sorted(stats.breakers.items())},
    }


def stats_point(point: StatsPoint) -> Data:
    return {"start": point.start, **stats(point.stats)}


def _breaker(breaker: BreakerStats) -> Data:
    told = object_of(breaker)
    del told["seq"]
    return told


def _agent(agent: AgentStats) -> Data:
    ended = agent.completed + agent.failed + agent.dead
    return {
        "turns": agent.turns,
        "completed": agent.completed,
        "failed": agent.failed,
        "cancelled": agent.cancelled,
        "handed": agent.handed,
        "tokens": agent.tokens,
        "credits": agent.credits,
        "success": round(agent.completed / ended, 3) if ended else None,
        "credits_mean": agent.credits // agent.turns if agent.turns else 0,
        "time_total": agent.times.total,
        "time_mean": agent.times.mean,
        "time_p50": agent.times.percentile(50),
        "time_p95": agent.times.percentile(95),
        "attempts": agent.attempts,
        "retries": agent.retries,
        "dead": agent.dead,
        "queue_mean": agent.queue.mean,
        "queue_p95": agent.queue.percentile(95),
    }


# -- named fields --------------------------------------------------------------------------------------------


def object_of(thing: object) -> Data:
    """Return a value with named fields, such as a status or a finding, as an object with the same names.

    JSON encoders write a named tuple as a list; this function does not.
    """
    items = ((name, getattr(thing, name)) for name in _names(type(thing)))
    return {name: item if type(item) in _PLAIN else value(item) for name, item in items}


_PLAIN: Final = frozenset((str, int, bool, float, type(None)))  # JSON already, and most of all values


@cache
def _names(kind: type[Any]) -> tuple[str, ...]:
    """Return the names of the fields of a data class or a named tuple."""
    return tuple(field.name for field in fields(kind)) if is_dataclass(kind) else kind._fields


def value(thing: object) -> Json:
    """Return any combination of remit's values and JSON as JSON; anything else becomes its text."""
    match thing:
        case None | bool() | int() | float() | str():
            return thing
        case Mapping():
            return {str(key): value(item) for key, item in cast("Mapping[object, object]", thing).items()}
        case AbstractSet():
            return [value(item) for item in sorted(cast("Iterable[Any]", thing), key=str)]
        case _ if is_dataclass(thing) or hasattr(thing, "_fields"):
            return object_of(thing)
        case list() | tuple():
            return [value(item) for item in cast("Iterable[object]", thing)]
        case _:
            return str(thing)
