"""A request as a handler gets it, its answer, and a row of the table of routes."""

from collections.abc import Awaitable, Callable, Iterator, Mapping
from secrets import token_hex
from typing import Any, Final, Generic, NamedTuple, TypeAlias, TypeVar

import orjson
from pydantic import BaseModel, ConfigDict
from starlette.datastructures import Headers
from starlette.responses import Response
from starlette.types import Receive, Scope

from remit.core.values import NAME_LIMIT, Json, canonical
from remit.engine.context import Context
from remit.errors import BadInput, NotFound
from remit.runtime.workspace import Workspace, opening_of
from remit.server.callers import Caller
from remit.server.feed import Feeds

Q = TypeVar("Q")
B = TypeVar("B")

JSON: Final = "application/json"


class BodyModel(BaseModel):
    """The body of a request. Types are exact: "5" is no number, and an unknown field is an error."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class QueryModel(BaseModel):
    """The query of a request. An unknown parameter is an error."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class NoBody(BodyModel):
    """The body of a request that needs none: nothing, or an empty object."""


class NoQuery(QueryModel):
    """The query of a request that takes none."""


class HttpCall(NamedTuple, Generic[Q, B]):
    """A request: who makes it, in which workspace, and what it says, all checked. `op` is the operation id made from
    its Idempotency-Key, "" if it has none. `scope` and `receive` are for handlers that stream; `feeds` has the new
    events of workspaces, and `is_valid` raises `Unauthorised` once the key does not count any more."""

    caller: Caller
    workspace: Workspace
    path: Mapping[str, str]
    query: Q
    body: B
    op: str
    headers: Headers
    scope: Scope
    receive: Receive
    feeds: Feeds
    is_valid: Callable[[], Awaitable[object]]

    @property
    def id(self) -> str:
        """The id in its path. Raise `NotFound` for a text that is no id: it names nothing that exists."""
        text = self.path["id"]
        if len(text) > NAME_LIMIT or not text.isprintable():
            raise NotFound("there is no such object")
        return text

    @property
    def agent(self) -> str:
        """The agent in its path. Raise `NotFound` for a text that names none."""
        text = self.path["agent"]
        try:
            return canonical(text)
        except BadInput:
            raise NotFound("there is no such agent") from None

    @property
    def now(self) -> int:
        """The time, in microseconds since 1970."""
        return opening_of(self.workspace).clock.now()

    @property
    def context(self) -> Context:
        """The shared context, with the rights of the caller. A change has the operation id of this request."""
        who = self.caller
        return self.workspace.context(asker=who.agent, ceiling=who.bounds, op=self.op, by=who.by)

    @property
    def fresh(self) -> str:
        """A key that nothing else has, for a request without an Idempotency-Key."""
        return f"{self.caller.access or 'token'}#{token_hex(16)}"

    def unless_same(self, tag: str, data: Json) -> "HttpAnswer":
        """Return an answer with the data and this ETag. If the request names the tag in If-None-Match, return one with
        status 304 and no data."""
        headers = {"ETag": tag}
        if tag in (one.strip() for one in self.headers.get("if-none-match", "").split(",")):
            return HttpAnswer(None, 304, headers)
        return HttpAnswer(data, 200, headers)


class HttpAnswer(NamedTuple):
    """The answer of a handler: JSON, or nothing with status 204 or 304."""

    data: Json
    status: int = 200
    headers: Mapping[str, str] = {}

    def response(self) -> Response:
        if self.status in (204, 304):
            return Response(None, self.status, dict(self.headers))
        return Response(orjson.dumps(self.data), self.status, dict(self.headers), JSON)


Handler: TypeAlias = Callable[[HttpCall[Any, Any]], Awaitable[HttpAnswer | Response]]


class Row(NamedTuple):
    """A route: everything that the server, its description and its tests know about it. `answers` is the JSON Schema of
    each status, None for no content. The handler of a `raw` row reads the body itself. A row that `waits` may take
    long, so its requests need no turn of `FairTurns`. A row without a scope is open to everybody, and one for `agents`
    is also for keys that act as an agent; all others are for keys of the owner."""

    method: str
    path: str
    scope: str
    handler: Handler
    summary: str
    query: type[QueryModel] = NoQuery
    body: type[BodyModel] = NoBody
    answers: Mapping[int, Mapping[str, Any] | None] = {200: {}}
    raw: bool = False
    waits: bool = False
    agents: bool = False

    @property
    def name(self) -> str:
        return f"{self.method} {self.path}"


def texts_in(value: object) -> Iterator[str]:
    """Yield the texts in a value, at any depth, with the keys of its mappings. Stop after 1,000 values, of any type."""
    waiting, seen = [value], 0
    while waiting and seen < 1_000:
        seen += 1
        one = waiting.pop()
        if isinstance(one, str):
            yield one
        elif isinstance(one, Mapping):
            waiting += [*one.keys(), *one.values()]
        elif isinstance(one, list):
            waiting += one
