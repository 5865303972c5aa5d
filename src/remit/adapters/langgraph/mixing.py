"""Copies of a model or a tool whose class goes through the turn, and is otherwise what it was: so whoever asks what it
can do, binds tools to it or wants structured output from it gets the answers of the original."""

from collections.abc import Callable, Generator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cached_property, lru_cache
from typing import Final, TypeVar, cast

from pydantic import BaseModel

ThingT = TypeVar("ThingT", bound=BaseModel)


def mixed(thing: ThingT, seam: type[BaseModel]) -> ThingT:
    """Copy a thing, with the methods of `seam` before its own; what it has worked out so far is forgotten."""
    copied = thing.model_copy()
    for name in [name for name in vars(copied) if isinstance(getattr(type(copied), name, None), cached_property)]:
        del vars(copied)[name]
    object.__setattr__(copied, "__class__", _kind(seam, type(thing)))
    return copied


@lru_cache(256)
def _kind(seam: type[BaseModel], kind: type[BaseModel]) -> type[BaseModel]:
    """Make the class. It has the name of the original, which traces and caches go by."""
    said = {"__module__": kind.__module__, "__qualname__": kind.__qualname__, "__doc__": kind.__doc__}
    make = cast("Callable[..., type[BaseModel]]", type(kind))
    return make(kind.__name__, (seam, kind), said)


_INSIDE: Final[ContextVar[object]] = ContextVar("remit.langgraph.inside", default=None)


@contextmanager
def inside(thing: object) -> Generator[None]:
    """Mark that the thing's own methods are at work: what they call on themselves is not to be governed again."""
    token = _INSIDE.set(thing)
    try:
        yield
    finally:
        _INSIDE.reset(token)


def is_inside(thing: object) -> bool:
    """Tell whether the thing's own methods are at work, and nothing else that they use."""
    return _INSIDE.get() is thing


def at_work() -> object:
    """Return the thing whose own methods are at work; None if there is none."""
    return _INSIDE.get()
