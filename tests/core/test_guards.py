"""Guards: which hops are refused, in which order it is said, and in which words."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.make import AGENTS, NOW, SECOND, agent_names, agent_sets, bounds, first_remit, remit_along, wishes
from remit.core.allow import ANY, NONE
from remit.core.bounds import DEFAULT_DEPTH, TOP, Bounds
from remit.core.guards import (
    ALLOW,
    FIRST_HOLDER,
    ORDER,
    Answer,
    Facts,
    Verdict,
    admitted,
    allowed,
    deny,
    in_time,
    judge,
    known,
    no_loop,
    not_busy,
    not_self,
    not_too_deep,
)
from remit.core.remit import Pass

CALM = Facts(NOW)
DEADLINE = NOW + 300 * SECOND  # what a wish allows unless it says otherwise

remits = st.builds(
    remit_along,
    agent_names,
    st.sampled_from(["editor", "poet"]),
    within=st.just(TOP) | bounds,
) | st.builds(first_remit, agent_names, within=st.just(TOP) | bounds)

facts = st.builds(
    Facts,
    now=st.integers(NOW - 5, NOW + 5),
    known=st.booleans(),
    asks=agent_sets,
    roster=st.just(()) | st.just(("coder", "tester")),
    running=st.integers(0, 3),
    limit=st.none() | st.integers(1, 3),
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
        verdict = judge((not_self, no_loop), remit, Pass(written, "a part"), Facts(NOW))
        assert (verdict.answer is Answer.DENY) == (name in names[:length])


# --- unknown and not allowed -------------------------------------------------------------------


@pytest.mark.rule("chain.sentence")
def test_an_unknown_agent_is_refused_with_those_who_may_be_asked():
    verdict = refusal(known, first_remit(), "ghost", Facts(NOW, known=False, roster=("coder", "tester")))

    assert verdict == deny("unknown", "there is no agent 'ghost'; you may ask coder, tester")


@pytest.mark.rule("chain.sentence")
def test_who_may_ask_no_one_is_told_to_finish_alone():
    verdict = refusal(known, first_remit(), "ghost", Facts(NOW, known=False))

    assert verdict.sentence == "there is no agent 'ghost'; there is no one you may ask; finish the task yourself"


@pytest.mark.parametrize(("count", "end"), [(8, "a7"), (9, "a7 and 1 more"), (20, "a7 and 12 more")])
def test_a_long_roster_is_cut_and_counted(count, end):
    roster = tuple(f"a{number}" for number in range(count))

    verdict = refusal(known, first_remit(), "ghost", Facts(NOW, known=False, roster=roster))

    assert verdict.sentence.endswith(f"you may ask a0, a1, a2, a3, a4, a5, a6, {end}")


def test_a_known_agent_is_not_refused_as_unknown():
    assert allows(known, first_remit(), "coder")


@pytest.mark.rule("asks.default-deny", "chain.sentence")
def test_an_agent_asks_only_whom_its_card_names():
    facts_ = Facts(NOW, asks=frozenset({"tester", "coder"}))

    verdict = refusal(allowed, first_remit("lead"), "poet", facts_)

    assert verdict == deny("not-allowed", "'lead' may not ask 'poet'; its card lets it ask coder, tester")
    assert allows(allowed, first_remit("lead"), "coder", facts_)


@pytest.mark.rule("asks.default-deny", "bounds.empty")
def test_a_card_that_names_no_one_lets_its_agent_ask_no_one():
    verdict = refusal(allowed, first_remit("lead"), "coder", Facts(NOW, asks=NONE))

    assert verdict.sentence.startswith("'lead' may not ask 'coder'; its card lets it ask no one")


@pytest.mark.rule("asks.default-deny")
def test_a_star_lets_it_ask_anyone_within_the_bounds():
    anyone = Facts(NOW, asks=ANY, roster=("tester",))
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
def test_three_hops_are_allowed_unless_told_otherwise():
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
    verdict = refusal(in_time, first_remit(), "coder", Facts(DEADLINE + 1_500_000))

    assert verdict.rule == "deadline"
    assert verdict.sentence == "the deadline passed 1.5 s ago; 'coder' was not asked; answer with what you have"


@pytest.mark.rule("task.deadline")
def test_the_deadline_itself_is_too_late_and_a_microsecond_before_is_not():
    assert refusal(in_time, first_remit(), "coder", Facts(DEADLINE)).rule == "deadline"
    assert allows(in_time, first_remit(), "coder", Facts(DEADLINE - 1))


@pytest.mark.rule("task.deadline")
def test_a_wish_may_have_an_earlier_deadline():
    assert refusal(in_time, first_remit(), "coder", within=Bounds(deadline=NOW)).rule == "deadline"


def test_bounds_without_a_deadline_are_never_late():
    endless = first_remit()._replace(bounds=TOP)

    assert allows(in_time, endless, "coder", Facts(2**62))


@pytest.mark.rule("chain.sentence")
def test_a_busy_agent_is_refused_with_the_figures():
    verdict = refusal(not_busy, first_remit(), "coder", Facts(NOW, running=2, limit=2))

    assert verdict == deny("concurrency", "'coder' is busy with 2 of 2 tasks; ask someone else or try again later")


@pytest.mark.parametrize(("running", "limit"), [(1, 2), (0, 1), (1000, None)])
def test_an_agent_with_room_or_without_a_limit_is_not_busy(running, limit):
    assert allows(not_busy, first_remit(), "coder", Facts(NOW, running=running, limit=limit))


# --- all of them together ----------------------------------------------------------------------


@pytest.mark.rule("chain.order")
@given(remits, wishes, facts, st.permutations(ORDER))
def test_whether_a_hop_is_refused_does_not_depend_on_the_order_of_the_guards(remit, wish, facts_, shuffled):
    assert judge(shuffled, remit, wish, facts_).answer is judge(ORDER, remit, wish, facts_).answer


@pytest.mark.rule("chain.order")
@given(
    st.permutations([ALLOW, ALLOW, Verdict(Answer.ASK, "x"), Verdict(Answer.ASK, "y"), deny("z", "no")]),
    st.integers(0, 5),
)
def test_the_most_severe_answer_counts_and_among_equals_the_first(verdicts, length):
    guards = [lambda *_, verdict=verdict: verdict for verdict in verdicts[:length]]

    found = judge(guards, first_remit(), Pass("coder", "code"), Facts(NOW))

    worst = max((verdict.answer for verdict in verdicts[:length]), default=Answer.ALLOW)
    assert found == next((v for v in verdicts[:length] if v.answer is worst), ALLOW)


@pytest.mark.rule("chain.order")
@given(remits, wishes, facts)
def test_the_first_guard_that_refuses_is_the_one_reported(remit, wish, facts_):
    refusals = [v for guard in ORDER if (v := guard(remit, wish, facts_)).answer is Answer.DENY]

    assert judge(ORDER, remit, wish, facts_) == (refusals[0] if refusals else ALLOW)


@pytest.mark.rule("chain.order")
def test_refusals_are_reported_in_this_order():
    remit = remit_along("lead", "coder", within=Bounds(agents=["lead", "coder"], depth=1))
    wrong_in_every_way = Facts(DEADLINE, known=False, asks=NONE, running=1, limit=1)

    said = []
    guards = list(ORDER)
    while (verdict := judge(guards, remit, Pass("coder", "a part"), wrong_in_every_way)) != ALLOW:
        said.append(verdict.rule)
        guards.pop(0)

    assert said == ["self", "unknown", "not-allowed", "loop", "depth", "deadline", "concurrency"]


@pytest.mark.rule("chain.sentence")
@given(remits, wishes, facts)
def test_every_refusal_names_its_rule_and_the_agent_and_says_more_than_no(remit, wish, facts_):
    verdict = judge(ORDER, remit, wish, facts_)

    if verdict.answer is Answer.DENY:
        assert verdict.rule
        assert f"'{wish.to}'" in verdict.sentence
        assert ";" in verdict.sentence
    else:
        assert verdict == ALLOW


def test_the_first_holder_is_judged_by_what_holds_without_an_asker():
    remit = first_remit("lead", within=Bounds(agents=["lead"], depth=0))
    nobody_asks = Facts(NOW, asks=NONE)

    assert judge(FIRST_HOLDER, remit, Pass("lead", "build it"), nobody_asks) == ALLOW
    assert judge(FIRST_HOLDER, remit, Pass("coder", "build it"), nobody_asks).rule == "not-allowed"
