"""Guards: the rules for one hop. A guard takes facts and returns a verdict; the engine gathers the facts and acts on
the verdict.

`ORDER` is the order in which refusals are reported. The result does not depend on it: one refusal is enough. `PASSAGES`
lists the kinds of hops (delegate, hand over, submit ...), each with its guards. `Refusals` counts the refused hops of
one task: the first are recorded one by one; the others are counted, and reported when the turn ends.
"""

from collections.abc import Callable, Iterable, Sequence
from enum import IntEnum
from typing import Final, Protocol, TypeAlias

from remit.core import breaker as breakers
from remit.core.allow import Names, has, names_text
from remit.core.bounds import TOP
from remit.core.breaker import CLOSED, Breaker
from remit.core.lifecycle import RunFacts
from remit.core.loops import ONCE, Repetition, Sign, echo_sentence
from remit.core.records import NamedTuple
from remit.core.remit import STAND_IN, Pass, Remit, path

RECORDED: Final = 100  # of one task


class Refusals:
    """The number of refused hops of a task. It stays with the task through handoffs."""

    __slots__ = ("_recorded", "more")

    def __init__(self) -> None:
        self._recorded: dict[Refusable, None] = {}
        self.more = 0  # refused in this turn without an event

    def records(self, hop: "Refusable") -> bool:
        """Whether this refusal is recorded as an event: the first 100 of a task are. If the decision runs again, the
        same hop gets the same answer."""
        if hop in self._recorded:
            return True
        if len(self._recorded) >= RECORDED:
            return False
        self._recorded[hop] = None
        return True

    def count_refusal(self, hop: "Refusable") -> None:
        """Count a refused hop, unless it was recorded as an event. Call this after its transaction has been
        committed."""
        if hop not in self._recorded:
            self.more += 1


class Refusable:
    """One hop that may be refused. Its task records the first refusals as events and only counts the others;
    `is_recorded` returns whether this one is recorded."""

    __slots__ = ("_tally",)

    def __init__(self, tally: Refusals) -> None:
        self._tally = tally

    def is_recorded(self) -> bool:
        return self._tally.records(self)

    def refused(self) -> None:
        self._tally.count_refusal(self)


BUSY: Final = "concurrency"  # the only refusal that passes with time, so a caller may wait for it
SPAWN_SECONDS: Final = 30.0  # how long an asker waits for one of its spawned tasks to end


class Answer(IntEnum):
    """Ordered from mild to severe: the most severe answer of all guards is the verdict."""

    ALLOW = 0
    ASK = 1
    DENY = 2


class Verdict(NamedTuple):
    answer: Answer
    rule: str = ""
    sentence: str = ""


ALLOW: Final = Verdict(Answer.ALLOW)


class Facts(Protocol):
    """The shared state that a guard may query, in addition to the remit and the wish. Each fact is looked up when a
    guard reads it.

    No fact has a default: a fact that cannot be looked up raises, and never counts as a yes.
    """

    @property
    def now(self) -> int: ...
    @property
    def known(self) -> bool:
        """Whether an agent of this name is registered."""
        ...

    @property
    def asks(self) -> Names:
        """The agents that the asker's card lists in `asks`."""
        ...

    @property
    def roster(self) -> tuple[str, ...]:
        """The agents that the asker may ask right now, for the refusal's text."""
        ...

    @property
    def running(self) -> int:
        """The number of tasks that the wanted agent is running."""
        ...

    @property
    def limit(self) -> int | None:
        """The number of tasks that the wanted agent may run at once; None for no limit."""
        ...

    @property
    def breaker(self) -> Breaker: ...
    @property
    def run(self) -> RunFacts: ...
    @property
    def spawned(self) -> int:
        """The number of unfinished tasks that the asker has spawned."""
        ...

    @property
    def most_spawned(self) -> int:
        """The limit on unfinished spawned tasks."""
        ...

    @property
    def handoffs(self) -> int:
        """The number of handoffs of the asker's task so far."""
        ...

    @property
    def most_handoffs(self) -> int:
        """The limit on handoffs of one task."""
        ...

    @property
    def run_handoffs(self) -> int:
        """The number of handoffs in the run so far. If this handoff joins the parts of a parallel handoff, the parallel
        handoff is left out, because both count as one."""
        ...

    @property
    def sends(self) -> int:
        """The number of parts of this parallel handoff."""
        ...

    @property
    def most_sends(self) -> int:
        """The limit on the parts of one parallel handoff."""
        ...

    @property
    def approval(self) -> "Verdict":
        """The verdict of the approval rule: allow if approved or if no approval is needed, ask, or deny with the
        person's reason."""
        ...

    @property
    def payment(self) -> "Verdict":
        """The verdict of the money rules: allow if the hop can be paid for; ask a person for more, or deny with the
        figures."""
        ...

    @property
    def repetition(self) -> Repetition:
        """How often the asker has made this request with the same outcome."""
        ...

    @property
    def repeats(self) -> bool:
        """Whether the same handoff with the same content is among the latest ones."""
        ...


Guard: TypeAlias = Callable[[Remit, Pass, Facts], Verdict]


def deny(rule: str, sentence: str) -> Verdict:
    return Verdict(Answer.DENY, rule, sentence)


def not_self(remit: Remit, wish: Pass, _facts: Facts) -> Verdict:
    if wish.to != remit.holder:
        return ALLOW
    return deny("self", f"'{wish.to}' cannot delegate to itself; do this part yourself or ask someone else")


def known(remit: Remit, wish: Pass, facts: Facts) -> Verdict:
    if facts.known:
        return ALLOW
    sentence = f"there is no agent '{wish.to}'; {_whom(facts.roster)}"
    # Refuse unknown and forbidden agents alike: otherwise an agent could probe which names exist.
    if wish.to != remit.holder:
        sentence = allowed(remit, wish, facts).sentence or sentence
    return deny("unknown", sentence)


def allowed(remit: Remit, wish: Pass, facts: Facts) -> Verdict:
    if not has(facts.asks, wish.to):
        sentence = f"'{remit.holder}' may not ask '{wish.to}'; its card lets it ask {names_text(facts.asks)}"
        return deny("not-allowed", sentence)
    return admitted(remit, wish, facts)


def admitted(remit: Remit, wish: Pass, facts: Facts) -> Verdict:
    """Check that the bounds allow the agent. Unlike `allowed`, do not check the card of the asker: the first holder of
    a run has no asker."""
    if has(remit.bounds.agents, wish.to) and has(wish.within.agents, wish.to):
        return ALLOW
    if remit.holder == wish.to == STAND_IN:  # the engine leads a plan itself; the agents of its steps are checked
        return ALLOW
    inside = [name for name in facts.roster if has(remit.bounds.agents, name) and has(wish.within.agents, name)]
    return deny("not-allowed", f"'{wish.to}' is outside the bounds of this run; {_whom(inside)}")


def no_loop(remit: Remit, wish: Pass, _facts: Facts) -> Verdict:
    if not remit.chain.involves(wish.to):
        return ALLOW
    where = path(remit.names)
    sentence = f"'{wish.to}' is already in this delegation ({where}); ask someone else or finish the task yourself"
    return deny("loop", sentence)


def not_too_deep(remit: Remit, wish: Pass, _facts: Facts) -> Verdict:
    bounds = remit.bounds if wish.within is TOP else remit.bounds & wish.within
    limit = bounds.depth
    if limit is None or remit.chain.depth < limit:
        return ALLOW
    where = path(remit.names)
    sentence = (
        f"'{wish.to}' was not asked: this delegation is {remit.chain.depth} deep ({where}) "
        f"and at most {limit} is allowed; finish the task yourself with what you have"
    )
    return deny("depth", sentence)


def in_time(remit: Remit, wish: Pass, facts: Facts) -> Verdict:
    bounds = remit.bounds if wish.within is TOP else remit.bounds & wish.within
    deadline = bounds.deadline
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
    return deny(BUSY, f"'{wish.to}' is busy with {load}; ask someone else or try again later")


def not_broken(_remit: Remit, wish: Pass, facts: Facts) -> Verdict:
    if facts.breaker is CLOSED or breakers.admits(facts.breaker, facts.now) != "no":
        return ALLOW
    return deny("breaker", breakers.sentence(wish.to, facts.breaker, facts.now))


def not_broken_for_a_person(_remit: Remit, wish: Pass, facts: Facts) -> Verdict:
    """Check the breaker for a call by a person: the refusal says how to reset it."""
    if facts.breaker is CLOSED or breakers.admits(facts.breaker, facts.now) != "no":
        return ALLOW
    return deny("breaker", breakers.sentence(wish.to, facts.breaker, facts.now, person=True))


def within_tier(remit: Remit, wish: Pass, facts: Facts) -> Verdict:
    """Check the number of different agents, which the whole run shares."""
    bounds = remit.bounds if wish.within is TOP else remit.bounds & wish.within
    if bounds.members is not None:
        members = facts.run.members
        if wish.to not in members and len(members) >= bounds.members:
            have = f"{len(members)} of {bounds.members} agents"
            return deny("tier", f"this run has {have}, so '{wish.to}' cannot join; work with them")
    return ALLOW


def affordable(_remit: Remit, _wish: Pass, facts: Facts) -> Verdict:
    """Refuse, or ask a person, if the money to reserve is not available; refuse if the asker has no money left."""
    return facts.payment


def room_for_task(remit: Remit, wish: Pass, facts: Facts) -> Verdict:
    """Check the number of tasks in the run, however they were created. The task that leads a plan for a person does not
    count."""
    limit = remit.bounds.tasks
    if wish.within is not TOP:
        limit = (remit.bounds & wish.within).tasks
    if limit is None or facts.run.tasks < limit or (remit.led and facts.run.tasks == limit):
        return ALLOW
    have = f"{facts.run.tasks:,} of {limit:,} tasks"
    return deny("tasks", f"this run has {have}, so '{wish.to}' was not asked; finish with what you have")


def not_again(remit: Remit, wish: Pass, facts: Facts) -> Verdict:
    """Refuse a delegation that was made again and again with the same result."""
    repetition = facts.repetition
    if repetition is ONCE or (sign := repetition.sign) < Sign.BLOCK:
        return ALLOW
    times, in_turn, echo, at = repetition
    if echo:
        return deny("repeat", echo_sentence(wish.to, echo))
    calls = "the same two calls in turn" if in_turn else "the same call"
    made = f"'{remit.holder}' has made {calls} {times} times, the last to '{wish.to}', and the result is the same"
    if sign is Sign.STOP:
        return deny("repeat", f"{made}; its task is stopped")
    return deny("repeat", f"{made}; change the task or finish with what you have. At {at.stop} your task is stopped")


def few_spawned(remit: Remit, _wish: Pass, facts: Facts) -> Verdict:
    if facts.spawned < facts.most_spawned:
        return ALLOW
    sentence = (
        f"'{remit.holder}' has {facts.spawned:,} tasks running beside it already and none ended within "
        f"{SPAWN_SECONDS:g} s; wait for one of them, or do this part yourself"
    )
    return deny("spawn", sentence)


def not_to_itself(remit: Remit, wish: Pass, _facts: Facts) -> Verdict:
    if wish.to != remit.holder:
        return ALLOW
    return deny("self", f"'{wish.to}' holds this task already; go on, or hand it to someone else")


def not_to_an_asker(remit: Remit, wish: Pass, _facts: Facts) -> Verdict:
    """Refuse to hand a task to an agent that waits for its result. Handing it back to an earlier holder is allowed."""
    askers = [hop.asker for hop in remit.chain.hops]
    if wish.to not in askers:
        return ALLOW
    where = path(remit.names)
    return deny("loop", f"'{wish.to}' waits for this task ({where}); answer it instead of handing it back")


def few_handoffs(remit: Remit, wish: Pass, facts: Facts) -> Verdict:
    """Check the number of handoffs: the bound over all tasks of the run, and the limit for one task."""
    limit = remit.bounds.handoffs
    if limit == 0:
        return deny(
            "handoffs", f"handoffs are off in this run, so '{wish.to}' cannot take over; finish the task yourself"
        )
    if limit is not None and facts.run_handoffs >= limit:
        made = f"tasks of this run have changed hands {facts.run_handoffs} of {limit} times"
    elif facts.handoffs >= facts.most_handoffs:
        made = f"this task has changed hands {facts.handoffs} of {facts.most_handoffs} times"
    else:
        return ALLOW
    return deny("handoffs", f"{made}, so '{wish.to}' cannot take over; finish it yourself")


def few_sends(_remit: Remit, wish: Pass, facts: Facts) -> Verdict:
    if facts.sends <= facts.most_sends:
        return ALLOW
    parts = f"a command may send at most {facts.most_sends:,} parts, and this one has {facts.sends:,}"
    return deny("sends", f"{parts}; nothing was sent, not even to '{wish.to}'. Send fewer")


def no_repeat(remit: Remit, wish: Pass, facts: Facts) -> Verdict:
    if not facts.repeats:
        return ALLOW
    sentence = (
        f"'{remit.holder}' has just handed the same thing to '{wish.to}', and it came back; "
        "change something, or finish the task yourself"
    )
    return deny("deadlock", sentence)


def approved(_remit: Remit, _wish: Pass, facts: Facts) -> Verdict:
    """Ask for a person's approval if one is needed. This guard is last, so a person is asked only if all other rules
    agree."""
    return facts.approval


ORDER: Final[tuple[Guard, ...]] = (
    not_self,
    known,
    allowed,
    no_loop,
    not_too_deep,
    in_time,
    not_broken,
    within_tier,
    affordable,
    room_for_task,
    not_again,
    not_busy,
    approved,
)


class Passage(NamedTuple):
    """A kind of hop with its guards. A task of a `queued` hop waits in the queue until its agent is free, and its agent
    may be one that only another process has. With `owners`, the owner's own guards (`rt.guard`) judge the hop, too."""

    name: str
    guards: tuple[Guard, ...]
    queued: bool = False
    owners: bool = True


def _waits(guards: tuple[Guard, ...]) -> tuple[Guard, ...]:
    return tuple(guard for guard in guards if guard is not not_busy)


_FIRST: Final = (known, admitted, in_time, not_broken_for_a_person, affordable, not_busy)

BEGIN: Final = Passage("begin", _FIRST)
BEGIN_QUEUED: Final = Passage("begin", _waits(_FIRST), queued=True)
DELEGATE: Final = Passage("delegate", ORDER)
SUBMIT: Final = Passage("submit", _waits(ORDER), queued=True)
SPAWN: Final = Passage("spawn", (*_waits(ORDER), few_spawned), queued=True)
HANDOFF: Final = Passage(
    "handoff",
    (
        not_to_itself,
        known,
        allowed,
        not_to_an_asker,
        in_time,
        not_broken,
        few_handoffs,
        no_repeat,
        within_tier,
        affordable,
        not_busy,
        approved,
    ),
)
# Back to the previous holder, because the new one failed: no card has to allow this.
GIVE_BACK: Final = Passage(
    "give-back",
    (known, not_to_an_asker, in_time, not_broken, few_handoffs, within_tier, affordable, not_busy),
    owners=False,
)
FAN_OUT: Final = Passage("fan-out", (in_time, few_sends, few_handoffs, no_repeat), owners=False)
# A queued task that a worker claims: its bounds were checked at submission, its agent may have changed since.
CLAIM: Final = Passage("claim", (in_time, not_broken), owners=False)
RESUME: Final = Passage("resume", (known,), owners=False)
PASSAGES: Final = (BEGIN, BEGIN_QUEUED, DELEGATE, SUBMIT, SPAWN, HANDOFF, GIVE_BACK, FAN_OUT, CLAIM, RESUME)


def judge(guards: Iterable[Guard], remit: Remit, wish: Pass, facts: Facts) -> Verdict:
    """Return the most severe verdict; among equally severe ones, the first."""
    worst = ALLOW
    for guard in guards:
        verdict = guard(remit, wish, facts)
        if verdict is not ALLOW and verdict.answer > worst.answer:
            worst = verdict
            if worst.answer is Answer.DENY:
                break
    return worst


def _whom(names: Sequence[str]) -> str:
    shown = names[:8]
    if not shown:
        return "there is no one you may ask; finish the task yourself"
    more = len(names) - len(shown)
    return f"you may ask {', '.join(shown)}" + (f" and {more} more" if more else "")
