"""A run in figures, and in one sentence."""

from collections import Counter
from dataclasses import field
from typing import Final

from remit.core import lifecycle
from remit.core.records import NamedTuple, dataclass
from remit.report import receipts as receipts_
from remit.report.figures import count
from remit.report.looks import LOOKS
from remit.report.receipts import Receipt
from remit.report.tree import STEP_STATES, WAYS, Node


@dataclass(frozen=True, slots=True)
class Summary:
    """The figures of a run. Each is counted at exactly one node, so sums match everywhere.

    `handoffs` includes parallel ones, after which a task may still have the same holder.
    """

    tasks: int = 0
    states: Counter[str] = field(default_factory=Counter[str])
    refused: int = 0
    depth: int = 0
    tokens_seen: int = 0
    handoffs: int = 0
    steps: Counter[str] = field(default_factory=Counter[str])
    retries: int = 0
    tokens: int = 0
    credits: int = 0
    open_questions: int = 0
    model_calls: int = 0
    tool_calls: int = 0
    tools_failed: int = 0


class Subtotal(NamedTuple):
    """The usage and spending of a task and all its subtasks."""

    credits: int
    tokens: int


def summary(root: Node) -> Summary:
    nodes = list(root.walk())
    return Summary(
        tasks=len(nodes),
        states=Counter(node.state for node in nodes),
        refused=sum(len(node.refusals) + node.more_refused for node in nodes),
        depth=_depth(root),
        tokens_seen=sum(map(tokens_seen, nodes)),
        handoffs=sum(not handoff.sent_back for node in nodes for handoff in node.trail),
        steps=Counter(step.state for node in nodes for plan in node.plans for step in plan),
        retries=sum(len(node.retries) for node in nodes),
        tokens=sum(node.tokens for node in nodes),
        credits=sum(node.credits for node in nodes),
        open_questions=sum(len(node.open_questions) for node in nodes),
        model_calls=sum(use.calls for node in nodes for use in node.models),
        tool_calls=sum(len(node.tools) for node in nodes),
        tools_failed=sum(use.outcome == "failed" for node in nodes for use in node.tools),
    )


def subtotals(root: Node) -> dict[str, Subtotal]:
    """Return for every task the usage and spending of it and all its subtasks; the root has those of the run."""
    found: dict[str, Subtotal] = {}
    for node in reversed([*root.walk()]):  # children before their asker
        below = [found[child.id] for child in node.children]
        found[node.id] = Subtotal(
            node.credits + sum(one.credits for one in below), node.tokens + sum(one.tokens for one in below)
        )
    return found


def _depth(root: Node) -> int:
    """Return the number of levels below the root."""
    depth, level = 0, root.children
    while level:
        depth, level = depth + 1, [child for node in level for child in node.children]
    return depth


def tokens_seen(node: Node) -> int:
    """Return the number of tokens that all turns of a task saw."""
    return sum(receipts_.tokens(receipt) for receipt in receipts(node))


def receipts(node: Node) -> list[Receipt]:
    """Return the receipts of every finished turn and attempt, in order."""
    turns = sorted([*node.trail, *node.retries], key=lambda turn: turn.at)
    return [receipt for receipt in (*(turn.receipt for turn in turns), node.receipt) if receipt]


def sentence(root: Node) -> str:
    """Return the run in one sentence."""
    figures = summary(root)
    parts = _opening(root)
    passed = [handoff for node in root.walk() for handoff in node.trail if not handoff.parallel]
    back = sum(handoff.sent_back != "" for handoff in passed)
    if moved := len(passed) - back:
        parts.append(f"changed hands {count(moved, 'time')}")
    if back:
        parts.append(f"sent back {count(back, 'time')}")
    if figures.steps:
        parts.append(steps_sentence(figures.steps))
    parts += [f"{count(number, 'task')} {LOOKS[state].word}" for state, number in _other_states(figures)]
    parts += _died(root)
    if figures.retries:
        parts.append(f"tried again {count(figures.retries, 'time')}")
    parts += _refused(root)
    if figures.tools_failed:
        parts.append(f"{count(figures.tools_failed, 'tool call')} failed")
    if figures.open_questions:
        parts.append(f"{count(figures.open_questions, 'question')} for a person")
    working = [node.agent for node in root.walk() if _at_work(node)]
    if working:
        parts.append(f"{', '.join(working[:3])} still working")
    return "; ".join(parts)


def steps_sentence(states: Counter[str]) -> str:
    """Return text such as "3 of 5 steps completed, 1 failed, 1 skipped"."""
    first, *others = STEP_STATES
    parts = [f"{states[first]:,} of {count(states.total(), 'step')} completed"]
    parts += [f"{states[state]:,} {state}" for state in others if states[state]]
    return ", ".join(parts)


_OWN_WORDS: Final = ("completed", "running", "dead")  # the sentence has its own words for these


def _other_states(figures: Summary) -> list[tuple[str, int]]:
    """Return the number of tasks in each other state that has a look."""
    return [(state, figures.states[state]) for state in LOOKS if figures.states[state] and state not in _OWN_WORDS]


def _died(root: Node) -> list[str]:
    """Return text such as "2 tasks died after 4 attempts"."""
    tried = [node.attempts for node in root.walk() if node.state == "dead"]
    if not tried:
        return []
    least, most = min(tried), max(tried)
    after = count(most, "attempt") if least == most else f"{least} to {most} attempts"
    return [f"{count(len(tried), 'task')} died after {after}"]


def _opening(root: Node) -> list[str]:
    """Return "lead asked 2 agents"; for a task that was handed over, its first and its present agent."""
    if not root.begun:
        return [f"{root.agent} never began" if root.state in lifecycle.TERMINAL else f"{root.agent} has not begun"]
    asked = len({child.first for child in root.children})
    if all(handoff.sent_back for handoff in root.trail):
        return [f"{root.agent} asked {count(asked, 'agent')}" if asked else f"{root.agent} worked alone"]
    verb = "holds it" if root.state in lifecycle.OPEN else "ended it"
    who = f"{root.first} began and {'' if root.agent == root.first else f'{root.agent} '}{verb}"
    return [who, f"{count(asked, 'agent')} asked"] if asked else [who]


def _refused(root: Node) -> list[str]:
    """Return text such as "1 delegation refused (loop), 2 handoffs refused (deadlock)"."""
    refusals = [refusal for node in root.walk() for refusal in node.refusals]
    parts: list[str] = []
    for word, handoff in (("delegation", False), ("handoff", True)):
        rules = [refusal.rule for refusal in refusals if refusal.handoff is handoff]
        if rules:
            parts.append(f"{count(len(rules), word)} refused ({', '.join(sorted(set(rules)))})")
    return parts


def _at_work(node: Node) -> bool:
    """Whether the task is running, not only waiting for a task that it requested."""
    return node.state == "running" and not waits_for(node)


def waits_for(node: Node) -> list[Node]:
    """Return the open tasks that a task waits for. A running task waits for those that it delegated; in any other state
    it also waits for those that it submitted or spawned."""
    ways = ("delegate",) if node.state == "running" else WAYS
    return [child for child in node.children if child.asked_how in ways and child.state in lifecycle.OPEN]
