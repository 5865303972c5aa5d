"""The catalogue of refusals: each guard is called with facts that make it say no, so that the sentences are real."""

from dataclasses import dataclass, replace

from remit.core import bounds, guards
from remit.core.allow import ANY, Names
from remit.core.bounds import DEFAULT_HANDOFFS, TOP, Bounds
from remit.core.breaker import CLOSED, Breaker
from remit.core.card import Card
from remit.core.guards import ALLOW, Guard, Verdict, deny
from remit.core.lifecycle import NO_RUN, RunFacts
from remit.core.limits import Limit, Metered, TasksUsedUp
from remit.core.loops import ONCE, Repetition
from remit.core.money import Lease, Short, figures
from remit.core.remit import NO_RIGHTS, Origin, Pass, Remit, begin, derive
from remit.engine.approvals import Said, WantedHop, rejected
from remit.engine.guarding import OwnGuard

_NOW = 1_800_000_000_000_000
_SECOND = 1_000_000


@dataclass(frozen=True)
class Known:
    """Facts that let everything through, until one of them is replaced."""

    now: int = _NOW
    known: bool = True
    asks: Names = ANY
    roster: tuple[str, ...] = ("reviewer", "tester")
    running: int = 0
    limit: int | None = None
    breaker: Breaker = CLOSED
    run: RunFacts = NO_RUN
    spawned: int = 0
    handoffs: int = 0
    most_handoffs: int = DEFAULT_HANDOFFS
    run_handoffs: int = 0
    sends: int = 0
    most_sends: int = bounds.SENDS
    most_spawned: int = bounds.SPAWNED
    repetition: Repetition = ONCE
    repeats: bool = False
    payment: Verdict = ALLOW
    approval: Verdict = ALLOW


def _remit(*names: str, within: Bounds = TOP) -> Remit:
    until = _NOW + 300 * _SECOND
    remit = begin(Origin("t1", "default", "s1"), Pass(names[0], "build it", within=within), TOP, until)
    for number, name in enumerate(names[1:], start=2):
        remit = derive(remit, Pass(name, "a part"), f"t{number}", NO_RIGHTS, until)
    return remit


_FACTS = Known()
_WANTED = Lease("t1", "credits", "carve", (), 500_000, 100_000, 0, 400_000, 0, 0, 0, "open")
_LACK = figures(Short(_WANTED, 200_000, for_good=True), "r1")
_UNPAID = f"'reviewer' was not asked: {_LACK}; give it less, or finish with what you have"
_USED = (
    "this part of the run has used 25,310 tokens of 25,000 tokens; 'reviewer' was not asked; finish with what you have"
)
_FULL = TasksUsedUp(Limit("day", tasks=100), Metered("workspace", ""), 100, 1_795_000_000_000_000)
_USED_UP = f"'reviewer' was not asked: {_FULL.sentence(1_794_960_000_000_000)}; finish with what you have"
_REJECTED = rejected(Said("q1", "rejected", "bob", "freeze"), "asking 'deployer'")
_CODER = _remit("lead", "coder")

# One row a refusal: guard, who asks, whom, what is known, when it says no, and what to do about it.
_SAMPLES: tuple[tuple[Guard, Remit, Pass, Known, str, str], ...] = (
    (
        guards.not_self,
        _CODER,
        Pass("coder", "x"),
        _FACTS,
        "an agent delegates to itself",
        "do it yourself, or ask another agent",
    ),
    (
        guards.not_to_itself,
        _CODER,
        Pass("coder", "x"),
        _FACTS,
        "a holder hands its task to itself",
        "continue, or hand it to another agent",
    ),
    (
        guards.known,
        _CODER,
        Pass("revewer", "x"),
        replace(_FACTS, known=False),
        "no agent has that name, here or at a worker",
        "check the name; register the agent, or start a worker that has it",
    ),
    (
        guards.allowed,
        _CODER,
        Pass("deployer", "x"),
        replace(_FACTS, asks=frozenset({"reviewer"})),
        "the asker's card does not name the agent in `asks`",
        'add it to `asks`; `asks="*"` allows any agent',
    ),
    (
        guards.admitted,
        _remit("lead", "coder", within=Bounds(agents=["coder", "reviewer"])),
        Pass("tester", "x"),
        replace(_FACTS, roster=("reviewer",)),
        "`Bounds(agents=...)` of the run or of a delegation exclude the agent",
        "widen the bounds where they were set; a subtask cannot",
    ),
    (
        guards.no_loop,
        _remit("lead", "coder", "reviewer"),
        Pass("coder", "x"),
        _FACTS,
        "the agent is already in the chain: it waits for this task",
        "return a result; to give the task back for good, hand it over",
    ),
    (
        guards.not_to_an_asker,
        _remit("lead", "coder"),
        Pass("lead", "x"),
        _FACTS,
        "a task is handed to an agent that waits for it",
        "return the result instead",
    ),
    (
        guards.not_too_deep,
        _remit("lead", "coder", "reviewer", "linter", within=Bounds(depth=3)),
        Pass("speller", "x"),
        _FACTS,
        "the chain has the maximum number of hops (default 3)",
        "raise the limit: `Runtime(bounds=Bounds(depth=4))`",
    ),
    (
        guards.in_time,
        _remit("lead", "coder", within=Bounds(deadline=_NOW - 2 * _SECOND)),
        Pass("reviewer", "x"),
        _FACTS,
        "the deadline of the run, or of an asker, has passed",
        "give more time where the work was requested",
    ),
    (
        guards.not_broken,
        _CODER,
        Pass("reviewer", "x"),
        replace(_FACTS, breaker=Breaker("open", 3, _NOW + 42 * _SECOND, "", "ConnectionError")),
        "the agent failed three times in a row, or an operator took it out of service",
        "wait, or `remit breaker reset reviewer`",
    ),
    (
        guards.not_broken_for_a_person,
        _CODER,
        Pass("reviewer", "x"),
        replace(_FACTS, breaker=Breaker("open", 3, _NOW + 42 * _SECOND, "", "ConnectionError")),
        "the same, for a person who asks",
        "wait, or `remit breaker reset reviewer`",
    ),
    (
        guards.within_tier,
        _remit("lead", "coder", within=Bounds(members=3)),
        Pass("tester", "x"),
        replace(_FACTS, run=NO_RUN._replace(members=frozenset(("lead", "coder", "reviewer")))),
        "the run has the maximum number of agents of its tier or `Bounds(members=...)`",
        "use the present agents, or start the run with a higher tier",
    ),
    (
        guards.affordable,
        _remit("lead", "coder", within=Bounds(tokens=25_000)),
        Pass("reviewer", "x"),
        replace(_FACTS, payment=deny("tier", _USED)),
        "the run has used the tokens of its tier or of `Bounds(tokens=...)`, as reported with `turn.report_tokens`",
        "finish with the results so far, or start the run with more tokens",
    ),
    (
        guards.affordable,
        _CODER,
        Pass("reviewer", "x"),
        replace(_FACTS, payment=deny("credits", _UNPAID)),
        "the reservation is not available, or all money is spent",
        "reserve less, or finish with the results so far",
    ),
    (
        guards.affordable,
        _CODER,
        Pass("reviewer", "x"),
        replace(_FACTS, payment=deny("limit", _USED_UP)),
        'a limit on tasks, such as `Limit("day", tasks=100)`, is used up',
        "wait until there is room, or raise the limit; `remit money limits` lists them",
    ),
    (
        guards.approved,
        _CODER,
        Pass("deployer", "x"),
        replace(_FACTS, approval=deny("approval", _REJECTED)),
        "a person rejected the request, or did not answer in time",
        "continue without it",
    ),
    (
        guards.room_for_task,
        _remit("lead", "coder", within=Bounds(tasks=1_000)),
        Pass("reviewer", "x"),
        replace(_FACTS, run=NO_RUN._replace(tasks=1_000)),
        "the run has the maximum number of tasks (default 1,000)",
        "finish with the results so far; or set `Runtime(bounds=Bounds(tasks=...))`",
    ),
    (
        guards.not_again,
        _CODER,
        Pass("reviewer", "x"),
        replace(_FACTS, repetition=Repetition(20)),
        "the asker made the same request with the same outcome 20 times; at 30 its task fails",
        "change the request, or finish",
    ),
    (
        guards.not_busy,
        _CODER,
        Pass("reviewer", "x"),
        replace(_FACTS, running=2, limit=2),
        "the agent runs as many tasks as the `concurrency` of its card",
        "submit the task instead: it waits in the queue",
    ),
    (
        guards.few_spawned,
        _CODER,
        Pass("reviewer", "x"),
        replace(_FACTS, spawned=bounds.SPAWNED),
        "the asker has five spawned tasks that have not ended",
        "wait for one of them",
    ),
    (
        guards.few_handoffs,
        _remit("lead"),
        Pass("billing", "x"),
        replace(_FACTS, handoffs=5),
        "the task has the maximum number of handoffs (default 5)",
        "finish it; or set `Policy(handoffs=...)`",
    ),
    (
        guards.few_handoffs,
        _remit("lead", within=Bounds(handoffs=2)),
        Pass("billing", "x"),
        replace(_FACTS, run_handoffs=2),
        "the run has the maximum number of handoffs of its tier or `Bounds(handoffs=...)`",
        "finish it, or start the run with a higher tier",
    ),
    (
        guards.few_sends,
        _remit("lead"),
        Pass("reader", "x"),
        replace(_FACTS, sends=3_000),
        "a command sends more parts than allowed (default 100)",
        "send fewer; or set `Policy(max_parallel_parts=...)`",
    ),
    (
        guards.no_repeat,
        _remit("lead"),
        Pass("billing", "x"),
        replace(_FACTS, repeats=True),
        "the same content goes to the same agent again within the last three handoffs",
        "change the request, or finish",
    ),
)

# Refusals of other acts than a hop; their sentences are made where they are raised.
_OTHERS = (
    (
        "not-visible",
        "an agent reads an entry that was not passed to it",
        "'reviewer' does not see spec/auth; its asker can pass it with sees=[...], or its card can read it",
        'pass it: `sees=["spec"]`',
    ),
    (
        "not-writable",
        "an agent writes an entry that its card or the bounds do not permit",
        "'reviewer' may not write spec/auth; its card's writes and the bounds of the run say where",
        "name the namespace in the card's `writes`",
    ),
    (
        "inbox-full",
        "32 messages of the sender wait for the recipient",
        "32 of 32 messages of 'lead' wait for 'coder' already; try again when it has read some",
        "let the recipient read them with `turn.inbox()`",
    ),
    (
        "message-size",
        "a message is longer than 16 KiB",
        "the message to 'coder' has 20,000 bytes, and at most 16,384 are allowed; say less, or write an entry",
        "write an entry and pass it with `sees`",
    ),
    (
        "over",
        "a turn continues after its task has ended or was handed over",
        "the turn of 'coder' has ended; this call was ignored. Await all work before you return",
        "nothing: the task has another holder, or has ended",
    ),
)


def _office_hours(_hop: WantedHop) -> str:
    return "it works from nine to five"


def _own() -> tuple[str, str, str, str]:
    """Return the row of a guard of the owner."""
    _office_hours.__name__ = "office_hours"
    said = OwnGuard(_office_hours).verdict(WantedHop("delegate", "coder", "deployer", "x", None, Card("deployer")))
    assert said is not None
    return said.rule, "a guard of the owner, registered with `rt.guard`, says no", said.sentence, "follow its reason"


def refusals_page() -> str:
    judged = {guard for passage in guards.PASSAGES for guard in passage.guards} | {guards.admitted}
    if missing := sorted(guard.__name__ for guard in judged - {guard for guard, *_ in _SAMPLES}):
        raise SystemExit(f"docs/refusals.py has no sample for {', '.join(missing)}")
    rows = []
    for guard, remit, wish, facts, when, what in _SAMPLES:
        verdict = guard(remit, wish, facts)
        assert verdict.answer is guards.Answer.DENY, guard.__name__
        rows.append(f"| **{verdict.rule}** | {when} | {verdict.sentence} | {what} |")
    rows += [f"| **{rule}** | {when} | {sentence} | {what} |" for rule, when, sentence, what in (_own(), *_OTHERS)]
    order = ", ".join(f"`{guard.__name__}`" for guard in guards.ORDER)
    listed = "\n".join(rows)
    return f"""# Refusals

A rule refuses one call; the run continues. In code, a refusal is the exception `Refused` with a `rule` and a message;
a model gets the message. The messages here come from the guards themselves. Generated from the code: do not edit, run
`make docs`.

| rule | when | message | what to do |
|---|---|---|---|
{listed}

For a delegation, the guards apply in this order, and the first refusal is reported: {order}. Other calls, such as
submissions and handoffs, have their own lists of guards in `core/guards.py`.
"""
