"""Guards: which hops are refused, in which order it is said, and in which words."""

from collections.abc import Iterable
from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.make import AGENTS, NOW, SECOND, agent_names, agent_sets, bounds, first_remit, remit_along, wishes
from remit.core.allow import ANY, NONE, Names
from remit.core.bounds import DEFAULT_DEPTH, DEFAULT_HANDOFFS, SENDS, SPAWNED, TOP, Bounds
from remit.core.breaker import CLOSED, Breaker, tripped
from remit.core.guards import (
    ALLOW,
    BEGIN,
    BEGIN_QUEUED,
    CLAIM,
    DELEGATE,
    FAN_OUT,
    HANDOFF,
    ORDER,
    PASSAGES,
    RESUME,
    SPAWN,
    SUBMIT,
    Answer,
    Facts,
    Verdict,
    admitted,
    affordable,
    allowed,
    deny,
    few_handoffs,
    few_sends,
    few_spawned,
    in_time,
    judge,
    known,
    no_loop,
    no_repeat,
    not_again,
    not_broken,
    not_broken_for_a_person,
    not_busy,
    not_self,
    not_to_an_asker,
    not_to_itself,
    not_too_deep,
    room_for_task,
    within_tier,
)
from remit.core.lifecycle import NO_RUN, RunFacts
from remit.core.loops import ONCE, Repetition
from remit.core.remit import Pass, handed_to


class Looked(NamedTuple):
    """Facts as if they had been looked up, harmless unless told otherwise."""

    now: int
    known: bool = True
    asks: Names = ANY
    roster: tuple[str, ...] = ()
    running: int = 0
    limit: int | None = None
    breaker: Breaker = CLOSED
    run: RunFacts = NO_RUN
    spawned: int = 0
    handoffs: int = 0
    most_handoffs: int = DEFAULT_HANDOFFS
    run_handoffs: int = 0
    sends: int = 0
    most_sends: int = SENDS
    most_spawned: int = SPAWNED
    repetition: Repetition = ONCE
    repeats: bool = False
    payment: Verdict = ALLOW
    approval: Verdict = ALLOW


def facts_of(now: int, members: Iterable[str] = (), tokens: int = 0, tasks: int = 0, **other) -> Looked:
    run = RunFacts("t1", frozenset(members), tasks, 0, tokens, 0)
    return Looked(now, run=run, **other)


CALM = facts_of(NOW)
DEADLINE = NOW + 300 * SECOND  # what a wish allows unless it says otherwise

RESTS = Breaker("open", 3, NOW + 60 * SECOND, "", "it broke")

ceilings = st.just(TOP) | st.builds(
    lambda a, handoffs, members: a & Bounds(handoffs=handoffs, members=members),
    bounds,
    st.none() | st.integers(0, 3),
    st.none() | st.integers(1, 3),
)
remits = st.builds(
    remit_along,
    agent_names,
    st.sampled_from(["editor", "poet"]),
    within=ceilings,
) | st.builds(first_remit, agent_names, within=ceilings)

facts = st.builds(
    facts_of,
    now=st.integers(NOW - 5, NOW + 5),
    known=st.booleans(),
    asks=agent_sets,
    roster=st.just(()) | st.just(("coder", "tester")),
    running=st.integers(0, 3),
    limit=st.none() | st.integers(1, 3),
    breaker=st.sampled_from([CLOSED, RESTS, tripped(CLOSED, "under repair"), Breaker("half-open", 3, NOW, "t9", "")]),
    members=st.frozensets(agent_names, max_size=3),
    tokens=st.integers(0, 6),
    spawned=st.integers(0, SPAWNED + 1),
    tasks=st.integers(0, 6),
    handoffs=st.integers(0, 6),
    run_handoffs=st.integers(0, 6),
    sends=st.integers(0, SENDS + 1),
    repetition=st.builds(Repetition, st.integers(1, 31), st.booleans()),
    repeats=st.booleans(),
)


def refusal(guard, remit, to: str, facts: Facts = CALM, within: Bounds = TOP) -> Verdict:
    """The verdict of one guard, which the test expects to be a refusal."""
    verdict = guard(remit, Pass(to, "a part", within=within), facts)
    assert verdict.answer is Answer.DENY
    return verdict


def allows(guard, remit, to: str, facts: Facts = CALM, within: Bounds = TOP) -> bool:
    return guard(remit, Pass(to, "a part", within=within), facts) == ALLOW


# --- self and loop -----------------------------------------------------------------------------


@pytest.mark.rule("chain.self", "chain.sentence")
def test_no_agent_delegates_to_itself_on_an_empty_chain_either():
    verdict = refusal(not_self, first_remit("kik"), "kik")

    assert verdict.rule == "self"
    assert verdict.sentence == "'kik' cannot delegate to itself; do this part yourself or ask someone else"


@pytest.mark.rule("chain.self", "names.one-agent")
@pytest.mark.parametrize("to", ["KIK", " kik ", "kik!", "-kik-"])
def test_another_spelling_of_its_own_name_does_not_help(to):
    assert refusal(not_self, first_remit("kik"), to).rule == "self"


def test_someone_else_may_be_asked():
    assert allows(not_self, first_remit("kik"), "coder")


@pytest.mark.rule("chain.loop", "chain.sentence")
def test_who_is_already_in_the_delegation_is_not_asked_again():
    verdict = refusal(no_loop, remit_along("kik", "coder"), "kik")

    assert verdict.rule == "loop"
    assert verdict.sentence == (
        "'kik' is already in this delegation (kik > coder); ask someone else or finish the task yourself"
    )


@pytest.mark.rule("chain.loop", "chain.self", "names.one-agent")
@given(st.permutations(AGENTS), st.integers(1, 5), st.sampled_from(["{}", " {} ", "{}!", "_{}_"]), st.booleans())
def test_everyone_in_the_chain_is_refused_in_any_spelling_and_everyone_else_is_not(names, length, spelling, shout):
    remit = remit_along(*names[:length])

    for name in names:
        written = spelling.format(name.upper() if shout else name)
        verdict = judge((not_self, no_loop), remit, Pass(written, "a part"), facts_of(NOW))
        assert (verdict.answer is Answer.DENY) == (name in names[:length])


# --- unknown and not allowed -------------------------------------------------------------------


@pytest.mark.rule("chain.sentence")
def test_an_unknown_agent_is_refused_with_those_who_may_be_asked():
    verdict = refusal(known, first_remit(), "ghost", facts_of(NOW, known=False, roster=("coder", "tester")))

    assert verdict == deny("unknown", "there is no agent 'ghost'; you may ask coder, tester")


@pytest.mark.rule("chain.sentence")
def test_who_may_ask_no_one_is_told_to_finish_alone():
    verdict = refusal(known, first_remit(), "ghost", facts_of(NOW, known=False))

    assert verdict.sentence == "there is no agent 'ghost'; there is no one you may ask; finish the task yourself"


@pytest.mark.parametrize(("count", "end"), [(8, "a7"), (9, "a7 and 1 more"), (20, "a7 and 12 more")])
def test_a_long_roster_is_cut_and_counted(count, end):
    roster = tuple(f"a{number}" for number in range(count))

    verdict = refusal(known, first_remit(), "ghost", facts_of(NOW, known=False, roster=roster))

    assert verdict.sentence.endswith(f"you may ask a0, a1, a2, a3, a4, a5, a6, {end}")


def test_a_known_agent_is_not_refused_as_unknown():
    assert allows(known, first_remit(), "coder")


@pytest.mark.rule("asks.default-deny", "chain.sentence")
def test_an_agent_asks_only_whom_its_card_names():
    facts_ = facts_of(NOW, asks=frozenset({"tester", "coder"}))

    verdict = refusal(allowed, first_remit("lead"), "poet", facts_)

    assert verdict == deny("not-allowed", "'lead' may not ask 'poet'; its card lets it ask coder, tester")
    assert allows(allowed, first_remit("lead"), "coder", facts_)


@pytest.mark.rule("asks.alike")
def test_an_agent_that_may_not_ask_somebody_does_not_learn_whether_there_is_somebody():
    there, not_there = (facts_of(NOW, asks=frozenset({"tester"}), known=one) for one in (True, False))

    unknown = refusal(known, first_remit("lead"), "poet", not_there)
    assert unknown.sentence == refusal(allowed, first_remit("lead"), "poet", there).sentence
    bounded = first_remit("lead", within=Bounds(agents=["tester"]))
    unknown = refusal(known, bounded, "poet", facts_of(NOW, known=False, roster=("tester",)))
    assert unknown.sentence == refusal(allowed, bounded, "poet", facts_of(NOW, roster=("tester",))).sentence
    assert unknown.sentence == "'poet' is outside the bounds of this run; you may ask tester"
    misspelled = facts_of(NOW, asks=frozenset({"poet"}), known=False)
    assert refusal(known, first_remit("lead"), "poet", misspelled).sentence.startswith("there is no agent 'poet'")
    person = first_remit("poet", within=Bounds(agents=["tester"]))  # whoever begins a run may know who is there
    assert refusal(known, person, "poet", facts_of(NOW, known=False)).sentence.startswith("there is no agent 'poet'")


@pytest.mark.rule("asks.default-deny", "bounds.empty")
def test_a_card_that_names_no_one_lets_its_agent_ask_no_one():
    verdict = refusal(allowed, first_remit("lead"), "coder", facts_of(NOW, asks=NONE))

    assert verdict.sentence.startswith("'lead' may not ask 'coder'; its card lets it ask no one")


@pytest.mark.rule("asks.default-deny")
def test_a_star_lets_it_ask_anyone_within_the_bounds():
    anyone = facts_of(NOW, asks=ANY, roster=("poet", "tester"))
    remit = first_remit("lead", within=Bounds(agents=["lead", "tester"]))

    assert allows(allowed, remit, "tester", anyone)
    assert refusal(allowed, remit, "coder", anyone) == deny(
        "not-allowed", "'coder' is outside the bounds of this run; you may ask tester"
    )


@pytest.mark.parametrize("guard", [allowed, admitted])
def test_bounds_that_come_with_the_wish_count_as_well(guard):
    remit = first_remit("lead")

    assert refusal(guard, remit, "coder", within=Bounds(agents=["tester"])).rule == "not-allowed"
    assert allows(guard, remit, "coder", within=Bounds(agents=["coder"]))


@pytest.mark.rule("plan.bounds")
def test_what_leads_a_plan_is_no_agent_and_cannot_be_asked_for_outside_the_bounds():
    within = Bounds(agents=["tester"])

    assert allows(admitted, first_remit("plan", within=within), "plan")
    assert refusal(admitted, first_remit("lead", within=within), "plan").rule == "not-allowed"
    assert refusal(admitted, first_remit("plan", within=within), "coder").rule == "not-allowed"


@pytest.mark.rule("bounds.empty")
def test_bounds_without_agents_admit_no_one():
    assert refusal(admitted, first_remit(within=Bounds(agents=())), "coder").rule == "not-allowed"


# --- depth -------------------------------------------------------------------------------------


@pytest.mark.rule("chain.depth", "chain.sentence")
def test_a_hop_beyond_the_depth_is_refused_with_the_figures():
    remit = remit_along("lead", "coder", "tester", within=Bounds(depth=2))

    verdict = refusal(not_too_deep, remit, "poet")

    assert verdict.rule == "depth"
    assert "2 deep (lead > coder > tester) and at most 2 is allowed; finish the task yourself" in verdict.sentence


@pytest.mark.rule("chain.depth")
@given(st.integers(1, 5), st.integers(0, 6))
def test_a_hop_is_refused_exactly_when_there_are_as_many_hops_as_allowed(length, depth):
    remit = remit_along(*AGENTS[:length], within=Bounds(depth=depth))

    assert allows(not_too_deep, remit, "poet") == (length - 1 < depth)


@pytest.mark.rule("chain.depth")
def test_three_hops_are_allowed_by_default():
    assert DEFAULT_DEPTH == 3


@pytest.mark.rule("chain.depth")
def test_a_wish_may_allow_less_depth_but_never_more():
    remit = remit_along("lead", "coder", within=Bounds(depth=2))

    assert refusal(not_too_deep, remit, "poet", within=Bounds(depth=1)).rule == "depth"
    assert allows(not_too_deep, remit, "poet", within=Bounds(depth=9))
    deeper = remit_along("lead", "coder", "tester", within=Bounds(depth=2))
    assert refusal(not_too_deep, deeper, "poet", within=Bounds(depth=9)).rule == "depth"


def test_bounds_without_a_depth_do_not_limit_it():
    assert allows(not_too_deep, remit_along(*AGENTS), "poet")


# --- time and numbers --------------------------------------------------------------------------


@pytest.mark.rule("task.deadline", "chain.sentence")
def test_after_the_deadline_no_one_is_asked():
    verdict = refusal(in_time, first_remit(), "coder", facts_of(DEADLINE + 1_500_000))

    assert verdict.rule == "deadline"
    assert verdict.sentence == "the deadline passed 1.5 s ago; 'coder' was not asked; answer with what you have"


@pytest.mark.rule("task.deadline")
def test_the_deadline_itself_is_too_late_and_a_microsecond_before_is_not():
    assert refusal(in_time, first_remit(), "coder", facts_of(DEADLINE)).rule == "deadline"
    assert allows(in_time, first_remit(), "coder", facts_of(DEADLINE - 1))


@pytest.mark.rule("task.deadline")
def test_a_wish_may_have_an_earlier_deadline():
    assert refusal(in_time, first_remit(), "coder", within=Bounds(deadline=NOW)).rule == "deadline"


def test_bounds_without_a_deadline_are_never_late():
    endless = first_remit()._replace(bounds=TOP)

    assert allows(in_time, endless, "coder", facts_of(2**62))


@pytest.mark.rule("chain.sentence")
def test_a_busy_agent_is_refused_with_the_figures():
    verdict = refusal(not_busy, first_remit(), "coder", facts_of(NOW, running=2, limit=2))

    assert verdict == deny("concurrency", "'coder' is busy with 2 of 2 tasks; ask someone else or try again later")


@pytest.mark.parametrize(("running", "limit"), [(1, 2), (0, 1), (1000, None)])
def test_an_agent_with_room_or_without_a_limit_is_not_busy(running, limit):
    assert allows(not_busy, first_remit(), "coder", facts_of(NOW, running=running, limit=limit))


# --- breakers ----------------------------------------------------------------------------------


@pytest.mark.rule("breaker.opens", "chain.sentence")
@pytest.mark.parametrize(
    ("breaker", "sentence"),
    [
        (RESTS, "'coder' failed 3 times in a row and is paused for 60 s; ask someone else"),
        (tripped(CLOSED, "under repair"), "'coder' was taken out by an operator: under repair; ask someone else"),
        (
            Breaker("half-open", 3, NOW + 1, "t9", ""),
            "'coder' failed 3 times in a row and is being tried again; ask someone else meanwhile",
        ),
    ],
    ids=["rests", "taken out", "is tried"],
)
def test_an_agent_whose_breaker_is_open_is_not_asked(breaker, sentence):
    assert refusal(not_broken, first_remit(), "coder", facts_of(NOW, breaker=breaker)) == deny("breaker", sentence)
    persons = refusal(not_broken_for_a_person, first_remit(), "coder", facts_of(NOW, breaker=breaker))
    assert (persons.rule, "`remit breaker reset coder`" in persons.sentence) == ("breaker", True)


@pytest.mark.rule("breaker.opens", "breaker.probe", "breaker.expires")
@pytest.mark.parametrize(
    "breaker",
    [
        CLOSED,
        Breaker(),
        Breaker(failures=2, why="it broke"),
        Breaker("open", 3, NOW, "", ""),
        Breaker("half-open", 3, NOW, "t9", ""),
    ],
    ids=["closed", "closed as stored", "shaky", "cooled off", "probe expired"],
)
def test_a_breaker_that_is_closed_or_wants_a_probe_is_no_obstacle(breaker):
    assert allows(not_broken, first_remit(), "coder", facts_of(NOW, breaker=breaker))
    assert allows(not_broken_for_a_person, first_remit(), "coder", facts_of(NOW, breaker=breaker))


# --- tiers -------------------------------------------------------------------------------------


@pytest.mark.rule("tier.bounds", "chain.sentence")
def test_no_one_joins_a_run_that_has_all_its_agents():
    remit = first_remit(within=Bounds(members=2))
    full = facts_of(NOW, members=frozenset({"lead", "tester"}))

    assert refusal(within_tier, remit, "coder", full) == deny(
        "tier", "this run has 2 of 2 agents, so 'coder' cannot join; work with them"
    )
    assert allows(within_tier, remit, "tester", full)  # it takes part already
    assert allows(within_tier, remit, "coder", facts_of(NOW, members=frozenset({"lead"})))


@pytest.mark.rule("tier.bounds", "chain.sentence")
def test_no_one_is_asked_when_what_it_costs_cannot_be_paid():
    spent = ("tier", "this part of the run has used 10,000 of 10,000 tokens; 'coder' was not asked; finish")

    assert refusal(affordable, first_remit(), "coder", facts_of(NOW, payment=deny(*spent))) == deny(*spent)
    assert allows(affordable, first_remit(), "coder", CALM)


@pytest.mark.rule("tier.bounds", "bounds.narrow")
def test_a_wish_may_make_the_tier_smaller_but_never_larger():
    used, tight = facts_of(NOW, members=frozenset({"lead"})), Bounds(members=1)

    assert refusal(within_tier, first_remit(), "coder", used, within=tight).rule == "tier"
    assert refusal(within_tier, first_remit(within=tight), "coder", used, within=Bounds(members=9))


@pytest.mark.rule("approval.doors")
def test_what_a_person_has_to_approve_is_asked_for_when_all_else_says_yes():
    asks = Verdict(Answer.ASK, "approval", "'coder' works only after an approval")

    assert judge(ORDER, first_remit(), Pass("coder", "x"), facts_of(NOW, approval=asks)) == asks
    assert judge(ORDER, first_remit(), Pass("lead", "x"), facts_of(NOW, approval=asks)).rule == "self"


# --- handoffs ----------------------------------------------------------------------------------


@pytest.mark.rule("handoff.refused", "chain.sentence")
def test_a_task_is_not_handed_to_whom_it_is_held_by():
    assert refusal(not_to_itself, first_remit("lead"), "Lead") == deny(
        "self", "'lead' holds this task already; go on, or hand it to someone else"
    )
    assert allows(not_to_itself, first_remit("lead"), "coder")


@pytest.mark.rule("handoff.back", "chain.sentence")
def test_a_task_does_not_go_up_to_someone_who_waits_for_it():
    remit = remit_along("lead", "coder", "tester")

    for asker in ("lead", "coder"):
        assert refusal(not_to_an_asker, remit, asker) == deny(
            "loop", f"'{asker}' waits for this task (lead > coder > tester); answer it instead of handing it back"
        )
    assert allows(not_to_an_asker, remit, "poet")


@pytest.mark.rule("handoff.back")
@given(st.lists(st.sampled_from(["tester", "writer", "poet"]), max_size=6), st.booleans())
def test_a_task_may_go_back_to_the_agent_that_held_it_before(holders, below):
    remit = remit_along("lead", "coder") if below else first_remit("coder")
    earlier = ["coder"]
    for holder in holders:
        remit = handed_to(remit, holder)
        earlier.append(holder)

    for holder in set(earlier) - {remit.holder}:
        assert judge(HANDOFF.guards, remit, Pass(holder, "go on"), CALM) == ALLOW
    if below:
        assert judge(HANDOFF.guards, remit, Pass("lead", "go on"), CALM).rule == "loop"


@pytest.mark.rule("handoff.back", "handoff.chain")
def test_the_new_holder_may_ask_the_old_one():
    remit = handed_to(remit_along("lead", "coder"), "tester")

    assert judge(ORDER, remit, Pass("coder", "a part"), CALM) == ALLOW


@pytest.mark.rule("handoff.limit", "chain.sentence")
def test_a_task_that_has_changed_hands_too_often_stays_where_it_is():
    assert refusal(few_handoffs, first_remit(), "coder", facts_of(NOW, handoffs=5)) == deny(
        "handoffs", "this task has changed hands 5 of 5 times, so 'coder' cannot take over; finish it yourself"
    )


@pytest.mark.rule("handoff.limit", "handoff.run-limit")
@given(st.integers(0, 8), st.integers(0, 8), st.integers(0, 8), st.none() | st.integers(0, 8))
def test_a_task_and_all_of_a_run_change_hands_exactly_as_often_as_allowed(made, most, in_run, limit):
    remit = first_remit(within=Bounds(handoffs=limit))
    facts_ = facts_of(NOW, handoffs=made, most_handoffs=most, run_handoffs=in_run)

    assert allows(few_handoffs, remit, "coder", facts_) == (made < most and (limit is None or in_run < limit))


@pytest.mark.rule("handoff.run-limit", "chain.sentence")
def test_what_other_tasks_of_the_run_handed_over_counts_for_the_bound():
    remit = first_remit(within=Bounds(handoffs=2))

    assert refusal(few_handoffs, remit, "coder", facts_of(NOW, run_handoffs=2)) == deny(
        "handoffs", "tasks of this run have changed hands 2 of 2 times, so 'coder' cannot take over; finish it yourself"
    )


@pytest.mark.rule("run.sends", "chain.sentence")
def test_a_command_goes_to_so_many_at_once_and_no_more():
    assert allows(few_sends, first_remit(), "coder", facts_of(NOW, sends=100))
    assert refusal(few_sends, first_remit(), "coder", facts_of(NOW, sends=101)) == deny(
        "sends",
        "a command may send at most 100 parts, and this one has 101; nothing was sent, not even to 'coder'. Send fewer",
    )


@pytest.mark.rule("run.size", "chain.sentence")
def test_a_run_has_so_many_tasks_and_no_more():
    remit = first_remit(within=Bounds(tasks=1_000))

    assert allows(room_for_task, remit, "coder", facts_of(NOW, tasks=999))
    assert allows(room_for_task, first_remit(), "coder", facts_of(NOW, tasks=9_999))
    assert refusal(room_for_task, remit, "coder", facts_of(NOW, tasks=1_000)) == deny(
        "tasks", "this run has 1,000 of 1,000 tasks, so 'coder' was not asked; finish with what you have"
    )
    assert refusal(room_for_task, remit, "coder", facts_of(NOW, tasks=3), Bounds(tasks=3)).rule == "tasks"


@pytest.mark.rule("repeat.same", "repeat.turns", "chain.sentence")
def test_the_same_delegation_with_the_same_result_is_refused_in_the_end():
    for times in (1, 10, 19):
        assert allows(not_again, first_remit(), "coder", facts_of(NOW, repetition=Repetition(times)))
    assert refusal(not_again, first_remit(), "coder", facts_of(NOW, repetition=Repetition(20))) == deny(
        "repeat",
        "'lead' has made the same call 20 times, the last to 'coder', and the result is the same; "
        "change the task or finish with what you have. At 30 your task is stopped",
    )
    assert refusal(not_again, first_remit(), "coder", facts_of(NOW, repetition=Repetition(30, in_turn=True))) == deny(
        "repeat",
        "'lead' has made the same two calls in turn 30 times, the last to 'coder', and the result is the same; "
        "its task is stopped",
    )


@pytest.mark.rule("handoff.off", "chain.sentence")
def test_with_handoffs_off_every_task_stays_where_it_was_put():
    remit = first_remit(within=Bounds(handoffs=0))

    assert judge(HANDOFF.guards, remit, Pass("coder", "go on"), CALM) == deny(
        "handoffs", "handoffs are off in this run, so 'coder' cannot take over; finish the task yourself"
    )
    assert judge(FAN_OUT.guards, remit, Pass("coder", "go on"), CALM).rule == "handoffs"
    assert judge(ORDER, remit, Pass("coder", "a part"), CALM) == ALLOW  # asking is not handing over


@pytest.mark.rule("handoff.deadlock", "chain.sentence")
def test_the_same_handoff_again_is_refused():
    assert refusal(no_repeat, first_remit("lead"), "coder", facts_of(NOW, repeats=True)) == deny(
        "deadlock",
        "'lead' has just handed the same thing to 'coder', and it came back; "
        "change something, or finish the task yourself",
    )
    assert allows(no_repeat, first_remit("lead"), "coder")


# --- all of them together ----------------------------------------------------------------------


@pytest.mark.rule("chain.order")
@pytest.mark.parametrize(
    "guards",
    [passage.guards for passage in PASSAGES],
    ids=[f"{passage.name}{' queued' if passage.queued else ''}" for passage in PASSAGES],
)
@given(remit=remits, wish=wishes, facts_=facts, data=st.data())
def test_whether_it_is_refused_does_not_depend_on_the_order_of_the_guards(guards, remit, wish, facts_, data):
    shuffled = data.draw(st.permutations(guards))

    assert judge(shuffled, remit, wish, facts_).answer is judge(guards, remit, wish, facts_).answer


@pytest.mark.rule("chain.order")
@given(
    st.permutations([ALLOW, ALLOW, Verdict(Answer.ASK, "x"), Verdict(Answer.ASK, "y"), deny("z", "no")]),
    st.integers(0, 5),
)
def test_the_most_severe_answer_counts_and_among_equals_the_first(verdicts, length):
    guards = [lambda *_, verdict=verdict: verdict for verdict in verdicts[:length]]

    found = judge(guards, first_remit(), Pass("coder", "code"), facts_of(NOW))

    worst = max((verdict.answer for verdict in verdicts[:length]), default=Answer.ALLOW)
    assert found == next((v for v in verdicts[:length] if v.answer is worst), ALLOW)


@pytest.mark.rule("chain.order")
@pytest.mark.parametrize("guards", [ORDER, HANDOFF.guards], ids=["hop", "handoff"])
@given(remit=remits, wish=wishes, facts_=facts)
def test_the_first_guard_that_refuses_is_the_one_reported(guards, remit, wish, facts_):
    refusals = [v for guard in guards if (v := guard(remit, wish, facts_)).answer is Answer.DENY]

    assert judge(guards, remit, wish, facts_) == (refusals[0] if refusals else ALLOW)


def rules_said(guards, remit, to: str, facts_: Facts) -> list[str]:
    """The rule that is reported, then the one that would be if that guard were not there, and so on."""
    said = []
    left = list(guards)
    while (verdict := judge(left, remit, Pass(to, "a part"), facts_)) != ALLOW:
        said.append(verdict.rule)
        left.pop(0)
    return said


WRONG_IN_EVERY_WAY = facts_of(
    DEADLINE,
    members=["writer"],
    known=False,
    asks=NONE,
    running=1,
    limit=1,
    breaker=tripped(CLOSED, "under repair"),
    tokens=1,
    tasks=1,
    run_handoffs=1,
    sends=SENDS + 1,
    repetition=Repetition(20),
    repeats=True,
    payment=deny("credits", "there is no money"),
    approval=deny("approval", "nobody said yes"),
)
TIGHT = Bounds(agents=["lead", "coder"], depth=1, handoffs=1, members=1, tasks=1)


@pytest.mark.rule("chain.order")
def test_refusals_are_reported_in_this_order():
    # A new guard of ORDER must refuse these facts too: add what it refuses to WRONG_IN_EVERY_WAY, and its rule below.
    said = rules_said(ORDER, remit_along("lead", "coder", within=TIGHT), "coder", WRONG_IN_EVERY_WAY)

    assert said == [
        "self", "unknown", "not-allowed", "loop", "depth", "deadline", "breaker", "tier", "credits", "tasks",
        "repeat", "concurrency", "approval",
    ]  # fmt: skip


@pytest.mark.rule("chain.order", "handoff.refused")
def test_refused_handoffs_are_reported_in_this_order():
    # A name that both holds the task and waits for it cannot come about; here it shows every refusal at once.
    remit = remit_along("lead", "coder", within=TIGHT)._replace(holder="lead")

    assert rules_said(HANDOFF.guards, remit, "lead", WRONG_IN_EVERY_WAY) == [
        "self", "unknown", "not-allowed", "loop", "deadline", "breaker", "handoffs", "deadlock", "tier", "credits",
        "concurrency", "approval",
    ]  # fmt: skip
    assert rules_said(FAN_OUT.guards, remit, "lead", WRONG_IN_EVERY_WAY) == [
        "deadline", "sends", "handoffs", "deadlock",
    ]  # fmt: skip


@pytest.mark.rule("chain.sentence")
@pytest.mark.parametrize("guards", [ORDER, HANDOFF.guards, SUBMIT.guards], ids=["hop", "handoff", "submit"])
@given(remit=remits, wish=wishes, facts_=facts)
def test_every_refusal_names_its_rule_and_the_agent_and_says_more_than_no(guards, remit, wish, facts_):
    verdict = judge(guards, remit, wish, facts_)

    if verdict.answer is Answer.DENY:
        assert verdict.rule
        assert f"'{wish.to}'" in verdict.sentence
        assert ";" in verdict.sentence
    else:
        assert verdict == ALLOW


def test_the_first_holder_is_judged_by_what_holds_without_an_asker():
    remit = first_remit("lead", within=Bounds(agents=["lead"], depth=0))
    nobody_asks = facts_of(NOW, asks=NONE)

    assert judge(BEGIN.guards, remit, Pass("lead", "build it"), nobody_asks) == ALLOW
    assert judge(BEGIN.guards, remit, Pass("coder", "build it"), nobody_asks).rule == "not-allowed"


@pytest.mark.parametrize(("submitting", "asking"), [(SUBMIT.guards, ORDER), (BEGIN_QUEUED.guards, BEGIN.guards)])
def test_what_is_put_into_a_queue_waits_there_until_its_agent_is_free(submitting, asking):
    assert [guard for guard in asking if guard not in submitting] == [not_busy]
    assert [guard for guard in asking if guard in submitting] == [*submitting]
    busy, remit = facts_of(NOW, running=2, limit=2, asks=ANY), first_remit("lead", within=Bounds(depth=3))
    assert judge(asking, remit, Pass("coder", "a part"), busy).rule == "concurrency"
    assert judge(submitting, remit, Pass("coder", "a part"), busy) == ALLOW


@pytest.mark.rule("spawn.limit")
def test_an_asker_has_only_so_many_tasks_running_beside_it():
    verdict = refusal(few_spawned, first_remit("lead"), "coder", facts_of(NOW, spawned=SPAWNED))

    assert verdict == deny(
        "spawn",
        "'lead' has 5 tasks running beside it already and none ended within 30 s; "
        "wait for one of them, or do this part yourself",
    )
    assert allows(few_spawned, first_remit("lead"), "coder", facts_of(NOW, spawned=SPAWNED - 1))
    assert allows(few_spawned, first_remit("lead"), "coder", facts_of(NOW, spawned=SPAWNED, most_spawned=6))


@pytest.mark.rule("spawn.limit")
def test_spawning_is_submitting_with_one_guard_more():
    assert SPAWN.guards == (*SUBMIT.guards, few_spawned)
    assert all(passage.queued for passage in (SPAWN, SUBMIT, BEGIN_QUEUED))
    assert not any(passage.queued for passage in (BEGIN, DELEGATE, HANDOFF, FAN_OUT, CLAIM, RESUME))


def test_a_task_that_was_asked_for_before_is_judged_by_what_may_have_changed():
    broken = facts_of(NOW, asks=NONE, running=2, limit=2, breaker=RESTS)

    assert judge(CLAIM.guards, first_remit(), Pass("coder", "a part"), broken).rule == "breaker"
    assert judge(CLAIM.guards, first_remit(), Pass("coder", "a part"), facts_of(DEADLINE)).rule == "deadline"
    assert judge(RESUME.guards, first_remit(), Pass("coder", "a part"), broken) == ALLOW
    assert judge(RESUME.guards, first_remit(), Pass("coder", "a part"), facts_of(NOW, known=False)).rule == "unknown"
