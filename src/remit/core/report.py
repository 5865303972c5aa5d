"""Reports: what a run looks like, folded from its events and from nothing else."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass, field
from typing import Final, NamedTuple, cast

from remit.core import lifecycle
from remit.core.events import Event
from remit.core.values import Json, encode

STEP_STATES: Final = ("completed", "failed", "skipped", "running", "waiting")


@dataclass(slots=True)
class Refusal:
    """A hop that was not allowed; it stays visible. `turn` is how often the task had been handed over by then."""

    at: int
    to: str
    task: str
    rule: str
    sentence: str
    handoff: bool = False
    turn: int = 0


class Handoff(NamedTuple):
    """The end of a turn that passed the task on: to one agent, or parts of it to several at once."""

    at: int
    sender: str
    to: tuple[str, ...]
    elapsed: int = 0
    phase: str = ""
    receipt: dict[str, Json] = {}  # noqa: RUF012 - never changed
    parallel: bool = False


@dataclass(slots=True)
class PlanStep:
    """A step of a plan. `task` is its latest task, of `tries`; `reason` says why it failed or was skipped.

    `planner` is who held the task when it was planned; it may have changed hands since.
    """

    id: str
    title: str
    agent: str
    after: list[str]
    state: str = "waiting"
    reason: str = ""
    task: str = ""
    tries: int = 0
    planner: str = ""


@dataclass(slots=True)
class Node:
    """One task in the tree of a run. `agent` is its present holder, `first` the one who was asked.

    `turn` is how often its asker's task had been handed over when it was asked, `step` the step it carries out.
    """

    id: str
    agent: str
    task: str
    started_at: int
    until: int
    status: str = "running"
    ended_at: int | None = None
    result: Json = None
    error: str = ""
    sees: list[str] = field(default_factory=list[str])
    receipt: dict[str, Json] = field(default_factory=dict[str, Json])
    children: "list[Node]" = field(default_factory=list["Node"])
    refusals: list[Refusal] = field(default_factory=list[Refusal])
    trail: list[Handoff] = field(default_factory=list[Handoff])
    plans: list[list[PlanStep]] = field(default_factory=list[list[PlanStep]])
    step: str = ""
    title: str = ""
    tokens: int = 0
    turn: int = 0

    @property
    def first(self) -> str:
        return self.trail[0].sender if self.trail else self.agent

    @property
    def turn_began(self) -> int:
        return self.trail[-1].at if self.trail else self.started_at

    def elapsed(self, now: int) -> int:
        return (self.ended_at if self.ended_at is not None else now) - self.started_at

    def walk(self) -> "Iterator[Node]":
        """Every task in tree order; without recursion, because a run may be deeper than Python's stack."""
        waiting: list[Node] = [self]
        while waiting:
            node = waiting.pop()
            yield node
            waiting.extend(reversed(node.children))

    @property
    def saw(self) -> list[list[Json]]:
        """Slices as the receipt lists them: what, why, tokens, version, digest."""
        return cast("list[list[Json]]", self.receipt.get("saw", []))

    @property
    def withheld(self) -> list[list[str]]:
        """What was withheld, and why."""
        return cast("list[list[str]]", self.receipt.get("withheld", []))


@dataclass(slots=True)
class Tally:
    """Figures of a run; each is counted at exactly one node, so sums match everywhere.

    `handoffs` has the parallel ones too, after which a task may still be in the same hands.
    """

    tasks: int = 0
    states: Counter[str] = field(default_factory=Counter[str])
    refused: int = 0
    depth: int = 0
    tokens_seen: int = 0
    handoffs: int = 0
    steps: Counter[str] = field(default_factory=Counter[str])


class Growing:
    """A run's tree while it grows: feed it events in order and look at `root` at any time."""

    def __init__(self) -> None:
        self.root: Node | None = None
        self._nodes: dict[str, Node] = {}
        self._planned: dict[tuple[str, str], PlanStep] = {}  # by the task whose plan it is, and its id
        self._steps: dict[str, PlanStep] = {}  # by the task that carries it out

    def add(self, event: Event) -> None:
        if event.kind == "task.started":
            self._start(_node(event), cast("str", event.data["parent"]))
            return
        node = self._nodes.get(event.task)
        # A damaged journal is for the doctor to name; a report shows the first end a task had, and nothing after it.
        if node is None or node.status in lifecycle.TERMINAL:
            return
        if event.kind in lifecycle.ENDS:
            _end(node, event)
            if node.id in self._steps:
                _end_step(self._steps[node.id], node)
        elif event.kind == "plan.started":
            node.plans.append(_plan(event))
            self._planned.update({(node.id, step.id): step for step in node.plans[-1]})
        elif event.kind == "step.ended":
            _give_up(self._planned.get((node.id, cast("str", event.data["step"]))), event)
        elif event.kind in _NOTES:
            _NOTES[event.kind](node, event)

    def _start(self, node: Node, parent: str) -> None:
        self._nodes[node.id] = node
        above = self._nodes.get(parent)
        if above is not None:
            node.turn = len(above.trail)
            above.children.append(node)
            step = self._planned.get((above.id, node.step))
            if step is not None:
                step.state, step.reason, step.task, step.tries = "running", "", node.id, step.tries + 1
                node.title = step.title
                self._steps[node.id] = step
        elif self.root is None:
            self.root = node


def tree(events: Iterable[Event]) -> Node | None:
    """The run as a tree of tasks, in the order they started; None if there is no such run."""
    growing = Growing()
    for event in events:
        growing.add(event)
    return growing.root


def members(events: Iterable[Event]) -> frozenset[str]:
    """Everyone who has held a task of the run."""
    found: set[str] = set()
    for event in events:
        if event.kind == "task.started":
            found.add(event.agent)
        elif event.kind == "task.handed" and isinstance(event.data["to"], str):
            found.add(event.data["to"])
    return frozenset(found)


def tokens_used(events: Iterable[Event]) -> int:
    """What the agents of the run said they used; each turn says it once, at its end."""
    return sum(cast("int", event.data.get("tokens", 0)) for event in events)


def tally(root: Node) -> Tally:
    found = Tally()
    level = [root]
    while level:
        for node in level:
            found.tasks += 1
            found.refused += len(node.refusals)
            found.tokens_seen += tokens_seen(node)
            found.states[node.status] += 1
            found.handoffs += len(node.trail)
            found.steps.update(step.state for plan in node.plans for step in plan)
        level = [child for node in level for child in node.children]
        found.depth += bool(level)
    return found


def tokens_seen(node: Node) -> int:
    """What its turns saw, whoever's they were."""
    receipts = (node.receipt, *(handoff.receipt for handoff in node.trail))
    return sum(cast("int", receipt.get("tokens", 0)) for receipt in receipts)


def sentence(root: Node) -> str:
    """The run in one plain sentence."""
    found = tally(root)
    parts = _opening(root)
    moved = sum(not handoff.parallel for node in root.walk() for handoff in node.trail)
    if moved:
        parts.append(f"changed hands {_count(moved, 'time')}")
    if found.steps:
        parts.append(steps_sentence(found.steps))
    parts += [
        f"{_count(found.states[state], 'task')} {state}" for state in ("failed", "cancelled") if found.states[state]
    ]
    parts += _refused(root)
    working = [node.agent for node in root.walk() if _at_work(node)]
    if working:
        parts.append(f"{', '.join(working[:3])} still working")
    return "; ".join(parts)


def steps_sentence(states: Counter[str]) -> str:
    """3 of 5 steps completed, 1 failed, 1 skipped"""
    first, *others = STEP_STATES
    parts = [f"{states[first]:,} of {_count(states.total(), 'step')} completed"]
    parts += [f"{states[state]:,} {state}" for state in others if states[state]]
    return ", ".join(parts)


def _opening(root: Node) -> list[str]:
    """Who had the task, and how many were asked."""
    asked = len({child.first for child in root.children})
    if not root.trail:
        return [f"{root.agent} asked {_count(asked, 'agent')}" if asked else f"{root.agent} worked alone"]
    verb = "holds it" if root.status == "running" else "ended it"
    who = f"{root.first} began and {'' if root.agent == root.first else f'{root.agent} '}{verb}"
    return [who, f"{_count(asked, 'agent')} asked"] if asked else [who]


def _refused(root: Node) -> list[str]:
    """What was refused, delegations and handoffs apart, with the rules."""
    found = [refusal for node in root.walk() for refusal in node.refusals]
    parts: list[str] = []
    for word, handoff in (("delegation", False), ("handoff", True)):
        rules = [refusal.rule for refusal in found if refusal.handoff is handoff]
        if rules:
            parts.append(f"{_count(len(rules), word)} refused ({', '.join(sorted(set(rules)))})")
    return parts


def _at_work(node: Node) -> bool:
    """Running, and not merely waiting for someone it asked."""
    return node.status == "running" and all(child.status != "running" for child in node.children)


def node_data(root: Node) -> dict[str, Json]:
    """The tree for programs."""
    made: dict[str, dict[str, Json]] = {}
    for node in root.walk():
        made[node.id] = _flat(node)
    for node in root.walk():
        made[node.id]["children"] = [made[child.id] for child in node.children]
    return made[root.id]


def _flat(node: Node) -> dict[str, Json]:
    return {
        "id": node.id,
        "agent": node.agent,
        "first": node.first,
        "task": node.task,
        "status": node.status,
        "started_at": node.started_at,
        "ended_at": node.ended_at,
        "result": node.result,
        "error": node.error,
        "sees": list(node.sees),
        "receipt": node.receipt,
        "refusals": [asdict(refusal) for refusal in node.refusals],
        "trail": [{**handoff._asdict(), "to": list(handoff.to)} for handoff in node.trail],
        "plans": [[asdict(step) for step in plan] for plan in node.plans],
        "step": node.step,
        "tokens": node.tokens,
        "turn": node.turn,
    }


def result_text(node: Node) -> str:
    return node.result if isinstance(node.result, str) else encode(node.result)


def _node(event: Event) -> Node:
    bounds = cast("dict[str, int]", event.data["bounds"])
    return Node(
        id=event.task,
        agent=event.agent,
        task=cast("str", event.data["task"]),
        started_at=event.at,
        until=bounds["deadline"],
        sees=cast("list[str]", event.data["sees"]),
        step=cast("str", event.data.get("step", "")),
    )


def _end(node: Node, event: Event) -> None:
    node.status = lifecycle.after(node.status, event.kind)
    node.ended_at = event.at
    node.result = event.data.get("result")
    node.error = cast("str", event.data.get("error", ""))
    node.receipt = cast("dict[str, Json]", event.data.get("receipt", {}))
    node.tokens += cast("int", event.data.get("tokens", 0))
    for plan in node.plans:
        for step in plan:
            if step.state == "waiting":  # nobody is left who could start it
                step.state, step.reason = "skipped", f"the task of '{node.agent}' was over before it could start"


def _end_step(step: PlanStep, node: Node) -> None:
    """A step is what its latest task is."""
    if step.task == node.id and step.state == "running":
        step.state = "completed" if node.status == "completed" else "failed"
        step.reason = node.error


def _handed(node: Node, event: Event) -> None:
    to = event.data["to"]
    update = cast("dict[str, str]", event.data.get("update", {}))
    receipt = cast("dict[str, Json]", event.data.get("receipt", {}))
    whom = (to,) if isinstance(to, str) else tuple(cast("list[str]", to))
    elapsed = event.at - node.turn_began
    several = not isinstance(to, str)
    node.trail.append(Handoff(event.at, event.agent, whom, elapsed, update.get("phase", ""), receipt, several))
    node.tokens += cast("int", event.data.get("tokens", 0))
    if not several:
        node.agent = whom[0]


def _hop_refused(node: Node, event: Event) -> None:
    data = cast("dict[str, str]", event.data)
    handoff = event.data.get("handoff") is True
    node.refusals.append(
        Refusal(event.at, data["to"], data["task"], data["rule"], data["sentence"], handoff, len(node.trail))
    )


_NOTES: Final[dict[str, Callable[[Node, Event], None]]] = {"task.handed": _handed, "hop.refused": _hop_refused}


def _plan(event: Event) -> list[PlanStep]:
    steps = cast("list[dict[str, str]]", event.data["steps"])
    return [
        PlanStep(one["id"], one["title"], one["agent"], list(cast("list[str]", one["after"])), planner=event.agent)
        for one in steps
    ]


def _give_up(step: PlanStep | None, event: Event) -> None:
    data = cast("dict[str, str]", event.data)
    if step is not None:
        step.state, step.reason = data["state"], data["reason"]


def _count(number: int, word: str) -> str:
    return f"{number:,} {word}" if number == 1 else f"{number:,} {word}s"
