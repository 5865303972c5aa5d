"""The tree of a run, folded from its events only."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Final, cast

from remit.core import lifecycle
from remit.core.events import Event, read
from remit.core.kinds.money import SPENDS, spent_in
from remit.core.kinds.tasks import ClaimData, EndData, FirstData, Handed, HopRefused, Retrying, TurnData
from remit.core.kinds.workspace import KeptTask, PlanStarted, StepEnded, WorkLeft, as_first_recorded, kept_task
from remit.core.lifecycle import progress_text
from remit.core.receipt import Slice
from remit.core.records import NamedTuple
from remit.core.remit import task_of
from remit.core.values import Json, encode, summary
from remit.errors import NotFound
from remit.report import questions, receipts, uses
from remit.report.questions import AskedPerson
from remit.report.receipts import Receipt, Withheld
from remit.report.uses import ASKING_VERBS, ModelUse, ToolUse

STEP_STATES: Final = ("completed", "failed", "skipped", "running", "waiting")
GONE: Final = "its process was gone"
WAYS: Final = ("delegate", "submit", "spawn", "async")


@dataclass(frozen=True, slots=True)
class Refusal:
    """A refused hop; it stays visible. `asker` held the task then, and `turn` is how often the task had been handed
    over."""

    at: int
    to: str
    task: str
    rule: str
    sentence: str
    handoff: bool = False
    turn: int = 0
    asker: str = ""


class HandoffMade(NamedTuple):
    """The end of a turn that handed the task over: to one agent, or in parts to several. `elapsed` is the duration of
    the turn in microseconds. If a person sent the result back to the same agent, `sent_back` is that person."""

    at: int
    sender: str
    to: tuple[str, ...]
    elapsed: int = 0
    phase: str = ""
    receipt: Receipt = {}  # noqa: RUF012 - never changed
    parallel: bool = False
    sent_back: str = ""


class Retry(NamedTuple):
    """An attempt that failed and was retried: its error, its receipt and its usage. `turn` is as in `Refusal`."""

    at: int
    attempt: int
    agent: str
    error: str
    receipt: Receipt = {}  # noqa: RUF012 - never changed
    turn: int = 0


@dataclass(slots=True)
class PlanStep:
    """A step of a plan. `task` is its latest task, `tries` the number of its tasks; without tries, the task is that of
    an earlier run whose result counts. `reason` says why it failed or was skipped.

    `planner` held the task when the plan was made; the task may have been handed over since.
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
    """One task in the tree of a run. `agent` is its present holder, `first` the agent that was asked.

    `turn` is how often its asker's task had been handed over when it was requested; `step` is the plan step it carries
    out. `asked_how` is delegate, submit, spawn or async, and `asked_at` the time of that. `started_at` is when an agent
    first started it, and equals `asked_at` before. `attempts` is the number of the present attempt, 0 before the first.

    `tokens` and `credits` are its own usage, without subtasks. `questions` are its questions to people, `models` the
    models it asked, `tools` the tools these called. `left_over` is work of earlier attempts that the completed attempt
    never requested. `progress` is what its agent reported last, if it runs or did not complete.

    A tree grows with its run: a node changes as long as events are fed to its `Growing`.
    """

    id: str
    agent: str
    task: str
    started_at: int
    until: int
    state: str = "running"
    ended_at: int | None = None
    result: Json = None
    error: str = ""
    sees: list[str] = field(default_factory=list[str])
    receipt: Receipt = field(default_factory=dict[str, Json])
    children: "list[Node]" = field(default_factory=list["Node"])
    refusals: list[Refusal] = field(default_factory=list[Refusal])
    trail: list[HandoffMade] = field(default_factory=list[HandoffMade])
    plans: list[list[PlanStep]] = field(default_factory=list[list[PlanStep]])
    step: str = ""
    title: str = ""
    tokens: int = 0
    turn: int = 0
    asked_at: int = 0
    asked_how: str = "delegate"
    attempts: int = 1
    retries: list[Retry] = field(default_factory=list[Retry])
    more_refused: int = 0
    credits: int = 0
    questions: list[AskedPerson] = field(default_factory=list[AskedPerson])
    models: list[ModelUse] = field(default_factory=list[ModelUse])
    tools: list[ToolUse] = field(default_factory=list[ToolUse])
    left_over: list[str] = field(default_factory=list[str])
    progress: str = ""

    @property
    def drawn_tools(self) -> list[ToolUse]:
        """The tool calls to draw: without those that the tree shows as a task or as a refused hop."""
        told = {summary(refusal.sentence) for refusal in self.refusals}
        asked_in_vain = any(child.error for child in self.children)
        return [use for use in self.tools if not _is_drawn_as_hop(use, told, asked_in_vain)]

    @property
    def open_questions(self) -> list[AskedPerson]:
        """The unanswered questions."""
        return [question for question in self.questions if question.is_open]

    @property
    def begun(self) -> bool:
        return self.attempts > 0

    @property
    def first(self) -> str:
        return self.trail[0].sender if self.trail else self.agent

    @property
    def turn_began(self) -> int:
        return self.trail[-1].at if self.trail else self.started_at

    def elapsed(self, now: int) -> int:
        """Return for how many microseconds the task has been running; time in the queue does not count."""
        return (self.ended_at if self.ended_at is not None else now) - self.started_at if self.begun else 0

    def queued(self, now: int) -> int:
        """Return for how many microseconds the task waited in the queue before its first start."""
        if self.begun:
            return self.started_at - self.asked_at
        return (self.ended_at if self.ended_at is not None else now) - self.asked_at

    def walk(self) -> "Iterator[Node]":
        """Yield every task in tree order; without recursion, because a run may be deeper than Python's stack."""
        waiting: list[Node] = [self]
        while waiting:
            node = waiting.pop()
            yield node
            waiting.extend(reversed(node.children))

    @property
    def saw(self) -> list[Slice]:
        """The context that the last turn saw, with reasons."""
        return receipts.saw(self.receipt)

    @property
    def withheld(self) -> list[Withheld]:
        """The context that was withheld from it, with reasons."""
        return receipts.withheld(self.receipt)


class Growing:
    """The tree of a run while it grows: feed it events in order and read `root` at any time."""

    def __init__(self) -> None:
        self.root: Node | None = None
        self._nodes: dict[str, Node] = {}
        self._planned: dict[tuple[str, str], PlanStep] = {}  # by the task whose plan it is, and its id
        self._steps: dict[str, PlanStep] = {}  # by the task that carries it out
        self._kept: dict[tuple[str, str], KeptTask] = {}  # steps whose results a fork took over, by origin and id

    def add(self, event: Event) -> None:
        node = self._nodes.get(event.task)
        if event.kind in lifecycle.TRANSITIONS[lifecycle.START]:
            if node is None:
                self._start(_node(event), read(event, FirstData)["parent"])
            return
        if node is not None and event.kind in _AFTERWARDS:
            _AFTERWARDS[event.kind](node, event)
            return
        # `remit doctor` reports a damaged journal. Here, show a task's first end and ignore later events.
        if node is None or node.state in lifecycle.TERMINAL:
            return
        if event.kind in lifecycle.MOVES:
            self._move(node, event)
        elif event.kind == "plan.started":
            node.plans.append([self._as_kept(step, event) for step in _plan(event)])
            self._planned.update({(node.id, step.id): step for step in node.plans[-1]})
        elif event.kind == "work.kept":
            self._keep(event)
        elif event.kind == "step.ended":
            self._end_unstarted(node, read(event, StepEnded))
        elif event.kind in _NOTES:
            _NOTES[event.kind](node, event)

    def _move(self, node: Node, event: Event) -> None:
        after = lifecycle.TRANSITIONS[node.state].get(event.kind)
        if after is None:
            return
        if event.kind in _NOTES:
            _NOTES[event.kind](node, event)
        node.state = after
        if after in lifecycle.TERMINAL:
            _end(node, event)
            if node.id in self._steps:
                _end_step(self._steps[node.id], node)

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

    def _keep(self, event: Event) -> None:
        """Remember the step whose task a fork took over from another run."""
        task, step = kept_task(event), as_first_recorded(event).data.get("step", "")
        if task is not None and step:
            self._kept[_origin(event), str(step)] = task

    def _as_kept(self, step: PlanStep, event: Event) -> PlanStep:
        """Return a step of a plan that starts, with the result that a fork took over."""
        kept = self._kept.get((_origin(event), step.id))
        if kept is not None:
            step.state, step.task = "completed" if kept["state"] == "completed" else "failed", kept["task"]
        return step

    def _end_unstarted(self, node: Node, ended: StepEnded) -> None:
        """Record the end of a step without a task: it was skipped, or a dependency failed."""
        step = self._planned.get((node.id, ended["step"]))
        if step is not None:
            step.state, step.reason = ended["state"], ended["reason"]


def _origin(event: Event) -> str:
    """Return the origin of the task that an operation belongs to."""
    return (event.op or "").partition("/")[0]


def tree(events: Iterable[Event]) -> Node | None:
    """Return the run that these events record, as a tree of tasks in the order they started. Return None if no event
    starts a task."""
    growing = Growing()
    for event in events:
        growing.add(event)
    return growing.root


def part_of(events: Iterable[Event], task: str) -> Node:
    """Return one task of a run with its subtasks; `events` are those of the run. Raise `NotFound` if they do not start
    the task."""
    root = tree(events)
    part = next((node for node in root.walk() if node.id == task), None) if root is not None else None
    if part is None:
        raise NotFound(f"the journal has nothing of task {task}; `remit doctor` says what is wrong with the store")
    return part


def result_text(node: Node) -> str:
    return node.result if isinstance(node.result, str) else encode(node.result)


# -- readers, one for each kind of event ---------------------------------------------------------------------


def _node(event: Event) -> Node:
    data = read(event, FirstData)
    state = lifecycle.lands(event.kind)
    return Node(
        id=event.task,
        agent=event.agent,
        task=task_of(data),
        started_at=event.at,
        until=data.get("until") or cast("int", data["bounds"]["deadline"]),
        sees=data["sees"],
        step=data.get("step", ""),
        state=state,
        asked_at=event.at,
        asked_how=data.get("asked_how", WAYS[0]),
        attempts=1 if state == "running" else 0,
    )


def _receipt(event: Event) -> Receipt:
    return read(event, TurnData).get("receipt", {})


def _claimed(node: Node, event: Event) -> None:
    if not node.begun:
        node.started_at = event.at
    elif node.state != "pending":  # it was not requeued: its process died first
        node.retries.append(_cut_short(node, event))
    node.attempts = read(event, ClaimData)["attempt"]  # a released attempt does not count


def _retrying(node: Node, event: Event) -> None:
    error = read(event, Retrying).get("error", "")
    node.retries.append(Retry(event.at, node.attempts, event.agent, error, _receipt(event), len(node.trail)))
    _turn_ended(node, event)


def _turn_ended(node: Node, event: Event) -> None:
    node.more_refused += read(event, TurnData).get("more_refused", 0)


def _spent(node: Node, event: Event) -> None:
    spent = spent_in(event)
    node.tokens += spent.tokens
    node.credits += spent.credits


def _asked_person(node: Node, event: Event) -> None:
    questions.take(node.questions, event)


def _asked_model(node: Node, event: Event) -> None:
    uses.add_model_call(node.models, event)


def _used_tool(node: Node, event: Event) -> None:
    node.tools.append(uses.tool_use(event, len(node.trail)))


def _is_drawn_as_hop(use: ToolUse, refused: set[str], asked_in_vain: bool) -> bool:
    if use.tool not in ASKING_VERBS:
        return False
    return {"done": True, "failed": asked_in_vain, "refused": use.result in refused}[use.outcome]


def _lost(node: Node, event: Event) -> None:
    if node.begun:
        node.retries.append(_cut_short(node, event))


def _cut_short(node: Node, event: Event) -> Retry:
    return Retry(event.at, node.attempts, event.agent, GONE, turn=len(node.trail))


def _end(node: Node, event: Event) -> None:
    data = read(event, EndData)
    node.ended_at = event.at
    node.result = data.get("result")
    node.error = data.get("error", "")
    node.progress = progress_text(**data["progress"]) if "progress" in data else ""
    node.receipt = _receipt(event)
    _turn_ended(node, event)
    told = {step["id"]: step for step in data.get("steps", ())}
    for plan in node.plans:
        for step in plan:
            if step.state == "waiting" and step.id in told:  # it was done in an earlier try
                done = told[step.id]
                step.state, step.task, step.reason = done["state"], done.get("task", ""), done.get("reason", "")
            if step.state == "waiting":  # no task is left that could start it
                step.state, step.reason = "skipped", f"the task of '{node.agent}' was over before it could start"


def _end_step(step: PlanStep, node: Node) -> None:
    """Set a running step to completed or failed, as its latest task ended."""
    if step.task == node.id and step.state == "running":
        step.state = "completed" if node.state == "completed" else "failed"
        step.reason = node.error


def _handed(node: Node, event: Event) -> None:
    data = read(event, Handed)
    to, phase = data["to"], data.get("update", {}).get("phase", "")
    elapsed = event.at - node.turn_began
    whom, several = ((to,), False) if isinstance(to, str) else (tuple(to), True)
    sent_back = (data["sent_back"]["by"] or "a person") if "sent_back" in data else ""
    node.trail.append(HandoffMade(event.at, event.agent, whom, elapsed, phase, _receipt(event), several, sent_back))
    _turn_ended(node, event)
    if not several:
        node.agent = whom[0]


def _hop_refused(node: Node, event: Event) -> None:
    data = read(event, HopRefused)
    node.refusals.append(
        Refusal(
            event.at,
            data["to"],
            data["task"],
            data["rule"],
            data["sentence"],
            handoff=data.get("handoff", False),
            turn=len(node.trail),
            asker=event.agent,
        )
    )


def _work_left(node: Node, event: Event) -> None:
    node.left_over += read(event, WorkLeft)["left"]


_NOTES: Final[dict[str, Callable[[Node, Event], None]]] = {
    "task.claimed": _claimed,
    "task.handed": _handed,
    "task.retrying": _retrying,
    "task.lost": _lost,
    "hop.refused": _hop_refused,
    "work.left": _work_left,
}
# Events that may follow a task's end: running calls are recorded and charged then, and questions
# withdrawn.
_AFTERWARDS: Final[dict[str, Callable[[Node, Event], None]]] = {
    **dict.fromkeys(sorted(SPENDS), _spent),
    **dict.fromkeys(sorted(questions.ASKING), _asked_person),
    **dict.fromkeys(sorted(uses.MODELS), _asked_model),
    **dict.fromkeys(sorted(uses.TOOLS), _used_tool),
}


def _plan(event: Event) -> list[PlanStep]:
    return [
        PlanStep(step["id"], step["title"], step["agent"], [*step["after"]], planner=event.agent)
        for step in read(event, PlanStarted)["steps"]
    ]


# -- the stays of a task -------------------------------------------------------------------------------------


Turn = tuple[int, int, int]


class Stay(NamedTuple):
    """The time during which one agent held a task. `came` is the handoff that brought it, `left` the one that passed it
    on.

    `turns` are the first and the last turn of this holder: one that sends parts out in parallel has several.
    """

    node: Node
    holder: str
    start: int
    turns: tuple[int, int]
    came: HandoffMade | None = None
    left: HandoffMade | None = None

    @property
    def state(self) -> str:
        return "handed" if self.left else self.node.state

    @property
    def receipt(self) -> dict[str, Json]:
        return self.left.receipt if self.left else self.node.receipt

    @property
    def models(self) -> list[ModelUse]:
        """The models that this holder asked."""
        return [use for use in self.node.models if use.agent == self.holder]

    @property
    def tools(self) -> list[ToolUse]:
        """The tool calls during this stay."""
        first, last = self.turns
        return [use for use in self.node.tools if first <= use.turn <= last]

    def elapsed(self, now: int) -> int:
        if self.left is not None:
            return self.left.at - self.start
        if not self.node.begun:
            return 0
        return (self.node.ended_at if self.node.ended_at is not None else now) - self.start

    def hops(self) -> list[Node | Refusal]:
        """Return the tasks that the holder requested meanwhile, and its refused hops, in order."""
        first, last = self.turns
        hops = (hop for hop in (*self.node.children, *self.node.refusals) if first <= hop.turn <= last)
        return sorted(hops, key=order)


def stays(node: Node) -> list[Stay]:
    """Return the stays of a task in order: one, and one more for each handoff to a single agent."""
    ended: list[Stay] = []
    holder, start, began, came = node.first, node.started_at, 0, None
    for at, handoff in enumerate(node.trail):
        if not handoff.parallel:
            ended.append(Stay(node, holder, start, (began, at), came, handoff))
            holder, start, began, came = handoff.to[0], handoff.at, at + 1, handoff
    return [*ended, Stay(node, holder, start, (began, len(node.trail)), came)]


def order(hop: Node | Refusal) -> Turn:
    """Return the sort key of a hop: turn, then time. A handoff and the hop after it may have the same time; the handoff
    comes first."""
    return (hop.turn, 1, hop.at if isinstance(hop, Refusal) else hop.asked_at)


def member_of(child: Node, asker: Node) -> HandoffMade | None:
    """Return the parallel handoff that created this task, or None."""
    before = asker.trail[child.turn - 1] if 0 < child.turn <= len(asker.trail) else None
    return before if before is not None and before.parallel and child.first in before.to else None
