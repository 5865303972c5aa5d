"""`/metrics` of a server: the figures of its process and how its workspace stands, for Prometheus."""

from __future__ import annotations

from asyncio import Lock
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from http import HTTPStatus
from typing import TYPE_CHECKING, Final, Protocol

from starlette.responses import Response

from remit.errors import BadInput, Forbidden
from remit.ports import View
from remit.runtime.workers import crew_of
from remit.runtime.workspace import Workspace, opening_of
from remit.server.problems import plain_problem, problem
from remit.server.tenants import Tenants

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Receive, Scope, Send

_SECOND: Final = 1_000_000  # microseconds
_MOST_QUESTIONS: Final = 1_000
_MOST_TASKS: Final = 1_000
_OF_ALL: Final = "the metrics are those of the whole server; only keys of its own workspace may read them"
_MISSING: Final = "this server has no metrics; they need more packages there: pip install 'remit[metrics]'"


class OfWorkspace(Protocol):
    """Settings of a server that has a workspace of its own."""

    @property
    def workspace(self) -> str: ...


class WorkspaceGauges:
    """The numbers of open tasks, open questions and workers of a workspace, for Prometheus. They are read from the
    store on request, at most once a second."""

    def __init__(self, workspace: Workspace) -> None:
        self._opening = opening_of(workspace)
        self._reading = Lock()
        self._text, self._until = b"", 0

    async def text(self) -> bytes:
        async with self._reading:
            now = self._opening.clock.now()
            if now >= self._until:
                self._text = await self._opening.records.read(self._look)
                self._until = now + _SECOND
        return self._text

    def _look(self, view: View) -> bytes:
        by_state = view.open_tasks(_MOST_TASKS)  # no more, so that a scrape does not read a long queue
        lines = _gauge("remit_open_tasks", "Open tasks by state, counted up to 1000 each.", by_state)
        lines += _gauge("remit_tasks_at_work", "Tasks that are at work, with what they delegated.", view.working())
        waiting = len(view.questions_open(_MOST_QUESTIONS))
        lines += _gauge("remit_open_questions", "Questions that wait for a person, counted up to 1000.", waiting)
        crew = crew_of(view.workers(), self._opening.clock.now())
        lines += _gauge("remit_workers", "Processes that run tasks of the server's workspace.", len(crew.workers))
        return "".join(f"{line}\n" for line in lines).encode()


def _gauge(name: str, about: str, value: int | dict[str, int]) -> list[str]:
    """Return the lines of a gauge; with several values, one for each state."""
    rows = [f"{name} {value}"]
    if isinstance(value, dict):
        rows = [f'{name}{{state="{state}"}} {number}' for state, number in value.items()]
    return [f"# HELP {name} {about}", f"# TYPE {name} gauge", *rows]


@asynccontextmanager
async def metrics_app(tenants: Tenants, settings: OfWorkspace) -> AsyncGenerator[ASGIApp]:
    """Yield the application that serves the figures of this process, and collect them while the body runs. If the
    packages of remit[metrics] are missing, the application answers with status 404."""
    try:
        from remit.adapters.prometheus import CONTENT_TYPE, collect, exposition
    except BadInput:
        yield plain_problem(HTTPStatus.NOT_FOUND, "no-such-path", _MISSING)
        return
    telemetry = collect()
    for workspace in tenants.workspaces():
        telemetry.follow_open(opening_of(workspace))

    gauges = WorkspaceGauges(tenants.workspace(settings.workspace))

    async def answer(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["remit.caller"].workspace != settings.workspace:
            response = problem(Forbidden(_OF_ALL))
        else:
            response = Response(exposition() + await gauges.text(), media_type=CONTENT_TYPE)
        await response(scope, receive, send)

    try:
        yield answer
    finally:
        telemetry.stop()
