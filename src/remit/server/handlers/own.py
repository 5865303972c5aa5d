"""Information about the server itself: whether it is up, whether its store answers, and which requests it accepts."""

from __future__ import annotations

import asyncio
from functools import cache
from typing import Any, Final

from starlette.responses import Response

from remit.errors import StoreError
from remit.server.calls import HttpAnswer, HttpCall
from remit.server.openapi import RouteRows, as_page, describe

_READY: Final = 1.5  # seconds; a load balancer gives up soon, and the store waits ten for a lost server
_PAGE: Final = "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'"


async def alive(_call: HttpCall[Any, Any]) -> HttpAnswer:
    """Report that the process is up. Check nothing else."""
    return HttpAnswer({"ok": True})


async def ready(call: HttpCall[Any, Any]) -> HttpAnswer:
    """Report that the store answers a read. Raise `StoreError` if it does not answer in time."""
    try:
        async with asyncio.timeout(_READY):
            await call.workspace.journal.read(lambda view: view.head().seq)
    except TimeoutError:
        away = StoreError(f"the store has not answered for {_READY:g} s")
        away.retryable = True
        raise away from None
    return HttpAnswer({"ok": True})


async def description(call: HttpCall[Any, Any]) -> HttpAnswer:
    """Describe every route, as OpenAPI."""
    return HttpAnswer(_described(call.scope["remit.rows"]))


async def page(call: HttpCall[Any, Any]) -> Response:
    """Describe every route, for people."""
    return Response(_page(call.scope["remit.rows"]), 200, {"Content-Security-Policy": _PAGE}, "text/html")


_described = cache(describe)


@cache
def _page(rows: RouteRows) -> str:
    return as_page(_described(rows))
