"""Plans: steps and their dependencies. A plan is checked as a whole before its first step starts."""

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
AT_A_TIME = 5  # default number of concurrent steps
DRAFT_LIMIT = 100  # steps that a model may plan at once
RESULT_LIMIT = 65_536
_TITLE = 200


@dataclass(frozen=True, slots=True)
class Step:
    """One step of a plan, for an agent or for a capability.

    A step sees its own text and the results of the steps in `after`, nothing else. `context="transitive"` adds the
    results that those steps depended on. `memory_scope="all"` adds a summary of all results so far; only the caller of
    a plan can set it. A list of step ids adds a summary of these results; an empty list adds none. With
    `payload="structured"` the result must be JSON that matches `schema`.
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
    """Steps in any order; `after` of each step names its dependencies."""

    steps: Sequence[Step]
    goal: str = ""

    def __post_init__(self) -> None:
        object.__setattr__(self, "steps", _steps(self.steps))
        plain(self.goal, "a goal", TASK_LIMIT, empty=True)


def assigned(plan: Plan, cards: Mapping[str, Card]) -> Plan:
    """Return the plan with an agent for every step, so that every process gives a step to the same agent."""
    who = assignees(plan, cards)
    return replace(plan, steps=tuple(replace(step, agent=who[step.id]) for step in plan.steps))


def faults(plan: Plan, cards: Mapping[str, Card], *, most: int = STEP_LIMIT) -> list[str]:
    """Return everything that is wrong with a plan, or an empty list if it can start. `cards` are the agents that may be
    asked."""
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
    """Return the agent of each step: the one it names, or the clear match for its capability."""
    chosen = {capability: choice(matches) for capability, matches in _able(plan, cards).items()}
    who = ((step, None if step.agent else chosen[step.capability]) for step in plan.steps)
    return {step.id: step.agent if match is None else match.card.name for step, match in who}


def _able(plan: Plan, cards: Mapping[str, Card]) -> dict[str, list[Match]]:
    """Return the matches for each capability that the steps need. The cards are indexed once."""
    wanted = {step.capability for step in plan.steps if not step.agent}
    index = Index(cards.values() if wanted else ())
    return {capability: index.rank(capability) for capability in wanted}


def identities(plan: Plan, who: Mapping[str, str], told: object = None) -> dict[str, str]:
    """Return for each step a digest of its request: its text, its agent, the digests of its dependencies, and the text
    that every member is `told`. The digest identifies the step when the plan runs again."""
    names: dict[str, str] = {}
    steps = {step.id: step for step in plan.steps}
    for id_ in in_order(plan):
        step = steps[id_]
        asked = (step.title, step.description, step.payload, step.schema, step.context, step.memory_scope)
        names[id_] = arguments((id_, who[id_], asked, [names[before] for before in step.after], told))
    return names


def in_order(plan: Plan) -> list[str]:
    """Return the step ids so that each comes after its dependencies; steps in or behind a cycle are left out."""
    missing = {step.id: len(step.after) for step in plan.steps}
    after = followers(plan)
    order = [id_ for id_, count in missing.items() if count == 0]
    for done in order:  # `order` grows during the loop
        for id_ in after[done]:
            missing[id_] -= 1
            if missing[id_] == 0:
                order.append(id_)
    return order


def cycle(plan: Plan) -> list[str]:
    """Return the steps of a dependency cycle, in the order of the plan; empty if there is none."""
    fine = set(in_order(plan))
    stuck = {step.id: step for step in plan.steps if step.id not in fine}
    circle = _circle(stuck) if stuck else set[str]()
    return [id_ for id_ in stuck if id_ in circle]


def _circle(stuck: Mapping[str, Step]) -> set[str]:
    """Return a cycle among steps that cannot start. Each of them waits for another of them, so following the
    dependencies ends in a cycle."""
    trail: dict[str, None] = {}
    id_ = next(iter(stuck))
    while id_ not in trail:
        trail[id_] = None
        id_ = next(before for before in stuck[id_].after if before in stuck)
    path = list(trail)
    return set(path[path.index(id_) :])


def followers(plan: Plan) -> dict[str, list[str]]:
    """Return for each step the steps that depend on it, in the order of the plan."""
    after: dict[str, list[str]] = {step.id: [] for step in plan.steps}
    for step in plan.steps:
        for before in step.after:
            after[before].append(step.id)
    return after


def sources(step: Step, steps: Mapping[str, Step]) -> list[str]:
    """Return the steps whose results a step sees: its dependencies in the order given; with "transitive", theirs before
    them."""
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
    """Return the plan that a model wrote: steps, agents and order. A model cannot set what a step sees, what it may do
    or which form its result has. Raise `BadInput` for anything else."""
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
    """Return a step from JSON with the allowed fields `names`; `why` explains in the error why no others are
    allowed."""
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
    """Return why no agent can be assigned to a step, or "" if one can."""
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
    # Sort a set: the prompt of a step must be the same in every process.
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
    """Return a structured result, already parsed if it came as text. Raise `BadInput` if it is not JSON or too
    large."""
    return checked(result, where, RESULT_LIMIT)
