"""Which cases of a test are tried by `make test`, and which are left to `make deep`."""

from collections.abc import Iterable
from typing import Any

import pytest


def some(cases: Iterable[Any], kept: int = 1) -> list[Any]:
    """Return the cases, all but the first ones marked as deep."""
    return [case if number < kept else _deep(case) for number, case in enumerate(cases)]


def _deep(case: Any) -> Any:
    values = case if isinstance(case, tuple) else (case,)
    return pytest.param(*values, marks=pytest.mark.deep)
