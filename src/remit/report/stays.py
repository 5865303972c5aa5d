"""The stays of a task: one for each agent that held it."""

from typing import NamedTuple

from remit.core.values import Json
from remit.report.tree import HandoffMade, Node, Refusal
from remit.report.uses import ModelUse, ToolUse

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
    """Return the stays of a task, one for each holder; most tasks have one."""
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
