"""The calls of `remit.Client`: methods of the caller's workspace, one route for each.

They are not in the description of the server: they change with the methods of a workspace, and both sides of them are
remit's own.
"""

from functools import partial
from typing import Final

import orjson
from pydantic import ConfigDict
from starlette.responses import Response

from remit.core.values import Json
from remit.errors import RemitError, StoreError
from remit.runtime.calls import CALLS, RemoteCall, error_data, without_echo
from remit.runtime.performing import ActsFor, perform
from remit.server.callers import Caller
from remit.server.calls import BodyModel, HttpAnswer, HttpCall, NoQuery, Row
from remit.server.problems import PROBLEM

_WAITS: Final = frozenset(("journal.next", "tasks.outcome"))
_ANSWER: Final[dict[str, Json]] = {"type": "object", "properties": {"answer": {}}, "required": ["answer"]}


class CallBody(BodyModel):
    """The arguments of a call, each under its name. The method checks them."""

    model_config = ConfigDict(extra="allow", strict=True, frozen=True)

    @property
    def given(self) -> dict[str, Json]:
        return dict(self.model_extra or {})


async def _perform(name: str, call: HttpCall[NoQuery, CallBody]) -> HttpAnswer | Response:
    """Perform the call `name` and return its answer. An error is returned with its own sentence, because it is about
    the caller's own workspace, but with a mark in place of each argument: the client fills its arguments in and raises
    the error as the workspace itself would. Raise `StoreError` if the store fails."""
    given = call.body.given
    if CALLS[name].acts and call.op and not given.get("op"):
        given["op"] = call.headers["idempotency-key"]
    try:
        answer = await perform(call.workspace, name, given, _acts_for(call.caller))
        if name in _WAITS:
            await call.is_valid()  # the key may have been revoked meanwhile
        return HttpAnswer({"answer": answer})
    except StoreError:
        raise
    except RemitError as error:
        data = {**error_data(error), "detail": without_echo(str(error), given), "status": error.status}
        return Response(orjson.dumps(data), error.status, None, PROBLEM)


def _acts_for(caller: Caller) -> ActsFor:
    return ActsFor(caller.access, caller.by, caller.agent, caller.bounds, caller.op)


def _row(name: str, call: RemoteCall) -> Row:
    summary = f"Call workspace.{name}"
    return Row(
        "POST",
        f"/v1/calls/{name}",
        call.scope,
        partial(_perform, name),
        summary,
        body=CallBody,
        answers={200: _ANSWER},
        waits=name in _WAITS,
        agents=call.agents,
    )


REMOTE_ROWS: Final = tuple(_row(name, call) for name, call in CALLS.items())
