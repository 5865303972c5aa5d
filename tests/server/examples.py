"""What each unsafe route of the table may be asked, and what else could be asked under the same key."""

from typing import Any

from remit.server.calls import Row
from server.worlds import Example, World

STEP = {"id": "a", "title": "say it", "agent": "echo"}
HOOK = {"url": "https://example.com/hook", "kinds": ["task.completed"]}
CRON = {"cron": "0 8 * * *", "agent": "echo", "task": "x"}


def agui_input(text: str, run: str = "r", thread: str = "t") -> dict[str, Any]:
    """What a page that speaks AG-UI sends."""
    message = {"id": "m", "role": "user", "content": text}
    rest = {"state": {}, "tools": [], "context": [], "forwardedProps": {}}
    return {"threadId": thread, "runId": run, "messages": [message], **rest}


# Each unsafe route, with what it may be asked, and what else could be asked under the same key.
EXAMPLES = {
    "POST /v1/tasks": Example("/v1/tasks", {"agent": "echo", "task": "x"}, {"agent": "echo", "task": "y"}),
    "POST /v1/tasks/{id}/cancel": Example("/v1/tasks/{task}/cancel", {"why": "a"}, {"why": "b"}),
    "POST /v1/tasks/{id}/retry": Example("/v1/tasks/{failed}/retry", {}, {"restart": True}),
    "POST /v1/runs/{id}/fork": Example(
        "/v1/runs/{run}/fork", {"task": "y", "data": {"n": 1}}, {"task": "y", "data": {"n": 2}}
    ),
    "POST /v1/prune": Example("/v1/prune", {"days": 7}, {"days": 8.5}),
    "POST /v1/plans": Example("/v1/plans", {"steps": [STEP]}, {"steps": [STEP], "goal": "b"}),
    "POST /v1/teams": Example(
        "/v1/teams",
        {"goal": "a", "coordinator": "echo", "steps": [STEP]},
        {"goal": "b", "coordinator": "echo", "steps": [STEP]},
    ),
    "POST /v1/ag-ui/{agent}": Example("/v1/ag-ui/{agent}", agui_input("a"), agui_input("b")),
    "POST /v1/breakers/{agent}/trip": Example("/v1/breakers/{agent}/trip", {"why": "a"}, {"why": "b"}),
    "POST /v1/breakers/{agent}/reset": Example("/v1/breakers/{agent}/reset", {"why": "a"}, {"why": "b"}),
    "DELETE /v1/agents/{agent}": Example("/v1/agents/gone", other_path="/v1/agents/gone2"),
    "PUT /v1/context/{namespace}/{key}": Example("/v1/context/notes/k", {"value": 1}, {"value": 2}),
    "DELETE /v1/context/{namespace}/{key}": Example("/v1/context/notes/{key}", other_path="/v1/context/notes/c"),
    "POST /v1/artifacts": Example("/v1/artifacts?name=a.txt", b"one", b"two", raw=True),
    "POST /v1/approvals/{id}/approve": Example("/v1/approvals/{question3}/approve", {"why": "a"}, {"why": "b"}),
    "POST /v1/approvals/{id}/reject": Example("/v1/approvals/{question2}/reject", {"why": "a"}, {"why": "b"}),
    "POST /v1/approvals/{id}/answer": Example("/v1/approvals/{question}/answer", {"value": "red"}, {"value": "blue"}),
    "POST /v1/account/grant": Example("/v1/account/grant", {"amount": "$1"}, {"amount": "$2"}),
    "POST /v1/account/unfreeze": Example("/v1/account/unfreeze", {"why": "a"}, {"why": "b"}),
    "POST /v1/uncertain/{id}/reconcile": Example(
        "/v1/uncertain/{hold}/reconcile", {"cost": "$0.01"}, {"cost": "$0.02"}
    ),
    "PUT /v1/schedules/{name}": Example("/v1/schedules/daily", CRON, {**CRON, "task": "y"}),
    "POST /v1/schedules/{name}/pause": Example("/v1/schedules/daily/pause", other_path="/v1/schedules/other/pause"),
    "POST /v1/schedules/{name}/resume": Example("/v1/schedules/daily/resume", other_path="/v1/schedules/other/resume"),
    "DELETE /v1/schedules/{name}": Example("/v1/schedules/daily", other_path="/v1/schedules/other"),
    "POST /v1/access": Example(
        "/v1/access", {"name": "ci", "scopes": ["run"]}, {"name": "ci", "scopes": ["run", "approve"]}
    ),
    "DELETE /v1/access/{id}": Example("/v1/access/{access}", other_path="/v1/access/{access2}"),
    "POST /v1/hooks": Example("/v1/hooks", HOOK, {**HOOK, "kinds": ["task.*"]}),
    "POST /v1/hooks/{id}/rotate": Example("/v1/hooks/{hook}/rotate", other_path="/v1/hooks/{hook2}/rotate"),
    "POST /v1/hooks/{id}/deliveries/{delivery}/replay": Example(
        "/v1/hooks/{hook}/deliveries/{delivery}/replay", other_path="/v1/hooks/{hook}/deliveries/{delivery2}/replay"
    ),
    "DELETE /v1/hooks/{id}": Example("/v1/hooks/{hook}", other_path="/v1/hooks/{hook2}"),
}


def example(row: Row, at: World) -> Example:
    """What a route is asked; an answer to a question names the digest of what it shows."""
    found = EXAMPLES[row.name]
    if row.path.startswith("/v1/approvals/"):
        digest = at.digests[at.path(found.path).split("/")[3]]
        return found._replace(body={**found.body, "digest": digest}, other={**found.other, "digest": digest})
    return found
