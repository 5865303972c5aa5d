"""Texts that all drawings of a run share, and the labels of their edges."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from remit.core.lifecycle import PROGRESS_LIMIT
from remit.report import receipts as receipts_
from remit.report.figures import count, duration, money, short
from remit.report.looks import LOOKS, known_state, urgency
from remit.report.printable import escaped, picture_line
from remit.report.questions import AskedPerson
from remit.report.receipts import Receipt, slices, tokens
from remit.report.summary import Subtotal, receipts, steps_sentence
from remit.report.tree import Node, PlanStep, Refusal, Retry, Stay

ASKED: Final = {"submit": "submitted", "async": "submitted", "spawn": "spawned"}  # tasks without a waiting asker
WAITS: Final = "waits for a person"
_TOLD: Final = 160  # columns of a question in one line
_NAME: Final = 64  # columns of an id
_NAMED: Final = 3  # slices of a receipt
_PLAIN: Final = frozenset(("completed", "running", "failed", "cancelled"))  # states whose marks are enough


# -- context -------------------------------------------------------------------------------------------------


def saw(node: Node) -> str:
    """Return what a task saw: 2 slices (spec/auth), 11 tokens. A receipt is written at the end of a turn; before that,
    return what the task may see."""
    written = receipts(node)
    return saw_in(written) if written else may_see(node)


def saw_in(written: Sequence[Receipt]) -> str:
    """Return how much these turns saw, and the names of what other agents passed to them: 2 slices (spec/auth), 11
    tokens."""
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


def subject_of(node: Node) -> str:
    """Return the subject of a task: the title of its plan step, or its own text."""
    return f"{node.step}: {node.title}" if node.title else node.task


def refused_word(refusal: Refusal) -> str:
    return "handoff refused" if refusal.handoff else "refused"


def notes(node: Node) -> list[str]:
    """Return further notes on a task: how it was requested, its state, the number of the attempt."""
    spoken = node.state if node.state in LOOKS and node.state not in _PLAIN else ""
    if node.open_questions and spoken == "waiting":
        spoken = WAITS
    left = f"left over: {'; '.join(escaped(one, 120) for one in node.left_over)}" if node.left_over else ""
    so_far = escaped(node.progress, PROGRESS_LIMIT)
    return [note for note in (ASKED.get(node.asked_how), spoken, so_far, attempt(node), left) if note]


# -- money and people ------------------------------------------------------------------------------------------


def spending_text(node: Node, whole: Mapping[str, Subtotal]) -> str:
    """Return a task's own spending and that of its subtasks: $0.02, $0.10 below; "" if there is none."""
    below = whole[node.id].credits - node.credits
    if not below:
        return money(node.credits) if node.credits else ""
    return f"{money(node.credits)}, {money(below)} below"


def how_to_answer(question: AskedPerson) -> str:
    """Return the command that answers: remit answer q123 ANSWER; or remit approvals q123 if there is more to read
    first."""
    if question.kind != "ask" or len(question.text) > _TOLD or not question.text.isprintable():
        return f"remit approvals {question.id}"
    return f"remit answer {question.id} {'CHOICE' if question.choices else 'ANSWER'}"


def waits(question: AskedPerson) -> str:
    """Return text such as "waits for a person: Which colour? (remit answer q123 CHOICE)"."""
    return f"{WAITS}: {escaped(question.text, _TOLD)} ({how_to_answer(question)})"


# -- attempts ------------------------------------------------------------------------------------------------


def took(node: Node, elapsed: int, now: int) -> str:
    """Return a duration such as 1.3 s; for a task that no agent has started, its time in the queue: queued 1.3 s."""
    return duration(elapsed) if node.begun else f"queued {duration(node.queued(now))}"


def attempt(node: Node) -> str:
    """Return text such as "attempt 3", or "" for the first."""
    return f"attempt {node.attempts:,}" if node.attempts > 1 else ""


def attempt_text(retry: Retry) -> str:
    """Return text such as "attempt 1: failed: OSError: no disk"."""
    why = retry.error.removeprefix(f"'{retry.agent}' ")
    return f"attempt {retry.attempt:,}: {why}"


# -- plans ---------------------------------------------------------------------------------------------------


def progress(plan: Iterable[PlanStep]) -> str:
    """Return text such as "3 of 5 steps completed, 1 failed, 1 skipped"."""
    return steps_sentence(Counter(step.state for step in plan))


def plan_of(agent: str) -> str:
    """Return the name of a plan by its coordinator; a plan that a person runs has none."""
    return "Plan" if agent == "plan" else f"Plan of {agent}"


def tries(step: PlanStep) -> str:
    return f"{step.tries} tries" if step.tries > 1 else ""


def kept_from(step: PlanStep) -> str:
    """Return text such as "kept from task 01J...", or "" for a step that was done here."""
    return f"kept from task {escaped(step.task, _NAME)}" if step.task and not step.tries else ""


# -- shortening ----------------------------------------------------------------------------------------------


def nodes_first(nodes: Sequence[Node], most: int | None) -> tuple[list[Node], list[Node]]:
    """Return at most `most` tasks, and the rest. If all fit, they keep their order; otherwise the most urgent come
    first."""
    if most is None or len(nodes) <= most:
        return [*nodes], []
    ranked = sorted(nodes, key=lambda node: urgency(node.state))
    return ranked[:most], ranked[most:]


def steps_first(plan: Sequence[PlanStep], most: int | None) -> tuple[list[PlanStep], list[PlanStep]]:
    """Return at most `most` steps, and the rest. If all fit, they keep their order; otherwise the most urgent come
    first. Of equally urgent steps, those with a task come first, so a step that failed itself comes before one that
    failed with a dependency."""
    if most is None or len(plan) <= most:
        return [*plan], []
    ranked = sorted(plan, key=lambda step: (urgency(step.state), not step.task))
    return ranked[:most], ranked[most:]


# -- end -----------------------------------------------------------------------------------------------------


def reason(node: Node) -> str:
    """Return why a task failed, without the agent's name, which is shown next to it."""
    return node.error.removeprefix(f"'{node.agent}' ")


def states(words: Iterable[str]) -> str:
    """Return the number of each state, such as "41 completed, 1 failed": in the order of `LOOKS`, unknown states
    last."""
    counted = Counter(known_state(word) for word in words)
    return ", ".join(f"{counted[state]:,} {state}" for state in LOOKS if counted[state])


# -- labels of edges -----------------------------------------------------------------------------------------


_BRIEF: Final = 10  # columns of a name on an edge of a picture


def saw_here(stay: Stay) -> str:
    """Return what a holder saw while it had the task: 2 slices (spec/auth), 11 tokens."""
    if stay.receipt:
        return saw_in([stay.receipt])
    return may_see(stay.node)


def passed_text(stay: Stay, columns: int = _BRIEF) -> str:
    """Return what was passed, short enough for the label of an edge: spec/auth +1 · 2.4k tok."""
    if stay.receipt:
        names = receipts_.passed_on(stay.receipt)
        size = f"{short(tokens(stay.receipt))} tok"
        return f"{_first_of(names, columns)} · {size}" if names else f"{slices(stay.receipt)} ctx · {size}"
    sees = stay.node.sees
    if "*" in sees:
        return "sees all"
    return f"sees {_first_of(sees, columns)}" if sees else "task only"


def _first_of(names: Sequence[str], columns: int) -> str:
    """Return the first name, or the end of its path if it is too long, and the number of others: spec/auth +1."""
    more = f" +{len(names) - 1}" if len(names) > 1 else ""
    name = picture_line(names[0], 4 * columns)
    end = name.rpartition("/")[2]
    return picture_line(name if len(name) <= columns or end in ("", "*") else end, columns) + more


def kept_back(stay: Stay) -> str:
    """Return the number of withheld slices as a label, or "" if there are none."""
    number = withheld(stay)
    return f"\N{MINUS SIGN}{number}" if number else ""


def withheld(stay: Stay) -> int:
    return len(receipts_.withheld(stay.receipt))
