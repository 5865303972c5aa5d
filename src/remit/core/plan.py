"""Plans: steps and what each depends on. Checked whole before anything starts."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, cast

from remit.core.arguments import arguments
from remit.core.card import Card
from remit.core.checks import between, of_type
from remit.core.match import Index, Match, choice, suits
from remit.core.text import TASK_LIMIT, canonical, plain, shown
from remit.core.values import Json, checked
from remit.errors import BadInput

Payload = Literal["text", "structured"]
Reach = Literal["direct", "transitive"]
MemoryScope = Literal["own", "all"]

STEP_LIMIT = 10_000
AT_A_TIME = 5  # steps, when nobody says anything
DRAFT_LIMIT = 100  # what a model may plan in one go
RESULT_LIMIT = 65_536
_TITLE = 200


@dataclass(frozen=True, slots=True)
class Step:
    """One piece of a plan, for an agent or for whoever has a capability.

    It sees its task and the results of the steps in `after`, nothing else: `context="transitive"` adds what those
    depended on, and `memory_scope="all"`, which only the caller of a plan can give, a summary of all results so far;
    a list of ids gives a summary of the results of these steps, and an empty list of none.
    With `payload="structured"` its result must be JSON that fits `schema`.
    """

    id: str
    title: str
    description: str = ""
    agent: str = ""
    capability: str = ""
    after: Sequence[str] = ()
    payload: Payload = "text"
    schema: Mapping[str, Any] | None = None
    context: Reach = "direct"
    memory_scope: MemoryScope | Sequence[str] = "own"
    retries: int = 0

    def __post_init__(self) -> None:
        put = object.__setattr__
        plain(self.id, "a step's id", 64)
        plain(self.title, "a step's title", _TITLE)
        plain(self.description, "a step's description", TASK_LIMIT, empty=True)
        plain(self.capability, "a capability", _TITLE, empty=True)
        put(self, "agent", "" if self.agent == "" else canonical(self.agent))
        put(self, "after", _ids(self.after, "after is a list of step ids"))
        _one_of(self.payload, ("text", "structured"), "payload")
        _one_of(self.context, ("direct", "transitive"), "context")
        put(self, "memory_scope", _memory_scope(self.memory_scope))
        between(self.retries, "retries", 0, 10)
        if self.schema is not None:
            of_type(self.schema, Mapping, "a schema is an object")
            if self.payload != "structured":
                raise BadInput(f"step {shown(self.id)} has a schema, so its payload must be 'structured'")

    def data(self) -> dict[str, Json]:
        return {
            "id": self.id,
            "title": self.title,
            "agent": self.agent,
            "capability": self.capability,
            "after": list(self.after),
        }


@dataclass(frozen=True, slots=True)
class Plan:
    """Steps in any order; `after` says what must be done before what."""

    steps: Sequence[Step]
    goal: str = ""

    def __post_init__(self) -> None:
        object.__setattr__(self, "steps", _steps(self.steps))
        plain(self.goal, "a goal", TASK_LIMIT, empty=True)


def assigned(plan: Plan, cards: Mapping[str, Card]) -> Plan:
    """Name the agent of every step, so that every process gives a step to the same one."""
    who = assignees(plan, cards)
    return replace(plan, steps=tuple(replace(step, agent=who[step.id]) for step in plan.steps))


def faults(plan: Plan, cards: Mapping[str, Card], *, most: int = STEP_LIMIT) -> list[str]:
    """List all that is wrong with a plan; nothing starts unless this is empty. `cards` are those who may be asked."""
    if not plan.steps:
        return ["the plan has no steps"]
    if len(plan.steps) > most:
        return [f"the plan has {len(plan.steps):,} steps and at most {most:,} are allowed"]
    ids = {step.id for step in plan.steps}
    wrong, able = _doubles(plan), _able(plan, cards)
    for step in plan.steps:
        wrong += _dependency_faults(step, ids)
        wrong += _assignee_faults(step, cards, able)
    if not wrong and (circle := cycle(plan)):
        wrong.append(f"steps {', '.join(shown(id_) for id_ in circle[:10])} wait for each other")
    return wrong


def assignees(plan: Plan, cards: Mapping[str, Card]) -> dict[str, str]:
    """Choose who does each step: the agent it names, or who is clearly the one for the capability."""
    chosen = {capability: choice(matches) for capability, matches in _able(plan, cards).items()}
    who = ((step, None if step.agent else chosen[step.capability]) for step in plan.steps)
    return {step.id: step.agent if match is None else match.card.name for step, match in who}


def _able(plan: Plan, cards: Mapping[str, Card]) -> dict[str, list[Match]]:
    """Find for each capability that a step is for those who have it. The cards are read once for all."""
    wanted = {step.capability for step in plan.steps if not step.agent}
    index = Index(cards.values() if wanted else ())
    return {capability: index.rank(capability) for capability in wanted}


def identities(plan: Plan, who: Mapping[str, str], told: object = None) -> dict[str, str]:
    """Return for each step a digest of all that it asks: its text, who does it, the same of its dependencies, and what
    every member is `told`. By it a step is recognised when the plan is run again."""
    names: dict[str, str] = {}
    steps = {step.id: step for step in plan.steps}
    for id_ in in_order(plan):
        step = steps[id_]
        asked = (step.title, step.description, step.payload, step.schema, step.context, step.memory_scope)
        names[id_] = arguments((id_, who[id_], asked, [names[before] for before in step.after], told))
    return names


def in_order(plan: Plan) -> list[str]:
    """Sort the steps so that each comes after its dependencies; those in or behind a circle are left out."""
    missing = {step.id: len(step.after) for step in plan.steps}
    after = followers(plan)
    order = [id_ for id_, count in missing.items() if count == 0]
    for done in order:  # it grows meanwhile
        for id_ in after[done]:
            missing[id_] -= 1
            if missing[id_] == 0:
                order.append(id_)
    return order


def cycle(plan: Plan) -> list[str]:
    """Find steps that wait for each other in a circle, in the order of the plan; none if every step can start."""
    fine = set(in_order(plan))
    stuck = {step.id: step for step in plan.steps if step.id not in fine}
    circle = _circle(stuck) if stuck else set[str]()
    return [id_ for id_ in stuck if id_ in circle]


def _circle(stuck: Mapping[str, Step]) -> set[str]:
    """Follow the steps that are stuck: each waits for another that is stuck, so this ends in a circle."""
    trail: dict[str, None] = {}
    id_ = next(iter(stuck))
    while id_ not in trail:
        trail[id_] = None
        id_ = next(before for before in stuck[id_].after if before in stuck)
    path = list(trail)
    return set(path[path.index(id_) :])


def followers(plan: Plan) -> dict[str, list[str]]:
    """List for each step those that wait for it, in the order of the plan."""
    after: dict[str, list[str]] = {step.id: [] for step in plan.steps}
    for step in plan.steps:
        for before in step.after:
            after[before].append(step.id)
    return after


def sources(step: Step, steps: Mapping[str, Step]) -> list[str]:
    """List whose results a step sees: its dependencies in the order given, with "transitive" theirs before them."""
    if step.context == "direct":
        return list(step.after)
    order: dict[str, None] = {}
    waiting = [(id_, False) for id_ in reversed(step.after)]
    while waiting:
        id_, seen = waiting.pop()
        if seen:
            order.setdefault(id_)
        elif id_ not in order:
            waiting.append((id_, True))
            waiting.extend((before, False) for before in reversed(steps[id_].after))
    return list(order)


def drafted(data: Json, *, goal: str) -> Plan:
    """Read a plan that a model wrote: what is to be done, by whom, and in which order. It has no words for what a step
    sees, may do or must answer."""
    data = checked(data, "the plan")
    if not isinstance(data, dict) or not isinstance(data.get("steps"), list):
        raise BadInput('the answer must be a JSON object with a list "steps"')
    steps = cast("list[Json]", data["steps"])
    if strange := sorted(data.keys() - {"steps", "goal"}):
        raise BadInput(f"the plan has no {shown(strange[0])}; it has only steps")
    if len(steps) > DRAFT_LIMIT:
        raise BadInput(f"the plan has {len(steps):,} steps and at most {DRAFT_LIMIT} are allowed")
    return Plan(tuple(read_step(step, number, _DRAFTED, _NOT_ITS_OWN) for number, step in enumerate(steps, 1)), goal)


_DRAFTED = ("id", "title", "description", "agent", "capability", "after")
_NOT_ITS_OWN = ", and what it may see, may do and must answer is not the plan's to say"


def read_step(data: Json, number: int, names: tuple[str, ...], why: str = "") -> Step:
    """Read a step that may have these parts; `why` says why no others."""
    if not isinstance(data, dict):
        raise BadInput(f"step {number} is an object, not {shown(data)}")
    if strange := sorted(data.keys() - set(names)):
        raise BadInput(f"step {number} may not have {shown(strange[0])}; a step has {', '.join(names)}{why}")
    for name in ("id", "title"):
        if name not in data:
            raise BadInput(f"step {number} has no {name}")
    return Step(**cast("dict[str, Any]", data))


def _doubles(plan: Plan) -> list[str]:
    seen: set[str] = set()
    wrong: list[str] = []
    for step in plan.steps:
        if step.id in seen:
            wrong.append(f"two steps have the id {shown(step.id)}")
        seen.add(step.id)
    return wrong


def _dependency_faults(step: Step, ids: set[str]) -> list[str]:
    wrong = [
        f"step {shown(step.id)} waits for {shown(before)}, which is not in the plan"
        for before in step.after
        if before not in ids
    ]
    if step.id in step.after:
        wrong.append(f"step {shown(step.id)} waits for itself")
    if not isinstance(step.memory_scope, str):
        wrong += [
            f"step {shown(step.id)} is to see a summary of {shown(one)}, which is not in the plan"
            for one in step.memory_scope
            if one not in ids
        ]
    return wrong


def _assignee_faults(step: Step, cards: Mapping[str, Card], able: Mapping[str, Sequence[Match]]) -> list[str]:
    where = f"step {shown(step.id)}"
    if not step.agent and not step.capability:
        return [f"{where} names neither an agent nor a capability"]
    if step.agent and step.agent not in cards:
        who = ", ".join(sorted(cards)) or "no one"
        return [f"{where} is for '{step.agent}', who cannot be asked; there is {who}"]
    unable = _unable(step, cards, able) if step.capability else ""
    return [f"{where} needs {shown(step.capability)}, and {unable}"] if unable else []


def _unable(step: Step, cards: Mapping[str, Card], able: Mapping[str, Sequence[Match]]) -> str:
    """Say why nobody can be given a step for what it needs; nothing if somebody can."""
    if step.agent:
        return "" if suits(step.capability, cards[step.agent]) else f"'{step.agent}' cannot do that"
    matches = able[step.capability]
    if choice(matches) is not None:
        return ""
    near = ", ".join(match.card.name for match in matches[:3])
    return f"it is not clear who does that; name one: {near}" if matches else "no one can do that"


def _memory_scope(given: object) -> MemoryScope | tuple[str, ...]:
    if given in ("own", "all"):
        return given
    return _ids(given, "memory_scope is 'own', 'all' or a list of step ids")


def _ids(given: object, what: str) -> tuple[str, ...]:
    if isinstance(given, str) or not isinstance(given, Iterable):
        raise BadInput(f"{what}, not {shown(given)}")
    ids = [plain(item, "a step's id", 64) for item in cast("Iterable[object]", given)]
    # A set has no order, and what a step is told has one.
    return tuple(dict.fromkeys(sorted(ids) if isinstance(given, set | frozenset) else ids))


def _steps(given: object) -> tuple[Step, ...]:
    steps = cast("Sequence[object]", given)
    if not isinstance(given, list | tuple) or not all(isinstance(step, Step) for step in steps):
        raise BadInput(f"a plan has a list of Step(...), not {shown(steps)}")
    return tuple(cast("Sequence[Step]", steps))


def _one_of(given: object, known: tuple[str, ...], what: str) -> None:
    if given not in known:
        raise BadInput(f"{what} is {' or '.join(repr(word) for word in known)}, not {shown(given)}")


def structured(result: Json, where: str) -> Json:
    """Check a structured result, already read if it came as text: JSON within its limit, or an error."""
    return checked(result, where, RESULT_LIMIT)
