"""The form of a result: a type, checked by pydantic (`remit[typed]`), or a JSON Schema (`remit[schema]`)."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from functools import lru_cache, reduce
from types import UnionType
from typing import (
    TYPE_CHECKING,
    Annotated,
    Any,
    Final,
    Literal,
    NotRequired,
    Required,
    Union,
    cast,
    get_args,
    get_origin,
    get_type_hints,
    is_typeddict,
)

from remit.core.values import Json, checked, encode, shown
from remit.errors import BadInput

if TYPE_CHECKING:
    from pydantic import TypeAdapter, ValidationError

    from remit.ports.forms import Form

_FAULTS: Final = 5  # that a sentence names


def form_of(given: object, keyword: str) -> Form:
    """Return the form of a result that `given` describes: a type or a JSON Schema. Raise `BadInput` if it is neither,
    or if a package is missing; the error names the argument as `keyword`."""
    if isinstance(given, Mapping):
        return SchemaForm(cast("Mapping[str, Any]", given), keyword)
    try:
        return _form_of_type(given, keyword)
    except TypeError:  # not hashable, as some annotated types
        return TypeForm(given, keyword)


class TypeForm:
    """A type: a dataclass, a `TypedDict`, a pydantic model, or any other annotation that pydantic can check."""

    def __init__(self, given: object, keyword: str) -> None:
        try:
            from pydantic import TypeAdapter, ValidationError  # noqa: PLC0415 - only needed with a type
            from pydantic_core import PydanticSerializationError  # noqa: PLC0415
        except ImportError as error:
            raise BadInput(
                f"{keyword}={_type_name(given)} needs pydantic: pip install 'remit[typed]' ({error})"
            ) from error
        self._misfit = ValidationError
        self._unwritable = PydanticSerializationError
        self._name = _type_name(given)
        try:
            self._adapter: TypeAdapter[Any] = TypeAdapter(_modern(given))
            self._adapter.rebuild(raise_errors=True)  # find an unknown name now, not when there is a result
        except Exception as error:  # pydantic, and the code that reads annotations, raise all sorts
            why = str(error).partition("\n")[0]
            raise BadInput(
                f"{keyword} takes a type, such as a dataclass, a TypedDict or a pydantic model, or a JSON Schema, not "
                f"{shown(given)}: {why}"
            ) from error

    def read(self, value: Json, what: str) -> Any:
        """Return the object that a value describes. Text may be the JSON of the object, as programs and models write
        it. Raise `BadInput` if the value does not fit the type; the error calls the value `what`."""
        try:
            return self._parsed(encode(value))
        except self._misfit as error:
            if not isinstance(value, str) or value.lstrip()[:1] not in ("{", "["):
                raise self._no(error, what) from None
        try:
            return self._parsed(value)
        except self._misfit as error:
            raise self._no(error, what) from None

    def write(self, answer: object, what: str) -> Json:
        """Return an agent's result as JSON. An object of the type is used as it is; any other value is parsed as JSON
        of that type. Raise `BadInput` if the result does not fit, or cannot be written as JSON."""
        try:
            found = self._adapter.validate_python(answer, by_alias=True, by_name=True)
        except self._misfit as error:
            try:
                value = checked(answer, what)
            except BadInput:
                raise self._no(error, what) from None
            found = self.read(value, what)
        try:
            return self._adapter.dump_python(found, mode="json")
        except self._unwritable as error:
            raise BadInput(f"{what} is a {self._name} that cannot be written as JSON: {error}") from None

    def _parsed(self, text: str) -> Any:
        return self._adapter.validate_json(text, by_alias=True, by_name=True)

    def _no(self, error: ValidationError, what: str) -> BadInput:
        faults = error.errors(include_url=False, include_context=False)
        listed = "; ".join(_fault(one) for one in faults[:_FAULTS])
        more = f"; and {len(faults) - _FAULTS} more" if len(faults) > _FAULTS else ""
        return BadInput(f"{what} does not fit {self._name}: {listed}{more}")


@lru_cache(maxsize=256)  # a type adapter takes long to make
def _form_of_type(given: object, keyword: str) -> TypeForm:
    return TypeForm(given, keyword)


class SchemaForm:
    """A JSON Schema. A value that fits is returned as it is."""

    def __init__(self, schema: Mapping[str, Any], keyword: str) -> None:
        try:
            from remit.adapters import schema as schemas  # noqa: PLC0415 - only needed with a schema
        except ImportError as error:
            raise BadInput(f"{keyword} as a JSON Schema needs pip install 'remit[schema]' ({error})") from error
        self._schema = {**schema}
        self._check = schemas.check
        schemas.check_schema(self._schema)

    def read(self, value: Json, what: str) -> Json:
        if wrong := self._check(self._schema, value):
            raise BadInput(f"{what} does not fit its schema: {'; '.join(wrong[:_FAULTS])}")
        return value

    def write(self, answer: object, what: str) -> Json:
        return self.read(checked(answer, what), what)


def _modern(given: Any) -> Any:
    """Return a type in which each `TypedDict` is one of typing_extensions: before Python 3.12, pydantic reads no other.
    A `TypedDict` in a field of a class is not replaced; its author must import it from typing_extensions."""
    if sys.version_info >= (3, 12):
        return given
    from typing_extensions import TypedDict  # noqa: PLC0415 - pydantic brings it

    if is_typeddict(given) and type(given).__module__ == "typing":
        fields = {
            name: (Required if name in given.__required_keys__ else NotRequired)[_modern(hint)]
            for name, hint in get_type_hints(given).items()
        }
        return TypedDict(given.__name__, fields)  # pyright: ignore - its fields are known only now
    origin, parts = get_origin(given), get_args(given)
    if origin is None or origin in (Literal, Annotated):
        return given
    made: tuple[Any, ...] = tuple(map(_modern, parts))
    if made == parts:
        return given
    return reduce(lambda one, other: one | other, made) if origin in (Union, UnionType) else origin[made]


def _type_name(given: object) -> str:
    name = getattr(given, "__name__", None) if isinstance(given, type) and not getattr(given, "__args__", ()) else None
    return name or shown(given).replace("typing.", "")


def _fault(fault: Any) -> str:
    """Return the place of a fault, what is wrong there, and what was found: `findings[2].line: Input should be ...`."""
    place = ""
    for part in fault["loc"]:
        place += f"[{part}]" if isinstance(part, int) else f".{part}"
    got = "" if fault["type"] == "missing" else f", got {shown(fault['input'])}"
    message = f"{fault['msg']}{got}"
    return f"{place.removeprefix('.')}: {message}" if place else message
