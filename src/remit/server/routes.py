"""The table of routes. Routing, scopes, the description for programs and the tests are made from it."""

from typing import Any, Final

from remit.server.callers import READ, RUN
from remit.server.calls import Row
from remit.server.handlers import events, own, tasks

OBJECT: Final[dict[str, Any]] = {"type": "object"}


def shape(**properties: Any) -> dict[str, Any]:
    """Return the schema of an object that has at least these properties."""
    return {"type": "object", "properties": properties, "required": [*properties]}


def page(name: str) -> dict[str, Any]:
    """Return the schema of a page: its rows, and the cursor of the next page or null."""
    return shape(**{name: {"type": "array", "items": OBJECT}, "next": {"type": ["string", "null"]}})


_ID: Final = shape(id={"type": "string"})

ROWS: Final = (
    Row("GET", "/healthz", "", own.alive, "Whether the process is up"),
    Row("GET", "/readyz", "", own.ready, "Whether the store answers"),
    Row("POST", "/v1/tasks", RUN, tasks.submit, "Submit a task", body=tasks.SubmitBody, answers={202: _ID}),
    Row("GET", "/v1/tasks", READ, tasks.listing, "List tasks", query=tasks.TasksQuery, answers={200: page("tasks")}),
    Row("GET", "/v1/tasks/{id}", READ, tasks.look, "Show a task", answers={200: _ID, 304: None}),
    Row(
        "GET",
        "/v1/tasks/{id}/wait",
        READ,
        tasks.wait,
        "Wait for a task",
        query=tasks.WaitQuery,
        answers={200: shape(ended={"type": "boolean"}, outcome=OBJECT), 202: OBJECT},
        waits=True,
    ),
    Row(
        "POST",
        "/v1/tasks/{id}/cancel",
        RUN,
        tasks.cancel,
        "Cancel a task",
        body=tasks.CancelBody,
        answers={202: shape(cancelled={"type": "integer"})},
    ),
    Row("POST", "/v1/tasks/{id}/retry", RUN, tasks.retry, "Retry a task", body=tasks.RetryBody, answers={202: _ID}),
    Row(
        "GET",
        "/v1/events",
        READ,
        events.listing,
        "List events",
        query=events.EventsQuery,
        answers={200: page("events")},
    ),
    Row("GET", "/v1/events/{seq}", READ, events.look, "Show an event", answers={200: OBJECT, 304: None}),
)
