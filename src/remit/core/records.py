"""`NamedTuple` as in `typing`, in a tenth of the time: a start makes some 180 of these classes.

`typing.NamedTuple` compiles a constructor from text for each class. The constructors of classes with the same number of
fields differ only in the names of their arguments, so here one is compiled for each number of fields, and copied with
other names. What is the same in all classes is written once, in `Record`.
"""

import typing
from collections.abc import Callable, Iterable
from functools import cache
from types import FunctionType
from typing import TYPE_CHECKING, Any, Final, Self, cast

__all__ = ["NamedTuple", "Record"]


class _Single(typing.NamedTuple):
    field: object


_new: Final = cast("Callable[..., Any]", tuple.__new__)
_getter_at: Final = cast("Callable[[int, str], object]", type(vars(_Single)["field"]))


class Record(tuple[Any, ...]):
    """What every named tuple can do."""

    __slots__ = ()
    _fields = cast("tuple[str, ...]", ())
    _field_defaults = cast("dict[str, Any]", {})

    @classmethod
    def _make(cls, values: Iterable[Any], /) -> Self:
        made = _new(cls, values)
        if len(made) != len(cls._fields):
            raise TypeError(f"Expected {len(cls._fields)} arguments, got {len(made)}")
        return made

    def _replace(self, /, **others: Any) -> Self:
        replaced = _new(type(self), map(others.pop, self._fields, self))
        if others:
            raise ValueError(f"Got unexpected field names: {[*others]!r}")
        return replaced

    __replace__ = _replace  # for `copy.replace` of Python 3.13

    _asdict = _Single._asdict

    def __getnewargs__(self) -> tuple[Any, ...]:
        return tuple(self)

    def __repr__(self) -> str:
        inside = ", ".join(f"{name}={value!r}" for name, value in zip(self._fields, self, strict=True))
        return f"{type(self).__name__}({inside})"


@cache
def _constructor_of(number: int) -> FunctionType:
    """Return the constructor of a tuple with so many fields."""
    arguments = "".join(f"f{one}, " for one in range(number))
    return eval(f"lambda _cls, {arguments}: _new(_cls, ({arguments}))", {"_new": _new})  # noqa: S307


@cache
def _getter(index: int) -> object:
    return _getter_at(index, f"Alias for field number {index}")


class _Maker(type):
    """Make a named tuple of a class that names `NamedTuple` as its base."""

    def __new__(cls, name: str, bases: tuple[type, ...], namespace: dict[str, Any]) -> type:
        types: dict[str, Any] = namespace.get("__annotations__", {})
        fields = (*types,)
        defaults = {field: namespace[field] for field in fields if field in namespace}
        constructor = _constructor_of(len(fields))
        code = constructor.__code__.replace(co_varnames=("_cls", *fields))
        new = FunctionType(code, constructor.__globals__, "__new__", (*defaults.values(),))
        new.__annotations__ = types
        namespace.update(
            {field: _getter(index) for index, field in enumerate(fields)},
            __new__=new,
            __slots__=(),
            __match_args__=fields,
            _fields=fields,
            _field_defaults=defaults,
        )
        return type(name, tuple(Record if base is _BASE else base for base in bases), namespace)


class _Named:
    def __mro_entries__(self, bases: tuple[object, ...]) -> tuple[type]:
        return (_BASE,)


_BASE: Final[type] = type.__new__(_Maker, "NamedTuple", (), {})

if TYPE_CHECKING:
    from typing import NamedTuple  # type checkers know it
else:
    # Python 3.14 does not keep annotations in the class, so it uses its own.
    NamedTuple = _Named() if "__annotations__" in vars(_Single) else typing.NamedTuple
