"""What is asked: keywords as people write them become a `Pass`, a `Submission` or `PlanOptions`, all checked.

A keyword that a verb does not take is an error that names those it takes.
"""

import inspect
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final, NamedTuple, TypedDict, TypeVar, cast

import anyio

from remit.core.allow import ANY, NamesGiven
from remit.core.bounds import TOP, Bounds, Classify, tier
from remit.core.checks import between, callable_, of_type, refuse_strange, yes_or_no
from remit.core.plan import STEP_LIMIT, Lead, Plan
from remit.core.prices import CreditsGiven
from remit.core.remit import ATTEMPT_TIME, STAND_IN, Pass
from remit.core.scope import SeesGiven
from remit.core.session import RemembersGiven, remembers
from remit.core.times import SpanGiven, span
from remit.core.trust import Trust
from remit.core.values import NAME_LIMIT, SESSION_LIMIT, TASK_LIMIT, digest, encode, line, plain, shown
from remit.engine.plans import Approves, PlanOptions
from remit.engine.queue.submitting import KEY_LIMIT, Submission
from remit.errors import BadInput

How = TypeVar("How", bound=Mapping[str, object])

BY_LIMIT: Final = NAME_LIMIT
MOST_ATTEMPTS: Final = 1_000
NO_GOAL: Final = "carry out a plan"  # what a plan without a goal is called


class Along(TypedDict, total=False):
    """What may go along with a task: what its holder sees, writes and uses beyond its card, narrower bounds, its time,
    whether its text comes from strangers, and what is set aside for it."""

    sees: SeesGiven
    writes: SeesGiven
    tools: NamesGiven
    within: Bounds
    seconds: SpanGiven
    trust: Trust
    credits: CreditsGiven


class AlongHandoff(TypedDict, total=False):
    """What may go along with a handoff: rights that its sender has, and narrower bounds."""

    sees: SeesGiven
    writes: SeesGiven
    tools: NamesGiven
    within: Bounds


class Delegating(Along, total=False):
    """The same for a task that is waited for: for how many seconds its agent is waited for if it is busy."""

    wait: SpanGiven


class Queueing(Along, total=False):
    """The same for a task that nobody waits for: its idempotency key, for how many seconds the same request is the same
    task without one, how often it is tried, and whether its end is announced in the asker's inbox, as that of a spawned
    task always is."""

    key: str
    same_within: SpanGiven
    attempts: int
    announce: bool


class Starting(Along, total=False):
    """What a person may say about a run besides: its session, tier, whether tasks may change hands, and who
    starts it."""

    session: str
    tier: str
    handoffs: bool
    by: str


class Running(Starting, total=False):
    """The same for a run that is waited for; and whether it is told what was said before in its session."""

    wait: SpanGiven
    remembers: RemembersGiven


class StartingQueued(Starting, total=False):
    """The same for a run that is put into the queue: its idempotency key, for how many seconds the same request is the
    same task without one, and how often it is tried."""

    key: str
    same_within: SpanGiven
    attempts: int


class Submitting(StartingQueued, total=False):
    """The same, and whether it is told what was said before in its session."""

    remembers: RemembersGiven


class LeadingKept(TypedDict, total=False):
    """How a plan is run, as far as that can be kept: how many steps at a time, and whether members are told goal and
    roster."""

    concurrency: int
    reveal: bool


class Planning(LeadingKept, total=False):
    """How a plan is run: the same, who approves each step (True for a person, or a function that says yes, no or
    "ask"), and what stops it."""

    approve: Approves | bool | None
    abort: anyio.Event | None


class StartingPlan(Starting, Planning, total=False):
    """What a person may say about a run that is a plan or a team."""


class SubmittingPlan(StartingQueued, LeadingKept, total=False):
    """The same for one that is put into the queue."""


class DelegatingTeam(Delegating, LeadingKept, total=False):
    """What may go along with a goal that an agent gives to a team."""


class Asked(NamedTuple):
    """What a person asks for."""

    wish: Pass
    session: str
    by: str


def checked(verb: str, how: Mapping[str, object], takes: type) -> dict[str, Any]:
    """Refuse keywords that the verb does not take, with those it takes."""
    if not how:
        return {}
    refuse_strange(verb, how, takes.__annotations__.keys())
    return dict(how)


def nothing_more(verb: str, takes: str, strange: tuple[object, ...]) -> None:
    """Refuse what was given without a name after all that the verb takes that way."""
    if strange:
        raise BadInput(f"{verb} takes no more than {takes} without a name, and was given {shown(strange[0])} too")


def passed(verb: str, to: str, task: str, how: Delegating) -> Pass:
    """Make what an agent passes on and waits for."""
    return Pass(to, task, **checked(verb, how, Delegating)) if how else Pass(to, task)


def handed(along: AlongHandoff) -> AlongHandoff:
    """Check what goes along with a handoff."""
    checked("hand_off", along, AlongHandoff)
    return along


def submission(to: str, task: str, how: Queueing, asked_how: str = "submit") -> Submission:
    """Make what an agent submits without waiting for it."""
    queue, rest = _queue(checked(asked_how, how, Queueing))
    if yes_or_no(rest.pop("announce", False), "announce") and asked_how == "submit":
        asked_how = "async"
    return Submission(Pass(to, task, **rest), asked_how=asked_how, **queue)


async def classified(task: str, how: How, classify: Classify | None) -> How:
    """Return the keywords of a run with the tier that the classifier chooses, if the caller gave none."""
    if classify is None or how.get("tier", "") != "":
        return how
    chosen = classify(plain(task, "a task", TASK_LIMIT))
    return cast("How", {**how, "tier": await chosen if inspect.isawaitable(chosen) else chosen})


def asked(verb: str, agent: str, task: str, how: Running) -> Asked:
    """Make what a person asks for."""
    return _asked(agent, task, checked(verb, how, Running))


def _asked(agent: str, task: str, how: dict[str, Any]) -> Asked:
    """Make a request: a person sees and writes everything, and passes it on unless told otherwise."""
    if not how:
        return Asked(Pass(agent, task, sees=ANY, writes=ANY), "", "")
    rest: dict[str, Any] = {"sees": ANY, "writes": ANY, **how}
    session, by = rest.pop("session", ""), rest.pop("by", "")
    if session != "":
        line(session, "a session", SESSION_LIMIT)
    if by != "":
        line(by, "by", BY_LIMIT)
    if session == "" and remembers(rest.get("remembers")) in ("session", "whole"):
        raise BadInput("remembers= needs session=: name the session whose earlier runs this one is to be told")
    name, handoffs = rest.pop("tier", ""), rest.pop("handoffs", True)
    within = of_type(rest.pop("within", TOP), Bounds, "within takes Bounds(...)")
    if name != "":
        within &= tier(name)
    if not yes_or_no(handoffs, "handoffs"):
        within &= Bounds(handoffs=0)
    return Asked(Pass(agent, task, within=within, **rest), session, by)


def submitted(agent: str, task: str, how: Submitting) -> tuple[Submission, str]:
    """Make what a person puts into the queue, and give the session it belongs to."""
    if not how:
        return Submission(Pass(agent, task, sees=ANY, writes=ANY), ATTEMPT_TIME), ""
    return _submitted(agent, task, checked("submit", how, Submitting))


def _submitted(agent: str, task: str, how: dict[str, Any]) -> tuple[Submission, str]:
    queue, rest = _queue(how)
    request = _asked(agent, task, rest)
    return Submission(request.wish, by=request.by, **queue), request.session


def submitted_plan(plan: Plan, how: SubmittingPlan) -> tuple[Submission, str]:
    """Make what a person puts into the queue as a plan, and give the session it belongs to."""
    of_type(plan, Plan, "submit_plan takes a Plan(...)")
    lead, rest = _lead("submit_plan", how, SubmittingPlan, plan)
    submission, session = _submitted(STAND_IN, plan.goal or NO_GOAL, rest)
    return submission._replace(lead=lead, written=digest(encode(lead.data))), session


def submitted_team(
    goal: str, coordinator: str, how: SubmittingPlan, plan: Plan | None = None
) -> tuple[Submission, str]:
    """Make what a person puts into the queue for a team, and give the session it belongs to."""
    lead, rest = _lead("submit_team", how, SubmittingPlan, team_plan("submit_team", plan, goal))
    lead = lead._replace(coordinated=plan is not None)
    submission, session = _submitted(coordinator, goal, rest)
    return submission._replace(lead=lead, written=digest(encode(lead.data))), session


def teamed(goal: str, coordinator: str, how: DelegatingTeam, plan: Plan | None = None) -> tuple[Pass, Lead]:
    """Make what an agent passes on to a team."""
    lead, rest = _lead("run_team", how, DelegatingTeam, team_plan("run_team", plan, goal))
    return Pass(coordinator, goal, **rest), lead._replace(coordinated=plan is not None)


def team_plan(verb: str, plan: Plan | None, goal: str) -> Plan | None:
    """Check the plan that a team is given; what it is for is the team's goal."""
    if plan is None:
        return None
    return replace(of_type(plan, Plan, f"{verb} takes plan=Plan(...)"), goal=goal)


def _lead(verb: str, how: Mapping[str, Any], takes: type, plan: Plan | None = None) -> tuple[Lead, dict[str, Any]]:
    """Take apart how it is led, which is kept with the task, so that whichever process runs it can lead it."""
    if lost := [name for name in ("approve", "abort") if how.get(name) is not None]:
        raise BadInput(
            f"{verb} takes no {lost[0]}: it would be lost with this process, and the task goes on without it; "
            "cancel the task to stop it, or use run_plan to be asked before each step"
        )
    rest = checked(verb, how, takes)
    options = _options({name: rest.pop(name) for name in LeadingKept.__annotations__ if name in rest})
    return Lead(plan, options.concurrency, options.reveal), rest


def plan_options(verb: str, how: Mapping[str, Any]) -> PlanOptions:
    """Make the options of a plan that an agent runs."""
    return _options(checked(verb, how, Planning))


def planned(verb: str, agent: str, task: str, how: StartingPlan) -> tuple[Asked, PlanOptions]:
    """Make what a person asks for that is a plan or a team, and the options of the plan."""
    rest = checked(verb, how, StartingPlan)
    options = {name: rest.pop(name) for name in Planning.__annotations__ if name in rest}
    return _asked(agent, task, rest), _options(options)


def _options(given: dict[str, Any]) -> PlanOptions:
    options = PlanOptions(**given)
    between(options.concurrency, "concurrency", 1, STEP_LIMIT)
    yes_or_no(options.reveal, "reveal")
    if options.approve is not None and not isinstance(options.approve, bool):
        callable_(options.approve, "approve is True, or a function that is asked before each step")
    if options.abort is not None and not all(hasattr(options.abort, name) for name in ("is_set", "wait")):
        raise BadInput(f"abort is an anyio.Event() that stops the plan when it is set, not {shown(options.abort)}")
    return options


def _queue(how: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Check what is said about the queue, and take it apart from the rest."""
    queue: dict[str, Any] = {
        "timeout": span(seconds, "seconds") if (seconds := how.pop("seconds", None)) is not None else ATTEMPT_TIME,
        "attempts": between(how.pop("attempts"), "attempts", 1, MOST_ATTEMPTS) if "attempts" in how else 0,
        "key": how.pop("key", ""),
        "same_within": span(how.pop("same_within"), "same_within") if "same_within" in how else 0,
    }
    if queue["key"] != "":
        plain(queue["key"], "a key", KEY_LIMIT)
    return queue, how
