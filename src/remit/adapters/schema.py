"""JSON Schema for structured results, based on the jsonschema package (`remit[schema]`).

Nothing is downloaded: a schema can refer to its own parts, and to the drafts of JSON Schema in the package.
"""

from collections.abc import Mapping
from typing import Any, Final, cast

from jsonschema import Draft202012Validator, SchemaError
from jsonschema_specifications import REGISTRY  # pyright: ignore[reportMissingTypeStubs]
from referencing import Resource
from referencing.exceptions import Unresolvable
from referencing.jsonschema import DRAFT202012, SchemaRegistry

from remit.core.values import Json, shown
from remit.errors import BadInput

_HERE: Final[SchemaRegistry] = REGISTRY  # cannot download anything
_REFERENCES: Final = ("$ref", "$dynamicRef")
_ENDLESS: Final = "its schema refers to itself without end"


def check(schema: Mapping[str, Any], value: Json) -> list[str]:
    """Return what is wrong with the value, one sentence each; empty if it fits."""
    errors: Any = Draft202012Validator(schema, registry=_HERE).iter_errors(value)  # pyright: ignore[reportUnknownMemberType]
    try:
        found = sorted(errors, key=lambda error: [str(part) for part in error.path])
    except RecursionError:
        return [_ENDLESS]
    return [f"{'.'.join(str(part) for part in error.path) or 'it'}: {error.message[:200]}" for error in found]


def check_schema(schema: Mapping[str, Any]) -> None:
    """Raise `BadInput` if the schema is invalid, or refers to anything outside of it."""
    try:
        Draft202012Validator.check_schema(schema)
        resource = DRAFT202012.create_resource(schema)
        _check_references(resource, _HERE.resolver_with_root(resource))
    except SchemaError as error:
        raise BadInput(f"that is not a JSON Schema: {error.message[:200]}") from error
    except RecursionError:
        raise BadInput(f"that is not a JSON Schema that can be used: {_ENDLESS}") from None


def _check_references(resource: Resource[Any], resolver: Any) -> None:
    """Resolve every reference: an unresolved one would fail in the middle of a plan."""
    contents: object = resource.contents
    if isinstance(contents, Mapping):
        for name in _REFERENCES:
            if name in contents:
                _check_reference(cast("Mapping[str, str]", contents)[name], resolver)
    for part in resource.subresources():
        _check_references(part, resolver.in_subresource(part))


def _check_reference(reference: str, resolver: Any) -> None:
    try:
        resolver.lookup(reference)
    except (Unresolvable, ValueError) as error:
        raise BadInput(
            f"the schema refers to {shown(reference)}, which is not in it; "
            "nothing is fetched from elsewhere: put it under $defs and write '#/$defs/...'"
        ) from error
