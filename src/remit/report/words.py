"""Words and figures that every drawing of a run shares."""

from collections import Counter
from collections.abc import Iterable
from typing import Final, TypeAlias, cast

from remit.core.times import DAY, SECOND
from remit.core.values import Json
from remit.report.printable import escaped
from remit.report.tally import receipts, steps_sentence, tokens_seen
from remit.report.tree import Node, PlanStep, Refusal, Retry

Receipt: TypeAlias = dict[str, Json]

MARKS: Final = {
    "completed": "✓",
    "running": "◐",
    "failed": "✗",
    "dead": "†",
    "cancelled": "⊖",
    "cancelling": "⊝",
    "pending": "◌",
    "refused": "⊘",
    "handed": "→",
    "waiting": "○",
    "skipped": "↷",
}
AGAIN: Final = "↻"  # an attempt that was tried again
ASKED: Final = {"submit": "submitted", "spawn": "spawned"}  # what nobody waits for
_SPOKEN: Final = frozenset(("dead", "cancelling", "pending", "waiting"))  # less known than their marks deserve
UNKNOWN: Final = "unknown"  # how a status is drawn that this version has no mark for

_MINUTE: Final = 60 * SECOND
_HOUR: Final = 60 * _MINUTE


def duration(microseconds: int) -> str:
    """12 ms, 1.3 s, 2 min 14 s: rounded down, so that it never claims more time than has passed."""
    left = max(0, microseconds)  # clocks go backwards now and then
    if left < SECOND:
        return f"{left} µs" if 0 < left < 1_000 else f"{left // 1_000} ms"
    if left < _MINUTE:
        return f"{left // SECOND}.{left % SECOND // 100_000} s"
    if left < _HOUR:
        return _two(left // _MINUTE, "min", left % _MINUTE // SECOND, "s")
    if left < DAY:
        return _two(left // _HOUR, "h", left % _HOUR // _MINUTE, "min")
    return _two(left // DAY, "d", left % DAY // _HOUR, "h")


def _two(large: int, unit: str, small: int, smaller: str) -> str:
    return f"{large} {unit} {small} {smaller}" if small else f"{large} {unit}"


def count(number: int, word: str) -> str:
    return f"{number:,} {word}" if number == 1 else f"{number:,} {word}s"


def short(number: int) -> str:
    """2412 as 2.4k: a figure for a small label, rounded down."""
    for size, unit in ((1_000_000, "M"), (1_000, "k")):
        if number >= size:
            whole, tenth = number // size, number % size * 10 // size
            return f"{whole}.{tenth}{unit}" if whole < 100 else f"{whole}{unit}"
    return str(number)


# -- what a task was given -----------------------------------------------------------------------------------


def known(state: str) -> str:
    """The status if it has a mark; the names of classes are made of it."""
    return state if state in MARKS else UNKNOWN


def mark(state: str) -> str:
    return MARKS.get(state, "?")


def saw(node: Node) -> str:
    """What its turns saw; a receipt is written at the end of a turn, so before that: what it may see."""
    found = receipts(node)
    if found:
        return f"{count(sum(map(slices, found)), 'slice')}, {count(tokens_seen(node), 'token')}"
    return may_see(node)


def may_see(node: Node) -> str:
    if "*" in node.sees:
        return "may see everything"
    if not node.sees:
        return "may see its task only"
    others = len(node.sees) - 1
    return f"may see {escaped(node.sees[0], 40)}" + (f" and {others} more" if others else "")


def tokens(receipt: Receipt) -> int:
    return cast("int", receipt.get("tokens", 0))


def slices(receipt: Receipt) -> int:
    listed = cast("list[Json]", receipt.get("saw", []))
    return len(listed) + cast("int", receipt.get("unlisted", 0))


def called(node: Node) -> str:
    """What a task is about: the title of the step it carries out, or its own text."""
    return f"{node.step}: {node.title}" if node.title else node.task


def refused_word(refusal: Refusal) -> str:
    return "handoff refused" if refusal.handoff else "refused"


def notes(node: Node) -> list[str]:
    """What else there is to say of a task: how it was asked, where it stands, which attempt it is."""
    told = (ASKED.get(node.asked_how), node.state if node.state in _SPOKEN else "", attempt(node))
    return [one for one in told if one]


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
    """A plan that a person runs has no coordinator, only a holder of that name."""
    return "Plan" if agent == "plan" else f"Plan of {agent}"


def tries(step: PlanStep) -> str:
    return f"{step.tries} tries" if step.tries > 1 else ""


# -- how it ended --------------------------------------------------------------------------------------------


def reason(node: Node) -> str:
    """Why it did not deliver, without the name that stands beside it anyway."""
    return node.error.removeprefix(f"'{node.agent}' ")


def statuses(found: Iterable[str]) -> str:
    """41 completed, 1 failed: in the order of the marks, whatever has none last."""
    counted = Counter(known(state) for state in found)
    return ", ".join(f"{counted[state]:,} {state}" for state in (*MARKS, UNKNOWN) if counted[state])
