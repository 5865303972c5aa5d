"""Leads: the plan or the team that a task carries out, stored as JSON with the task."""

from dataclasses import fields
from typing import Any, Final, NamedTuple, NotRequired, TypedDict, cast

from remit.core.plan import AT_A_TIME, MemoryScope, Payload, Plan, Reach, Step, read_step
from remit.core.text import shown
from remit.core.values import Json, checked
from remit.errors import BadInput


class StepWhole(TypedDict):
    """A step as JSON, with every field that was set."""

    id: str
    title: str
    description: NotRequired[str]
    agent: NotRequired[str]
    capability: NotRequired[str]
    after: NotRequired[list[str]]
    payload: NotRequired[Payload]
    schema: NotRequired[dict[str, Any]]
    context: NotRequired[Reach]
    memory_scope: NotRequired[MemoryScope | list[str]]
    retries: NotRequired[int]


class PlanWhole(TypedDict):
    """A plan as JSON, with every field that was set."""

    steps: list[StepWhole]
    goal: NotRequired[str]


def whole(plan: Plan) -> dict[str, Json]:
    """Return a plan as JSON, with every field that is not at its default."""
    data: dict[str, Json] = {"steps": [_whole_step(step) for step in plan.steps]}
    if plan.goal:
        data["goal"] = plan.goal
    return cast("dict[str, Json]", checked(data, "a plan that is kept"))


def _whole_step(step: Step) -> Json:
    said = {field.name: getattr(step, field.name) for field in fields(Step)}
    data = {name: value for name, value in said.items() if value != _UNSAID.get(name)}
    if step.schema is not None:
        data["schema"] = checked(dict(step.schema), f"the schema of step {shown(step.id)}")
    return data


_UNSAID: Final = {field.name: field.default for field in fields(Step) if field.name not in ("id", "title")}


def restored(data: PlanWhole) -> Plan:
    """Return the plan that `whole` wrote."""
    return Plan(tuple(Step(**cast("dict[str, Any]", step)) for step in data["steps"]), data.get("goal", ""))


def written(data: Json) -> Plan:
    """Return a plan that a caller wrote as JSON: an object with `steps`, each with the fields of a `Step` that it
    needs, and an optional `goal`."""
    data = checked(data, "a plan")
    if not isinstance(data, dict) or not isinstance(data.get("steps"), list):
        raise BadInput('a plan is a JSON object with a list "steps"')
    if strange := sorted(data.keys() - PlanWhole.__annotations__.keys()):
        raise BadInput(f"a plan has steps and a goal, and no {shown(strange[0])}")
    steps = enumerate(cast("list[Json]", data["steps"]), 1)
    return Plan(tuple(read_step(step, number, _PARTS) for number, step in steps), cast("str", data.get("goal", "")))


_PARTS: Final = tuple(field.name for field in fields(Step))


class LeadData(TypedDict):
    """A plan or team that the engine leads, as JSON. A team has no plan until its coordinator has written one, unless
    `coordinated` says that it was given one."""

    concurrency: int
    reveal: bool
    plan: NotRequired[PlanWhole]
    coordinated: NotRequired[bool]


class Lead(NamedTuple):
    """The work of the engine in the place of a task's holder: carry out this plan, or lead a team. `concurrency` is the
    number of steps that run at once. With `reveal`, members are given the goal and the roster. `coordinated` says that
    a team's coordinator combines the results of the plan."""

    plan: Plan | None = None
    concurrency: int = AT_A_TIME
    reveal: bool = False
    coordinated: bool = False

    @property
    def led_as(self) -> str:
        return "team" if self.plan is None or self.coordinated else "plan"

    @property
    def data(self) -> dict[str, Json]:
        data: dict[str, Json] = {"concurrency": self.concurrency, "reveal": self.reveal}
        if self.plan is not None:
            data["plan"] = whole(self.plan)
        if self.coordinated:
            data["coordinated"] = True
        return data


def lead_restored(data: LeadData) -> Lead:
    """Return the lead that `Lead.data` wrote."""
    plan = restored(data["plan"]) if "plan" in data else None
    return Lead(plan, data["concurrency"], data["reveal"], data.get("coordinated", False))
