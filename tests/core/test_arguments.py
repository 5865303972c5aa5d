"""The digest of an effect's arguments: equal for equal ones, in every process."""

import io
from dataclasses import dataclass
from datetime import date
from decimal import Decimal

import pytest

from remit.core.identity import arguments


@dataclass
class Order:
    what: str
    price: Decimal


class Connection:
    """Has no text of its own."""


EQUAL = [
    (1, "a", None, True, 1.5),
    ([1, [2, {"b": 1, "a": 2}]],),
    ({"x": {3, 1, 2}},),
    (Order("bread", Decimal("1.20")), date(2026, 1, 2)),
    (b"bytes", frozenset(("a", "b"))),
    (),
]


@pytest.mark.rule("effect.arguments")
def test_equal_arguments_have_one_digest_and_others_another():
    digests = [arguments(given) for given in EQUAL]
    assert digests == [arguments(given) for given in EQUAL]
    assert len(set(digests)) == len(EQUAL)
    assert arguments(({"a": 1, "b": 2},)) == arguments(({"b": 2, "a": 1},))
    assert arguments((Order("bread", Decimal(1)),)) != arguments((Order("bread", Decimal(2)),))
    assert arguments((1,)) != arguments(("1",))


@pytest.mark.rule("effect.arguments")
def test_what_has_no_text_of_its_own_counts_by_its_type():
    assert arguments((Connection(),)) == arguments((Connection(),)) != arguments((io.StringIO(),))
    assert arguments((test_what_contains_itself_has_a_digest_too,)) != arguments((another,))
    assert arguments((Connection,)) == arguments((Connection,)) != arguments((Order,))


@pytest.mark.rule("effect.arguments")
def test_what_contains_itself_has_a_digest_too():
    endless: list[object] = []
    endless.append(endless)
    assert arguments((endless,))


def another() -> None:
    """Another function."""
