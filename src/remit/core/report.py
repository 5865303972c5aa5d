"""Reports: what a run looks like, folded from its events and from nothing else."""

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import cast

from remit.core import lifecycle
from remit.core.events import Event
from remit.core.values import Json, encode


@dataclass(slots=True)
class Refusal:
    """A hop that was not allowed; it stays visible."""

    at: int
    to: str
    task: str
    rule: str
    sentence: str


@dataclass(slots=True)
class Node:
    """One task in the tree of a run."""

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
    """Figures of a run; each is counted at exactly one node, so sums match everywhere."""

    tasks: int = 0
    states: Counter[str] = field(default_factory=Counter[str])
    refused: int = 0
    depth: int = 0
    tokens_seen: int = 0


class Growing:
    """A run's tree while it grows: feed it events in order and look at `root` at any time."""

    def __init__(self) -> None:
        self.root: Node | None = None
        self._nodes: dict[str, Node] = {}

    def add(self, event: Event) -> None:
        if event.kind == "task.started":
            self._start(_node(event), cast("str", event.data["parent"]))
            return
        node = self._nodes.get(event.task)
        if node is None:
            return
        if event.kind in lifecycle.ENDS:
            _end(node, event)
        elif event.kind == "hop.refused":
            node.refusals.append(_refusal(event))

    def _start(self, node: Node, parent: str) -> None:
        self._nodes[node.id] = node
        above = self._nodes.get(parent)
        if above is not None:
            above.children.append(node)
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
    return sum(cast(int, event.data.get("tokens", 0)) for event in events)


def tally(root: Node) -> Tally:
    found = Tally()
    level = [root]
    while level:
        for node in level:
            found.tasks += 1
            found.refused += len(node.refusals)
            found.tokens_seen += cast("int", node.receipt.get("tokens", 0))
            found.states[node.status] += 1
        level = [child for node in level for child in node.children]
        found.depth += bool(level)
    return found


def sentence(root: Node) -> str:
    """The run in one plain sentence."""
    found = tally(root)
    asked = len({child.agent for child in root.children})
    parts = [f"{root.agent} asked {_count(asked, 'agent')}" if asked else f"{root.agent} worked alone"]
    parts += [
        f"{_count(found.states[state], 'task')} {state}" for state in ("failed", "cancelled") if found.states[state]
    ]
    rules = sorted({refusal.rule for node in root.walk() for refusal in node.refusals})
    if rules:
        parts.append(f"{_count(found.refused, 'delegation')} refused ({', '.join(rules)})")
    working = [node.agent for node in root.walk() if _at_work(node)]
    if working:
        parts.append(f"{', '.join(working[:3])} still working")
    return "; ".join(parts)


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
        "task": node.task,
        "status": node.status,
        "started_at": node.started_at,
        "ended_at": node.ended_at,
        "result": node.result,
        "error": node.error,
        "sees": list(node.sees),
        "receipt": node.receipt,
        "refusals": [
            {"at": r.at, "to": r.to, "task": r.task, "rule": r.rule, "sentence": r.sentence} for r in node.refusals
        ],
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
    )


def _end(node: Node, event: Event) -> None:
    # A damaged journal is for the doctor to name; a report shows the first end a task had.
    if node.status in lifecycle.TERMINAL:
        return
    node.status = lifecycle.after(node.status, event.kind)
    node.ended_at = event.at
    node.result = event.data.get("result")
    node.error = cast("str", event.data.get("error", ""))
    node.receipt = cast("dict[str, Json]", event.data.get("receipt", {}))


def _refusal(event: Event) -> Refusal:
    data = cast("dict[str, str]", event.data)
    return Refusal(event.at, data["to"], data["task"], data["rule"], data["sentence"])


def _count(number: int, word: str) -> str:
    return f"{number} {word}" if number == 1 else f"{number} {word}s"
