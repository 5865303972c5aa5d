"""JSON values: what is accepted comes back exactly, and what is not is named."""

import json
import math
from collections import OrderedDict
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum, IntEnum, StrEnum
from pathlib import PurePosixPath
from typing import Any, NamedTuple, TypedDict
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, RootModel

from core.make import json_values, texts
from remit.core.values import DEPTH_LIMIT, VALUE_LIMIT, checked, decode, digest, encode
from remit.errors import BadInput


async def numbers():
    yield 1


class Level(IntEnum):
    HIGH = 3


class Colour(Enum):
    RED = "red"


class Word(StrEnum):
    YES = "yes"


class Shout(str):
    __slots__ = ()

    def __str__(self) -> str:
        return "!"


@dataclass
class Finding:
    line: int
    tags: Any = ()
    when: date = date(2026, 1, 2)


@dataclass(frozen=True, slots=True)
class Unfinished:
    known: int
    missing: int = field(init=False)


class Review(BaseModel):
    verdict: Colour
    findings: list[Finding]
    day: datetime


class Verdicts(RootModel[list[Colour]]):
    pass


class Place(TypedDict):
    city: str


class Pair(NamedTuple):
    a: int
    b: Colour


class Dumps:
    """Looks like a pydantic model, and is not a good one."""

    def __init__(self, dumped: object) -> None:
        self.dumped = dumped

    def model_dump(self, *, mode: str) -> object:
        if isinstance(self.dumped, Exception):
            raise self.dumped
        return self.dumped


async def later() -> None: ...


def nested(depth: int, leaf: object = 1) -> object:
    for _ in range(depth):
        leaf = [leaf]
    return leaf


# --- what is accepted --------------------------------------------------------------------------


@pytest.mark.rule("input.json")
@given(json_values)
def test_a_json_value_is_accepted_as_it_is_and_survives_the_way_through_text(value):
    found = checked(value, "a value")

    assert found == value
    assert decode(encode(found)) == value
    assert encode(decode(encode(found))) == encode(found)  # True does not become 1, nor -0.0 become 0.0


@pytest.mark.rule("input.json", "input.objects")
@pytest.mark.parametrize(
    ("given_", "kept"),
    [
        ((1, (2,)), [1, [2]]),
        (OrderedDict(a=1), {"a": 1}),
        (Level.HIGH, 3),
        ({"": ""}, {"": ""}),
        ("", ""),
        (Word.YES, "yes"),
        ([Shout("loud")], ["loud"]),
        ({Word.YES: 1, Colour.RED: 2}, {"yes": 1, "red": 2}),
        (Colour.RED, "red"),
        (date(2026, 1, 2), "2026-01-02"),
        (datetime(2026, 1, 2, 3, 4, tzinfo=UTC), "2026-01-02T03:04:00+00:00"),
        (time(3, 4), "03:04:00"),
        (Decimal("1.10"), "1.10"),
        (UUID(int=7), "00000000-0000-0000-0000-000000000007"),
        (PurePosixPath("a/b"), "a/b"),
        (Place(city="Bern"), {"city": "Bern"}),
        (Pair(1, Colour.RED), [1, "red"]),
        ([Finding(7, [Colour.RED])], [{"line": 7, "tags": ["red"], "when": "2026-01-02"}]),
        (
            {"review": Review(verdict=Colour.RED, findings=[Finding(1)], day=datetime(2026, 1, 2, tzinfo=UTC))},
            {
                "review": {
                    "verdict": "red",
                    "findings": [{"line": 1, "tags": [], "when": "2026-01-02"}],
                    "day": "2026-01-02T00:00:00Z",
                }
            },
        ),
        (Verdicts([Colour.RED]), ["red"]),
    ],
)
def test_kin_of_json_types_become_plain_json(given_, kept):
    found = checked(given_, "a value")

    assert found == kept
    assert type(found) is type(kept)


@pytest.mark.rule("input.json")
def test_the_checked_value_is_a_copy_that_later_changes_do_not_reach():
    value = {"list": [1]}

    found = checked(value, "a value")
    value["list"].append(2)

    assert found == {"list": [1]}


@given(st.dictionaries(texts, st.integers(), max_size=6))
def test_equal_values_have_equal_text_whatever_the_order_of_their_keys(value):
    assert encode(value) == encode(dict(reversed(value.items())))


def test_canonical_text_has_sorted_keys_no_spaces_and_real_letters():
    assert encode({"b": [1, 2.5, None], "a": "\u00e9"}) == '{"a":"\u00e9","b":[1,2.5,null]}'


# --- what is not -------------------------------------------------------------------------------


@pytest.mark.rule("input.json")
@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (math.nan, "a value is nan, which JSON has no word for"),
        ([1, -math.inf], r"a value\[1\] is -inf"),
        ({"a": [{"b": math.inf}]}, r"a value\.a\[0\]\.b is inf"),
        (2**63, "a value is a whole number beyond 64 bits; keep it as text"),
        ([-(2**63) - 1], r"a value\[0\] is a whole number beyond 64 bits"),
        pytest.param(10**5000, "a value is a whole number beyond 64 bits", id="enormous"),
        ({1: "one"}, "a value has a key that is not text: 1"),
        ({"a": {None: 1}}, r"a value\.a has a key that is not text: None"),
        ({"a\0": 1}, "a key of a value must not contain a NUL"),
        ({"\ud800": 1}, "a key of a value contains half of a surrogate pair"),
        (["\0"], r"a value\[0\] must not contain a NUL"),
        ({"a": "\udfff"}, r"a value\.a contains half of a surrogate pair"),
        ("\ud800", "a value contains half of a surrogate pair"),
        (b"bytes", "^a value is a bytes; use text, such as base64$"),
        ([{1, 2}], r"^a value has a set at \[0\]; use a list, which has an order: sorted\(...\)$"),
        ({"findings": [1, Finding(2, {"a"})]}, r"^a value has a set at findings\[1\]\.tags; use a list"),
        ({"wait": timedelta(1)}, "^a value has a timedelta at wait; use a number"),
        ((n for n in [1]), r"^a value is a generator; use list\(...\)$"),
        ((n async for n in numbers()), r"^a value is an async generator; use \[item async for item in ...\]$"),
        (object, "a value is not JSON: type <class 'object'>; use text, numbers"),
        (Finding, "a value is not JSON: type"),
        ([object()], r"a value\[0\] is not JSON: object"),
        ({Colour: 1}, "a value has a key that is not text"),
        (Unfinished(1), "^a value is a Unfinished; it is not complete: .*missing"),
        ([Dumps(KeyError("x"))], r"^a value has a Dumps at \[0\]; its model_dump raised KeyError: 'x'$"),
        (Dumps(Dumps(1)), r"^a value is a Dumps; its model_dump\(mode='json'\) must return JSON$"),
    ],
)
def test_what_is_not_json_is_refused_and_the_part_is_named(value, reason):
    with pytest.raises(BadInput, match=reason):
        checked(value, "a value")


@pytest.mark.rule("input.json")
def test_a_call_that_was_not_awaited_is_refused_with_what_to_do():
    call = later()

    with pytest.raises(BadInput, match=r"^a value has a coroutine at a; await it first$"):
        checked({"a": call}, "a value")
    call.close()


@pytest.mark.rule("input.json")
@pytest.mark.parametrize("edge", [2**63 - 1, -(2**63)])
def test_whole_numbers_of_64_bits_are_kept_to_the_last_one(edge):
    assert checked(edge, "a value") == edge


@pytest.mark.rule("input.json")
@given(st.integers(min_value=2**63) | st.integers(max_value=-(2**63) - 1))
def test_no_whole_number_beyond_64_bits_gets_in(number):
    with pytest.raises(BadInput, match="beyond 64 bits"):
        checked({"n": number}, "a value")


@pytest.mark.rule("input.json")
def test_nesting_ends_at_the_limit_and_not_before():
    assert checked(nested(DEPTH_LIMIT), "a value") == nested(DEPTH_LIMIT)

    with pytest.raises(BadInput, match="nested more than 32 deep"):
        checked(nested(DEPTH_LIMIT + 1), "a value")


@pytest.mark.rule("input.json")
def test_objects_count_as_nesting_too():
    value: object = 1
    for _ in range(DEPTH_LIMIT + 1):
        value = {"k": value}

    with pytest.raises(BadInput, match="nested more than 32 deep"):
        checked(value, "a value")


@pytest.mark.rule("input.json")
def test_a_value_that_contains_itself_is_refused():
    circle: list[object] = []
    circle.append(circle)

    with pytest.raises(BadInput, match="nested more than 32 deep"):
        checked(circle, "a value")


@pytest.mark.rule("input.json")
def test_nesting_of_a_hundred_thousand_is_refused_like_any_other():
    with pytest.raises(BadInput, match="nested more than 32 deep"):
        checked(nested(100_000), "a value")


@pytest.mark.rule("input.json")
def test_the_size_of_a_value_is_the_size_of_its_text():
    assert checked([1, 2], "a value", limit=5) == [1, 2]

    with pytest.raises(BadInput, match="a value has at most 5 characters as JSON, got 7"):
        checked([1, 2, 3], "a value", limit=5)


@pytest.mark.rule("input.json")
def test_text_is_measured_without_quotes():
    assert len(checked("x" * VALUE_LIMIT, "a value")) == VALUE_LIMIT

    with pytest.raises(BadInput, match="at most 1,048,576 characters, got 1,048,577; save it as an artifact"):
        checked("x" * (VALUE_LIMIT + 1), "a value")


@pytest.mark.rule("input.json")
def test_a_long_key_does_not_make_the_error_long():
    with pytest.raises(BadInput) as caught:
        checked({"k" * 10_000: math.nan}, "a value")

    assert len(str(caught.value)) < 200


# --- digests -----------------------------------------------------------------------------------


def test_a_digest_is_sixteen_hex_digits_that_never_change():
    assert digest("MVC in modules/auth") == digest("MVC in modules/auth")
    assert digest("") == "e3b0c44298fc1c14"


@given(texts, texts)
def test_other_text_has_another_digest(one, other):
    assert (digest(one) == digest(other)) == (one == other)
    assert len(digest(one)) == 16
    assert int(digest(one), 16) >= 0


@given(json_values)
def test_the_text_is_what_any_json_reader_reads(value):
    assert json.loads(encode(value)) == value
