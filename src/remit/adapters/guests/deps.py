"""Dependencies of a guest: the object that its framework passes to its tools."""

import inspect
from collections.abc import Callable
from functools import partial
from typing import Any, Final, cast, get_args

from remit.errors import BadInput
from remit.ports.turn import TurnLike

NO_DEPS: Final = object()  # None may be a valid dependency
_UNDECLARED: Final = (object, None, type(None), Any)


def checked_deps(name: str, declared: Any, given: object) -> object:
    """Return the given dependencies. Raise `BadInput` if the agent declares some and was given none."""
    wants = declared not in _UNDECLARED and type(None) not in get_args(declared)
    if wants and given is NO_DEPS:
        kind = getattr(declared, "__name__", str(declared))
        raise BadInput(
            f"'{name}' declares deps of type {kind} and was given none: pass rt.add(..., deps={kind}(...)), or a "
            f"function of the turn: deps=lambda turn: {kind}(...)"
        )
    if wants and given is declared:
        kind = getattr(declared, "__name__", str(declared))
        raise BadInput(f"deps of '{name}' is the class {kind} itself; pass {kind}(...), or lambda turn: {kind}(...)")
    return given


async def deps_of(given: object, turn: TurnLike) -> Any:
    """Return the dependencies for a turn: the value itself, or the result of a function of the turn."""
    if given is NO_DEPS:
        return None
    if not (inspect.isroutine(given) or isinstance(given, partial)):
        return given
    made = cast("Callable[[TurnLike], object]", given)(turn)
    return await made if inspect.isawaitable(made) else made
