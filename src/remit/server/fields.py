"""The words of requests: texts, names, amounts, times and pages, with the limits of the kernel as JSON Schema.

A value that fits the schema of its field is accepted; a value that does not is refused before the kernel sees it.
"""

from __future__ import annotations

from typing import Annotated, Any, Final, TypeAlias

from pydantic import AfterValidator, BeforeValidator, ConfigDict, Field, JsonValue, WithJsonSchema

from remit.core.bounds import Bounds
from remit.core.prices import credits as amount
from remit.core.scope import KEY_LIMIT, MOST_PASSED, NAMESPACE_LIMIT
from remit.core.scope import Scope as ContextScope
from remit.core.times import EARLIEST, LATEST
from remit.core.values import INT_LIMIT, NAME_LIMIT, SESSION_LIMIT, TASK_LIMIT, canonical
from remit.engine.acts import WHY_LIMIT
from remit.errors import BadInput
from remit.server.calls import BodyModel

PAGE: Final = 1_000
_PRINTABLE: Final = r"^[\p{L}\p{M}\p{N}\p{P}\p{S} ]*$"  # what `str.isprintable` accepts
LINE: Final[dict[str, Any]] = {"type": "string", "minLength": 1, "maxLength": NAME_LIMIT, "pattern": _PRINTABLE}
JSON_MARK: Final = "x-json"  # in a schema, it stands for `JSON_SCHEMA`
NUMBER: Final[dict[str, Any]] = {"type": "number", "minimum": -(2**63), "maximum": INT_LIMIT}
NO_NUL: Final = r"^[^\x00]*$"
_NAMES: Final = 1_000
_SECONDS: Final = 200 * 365 * 86_400
_MOST_TOKENS: Final = 1_000_000_000_000


def _printable(text: str) -> str:
    if not text.isprintable():
        raise ValueError("must be one line of printable characters")
    return text


def _agent_name(text: str) -> str:
    try:
        canonical(text)
    except BadInput:
        raise ValueError("must be the name of an agent, with a letter or a digit") from None
    return text


def whole(value: object) -> object:
    """Return a whole float such as 5.0 as an int, because JSON Schema calls it an integer; other values unchanged."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


def digits(value: object) -> object:
    """Return the value unchanged. Raise `ValueError` for a text with other characters than digits: pydantic would also
    read `1_0`, `+1` and `1.0`."""
    if isinstance(value, str) and not (value.isascii() and value.isdigit()):
        raise ValueError("must be a whole number")
    return value


def _money(text: str) -> str:
    try:
        amount(text)
    except BadInput:
        raise ValueError('must be an amount such as "$0.50"') from None
    return text


Line: TypeAlias = Annotated[
    str,
    Field(min_length=1, max_length=NAME_LIMIT),
    AfterValidator(_printable),
    WithJsonSchema(LINE),
]
Session: TypeAlias = Annotated[
    str,
    Field(min_length=1, max_length=SESSION_LIMIT),
    AfterValidator(_printable),
    WithJsonSchema({"type": "string", "minLength": 1, "maxLength": SESSION_LIMIT, "pattern": _PRINTABLE}),
]
AgentName: TypeAlias = Annotated[
    str,
    Field(min_length=1, max_length=NAME_LIMIT),
    AfterValidator(_agent_name),
    WithJsonSchema({"type": "string", "minLength": 1, "maxLength": NAME_LIMIT, "pattern": r"^[^\x00]*[^\W_][^\x00]*$"}),
]
Text: TypeAlias = Annotated[
    str, Field(max_length=TASK_LIMIT), WithJsonSchema({"type": "string", "maxLength": TASK_LIMIT, "pattern": NO_NUL})
]
Why: TypeAlias = Annotated[
    str, Field(max_length=WHY_LIMIT), WithJsonSchema({"type": "string", "maxLength": WHY_LIMIT, "pattern": NO_NUL})
]
AnyJson: TypeAlias = Annotated[JsonValue, WithJsonSchema({JSON_MARK: True})]
Seconds: TypeAlias = Annotated[float, Field(gt=0, le=_SECONDS)]
Namespace: TypeAlias = Annotated[
    str,
    Field(min_length=1, max_length=NAMESPACE_LIMIT),
    WithJsonSchema({"type": "string", "minLength": 1, "maxLength": NAMESPACE_LIMIT, "pattern": NO_NUL}),
]
EntryKey: TypeAlias = Annotated[
    str,
    Field(min_length=1, max_length=KEY_LIMIT),
    WithJsonSchema({"type": "string", "minLength": 1, "maxLength": KEY_LIMIT, "pattern": NO_NUL}),
]
Amount: TypeAlias = Annotated[
    str,
    Field(max_length=40),
    AfterValidator(_money),
    WithJsonSchema({"type": "string", "pattern": r"^\$[0-9]{1,9}(\.[0-9]{1,6})?$", "examples": ["$0.50"]}),
]
Granted: TypeAlias = Annotated[
    str,
    Field(max_length=40),
    AfterValidator(_money),
    WithJsonSchema(
        {"type": "string", "pattern": r"^\$([1-9][0-9]{0,8}(\.[0-9]{1,6})?|0\.[0-9]{0,5}[1-9])$", "examples": ["$10"]}
    ),
]
# A task needs a text, data, or both.
SAYS_SOMETHING: Final[dict[str, Any]] = {
    "anyOf": [
        {"required": ["task"], "properties": {"task": {"minLength": 1}}},
        {"required": ["data"], "properties": {"data": {"not": {"type": "null"}}}},
    ]
}
Count: TypeAlias = Annotated[int, Field(ge=0, le=INT_LIMIT), BeforeValidator(whole)]
OneOrMore: TypeAlias = Annotated[int, Field(ge=1, le=INT_LIMIT), BeforeValidator(whole)]
Tokens: TypeAlias = Annotated[int, Field(ge=0, le=_MOST_TOKENS), BeforeValidator(whole)]
Moment: TypeAlias = Annotated[int, Field(ge=0, le=LATEST), BeforeValidator(whole)]
Deadline: TypeAlias = Annotated[int, Field(ge=EARLIEST, le=LATEST), BeforeValidator(whole)]
# Numbers in a query
Limit: TypeAlias = Annotated[int, Field(ge=1, le=PAGE), BeforeValidator(digits)]
Cursor: TypeAlias = Annotated[int, Field(ge=0, le=INT_LIMIT), BeforeValidator(digits)]
QueryMoment: TypeAlias = Annotated[int, Field(ge=0, le=LATEST), BeforeValidator(digits)]


# The schema of the JSON values that remit accepts. It refers to itself, under the name `Json`.
JSON_SCHEMA: Final[dict[str, Any]] = {
    "anyOf": [
        {"type": ["null", "boolean"]},
        NUMBER,
        {"type": "string", "pattern": NO_NUL},
        {"type": "array", "items": {"$ref": "#/components/schemas/Json"}},
        {
            "type": "object",
            "propertyNames": {"pattern": NO_NUL},
            "additionalProperties": {"$ref": "#/components/schemas/Json"},
        },
    ]
}


class ScopeBody(BodyModel):
    """A part of the context: a namespace, or the entries of it with a key or a prefix."""

    model_config = ConfigDict(json_schema_extra={"not": {"required": ["key", "prefix"]}})

    namespace: Namespace
    key: EntryKey | None = None
    prefix: Annotated[str, Field(max_length=KEY_LIMIT, json_schema_extra={"pattern": NO_NUL})] = ""

    @property
    def scope(self) -> ContextScope:
        return ContextScope(self.namespace, self.key, prefix=self.prefix)


Scopes: TypeAlias = Annotated[list[Namespace | ScopeBody], Field(max_length=MOST_PASSED)]
Names: TypeAlias = Annotated[list[Line], Field(max_length=_NAMES)]
AgentNames: TypeAlias = Annotated[list[AgentName], Field(max_length=_NAMES)]


def scopes_of(given: list[str | ScopeBody]) -> list[str | ContextScope]:
    """Return the scopes of a request in the form that `sees=` and `writes=` take."""
    return [one if isinstance(one, str) else one.scope for one in given]


class BoundsBody(BodyModel):
    """Limits for a task and all its subtasks. What is left out limits nothing."""

    agents: AgentNames | None = None
    tools: Names | None = None
    sees: Scopes | None = None
    writes: Scopes | None = None
    depth: Count | None = None
    deadline: Deadline | None = None
    credits: Amount | None = None
    tokens: Count | None = None
    handoffs: Count | None = None
    members: OneOrMore | None = None
    tasks: OneOrMore | None = None
    requests: Count | None = None

    @property
    def bounds(self) -> Bounds:
        given: dict[str, Any] = {name: value for name, value in self if value is not None}
        for name in ("sees", "writes"):
            if name in given:
                given[name] = scopes_of(given[name])
        return Bounds(**given)
