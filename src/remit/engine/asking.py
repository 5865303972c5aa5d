"""Keyword arguments of the verbs: they become a `Pass`, a `Submission` or `PlanOptions`, all checked.

An unknown keyword is an error that lists the known ones.
"""

import inspect
from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final, TypeVar, cast

import anyio

from remit.core.allow import ANY, NamesGiven
from remit.core.bounds import TOP, Bounds, Classify, tier
from remit.core.checks import between, callable_, of_type, refuse_strange, yes_or_no
from remit.core.events import NO_LABELS, Labels, MetaValue
from remit.core.events import labels_given as labels_of
from remit.core.plan import STEP_LIMIT, ApproveSteps, Lead, Plan, PlanOptions
from remit.core.prices import CreditsGiven
from remit.core.records import NamedTuple, TypedDict
from remit.core.remit import STAND_IN, Pass
from remit.core.scope import SeesGiven
from remit.core.session import RemembersGiven, remembers
from remit.core.times import Delay, SpanGiven, delay, span
from remit.core.trust import Trust
from remit.core.values import SESSION_LIMIT, digest, encode, line, plain, shown, with_data
from remit.errors import BadInput

if TYPE_CHECKING:
    from remit.engine.answering import OnQuestion

How = TypeVar("How", bound=Mapping[str, object])

_LABELS: Final = frozenset(Labels._fields)
MOST_ATTEMPTS: Final = 1_000
HIGHEST: Final = 100  # priority
KEY_LIMIT: Final = 200
NO_GOAL: Final = "carry out a plan"  # the task text of a plan without a goal


class Along(TypedDict, total=False):
    """The keywords that any delegation, submission or run accepts: entries that the agent may see and write and tools
    beyond its card, narrower bounds, the timeout, the trust label of the text, and reserved money."""

    sees: SeesGiven
    writes: SeesGiven
    tools: NamesGiven
    within: Bounds
    timeout: SpanGiven
    trust: Trust
    credits: CreditsGiven


class WithData(TypedDict, total=False):
    """The value next to a task's text: anything that has a form in JSON."""

    data: object


class AlongHandoff(TypedDict, total=False):
    """What may go along with a handoff: rights of its sender, and narrower bounds."""

    sees: SeesGiven
    writes: SeesGiven
    tools: NamesGiven
    within: Bounds


class Delegating(Along, WithData, total=False):
    """The keywords of a delegation: those of `Along`, its data, and the seconds to wait for a busy agent."""

    busy_timeout: SpanGiven


class Queueing(Along, WithData, total=False):
    """The keywords of a submitted task: its idempotency key, the seconds in which an equal request is the same task,
    the number of attempts, when it may start (so many seconds later, or at a moment), its priority, and whether the
    asker gets a result message, as for a spawned task."""

    key: str
    same_within: SpanGiven
    attempts: int
    after: SpanGiven
    at: datetime
    priority: int
    announce: bool


class Starting(Along, total=False):
    """The keywords of a run: its session, tier, whether handoffs are allowed, the person who starts it, its tags and
    metadata, and the W3C traceparent of the request that it belongs to."""

    session: str
    tier: str
    handoffs: bool
    by: str
    tags: Iterable[str]
    meta: Mapping[str, MetaValue]
    trace: str


class Running(Starting, WithData, total=False):
    """The keywords of a run that the caller waits for: those of `Starting`, its data and the seconds to wait for a busy
    agent. `remembers` says whether the run gets the session's earlier conversation. `on_question` answers the questions
    of its agents to people."""

    busy_timeout: SpanGiven
    remembers: RemembersGiven
    on_question: "OnQuestion | None"


class StartingQueued(Starting, total=False):
    """The keywords of a queued run: its idempotency key, the seconds in which an equal request is the same task, the
    number of attempts, when it may start (so many seconds later, or at a moment), and its priority."""

    key: str
    same_within: SpanGiven
    attempts: int
    after: SpanGiven
    at: datetime
    priority: int


class Submitting(StartingQueued, WithData, total=False):
    """The keywords of a queued run: those of `StartingQueued`, its data, and whether the run gets the session's earlier
    conversation."""

    remembers: RemembersGiven


class Scheduling(Along, WithData, total=False):
    """The keywords of a schedule: those of every run that it starts."""

    session: str
    tier: str
    handoffs: bool
    attempts: int
    priority: int
    remembers: RemembersGiven
    tags: Iterable[str]
    meta: Mapping[str, MetaValue]


class LeadingKept(TypedDict, total=False):
    """The options of a plan that can be stored: the number of concurrent steps, and whether members see goal and
    roster."""

    concurrency: int
    reveal: bool


class SchedulingPlan(Scheduling, LeadingKept, total=False):
    """The keywords of a schedule of a plan or a team."""


class Planning(LeadingKept, total=False):
    """All options of a plan: those that can be stored, `approve_steps` and `abort`. `approve_steps` is True if a person
    approves each step, or a function that returns True, False or "ask". `abort` is an event that stops the plan when it
    is set."""

    approve_steps: ApproveSteps | bool | None
    abort: anyio.Event | None


class StartingPlan(Starting, Planning, total=False):
    """The keywords of a run that is a plan or a team."""

    on_question: "OnQuestion | None"


class SubmittingPlan(StartingQueued, LeadingKept, total=False):
    """The keyword arguments for submitting a plan or a team to the queue: those of a queued run, and the plan options
    that can be stored."""


class DelegatingTeam(Along, LeadingKept, total=False):
    """The keywords of a goal that an agent gives to a team."""

    busy_timeout: SpanGiven


class Submission(NamedTuple):
    """The options of a submitted task."""

    wish: Pass
    timeout: int
    attempts: int = 0  # 0: the agent's policy
    key: str = ""
    same_within: int = 0  # how long an equal request without a key is the same task
    asked_how: str = "submit"
    labels: Labels = NO_LABELS
    lead: Lead | None = None  # the plan or team to lead in its holder's place
    written: str = ""  # digest of the plan or team as the caller wrote it
    delay: Delay | None = None  # None: it may start at once
    priority: int = 0


class Asked(NamedTuple):
    """A person's request. `on_question` answers what its agents ask people."""

    wish: Pass
    session: str
    labels: Labels
    on_question: "OnQuestion | None" = None


def checked(verb: str, how: Mapping[str, object], takes: type) -> dict[str, Any]:
    """Return the keywords as a dict. Raise `BadInput` for one that the verb does not take."""
    if not how:
        return {}
    refuse_strange(verb, how, takes.__annotations__.keys())
    return dict(how)


def nothing_more(verb: str, takes: str, strange: tuple[object, ...]) -> None:
    """Raise `BadInput` for extra positional arguments."""
    if strange:
        raise BadInput(f"{verb} takes no more than {takes} without a name, and was given {shown(strange[0])} too")


def passed(verb: str, to: str, task: str, how: Delegating) -> Pass:
    """Return the pass of a delegation."""
    return Pass(to, task, **checked(verb, how, Delegating)) if how else Pass(to, task)


def checked_handoff(along: AlongHandoff) -> AlongHandoff:
    """Return the keywords of a handoff, checked."""
    checked("hand_off", along, AlongHandoff)
    return along


def submission(to: str, task: str, how: Queueing, asked_how: str = "submit") -> Submission:
    """Return the submission of an agent."""
    queue, rest = _queue(checked(asked_how, how, Queueing))
    if yes_or_no(rest.pop("announce", False), "announce") and asked_how == "submit":
        asked_how = "async"
    return Submission(Pass(to, task, **rest), asked_how=asked_how, **queue)


async def classified(task: str, how: How, classify: Classify | None) -> How:
    """Return the keywords of a run with the tier that the classifier chooses, if the caller gave none."""
    if classify is None or how.get("tier", "") != "":
        return how
    chosen = classify(with_data(task, how.get("data"))[0])
    return cast("How", {**how, "tier": await chosen if inspect.isawaitable(chosen) else chosen})


def run_request(verb: str, agent: str, task: str, how: Running) -> Asked:
    """Return a person's request for a run."""
    return _request(agent, task, checked(verb, how, Running))


def _request(agent: str, task: str, how: dict[str, Any]) -> Asked:
    """Return a person's request for a run. By default the first agent may see, write and pass on every entry; `sees`
    and `writes` narrow this."""
    if not how:
        return Asked(Pass(agent, task, sees=ANY, writes=ANY), "", NO_LABELS)
    rest: dict[str, Any] = {"sees": ANY, "writes": ANY, **how}
    session, on_question = rest.pop("session", ""), rest.pop("on_question", None)
    if on_question is not None:
        callable_(on_question, "on_question is a function that is given each question of the run")
    if session != "":
        line(session, "a session", SESSION_LIMIT)
    labels = NO_LABELS
    if not _LABELS.isdisjoint(rest):
        who, trace = rest.pop("by", ""), rest.pop("trace", "")
        labels = labels_of(who, rest.pop("tags", ()), rest.pop("meta", ()), trace)
    if session == "" and remembers(rest.get("remembers")) in ("session", "whole"):
        raise BadInput("remembers= needs session=: name the session whose earlier runs the prompt is to contain")
    name, handoffs = rest.pop("tier", ""), rest.pop("handoffs", True)
    within = of_type(rest.pop("within", TOP), Bounds, "within takes Bounds(...)")
    if name != "":
        within &= tier(name)
    if not yes_or_no(handoffs, "handoffs"):
        within &= Bounds(handoffs=0)
    return Asked(Pass(agent, task, within=within, **rest), session, labels, on_question)


def submitted(agent: str, task: str, how: Submitting) -> tuple[Submission, str]:
    """Return a person's submission and its session."""
    if not how:
        return Submission(Pass(agent, task, sees=ANY, writes=ANY), 0), ""
    return _submitted(agent, task, checked("submit", how, Submitting))


def _submitted(agent: str, task: str, how: dict[str, Any]) -> tuple[Submission, str]:
    queue, rest = _queue(how)
    request = _request(agent, task, rest)
    return Submission(request.wish, labels=request.labels, **queue), request.session


def submitted_plan(plan: Plan, how: SubmittingPlan) -> tuple[Submission, str]:
    """Return a person's submission of a plan, and its session."""
    of_type(plan, Plan, "submit_plan takes a Plan(...)")
    lead, rest = _lead("submit_plan", how, SubmittingPlan, plan)
    submission, session = _submitted(STAND_IN, plan.goal or NO_GOAL, rest)
    return submission._replace(lead=lead, written=digest(encode(lead.data))), session


def submitted_team(
    goal: str, coordinator: str, how: SubmittingPlan, plan: Plan | None = None
) -> tuple[Submission, str]:
    """Return a person's submission of a goal for a team, and its session."""
    lead, rest = _lead("submit_team", how, SubmittingPlan, team_plan("submit_team", plan, goal))
    lead = lead._replace(coordinated=plan is not None)
    submission, session = _submitted(coordinator, goal, rest)
    return submission._replace(lead=lead, written=digest(encode(lead.data))), session


def scheduled(
    agent: str, task: str, how: Mapping[str, Any], plan: Plan | None = None, *, leads: bool = False
) -> tuple[Submission, dict[str, Any]]:
    """Return the submission of a schedule, and the keywords that are stored with it, without the options of a plan. If
    a plan is given without an agent, the plan is the task. With `leads`, the agent coordinates a team."""
    if not (leads or plan is not None):
        rest = checked("schedules.add", how, Scheduling)
        return submitted(agent, task, cast("Submitting", {**rest}))[0], rest
    verb = "schedules.add_team" if leads else "schedules.add_plan"
    lead, rest = _lead(verb, how, SchedulingPlan, plan)
    if rest.get("remembers") is not None:
        raise BadInput(f"{verb} takes no remembers: it is for the run of one agent")
    submission, _ = _submitted(agent, task, {**rest})
    return submission._replace(lead=lead._replace(coordinated=leads and plan is not None)), rest


def teamed(goal: str, coordinator: str, how: DelegatingTeam, plan: Plan | None = None) -> tuple[Pass, Lead]:
    """Return the pass with which an agent delegates a goal to a team, and the `Lead` of that team."""
    lead, rest = _lead("run_team", how, DelegatingTeam, team_plan("run_team", plan, goal))
    return Pass(coordinator, goal, **rest), lead._replace(coordinated=plan is not None)


def team_plan(verb: str, plan: Plan | None, goal: str) -> Plan | None:
    """Return the plan that a team is given, with the team's goal, or None."""
    if plan is None:
        return None
    return replace(of_type(plan, Plan, f"{verb} takes plan=Plan(...)"), goal=goal)


def _lead(verb: str, how: Mapping[str, Any], takes: type, plan: Plan | None = None) -> tuple[Lead, dict[str, Any]]:
    """Return the data of the plan or team, which is stored with the task so that any process can run it, and the other
    keywords."""
    if lost := [name for name in ("approve_steps", "abort") if how.get(name) is not None]:
        raise BadInput(
            f"{verb} takes no {lost[0]}: it would be lost with this process, and the task goes on without it; "
            "cancel the task to stop it, or use run_plan to be asked before each step"
        )
    rest = checked(verb, how, takes)
    options = _options({name: rest.pop(name) for name in LeadingKept.__annotations__ if name in rest})
    return Lead(plan, options.concurrency, options.reveal), rest


def plan_options(verb: str, how: Mapping[str, Any]) -> PlanOptions:
    """Return the options of a plan that an agent runs."""
    return _options(checked(verb, how, Planning))


def planned(verb: str, agent: str, task: str, how: StartingPlan) -> tuple[Asked, PlanOptions]:
    """Return a person's request for a plan or a team, and the options of the plan."""
    rest = checked(verb, how, StartingPlan)
    options = {name: rest.pop(name) for name in Planning.__annotations__ if name in rest}
    return _request(agent, task, rest), _options(options)


def _options(given: dict[str, Any]) -> PlanOptions:
    options = PlanOptions(**given)
    between(options.concurrency, "concurrency", 1, STEP_LIMIT)
    yes_or_no(options.reveal, "reveal")
    if options.approve_steps is not None and not isinstance(options.approve_steps, bool):
        callable_(options.approve_steps, "approve_steps is True, or a function that is asked before each step")
    if options.abort is not None and not all(hasattr(options.abort, name) for name in ("is_set", "wait")):
        raise BadInput(f"abort is an anyio.Event() that stops the plan when it is set, not {shown(options.abort)}")
    return options


def _queue(how: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the checked keywords of the queue, and the others."""
    queue: dict[str, Any] = {
        "timeout": span(timeout, "timeout") if (timeout := how.pop("timeout", None)) is not None else 0,
        "attempts": between(how.pop("attempts"), "attempts", 1, MOST_ATTEMPTS) if "attempts" in how else 0,
        "key": how.pop("key", ""),
        "same_within": span(how.pop("same_within"), "same_within") if "same_within" in how else 0,
    }
    if queue["key"] != "":
        plain(queue["key"], "a key", KEY_LIMIT)
    if "priority" in how:
        queue["priority"] = between(how.pop("priority"), "priority", -HIGHEST, HIGHEST)
    if "after" in how or "at" in how:
        queue["delay"] = delay(how.pop("after", None), how.pop("at", None))
    return queue, how
