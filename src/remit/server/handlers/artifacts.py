"""Artifacts over HTTP: files in and out, as streams, each with its digest."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from typing import Annotated, Final, Literal
from urllib.parse import quote

from pydantic import Field, WithJsonSchema
from starlette.requests import ClientDisconnect
from starlette.responses import Response, StreamingResponse

from remit.core.artifact import BINARY, NAME_LENGTH, digest_of
from remit.errors import BadInput, NotFound, TooSlow
from remit.report import wire
from remit.server.calls import HttpAnswer, HttpCall, NoBody, NoQuery, QueryModel
from remit.server.fields import Limit, Line

PART_SECONDS: Final = 30.0
_NAME: Final = {"type": "string", "minLength": 1, "maxLength": NAME_LENGTH, "pattern": r"^[\w .-]*\w[\w .-]*$"}
FileName = Annotated[str, Field(min_length=1, max_length=NAME_LENGTH), WithJsonSchema(_NAME)]


class ArtifactsQuery(QueryModel):
    """Which files to list."""

    run: Line | None = None
    limit: Limit = 100


class SaveQuery(QueryModel):
    """The name of a file that is saved, and its trust label. Its media type is the Content-Type of the request. With
    the token of a server on this machine, `by` says who saves it."""

    name: FileName
    trust: Literal["untrusted", "trusted"] = "untrusted"
    by: Line | None = None


async def listing(call: HttpCall[ArtifactsQuery, NoBody]) -> HttpAnswer:
    """List files, the latest first."""
    found = await call.workspace.artifacts.list(run=call.query.run, limit=call.query.limit)
    return HttpAnswer({"artifacts": [wire.object_of(one) for one in found]})


async def save(call: HttpCall[SaveQuery, NoBody]) -> HttpAnswer:
    """Save a file. It is labelled untrusted, unless the owner sets `trust=trusted`."""
    kind = call.headers.get("content-type", "").partition(";")[0].strip().lower() or BINARY
    by = call.caller.by if call.caller.access else call.query.by or call.caller.by
    saved = await call.workspace.artifacts.save(
        _parts(call), call.query.name, kind, trust=call.query.trust, op=call.op, by=by
    )
    return HttpAnswer(saved.data(), 201, {"Location": f"/v1/artifacts/{saved.digest}"})


async def _parts(call: HttpCall[SaveQuery, NoBody]) -> AsyncGenerator[bytes]:
    while True:
        try:
            async with asyncio.timeout(PART_SECONDS):
                message = await call.receive()
        except TimeoutError:
            raise TooSlow(f"the next part of the file did not arrive within {PART_SECONDS:g} seconds") from None
        if message["type"] == "http.disconnect":
            raise ClientDisconnect
        if part := message.get("body", b""):
            yield part
        if not message.get("more_body", False):
            return


async def content(call: HttpCall[NoQuery, NoBody]) -> HttpAnswer | Response:
    """Send a file. A browser saves it and does not show it, because an agent may have written it."""
    digest = call.path["digest"]
    try:
        digest_of(digest)
    except BadInput:
        raise NotFound("there is no such artifact") from None
    opened = await call.workspace.artifacts.open(digest)
    if call.headers.get("if-none-match", "") == f'"{digest}"':
        return HttpAnswer(None, 304, {"ETag": f'"{digest}"'})
    headers = {
        "ETag": f'"{digest}"',
        "Content-Length": str(opened.artifact.size),
        "Content-Disposition": f"attachment; filename*=UTF-8''{quote(opened.artifact.name, safe='')}",
        "Content-Security-Policy": "default-src 'none'; sandbox",
        "X-Remit-Trust": opened.trust,
    }
    return StreamingResponse(opened, 200, headers, opened.artifact.media_type)
