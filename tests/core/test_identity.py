"""When two requests are one: every part of what is asked counts, however it is spelled."""

from dataclasses import fields
from datetime import UTC, datetime, timedelta

import pytest

from remit.core.bounds import TOP, Bounds
from remit.core.identity import AskedFrom, canonical_fields, content_of, keyed, question, unkeyed
from remit.core.remit import Pass
from remit.core.scope import BOARD, Scope

LATER = datetime(2030, 1, 1, tzinfo=UTC)

# Another value for every part of a request. A part that is added must be added here, and then counts.
OF_BOUNDS = {
    "agents": ["coder"],
    "tools": ["read_file"],
    "sees": ["notes"],
    "writes": ["notes"],
    "depth": 2,
    "deadline": LATER,
    "credits": "$0.50",
    "tokens": 100,
    "handoffs": 1,
    "members": 2,
    "tasks": 9,
    "requests": 9,
}
OF_PASS = {
    "to": "writer",
    "task": "write",
    "sees": ["notes"],
    "writes": ["notes"],
    "tools": ["read_file"],
    "within": Bounds(depth=1),
    "timeout": 60,
    "busy_timeout": 5,
    "trust": "untrusted",
    "credits": "$0.50",
    "remembers": "whole",
    "data": {"order": 7},
}


def made(**other: object) -> Pass:
    return Pass(**{"to": "coder", "task": "code", **other})  # pyright: ignore[reportArgumentType]


def content(wish: Pass, where: AskedFrom = AskedFrom()) -> str:  # noqa: B008 - a value
    return content_of(wish, where, attempts=4)


@pytest.mark.rule("key.identity")
@pytest.mark.parametrize("name", [field.name for field in fields(Pass) if field.init])
def test_whatever_is_passed_along_is_part_of_what_is_asked(name: str):
    assert content(made(**{name: OF_PASS[name]})) != content(made())
    assert content(made(**{name: OF_PASS[name]})) == content(made(**{name: OF_PASS[name]}))


@pytest.mark.rule("key.identity")
@pytest.mark.parametrize("name", [field.name for field in fields(Bounds) if field.init])
def test_every_bound_is_part_of_what_is_asked(name: str):
    narrow = Bounds(**{name: OF_BOUNDS[name]})
    assert content(made(within=narrow)) != content(made())
    assert content(made(), AskedFrom(ceiling=narrow)) != content(made(), AskedFrom(ceiling=TOP))


@pytest.mark.rule("key.identity")
def test_where_it_is_asked_and_how_is_part_of_it():
    wish = made()
    places = [
        AskedFrom(),
        AskedFrom("t"),
        AskedFrom("", "t"),
        AskedFrom("", "", "t"),
        AskedFrom(ceiling=TOP),
        AskedFrom("t", "s", "a", TOP),
    ]
    assert len({content(wish, where) for where in places}) == len(places)
    assert content_of(wish, AskedFrom(), attempts=3) != content_of(wish, AskedFrom(), attempts=4)


@pytest.mark.rule("key.identity")
@pytest.mark.parametrize(
    ("one", "other"),
    [
        ({"to": "The Coder"}, {"to": "the-coder"}),
        ({"timeout": 60}, {"timeout": timedelta(minutes=1)}),
        ({"sees": ["a", "b", Scope("c", prefix="x")]}, {"sees": (Scope("c", prefix="x"), "b", "a")}),
        ({"sees": ["a", Scope("a", key="k")]}, {"sees": "a"}),
        ({"sees": ["a", BOARD]}, {"sees": {BOARD, "a"}}),
        ({"tools": "group:fs"}, {"tools": sorted(made(tools="group:fs").tools)}),
        (
            {"within": Bounds(credits="$1", agents=["b", "a"])},
            {"within": Bounds(agents=("A", "B"), credits="1.00 usd")},
        ),
        ({"within": Bounds(deadline=LATER)}, {"within": Bounds(deadline=LATER.astimezone())}),
    ],
)
def test_the_same_said_in_other_words_is_the_same(one: dict[str, object], other: dict[str, object]):
    assert content(made(**one)) == content(made(**other))


@pytest.mark.rule("key.scope")
def test_a_key_belongs_to_the_task_that_asks_or_to_the_workspace():
    assert (
        len(
            {keyed("k", AskedFrom()), keyed("k", AskedFrom("t1")), keyed("k", AskedFrom("t2")), keyed("l", AskedFrom())}
        )
        == 4
    )
    assert keyed("k", AskedFrom("", "s", "a", TOP)) == keyed("k", AskedFrom())
    assert keyed("x", AskedFrom()).startswith("key/")
    assert unkeyed("x") == "same/x"


def test_nothing_and_everything_are_not_the_same():
    assert canonical_fields(made(sees="*"))["sees"] == "*"
    assert canonical_fields(made())["sees"] == []


def test_a_part_that_has_no_spelling_is_told_and_not_left_out():
    wish = made()
    object.__setattr__(wish, "within", object())
    with pytest.raises(TypeError, match="no spelling"):
        canonical_fields(wish)


@pytest.mark.rule("crash.question")
def test_a_question_is_whom_what_and_all_that_goes_along_but_no_time():
    plain = Pass("coder", "review")
    assert question(plain) == ("coder", "review")
    for name, value in OF_PASS.items():
        other = Pass(**{"to": "coder", "task": "review", name: value})
        assert (question(other) == question(plain)) == (name in ("timeout", "busy_timeout")), name


@pytest.mark.rule("crash.question")
def test_every_bound_but_the_deadline_is_part_of_a_question():
    narrow = Pass("coder", "review", sees=["notes"], within=Bounds(depth=5))
    for name, value in OF_BOUNDS.items():
        other = Pass("coder", "review", sees=["notes"], within=Bounds(**{"depth": 5, name: value}))
        assert (question(other) == question(narrow)) == (name == "deadline"), name
    timed = Pass("coder", "review", within=Bounds(deadline=LATER))
    assert question(timed) == question(Pass("coder", "review"))
