"""Checks of what callers give: each says what is wrong and what to write instead."""

import inspect
from typing import Any, TypedDict

import pytest

from remit.core.bounds import Bounds
from remit.core.checks import (
    between,
    callable_,
    counted,
    items,
    keywords,
    limit,
    meant,
    of_type,
    one_of,
    patience,
    text_or_none,
    whole,
    yes_or_no,
)
from remit.errors import BadInput


@pytest.mark.parametrize(("given_", "least"), [(None, 0), (0, 0), (7, 0), (1, 1), (2**63 - 1, 0)])
def test_a_whole_number_is_taken_as_it_is(given_, least):
    assert whole(given_, "depth", least=least) == given_


@pytest.mark.parametrize("given_", [0, -1, 1.0, "1", True, [1]])
def test_a_number_below_the_least_or_not_whole_is_refused(given_):
    with pytest.raises(BadInput, match="concurrency is a whole number of at least 1 or None, not"):
        whole(given_, "concurrency", least=1)


@pytest.mark.rule("input.json")
@pytest.mark.parametrize("given_", [2**63, pytest.param(10**5000, id="enormous")])
def test_a_number_that_no_store_can_hold_is_refused(given_):
    with pytest.raises(BadInput, match="tokens"):
        whole(given_, "tokens")


@pytest.mark.parametrize("given_", [1, 50, 10_000])
def test_a_limit_is_a_whole_number(given_):
    assert limit(given_) == given_


@pytest.mark.parametrize("given_", [0, -1, 10_001, 1.0, "5", True, None])
def test_a_limit_out_of_range_is_refused(given_):
    with pytest.raises(BadInput, match="limit is a whole number from 1 to 10,000, not"):
        limit(given_)


def test_a_value_of_the_right_type_is_given_back_as_it_is():
    bounds = Bounds(depth=2)

    assert of_type(bounds, Bounds, "bounds takes Bounds(...)") is bounds


@pytest.mark.parametrize("given_", [None, 3, {"depth": 2}, Bounds])
def test_a_value_of_another_type_is_refused_with_what_is_taken(given_):
    with pytest.raises(BadInput, match=r"bounds takes Bounds\(\.\.\.\), not "):
        of_type(given_, Bounds, "bounds takes Bounds(...)")


@pytest.mark.parametrize("given_", [-1, 11, 1.0, True, None])
def test_a_number_out_of_its_range_is_refused(given_):
    assert between(10, "retries", 0, 10) == 10
    with pytest.raises(BadInput, match="retries is a whole number from 0 to 10, not"):
        between(given_, "retries", 0, 10)


@pytest.mark.rule("input.told")
@pytest.mark.parametrize(
    ("check", "taken", "sentence"),
    [
        (lambda given_: counted(given_, "hands"), [0, 5], "hands is a whole number of at least 0"),
        (lambda given_: patience(given_, "seconds"), [None, 0, 0.5], "seconds is a number of seconds from 0, or None"),
        (lambda given_: yes_or_no(given_, "reveal"), [True, False], "reveal is True or False, not"),
        (lambda given_: text_or_none(given_, "a session", 5), [None, "", "s"], "a session"),
        (lambda given_: one_of(given_, ("open", "failed"), "state"), ["open"], "state is open or one of failed, not"),
        (lambda given_: items(given_, "it takes a list"), [[], (1,), {2}, iter("ab")], "it takes a list, not"),
        (lambda given_: callable_(given_, "it takes a function"), [len], "it takes a function, not"),
    ],
)
def test_each_check_takes_what_is_allowed_and_says_what_else_there_is(check, taken, sentence):
    for given_ in taken:
        check(given_)
    for given_ in ("faild", float("nan"), -1, b"x", {"a": 1}, object()):
        if sentence.startswith("a session") and given_ == "faild":
            continue
        with pytest.raises(BadInput, match=sentence):
            check(given_)


def test_a_number_that_must_be_there_is_not_none():
    with pytest.raises(BadInput, match="hands is a whole number of at least 1, not None"):
        counted(None, "hands", least=1)


def test_a_slip_of_the_fingers_is_asked_about_and_nothing_else_is():
    assert meant("faild", ("open", "failed")) == "; did you mean failed?"
    assert [meant(given_, ("failed",)) for given_ in ("quite another", 7, None, "failed" * 100)] == [""] * 4


class Posting(TypedDict, total=False):
    """The keywords of a letter."""

    stamp: str
    late: "Later"  # pyright: ignore[reportUndefinedVariable] # noqa: F821 - imported for type checkers alone


class Weighing(TypedDict, total=False):
    grams: int


@pytest.mark.rule("surface.signatures")
def test_the_keywords_of_a_function_are_shown_as_its_parameters():
    @keywords(Posting, lambda: Weighing)
    def post(to: str, *strange: object, fast: bool = False, **how: Any) -> int:
        return 1

    shown = "(to: str, *, fast: bool = False, stamp: str = ..., late: 'Later' = ..., grams: int = ...) -> int"
    assert str(inspect.signature(post)) == shown
    assert post("ann", stamp="blue") == 1


@pytest.mark.rule("surface.signatures")
def test_a_method_is_shown_without_its_self():
    class Office:
        @keywords(Weighing)
        def post(self, to: str, **how: Any) -> None:
            """Post it."""

    assert str(inspect.signature(Office().post)) == "(to: str, *, grams: int = ...) -> None"
    assert str(inspect.signature(Office.post)) == "(self, to: str, *, grams: int = ...) -> None"
