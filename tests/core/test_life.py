"""The laws of an attempt's life: every input in every state, time as an argument."""

import ast
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

import remit
from remit.core.life import NEVER, STRENGTH, Life, SetTimer
from remit.core.times import SECOND

USUAL = 600


class Span(NamedTuple):
    """How much time an attempt has: its own, the usual, and until its deadline."""

    own: int
    usual: int = USUAL
    deadline: int | None = None


ORDINARY = Span(USUAL)
TICKS = st.integers(0, 1_000)
SPANS = st.builds(Span, st.integers(1, 700), st.just(USUAL), st.none() | st.integers(-5, 800))
INPUTS = st.lists(
    st.tuples(
        st.sampled_from(("cancel", "fail", "release", "expire", "end", "ask", "answered", "wait", "go on", "shorten")),
        st.integers(0, 300),
    ),
    max_size=12,
)


def put(life: Life, what: str, now: int, number: int) -> object:
    """Give an input to a life, if it can come now."""
    if (what == "answered" and not life.asking) or (what == "go on" and not life.waits):
        return None
    acts: dict[str, Any] = {
        "cancel": lambda: life.cancel(f"reason {number}"),
        "fail": lambda: life.fail(RuntimeError(str(number))),
        "release": life.release,
        "expire": lambda: life.expire(now),
        "end": life.end,
        "ask": lambda: life.ask(now),
        "answered": lambda: life.answered(now),
        "wait": life.wait,
        "go on": life.go_on,
        "shorten": lambda: life.shorten(now, number),
    }
    return acts[what]()


def begun(span: Span = ORDINARY, now: int = 0, above: Life | None = None) -> Life:
    life = Life()
    life.begin(now, *span, above)
    return life


@given(SPANS, INPUTS)
def test_a_stop_is_only_ever_replaced_by_a_stronger_one(span: Span, inputs: list[tuple[str, int]]) -> None:
    life, now = begun(span), 0
    for what, number in inputs:
        now += number
        before = (life.stop, life.why, life.error)
        put(life, what, now, number)
        if life.stop == before[0]:
            assert (life.why, life.error) == before[1:]
        else:
            assert STRENGTH[life.stop] > STRENGTH[before[0]]


@given(SPANS, INPUTS)
def test_nothing_stops_what_is_over(span: Span, inputs: list[tuple[str, int]]) -> None:
    life = begun(span)
    life.end()
    before = (life.stop, life.why, life.error)
    for what, number in inputs:
        put(life, what, number, number)
        assert (life.stop, life.why, life.error, life.state) == (*before, "over")
    assert not any((life.cancel("late"), life.fail(RuntimeError()), life.release(), life.expire(0)))


@given(SPANS, INPUTS)
def test_a_deadline_comes_whatever_happens(span: Span, inputs: list[tuple[str, int]]) -> None:
    life, now = begun(span), 0
    for what, number in inputs:
        now += number
        hard = life.hard
        put(life, what, now, number)
        assert life.hard is None or life.ends <= life.hard
        assert hard is None or (life.hard is not None and life.hard <= hard)


@given(SPANS, INPUTS)
def test_the_timer_runs_out_when_its_time_is_up(span: Span, inputs: list[tuple[str, int]]) -> None:
    life = Life()
    timer, now = life.begin(0, *span), 0
    assert timer is not None
    runs_out = timer.seconds
    for what, number in inputs:
        now += number
        said = put(life, what, now, number)
        if isinstance(said, SetTimer):
            runs_out = None if said.seconds is None else said.seconds + now / SECOND
        assert (life.ends == NEVER) == (runs_out is None)
        assert runs_out is None or runs_out * SECOND >= life.ends - 0.5


@given(st.integers(1, 500), st.integers(0, 400), st.integers(0, 10_000))
def test_time_in_which_a_person_is_asked_does_not_count(span: int, worked: int, waited: int) -> None:
    life = begun(Span(span, USUAL))
    left = max(0, span - worked)
    assert life.ask(worked) == SetTimer(None, deadline=True)
    assert life.ask(worked) is None, "its clock stands still already"
    assert not life.has_stopped(worked + waited)
    assert life.answered(worked + waited) is None
    assert life.answered(worked + waited) == SetTimer(left / SECOND, deadline=False)
    assert life.has_stopped(worked + waited + left)
    assert life.stood_still


@given(SPANS, SPANS, TICKS, TICKS)
def test_what_is_delegated_never_outlives_its_asker(above: Span, below: Span, began: int, now: int) -> None:
    asker = begun(above)
    child = begun(below, began, asker)
    assert child.ends <= asker.ends
    if asker.why_stopped(now):
        assert child.why_stopped(now)
    if asker.has_stopped(now) or (child.has_timer and now >= child.ends):
        assert child.why_stopped(now) == "its time is up"
    assert child.is_under(asker)
    assert not asker.is_under(child)


def test_an_asker_that_has_stopped_takes_the_rights_of_all_below() -> None:
    asker = begun()
    child = begun(above=asker)
    grandchild = begun(above=child)
    assert grandchild.why_stopped(1) == ""
    asker.cancel("not needed")
    assert grandchild.why_stopped(1) == "it was cancelled: not needed"
    assert grandchild.state == "running", "its own life was not stopped"


@pytest.mark.parametrize(
    ("stop", "reason"),
    [
        (lambda life: life.fail(RuntimeError("broken")), "it was given up: broken"),
        (lambda life: life.release(), "it went back into the queue"),
        (lambda life: life.expire(USUAL), "its time is up"),
    ],
)
def test_it_says_why_it_has_stopped(stop: Any, reason: str) -> None:
    life = begun()
    assert stop(life), "it has to leave its scope"
    assert life.why_stopped(1) == reason


def test_who_has_no_timer_gets_one_when_its_askers_stands_still() -> None:
    asker = begun(Span(100, USUAL))
    child = begun(Span(300, USUAL), 10, asker)
    assert not child.has_timer
    assert child.short
    assert child.arm(20) == SetTimer(290 / SECOND, deadline=False)
    assert child.arm(20) is None, "it has one now"
    assert Life().arm(20) is None, "its time has not begun"


def test_a_deadline_that_a_handoff_sets_shortens_its_time_and_never_lengthens_it() -> None:
    life = begun(Span(300, USUAL))
    assert life.shorten(10, 100) == SetTimer(100 / SECOND, deadline=True)
    assert life.final
    assert life.shorten(10, 200) is None
    assert life.ends == 110


def test_time_that_runs_out_at_the_deadline_is_final() -> None:
    life = begun(Span(300, USUAL, 400))
    assert not life.final
    life.expire(400)
    assert life.final


def test_states_follow_what_it_waits_for() -> None:
    life = Life()
    assert life.state == "ready"
    life.begin(0, USUAL, USUAL)
    assert life.state == "running"
    assert life.wait()
    assert not life.wait(), "it waited already"
    assert life.state == "waiting"
    life.ask(1)
    assert life.state == "asking"
    life.answered(2)
    assert not life.go_on()
    assert life.go_on()
    life.step_aside()
    life.rest()
    assert (life.apart, life.rests) == (1, True)
    life.step_in()
    life.wake()
    assert (life.apart, life.rests, life.state) == (0, False, "running")
    assert [life.tell(), life.tell()] == [1, 2]
    life.release()
    assert (life.state, life.hurries) == ("released", True)
    life.cancel("for good")
    assert (life.state, life.hurries) == ("cancelled", True)


def test_an_attempt_that_asks_is_put_back_and_ends() -> None:
    asker = begun()
    life = begun(Span(100, USUAL), above=asker)
    assert begun(above=life).is_under(asker)
    assert life.ask(10) == SetTimer(None, deadline=True)
    assert life.ask(10) is None
    assert life.answered(50) is None
    assert life.answered(50) == SetTimer(90 / SECOND, deadline=False)
    assert not life.has_stopped(100)
    assert life.release()
    assert life.expire(100)
    assert life.has_stopped(100)
    life.end()
    assert not life.cancel("late")
    assert not life.fail(RuntimeError("late"))
    assert (life.state, life.stop, life.why, life.error) == ("over", "released", "", None)


def test_no_module_but_its_own_writes_the_state_of_a_life() -> None:
    root = Path(remit.__file__).parent
    writes = [
        f"{path.relative_to(root)}:{node.lineno}"
        for path in root.rglob("*.py")
        if path.name != "life.py" and "life." in path.read_text()  # only these are worth parsing
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store) and node.attr in Life.__annotations__
        if (isinstance(node.value, ast.Name) and node.value.id == "life")
        or (isinstance(node.value, ast.Attribute) and node.value.attr == "life")
    ]
    assert writes == []
