"""The description of the server for programs, as OpenAPI 3.1, made from the table of routes; and as a page."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape
from typing import Any, Final, cast

from remit import __version__
from remit.server.calls import NoBody, Row
from remit.server.fields import JSON_MARK, JSON_SCHEMA

_REF: Final = "#/components/schemas/{model}"
_PROBLEM_STATUSES: Final = (400, 401, 403, 404, 408, 409, 413, 415, 422, 429, 500, 503)
_IDEMPOTENCY: Final = {
    "name": "Idempotency-Key",
    "in": "header",
    "description": "A repeated request with the same key and content happens once, and gets the same answer.",
    "schema": {"type": "string", "maxLength": 200, "pattern": "^[ -~]*$"},
}
_PROBLEM: Final[dict[str, Any]] = {
    "type": "object",
    "required": ["type", "title", "status", "detail", "code", "retryable", "request"],
    "properties": {
        "type": {"type": "string"},
        "title": {"type": "string"},
        "status": {"type": "integer"},
        "detail": {"type": "string", "description": "What was wrong, and what to do."},
        "code": {"type": "string", "description": "The name of the error."},
        "retryable": {"type": "boolean"},
        "request": {"type": "string", "description": "The method and the path, as this description has them."},
        "rule": {"type": "string"},
        "agent": {"type": "string"},
        "task": {"type": "string"},
    },
}
# The paths of the object that a request creates; the answer to the request has its id. Every run is also a task.
_TASK: Final = ("/v1/tasks/{id}", "/v1/runs/{id}")
_MAKES: Final[dict[str, tuple[str, ...]]] = {
    "POST /v1/tasks": _TASK,
    "POST /v1/tasks/{id}/retry": _TASK,
    "POST /v1/runs/{id}/fork": _TASK,
    "POST /v1/plans": _TASK,
    "POST /v1/teams": _TASK,
    "POST /v1/artifacts": ("/v1/artifacts/{digest}",),
    "POST /v1/access": ("/v1/access/{id}",),
    "POST /v1/hooks": ("/v1/hooks/{id}",),
}
_SEGMENTS: Final[dict[str, dict[str, Any]]] = {
    "seq": {"type": "integer", "minimum": 0},
    "digest": {"type": "string", "pattern": "^sha256:[0-9a-f]{64}$"},
}


class RouteRows(tuple[Row, ...]):
    """The routes of a server, compared by identity, because not all parts of a row can be hashed."""

    __slots__ = ()
    __hash__ = object.__hash__
    __eq__ = object.__eq__


def describe(rows: RouteRows) -> dict[str, Any]:
    """Return the description of these routes."""
    schemas: dict[str, Any] = {"Problem": _PROBLEM, "Json": JSON_SCHEMA}
    paths: dict[str, dict[str, Any]] = {}
    for row in rows:
        made = paths.setdefault(row.path, {})[row.method.lower()] = _operation(row, schemas)
        _link(made, row, rows)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "remit",
            "version": __version__,
            "description": "Tasks, events, people, money and context of one workspace. Its key says which one it is. "
            "Times are microseconds since 1970.",
        },
        "paths": paths,
        "components": {"schemas": schemas, "securitySchemes": {"key": {"type": "http", "scheme": "bearer"}}},
    }


def _operation(row: Row, schemas: dict[str, Any]) -> dict[str, Any]:
    made: dict[str, Any] = {
        "operationId": _name(row),
        "summary": row.summary,
        "description": (row.handler.__doc__ or "").strip(),
        "parameters": [*_segments(row), *_query(row, schemas)],
        "responses": _answers(row),
        "security": [{"key": []}] if row.scope else [],
        "tags": [row.path.split("/")[2] if row.path.startswith("/v1/") else "server"],
    }
    if row.scope:
        made["x-scope"] = row.scope
    if row.method != "GET":
        made["parameters"].append(_IDEMPOTENCY)
        body = _body(row, schemas)
        if body is not None:
            made["requestBody"] = body
    return made


def _name(row: Row) -> str:
    return f"{row.method.lower()}{row.path.replace('/', '_').replace('{', '').replace('}', '')}"


def _link(made: Mapping[str, Any], row: Row, rows: RouteRows) -> None:
    """Add OpenAPI links to a request that creates an object: the other requests on that object, and the values for
    their paths."""
    places = _MAKES.get(row.name, (row.path,) if row.method == "PUT" else ())
    source = "$request.path." if row.method == "PUT" else "$response.body#/"
    links = {
        _name(one): {"operationId": _name(one), "parameters": {name: f"{source}{name}" for name in _names(place)}}
        for place in places
        for one in rows
        if one is not row and f"{one.path}/".startswith(f"{place}/")
    }
    if links:
        made["responses"][str(min(row.answers))]["links"] = links


def _names(path: str) -> list[str]:
    return [segment[1:-1] for segment in path.split("/") if segment.startswith("{")]


def _segments(row: Row) -> list[dict[str, Any]]:
    usual = {"type": "string", "minLength": 1}
    return [
        {"name": name, "in": "path", "required": True, "schema": _SEGMENTS.get(name, usual)}
        for name in _names(row.path)
    ]


def _query(row: Row, schemas: dict[str, Any]) -> list[dict[str, Any]]:
    schema = _schema(row.query, schemas)
    needed = schema.get("required", ())
    found: list[dict[str, Any]] = []
    for name, property_ in schema.get("properties", {}).items():
        one = _without_null(property_)
        parameter = {"name": name, "in": "query", "required": name in needed, "schema": one}
        if one.get("type") == "array":
            parameter |= {"style": "form", "explode": False}
        found.append(parameter)
    return found


def _without_null(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return the schema of a parameter that may be left out, but is never null."""
    options = [one for one in schema.get("anyOf", ()) if one.get("type") != "null"]
    if len(options) != 1:
        return {name: value for name, value in schema.items() if name != "title" and value is not None}
    return cast("dict[str, Any]", options[0])


def _body(row: Row, schemas: dict[str, Any]) -> dict[str, Any] | None:
    if row.raw:
        return {"required": False, "content": {"application/octet-stream": {"schema": {}}}}  # a file may be empty
    if row.body is NoBody:
        return None
    name = row.body.__name__
    schemas[name] = schema = _schema(row.body, schemas)
    content = {"application/json": {"schema": {"$ref": _REF.format(model=name)}}}
    return {"required": bool(schema.get("required") or "anyOf" in schema), "content": content}


def _schema(model: Any, schemas: dict[str, Any]) -> dict[str, Any]:
    """Return the schema of a model. Add the schemas of the models in it to `schemas`, where it refers to them."""
    schema: dict[str, Any] = _with_json(model.model_json_schema(ref_template=_REF, mode="validation"))
    schemas.update(schema.pop("$defs", {}))
    return schema


def _with_json(schema: Any) -> Any:
    """Return a schema with a reference to `JSON_SCHEMA` in place of each part that has `JSON_MARK`."""
    if isinstance(schema, list):
        return [_with_json(one) for one in cast("list[Any]", schema)]
    if not isinstance(schema, dict):
        return schema
    if JSON_MARK in schema:
        return {"$ref": _REF.format(model="Json")}
    return {name: _with_json(value) for name, value in cast("dict[str, Any]", schema).items()}


def _answers(row: Row) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for status, schema in row.answers.items():
        one: dict[str, Any] = {"description": row.summary}
        if schema:
            one["content"] = {"application/json": {"schema": schema}}
        elif schema is not None:
            one["content"] = {"*/*": {}}
        found[str(status)] = one
    problem = {"schema": {"$ref": _REF.format(model="Problem")}}
    for status in _PROBLEM_STATUSES:
        found[str(status)] = {"description": "An error", "content": {"application/problem+json": problem}}
    return found


# -- page ----------------------------------------------------------------------------------------------------------

_STYLE: Final = """
:root{color-scheme:light dark;--ink:#1c2024;--soft:#60646c;--line:#d9d9e0;--back:#fcfcfd;--panel:#f4f4f7;--mark:#0b68cb}
@media (prefers-color-scheme:dark){:root{--ink:#edeef0;--soft:#a4a7ae;--line:#363a3f;--back:#111113;--panel:#1b1c1f;
--mark:#70b8ff}}
*{box-sizing:border-box}body{margin:0;background:var(--back);color:var(--ink);font:15px/1.55 system-ui,sans-serif}
main{max-width:60rem;margin:0 auto;padding:2.5rem 1.25rem 5rem}h1{font-size:1.6rem;margin:0 0 .25rem}
h2{font-size:1rem;margin:2.25rem 0 .5rem;text-transform:capitalize}p{margin:.35rem 0;color:var(--soft)}
code,summary{font-family:ui-monospace,SFMono-Regular,Menlo,monospace;font-size:.86rem}
details{border:1px solid var(--line);border-radius:8px;margin:.4rem 0;background:var(--panel)}
summary{cursor:pointer;padding:.55rem .8rem;display:flex;gap:.75rem;align-items:baseline}
summary b{color:var(--mark);min-width:4.2rem}summary span{margin-left:auto;color:var(--soft);font-family:system-ui}
details>div{padding:.2rem .9rem .8rem;border-top:1px solid var(--line)}table{border-collapse:collapse;width:100%}
td{padding:.3rem .6rem .3rem 0;border-bottom:1px solid var(--line);vertical-align:top}td:last-child{color:var(--soft)}
"""


def as_page(description: Mapping[str, Any]) -> str:
    """Return the description as one page, without scripts and without anything from elsewhere."""
    groups: dict[str, list[str]] = {}
    schemas = description["components"]["schemas"]
    for path, operations in description["paths"].items():
        for method, operation in operations.items():
            groups.setdefault(operation["tags"][0], []).append(_card(method, path, operation, schemas))
    parts = [f"<h2>{escape(name)}</h2>{''.join(cards)}" for name, cards in groups.items()]
    return (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>remit</title>'
        f'<meta name="viewport" content="width=device-width,initial-scale=1"><style>{_STYLE}</style></head><body><main>'
        f"<h1>remit {escape(__version__)}</h1><p>{escape(description['info']['description'])}</p>"
        "<p>Send the key as <code>Authorization: Bearer &lt;key&gt;</code>. "
        'For programs: <a href="/v1/openapi.json">openapi.json</a>.</p>'
        f"{''.join(parts)}</main></body></html>"
    )


def _card(method: str, path: str, operation: Mapping[str, Any], schemas: Mapping[str, Any]) -> str:
    lines = [
        _line(one["name"], one["in"], one["schema"], one.get("required", False)) for one in operation["parameters"]
    ]
    body = operation.get("requestBody", {}).get("content", {}).get("application/json")
    if body is not None:
        schema = schemas[body["schema"]["$ref"].rpartition("/")[2]]
        needed = schema.get("required", ())
        lines += [_line(name, "body", one, name in needed) for name, one in schema.get("properties", {}).items()]
    scope = operation.get("x-scope")
    table = f"<table>{''.join(lines)}</table>" if lines else ""
    needs = f" Scope: <code>{escape(scope)}</code>." if scope else ""
    return (
        f"<details><summary><b>{method.upper()}</b>{escape(path)}<span>{escape(operation['summary'])}</span></summary>"
        f"<div><p>{escape(operation['description'])}{needs}</p>{table}</div></details>"
    )


def _line(name: str, where: str, schema: Mapping[str, Any], needed: bool) -> str:
    schema = _without_null(schema)
    words = [str(schema.get("type") or schema.get("$ref", "").rpartition("/")[2] or "any")]
    if "enum" in schema:
        words.append(", ".join(map(str, schema["enum"])))
    for key, word in (("minimum", "from"), ("maximum", "to"), ("maxLength", "at most")):
        if key in schema:
            words.append(f"{word} {schema[key]:,}")
    if schema.get("default") not in (None, "", False):
        words.append(f"default {schema['default']}")
    mark = " *" if needed else ""
    return f"<tr><td><code>{escape(name)}</code>{mark}</td><td>{where}</td><td>{escape('; '.join(words))}</td></tr>"
