"""JSON Schema for structured results, by the jsonschema package (`remit[schema]`)."""

from collections.abc import Mapping
from typing import Any

from jsonschema import Draft202012Validator, SchemaError

from remit.core.values import Json
from remit.errors import BadInput


def check(schema: Mapping[str, Any], value: Json) -> list[str]:
    """List what is wrong with the value, one sentence each; nothing if it fits."""
    errors: Any = Draft202012Validator(schema).iter_errors(value)  # pyright: ignore[reportUnknownMemberType]
    found = sorted(errors, key=lambda error: [str(part) for part in error.path])
    return [f"{'.'.join(str(part) for part in error.path) or 'it'}: {error.message[:200]}" for error in found]


def check_schema(schema: Mapping[str, Any]) -> None:
    """Raise if the schema itself is not one."""
    try:
        Draft202012Validator.check_schema(schema)
    except SchemaError as error:
        raise BadInput(f"that is not a JSON Schema: {error.message[:200]}") from error
