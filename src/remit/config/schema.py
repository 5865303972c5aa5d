"""The JSON Schema of a team's file, for editors that complete and check."""

from remit.config.description import TABLES
from remit.config.kinds import Setting, TableKind
from remit.core.values import Json


def schema() -> dict[str, Json]:
    """Return the JSON Schema of a team's file."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "A team of agents (remit.toml)",
        "type": "object",
        "properties": {name: _table(kind) for name, kind in TABLES.items()},
        "required": ["agents"],
        "additionalProperties": False,
    }


def _table(kind: TableKind) -> Json:
    one: Json = _settings(kind)
    if kind.short is not None:
        one = {"anyOf": [_setting(kind.short), one]}
    if kind.listed:
        return {"description": kind.about, "type": "array", "items": one}
    if kind.many:
        return {"description": kind.about, "type": "object", "additionalProperties": one}
    return {"description": kind.about, **one}


def _settings(kind: TableKind) -> dict[str, Json]:
    made: dict[str, Json] = {
        "type": "object",
        "properties": {name: _setting(setting) for name, setting in kind.settings.items()},
        "additionalProperties": False,
    }
    if kind.needs:
        made["required"] = [*kind.needs]
    if kind.one_of:
        made["oneOf"] = [{"required": [name]} for name in kind.one_of]
    return made


def _setting(setting: Setting | TableKind) -> Json:
    if isinstance(setting, TableKind):
        return _table(setting)
    return {"description": setting.about, **setting.kind.schema}
