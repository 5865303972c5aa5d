"""Which cases of a test are tried by `make test`, and which are left to `make deep`."""

from collections.abc import Iterable
from typing import Any

import pytest


def some(cases: Iterable[Any], kept: int = 1) -> list[Any]:
    """Return the cases, all but the first ones marked as deep."""
    return [case if number < kept else _deep(case) for number, case in enumerate(cases)]


def _deep(case: Any) -> Any:
    values = case if type(case) is tuple else (case,)  # a named one is a value itself
    return pytest.param(*values, marks=pytest.mark.deep)


def beyond_each_once(items: Iterable[pytest.Item]) -> list[pytest.Item]:
    """Return the cases of tests with several parameters that are not needed to try each value of each parameter once:
    every framework and every failure is tried, but not every framework with every failure."""
    functions: dict[tuple[object, str], list[pytest.Function]] = {}
    for item in items:
        if isinstance(item, pytest.Function) and hasattr(item, "callspec"):
            functions.setdefault((item.path, item.originalname), []).append(item)
    return [item for cases in functions.values() for item in _left_over(cases)]


def _left_over(cases: list[pytest.Function]) -> list[pytest.Function]:
    """Take the case that has most values which none before had, until there is none that has any. Tests come in a
    random order, and `make deep` tries what `make test` leaves out, so the choice is the same in every order."""
    cases = sorted(cases, key=lambda case: case.name)
    values = {case: {(name, id(value)) for name, value in case.callspec.params.items()} for case in cases}
    rest, seen = list(cases), set[tuple[str, int]]()
    while rest:
        best = max(rest, key=lambda case: len(values[case] - seen))
        if values[best] <= seen:
            break
        seen |= values[best]
        rest.remove(best)
    return rest
