"""Shared context over HTTP: namespaces, entries, and changes that name the version they are about."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated

from pydantic import Field

from remit.core.scope import KEY_LIMIT, NAMESPACE_LIMIT
from remit.core.values import INT_LIMIT
from remit.errors import BadInput, NotFound
from remit.report import wire
from remit.server.calls import BodyModel, HttpAnswer, HttpCall, NoBody, NoQuery, QueryModel
from remit.server.fields import AnyJson, Cursor, Limit, Seconds


class EntriesQuery(QueryModel):
    """Which entries of a namespace to list."""

    limit: Limit = 100
    prefix: Annotated[str, Field(max_length=KEY_LIMIT)] | None = None


class HistoryQuery(QueryModel):
    """Which page of an entry's history to show. A page may have fewer rows than `limit` and still not be the last."""

    limit: Limit = 100
    cursor: Cursor | None = None

    @property
    def before(self) -> int | None:
        return self.cursor


class ReadersQuery(HistoryQuery):
    """Which readers of an entry to show: of all its versions, or of one."""

    version: Cursor | None = None


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
    found = await call.context.query(_namespace(call.path), query.limit, prefix=query.prefix)
    return HttpAnswer({"entries": [wire.entry(one) for one in found]})


async def look(call: HttpCall[NoQuery, NoBody]) -> HttpAnswer:
    """Show an entry."""
    found = await call.context.entry(*_address(call.path))
    if found is None:
        raise NotFound("there is no such entry")
    return call.unless_same(f'"{found.version}"', wire.entry(found))


async def versions(call: HttpCall[HistoryQuery, NoBody]) -> HttpAnswer:
    """List the versions of an entry, the latest first: value, writer, time, and removals."""
    found, following = await call.workspace.looks.versions(
        *_address(call.path), limit=call.query.limit, before=call.query.before
    )
    return HttpAnswer({"versions": [wire.object_of(one) for one in found], "next": _next(following)})


async def readers(call: HttpCall[ReadersQuery, NoBody]) -> HttpAnswer:
    """List the turns that read an entry, or one version of it, the latest first."""
    query = call.query
    looks, where = call.workspace.looks, _address(call.path)
    found, following = await looks.readers(*where, version=query.version, limit=query.limit, before=query.before)
    return HttpAnswer({"readers": [wire.object_of(one) for one in found], "next": _next(following)})


def _next(before: int | None) -> str | None:
    return None if before is None else str(before)


async def put(call: HttpCall[NoQuery, EntryBody]) -> HttpAnswer:
    """Write an entry. With If-Match it must have that version; with "0" it must not exist."""
    namespace, key = _address(call.path)
    version = await call.context.set(namespace, key, call.body.value, call.body.ttl, expect=_expected(call))
    return HttpAnswer({"version": version}, 200, {"ETag": f'"{version}"'})


async def remove(call: HttpCall[NoQuery, NoBody]) -> HttpAnswer:
    """Remove an entry."""
    if not await call.context.remove(*_address(call.path)):
        raise NotFound("there is no such entry")
    return HttpAnswer(None, 204)


def _namespace(path: Mapping[str, str]) -> str:
    name = path["namespace"]
    if len(name) > NAMESPACE_LIMIT:
        raise NotFound("there is no such namespace")
    return name


def _address(path: Mapping[str, str]) -> tuple[str, str]:
    key = path["key"]
    if len(key) > KEY_LIMIT:
        raise NotFound("there is no such entry")
    return _namespace(path), key


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
