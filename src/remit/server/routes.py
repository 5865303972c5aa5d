"""The table of routes. Routing, scopes, the description for programs and the tests are made from it."""

from typing import Any, Final

from remit.server.callers import ADMIN, APPROVE, READ, RUN
from remit.server.calls import Row
from remit.server.handlers import (
    access,
    agents,
    agui,
    artifacts,
    context,
    events,
    hooks,
    money,
    own,
    questions,
    runs,
    schedules,
    tasks,
)

_OBJECT: Final[dict[str, Any]] = {"type": "object"}
_FLAG: Final = {"type": "boolean"}
_NUMBER: Final = {"type": "integer"}
_TEXT: Final = {"type": "string"}


def shape(**properties: Any) -> dict[str, Any]:
    """Return the schema of an object that has at least these properties."""
    return {"type": "object", "properties": properties, "required": [*properties]}


def rows_of(name: str) -> dict[str, Any]:
    """Return the schema of a complete list under this name; unlike `page_of`, it has no cursor."""
    return shape(**{name: {"type": "array", "items": _OBJECT}})


def page_of(name: str) -> dict[str, Any]:
    """Return the schema of a page: its rows, and the cursor of the next page or null."""
    return shape(**{name: {"type": "array", "items": _OBJECT}, "next": {"type": ["string", "null"]}})


_ID: Final = shape(id=_TEXT)
_MADE: Final = {202: _ID}
_CHANGED: Final = {200: shape(changed=_FLAG)}
_SECRET: Final = shape(id=_TEXT, secret=_TEXT)
_DECIDED: Final = {200: shape(id=_TEXT, state=_TEXT)}
_DONE: Final = {204: None}
_SAME: Final = {200: _OBJECT, 304: None}


def _get(path: str, handler: Any, summary: str, answer: Any = _OBJECT, **more: Any) -> Row:
    answers = more.pop("answers", {200: answer})
    return Row("GET", path, more.pop("scope", READ), handler, summary, answers=answers, **more)


ROWS: Final = (
    # the server itself
    _get("/healthz", own.alive, "Whether the process is up", shape(ok=_FLAG), scope=""),
    _get("/readyz", own.ready, "Whether the store answers", shape(ok=_FLAG), scope=""),
    _get("/v1/openapi.json", own.description, "This description", scope=""),
    _get("/docs", own.page, "This description as a page", {}, scope=""),
    # tasks
    Row("POST", "/v1/tasks", RUN, tasks.submit, "Submit a task", body=tasks.SubmitBody, answers=_MADE, agents=True),
    _get("/v1/tasks", tasks.listing, "List tasks", page_of("tasks"), query=tasks.TasksQuery, agents=True),
    _get("/v1/tasks/{id}", tasks.look, "Show a task", answers={200: _ID, 304: None}, agents=True),
    _get(
        "/v1/tasks/{id}/wait",
        tasks.wait,
        "Wait for a task",
        query=tasks.WaitQuery,
        answers={200: shape(ended=_FLAG, outcome=_OBJECT), 202: shape(ended=_FLAG)},
        waits=True,
        agents=True,
    ),
    Row(
        "POST",
        "/v1/tasks/{id}/cancel",
        RUN,
        tasks.cancel,
        "Cancel a task or a run",
        body=tasks.CancelBody,
        answers={202: shape(cancelled=_NUMBER)},
        agents=True,
    ),
    Row(
        "POST",
        "/v1/tasks/{id}/retry",
        RUN,
        tasks.retry,
        "Retry a task",
        body=tasks.RetryBody,
        answers=_MADE,
        agents=True,
    ),
    # runs
    _get("/v1/runs", runs.listing, "List runs", page_of("runs"), query=runs.RunsQuery),
    _get("/v1/runs/{id}", runs.look, "Show a run as a tree", _ID),
    _get("/v1/runs/{id}/flow", runs.picture, "Draw a run", {}, query=runs.FlowQuery),
    _get("/v1/runs/{id}/receipts", runs.receipts, "Show what each turn saw", rows_of("receipts")),
    Row("POST", "/v1/runs/{id}/fork", RUN, runs.fork, "Fork a run", body=runs.ForkBody, answers=_MADE),
    _get("/v1/prune", runs.prunable, "Count old runs", shape(prunable=_NUMBER), query=runs.PruneQuery),
    Row(
        "POST",
        "/v1/prune",
        ADMIN,
        runs.prune,
        "Delete old runs",
        body=runs.PruneBody,
        answers={200: shape(pruned=_NUMBER)},
        waits=True,
    ),
    Row("POST", "/v1/plans", RUN, runs.submit_plan, "Submit a plan", body=runs.PlanBody, answers=_MADE),
    Row("POST", "/v1/teams", RUN, runs.submit_team, "Give a goal to a team", body=runs.TeamBody, answers=_MADE),
    Row(
        "POST",
        "/v1/ag-ui/{agent}",
        RUN,
        agui.run,
        "Run an agent for a page that speaks AG-UI",
        body=agui.AguiInput,
        waits=True,
    ),
    # journal
    _get("/v1/events", events.listing, "List events", page_of("events"), query=events.EventsQuery, waits=True),
    _get("/v1/events/{seq}", events.look, "Show an event", answers=_SAME),
    # agents
    _get("/v1/agents", agents.listing, "List agents", rows_of("agents"), agents=True),
    _get("/v1/agents/find", agents.find, "Find agents", rows_of("matches"), query=agents.FindQuery, agents=True),
    Row("DELETE", "/v1/agents/{agent}", ADMIN, agents.withdraw, "Withdraw an agent's card", answers=_DONE),
    _get("/v1/workers", agents.workers, "List workers", rows_of("workers")),
    _get("/v1/breakers", agents.breakers, "List breakers", rows_of("breakers")),
    Row(
        "POST",
        "/v1/breakers/{agent}/trip",
        ADMIN,
        agents.trip,
        "Take an agent out of service",
        body=agents.TripBody,
        answers=_DONE,
    ),
    Row(
        "POST",
        "/v1/breakers/{agent}/reset",
        ADMIN,
        agents.reset,
        "Let an agent be called again",
        body=agents.ResetBody,
        answers=_DONE,
    ),
    # context
    _get("/v1/context", context.namespaces, "List namespaces", shape(namespaces=_OBJECT)),
    _get(
        "/v1/context/{namespace}",
        context.listing,
        "List entries",
        rows_of("entries"),
        query=context.EntriesQuery,
        agents=True,
    ),
    _get("/v1/context/{namespace}/{key}", context.look, "Show an entry", answers=_SAME, agents=True),
    _get(
        "/v1/context/{namespace}/{key}/versions",
        context.versions,
        "List the versions of an entry",
        page_of("versions"),
        query=context.HistoryQuery,
    ),
    _get(
        "/v1/context/{namespace}/{key}/readers",
        context.readers,
        "List who read an entry",
        page_of("readers"),
        query=context.ReadersQuery,
    ),
    Row(
        "PUT",
        "/v1/context/{namespace}/{key}",
        RUN,
        context.put,
        "Write an entry",
        body=context.EntryBody,
        answers={200: shape(version=_NUMBER)},
        agents=True,
    ),
    Row("DELETE", "/v1/context/{namespace}/{key}", RUN, context.remove, "Remove an entry", answers=_DONE, agents=True),
    # artifacts
    _get("/v1/artifacts", artifacts.listing, "List files", rows_of("artifacts"), query=artifacts.ArtifactsQuery),
    Row(
        "POST",
        "/v1/artifacts",
        RUN,
        artifacts.save,
        "Save a file",
        query=artifacts.SaveQuery,
        answers={201: shape(digest=_TEXT)},
        raw=True,
    ),
    _get("/v1/artifacts/{digest}", artifacts.content, "Fetch a file", answers={200: {}, 304: None}),
    # people
    _get(
        "/v1/approvals",
        questions.listing,
        "List questions to people",
        page_of("approvals"),
        query=questions.QuestionsQuery,
    ),
    _get("/v1/approvals/{id}", questions.look, "Show a question", _ID),
    Row(
        "POST",
        "/v1/approvals/{id}/approve",
        APPROVE,
        questions.approve,
        "Approve a request",
        body=questions.ApproveBody,
        answers=_DECIDED,
    ),
    Row(
        "POST",
        "/v1/approvals/{id}/reject",
        APPROVE,
        questions.reject,
        "Reject a request",
        body=questions.RejectBody,
        answers=_DECIDED,
    ),
    Row(
        "POST",
        "/v1/approvals/{id}/answer",
        APPROVE,
        questions.answer,
        "Answer a question",
        body=questions.AnswerBody,
        answers=_DECIDED,
    ),
    # money
    _get("/v1/account", money.account, "Show the account"),
    _get("/v1/spend", money.spend, "Show what was spent", query=money.SpendQuery),
    _get("/v1/leases", money.leases, "List reservations", rows_of("leases")),
    _get("/v1/limits", money.limits, "Show the use of limits", rows_of("limits")),
    _get("/v1/uncertain", money.uncertain, "List calls of uncertain cost", rows_of("uncertain")),
    Row(
        "POST",
        "/v1/account/grant",
        ADMIN,
        money.grant,
        "Add to the account",
        body=money.GrantBody,
        answers={201: shape(granted=_OBJECT)},
    ),
    Row(
        "POST",
        "/v1/account/unfreeze",
        ADMIN,
        money.unfreeze,
        "Unfreeze the account",
        body=money.UnfreezeBody,
        answers=_CHANGED,
    ),
    Row(
        "POST",
        "/v1/uncertain/{id}/reconcile",
        ADMIN,
        money.reconcile,
        "Enter the cost of a call",
        body=money.ReconcileBody,
        answers={200: shape(refund=_OBJECT)},
    ),
    # figures
    _get("/v1/analytics", money.analytics, "Show statistics", query=money.AnalyticsQuery),
    _get("/v1/edges", money.edges, "Show who asks whom", rows_of("edges"), query=money.FiguresQuery),
    # schedules, keys
    _get("/v1/schedules", schedules.listing, "List schedules", rows_of("schedules")),
    Row(
        "PUT",
        "/v1/schedules/{name}",
        ADMIN,
        schedules.put,
        "Set a schedule",
        body=schedules.ScheduleBody,
        answers={200: shape(name=_TEXT)},
    ),
    Row("DELETE", "/v1/schedules/{name}", ADMIN, schedules.remove, "Remove a schedule", answers=_DONE),
    Row("POST", "/v1/schedules/{name}/pause", ADMIN, schedules.pause, "Pause a schedule", answers=_CHANGED),
    Row("POST", "/v1/schedules/{name}/resume", ADMIN, schedules.resume, "Resume a schedule", answers=_CHANGED),
    _get("/v1/keys", schedules.keys, "List the names of provider keys", rows_of("keys"), scope=ADMIN),
    _get("/v1/cooling", schedules.cooling, "List cooldowns", rows_of("cooling")),
    # access
    Row(
        "POST",
        "/v1/access",
        ADMIN,
        access.make,
        "Create an access key; it is shown only in this answer",
        body=access.AccessBody,
        answers={201: shape(id=_TEXT, key=_TEXT)},
    ),
    _get("/v1/access", access.listing, "List access keys", rows_of("access"), scope=ADMIN),
    Row("DELETE", "/v1/access/{id}", ADMIN, access.revoke, "Revoke an access key", answers=_DONE),
    # hooks
    Row(
        "POST",
        "/v1/hooks",
        ADMIN,
        hooks.add,
        "Send events to an address; its secret is shown in this answer",
        body=hooks.HookBody,
        answers={201: _SECRET},
    ),
    _get("/v1/hooks", hooks.listing, "List hooks", rows_of("hooks"), scope=ADMIN),
    Row("DELETE", "/v1/hooks/{id}", ADMIN, hooks.remove, "Remove a hook", answers=_DONE),
    Row("POST", "/v1/hooks/{id}/rotate", ADMIN, hooks.rotate, "Give a hook a new secret", answers={200: _SECRET}),
    _get(
        "/v1/hooks/{id}/deliveries",
        hooks.deliveries,
        "List the deliveries of a hook",
        page_of("deliveries"),
        query=hooks.DeliveriesQuery,
        scope=ADMIN,
    ),
    Row(
        "POST",
        "/v1/hooks/{id}/deliveries/{delivery}/replay",
        ADMIN,
        hooks.replay,
        "Send a delivery again",
        answers=_MADE,
    ),
)
