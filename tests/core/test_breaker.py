"""The breaker: when it opens, whom it lets try, and that it never stays shut by accident."""

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from core.make import NOW, SECOND
from remit.core.breaker import (
    CLOSED,
    TRANSITIONS,
    UNTIL_RESET,
    Breaker,
    BreakerPolicy,
    admits,
    failed,
    given_back,
    mermaid,
    probing,
    sentence,
    succeeded,
    tripped,
)

BREAKER_POLICY = BreakerPolicy()
OPEN = Breaker("open", 3, NOW + 60 * SECOND, "", "it broke")
TRYING = Breaker("half-open", 3, NOW + 300 * SECOND, "t9", "it broke")
BREAKERS = [CLOSED, Breaker(failures=2, why="it broke"), OPEN, TRYING, tripped(CLOSED, "under repair")]

breakers = st.sampled_from(BREAKERS)


def after(*ends: str, breaker: Breaker = CLOSED, breaker_policy: BreakerPolicy = BREAKER_POLICY) -> Breaker:
    """The breaker after tasks that ended like this, one after the other."""
    for number, end in enumerate(ends):
        task = f"t{number}"
        breaker = succeeded(breaker, task) if end == "ok" else failed(breaker, breaker_policy, task, end, NOW)
    return breaker


# --- opening -----------------------------------------------------------------------------------


@pytest.mark.rule("breaker.opens")
def test_the_third_failure_in_a_row_opens_it_for_the_cool_off():
    assert after("a", "b") == Breaker("closed", 2, 0, "", "b")
    assert after("a", "b", "c") == Breaker("open", 3, NOW + 60 * SECOND, "", "c")


@pytest.mark.rule("breaker.opens")
@given(st.lists(st.sampled_from(["ok", "no"]), max_size=12), st.integers(1, 4))
def test_it_opens_exactly_when_so_many_failures_stand_in_a_row(ends, most):
    told = " ".join(ends)

    found = after(*ends, breaker_policy=BreakerPolicy(failures=most))

    assert (found.state == "open") == (" ".join(["no"] * most) in told)
    assert found.state in ("closed", "open")


@pytest.mark.rule("breaker.opens")
def test_a_success_ends_the_row():
    assert after("no", "no", "ok") == CLOSED
    assert after("no", "no", "ok", "no", "no").state == "closed"


@pytest.mark.rule("breaker.opens")
@given(st.integers(0, 60 * SECOND - 1))
def test_while_it_is_open_it_lets_no_one_through(later):
    assert admits(OPEN, NOW + later) == "no"


@pytest.mark.rule("breaker.opens")
@pytest.mark.parametrize("breaker", [CLOSED, Breaker(failures=2)])
def test_while_it_is_closed_it_lets_everyone_through(breaker):
    assert admits(breaker, NOW) == "yes"


@pytest.mark.rule("breaker.opens")
def test_what_began_before_it_opened_says_nothing_new():
    assert after("no", "ok", breaker=OPEN) == OPEN


# --- trying again ------------------------------------------------------------------------------


@pytest.mark.rule("breaker.probe")
def test_after_the_cool_off_one_is_let_through_and_no_other():
    then = OPEN.until

    assert admits(OPEN, then) == "probe"
    trying = probing(OPEN, BREAKER_POLICY, "t9", then)
    assert trying == Breaker("half-open", 3, then + 300 * SECOND, "t9", "it broke")
    assert admits(trying, then) == "no"


@pytest.mark.rule("breaker.probe")
def test_the_probe_decides():
    assert succeeded(TRYING, "t9") == CLOSED
    assert failed(TRYING, BREAKER_POLICY, "t9", "again", NOW) == Breaker("open", 4, NOW + 60 * SECOND, "", "again")


@pytest.mark.rule("breaker.probe")
def test_nobody_else_decides_while_there_is_a_probe():
    assert succeeded(TRYING, "t8") == TRYING
    assert failed(TRYING, BREAKER_POLICY, "t8", "again", NOW) == TRYING


@pytest.mark.rule("breaker.expires")
def test_a_probe_that_never_reports_expires_and_another_is_let_through():
    assert admits(TRYING, TRYING.until - 1) == "no"
    assert admits(TRYING, TRYING.until) == "probe"

    again = probing(TRYING, BREAKER_POLICY, "t10", TRYING.until)

    assert (again.state, again.probe, again.failures) == ("half-open", "t10", 3)
    assert admits(again, TRYING.until) == "no"


@pytest.mark.rule("breaker.expires")
def test_a_probe_that_reports_after_another_took_its_place_is_not_heard():
    again = probing(TRYING, BREAKER_POLICY, "t10", TRYING.until)

    assert succeeded(again, "t9") == again
    assert failed(again, BREAKER_POLICY, "t9", "late", NOW) == again


@pytest.mark.rule("breaker.expires")
@given(breakers, st.integers(0, 1000 * SECOND))
def test_no_state_is_permanent_except_the_one_an_operator_chose(breaker, later):
    ends = max(NOW + later, breaker.until)

    assert (admits(breaker, ends) == "no") == (breaker.until == UNTIL_RESET and ends < UNTIL_RESET)


# --- operators ---------------------------------------------------------------------------------


@pytest.mark.rule("breaker.operator")
@given(breakers, st.integers(0, 10**9))
def test_an_agent_that_an_operator_took_out_stays_out_whatever_is_reported(breaker, seconds):
    out = tripped(breaker, "under repair")

    assert out == Breaker("open", breaker.failures, UNTIL_RESET, "", "under repair")
    assert admits(out, NOW + seconds * SECOND) == "no"
    assert succeeded(out, breaker.probe) == failed(out, BREAKER_POLICY, breaker.probe, "no", NOW) == out


# --- in words ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("breaker", "now", "words"),
    [
        (OPEN, NOW, "'kik' failed 3 times in a row and is paused for 60 s; ask someone else"),
        (OPEN, NOW + 1, "'kik' failed 3 times in a row and is paused for 60 s; ask someone else"),
        (OPEN, NOW + SECOND, "'kik' failed 3 times in a row and is paused for 59 s; ask someone else"),
        (OPEN, OPEN.until - 1, "'kik' failed 3 times in a row and is paused for 1 s; ask someone else"),
        (TRYING, NOW, "'kik' failed 3 times in a row and is being tried again; ask someone else meanwhile"),
        (tripped(OPEN, "under repair"), NOW, "'kik' was taken out by an operator: under repair; ask someone else"),
    ],
)
def test_a_breaker_says_why_not_and_what_to_do(breaker, now, words):
    assert sentence("kik", breaker, now) == words


@given(st.integers(0, 60 * SECOND - 1))
def test_a_caller_that_waits_as_long_as_the_breaker_says_is_admitted(later):
    words = sentence("kik", OPEN, NOW + later)

    seconds = int(words.split("paused for ")[1].split(" s")[0])
    assert admits(OPEN, NOW + later + seconds * SECOND) == "probe"


# --- the table ---------------------------------------------------------------------------------


def test_the_table_says_what_the_functions_do():
    shaky = Breaker(failures=2)
    found = {
        "closed": {
            "too many failures": failed(shaky, BREAKER_POLICY, "t1", "no", NOW),
            "tripped": tripped(shaky, "why"),
        },
        "open": {
            "cooled off": probing(OPEN, BREAKER_POLICY, "t1", OPEN.until),
            "tripped": tripped(OPEN, "why"),
            "reset": CLOSED,
        },
        "half-open": {
            "probe succeeded": succeeded(TRYING, "t9"),
            "probe failed": failed(TRYING, BREAKER_POLICY, "t9", "no", NOW),
            "probe expired": probing(TRYING, BREAKER_POLICY, "t10", TRYING.until),
            "probe given back": given_back(TRYING, "t9", NOW),
            "tripped": tripped(TRYING, "why"),
            "reset": CLOSED,
        },
    }

    states = {state: {what: breaker.state for what, breaker in moves.items()} for state, moves in found.items()}
    assert states == TRANSITIONS


def test_every_state_can_be_left_and_closed_can_be_reached_from_each():
    reached = {"closed"}
    for _ in TRANSITIONS:
        reached |= {state for state, moves in TRANSITIONS.items() if reached & set(moves.values())}

    assert reached == set(TRANSITIONS)
    assert all(set(moves.values()) - {state} for state, moves in TRANSITIONS.items())


def test_the_diagram_is_the_table():
    lines = mermaid().splitlines()

    assert lines[:3] == ["stateDiagram-v2", "    [*] --> closed", "    closed --> open: too many failures"]
    assert "    half_open --> half_open: probe expired" in lines
    assert len(lines) == 2 + sum(len(moves) for moves in TRANSITIONS.values())
    assert mermaid().endswith("\n")


# --- any history -------------------------------------------------------------------------------


class Life(RuleBasedStateMachine):
    """An agent that is asked, answers, fails or says nothing, in any order, with an operator and a clock."""

    def __init__(self) -> None:
        super().__init__()
        self.breaker_policy = BreakerPolicy(failures=3, cool_off=10 / SECOND, probe=20 / SECOND)  # microseconds
        self.breaker = CLOSED
        self.now = NOW
        self.asked = 0
        self.at_work: list[str] = []
        self.in_a_row = 0  # failures since the last success that counted, kept by hand
        self.trying = ""  # the probe that has neither reported nor expired, kept by hand
        self.expires = 0

    def move(self, to: Breaker, *whats: str) -> None:
        """The breaker is now that; if its state is another one, it is for one of these reasons."""
        if to.state != self.breaker.state:
            assert to.state in {TRANSITIONS[self.breaker.state].get(what) for what in whats}
        self.breaker = to
        if to.state != "half-open":
            self.trying = ""

    @rule(microseconds=st.sampled_from([1, 5, 9, 10, 20, 100]))
    def time_passes(self, microseconds):
        self.now += microseconds

    @rule()
    def someone_asks(self):
        before, answer = self.breaker, admits(self.breaker, self.now)
        if answer == "no":
            return  # a refusal reaches no one: the breaker is told nothing
        self.asked += 1
        task = f"t{self.asked}"
        self.at_work.append(task)
        if answer == "probe":
            assert before.state != "closed"
            assert not self.trying or self.now >= self.expires, "two probes at once"
            self.move(probing(before, self.breaker_policy, task, self.now), "cooled off", "probe expired")
            self.trying, self.expires = task, self.now + 20
            assert admits(self.breaker, self.now) == "no", "the next one is let through as well"
        else:
            assert before.state == "closed"

    @precondition(lambda self: self.at_work)
    @rule(data=st.data())
    def one_succeeds(self, data):
        task = self.at_work.pop(data.draw(st.integers(0, len(self.at_work) - 1)))
        before = self.breaker
        counts = before.state == "closed" or (before.state == "half-open" and task == self.trying)
        self.move(succeeded(before, task), "probe succeeded")
        assert self.breaker == (CLOSED if counts else before)
        self.in_a_row = 0 if counts else self.in_a_row

    @precondition(lambda self: self.at_work)
    @rule(data=st.data())
    def one_fails(self, data):
        task = self.at_work.pop(data.draw(st.integers(0, len(self.at_work) - 1)))
        before = self.breaker
        counts = before.state == "closed" or (before.state == "half-open" and task == self.trying)
        self.in_a_row += counts
        self.move(
            failed(before, self.breaker_policy, task, f"{task} broke", self.now), "too many failures", "probe failed"
        )
        if not counts:
            assert self.breaker == before
            return
        assert (self.breaker.failures, self.breaker.why) == (self.in_a_row, f"{task} broke")
        assert (self.breaker.state == "open") == (self.in_a_row >= 3)

    @rule()
    def an_operator_takes_it_out(self):
        self.move(tripped(self.breaker, "under repair"), "tripped")
        assert admits(self.breaker, self.now) == "no"

    @rule()
    def an_operator_lets_it_in(self):
        self.move(CLOSED, "reset")
        self.in_a_row = 0
        assert admits(self.breaker, self.now) == "yes"

    @invariant()
    def half_open_is_having_one_probe(self):
        assert (self.breaker.state == "half-open") == bool(self.trying) == bool(self.breaker.probe)
        assert self.breaker.probe == self.trying

    @invariant()
    def only_an_operator_shuts_it_permanently(self):
        if self.breaker.until != UNTIL_RESET:
            assert self.breaker.until <= self.now + 20
            assert admits(self.breaker, max(self.now, self.breaker.until)) != "no"

    @invariant()
    def closed_has_less_than_three_failures(self):
        assert self.breaker.state != "closed" or self.breaker.failures < 3


@pytest.mark.rule("breaker.opens", "breaker.probe", "breaker.expires")
class TestAnyHistory(Life.TestCase):
    pass


# --- as Python has it --------------------------------------------------------------------------


def test_until_when_a_breaker_rests_is_a_datetime_too():
    at = datetime(2023, 11, 14, 22, 13, 20, tzinfo=UTC)

    assert Breaker("open", 3, 1_700_000_000_000_000).rests_until == at
    assert CLOSED.rests_until is None
    assert tripped(CLOSED, "enough").rests_until is None


def test_a_breaker_says_what_it_is():
    assert repr(CLOSED) == "<Breaker closed, failures 0>"
    assert repr(Breaker("open", 3, 1, "", "no disk")) == "<Breaker open, failures 3: no disk>"


@pytest.mark.rule("breaker.probe-back")
def test_only_the_probe_can_give_itself_back():
    back = given_back(TRYING, "t9", NOW)

    assert (back.state, back.probe, admits(back, NOW)) == ("open", "", "probe")
    assert back.failures == TRYING.failures
    assert given_back(TRYING, "another", NOW) is TRYING
    assert given_back(OPEN, "t9", NOW) is OPEN
    assert given_back(CLOSED, "t9", NOW) is CLOSED


@pytest.mark.rule("breaker.told")
def test_a_person_is_told_how_to_let_it_in():
    for breaker in (OPEN, TRYING, tripped(CLOSED, "why")):
        assert "reset it with `remit breaker reset kik`" in sentence("kik", breaker, NOW, person=True)
        assert "ask someone else" in sentence("kik", breaker, NOW)
