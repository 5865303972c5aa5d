"""The branches of a task in a drawn tree, in order: models, handoffs, requested tasks, tool calls, refusals, retries
and open questions. Each drawing of lines, plain or coloured, writes a branch in its own way."""

from collections.abc import Collection, Iterable, Sequence
from typing import TypeAlias, TypeVar

from remit.core.records import NamedTuple
from remit.report.figures import count
from remit.report.questions import AskedPerson
from remit.report.tree import HandoffMade, Node, Refusal, Retry, Stay, order, stays
from remit.report.uses import ModelUse, ToolUse, uses_by_holder
from remit.report.words import nodes_first, states

T = TypeVar("T")


class Rest(NamedTuple):
    """Branches that are only counted, such as "3 tool calls before"."""

    text: str


Leaf: TypeAlias = Refusal | Stay | HandoffMade | Retry | ToolUse | ModelUse | AskedPerson | Rest
Branch: TypeAlias = Node | Leaf


def branches(
    node: Node,
    *,
    most: int | None = None,
    tools: int | None = None,
    retries: int | None = None,
    planned: Collection[str] = (),
) -> list[Branch]:
    """Return the branches of a task. `most` limits its tasks, handoffs and refusals each, `tools` its tool calls and
    `retries` its retries; the rest is counted. Tasks in `planned` are left out."""
    children, rest = nodes_first([child for child in node.children if child.id not in planned], most)
    used, used_before = latest(node.drawn_tools, tools, "tool call")
    trail, trail_before = latest(_trail(node), most, "handoff")
    refusals, refused_before = latest(node.refusals, most, "refusal")
    tried, tried_before = latest(node.retries, retries, "attempt")
    rows: list[tuple[tuple[int, int, int], Branch]] = [(order(hop), hop) for hop in (*children, *refusals)]
    rows += [((use.turn, 1, use.at), use) for use in used]
    rows += [((retry.turn, 1, retry.at), retry) for retry in tried]
    rows += [((number, 0, 0), handoff) for number, handoff in trail]
    return [
        *uses_by_holder(node.models),
        *(*used_before, *trail_before, *refused_before, *tried_before),
        *(row for _, row in sorted(rows, key=lambda placed: placed[0])),
        *others(child.state for child in rest),
        *node.open_questions,
    ]


def _trail(node: Node) -> list[tuple[int, Stay | HandoffMade]]:
    """Return the numbered handoffs of a task: the next holder's stay, or the handoff to several agents in parallel."""
    after = iter(stays(node)[1:])
    return [(number, made if made.parallel else next(after)) for number, made in enumerate(node.trail, 1)]


def latest(items: Sequence[T], most: int | None, what: str) -> tuple[list[T], list[Rest]]:
    """Return the latest items that fit, and the number of earlier ones, if there are any."""
    if most is None or len(items) <= most:
        return [*items], []
    return [*items[-most:]], [Rest(f"{count(len(items) - most, what)} before")]


def others(rest: Iterable[str]) -> list[Rest]:
    """Return the number of further tasks or steps by their states, if there are any."""
    found = [*rest]
    return [Rest(f"and {len(found):,} more ({states(found)})")] if found else []
