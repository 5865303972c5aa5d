"""Plans: steps and their dependencies, which of them may start, and the plan or team that a task carries out."""

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import fields, replace
from typing import Any, Final, Literal, NotRequired, Protocol, TypeAlias, cast

from remit.core.card import Card
from remit.core.checks import between, of_type
from remit.core.identity import arguments
from remit.core.match import Index, Match, choice, suits
from remit.core.records import NamedTuple, TypedDict, dataclass
from remit.core.values import TASK_LIMIT, Json, canonical, checked, plain, shown
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
    `payload="structured"` the result must be JSON that matches `schema`. `data` is a JSON value for the agent, as
    `turn.data`.
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
    data: Any = None

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
        if self.data is not None:
            put(self, "data", checked(self.data, f"the data of step {shown(self.id)}", TASK_LIMIT))
        if self.schema is not None:
            of_type(self.schema, Mapping, "a schema is an object")
            if self.payload != "structured":
                raise BadInput(f"step {shown(self.id)} has a schema, so its payload must be 'structured'")

    def outline(self) -> dict[str, Json]:
        """Return the step as events of a plan have it: without its text and its data."""
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
        if step.data is not None:
            asked = (*asked, step.data)
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
        raise BadInput(f"the plan takes no {shown(strange[0])}, only steps")
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


StepState = Literal["waiting", "running", "completed", "failed", "skipped"]


class StepEnd(NamedTuple):
    """A step that will not run, and why."""

    id: str
    state: StepState
    reason: str


class StepSchedule:
    """The progress of a plan. Report what happened; each method returns what follows. A step starts as soon as its own
    dependencies are done."""

    def __init__(self, plan: Plan) -> None:
        self._waits_for = {step.id: len(step.after) for step in plan.steps}
        self._followers = followers(plan)
        self.states: dict[str, StepState] = dict.fromkeys(self._waits_for, "waiting")

    def first(self) -> list[str]:
        return [id_ for id_, count in self._waits_for.items() if count == 0]

    def start(self, step: str) -> None:
        self.states[step] = "running"

    def complete(self, step: str) -> list[str]:
        """Mark a step as completed. Return the steps that may start now."""
        self.states[step] = "completed"
        ready: list[str] = []
        for id_ in self._followers[step]:
            self._waits_for[id_] -= 1
            if self._waits_for[id_] == 0 and self.states[id_] == "waiting":
                ready.append(id_)
        return ready

    def fail(self, step: str) -> list[StepEnd]:
        """Mark a step as failed, and with it every waiting step that depends on it, directly or not. Return these
        dependent steps."""
        return self._give_up(step, "failed", "failed")

    def skip(self, step: str) -> list[StepEnd]:
        return self._give_up(step, "skipped", "was skipped")

    def skip_rest(self, reason: str) -> list[StepEnd]:
        """Start no more steps; running ones may finish. Return the steps that will not run."""
        waiting = [id_ for id_, state in self.states.items() if state == "waiting"]
        for id_ in waiting:
            self.states[id_] = "skipped"
        return [StepEnd(id_, "skipped", reason) for id_ in waiting]

    def _give_up(self, step: str, state: StepState, word: str) -> list[StepEnd]:
        self.states[step] = state
        ended: list[StepEnd] = []
        pending = [step]
        while pending:
            cause = pending.pop()
            for id_ in self._followers[cause]:
                if self.states[id_] == "waiting":
                    self.states[id_] = state
                    ended.append(StepEnd(id_, state, f'dependency "{cause}" {word}'))
                    pending.append(id_)
        return ended


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
    data: NotRequired[Any]


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


def plan_from_json(data: Json) -> Plan:
    """Return a plan that a caller wrote as JSON: an object with `steps`, each with the fields of a `Step` that it
    needs, and an optional `goal`."""
    data = checked(data, "a plan")
    if not isinstance(data, dict) or not isinstance(data.get("steps"), list):
        raise BadInput('a plan is a JSON object with a list "steps"')
    if strange := sorted(data.keys() - PlanWhole.__annotations__.keys()):
        raise BadInput(f"a plan takes steps and a goal, and no {shown(strange[0])}")
    steps = enumerate(cast("list[Json]", data["steps"]), 1)
    return Plan(tuple(read_step(step, number, _PARTS) for number, step in steps), cast("str", data.get("goal", "")))


_PARTS: Final = tuple(field.name for field in fields(Step))

# Returns whether a step may start: True, False, or "ask" for a person.
ApproveSteps: TypeAlias = Callable[[Step], Awaitable[bool | str] | bool | str]


class Signal(Protocol):
    """An event such as `anyio.Event()`, as far as a plan reads it."""

    def is_set(self) -> bool: ...


class PlanOptions(NamedTuple):
    """How a plan is run. `concurrency` is the number of steps that run at once. With `reveal`, members are given the
    goal and the roster. `approve_steps` is called before each step, or is True if a person is asked. When `abort` is
    set, no more steps start."""

    concurrency: int = AT_A_TIME
    reveal: bool = False
    approve_steps: ApproveSteps | bool | None = None
    abort: Signal | None = None


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
