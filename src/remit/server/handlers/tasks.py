"""Tasks over HTTP: submit, list, look, wait, cancel, retry."""

from __future__ import annotations

from contextlib import suppress
from typing import Annotated, Any, Final, Literal, Unpack, cast

from pydantic import BeforeValidator, ConfigDict, Field, WithJsonSchema

from remit.core.bounds import TOP
from remit.core.events import MOST_META, MOST_TAGS, VALUE_LIMIT, trace_given
from remit.core.times import aware
from remit.core.values import Json
from remit.engine.asking import HIGHEST, MOST_ATTEMPTS, Submitting
from remit.engine.queue.task import Status, Task
from remit.errors import BadInput, Forbidden, NotFound
from remit.report import wire
from remit.runtime.filters import TaskFilter
from remit.server.calls import BodyModel, HttpAnswer, HttpCall, NoBody, NoQuery, QueryModel
from remit.server.fields import (
    LINE,
    NO_NUL,
    NUMBER,
    SAYS_SOMETHING,
    AgentName,
    Amount,
    AnyJson,
    BoundsBody,
    Cursor,
    Limit,
    Line,
    Moment,
    Names,
    QueryMoment,
    Scopes,
    Seconds,
    Session,
    Text,
    Why,
    scopes_of,
    whole,
)

State = Literal["open", "pending", "running", "waiting", "cancelling", "completed", "failed", "cancelled", "dead"]
Tier = Literal["simple", "medium", "complex"]
Trusted = Literal["trusted", "untrusted"]
_META: Final[dict[str, Any]] = {
    "type": "object",
    "maxProperties": MOST_META,
    "propertyNames": LINE,
    "additionalProperties": {
        "anyOf": [{"type": "string", "maxLength": VALUE_LIMIT, "pattern": NO_NUL}, NUMBER, {"type": "boolean"}]
    },
}
MetaText = Annotated[str, Field(max_length=VALUE_LIMIT)]
Meta = Annotated[dict[Line, MetaText | int | float | bool], Field(max_length=MOST_META), WithJsonSchema(_META)]
LONGEST_WAIT = 60  # seconds


# The schema of a submission that does not set both: `after` is a time to wait, `at` a moment.
NOT_BOTH: Final[dict[str, Any]] = {
    "anyOf": [{"properties": {"after": {"type": "null"}}}, {"properties": {"at": {"type": "null"}}}]
}


class LabelsBody(BodyModel):
    """The fields that every submission has: its session, limits, labels, and when and how often it is tried."""

    model_config = ConfigDict(json_schema_extra={"allOf": [NOT_BOTH]})

    session: Session | None = None
    tier: Tier | None = None
    handoffs: bool | None = None
    sees: Scopes | None = None
    writes: Scopes | None = None
    tools: Names | None = None
    within: BoundsBody | None = None
    timeout: Seconds | None = None
    trust: Trusted | None = None
    credits: Amount | None = None
    attempts: Annotated[int, Field(ge=1, le=MOST_ATTEMPTS), BeforeValidator(whole)] | None = None
    after: Seconds | None = None
    at: Moment | None = None
    priority: Annotated[int, Field(ge=-HIGHEST, le=HIGHEST), BeforeValidator(whole)] | None = None
    tags: Annotated[list[Line], Field(max_length=MOST_TAGS)] | None = None
    meta: Meta | None = None

    def keywords(self, *left_out: str) -> dict[str, Any]:
        """Return the fields that the request sets, as keywords of `submit`, without those in `left_out`."""
        given: dict[str, Any] = {
            name: value for name, value in vars(self).items() if value is not None and name not in left_out
        }
        for name in ("sees", "writes"):
            if name in given:
                given[name] = scopes_of(given[name])
        if self.within is not None:
            given["within"] = self.within.bounds
        if self.at is not None:
            given["at"] = aware(self.at)
        return given


# To remember earlier runs, a task needs the session that they belong to.
_OF_A_SESSION: Final[dict[str, Any]] = {
    "anyOf": [
        {"properties": {"remembers": {"enum": [False, None]}}},
        {"required": ["session"], "properties": {"session": {"type": "string"}}},
    ]
}


class SubmitBody(LabelsBody):
    """A task for an agent: a text, data, or both."""

    model_config = ConfigDict(json_schema_extra={**SAYS_SOMETHING, "allOf": [NOT_BOTH, _OF_A_SESSION]})

    agent: AgentName
    task: Text = ""
    data: AnyJson = None
    remembers: bool | None = None


class CancelBody(BodyModel):
    """Why a task is cancelled; the journal keeps it."""

    why: Why = ""


class RetryBody(BodyModel):
    """How a task is retried: a plan from one of its steps, or a conversation from its beginning."""

    from_step: Annotated[str, Field(min_length=1, json_schema_extra={"pattern": NO_NUL})] | None = None
    restart: bool = False


class RunsQuery(QueryModel):
    """Which runs to list, by their first task: all conditions must hold."""

    state: State | None = None
    agent: AgentName | None = None
    session: Session | None = None
    asker: AgentName | None = None
    by: Line | None = None
    tag: Line | None = None
    since: QueryMoment | None = None
    until: QueryMoment | None = None
    text: Annotated[str, Field(min_length=1, max_length=1_000, json_schema_extra={"pattern": NO_NUL})] | None = None
    limit: Limit = 100
    cursor: Cursor | None = None


class TasksQuery(RunsQuery):
    """Which tasks to list: all conditions must hold."""

    parent: Line | None = None
    run: Line | None = None


def filters_of(query: QueryModel) -> dict[str, Any]:
    """Return the fields of a query as keywords for the methods of a workspace: `cursor` is passed as `before`, and
    `since` and `until` as datetimes. A cursor is the `began` of the last row of the page before."""
    given: dict[str, Any] = {name: value for name, value in query if value is not None}
    if "cursor" in given:
        given["before"] = given.pop("cursor")
    return given | {name: aware(given[name]) for name in ("since", "until") if name in given}


def _seconds(value: object) -> object:
    if isinstance(value, str) and not (value.isascii() and value.replace(".", "", 1).isdigit()):
        raise ValueError("must be a number of seconds")
    return value


class WaitQuery(QueryModel):
    """How many seconds to wait."""

    timeout: Annotated[float, Field(ge=0, le=LONGEST_WAIT), BeforeValidator(_seconds)] = 25.0


async def submit(call: HttpCall[NoQuery, SubmitBody]) -> HttpAnswer:
    """Queue a task. The same Idempotency-Key with the same content is the same task, and gets the same answer."""
    body = call.body
    task = await _submitted(call, body.agent, body.task, **queueing(call, body.keywords("agent", "task")))
    return accepted(task)


async def _submitted(call: HttpCall[NoQuery, SubmitBody], agent: str, text: str, **how: Unpack[Submitting]) -> Task:
    who = call.caller
    return await call.workspace.submit(agent, text, asker=who.agent, ceiling=who.bounds, **how)


def queueing(call: HttpCall[Any, Any], how: dict[str, Any]) -> Submitting:
    """Return the keywords `how` of a submission, with `by`, `key` and `trace` added from the request. A request without
    an Idempotency-Key is always a new task. The run belongs to the trace of the request's header traceparent."""
    how["by"] = call.caller.by
    how["key"] = call.op or call.fresh
    with suppress(BadInput):  # as W3C says, a header that is wrong is as good as none
        how["trace"] = trace_given(call.headers.get("traceparent"))
    return cast("Submitting", how)


def accepted(task: Task) -> HttpAnswer:
    """Return the answer for a new task. A repeated request gets the same body, and the header Idempotency-Replayed."""
    headers = {"Location": f"/v1/tasks/{task.id}"}
    if task.existing:
        headers["Idempotency-Replayed"] = "true"
    return HttpAnswer({"id": task.id}, 202, headers)


async def listing(call: HttpCall[TasksQuery, NoBody]) -> HttpAnswer:
    """List tasks, newest first."""
    given = filters_of(call.query)
    if call.caller.agent:
        given["by"] = call.caller.by  # an agent sees the runs that it has started
    found = await call.workspace.tasks.list(**cast("TaskFilter", given))
    following = str(found[-1].began) if len(found) == call.query.limit else None
    return HttpAnswer({"tasks": [status_data(one) for one in found], "next": following})


async def look(call: HttpCall[NoQuery, NoBody]) -> HttpAnswer:
    """Show a task: its state, and its result or error if it has ended."""
    status = await call.workspace.tasks.get(call.id).status()
    _must_be_own(call, status)
    tag = f'W/"{status.state}-{status.attempt}-{status.ended_at or 0}"'
    return call.unless_same(tag, status_data(status))


async def wait(call: HttpCall[WaitQuery, NoBody]) -> HttpAnswer:
    """Wait until a task has ended, for up to a minute. A task that failed is no error: its outcome says so."""
    await _check_visible(call)
    try:
        outcome = await call.workspace.tasks.get(call.id).wait(call.query.timeout)
    except TimeoutError:
        return HttpAnswer({"ended": False, "outcome": None}, 202, {"Retry-After": "1"})
    return HttpAnswer({"ended": True, "outcome": wire.outcome(outcome)})


async def cancel(call: HttpCall[NoQuery, CancelBody]) -> HttpAnswer:
    """Cancel a task or a run, with all its subtasks."""
    await _check_visible(call)
    why = call.body.why or "cancelled by its owner"
    number = await call.workspace.tasks.cancel(call.id, why, op=call.op, by=call.caller.by)
    return HttpAnswer({"cancelled": number}, 202)


async def retry(call: HttpCall[NoQuery, RetryBody]) -> HttpAnswer:
    """Retry a task that did not complete, as a new task; its finished work is not repeated."""
    await must_have_started(call)
    tasks, body = call.workspace.tasks, call.body
    task = await tasks.retry(call.id, from_step=body.from_step, restart=body.restart, op=call.op, by=call.caller.by)
    return accepted(task)


async def _check_visible(call: HttpCall[Any, Any]) -> None:
    """Raise `NotFound` if the caller acts as an agent that has not started the run of this task."""
    if call.caller.agent:
        _must_be_own(call, await call.workspace.tasks.get(call.id).status())


async def must_have_started(call: HttpCall[Any, Any]) -> None:
    """Raise `NotFound` if the caller may not see the run, and `Forbidden` if the caller has bounds and did not start
    the run: a retry or a fork has the bounds of its run, which may be wider than the caller's."""
    await _check_visible(call)
    if call.caller.bounds is not TOP and (await call.workspace.tasks.get(call.id).status()).by != call.caller.by:
        raise Forbidden("this key has bounds, so it can continue only what it has started itself")


def _must_be_own(call: HttpCall[Any, Any], status: Status) -> None:
    if call.caller.agent and status.by != call.caller.by:
        raise NotFound("there is no such task")


def status_data(status: Status) -> dict[str, Json]:
    """Return a task's status as JSON."""
    return wire.object_of(status)
