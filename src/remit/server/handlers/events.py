"""The journal over HTTP: pages of events, one event, and new events as they are written."""

from __future__ import annotations

from contextlib import AsyncExitStack
from typing import Annotated, Any, Final, TypeAlias, cast

from pydantic import AfterValidator, BeforeValidator, Field, WithJsonSchema
from starlette.responses import Response

from remit.core.kinds import SHAPES
from remit.core.times import aware
from remit.core.values import Json
from remit.errors import BadInput, NotFound
from remit.report import wire
from remit.runtime.filters import HistoryFilter
from remit.runtime.workspace import opening_of
from remit.server.calls import HttpAnswer, HttpCall, NoBody, NoQuery, QueryModel
from remit.server.feed import StreamFilter
from remit.server.fields import AgentName, Cursor, Limit, Line, QueryMoment, Session
from remit.server.live import EventStream

STREAM: Final = "text/event-stream"
KINDS: Final = tuple(sorted(SHAPES))


def _kinds(value: object) -> object:
    """Return the kinds of a query: names with commas between them."""
    return value.split(",") if isinstance(value, str) else value


def _known_kinds(kinds: list[str]) -> list[str]:
    if not SHAPES.keys() >= {*kinds}:
        raise ValueError("must be kinds of events with commas between them, such as task.completed,task.failed")
    return kinds


Kinds: TypeAlias = Annotated[
    list[str],
    BeforeValidator(_kinds),
    AfterValidator(_known_kinds),
    Field(min_length=1, max_length=len(KINDS)),
    WithJsonSchema({"type": "array", "items": {"enum": [*KINDS]}, "minItems": 1, "maxItems": len(KINDS)}),
]


class EventsQuery(QueryModel):
    """Which events to read: all conditions must hold. A cursor is the `seq` of the last event already seen."""

    run: Line | None = None
    session: Session | None = None
    agent: AgentName | None = None
    task: Line | None = None
    kind: Kinds | None = None
    since: QueryMoment | None = None
    until: QueryMoment | None = None
    after: Cursor = 0
    limit: Limit = 100
    words: bool | None = None

    def filters(self) -> HistoryFilter:
        given: dict[str, Any] = {name: value for name, value in self if value is not None}
        given.pop("words", None)
        if "kind" in given:
            given["kinds"] = given.pop("kind")
        return cast("HistoryFilter", given | {name: aware(given[name]) for name in ("since", "until") if name in given})


async def listing(call: HttpCall[EventsQuery, NoBody]) -> HttpAnswer | Response:
    """List events in their order, after a number; `gaps` are the numbers that were removed among them. With `Accept:
    text/event-stream`, send new ones as they come: from now on, or after the event that `Last-Event-ID` or `after`
    names."""
    if call.scope["method"] == "GET" and STREAM in call.headers.get("accept", ""):
        return await _stream(call)
    if call.query.words:
        raise BadInput("words of models come in a stream only: send `Accept: text/event-stream`")
    journal = call.workspace.journal
    found = await journal.history(**call.query.filters())
    last = found[-1].seq if len(found) == call.query.limit else None
    gaps: Json = [[gap.first, gap.last] for gap in await journal.gaps(call.query.after, last)]
    following = None if last is None else str(last)
    return HttpAnswer({"events": [wire.event(one) for one in found], "gaps": gaps, "next": following})


async def _stream(call: HttpCall[EventsQuery, NoBody]) -> Response:
    query, told = call.query, call.query.model_fields_set
    if strange := told & {"since", "until", "limit"}:
        raise BadInput(f"a stream has no {' and no '.join(sorted(strange))}; leave it out, or read pages of events")
    after = _last_id(call) if "last-event-id" in call.headers else query.after if "after" in told else None
    kinds = None if query.kind is None else frozenset(query.kind)
    wanted = StreamFilter(query.run, query.session, query.agent, query.task, kinds)
    async with AsyncExitStack() as stack:
        opened = call.feeds.reader(
            call.workspace, wanted, after=after, access=call.caller.access, words=query.words or False
        )
        reader = await stack.enter_async_context(opened)
        return EventStream(reader, stack.pop_all(), opening_of(call.workspace).clock, call.is_valid)


def _last_id(call: HttpCall[EventsQuery, NoBody]) -> int:
    text = call.headers["last-event-id"].strip()
    if not (text.isascii() and text.isdigit() and len(text) < 19):
        raise BadInput("the header Last-Event-ID is the number of an event")
    return int(text)


async def look(call: HttpCall[NoQuery, NoBody]) -> HttpAnswer:
    """Show one event by its number."""
    text = call.path["seq"]
    if not (text.isascii() and text.isdigit() and len(text) < 19):
        raise NotFound("there is no such event")
    found = await call.workspace.journal.history(after=int(text) - 1, limit=1) if int(text) else []
    if not found or found[0].seq != int(text):
        raise NotFound("there is no such event")
    return call.unless_same(f'"{found[0].hash}"', wire.event(found[0]))
