"""The rules on loops of models, as values."""

import pytest

from remit.core import loops
from remit.core.loops import AskCount, Echoes, Loops, ModelAsk, Rounds, SeenOutcomes
from remit.errors import BadInput
from remit.settings import Policy

RULES = Loops()
ASK = ModelAsk("a", "b", "the weather")
LONG_TEXT = "what was said so far " * 20


def asked(times: int, answer: str, came: bool | None = None, ask: ModelAsk = ASK) -> dict[str, AskCount]:
    rows: dict[str, AskCount] = {}
    for _ in range(times):
        rows |= loops.learned(ask, rows, answer, came).rows
    return rows


# -- settings ----------------------------------------------------------------------------------------------------


@pytest.mark.rule("loops.settings")
@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"same_ask": 1}, "same_ask is a whole number of at least 2 or None, not 1"),
        ({"any_ask": 0}, "any_ask is a whole number of at least 2 or None, not 0"),
        ({"refusals": 0}, "refusals is a whole number of at least 1 or None, not 0"),
        ({"strikes": -1}, "strikes is a whole number of at least 1 or None, not -1"),
        ({"stale": 1.5}, "stale is a whole number of at least 1 or None, not 1.5"),
        ({"requests": True}, "requests is a whole number of at least 1 or None, not True"),
        ({"hide": "no"}, "hide is True or False, not 'no'"),
        ({"polls": "status"}, "polls is a list of names of tools, not 'status'"),
        ({"polls": ["status", ""]}, "polls is a list of names of tools, not of ''"),
        ({"polls": [7]}, "polls is a list of names of tools, not of 7"),
    ],
)
def test_what_makes_no_sense_as_a_rule_is_refused(given: dict[str, object], said: str):
    with pytest.raises(BadInput) as no:
        Loops(**given)  # pyright: ignore[reportArgumentType]
    assert str(no.value) == said


@pytest.mark.rule("loops.settings")
def test_rules_are_part_of_a_policy():
    assert Policy().loops == Loops()
    assert Policy(loops=Loops(stale=None)).loops.stale is None
    with pytest.raises(BadInput, match=r"loops takes Loops\(...\), not False"):
        Policy(loops=False)  # pyright: ignore[reportArgumentType]


@pytest.mark.rule("loops.settings")
def test_all_rules_can_be_switched_off():
    off = Loops.off()
    assert (off.same_ask, off.any_ask, off.refusals, off.strikes) == (None, None, None, None)
    assert (off.stale, off.stale_asks, off.echo, off.requests, off.hide) == (None, None, None, None, False)
    assert loops.not_asked(off, ASK, {ASK.key: AskCount(99, 99), "!b": AskCount(9)}) == ""
    assert loops.last_time(off, ASK, AskCount(99, 99)) == ""


def test_polls_are_those_that_were_named_and_the_status_of_what_was_asked_for():
    rules = Loops(polls=["build_status"])
    assert [rules.is_poll(name) for name in ("build_status", "check_delegation_status", "search")] == [
        True,
        True,
        False,
    ]


def test_asking_has_a_limit_of_its_own_and_a_model_is_told_at_half_of_it():
    assert (RULES.most(asks=True), RULES.most(asks=False), RULES.told) == (8, 10, 5)
    assert (Loops(stale=None).told, Loops(stale=1).told, Loops.off().told) == (4, 1, 1)


# -- the same ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Review the plan.", "review  the PLAN!"),
        ("review the plan", "Please review the plan again"),
        ("review the plan", "review the plan, attempt 3"),
        ("review the plan", "review the plan (2nd time)"),
        ("review the plan", "Review the plan once more: retry #4"),
    ],
)
def test_counters_of_tries_and_politeness_do_not_make_another_request(one: str, other: str):
    assert loops.same(one) == loops.same(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("review number 17", "review number 18"),
        ("the news of 2026-11-16", "the news of 2026-11-17"),
        ("order 4711", "order 4712"),
        ("Prüfe Straße 3", "Prüfe Straße 4"),
        ("x" * 2_001 + " try 1", "x" * 2_001 + " try 2"),
    ],
)
def test_numbers_dates_and_ids_do(one: str, other: str):
    assert loops.same(one) != loops.same(other)


def test_of_a_long_text_only_case_and_space_do_not_matter():
    assert loops.same("A b " * 1_000) == loops.same("a  B " * 1_000)


# -- asking ------------------------------------------------------------------------------------------------------


@pytest.mark.rule("loops.same-ask")
def test_the_third_answer_in_vain_says_that_it_is_the_last_and_the_fourth_is_refused():
    long = "the weather is as it was yesterday and before"
    for times, told, refused in ((1, False, False), (2, False, False), (3, True, True)):
        rows = asked(times, long)
        assert bool(loops.last_time(RULES, ASK, rows[ASK.key])) is told
        assert bool(loops.not_asked(RULES, ASK, rows)) is refused
    rows = asked(3, long)
    assert loops.last_time(RULES, ASK, rows[ASK.key]) == (
        "[you have asked 'b' for this 3 times, and nothing new comes of it: it will not be asked for it again]"
    )
    assert loops.not_asked(RULES, ASK, rows) == (
        "'b' was not asked: you have asked it for this 3 times in this run, and the latest results brought "
        "nothing new; ask for something else, ask someone else, or finish with what you have"
    )


@pytest.mark.rule("loops.any-ask")
def test_the_fourteenth_time_is_refused_whatever_the_outcomes():
    rows = asked(12, "", came=True)
    assert loops.not_asked(RULES, ASK, rows) == ""
    rows |= loops.learned(ASK, rows, "", True).rows
    assert loops.not_asked(RULES, ASK, rows) == (
        "'b' was not asked: you have asked it for this 13 times in this run; finish with what you have"
    )


def test_an_answer_is_new_unless_it_is_one_of_the_last_four_of_that_agent_to_that_asker():
    rows: dict[str, AskCount] = {}
    news: list[bool] = []
    for number, answer in enumerate(["one", "two", "three", "four", "one", "five", "one"]):
        came = loops.learned(ModelAsk("a", "b", f"question {number}"), rows, f"a long answer that says {answer}", None)
        rows |= came.rows
        news.append(came.new)
    assert news == [True, True, True, True, False, True, True]
    other = loops.learned(ModelAsk("c", "b", "question 1"), rows, "a long answer that says five", None)
    assert other.new


def test_a_short_answer_to_another_question_is_new_and_to_the_same_it_is_not():
    rows = asked(1, "yes")
    assert loops.learned(ModelAsk("a", "b", "something else"), rows, "Yes", None).new
    assert not loops.learned(ASK, rows, "YES", None).new


def test_what_is_kept_of_a_request_is_named_by_who_asks_whom_and_what():
    assert ASK.keys == (ASK.key, ASK.pair, "!b")
    others = [ASK._replace(asker="c"), ASK._replace(agent="c"), ASK._replace(text="the news")]
    assert len({ASK.key, *(other.key for other in others)}) == 4
    assert ASK._replace(later=True).keys == ASK.keys


def test_the_outcomes_of_subtasks_say_more_than_the_answer():
    assert not loops.learned(ASK, {}, "an answer that was never given before", False).new
    rows = asked(3, "the same answer each time to the same", came=True)
    assert loops.not_asked(RULES, ASK, rows) == ""


@pytest.mark.rule("loops.strikes")
def test_an_agent_that_was_stopped_twice_is_not_asked_and_after_once_not_without_waiting():
    once, twice = {"!b": AskCount(1)}, {"!b": AskCount(2)}
    later = ASK._replace(later=True)
    assert loops.not_asked(RULES, ASK, once) == ""
    assert loops.not_asked(RULES, later, once) == (
        "'b' is not asked without waiting in this run any more: its latest task was stopped, as it got nowhere; do "
        "without it, or finish with what you have"
    )
    assert loops.not_asked(RULES, ASK, twice) == loops.not_asked(RULES, later, twice)
    assert loops.not_asked(RULES, ASK, twice) == (
        "'b' is not asked in this run any more: its latest 2 tasks were stopped, as it got nowhere; do without it, or "
        "finish with what you have"
    )
    assert loops.not_asked(Loops(strikes=None), ASK, twice) == ""


@pytest.mark.rule("loops.strikes")
def test_a_useful_outcome_in_between_resets_the_strikes():
    once = {"!b": AskCount(1)}
    assert loops.learned(ASK, once, "well", None).rows["!b"] == AskCount()
    assert "!b" not in loops.learned(ASK._replace(later=True), once, "well", True).rows
    assert "!b" not in loops.learned(ASK, once, "well", False).rows


# -- what is new --------------------------------------------------------------------------------------------------


def test_an_outcome_is_new_once_the_same_again_is_not_and_an_old_one_that_returns_is_neither():
    seen = SeenOutcomes()
    found = [seen.is_new("test", came) for came in ("red", "red", "green", "red", "red", "blue")]
    assert found == [True, False, True, None, False, True]
    assert seen.is_new("lint", "red") is True


def test_of_each_call_eight_outcomes_are_remembered():
    seen = SeenOutcomes()
    assert all(seen.is_new("page", str(number)) for number in range(9))
    assert seen.is_new("page", "1") is None
    assert seen.is_new("page", "0") is True


def test_as_many_calls_as_there_is_room_for_are_remembered():
    seen = SeenOutcomes()
    for number in range(loops.CALLS + 1):
        seen.is_new(f"read {number}", "text")
        seen.note_progress(f"task {number}", "", new=True)
    assert seen.is_new("read 0", "text") is True
    assert seen.is_new(f"read {loops.CALLS}", "text") is False
    assert seen.came("task 0", "") is None
    assert seen.came(f"task {loops.CALLS}", "") is True


def test_the_outcome_of_a_request_is_told_once():
    seen = SeenOutcomes()
    seen.note_progress("t", "the weather", new=False)
    seen.note_progress("t", "the weather", new=True)
    seen.note_progress("t", "the weather", new=False)
    seen.note_progress("t", "the news", new=False)
    assert [seen.came("t", "the weather"), seen.came("t", "the weather"), seen.came("t", "the news")] == [
        True,
        None,
        False,
    ]


# -- rounds -------------------------------------------------------------------------------------------------------


@pytest.mark.rule("loops.stale")
def test_ten_calls_in_one_answer_are_one_round_and_one_new_outcome_makes_it_new():
    rounds = Rounds()
    assert not rounds.has_gained
    assert [rounds.in_vain(1) for _ in range(10)] == [1] * 10
    assert [rounds.in_vain(number) for number in (2, 3, 3)] == [2, 3, 3]
    rounds.gained(4)
    assert rounds.in_vain(4) == 0
    assert rounds.has_gained
    assert rounds.in_vain(5) == 1


@pytest.mark.rule("loops.refusals")
def test_refusals_of_the_same_are_counted_by_round_and_whatever_is_new_forgets_them():
    rounds = Rounds()
    assert [rounds.refused("loop", "b", number) for number in (1, 1, 2, 3)] == [1, 1, 2, 3]
    assert rounds.refused("loop", "c", 4) == 1
    rounds.gained(5)
    assert rounds.refused("loop", "b", 6) == 1


@pytest.mark.rule("loops.refusals")
def test_refusals_count_for_all_agents_together_and_temporary_ones_do_not_count():
    rounds = Rounds()
    assert [rounds.refused("depth", name, number) for number, name in enumerate("bcd")] == [1, 2, 3]
    assert [rounds.refused(rule, "b", 9) for rule in ("concurrency", "spawn", "over")] == [0, 0, 0]


@pytest.mark.rule("loops.beside")
def test_refusals_of_tasks_side_by_side_count_together_until_something_new_comes_of_one():
    seen = SeenOutcomes()
    assert [seen.count_refusal("b", "a") for _ in range(3)] == [1, 2, 3]
    assert (seen.count_refusal("c", "a"), seen.count_refusal("b", "depth")) == (1, 1)
    seen.gained("b")
    seen.gained("nobody")
    assert (seen.count_refusal("b", "a"), seen.count_refusal("c", "a")) == (1, 2)
    rounds = Rounds()
    assert not rounds.has_refusals
    rounds.refused("loop", "b", 1)
    assert rounds.has_refusals


@pytest.mark.rule("loops.inside")
def test_what_was_told_and_answered_before_brings_nothing_new_and_what_is_said_for_the_first_time_does():
    rounds = Rounds()
    assert not rounds.exchanged("task: hands over", 1, says=False)
    assert not rounds.has_gained
    assert not rounds.exchanged("handed over: hands over", 2, says=False)
    assert rounds.exchanged("handed over: hands over", 3, says=False)
    assert not rounds.exchanged("handed over: hands over", 3, says=False), "the round is judged already"
    assert rounds.stale == 1
    assert not rounds.exchanged("handed over: something", 4, says=True)
    assert (rounds.stale, rounds.has_gained) == (0, True)


def test_sentences_say_what_to_do_instead():
    assert loops.stale_warning(5, 10) == (
        "[5 times in a row nothing new came of what you did; at 10 it is not done any more]"
    )
    tool = (
        "'t' was not used: 10 times in a row nothing new came of what you did; do something that you have not done "
        "yet, or finish with what you have"
    )
    assert loops.stale_sentence("t", 10, asks=False) == tool
    assert (
        loops.stale_sentence("t", 10, asks=True) == f"{tool}; if there is more to ask, ask for all of it in one answer"
    )


# -- echoes -------------------------------------------------------------------------------------------------------


@pytest.mark.rule("loops.echo")
def test_answers_that_return_to_a_text_that_only_grows_are_counted():
    echoes, text = Echoes(), LONG_TEXT
    for number in range(7):
        assert echoes.times("b", text + "more") == max(0, number - 1)
        echoes.learn("B", text, "I agree")
        text += " I agree"
    assert loops.echo_sentence("b", 6) == (
        "'b' was not asked: 6 times in a row it said again what it had said before, to a text that only grew; finish "
        "with what you have"
    )


@pytest.mark.rule("loops.echo")
def test_another_answer_and_another_text_are_no_echoes_and_a_refusal_counts_on():
    echoes = Echoes()
    for number in range(5):
        echoes.learn("b", LONG_TEXT + "x" * number, f"answer {number}")
    assert echoes.times("b", LONG_TEXT + "x" * 9) == 0
    for number in range(5):
        echoes.learn("c", f"{number}{LONG_TEXT}", "no")
    assert echoes.times("c", f"4{LONG_TEXT}!") == 0
    for number in range(3):
        echoes.learn("e", LONG_TEXT + "x" * number, "no")
    assert echoes.times("e", LONG_TEXT + "x" * 9) == 2
    assert echoes.times("e", "another text") == 0
    echoes.refused("E")
    assert echoes.times("e", LONG_TEXT + "x" * 9) == 3
