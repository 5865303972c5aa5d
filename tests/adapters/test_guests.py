"""What the adapters of frameworks share: text that a store keeps, JSON of anything, contexts made shorter."""

from dataclasses import dataclass
from datetime import date
from enum import IntEnum
from typing import Any

import pytest
from pydantic import BaseModel

from remit.adapters.guests import (
    clean,
    clean_json,
    digest_of,
    failure_of,
    json_of,
    shortened,
    size_of,
    text_for_model,
    usage_of,
)
from remit.core.prices import Usage
from remit.core.recovery import ModelFailure


@dataclass
class Point:
    x: int


class Shape(BaseModel):
    name: str


class Size(IntEnum):
    BIG = 3


class Odd:
    def __str__(self) -> str:
        return "odd\0"


@pytest.mark.parametrize(
    ("value", "found"),
    [
        ({"a": (1, 2.5, None), 3: {True}}, {"a": [1, 2.5, None], "3": [True]}),
        (Point(1), {"x": 1}),
        ([Shape(name="round")], [{"name": "round"}]),
        (float("inf"), "inf"),
        (Odd(), "odd\ufffd"),
        ("a\ud800", "a\ufffd"),
        (Shape, str(Shape)),
        ([Size.BIG, date(2026, 1, 2)], [3, "2026-01-02"]),
    ],
)
def test_anything_becomes_json(value: Any, found: Any):
    assert json_of(value) == found


def test_what_no_store_keeps_is_replaced_also_where_json_spells_it_out():
    assert clean("é 😀") == "é 😀"
    assert clean_json('{"a": "\\u0000\\ud83d\\ude00\\ud800"}') == '{"a":"\ufffd😀\ufffd"}'
    assert clean_json('{"a": "\\u00e9"}') == '{"a": "\\u00e9"}'
    assert clean_json("{\\u0000\0") == "{\\u0000\ufffd"


def test_results_are_shortened_more_the_older_they_are():
    results = ["x" * 50_000] * 6
    assert shortened(results, 0) == results
    sizes = [[len(text) for text in shortened(results, trim)] for trim in (1, 2, 3, 9)]
    assert sizes[2] == sizes[3]
    assert [sum(level) for level in sizes] == sorted((sum(level) for level in sizes), reverse=True)
    assert all(level[0] == level[1] < level[2] == level[5] for level in sizes)
    assert shortened(["short"], 3) == ["short"]


def test_the_same_question_has_the_same_digest():
    assert digest_of({"a": 1, "b": "\ud800"}) == digest_of({"b": "\ud800", "a": 1})
    assert digest_of(["a"]) != digest_of(["b"])
    assert size_of(["four", {"a": 1}]) == 9
    assert (text_for_model("text"), text_for_model({"a": 1})) == ("text", '{"a":1}')


def test_usage_that_cannot_be_true_is_none():
    assert usage_of(5, 2, 1) == Usage(5, 2, 1)
    assert [usage_of(0, 0), usage_of(-5, 3), usage_of(1, 1, 9), usage_of(10**9, 1)] == [None] * 4


def test_errors_of_other_clients_are_known_by_name():
    class APIStatusError(Exception):  # as Anthropic's client has it
        status_code = 529

    class Mine(Exception):
        pass

    error = APIStatusError()
    error.__context__ = error
    assert failure_of(error) == ModelFailure("unavailable", 529)
    assert failure_of(Mine()) is None
    assert failure_of(AttributeError("mine", name="x", obj=3)) is None
