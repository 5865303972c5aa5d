"""Events of a task: it begins, moves from state to state, and ends."""

from collections.abc import Sequence
from typing import Any, Final, NamedTuple, NotRequired, TypedDict

from remit.core import scope
from remit.core.allow import names_data
from remit.core.events import Unsealed
from remit.core.kinds.money import Closes, Opens
from remit.core.kinds.place import Place
from remit.core.lead import LeadData
from remit.core.plan import Payload
from remit.core.remit import Pass, PassingData, Remit, RemitData
from remit.core.trust import INSIDE, Trust
from remit.core.values import Json


class Lineage(NamedTuple):
    """Tells that a task is one more try: `origin` is the first task of its lineage, `failures` a number that no other
    task of it has."""

    origin: str
    failures: int


class Begun(NamedTuple):
    """What the first event of a task says besides its remit.

    `worker` runs it, `step` is the step of a plan it carries out, `led_as` what the engine does in its holder's place,
    `by` who started the run, `joins` whether its holder is new to the run, `until` when it expires, `repeats` how often
    its asker has asked for the very same by now, with the same result, once that is worth a warning; `lineage` is there
    if it is tried again for another, `lead` if any process can go on with what is led: its data; `funds`
    if it pays along a path: its purse, and the leases that begin with it, and whether it counts for limits on tasks;
    `position` is where in its asker it was asked for, if its operation does not tell.
    """

    worker: str = ""
    step: str = ""
    led_as: str = ""
    by: str = ""
    joins: bool = False
    until: int = 0
    repeats: int = 0
    lineage: Lineage | None = None
    lead: dict[str, Json] | None = None
    funds: dict[str, Any] | None = None
    position: str = ""


class Queued(NamedTuple):
    """How a task is run that nobody waits for: `asked_how` is submit, spawn or async. `content` names all that was
    asked, if it was asked for with an idempotency key."""

    asked_how: str
    timeout: int
    attempts: int
    ready_at: int
    dedup_key: str = ""
    content: str = ""


class FirstData(RemitData, Opens, total=False):
    """The data of `task.started` and `task.submitted`. `origin` is the first task of those that were tried for the
    same, by themselves or by hand; `lead` is what whoever runs it leads in its holder's place, a plan or a team;
    `metered` is there if the task counts for limits on tasks, `anew` if conversations that cannot be continued may
    begin again; `position` is where in its asker it was asked for, if its operation does not tell."""

    worker: str
    step: str
    led_as: str
    by: str
    joins: bool
    repeats: int
    asked_how: str
    timeout: int
    attempts: int
    ready_at: int
    dedup_key: str
    content: str
    origin: str
    failures: int
    until: int
    lead: LeadData
    metered: bool
    anew: bool
    position: str


BEGUN: Final = Begun()
REFUSED_TEXT: Final = 300  # characters


def started(remit: Remit, now: int, begun: Begun = BEGUN, queued: Queued | None = None) -> Unsealed:
    """Make the event of a task that is run at once: by whoever delegates it, or by a process with a hand free."""
    data = _asked(remit)
    if begun is not BEGUN:
        _add(data, begun)
    if queued is not None:
        data |= queued._asdict()
    return Unsealed("task.started", now, data, remit.root, remit.session, remit.id, remit.holder)


def submitted(remit: Remit, now: int, queued: Queued, begun: Begun = BEGUN) -> Unsealed:
    data = {**_asked(remit), **queued._asdict()}
    _add(data, begun)
    return Unsealed("task.submitted", now, data, remit.root, remit.session, remit.id, remit.holder)


def _add(data: dict[str, Json], begun: Begun) -> None:
    # One by one: this is done for every task.
    worker, step, led_as, by, joins, until, repeats, lineage, lead, funds, position = begun
    if worker:
        data["worker"] = worker
    if step:
        data["step"] = step
    if led_as:
        data["led_as"] = led_as
    if by:
        data["by"] = by
    if joins:
        data["joins"] = True
    if until:
        data["until"] = until
    if repeats:
        data["repeats"] = repeats
    if lineage is not None:
        data["origin"], data["failures"] = lineage
    if lead is not None or funds is not None or position:
        data |= funds if funds and lead is None and not position else _seldom(lead, funds, position)


def _seldom(lead: dict[str, Json] | None, funds: dict[str, Any] | None, position: str) -> dict[str, Any]:
    """Put together what most tasks do not have."""
    data: dict[str, Any] = {"lead": lead} if lead is not None else {}
    if position:
        data["position"] = position
    return {**data, **(funds or {})}


def _asked(remit: Remit) -> dict[str, Json]:
    names = remit.names
    data: dict[str, Json] = {
        "asker": names[-2] if len(names) > 1 else "",
        "bounds": remit.bounds.data,
        "chain": [*names],
        "parent": remit.parent,
        "sees": [*scope.spelled(remit.sees)] if remit.sees else [],
        "task": remit.task,
        "tools": names_data(remit.tools) if remit.tools else [],
    }
    if remit.writes:
        data["writes"] = [*scope.spelled(remit.writes)]
    if remit.trust is not INSIDE:
        data["trust"] = remit.trust
    if remit.remembers:
        data["remembers"] = remit.remembers
    return data


class StepTold(TypedDict):
    """What became of one step of a plan, at the end of the task that led it. `task` is the step's latest task, which
    has its result."""

    id: str
    title: str
    agent: str
    state: str
    task: NotRequired[str]
    reason: NotRequired[str]
    payload: NotRequired[Payload]


class TurnData(TypedDict, total=False):
    """What every event that ends a turn says: its receipt, how many of its tokens `tokens.used` has told of, `trust` if
    what it gives is outside, whether its agent was left behind because it would not stop, how many of its hops were
    refused beyond those that are recorded one by one, and of a led plan or team what became of its steps."""

    receipt: dict[str, Json]
    tokens: int
    trust: Trust
    left: bool
    more_refused: int
    steps: list[StepTold]


class Completed(TurnData, Closes):
    """The data of `task.completed`."""

    result: Json


class FailedData(TurnData, Closes):
    """The data of `task.failed`, `task.cancelled` and `task.died`. `spared` failures do not count for the breaker;
    `trace` is where in the agent's code it failed; `unheard` says that it was stopped because its asker was over;
    `strikes` that it was stopped because it got nowhere: the agents that this is held against, and how often by now;
    `by` who cancelled it."""

    error: str
    type: str
    retryable: NotRequired[bool]
    spared: NotRequired[bool]
    trace: NotRequired[str]
    unheard: NotRequired[bool]
    strikes: NotRequired[dict[str, int]]
    by: NotRequired[str]


class EndData(TurnData, Closes, total=False):
    """The data of any end, for readers to whom it does not matter which."""

    result: Json
    error: str
    type: str
    retryable: bool
    spared: bool
    trace: str
    unheard: bool
    strikes: dict[str, int]


class Cancelling(TypedDict):
    """The data of `task.cancelling`."""

    why: str
    by: NotRequired[str]


class Nothing(TypedDict):
    """The data of events that say all by their kind."""


class Resumes(TypedDict, total=False):
    """The data of `task.resumed`; `until` is there when it expires at another time now."""

    until: int


def ended(remit: Remit, kind: str, now: int, data: dict[str, Json]) -> Unsealed:
    return Unsealed(kind, now, data, remit.root, remit.session, remit.id, remit.holder)


def moved(kind: str, at: Place, agent: str, now: int, data: dict[str, Json]) -> Unsealed:
    """Make the event of a task that goes from one state to another."""
    return Unsealed(kind, now, data, at.run, at.session, at.task, agent)


class Requeue(NamedTuple):
    """How a task goes back into the queue: for which worker, from when, and how often it has failed by then."""

    worker: str
    fence: int
    ready_at: int
    attempt: int
    failures: int


class Requeued(TurnData):
    """The data of `task.released`, and a part of that of the others that go back into the queue."""

    worker: str
    fence: int
    ready_at: int
    attempt: int
    failures: int


class QueuedAgain(Requeued, total=False):
    """The data of `task.queued`; `until` is there when it expires at another time now."""

    until: int


class Retrying(Requeued, total=False):
    """The data of `task.retrying`."""

    error: str
    type: str
    retryable: bool
    spared: bool
    trace: str


class Lost(Requeued, total=False):
    """The data of `task.lost` and `task.parked`: which process had it, how often one died that did, and when it
    expires if that changes."""

    lost_by: str
    losses: int
    until: int


def requeued(kind: str, at: Place, agent: str, now: int, requeue: Requeue, data: dict[str, Json]) -> Unsealed:
    return moved(kind, at, agent, now, {**data, **requeue._asdict()})


class Claim(NamedTuple):
    """Who has a task now. A write that carries an older fence changes nothing."""

    worker: str
    fence: int
    attempt: int


class FenceData(TypedDict):
    """The data of `task.fenced`."""

    worker: str
    fence: int
    attempt: int


class ClaimData(FenceData, total=False):
    """The data of `task.claimed`; `until` is there when it expires at another time now."""

    until: int


def claimed(at: Place, agent: str, now: int, claim: Claim, until: int = 0) -> Unsealed:
    """Make the event of a task that someone runs from now on; `until` is when it expires, if that changes."""
    data: dict[str, Json] = {**claim._asdict()}
    if until:
        data["until"] = until
    return moved("task.claimed", at, agent, now, data)


def fenced(at: Place, agent: str, now: int, claim: Claim) -> Unsealed:
    """Make the event that takes a delegated task from a dead process; it waits until its asker asks again."""
    return moved("task.fenced", at, agent, now, {**claim._asdict()})


class Handed(TurnData, Opens):
    """The data of `task.handed`: to whom, what changed on the way, and a digest of that. `payloads` and `join` are
    there when parts of it go to several at once, `of_parts` when what came of them goes on to someone else, `passed`
    when the command passes something on, `failed` when its holder failed and it goes back."""

    to: str | list[str]
    update: dict[str, Any]
    content: str
    payloads: NotRequired[list[Json]]
    join: NotRequired[str]
    joins: NotRequired[bool]
    passed: NotRequired[PassingData]
    of_parts: NotRequired[bool]
    failed: NotRequired[str]


def handed(remit: Remit, to: str | list[str], now: int, data: dict[str, Json]) -> Unsealed:
    """Make the event of a holder that gives the task to another, or parts of it to several at once."""
    whom: Json = to if isinstance(to, str) else [*to]
    return Unsealed("task.handed", now, {**data, "to": whom}, remit.root, remit.session, remit.id, remit.holder)


class TokensUsed(TypedDict):
    """The data of `tokens.used`; `steps` are the leases that they are taken from."""

    tokens: int
    steps: NotRequired[dict[str, list[list[Any]]]]


def tokens_used(remit: Remit, tokens: int, now: int, steps: Sequence[Sequence[Any]] = ()) -> Unsealed:
    data: dict[str, Json] = {"tokens": tokens}
    if steps:
        data["steps"] = {"tokens": [[*step] for step in steps]}
    return Unsealed("tokens.used", now, data, remit.root, remit.session, remit.id, remit.holder)


class HopRefused(TypedDict):
    """The data of `hop.refused`; `handoff` is there when it was to be a handoff."""

    rule: str
    sentence: str
    task: str
    to: str
    handoff: NotRequired[bool]


def refused(remit: Remit, wish: Pass, now: int, *, rule: str, sentence: str, handoff: bool = False) -> Unsealed:
    """Make the event of a hop that a rule said no to. Of the task that was not passed on, the beginning is kept."""
    task = wish.task if len(wish.task) <= REFUSED_TEXT else f"{wish.task[: REFUSED_TEXT - 1]}…"
    data: dict[str, Json] = {"rule": rule, "sentence": sentence, "task": task, "to": wish.to}
    if handoff:
        data["handoff"] = True
    return Unsealed("hop.refused", now, data, remit.root, remit.session, remit.id, remit.holder)
