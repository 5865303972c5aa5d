"""Runs over HTTP: lists, trees, pictures, receipts, forks; and runs that are a plan or a team."""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal, cast

from pydantic import BeforeValidator, ConfigDict, Field
from starlette.responses import Response

from remit.core.plan import STEP_LIMIT, Plan, Step
from remit.core.values import TASK_LIMIT, Json
from remit.engine.asking import SubmittingPlan
from remit.errors import NotFound
from remit.ports import Span, View
from remit.report import flow as flows
from remit.report import wire
from remit.report.tree import Node, tree
from remit.runtime.filters import RunFilter
from remit.server.calls import BodyModel, HttpAnswer, HttpCall, NoBody, NoQuery, QueryModel
from remit.server.fields import (
    NO_NUL,
    AgentName,
    AnyJson,
    Line,
    OneOrMore,
    Text,
    whole,
)
from remit.server.handlers.tasks import LabelsBody, RunsQuery, accepted, filters_of, must_have_started, queueing

Title = Annotated[str, Field(min_length=1, max_length=200, json_schema_extra={"pattern": NO_NUL})]
_PICTURE: Final = "default-src 'none'; style-src 'unsafe-inline'; sandbox"
_MOST_DAYS: Final = 36_500
_MEDIA: Final = {"text": "text/plain", "mermaid": "text/plain", "svg": "image/svg+xml"}


class FlowQuery(QueryModel):
    """The form of a picture."""

    format: Literal["text", "mermaid", "svg"] = "svg"


class PruneBody(BodyModel):
    """How long ago a run must have ended to be deleted, in days."""

    days: Annotated[float, Field(gt=0, le=_MOST_DAYS)]


class PruneQuery(QueryModel):
    """How long ago a run must have ended to be counted, in days."""

    days: Annotated[float, Field(gt=0, le=_MOST_DAYS)]


class ForkBody(BodyModel):
    """Where a run is forked, and what is different in the fork. `at` is the number of the last event that the fork
    keeps; without it, the fork keeps all. `task` and `data` replace the text and data of the task, `answer` the result
    that event `at` recorded."""

    at: OneOrMore | None = None
    task: Annotated[str, Field(min_length=1, max_length=TASK_LIMIT, json_schema_extra={"pattern": NO_NUL})] | None = (
        None
    )
    data: AnyJson = None
    answer: AnyJson = None


class StepBody(BodyModel):
    """A step of a plan, for an agent or for a capability."""

    model_config = ConfigDict(
        json_schema_extra={
            "anyOf": [
                {"required": ["agent"], "properties": {"agent": {"type": "string"}}},
                {"required": ["capability"], "properties": {"capability": {"minLength": 1}}},
            ]
        }
    )

    id: Line
    title: Title
    description: Text = ""
    agent: AgentName | None = None
    capability: Annotated[str, Field(max_length=200, json_schema_extra={"pattern": NO_NUL})] = ""
    after: Annotated[tuple[Line, ...], Field(max_length=STEP_LIMIT, strict=False)] = ()
    payload: Literal["text", "structured"] = "text"
    output: dict[str, AnyJson] | None = Field(default=None, alias="schema")
    context: Literal["direct", "transitive"] = "direct"
    memory_scope: Literal["own", "all"] | list[Line] = "own"
    retries: Annotated[int, Field(ge=0, le=10), BeforeValidator(whole)] = 0
    data: AnyJson = None

    @property
    def step(self) -> Step:
        given: dict[str, Any] = {name: value for name, value in self if name not in ("output", "agent")}
        return Step(**given, agent=self.agent or "", schema=self.output)


Steps = Annotated[list[StepBody], Field(min_length=1, max_length=STEP_LIMIT)]


class LeadBody(LabelsBody):
    """The fields that a plan and a team have in common."""

    concurrency: Annotated[int, Field(ge=1, le=STEP_LIMIT), BeforeValidator(whole)] | None = None
    reveal: bool | None = None


class PlanBody(LeadBody):
    """A plan: steps, each for an agent or a capability, with their dependencies."""

    steps: Steps
    goal: Text = ""


class TeamBody(LeadBody):
    """A goal for a coordinator. If there are no steps, the coordinator writes the plan."""

    goal: Annotated[str, Field(min_length=1, max_length=TASK_LIMIT, json_schema_extra={"pattern": NO_NUL})]
    coordinator: AgentName
    steps: Steps | None = None


async def listing(call: HttpCall[RunsQuery, NoBody]) -> HttpAnswer:
    """List runs, newest first."""
    given = filters_of(call.query)
    limit = given.pop("limit")
    found, crew, vitals = await call.workspace.looks.runs(limit, **cast("RunFilter", given))
    following = str(found[-1].record.began) if len(found) == limit else None
    signs = {one.record.id: crew.signs(one.record, vitals[one.record.id]) for one in found}
    runs: list[Json] = [
        wire.run(one, state=one.record.state, vitals=vitals[one.record.id], signs=signs[one.record.id]) for one in found
    ]
    return HttpAnswer({"runs": runs, "next": following, "now": crew.at})


async def look(call: HttpCall[NoQuery, NoBody]) -> HttpAnswer:
    """Show a run as a tree of its tasks."""
    run = call.id
    data = await call.workspace.journal.read(lambda view: wire.tree(_root(view, run)), long=True)
    return HttpAnswer(data)


async def picture(call: HttpCall[FlowQuery, NoBody]) -> Response:
    """Draw a run. The picture cannot run scripts or load anything."""
    run, form, now = call.id, call.query.format, call.now
    draw = {"text": flows.text, "mermaid": flows.mermaid, "svg": flows.svg}[form]
    drawn = await call.workspace.journal.read(lambda view: draw(_root(view, run), now), long=True)
    return Response(drawn, 200, {"Content-Security-Policy": _PICTURE}, _MEDIA[form])


async def receipts(call: HttpCall[NoQuery, NoBody]) -> HttpAnswer:
    """Show what each turn of a run saw, and what was withheld from it."""
    run = call.id

    def read(view: View) -> list[Json]:
        nodes = _root(view, run).walk()
        return [{"task": node.id, "agent": node.agent, "turn": node.turn, "receipt": node.receipt} for node in nodes]

    return HttpAnswer({"receipts": await call.workspace.journal.read(read, long=True)})


def _root(view: View, run: str) -> Node:
    """Return a run as a tree. Raise `NotFound` if there is none of this id."""
    events = view.events(Span(run=run)) if view.record(run) is not None else []
    found = tree(events) if events else None
    if found is None:
        raise NotFound("there is no such run")
    return found


async def fork(call: HttpCall[NoQuery, ForkBody]) -> HttpAnswer:
    """Start a new run that continues another one from one of its events."""
    await must_have_started(call)
    body = call.body
    given = {name: getattr(body, name) for name in ("data", "answer") if name in body.model_fields_set}
    act = {"op": call.op, "by": call.caller.by}
    return accepted(await call.workspace.fork(call.id, body.at, task=body.task, **given, **act))


async def submit_plan(call: HttpCall[NoQuery, PlanBody]) -> HttpAnswer:
    """Queue a plan."""
    body = call.body
    how = cast("SubmittingPlan", queueing(call, body.keywords("steps", "goal")))
    return accepted(await call.workspace.submit_plan(plan_of(body.steps, body.goal), ceiling=call.caller.bounds, **how))


async def submit_team(call: HttpCall[NoQuery, TeamBody]) -> HttpAnswer:
    """Queue a goal for a team."""
    body = call.body
    how = cast("SubmittingPlan", queueing(call, body.keywords("steps", "goal", "coordinator")))
    given: dict[str, Any] = {"plan": None if body.steps is None else plan_of(body.steps), "ceiling": call.caller.bounds}
    return accepted(await call.workspace.submit_team(body.goal, body.coordinator, **given, **how))


def plan_of(steps: list[StepBody], goal: str = "") -> Plan:
    """Return the plan of a body."""
    return Plan([one.step for one in steps], goal)


async def prunable(call: HttpCall[PruneQuery, NoBody]) -> HttpAnswer:
    """Count the runs that a `POST` with the same number of days would delete."""
    return HttpAnswer({"prunable": await call.workspace.looks.prunable(call.query.days)})


async def prune(call: HttpCall[NoQuery, PruneBody]) -> HttpAnswer:
    """Delete the runs that ended more than this number of days ago, and the events that nothing needs any more."""
    number = await call.workspace.prune(call.body.days, op=call.op, by=call.caller.by)
    return HttpAnswer({"pruned": number})
