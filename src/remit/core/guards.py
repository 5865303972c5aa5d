"""Guards: rules on one hop. Facts in, verdict out; the engine gathers the facts and acts on the verdict.

`ORDER` is the order in which refusals are reported. Severity does not depend on it: one refusal refuses.
"""

from collections.abc import Callable, Iterable
from enum import IntEnum
from typing import Final, NamedTuple, TypeAlias

from remit.core.allow import ANY, Names, has, spelled
from remit.core.chain import path
from remit.core.remit import Pass, Remit


class Answer(IntEnum):
    """From mild to severe: the most severe answer of all guards is the verdict."""

    ALLOW = 0
    ASK = 1
    DENY = 2


class Verdict(NamedTuple):
    answer: Answer
    rule: str = ""
    sentence: str = ""


ALLOW: Final = Verdict(Answer.ALLOW)


class Facts(NamedTuple):
    """What a guard may know beyond the remit and the wish; all of it shared state that lives elsewhere."""

    now: int
    known: bool = True
    asks: Names = ANY
    roster: tuple[str, ...] = ()
    running: int = 0
    limit: int | None = None


Guard: TypeAlias = Callable[[Remit, Pass, Facts], Verdict]


def deny(rule: str, sentence: str) -> Verdict:
    return Verdict(Answer.DENY, rule, sentence)


def not_self(remit: Remit, wish: Pass, _facts: Facts) -> Verdict:
    if wish.to != remit.holder:
        return ALLOW
    return deny("self", f"'{wish.to}' cannot delegate to itself; do this part yourself or ask someone else")


def known(_remit: Remit, wish: Pass, facts: Facts) -> Verdict:
    if facts.known:
        return ALLOW
    return deny("unknown", f"there is no agent '{wish.to}'; {_whom(facts)}")


def allowed(remit: Remit, wish: Pass, facts: Facts) -> Verdict:
    if not has(facts.asks, wish.to):
        sentence = f"'{remit.holder}' may not ask '{wish.to}'; its card lets it ask {spelled(facts.asks)}"
        return deny("not-allowed", sentence)
    return admitted(remit, wish, facts)


def admitted(remit: Remit, wish: Pass, facts: Facts) -> Verdict:
    """The ceiling's half of `allowed`, which also holds for the first holder of a run."""
    if has(remit.bounds.agents, wish.to) and has(wish.within.agents, wish.to):
        return ALLOW
    return deny("not-allowed", f"'{wish.to}' is outside the bounds of this run; {_whom(facts)}")


def no_loop(remit: Remit, wish: Pass, _facts: Facts) -> Verdict:
    if not remit.chain.involves(wish.to):
        return ALLOW
    where = path(remit.names)
    sentence = f"'{wish.to}' is already in this delegation ({where}); ask someone else or finish the task yourself"
    return deny("loop", sentence)


def not_too_deep(remit: Remit, wish: Pass, _facts: Facts) -> Verdict:
    limit = (remit.bounds & wish.within).depth
    if limit is None or remit.chain.depth < limit:
        return ALLOW
    where = path(remit.names)
    sentence = (
        f"'{wish.to}' was not asked: this delegation is {remit.chain.depth} deep ({where}) "
        f"and at most {limit} is allowed; finish the task yourself with what you have"
    )
    return deny("depth", sentence)


def in_time(remit: Remit, wish: Pass, facts: Facts) -> Verdict:
    deadline = (remit.bounds & wish.within).deadline
    if deadline is None or facts.now < deadline:
        return ALLOW
    late = (facts.now - deadline) / 1e6
    return deny(
        "deadline",
        f"the deadline passed {late:.1f} s ago; '{wish.to}' was not asked; answer with what you have",
    )


def not_busy(_remit: Remit, wish: Pass, facts: Facts) -> Verdict:
    if facts.limit is None or facts.running < facts.limit:
        return ALLOW
    load = f"{facts.running} of {facts.limit} tasks"
    return deny("concurrency", f"'{wish.to}' is busy with {load}; ask someone else or try again later")


ORDER: Final[tuple[Guard, ...]] = (not_self, known, allowed, no_loop, not_too_deep, in_time, not_busy)
FIRST_HOLDER: Final[tuple[Guard, ...]] = (known, admitted, in_time, not_busy)


def judge(guards: Iterable[Guard], remit: Remit, wish: Pass, facts: Facts) -> Verdict:
    """The most severe answer; among equally severe ones the first."""
    worst = ALLOW
    for guard in guards:
        verdict = guard(remit, wish, facts)
        if verdict is not ALLOW and verdict.answer > worst.answer:
            worst = verdict
            if worst.answer is Answer.DENY:
                break
    return worst


def _whom(facts: Facts) -> str:
    shown = facts.roster[:8]
    if not shown:
        return "there is no one you may ask; finish the task yourself"
    more = len(facts.roster) - len(shown)
    return f"you may ask {', '.join(shown)}" + (f" and {more} more" if more else "")
