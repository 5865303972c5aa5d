"""Reports: what a run looks like, folded from its events and from nothing else."""

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
        yield self
        for child in self.children:
            yield from child.walk()

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
    completed: int = 0
    failed: int = 0
    cancelled: int = 0
    running: int = 0
    refused: int = 0
    depth: int = 0
    tokens_seen: int = 0


def tree(events: Iterable[Event]) -> Node | None:
    """The run as a tree of tasks, in the order they started; None if there is no such run."""
    nodes: dict[str, Node] = {}
    root: Node | None = None
    for event in events:
        if event.kind == "task.started":
            node = nodes[event.task] = _node(event)
            parent = nodes.get(cast(str, event.data["parent"]))
            if parent is not None:
                parent.children.append(node)
            else:
                root = root or node
        elif event.kind in lifecycle.ENDS and event.task in nodes:
            _end(nodes[event.task], event)
        elif event.kind == "hop.refused" and event.task in nodes:
            nodes[event.task].refusals.append(_refusal(event))
    return root


def tally(root: Node) -> Tally:
    found = Tally(depth=_depth(root))
    for node in root.walk():
        found.tasks += 1
        found.refused += len(node.refusals)
        found.tokens_seen += cast(int, node.receipt.get("tokens", 0))
        setattr(found, node.status, getattr(found, node.status) + 1)
    return found


def sentence(root: Node) -> str:
    """The run in one plain sentence."""
    found = tally(root)
    asked = f"{root.agent} asked {_count(len(root.children), 'agent')}" if root.children else f"{root.agent} worked alone"
    parts = [asked]
    if found.failed:
        parts.append(f"{_count(found.failed, 'task')} failed")
    if found.cancelled:
        parts.append(f"{_count(found.cancelled, 'task')} cancelled")
    rules = sorted({refusal.rule for node in root.walk() for refusal in node.refusals})
    if rules:
        parts.append(f"{_count(found.refused, 'delegation')} refused ({', '.join(rules)})")
    waiting = [node.agent for node in root.walk() if node.status == "running" and not node.children]
    if waiting:
        parts.append(f"{', '.join(waiting[:3])} still working")
    return "; ".join(parts)


def node_data(node: Node) -> dict[str, Json]:
    """The tree for programs."""
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
        "children": [node_data(child) for child in node.children],
    }


def result_text(node: Node) -> str:
    return node.result if isinstance(node.result, str) else encode(node.result)


def _node(event: Event) -> Node:
    bounds = cast("dict[str, int]", event.data["bounds"])
    return Node(
        id=event.task,
        agent=event.agent,
        task=cast(str, event.data["task"]),
        started_at=event.at,
        until=bounds["deadline"],
        sees=cast("list[str]", event.data["sees"]),
    )


def _end(node: Node, event: Event) -> None:
    node.status = lifecycle.after(node.status, event.kind)
    node.ended_at = event.at
    node.result = event.data.get("result")
    node.error = cast(str, event.data.get("error", ""))
    node.receipt = cast("dict[str, Json]", event.data.get("receipt", {}))


def _refusal(event: Event) -> Refusal:
    data = cast("dict[str, str]", event.data)
    return Refusal(event.at, data["to"], data["task"], data["rule"], data["sentence"])


def _depth(node: Node) -> int:
    return max((1 + _depth(child) for child in node.children), default=0)


def _count(number: int, word: str) -> str:
    return f"{number} {word}" if number == 1 else f"{number} {word}s"
