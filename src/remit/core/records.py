"""`NamedTuple`, `TypedDict`, frozen dataclasses and cached properties as in Python, in a fraction of the time: a start
makes some 300 such classes.

`typing.NamedTuple` compiles a constructor from text for each class. The constructors of classes with the same number of
fields differ only in the names of their arguments, so here one is compiled for each number of fields, and copied with
other names. `typing.TypedDict` checks each annotation, and compiles those that are text; here they are kept as they are
written. `dataclasses.dataclass` compiles six methods for each class; here only the constructor is compiled. What is the
same in all classes is written once. `functools.cached_property` takes a lock for each value before Python 3.12, which
takes longer than most of the values.
"""

import dataclasses
import functools
import typing
from collections.abc import Callable, Iterable
from dataclasses import MISSING, FrozenInstanceError
from operator import attrgetter
from types import FunctionType
from typing import TYPE_CHECKING, Any, Final, Literal, NotRequired, Required, Self, cast

__all__ = ["FieldTuple", "NamedTuple", "TypedDict", "cached_property", "dataclass"]


class _Single(typing.NamedTuple):
    field: object


_new: Final = cast("Callable[..., Any]", tuple.__new__)
_getter_at: Final = cast("Callable[[int, str], object]", type(vars(_Single)["field"]))


class FieldTuple(tuple[Any, ...]):
    """The methods of every named tuple."""

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


@functools.cache
def _constructor_of(number: int) -> FunctionType:
    """Return the constructor of a tuple with this number of fields."""
    arguments = "".join(f"f{one}, " for one in range(number))
    return eval(f"lambda _cls, {arguments}: _new(_cls, ({arguments}))", {"_new": _new})  # noqa: S307


@functools.cache
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
        return type(name, tuple(FieldTuple if base is _BASE else base for base in bases), namespace)


class _Named:
    def __mro_entries__(self, bases: tuple[object, ...]) -> tuple[type]:
        return (_BASE,)


_BASE: Final[type] = type.__new__(_Maker, "NamedTuple", (), {})


class _Empty(typing.TypedDict):
    pass


class _Shaper(type(_Empty)):
    """Make a typed dictionary of a class that names `TypedDict`, or another typed dictionary, as its base."""

    def __new__(cls, name: str, bases: tuple[Any, ...], namespace: dict[str, Any], *, total: bool = True) -> type:
        own: dict[str, Any] = namespace.get("__annotations__", {})
        hints: dict[str, Any] = {}
        required: set[str] = set()
        optional: set[str] = set()
        for base in bases:
            hints.update(base.__annotations__)
            required.update(base.__required_keys__)
            optional.update(base.__optional_keys__)
        for field, hint in own.items():
            origin = getattr(hint, "__origin__", None)
            needed = origin is Required or (total and origin is not NotRequired)
            (required if needed else optional).add(field)
            (optional if needed else required).discard(field)
        namespace.update(
            __annotations__=hints | own,
            __required_keys__=frozenset(required),
            __optional_keys__=frozenset(optional),
            __total__=total,
        )
        return type.__new__(cls, name, (dict,), namespace)


class _Shaped:
    def __mro_entries__(self, bases: tuple[object, ...]) -> tuple[type]:
        return (_SHAPE,)

    def __call__(self, name: str, fields: dict[str, Any], *, total: bool = True) -> type:
        return _Shaper(name, (_SHAPE,), {"__annotations__": fields}, total=total)


_SHAPE: Final[type] = _Shaper("TypedDict", (), {})


class _Frozen:
    """The methods of every frozen dataclass."""

    def __repr__(self) -> str:
        shown = (field.name for field in dataclasses.fields(cast("Any", self)) if field.repr)
        return f"{type(self).__qualname__}({', '.join(f'{name}={getattr(self, name)!r}' for name in shown)})"

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        values = _compared(type(self))
        return values(self) == values(other)

    def __hash__(self) -> int:
        return hash(_compared(type(self))(self))

    def __setattr__(self, name: str, _: object) -> None:
        raise FrozenInstanceError(f"cannot assign to field {name!r}")

    def __delattr__(self, name: str) -> None:
        raise FrozenInstanceError(f"cannot delete field {name!r}")

    def __getstate__(self) -> list[Any]:
        return [getattr(self, field.name) for field in dataclasses.fields(cast("Any", self))]

    def __setstate__(self, state: list[Any]) -> None:
        for field, value in zip(dataclasses.fields(cast("Any", self)), state, strict=True):
            object.__setattr__(self, field.name, value)


@functools.cache
def _compared(kind: type) -> Callable[[object], object]:
    """Return a function that reads the fields that make two objects equal."""
    return attrgetter(*(field.name for field in dataclasses.fields(kind) if field.compare))


def _frozen(kind: type) -> type:
    own = {name for name, value in vars(kind).items() if value is not None}
    made = cast("Any", dataclasses.dataclass(init=False, repr=False, eq=False, slots=True)(kind))
    made.__init__ = _initializer(made)
    for given in ("init", "repr", "eq", "frozen"):  # for classes that inherit from it
        setattr(made.__dataclass_params__, given, True)
    for name, method in vars(_Frozen).items():
        if isinstance(method, FunctionType) and name not in own:
            setattr(made, name, method)
    return made


def _initializer(kind: type) -> FunctionType:
    """Return the `__init__` of a frozen dataclass, which sets the fields and calls `__post_init__` if the class has
    one."""
    arguments, lines = ["self"], [""]
    names: dict[str, Any] = {"_unset": MISSING, "__name__": kind.__module__}
    for field in dataclasses.fields(kind):
        name = argument = value = field.name
        if field.default_factory is not MISSING:
            names[f"_make_{name}"] = field.default_factory
            argument, value = f"{name}=_unset", f"_make_{name}() if {name} is _unset else {name}"
        elif field.default is not MISSING:
            names[f"_default_{name}"] = field.default
            argument = f"{name}=_default_{name}"
            value = name if field.init else f"_default_{name}"
        if field.init:
            arguments.append(argument)
        if field.init or field.default is not MISSING:
            names[f"_set_{name}"] = getattr(kind, name).__set__  # of its slot, which is faster than by its name
            lines.append(f"_set_{name}(self, {value})")
    if hasattr(kind, "__post_init__"):
        lines.append("self.__post_init__()")
    body = "\n ".join(lines)
    exec(f"def __init__({', '.join(arguments)}):{body}", names)  # noqa: S102
    made: FunctionType = names["__init__"]
    made.__qualname__ = f"{kind.__qualname__}.__init__"
    made.__annotations__ = {field.name: field.type for field in dataclasses.fields(kind) if field.init}
    return made


class _Cached(functools.cached_property[Any]):
    """A property that is computed once for each object. It takes no lock: what uses it belongs to one thread."""

    def __get__(self, of: Any, owner: type | None = None) -> Any:
        if of is None:
            return self
        value = of.__dict__[self.attrname] = self.func(of)
        return value


if TYPE_CHECKING:
    from dataclasses import dataclass  # type checkers know them
    from functools import cached_property
    from typing import NamedTuple, TypedDict
else:
    cached_property = _Cached
    # Python 3.14 does not keep annotations in the class, so it uses its own.
    _KEEPS = "__annotations__" in vars(_Single)
    NamedTuple = _Named() if _KEEPS else typing.NamedTuple
    TypedDict = _Shaped() if _KEEPS else typing.TypedDict

    def dataclass(*, frozen: Literal[True], slots: Literal[True]) -> Callable[[type], type]:
        """Return the decorator for a frozen dataclass with slots."""
        return _frozen
