"""Events of a task: its start, each change of its state, and its end."""

from collections.abc import Sequence
from typing import Any, Final, Literal, NotRequired

from remit.core import scope
from remit.core.allow import names_data
from remit.core.events import NO_LABELS, Place, Unsealed
from remit.core.kinds.money import Closes, Opens
from remit.core.kinds.sharing import ArtifactData
from remit.core.plan import LeadData, Payload
from remit.core.records import NamedTuple, TypedDict
from remit.core.remit import Pass, PassingData, Remit, RemitData
from remit.core.trust import TRUSTED, Trust
from remit.core.values import Json, decode, shown, text_alone


class Lineage(NamedTuple):
    """Marks a task as a retry: `origin` is the first task of the lineage, `failures` a number that is unique within
    it."""

    origin: str
    failures: int


class Begun(NamedTuple):
    """The optional data of a task's first event, in addition to its remit.

    `worker` is the process that runs it. `step` is the plan step that it carries out. `led_as` says that the engine
    acts in its holder's place. `joins` is true if the holder is new to the run.
    `until` is when the task expires. `repeats` is how often its asker has made the same request with the same result,
    if that is worth a warning. `lineage` is there for a retry. `lead` is the data of a plan or team that any process
    can continue. `funds` has its purse, the leases that open with it, and whether it counts for limits on tasks.
    `position` is where in its asker's turn the task was requested, if the operation id does not tell. `priority` is its
    place in the queue: higher first.
    """

    worker: str = ""
    step: str = ""
    led_as: str = ""
    joins: bool = False
    until: int = 0
    repeats: int = 0
    lineage: Lineage | None = None
    lead: dict[str, Json] | None = None
    funds: dict[str, Any] | None = None
    position: str = ""
    priority: int = 0


class Queued(NamedTuple):
    """How a queued task runs: `asked_how` is submit, spawn or async. `timeout` is in microseconds; 0 means the default.
    `ready_at` is the earliest time at which it may run, in microseconds since 1970. `content` is the digest of the
    whole request, if it has an idempotency key."""

    asked_how: str
    timeout: int
    attempts: int
    ready_at: int
    dedup_key: str = ""
    content: str = ""


class ForkedData(TypedDict):
    """The run that a fork continues, and the last of its events that the fork keeps. `step` is the step from which the
    fork runs the plan again."""

    run: str
    at: int
    step: NotRequired[str]


def fork_text(fork: ForkedData) -> str:
    """Return text such as "a fork of 01J... at event 7"."""
    if "step" in fork:
        return f"runs {fork['run']} again from step {shown(fork['step'])}"
    return f"a fork of {fork['run']} at event {fork['at']}"


class FirstData(RemitData, Opens, total=False):
    """The data of `task.started` and `task.submitted`. `origin` is the first task of the retry lineage. `lead` is the
    plan or team that the engine leads in the holder's place. `metered` is there if the task counts for limits on tasks,
    `restart` if conversations that cannot be continued may restart. `position` is where in its asker's turn the task
    was requested, if the operation id does not tell. `forked` is the run that it continues from one of its events."""

    worker: str
    step: str
    led_as: str
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
    restart: bool
    position: str
    priority: int
    forked: ForkedData


BEGUN: Final = Begun()
REFUSED_TEXT: Final = 300  # characters


def started(remit: Remit, now: int, begun: Begun = BEGUN, queued: Queued | None = None) -> Unsealed:
    """Return the event of a task that runs at once: delegated, or taken by a process with a free slot."""
    data = _task_data(remit)
    if begun is not BEGUN:
        _add(data, begun)
    if queued is not None:
        data |= queued._asdict()
    return Unsealed("task.started", now, data, remit.root, remit.session, remit.id, remit.holder)


def submitted(remit: Remit, now: int, queued: Queued, begun: Begun = BEGUN) -> Unsealed:
    data = {**_task_data(remit), **queued._asdict()}
    _add(data, begun)
    return Unsealed("task.submitted", now, data, remit.root, remit.session, remit.id, remit.holder)


def _add(data: dict[str, Json], begun: Begun) -> None:
    # Field by field, not in a loop: this runs for every task.
    worker, step, led_as, joins, until, repeats, lineage, lead, funds, position, priority = begun
    if worker:
        data["worker"] = worker
    if step:
        data["step"] = step
    if led_as:
        data["led_as"] = led_as
    if joins:
        data["joins"] = True
    if until:
        data["until"] = until
    if repeats:
        data["repeats"] = repeats
    if lineage is not None:
        data["origin"], data["failures"] = lineage
    if lead is not None or funds is not None or position or priority:
        data |= _seldom(begun)


def _seldom(begun: Begun) -> dict[str, Any]:
    """Return the fields that most tasks do not have."""
    lead, funds, position, priority = begun[-4:]
    if funds and lead is None and not position and not priority:
        return funds
    data: dict[str, Any] = {"lead": lead} if lead is not None else {}
    if position:
        data["position"] = position
    if priority:
        data["priority"] = priority
    return {**data, **(funds or {})}


def _task_data(remit: Remit) -> dict[str, Json]:
    askers: list[Json] = [hop.asker for hop in remit.chain.hops]
    data: dict[str, Json] = {
        "asker": askers[-1] if askers else "",
        "bounds": remit.bounds.data,
        "chain": [*askers, remit.holder],
        "parent": remit.parent,
        "sees": [*scope.scope_texts(remit.sees)] if remit.sees else [],
        "task": remit.task,
        "tools": names_data(remit.tools) if remit.tools else [],
    }
    if remit.writes:
        data["writes"] = [*scope.scope_texts(remit.writes)]
    if remit.trust is not TRUSTED:
        data["trust"] = remit.trust
    if remit.remembers:
        data["remembers"] = remit.remembers
    if remit.labels is not NO_LABELS:
        data |= remit.labels.data
    if remit.data is not None:
        data |= {"task": text_alone(remit.task, remit.data), "data": decode(remit.data)}
    return data


class StepTold(TypedDict):
    """The outcome of one plan step, in the end event of the task that led the plan. `task` is the step's latest task,
    which has its result."""

    id: str
    title: str
    agent: str
    state: str
    task: NotRequired[str]
    reason: NotRequired[str]
    payload: NotRequired[Payload]


class TurnData(TypedDict, total=False):
    """The data of every event that ends a turn: its context receipt; the number of its tokens already reported by
    `tokens.used`; `trust` if its result is untrusted; whether its agent was abandoned because it did not stop; the
    number of refused hops beyond those recorded one by one; and, for a led plan or team, the outcome of its steps."""

    receipt: dict[str, Json]
    tokens: int
    trust: Trust
    left: bool
    more_refused: int
    steps: list[StepTold]


class Completed(TurnData, Closes):
    """The data of `task.completed`. `artifacts` are those that the result refers to."""

    result: Json
    artifacts: NotRequired[list[ArtifactData]]


class ProgressData(TypedDict):
    """How far a task was: a text, and the done part from 0 to 1, or None."""

    text: str
    fraction: float | None


class FailedData(TurnData, Closes):
    """The data of `task.failed`, `task.cancelled` and `task.died`. `spared` failures do not count for the circuit
    breaker. `trace` is where in the agent's code it failed. `unheard` says that the task was stopped because its asker
    had ended. `strikes` says that the task was stopped because it made no progress: the agents that this counts
    against, and how often by now. `by` is the person who cancelled it. `progress` is the last that its agent reported:
    a completed task has its result instead."""

    error: str
    type: str
    retryable: NotRequired[bool]
    spared: NotRequired[bool]
    trace: NotRequired[str]
    unheard: NotRequired[bool]
    strikes: NotRequired[dict[str, int]]
    progress: NotRequired[ProgressData]
    by: NotRequired[str]


class EndData(TurnData, Closes, total=False):
    """The data of any end event, for readers that treat all ends alike."""

    result: Json
    artifacts: list[ArtifactData]
    error: str
    type: str
    retryable: bool
    spared: bool
    trace: str
    unheard: bool
    strikes: dict[str, int]
    progress: ProgressData


class Cancelling(TypedDict):
    """The data of `task.cancelling`: the reason, and the person who cancels the task, if one does."""

    why: str
    by: NotRequired[str]


WaitKind = Literal["person", "task", "slot", "money", "model"]
_WaitsFor = TypedDict("_WaitsFor", {"for": WaitKind}, total=False)  # a keyword cannot be a field of a class


class WaitData(_WaitsFor, total=False):
    """The data of `task.waiting`: what the task waits for. `id` is the question to a person, the task (missing if it is
    one of several), the busy agent whose slot is wanted, or the model on cooldown; it is missing if the task waits for
    money that other calls hold. Older journals have neither."""

    id: str


class Wait(NamedTuple):
    """What a task waits for, and the id or name of it."""

    kind: WaitKind
    id: str = ""


class Resumes(TypedDict, total=False):
    """The data of `task.resumed`; `until` is there if the time of expiry changes."""

    until: int


def ended(remit: Remit, kind: str, now: int, data: dict[str, Json]) -> Unsealed:
    return Unsealed(kind, now, data, remit.root, remit.session, remit.id, remit.holder)


def moved(kind: str, at: Place, agent: str, now: int, data: dict[str, Json]) -> Unsealed:
    """Return the event of a task that changes its state."""
    return Unsealed(kind, now, data, at.run, at.session, at.task, agent)


def waiting(at: Place, agent: str, now: int, wait: Wait) -> Unsealed:
    """Return the event of a task that waits and releases its slots."""
    data: dict[str, Json] = {"for": wait.kind}
    if wait.id:
        data["id"] = wait.id
    return moved("task.waiting", at, agent, now, data)


class Requeue(NamedTuple):
    """How a task is requeued: for which worker, from when on, and with how many failures."""

    worker: str
    fence: int
    ready_at: int
    attempt: int
    failures: int


class Requeued(TurnData):
    """The data of `task.released`, and a part of the data of every other event that requeues a task."""

    worker: str
    fence: int
    ready_at: int
    attempt: int
    failures: int


class QueuedAgain(Requeued, total=False):
    """The data of `task.queued`; `until` is there if the time of expiry changes."""

    until: int


class Retrying(Requeued, total=False):
    """The data of `task.retrying`: the error of the failed attempt. `spared` failures do not count for the circuit
    breaker."""

    error: str
    type: str
    retryable: bool
    spared: bool
    trace: str


class Lost(Requeued, total=False):
    """The data of `task.lost` and `task.parked`: the process that had it, how many processes have died with it, and the
    time of expiry if that changes."""

    lost_by: str
    losses: int
    until: int


def requeued(kind: str, at: Place, agent: str, now: int, requeue: Requeue, data: dict[str, Json]) -> Unsealed:
    return moved(kind, at, agent, now, {**data, **requeue._asdict()})


class Claim(NamedTuple):
    """The worker that runs a task now. A write with an older fence (fencing token) changes nothing."""

    worker: str
    fence: int
    attempt: int


class FenceData(TypedDict):
    """The data of `task.fenced`: a delegated task was taken from a dead process, with a new fence. The task waits until
    its asker requests it again."""

    worker: str
    fence: int
    attempt: int


class ClaimData(FenceData, total=False):
    """The data of `task.claimed`; `until` is there if the time of expiry changes."""

    until: int


def claimed(at: Place, agent: str, now: int, claim: Claim, until: int = 0) -> Unsealed:
    """Return the event of a worker that claims a task; `until` is the time of expiry, if that changes."""
    data: dict[str, Json] = {**claim._asdict()}
    if until:
        data["until"] = until
    return moved("task.claimed", at, agent, now, data)


def fenced(at: Place, agent: str, now: int, claim: Claim) -> Unsealed:
    """Return the event that takes a delegated task from a dead process. The task waits until its asker requests it
    again."""
    return moved("task.fenced", at, agent, now, {**claim._asdict()})


class SentBackData(TypedDict):
    """A result that a person sent back, the reason, the person, and how often that has happened."""

    result: Json
    why: str
    by: str
    times: int


class Handed(TurnData, Opens):
    """The data of `task.handed`: the recipient, the update and its digest. `payloads` and `join` are there for a
    parallel handoff, `data` for values next to its payloads, `of_parts` if the results of its parts go to another
    agent, `passed` if the command passes rights on, `failed` if the holder failed and the task goes back, `sent_back`
    if a person sent the holder's result back to it, `artifacts` if the update refers to some."""

    to: str | list[str]
    update: dict[str, Any]
    content: str
    payloads: NotRequired[list[Json]]
    data: NotRequired[list[Json]]
    join: NotRequired[str]
    joins: NotRequired[bool]
    passed: NotRequired[PassingData]
    of_parts: NotRequired[bool]
    failed: NotRequired[str]
    sent_back: NotRequired[SentBackData]
    artifacts: NotRequired[list[ArtifactData]]


def handed(remit: Remit, to: str | list[str], now: int, data: dict[str, Json]) -> Unsealed:
    """Return the event of a handoff to one agent, or of a parallel handoff to several."""
    whom: Json = to if isinstance(to, str) else [*to]
    return Unsealed("task.handed", now, {**data, "to": whom}, remit.root, remit.session, remit.id, remit.holder)


class TokensUsed(TypedDict):
    """The data of `tokens.used`; `steps` are the leases that pay for them, `person` started the run, if one is
    named."""

    tokens: int
    steps: NotRequired[dict[str, list[list[Any]]]]
    person: NotRequired[str]


def tokens_used(remit: Remit, tokens: int, now: int, steps: Sequence[Sequence[Any]] = ()) -> Unsealed:
    data: dict[str, Json] = {"tokens": tokens}
    if steps:
        data["steps"] = {"tokens": [[*step] for step in steps]}
    if remit.by:
        data["person"] = remit.by
    return Unsealed("tokens.used", now, data, remit.root, remit.session, remit.id, remit.holder)


class HopRefused(TypedDict):
    """The data of `hop.refused`; `handoff` is there for a refused handoff, and `credits` is the money that the hop was
    to get."""

    rule: str
    sentence: str
    task: str
    to: str
    handoff: NotRequired[bool]
    credits: NotRequired[int]


def refused(remit: Remit, wish: Pass, now: int, *, rule: str, sentence: str, handoff: bool = False) -> Unsealed:
    """Return the event of a refused hop. Only the beginning of its task text is recorded."""
    task = wish.task if len(wish.task) <= REFUSED_TEXT else f"{wish.task[: REFUSED_TEXT - 1]}…"
    data: dict[str, Json] = {"rule": rule, "sentence": sentence, "task": task, "to": wish.to}
    if handoff:
        data["handoff"] = True
    if wish.credits is not None:
        data["credits"] = wish.credits
    return Unsealed("hop.refused", now, data, remit.root, remit.session, remit.id, remit.holder)


SHAPES: Final[dict[str, type]] = {
    "task.submitted": FirstData,
    "task.started": FirstData,
    "task.claimed": ClaimData,
    "task.fenced": FenceData,
    "task.handed": Handed,
    "task.waiting": WaitData,
    "task.resumed": Resumes,
    "task.cancelling": Cancelling,
    "task.queued": QueuedAgain,
    "task.retrying": Retrying,
    "task.released": Requeued,
    "task.lost": Lost,
    "task.parked": Lost,
    "task.completed": Completed,
    "task.failed": FailedData,
    "task.cancelled": FailedData,
    "task.died": FailedData,
    "hop.refused": HopRefused,
    "tokens.used": TokensUsed,
}
