"""`/metrics` of a server: the figures of its process, for Prometheus."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from http import HTTPStatus
from typing import TYPE_CHECKING, Final, Protocol

from starlette.responses import Response

from remit.errors import BadInput, Forbidden
from remit.runtime.workspace import opening_of
from remit.server.problems import plain_problem, problem
from remit.server.tenants import Tenants

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Receive, Scope, Send

_OF_ALL: Final = "the metrics are those of the whole server; only keys of its own workspace may read them"
_MISSING: Final = "this server has no metrics; they need more packages there: pip install 'remit[metrics]'"


class OfWorkspace(Protocol):
    """Settings of a server that has a workspace of its own."""

    @property
    def workspace(self) -> str: ...


@asynccontextmanager
async def metrics_app(tenants: Tenants, settings: OfWorkspace) -> AsyncGenerator[ASGIApp]:
    """Count what this process does while the body runs, and serve the figures."""
    try:
        from remit.adapters.prometheus import CONTENT_TYPE, collect, exposition
    except BadInput:
        yield plain_problem(HTTPStatus.NOT_FOUND, "no-such-path", _MISSING)
        return
    telemetry = collect()
    for workspace in tenants.opened():
        telemetry.follow_open(opening_of(workspace))

    async def answer(scope: Scope, receive: Receive, send: Send) -> None:
        response = Response(exposition(), media_type=CONTENT_TYPE)
        if scope["remit.caller"].workspace != settings.workspace:
            response = problem(Forbidden(_OF_ALL))
        await response(scope, receive, send)

    try:
        yield answer
    finally:
        telemetry.stop()
