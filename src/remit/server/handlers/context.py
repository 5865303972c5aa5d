"""Shared context over HTTP: namespaces, entries, and changes that name the version they are about."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from remit.core.scope import KEY_LIMIT, NAMESPACE_LIMIT
from remit.core.values import INT_LIMIT
from remit.errors import BadInput, NotFound
from remit.report import wire
from remit.server.calls import BodyModel, HttpAnswer, HttpCall, NoBody, NoQuery, QueryModel
from remit.server.fields import AnyJson, Limit, Seconds


class EntriesQuery(QueryModel):
    """Which entries of a namespace to list."""

    limit: Limit = 100
    prefix: Annotated[str, Field(max_length=KEY_LIMIT)] | None = None


class EntryBody(BodyModel):
    """The value of an entry, and how many seconds it is kept."""

    value: AnyJson
    ttl: Seconds | None = None


async def namespaces(call: HttpCall[NoQuery, NoBody]) -> HttpAnswer:
    """List the namespaces, and the number of entries in each."""
    return HttpAnswer({"namespaces": dict(sorted((await call.workspace.context.namespaces()).items()))})


async def listing(call: HttpCall[EntriesQuery, NoBody]) -> HttpAnswer:
    """List the entries of a namespace."""
    query = call.query
    found = await call.context.query(_namespace(call), query.limit, prefix=query.prefix)
    return HttpAnswer({"entries": [wire.entry(one) for one in found]})


async def look(call: HttpCall[NoQuery, NoBody]) -> HttpAnswer:
    """Show an entry."""
    found = await call.context.entry(*_address(call))
    if found is None:
        raise NotFound("there is no such entry")
    return call.unless_same(f'"{found.version}"', wire.entry(found))


async def put(call: HttpCall[NoQuery, EntryBody]) -> HttpAnswer:
    """Write an entry. With If-Match it must have that version; with "0" it must not exist."""
    namespace, key = _address(call)
    version = await call.context.set(namespace, key, call.body.value, call.body.ttl, expect=_expected(call))
    return HttpAnswer({"version": version}, 200, {"ETag": f'"{version}"'})


async def remove(call: HttpCall[NoQuery, NoBody]) -> HttpAnswer:
    """Remove an entry."""
    if not await call.context.remove(*_address(call)):
        raise NotFound("there is no such entry")
    return HttpAnswer(None, 204)


def _namespace(call: HttpCall[EntriesQuery, NoBody] | HttpCall[NoQuery, EntryBody] | HttpCall[NoQuery, NoBody]) -> str:
    name = call.path["namespace"]
    if len(name) > NAMESPACE_LIMIT:
        raise NotFound("there is no such namespace")
    return name


def _address(call: HttpCall[NoQuery, EntryBody] | HttpCall[NoQuery, NoBody]) -> tuple[str, str]:
    key = call.path["key"]
    if len(key) > KEY_LIMIT:
        raise NotFound("there is no such entry")
    return _namespace(call), key


def _expected(call: HttpCall[NoQuery, EntryBody]) -> int | None:
    """Return the version that If-Match names, or None without one."""
    told = call.headers.get("if-match", "")
    if not told:
        return None
    number = told.removeprefix('"').removesuffix('"')
    if f'"{number}"' != told or not (number.isascii() and number.isdigit()) or len(number) > len(str(INT_LIMIT)):
        raise BadInput(
            'the header If-Match is a version as an ETag, such as "3", or "0" for an entry that is not there'
        )
    return int(number)
