"""Events within a task and of a whole workspace: effects, plans, breakers, cards, keys."""

from typing import Literal, NotRequired, TypedDict

from remit.core.breaker import Breaker
from remit.core.card import Card
from remit.core.events import Unsealed
from remit.core.kinds.place import Place
from remit.core.lead import PlanWhole
from remit.core.remit import Remit
from remit.core.trust import Trust
from remit.core.values import Json


class EffectDone(TypedDict):
    """The data of `effect.done`. `args` is the digest of what it was done with; `marks` what doing it did to the turn
    beside its result: the label of what it took in, what it saw and what it wrote."""

    key: str
    result: Json
    args: str
    marks: NotRequired[dict[str, Json]]


def effect_done(
    remit: Remit, key: str, args: str, result: Json, now: int, marks: dict[str, Json] | None = None
) -> Unsealed:
    data: dict[str, Json] = {"key": key, "result": result, "args": args}
    if marks:
        data["marks"] = marks
    return Unsealed("effect.done", now, data, remit.root, remit.session, remit.id, remit.holder)


class WorkLeft(TypedDict):
    """The data of `work.left`: what earlier runs of the task finished, and the one that completed never asked for."""

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
    """The data of `plan.started`."""

    steps: list[StepData]
    goal: NotRequired[str]
    receipt: NotRequired[dict[str, Json]]


def plan_started(remit: Remit, steps: list[Json], now: int, data: dict[str, Json]) -> Unsealed:
    return Unsealed("plan.started", now, {**data, "steps": steps}, remit.root, remit.session, remit.id, remit.holder)


class TeamPlanned(TypedDict):
    """The data of `team.planned`: the plan of a coordinator that was accepted, and `trust` if it had taken in something
    from outside by then."""

    plan: PlanWhole
    trust: NotRequired[Trust]


def team_planned(remit: Remit, data: dict[str, Json], now: int) -> Unsealed:
    return Unsealed("team.planned", now, data, remit.root, remit.session, remit.id, remit.holder)


class StepEnded(TypedDict):
    """The data of `step.ended`."""

    step: str
    state: Literal["completed", "failed", "skipped", "running", "waiting"]
    reason: str


def step_ended(remit: Remit, step: str, state: str, reason: str, now: int) -> Unsealed:
    """Make the event of a step that ended without a task of its own: it was skipped, or what it waited for failed."""
    data: dict[str, Json] = {"step": step, "state": state, "reason": reason}
    return Unsealed("step.ended", now, data, remit.root, remit.session, remit.id, remit.holder)


class BreakerSet(TypedDict):
    """The data of `breaker.set`."""

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
    denies: str | list[str]
    concurrency: int | None
    vouches: bool
    approve: NotRequired[bool]
    instructions: NotRequired[str]
    ask_person: NotRequired[bool]


class CardsPublished(TypedDict):
    """The data of `cards.published`: agents that a process can run and that were not known, or have changed."""

    cards: list[CardData]


def cards_published(cards: list[Card], now: int) -> Unsealed:
    return Unsealed("cards.published", now, {"cards": [card.data for card in cards]})


class KeySet(TypedDict):
    """The data of `key.set`: a key of the workspace's own was put in, or sealed anew. `key_id` tells with which master
    key it is sealed since; the key itself is in no event, sealed or not. `mark` is a digest of the sealed key, by
    which the doctor notices that the row was changed."""

    name: str
    key_id: str
    by: str
    mark: NotRequired[str]


def key_set(name: str, key_id: str, by: str, now: int, mark: str = "") -> Unsealed:
    data: dict[str, Json] = {"name": name, "key_id": key_id, "by": by}
    return Unsealed("key.set", now, {**data, "mark": mark} if mark else data)


class KeyRemoved(TypedDict):
    """The data of `key.removed`."""

    name: str
    by: str


def key_removed(name: str, by: str, now: int) -> Unsealed:
    return Unsealed("key.removed", now, {"name": name, "by": by})


class OwnerActed(TypedDict):
    """The data of `owner.acted`: an owner's act under an operation of its own. What it changed is in the events that
    follow."""

    verb: str
    target: str
    by: str


def owner_acted(verb: str, target: str, by: str, now: int) -> Unsealed:
    """It belongs to no run, so that the operation outlives what it was about."""
    return Unsealed("owner.acted", now, {"verb": verb, "target": target, "by": by})
