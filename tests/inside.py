"""What no door leads to: the one place where tests reach inside.

`be_on_machine`: of a process on another machine only its silence tells that it is gone. On one machine there is no
other to be had, and no one but this test wants to pretend: a setting for it would be one that people could get wrong.

`last_look`: after a pause in polling, heartbeat timeouts restart, so a moved clock waits for the next poll; and
nobody else should have to know when that is.

`opened_key`: keys go in by a door and come out for the engine alone; whoever tests that they do has to stand there.

`without`: whether a safeguard is missed is seen only where it is gone, and nobody else should be able to remove one.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cached_property
from importlib import import_module
from types import FunctionType
from typing import Any

from remit import Runtime, Secret
from remit.engine.presence import peers as processes


def be_on_machine(name: str) -> None:
    """Have this process believe, and tell others, that it runs on another machine."""
    processes._machine = lambda: name  # pyright: ignore[reportPrivateUsage]


def last_look(rt: Runtime) -> int:
    """When the worker of a runtime last looked whether others are there, in ticks of its clock; 0 if it has none."""
    worker = rt._opening.engine.resident.worker  # pyright: ignore[reportPrivateUsage]
    return worker._caretaker._peers._looked if worker is not None else 0  # pyright: ignore[reportPrivateUsage]


async def opened_key(rt: Runtime, name: str) -> Secret | None:
    """Open a key as the engine does."""
    return await rt.workspace.keys._keys.open(name)  # pyright: ignore[reportPrivateUsage]


@contextmanager
def without(place: str, instead: Callable[..., Any]) -> Iterator[None]:
    """Have a function of remit do something else meanwhile, for everyone who holds it, however they imported it.

    `place` is "module:name" or "module:Class.name". Only the code is exchanged, so what `instead` names is looked up in
    that function's own module; what that module does not have is lent to it.
    """
    assert isinstance(instead, FunctionType)
    function = _function(place)
    theirs, ours = function.__globals__, instead.__globals__
    lent = [name for name in instead.__code__.co_names if name in ours and name not in theirs]
    theirs.update({name: ours[name] for name in lent})
    before, function.__code__ = function.__code__, instead.__code__
    try:
        yield
    finally:
        function.__code__ = before
        _function(place)  # forgets what it gave meanwhile, if it remembers
        for name in lent:
            del theirs[name]


def _function(place: str) -> FunctionType:
    module, _, path = place.partition(":")
    found: Any = import_module(module)
    for name in path.split("."):
        found = vars(found)[name]
    if isinstance(found, cached_property):
        found = found.func  # pyright: ignore[reportUnknownMemberType]
    elif isinstance(found, property):
        found = found.fget
    elif hasattr(found, "cache_clear"):
        found.cache_clear()  # what it gave before is not what it would give now
        found = found.__wrapped__
    elif isinstance(found, staticmethod):
        found = found.__func__  # pyright: ignore[reportUnknownMemberType]
    assert isinstance(found, FunctionType), f"{place} is no function"
    return found
