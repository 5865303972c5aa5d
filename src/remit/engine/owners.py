"""Functions of the owner that the engine calls: which one raised, and where."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from typing import cast

from remit.errors import RemitError


class OwnersFunctionFailed(Exception):
    """A function of the owner raised. `role` says which one it is, `error` is what it raised."""

    def __init__(self, role: str, error: Exception) -> None:
        super().__init__(f"{role} raised {type(error).__name__}: {error}")
        self.role = role
        self.error = error


@contextmanager
def owners_function(role: str) -> Generator[None]:
    """Call a function of the owner inside. An error of remit, such as Refused, is its answer; any other fails the task
    in whose name it is called."""
    try:
        yield
    except (RemitError, OwnersFunctionFailed):
        raise
    except Exception as error:
        raise OwnersFunctionFailed(role, error) from error


def owners_fault(error: BaseException | None) -> OwnersFunctionFailed | None:
    """Find the function of the owner that an error comes from, also among several that came at once."""
    while error is not None and not isinstance(error, OwnersFunctionFailed):
        if isinstance(error, BaseExceptionGroup):
            inside = cast("BaseExceptionGroup[BaseException]", error).exceptions
            return next((found for one in inside if (found := owners_fault(one)) is not None), None)
        error = error.__cause__
    return error
