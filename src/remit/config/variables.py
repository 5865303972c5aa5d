"""Environment variables in a file: "${NAME}" stands for the value of a variable, so that the file contains no
secrets."""

import os
from collections.abc import Iterator
from typing import Any, Final, cast

from remit.core.patterns import pattern

_VARIABLE: Final = pattern(r"\$\{(\w+)\}")


def variables_in(value: object) -> list[str]:
    """Return the variables that a value names: a text, or a table of texts."""
    return [name for text in _texts(value) for name in _VARIABLE.findall(text)]


def unset(value: object) -> list[str]:
    """Return the variables that a value names and that are not set here."""
    return [name for name in variables_in(value) if not os.environ.get(name)]


def fill_variables(value: Any) -> Any:
    """Return the value with variables replaced by their values; all of them must be set."""
    if isinstance(value, dict):
        return {name: fill_variables(one) for name, one in cast("dict[str, Any]", value).items()}
    return _VARIABLE.sub(lambda found: os.environ[found[1]], value) if isinstance(value, str) else value


def _texts(value: object) -> Iterator[str]:
    if isinstance(value, dict):
        for one in cast("dict[str, object]", value).values():
            yield from _texts(one)
    elif isinstance(value, str):
        yield value
