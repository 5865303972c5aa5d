"""Words that every drawing of a run shares."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from remit.report import receipts as receipts_
from remit.report.figures import count, duration, money
from remit.report.looks import LOOKS, known, urgency
from remit.report.printable import escaped
from remit.report.questions import AskedPerson
from remit.report.receipts import Receipt
from remit.report.summary import Subtotal, receipts, steps_sentence
from remit.report.tree import Node, PlanStep, Refusal, Retry

ASKED: Final = {"submit": "submitted", "async": "submitted", "spawn": "spawned"}  # what nobody waits for
WAITS: Final = "waits for a person"
_TOLD: Final = 160  # columns of a question in one line
_NAMED: Final = 3  # slices of a receipt
_PLAIN: Final = frozenset(("completed", "running", "failed", "cancelled"))  # states whose marks say enough


# -- what a task was given -----------------------------------------------------------------------------------


def saw(node: Node) -> str:
    """2 slices (spec/auth), 11 tokens; a receipt is written at the end of a turn, so before that: what it may see"""
    written = receipts(node)
    return saw_in(written) if written else may_see(node)


def saw_in(written: Sequence[Receipt]) -> str:
    """2 slices (spec/auth), 11 tokens: how much these turns saw, and by name what others had passed on to them"""
    names = list(dict.fromkeys(name for receipt in written for name in receipts_.passed_on(receipt)))
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    named = f" ({', '.join(escaped(name, 40) for name in names[:_NAMED])}{more})" if names else ""
    seen = count(sum(map(receipts_.tokens, written)), "token")
    return f"{count(sum(map(receipts_.slices, written)), 'slice')}{named}, {seen}"


def may_see(node: Node) -> str:
    if "*" in node.sees:
        return "may see everything"
    if not node.sees:
        return "may see its task only"
    others = len(node.sees) - 1
    return f"may see {escaped(node.sees[0], 40)}" + (f" and {others} more" if others else "")


def called(node: Node) -> str:
    """Say what a task is about: the title of the step it carries out, or its own text."""
    return f"{node.step}: {node.title}" if node.title else node.task


def refused_word(refusal: Refusal) -> str:
    return "handoff refused" if refusal.handoff else "refused"


def notes(node: Node) -> list[str]:
    """Say what else there is to say of a task: how it was asked, where it stands, which attempt it is."""
    spoken = node.state if node.state in LOOKS and node.state not in _PLAIN else ""
    if node.open_questions and spoken == "waiting":
        spoken = WAITS
    left = f"left over: {'; '.join(escaped(one, 120) for one in node.left_over)}" if node.left_over else ""
    return [note for note in (ASKED.get(node.asked_how), spoken, attempt(node), left) if note]


# -- money and people ------------------------------------------------------------------------------------------


def paid(node: Node, whole: Mapping[str, Subtotal]) -> str:
    """$0.02, $0.10 below: what a task spent itself, and what all below it did; nothing if nothing was spent"""
    below = whole[node.id].credits - node.credits
    if not below:
        return money(node.credits) if node.credits else ""
    return f"{money(node.credits)}, {money(below)} below"


def how_to_answer(question: AskedPerson) -> str:
    """remit answer q123 ANSWER; remit approvals q123 if there is more to read before"""
    if question.kind != "ask" or len(question.text) > _TOLD or not question.text.isprintable():
        return f"remit approvals {question.id}"
    return f"remit answer {question.id} {'CHOICE' if question.choices else 'ANSWER'}"


def waits(question: AskedPerson) -> str:
    """waits for a person: Which colour? (remit answer q123 CHOICE)"""
    return f"{WAITS}: {escaped(question.text, _TOLD)} ({how_to_answer(question)})"


# -- attempts ------------------------------------------------------------------------------------------------


def took(node: Node, elapsed: int, now: int) -> str:
    """1.3 s; of what nobody has begun, how long it waits for that: queued 1.3 s"""
    return duration(elapsed) if node.begun else f"queued {duration(node.queued(now))}"


def attempt(node: Node) -> str:
    """attempt 3; nothing for the first"""
    return f"attempt {node.attempts:,}" if node.attempts > 1 else ""


def retried(retry: Retry) -> str:
    """attempt 1: failed: OSError: no disk"""
    why = retry.error.removeprefix(f"'{retry.agent}' ")
    return f"attempt {retry.attempt:,}: {why}"


# -- plans ---------------------------------------------------------------------------------------------------


def progress(plan: Iterable[PlanStep]) -> str:
    """3 of 5 steps completed, 1 failed, 1 skipped"""
    return steps_sentence(Counter(step.state for step in plan))


def plan_of(agent: str) -> str:
    """Name a plan by its coordinator; one that a person runs has none, only a holder of that name."""
    return "Plan" if agent == "plan" else f"Plan of {agent}"


def tries(step: PlanStep) -> str:
    return f"{step.tries} tries" if step.tries > 1 else ""


# -- what fits -----------------------------------------------------------------------------------------------


def nodes_first(nodes: Sequence[Node], most: int | None) -> tuple[list[Node], list[Node]]:
    """Take as many tasks as fit, and give the rest too: all of them in their order, or the most urgent ones first."""
    if most is None or len(nodes) <= most:
        return [*nodes], []
    ranked = sorted(nodes, key=lambda node: urgency(node.state))
    return ranked[:most], ranked[most:]


def steps_first(plan: Sequence[PlanStep], most: int | None) -> tuple[list[PlanStep], list[PlanStep]]:
    """Take as many steps as fit in the same way; what failed itself comes before what failed along with it."""
    if most is None or len(plan) <= most:
        return [*plan], []
    ranked = sorted(plan, key=lambda step: (urgency(step.state), not step.task))
    return ranked[:most], ranked[most:]


# -- how it ended --------------------------------------------------------------------------------------------


def reason(node: Node) -> str:
    """Say why a task did not deliver, without the name that stands beside it anyway."""
    return node.error.removeprefix(f"'{node.agent}' ")


def states(words: Iterable[str]) -> str:
    """41 completed, 1 failed: in the order of the looks, whatever has none last."""
    counted = Counter(known(word) for word in words)
    return ", ".join(f"{counted[state]:,} {state}" for state in LOOKS if counted[state])
