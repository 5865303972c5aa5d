"""Whether a value has the shape that a type spells out: what a type checker promises, held to at run time."""

import types
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints, is_typeddict

from remit.core.events import Event, Unsealed
from remit.core.kinds import SHAPES


def event_faults(event: Event | Unsealed) -> list[str]:
    """What is wrong with an event's data, each fault with the place it is at; empty if all is well."""
    return list(faults(event.data, SHAPES[event.kind], event.kind))


def faults(value: object, shape: Any, where: str) -> list[str]:
    if is_typeddict(shape):
        return _object_faults(value, shape, where)
    origin, inside = get_origin(shape), get_args(shape)
    if origin is Literal:
        return [] if value in inside else [f"{where} is {value!r}, not one of {inside}"]
    if origin in (Union, types.UnionType):
        return [] if any(not faults(value, one, where) for one in inside) else [f"{where} is {value!r}, not {shape}"]
    kind = origin or shape
    if kind is Any or not isinstance(kind, type):  # the alias of all JSON is known by its name only
        return []
    if not _is(value, kind, len(inside)):
        return [f"{where} is {value!r}, not {kind.__name__}"]
    return [fault for part in _parts(value, kind, inside, where) for fault in faults(*part)]


def _is(value: object, kind: type, size: int) -> bool:
    """Whether it is of that kind as JSON has it: a tuple is a list of so many, and true is no number."""
    if kind is tuple:
        return isinstance(value, list) and len(value) == size
    return isinstance(value, kind) and not (kind is int and isinstance(value, bool))


def _parts(value: Any, kind: type, inside: tuple[Any, ...], where: str) -> list[tuple[object, Any, str]]:
    if kind is list:
        return [(item, inside[0], f"{where}[{at}]") for at, item in enumerate(value)]
    if kind is tuple:
        return [(item, one, f"{where}[{at}]") for at, (item, one) in enumerate(zip(value, inside, strict=True))]
    return [(item, inside[1], f"{where}.{key}") for key, item in value.items()] if kind is dict else []


def _object_faults(value: object, shape: Any, where: str) -> list[str]:
    if not isinstance(value, dict):
        return [f"{where} is {value!r}, not an object"]
    hints = get_type_hints(shape)
    found = [f"{where} lacks {key}" for key in sorted(shape.__required_keys__ - value.keys())]
    found += [f"{where} has {key}, which its shape does not know" for key in sorted(value.keys() - hints.keys())]
    return found + [
        fault for key, item in value.items() if key in hints for fault in faults(item, hints[key], f"{where}.{key}")
    ]
