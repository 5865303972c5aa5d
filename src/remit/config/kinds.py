"""The kinds of settings and tables that describe a file, and the kinds of values."""

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any, Final, NamedTuple, cast

from remit.core.toolgroups import REPEATS
from remit.core.values import Json


class ValueKind(NamedTuple):
    """A kind of value: its name, its JSON Schema, a check, and its words if it has only a few."""

    called: str
    schema: dict[str, Json]
    fits: Callable[[object], bool]
    words: tuple[str, ...] = ()


class Setting(NamedTuple):
    """One key. `judge` raises `BadInput` for a value of the right kind that cannot be used. `ways` are the keys of
    `one_of` that it goes with; empty means all."""

    about: str
    kind: ValueKind
    judge: Callable[[Any], object] | None = None
    ways: tuple[str, ...] = ()


class TableKind(NamedTuple):
    """A table of settings and tables.

    With `many` there is one table for each name that the owner chooses, with `listed` a list of tables. Exactly one of
    the keys in `one_of` must be there, and all keys in `needs`. `short` is a value that may replace the table. `judge`
    raises `BadInput` for settings that do not go together. `ways` are as in `Setting`, and `noun` is the name of one
    such table.
    """

    about: str
    settings: "Mapping[str, Setting | TableKind]"
    many: bool = False
    listed: bool = False
    one_of: tuple[str, ...] = ()
    needs: tuple[str, ...] = ()
    short: Setting | None = None
    judge: Callable[[Any], object] | None = None
    ways: tuple[str, ...] = ()
    noun: str = "table"


def kind_name(setting: Setting | TableKind) -> str:
    """Return the name of a key's kind of value."""
    if isinstance(setting, Setting):
        return setting.kind.called
    return "a list of tables" if setting.listed else "a table"


# -- kinds of values ---------------------------------------------------------------------------------------------


def _is_texts(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(one, str) for one in cast("list[object]", value))


def _is_ids(value: object) -> bool:
    return isinstance(value, list) and all(map(_is(int), cast("list[object]", value)))


def _is_text_or_texts_by_name(value: object) -> bool:
    return isinstance(value, str) or _is_text_table(value)


def _is_whole_or_no(value: object) -> bool:
    return value is False or (isinstance(value, int) and value is not True)


def _is_text_table(value: object) -> bool:
    return isinstance(value, dict) and all(isinstance(one, str) for one in cast("dict[str, object]", value).values())


def _is(*kinds: type) -> Callable[[object], bool]:
    """Return a check for values of these types. Unlike in Python, true and false are no numbers."""

    def fits(value: object) -> bool:
        return isinstance(value, kinds) and (bool in kinds or not isinstance(value, bool))

    return fits


def _is_or_texts(kind: type) -> Callable[[object], bool]:
    def fits(value: object) -> bool:
        return isinstance(value, kind) or _is_texts(value)

    return fits


def _is_moment(value: object) -> bool:
    return isinstance(value, datetime) and value.utcoffset() is not None


_LISTED: Final[dict[str, Json]] = {"type": "array", "items": {"type": "string"}}
TEXT: Final = ValueKind("text in quotes", {"type": "string"}, _is(str))
TEXTS: Final = ValueKind('a list of texts, such as ["a", "b"]', _LISTED, _is_texts)
NAMES: Final = ValueKind(
    'a list of texts, such as ["a", "b"], or one text', {"anyOf": [{"type": "string"}, _LISTED]}, _is_or_texts(str)
)
TEXT_TABLE: Final = ValueKind(
    'a table of texts, such as { NAME = "value" }',
    {"type": "object", "additionalProperties": {"type": "string"}},
    _is_text_table,
)
IDS: Final = ValueKind(
    "a list of whole numbers, such as [4711, 4712]", {"type": "array", "items": {"type": "integer"}}, _is_ids
)
WHOLE: Final = ValueKind("a whole number", {"type": "integer"}, _is(int))
NUMBER: Final = ValueKind("a number", {"type": "number"}, _is(int, float))
YES: Final = ValueKind("true or false", {"type": "boolean"}, _is(bool))
WHOLE_OR_NO: Final = ValueKind(
    "a whole number, or false", {"anyOf": [{"type": "integer"}, {"const": False}]}, _is_whole_or_no
)
AMOUNT: Final = ValueKind(
    'an amount with its unit, such as "$0.50"',
    {"type": "string", "pattern": r"^\s*(\$[0-9.]+|[0-9.]+ *[Uu][Ss][Dd])\s*$"},
    _is(str),
)
MOMENT: Final = ValueKind(
    "a date with its time and zone, such as 2030-01-31T18:00:00Z",
    {"type": "string", "format": "date-time"},
    _is_moment,
)
REPEAT: Final = ValueKind(
    'one of "again", "key", "ask" and "tell", or a table of them, such as { search = "again" }',
    {"anyOf": [{"enum": [*REPEATS]}, {"type": "object", "additionalProperties": {"enum": [*REPEATS]}}]},
    _is_text_or_texts_by_name,
    REPEATS,
)
SCOPE: Final = ValueKind(
    '"own", "all" or a list of ids', {"anyOf": [{"enum": ["own", "all"]}, _LISTED]}, _is_or_texts(str), ("own", "all")
)
FORM: Final = ValueKind(
    "text in quotes, or a table that is a JSON Schema",
    {"anyOf": [{"type": "string"}, {"type": "object"}]},
    _is(str, dict),
)
ARGUMENTS: Final = ValueKind('a table, such as { name = "value" }', {"type": "object"}, _is(dict))


def word_of(*words: str) -> ValueKind:
    """Return the kind of a value that is one of a few words."""

    def fits(value: object) -> bool:
        return isinstance(value, str) and value in words

    return ValueKind(" or ".join(f'"{word}"' for word in words), {"enum": [*words]}, fits, words)
