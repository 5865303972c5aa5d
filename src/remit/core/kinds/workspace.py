"""Events within a task and of a whole workspace: effects, plans, breakers, cards, keys, schedules, hooks,
access."""

from typing import Final, Literal, NotRequired

from remit.core.breaker import Breaker
from remit.core.card import Card
from remit.core.events import INLINE, Event, Hook, Place, Unsealed, read
from remit.core.identity import AccessRow
from remit.core.plan import LeadData, PlanWhole
from remit.core.records import TypedDict
from remit.core.remit import Remit
from remit.core.times import Schedule
from remit.core.trust import Trust
from remit.core.values import Json, decode, encode


class EffectDone(TypedDict):
    """The data of `effect.done`. `args` is the digest of its arguments. `marks` are the traces that the effect left on
    the turn: the trust label of its input, the entries it read and the entries it wrote. A `result` of more than 64 Ki
    characters is left out: it is the answer of the operation, which is stored next to the event."""

    key: str
    result: NotRequired[Json]
    args: str
    marks: NotRequired[dict[str, Json]]


def effect_done(
    remit: Remit, key: str, args: str, result: Json, now: int, marks: dict[str, Json] | None = None
) -> Unsealed:
    data: dict[str, Json] = {"key": key, "args": args}
    if len(encode(result)) <= INLINE:
        data["result"] = result
    if marks:
        data["marks"] = marks
    return Unsealed("effect.done", now, data, remit.root, remit.session, remit.id, remit.holder)


class WorkLeft(TypedDict):
    """The data of `work.left`: work that earlier attempts of the task finished and that the completed attempt never
    requested."""

    left: list[str]


def work_left(remit: Remit, left: list[str], now: int) -> Unsealed:
    return Unsealed("work.left", now, {"left": [*left]}, remit.root, remit.session, remit.id, remit.holder)


class StepData(TypedDict):
    """One step of a plan in `plan.started`."""

    id: str
    title: str
    agent: str
    capability: str
    after: list[str]


class PlanStarted(TypedDict):
    """The data of `plan.started`: the steps, the goal, and the context receipt."""

    steps: list[StepData]
    goal: NotRequired[str]
    receipt: NotRequired[dict[str, Json]]


def plan_started(remit: Remit, steps: list[Json], now: int, data: dict[str, Json]) -> Unsealed:
    return Unsealed("plan.started", now, {**data, "steps": steps}, remit.root, remit.session, remit.id, remit.holder)


class TeamPlanned(TypedDict):
    """The data of `team.planned`: the accepted plan of a coordinator, and `trust` if the coordinator had read untrusted
    input."""

    plan: PlanWhole
    trust: NotRequired[Trust]


def team_planned(remit: Remit, data: dict[str, Json], now: int) -> Unsealed:
    return Unsealed("team.planned", now, data, remit.root, remit.session, remit.id, remit.holder)


class StepEnded(TypedDict):
    """The data of `step.ended`: a step that ended without a task that says so. `state` is "failed" or "skipped", and
    `reason` says why."""

    step: str
    state: Literal["completed", "failed", "skipped", "running", "waiting"]
    reason: str


def step_ended(remit: Remit, step: str, state: str, reason: str, now: int) -> Unsealed:
    """Return the event of a step whose end no task records. `state` is "skipped", or "failed" if the step failed
    without a task or its result was rejected."""
    data: dict[str, Json] = {"step": step, "state": state, "reason": reason}
    return Unsealed("step.ended", now, data, remit.root, remit.session, remit.id, remit.holder)


class BreakerSet(TypedDict):
    """The data of `breaker.set`: the new state of an agent's circuit breaker, its failures in a row, and the reason.
    `until` is the end of the cooldown, or the time when the probe expires. `probe` is the id of the probing task, and
    `by` the person who set the breaker, if one did."""

    name: str
    state: Literal["closed", "open", "half-open"]
    failures: int
    until: int
    probe: str
    why: str
    by: NotRequired[str]


def breaker_set(name: str, breaker: Breaker, at: Place, now: int, by: str = "") -> Unsealed:
    data: dict[str, Json] = {**breaker._asdict(), "name": name}
    if by:
        data["by"] = by
    return Unsealed("breaker.set", now, data, at.run, at.session, at.task, name)


class CardData(TypedDict):
    """A card as JSON."""

    name: str
    role: str
    can: list[str]
    asks: str | list[str]
    reads: list[str]
    writes: list[str]
    tools: str | list[str]
    deny: str | list[str]
    concurrency: int | None
    trusted_output: bool
    needs_approval: NotRequired[bool]
    instructions: NotRequired[str]
    ask_person: NotRequired[bool]
    review: NotRequired[bool]


class CardsPublished(TypedDict):
    """The data of `cards.published`: agents that a process can run and whose cards are new or changed."""

    cards: list[CardData]


def cards_published(cards: list[Card], now: int) -> Unsealed:
    return Unsealed("cards.published", now, {"cards": [card.data for card in cards]})


class CardWithdrawn(TypedDict):
    """The data of `card.withdrawn`: the card of an agent that no worker has was removed."""

    name: str
    by: str


def card_withdrawn(name: str, by: str, now: int) -> Unsealed:
    return Unsealed("card.withdrawn", now, {"name": name, "by": by})


class KeySet(TypedDict):
    """The data of `key.set`: a provider key of the workspace was stored, or encrypted again. `key_id` identifies the
    master key. The provider key itself is in no event, not even encrypted. `mark` is a digest of the encrypted key;
    `remit doctor` uses it to detect a changed row."""

    name: str
    key_id: str
    by: str
    mark: NotRequired[str]


def key_set(name: str, key_id: str, by: str, now: int, mark: str = "") -> Unsealed:
    data: dict[str, Json] = {"name": name, "key_id": key_id, "by": by}
    return Unsealed("key.set", now, {**data, "mark": mark} if mark else data)


class KeyRemoved(TypedDict):
    """The data of `key.removed`: the name of the deleted provider key, and the person who deleted it."""

    name: str
    by: str


def key_removed(name: str, by: str, now: int) -> Unsealed:
    return Unsealed("key.removed", now, {"name": name, "by": by})


class ScheduleRequest(TypedDict):
    """The submission of a schedule: its keywords, and as `ceiling` the bounds of the runtime or workspace that set it.
    `lead` is there for a plan or a team. `source` is the name of the team file that it comes from, and `left` is there
    if the file no longer has it."""

    keywords: dict[str, Json]
    ceiling: dict[str, Json]
    lead: NotRequired[LeadData]
    source: NotRequired[str]
    left: NotRequired[bool]


class ScheduleSet(TypedDict):
    """The data of `schedule.set`: a schedule was added, replaced, paused or resumed. It has the whole schedule, and
    the runs that it has started so far."""

    name: str
    state: Literal["active", "paused"]
    cron: str
    zone: str
    catch_up: Literal["latest", "all", "none"]
    task: str
    request: ScheduleRequest
    next: int | None
    last: int | None
    last_task: str
    runs: int
    by: str


def schedule_set(schedule: Schedule, now: int) -> Unsealed:
    data: dict[str, Json] = {
        "name": schedule.name,
        "state": schedule.state,
        "cron": schedule.cron,
        "zone": schedule.zone,
        "catch_up": schedule.catch_up,
        "task": schedule.task,
        "request": decode(schedule.request),
        "next": schedule.next,
        "last": schedule.last,
        "last_task": schedule.last_task,
        "runs": schedule.runs,
        "by": schedule.set_by,
    }
    return Unsealed("schedule.set", now, data, agent=schedule.agent)


class ScheduleRemoved(TypedDict):
    """The data of `schedule.removed`: the name of the schedule, and the person who removed it."""

    name: str
    by: str


def schedule_removed(name: str, by: str, now: int) -> Unsealed:
    return Unsealed("schedule.removed", now, {"name": name, "by": by})


class ScheduleFired(TypedDict):
    """The data of `schedule.fired`: a schedule has submitted the task `last_task` for the planned time `last`. `runs`
    is the number of its runs so far, `next` the next planned time. `missed` is the first planned time that was left out
    before this one."""

    name: str
    next: int | None
    last: int
    last_task: str
    runs: int
    missed: NotRequired[int]


def schedule_fired(after: Schedule, missed: int | None, now: int) -> Unsealed:
    """Return the event of a run that a schedule starts; `after` is the schedule as it is then."""
    data: dict[str, Json] = {
        "name": after.name,
        "next": after.next,
        "last": after.last,
        "last_task": after.last_task,
        "runs": after.runs,
    }
    if missed is not None:
        data["missed"] = missed
    return Unsealed("schedule.fired", now, data, agent=after.agent)


class ScheduleSkipped(TypedDict):
    """The data of `schedule.skipped`: a schedule started no run for `planned`, and `why`. The rest is the schedule as
    it was before, and the next planned time."""

    name: str
    next: int | None
    last: int | None
    last_task: str
    runs: int
    planned: int
    why: str


def schedule_skipped(after: Schedule, planned: int, why: str, now: int) -> Unsealed:
    data: dict[str, Json] = {
        "name": after.name,
        "next": after.next,
        "last": after.last,
        "last_task": after.last_task,
        "runs": after.runs,
        "planned": planned,
        "why": why,
    }
    return Unsealed("schedule.skipped", now, data, agent=after.agent)


class HookAdded(TypedDict):
    """The data of `hook.added`: an address that is sent the events of these kinds, of one run if `run` is there. If
    `task` is there, the address gets the present state of this A2A task instead. The secret is in no event."""

    hook: str
    url: str
    kinds: str
    run: NotRequired[str]
    task: NotRequired[str]
    by: str


def hook_added(hook: Hook, now: int) -> Unsealed:
    data: dict[str, Json] = {"hook": hook.id, "url": hook.url, "kinds": hook.kinds, "by": hook.added_by}
    about = {name: value for name, value in (("run", hook.run), ("task", hook.task)) if value}
    return Unsealed("hook.added", now, {**data, **about})


class HookRemoved(TypedDict):
    """The data of `hook.removed`: the id of the hook, and who removed it: a person, or the client whose push
    notification took its place."""

    hook: str
    by: str


def hook_removed(hook: str, by: str, now: int) -> Unsealed:
    return Unsealed("hook.removed", now, {"hook": hook, "by": by})


class HookRotated(TypedDict):
    """The data of `hook.rotated`: a hook has a new secret, its `generation`-th. For a day, the one before signs too."""

    hook: str
    generation: int
    by: str


def hook_rotated(hook: str, generation: int, by: str, now: int) -> Unsealed:
    return Unsealed("hook.rotated", now, {"hook": hook, "generation": generation, "by": by})


class AccessMade(TypedDict):
    """The data of `access.made`: a key for callers from outside was made. The key itself is in no event; `digest` is
    its SHA-256, and 256 bits of it are random. `agent` is the agent in whose name they call; "" is the owner."""

    id: str
    digest: str
    name: str
    scopes: list[str]
    agent: str
    bounds: dict[str, Json]
    expires: int | None
    by: str


def access_made(row: AccessRow) -> Unsealed:
    data: dict[str, Json] = {
        "id": row.id,
        "digest": row.digest,
        "name": row.name,
        "scopes": [*row.scopes.split()],
        "agent": row.agent,
        "bounds": decode(row.bounds),
        "expires": row.expires_at,
        "by": row.made_by,
    }
    return Unsealed("access.made", row.made_at, data)


class AccessRevoked(TypedDict):
    """The data of `access.revoked`: from now on, remit refuses the key."""

    id: str
    name: str
    by: str


def access_revoked(id_: str, name: str, by: str, now: int) -> Unsealed:
    return Unsealed("access.revoked", now, {"id": id_, "name": name, "by": by})


class KeptTask(TypedDict):
    """A task of another run whose result a fork uses, and how it ended."""

    task: str
    state: str


class WorkKept(TypedDict):
    """The data of `work.kept`: the event of another run that recorded the operation first. `ended` is the task that the
    operation had started, if it had ended."""

    of: int
    kind: str
    data: dict[str, Json]
    ended: NotRequired[KeptTask]


def work_kept(first: Event, place: Place, now: int, ended: KeptTask | None = None) -> Unsealed:
    """Return the event of an operation that a fork takes over from another run. It changes no table."""
    data: dict[str, Json] = {"of": first.seq, "kind": first.kind, "data": first.data}
    if ended is not None:
        data["ended"] = {"task": ended["task"], "state": ended["state"]}
    return Unsealed("work.kept", now, data, place.run, place.session, place.task, first.agent)


def kept_task(event: Event) -> KeptTask | None:
    """Return the task of another run whose result a fork took over with this event, or None."""
    return read(event, WorkKept).get("ended") if event.kind == "work.kept" else None


def as_first_recorded(event: Event) -> Event:
    """Return an event as it was first recorded. For `work.kept`, that is the kind and data from the run that did the
    work; any other event is returned unchanged."""
    if event.kind != "work.kept":
        return event
    kept = read(event, WorkKept)
    return event._replace(kind=kept["kind"], data=kept["data"])


class OwnerActed(TypedDict):
    """The data of `owner.acted`: an owner's action that has an operation id of its own. Its changes are in the events
    that follow."""

    verb: str
    target: str
    by: str


def owner_acted(verb: str, target: str, by: str, now: int) -> Unsealed:
    """Return the event of an owner's action. It belongs to no run, so that the operation outlives the run it was
    about."""
    return Unsealed("owner.acted", now, {"verb": verb, "target": target, "by": by})


SHAPES: Final[dict[str, type]] = {
    "effect.done": EffectDone,
    "work.left": WorkLeft,
    "work.kept": WorkKept,
    "plan.started": PlanStarted,
    "team.planned": TeamPlanned,
    "step.ended": StepEnded,
    "breaker.set": BreakerSet,
    "cards.published": CardsPublished,
    "card.withdrawn": CardWithdrawn,
    "key.set": KeySet,
    "key.removed": KeyRemoved,
    "schedule.set": ScheduleSet,
    "schedule.removed": ScheduleRemoved,
    "schedule.fired": ScheduleFired,
    "schedule.skipped": ScheduleSkipped,
    "hook.added": HookAdded,
    "hook.removed": HookRemoved,
    "hook.rotated": HookRotated,
    "access.made": AccessMade,
    "access.revoked": AccessRevoked,
    "owner.acted": OwnerActed,
}
