"""Guards: rules on one hop. Facts in, verdict out; the engine gathers the facts and acts on the verdict.

`ORDER` is the order in which refusals are reported. Severity does not depend on it: one refusal refuses.
"""

from collections.abc import Callable, Iterable
from enum import IntEnum
from typing import Final, NamedTuple, TypeAlias

from remit.core import breaker as breakers
from remit.core.allow import ANY, Names, has, spelled
from remit.core.breaker import CLOSED, Breaker
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
    breaker: Breaker = CLOSED
    members: frozenset[str] = frozenset()
    tokens: int = 0
    handoffs: int = 0
    repeats: bool = False


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


def not_broken(_remit: Remit, wish: Pass, facts: Facts) -> Verdict:
    if facts.breaker is CLOSED or breakers.admits(facts.breaker, facts.now) != "no":
        return ALLOW
    return deny("breaker", breakers.sentence(wish.to, facts.breaker, facts.now))


def within_tier(remit: Remit, wish: Pass, facts: Facts) -> Verdict:
    """How many agents take part, and how many tokens they have used, is shared by the whole run."""
    bounds = remit.bounds & wish.within
    if bounds.members is not None and wish.to not in facts.members and len(facts.members) >= bounds.members:
        sentence = (
            f"this run has {len(facts.members)} of {bounds.members} agents, so '{wish.to}' cannot join; work with them"
        )
        return deny("tier", sentence)
    if bounds.tokens is not None and facts.tokens >= bounds.tokens:
        sentence = (
            f"this run has used {facts.tokens:,} of {bounds.tokens:,} tokens; '{wish.to}' was not asked; finish now"
        )
        return deny("tier", sentence)
    return ALLOW


def not_to_itself(remit: Remit, wish: Pass, _facts: Facts) -> Verdict:
    if wish.to != remit.holder:
        return ALLOW
    return deny("self", f"'{wish.to}' holds this task already; go on, or hand it to someone else")


def not_to_an_asker(remit: Remit, wish: Pass, _facts: Facts) -> Verdict:
    """Going back to an earlier holder is legal; going up to someone who waits for this task is a loop."""
    askers = [hop.asker for hop in remit.chain.hops]
    if wish.to not in askers:
        return ALLOW
    where = path(remit.names)
    return deny("loop", f"'{wish.to}' waits for this task ({where}); answer it instead of handing it back")


def few_handoffs(remit: Remit, wish: Pass, facts: Facts) -> Verdict:
    limit = remit.bounds.handoffs
    if limit is None or facts.handoffs < limit:
        return ALLOW
    if limit == 0:
        return deny(
            "handoffs", f"handoffs are off in this run, so '{wish.to}' cannot take over; finish the task yourself"
        )
    sentence = (
        f"this task has changed hands {facts.handoffs} of {limit} times, "
        f"so '{wish.to}' cannot take over; finish it yourself"
    )
    return deny("handoffs", sentence)


def no_repeat(remit: Remit, wish: Pass, facts: Facts) -> Verdict:
    if not facts.repeats:
        return ALLOW
    sentence = (
        f"'{remit.holder}' has just handed the same thing to '{wish.to}', and it came back; "
        "change something, or finish the task yourself"
    )
    return deny("deadlock", sentence)


ORDER: Final[tuple[Guard, ...]] = (
    not_self,
    known,
    allowed,
    no_loop,
    not_too_deep,
    in_time,
    not_broken,
    within_tier,
    not_busy,
)
FIRST_HOLDER: Final[tuple[Guard, ...]] = (known, admitted, in_time, not_broken, not_busy)
# What is put into a queue waits there until its agent is free.
SUBMIT: Final[tuple[Guard, ...]] = tuple(guard for guard in ORDER if guard is not not_busy)
FIRST_SUBMIT: Final[tuple[Guard, ...]] = tuple(guard for guard in FIRST_HOLDER if guard is not not_busy)
HANDOFF: Final[tuple[Guard, ...]] = (
    not_to_itself,
    known,
    allowed,
    not_to_an_asker,
    in_time,
    not_broken,
    few_handoffs,
    no_repeat,
    within_tier,
    not_busy,
)
PARALLEL: Final[tuple[Guard, ...]] = (in_time, few_handoffs, no_repeat)


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
