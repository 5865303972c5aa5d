"""Tools as adapters bring them to an agent: the owner's functions, programs, and tools of servers."""

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeAlias, cast

from remit.core.checks import callable_, yes_or_no
from remit.core.toolgroups import GROUP, GROUPS, TOOL_LIMIT, Repeat, repeat_word
from remit.core.trust import TRUSTED, UNTRUSTED, Trust, known_trust, quoted
from remit.core.values import line, plain, shown
from remit.errors import BadInput
from remit.ports.models import ToolFunction

Schema: TypeAlias = Mapping[str, Any]

_SENTENCE_LIMIT: Final = 65_536
_SCHEMA_LIMIT: Final = 262_144
_VERBS: Final = GROUPS["agents"]
_WORDS: Final = frozenset(("description", "title", "$comment"))  # of a schema, when they are text
_ASIDE: Final = frozenset(("examples", "deprecated", "readOnly", "writeOnly"))


class ToolFailed(RuntimeError):
    """A tool call failed. The text is for the caller; untrusted text in it is quoted."""


@dataclass(frozen=True, slots=True, eq=False)
class Tool:
    """A function that a model can call by name.

    `sentence` describes it and `schema` is the JSON Schema of its arguments, an object. `call` runs it, and raises
    `ToolFailed` if it fails. `untrusted` says that its results are untrusted and are quoted as data. `described` is the
    label of the sentence and the schema: untrusted if the owner did not write them. `repeat` is what happens to a call
    that may have been made before a crash. `polls` says that the tool asks for the state of something, so equal results
    are fine.
    """

    name: str
    sentence: str
    schema: Schema
    call: ToolFunction
    untrusted: bool = False
    described: Trust = TRUSTED
    repeat: Repeat | None = None
    polls: bool = False

    def __post_init__(self) -> None:
        put = object.__setattr__
        put(self, "name", _name(self.name))
        put(self, "sentence", plain(self.sentence, f"what the tool '{self.name}' does", _SENTENCE_LIMIT, empty=True))
        put(self, "schema", _schema(self.schema, self.name))
        callable_(self.call, "call takes a function of the arguments")
        known_trust(self.described)
        if self.repeat is not None:
            repeat_word(self.repeat, self.name)
        yes_or_no(self.polls, "polls")
        if yes_or_no(self.untrusted, "untrusted") and self.name in _VERBS:
            raise BadInput(f"no tool from outside can be called '{self.name}': that is how agents ask each other")

    @property
    def told(self) -> str:
        """The description for a model: quoted as data if it is untrusted."""
        return quoted(self.sentence) if self.described == UNTRUSTED and self.sentence else self.sentence

    @property
    def told_schema(self) -> dict[str, Any]:
        """The schema for a model. Untrusted text in it is quoted as data, or left out where a call does not need it."""
        return _told_schema(dict(self.schema)) if self.described == UNTRUSTED else dict(self.schema)


def _told_schema(schema: Any) -> Any:
    if isinstance(schema, list):
        return [_told_schema(one) for one in cast("list[Any]", schema)]
    if not isinstance(schema, dict):
        return schema
    found: dict[str, Any] = {}
    for name, value in cast("dict[str, Any]", schema).items():
        if isinstance(value, str) and name in _WORDS:
            if name == "description":
                found[name] = quoted(value)
        elif name not in _ASIDE or isinstance(value, dict):
            found[name] = _told_schema(value)
    return found


def pin_of(tool: Tool) -> str:
    """Return the digest of a tool as a model sees it: a changed description or schema changes the pin."""
    told = json.dumps([tool.name, tool.sentence, tool.schema], sort_keys=True, separators=(",", ":"))
    return f"sha256:{hashlib.sha256(told.encode()).hexdigest()}"


def pins_of(tools: Iterable[Tool]) -> dict[str, str]:
    """Return the pins of several tools by name, to be printed and stored."""
    return {tool.name: pin_of(tool) for tool in tools}


def _name(given: object) -> str:
    name = line(given, "a tool name", TOOL_LIMIT)
    if name.startswith(GROUP) or name == "*":
        raise BadInput(f"no tool can be called {shown(name)}: that stands for several tools; pick another name")
    return name


def _schema(given: object, name: str) -> dict[str, Any]:
    """Return a copy of the schema of an object. Raise `BadInput` if it is anything else."""
    if not isinstance(given, Mapping) or cast("Schema", given).get("type") != "object":
        takes = '{"type": "object", "properties": {...}}'
        raise BadInput(
            f"the schema of the tool '{name}' is that of an object, {takes}, not {shown(cast('object', given))}"
        )
    try:
        text = json.dumps(dict(cast("Schema", given)), allow_nan=False)
    except (TypeError, ValueError, RecursionError):
        raise BadInput(f"the schema of the tool '{name}' is not JSON") from None
    if len(text) > _SCHEMA_LIMIT:
        raise BadInput(f"the schema of the tool '{name}' has at most {_SCHEMA_LIMIT:,} characters, got {len(text):,}")
    schema = json.loads(text)
    if not isinstance(schema.get("properties", {}), dict):
        raise BadInput(f"the properties of the schema of the tool '{name}' are an object of schemas, by name")
    return schema
