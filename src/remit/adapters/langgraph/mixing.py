"""Copies of a model or tool whose class goes through the turn and is otherwise unchanged: code that inspects it, binds
tools to it or asks for structured output gets the answers of the original."""

from collections.abc import Callable, Generator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cached_property, lru_cache
from typing import Final, TypeVar, cast

from pydantic import BaseModel

ThingT = TypeVar("ThingT", bound=BaseModel)


def mixed(thing: ThingT, seam: type[BaseModel]) -> ThingT:
    """Return a copy with the methods of `seam` before its own; its cached properties are dropped."""
    copied = thing.model_copy()
    for name in [name for name in vars(copied) if isinstance(getattr(type(copied), name, None), cached_property)]:
        del vars(copied)[name]
    object.__setattr__(copied, "__class__", _kind(seam, type(thing)))
    return copied


@lru_cache(256)
def _kind(seam: type[BaseModel], kind: type[BaseModel]) -> type[BaseModel]:
    """Return the mixed class. It has the name of the original, which traces and caches use."""
    said = {"__module__": kind.__module__, "__qualname__": kind.__qualname__, "__doc__": kind.__doc__}
    make = cast("Callable[..., type[BaseModel]]", type(kind))
    return make(kind.__name__, (seam, kind), said)


_INSIDE: Final[ContextVar[object]] = ContextVar("remit.langgraph.inside", default=None)


@contextmanager
def inside(thing: object) -> Generator[None]:
    """Mark that the object's own methods are running: calls that they make on themselves are not governed again."""
    token = _INSIDE.set(thing)
    try:
        yield
    finally:
        _INSIDE.reset(token)


def is_inside(thing: object) -> bool:
    """Whether this object's own methods are running, and nothing else that they use."""
    return _INSIDE.get() is thing


def at_work() -> object:
    """Return the object whose own methods are running, or None."""
    return _INSIDE.get()
