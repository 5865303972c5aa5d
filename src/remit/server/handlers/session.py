"""The session of a browser: its page trades a key for a cookie, looks at it, and ends it.

They are not in the description of the server: programs send their key with each request.
"""

from __future__ import annotations

from typing import Annotated, Any, Final

from pydantic import Field

from remit.core.values import Json
from remit.errors import Forbidden
from remit.server.callers import READ, SCOPES, Caller, Doorkeeper
from remit.server.calls import BodyModel, HttpAnswer, HttpCall, NoBody, NoQuery, Row
from remit.server.sessions import Sessions

PATH: Final = "/v1/session"
DOOR: Final = "remit.door"  # where a request has the doorkeeper and the sessions
_OBJECT: Final[dict[str, Any]] = {"type": "object"}


class SessionBody(BodyModel):
    """The key of a new session."""

    key: Annotated[str, Field(min_length=1, max_length=200)]


def _door(call: HttpCall[Any, Any]) -> tuple[Doorkeeper, Sessions]:
    doorkeeper, sessions = call.scope[DOOR]
    if sessions is None:
        raise Forbidden("this server has no sessions; send the key with each request")
    return doorkeeper, sessions


def _described(caller: Caller, csrf: str, until: int) -> dict[str, Json]:
    return {
        "workspace": caller.workspace,
        "scopes": [one for one in SCOPES if caller.may(one)],
        "agent": caller.agent,
        "by": caller.by,
        "csrf": csrf,
        "until": until,
    }


async def begin(call: HttpCall[NoQuery, SessionBody]) -> HttpAnswer:
    """Start a session with a key. Scripts cannot read its cookie."""
    doorkeeper, sessions = _door(call)
    caller = await doorkeeper.caller(call.body.key)
    begun = sessions.begin(caller, call.scope)
    return HttpAnswer(_described(caller, begun.csrf, begun.until), 200, begun.headers)


async def look(call: HttpCall[NoQuery, NoBody]) -> HttpAnswer:
    """Show whose session it is. A page that was loaded again gets its CSRF text here."""
    _, sessions = _door(call)
    cookie = sessions.cookie(call.scope)
    if not cookie or "authorization" in call.headers:
        raise Forbidden("this request has no session; it has a key")
    told = _described(call.caller, sessions.csrf(cookie), sessions.until(cookie))
    return HttpAnswer(told, 200, {"Cache-Control": "no-store"})


async def end(call: HttpCall[NoQuery, NoBody]) -> HttpAnswer:
    """End the session in this browser."""
    return HttpAnswer(None, 204, _door(call)[1].end(call.scope))


_ANSWERS: Final = {200: _OBJECT}
SESSION_ROWS: Final = (
    Row("POST", PATH, "", begin, "Begin a session", body=SessionBody, answers=_ANSWERS),
    Row("GET", PATH, READ, look, "Show the session", answers=_ANSWERS, agents=True),
    Row("DELETE", PATH, READ, end, "End the session", answers={204: None}, agents=True),
)
