"""A run in figures, and in one plain sentence."""

from collections import Counter
from dataclasses import dataclass, field
from typing import Final, cast

from remit.core import lifecycle
from remit.core.values import Json
from remit.report.tree import STEP_STATES, WAYS, Node


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
    retries: int = 0


def tally(root: Node) -> Tally:
    found = Tally()
    level = [root]
    while level:
        for node in level:
            found.tasks += 1
            found.refused += len(node.refusals)
            found.tokens_seen += tokens_seen(node)
            found.states[node.state] += 1
            found.handoffs += len(node.trail)
            found.retries += len(node.retries)
            found.steps.update(step.state for plan in node.plans for step in plan)
        level = [child for node in level for child in node.children]
        found.depth += bool(level)
    return found


def tokens_seen(node: Node) -> int:
    """What its turns saw, whoever's they were."""
    return sum(cast("int", receipt.get("tokens", 0)) for receipt in receipts(node))


def receipts(node: Node) -> list[dict[str, Json]]:
    """Those of every turn that is over, and of every attempt, in the order they were written."""
    told = sorted([*node.trail, *node.retries], key=lambda one: one.at)
    return [receipt for receipt in (*(one.receipt for one in told), node.receipt) if receipt]


def sentence(root: Node) -> str:
    """The run in one plain sentence."""
    found = tally(root)
    parts = _opening(root)
    moved = sum(not handoff.parallel for node in root.walk() for handoff in node.trail)
    if moved:
        parts.append(f"changed hands {_count(moved, 'time')}")
    if found.steps:
        parts.append(steps_sentence(found.steps))
    parts += [f"{_count(found.states[state], 'task')} {word}" for state, word in _TOLD.items() if found.states[state]]
    parts += _died(root)
    if found.retries:
        parts.append(f"tried again {_count(found.retries, 'time')}")
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


_TOLD: Final = {
    "failed": "failed",
    "cancelled": "cancelled",
    "pending": "pending",
    "waiting": "waiting",
    "cancelling": "being cancelled",
}


def _died(root: Node) -> list[str]:
    """2 tasks died after 4 attempts"""
    tried = [node.attempts for node in root.walk() if node.state == "dead"]
    if not tried:
        return []
    least, most = min(tried), max(tried)
    after = _count(most, "attempt") if least == most else f"{least} to {most} attempts"
    return [f"{_count(len(tried), 'task')} died after {after}"]


def _opening(root: Node) -> list[str]:
    """Who had the task, and how many were asked."""
    if not root.begun:
        return [f"{root.agent} never began" if root.state in lifecycle.TERMINAL else f"{root.agent} has not begun"]
    asked = len({child.first for child in root.children})
    if not root.trail:
        return [f"{root.agent} asked {_count(asked, 'agent')}" if asked else f"{root.agent} worked alone"]
    verb = "holds it" if root.state in lifecycle.OPEN else "ended it"
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
    return node.state == "running" and not waits_for(node)


def waits_for(node: Node) -> "list[Node]":
    """Those it asked and waits for: whoever submits or spawns a task goes on with its own."""
    ways = ("delegate",) if node.state == "running" else WAYS
    return [child for child in node.children if child.asked_how in ways and child.state in lifecycle.OPEN]


def _count(number: int, word: str) -> str:
    return f"{number:,} {word}" if number == 1 else f"{number:,} {word}s"
