"""The commands of `remit`."""

from typing import Final

from cyclopts import App, Group, Parameter

from remit import __version__

EXIT_CODES: Final = (
    "Exit codes: 0 success; 1 task failed, cancelled or dead, or a check failed; 2 usage error or bad input; "
    "3 refused by a rule, or conflict; 4 not found; 5 store unavailable; "
    "124 wait timed out, the task continues; 130 interrupted."
)


def _shown_default(value: object) -> str | None:
    """Return a default as help shows it, or None to hide an empty one. The current folder is empty too: help texts say
    that it is the default."""
    return None if value in ("", False, None) or str(value) == "." else str(value)


app = App(
    name="remit",
    help="Run, watch and operate teams of agents.",
    help_epilogue=EXIT_CODES,
    version=f"remit {__version__}",
    default_parameter=Parameter(show_default=_shown_default),
    group_commands=Group("Other", sort_key=9),
)
RUN, INSPECT, MAINTAIN = (Group(name, sort_key=place) for place, name in enumerate(("Run", "Inspect", "Maintain")))

# Import a command only when it is used: `remit runs` must not pay for the imports of `remit run`.
_COMMANDS: Final = (
    (RUN, "demo", "demo:demo", "Run a scripted demo (no API key, no server, a few seconds)."),
    (RUN, "init", "init:init", "Create a team file with scripted models; it runs without an API key."),
    (RUN, "check", "check:check", "Validate a team file; print problems with line numbers."),
    (RUN, "run", "run:run", "Run a task in the foreground and show its progress."),
    (RUN, "chat", "chat:chat", "Chat with an agent in one session."),
    (RUN, "submit", "submit:submit", "Add a task to the queue and print its id."),
    (RUN, "worker", "worker:worker", "Start a worker that runs queued tasks."),
    (RUN, "serve", "serve:serve", "Serve the store over HTTP, with the workers of the team."),
    (RUN, "mcp", "mcp:mcp", "Serve agents to an MCP client on standard input and output."),
    (RUN, "wait", "watch:wait", "Wait for tasks and print their results."),
    (RUN, "cancel", "cancel:cancel", "Cancel a task and its subtasks."),
    (RUN, "stop-all", "cancel:stop_all", "Cancel every open run and task of the workspace."),
    (RUN, "retry", "retry:retry", "Retry a failed, dead or cancelled task."),
    (RUN, "fork", "fork:fork", "Start a new run that continues another one from one of its events."),
    (RUN, "approve", "approvals:approve", "Approve an agent's request or result."),
    (RUN, "reject", "approvals:reject", "Reject an agent's request, or send its result back."),
    (RUN, "answer", "approvals:answer", "Answer an agent's question."),
    (INSPECT, "ps", "ps:ps", "List open tasks and their workers."),
    (INSPECT, "status", "status:status", "Show the state, attempts and result of a task."),
    (INSPECT, "watch", "watch:watch", "Follow a run, or all open runs, live."),
    (INSPECT, "agents", "agents:agents", "List the agents that workers have published."),
    (INSPECT, "find", "find:find", "Search agents by capability."),
    (INSPECT, "runs", "runs:runs", "List recent runs."),
    (INSPECT, "show", "show:show", "Show a run: task tree, times, refusals, receipts."),
    (INSPECT, "flow", "flow:flow", "Draw a diagram of one run: as text, Mermaid or SVG."),
    (INSPECT, "history", "history:history", "Print journal events."),
    (INSPECT, "stats", "stats:stats", "Show statistics per agent: tasks, durations, handoffs, refusals."),
    (INSPECT, "approvals", "approvals:approvals", "List open questions and requests for approval, or past decisions."),
    (INSPECT, "money", "money:app", "Show the account, spending and limits; grant money; reconcile uncertain calls."),
    (
        INSPECT,
        "breakers",
        "breakers:breakers",
        "List the circuit breakers of agents that fail or were tripped.",
    ),
    (
        INSPECT,
        "cooling",
        "cooling:app",
        "List provider keys and models that are paused after a failure; end the pause.",
    ),
    (MAINTAIN, "trust", "trust:trust", "Trust a folder: let commands import its modules and connect to its server."),
    (MAINTAIN, "withdraw", "agents:withdraw", "Remove the card of an agent that no worker has any more."),
    (MAINTAIN, "prune", "prune:prune", "Delete old runs and their events."),
    (MAINTAIN, "move", "move:move", "Move a workspace to another database while it is in use."),
    (MAINTAIN, "backup", "backup:backup", "Back up a SQLite store while it is in use."),
    (MAINTAIN, "doctor", "doctor:doctor", "Verify the integrity of a store."),
)
for group, name, where, sentence in _COMMANDS:
    app.command(f"remit.cli.{where}", name=name, help=sentence, group=group)

schedule = App(name="schedule", help="Submit tasks at the times of cron expressions.", group=RUN)
schedule.command("remit.cli.schedule:listing", name="ls", help="List the schedules.")
schedule.command("remit.cli.schedule:add", name="add", help="Submit a task whenever a cron expression matches.")
schedule.command("remit.cli.schedule:remove", name="rm", help="Remove a schedule.")
schedule.command("remit.cli.schedule:pause", name="pause", help="Start no more runs of a schedule.")
schedule.command("remit.cli.schedule:resume", name="resume", help="Start the runs of a paused schedule again.")
app.command(schedule)

context = App(name="context", help="List and edit shared context entries.", group=MAINTAIN)
context.command("remit.cli.context:listing", name="ls", help="List namespaces, or the entries of one.")
context.command("remit.cli.context:get", name="get", help="Print the value of an entry.")
context.command("remit.cli.context:put", name="set", help="Write an entry.")
context.command("remit.cli.context:remove", name="rm", help="Remove an entry.")
context.command("remit.cli.context:cleanup", name="cleanup", help="Remove expired entries.")
app.command(context)

artifacts = App(name="artifacts", help="List, store and fetch files of agents.", group=MAINTAIN)
artifacts.command("remit.cli.artifacts:listing", name="ls", help="List stored files, the latest first.")
artifacts.command("remit.cli.artifacts:get", name="get", help="Write a stored file to a file or to standard output.")
artifacts.command("remit.cli.artifacts:put", name="put", help="Store a file, and print its digest.")
app.command(artifacts)

breaker = App(name="breaker", help="Open or reset an agent's circuit breaker.", group=MAINTAIN)
breaker.command("remit.cli.breakers:trip", name="trip", help="Refuse calls to an agent until it is reset.")
breaker.command("remit.cli.breakers:reset", name="reset", help="Allow calls to an agent again at once.")
app.command(breaker)

keys = App(name="keys", help="Manage the workspace's provider API keys (stored encrypted).", group=MAINTAIN)
keys.command("remit.cli.keys:listing", name="ls", help="List the provider keys; none is decrypted.")
keys.command("remit.cli.keys:put", name="set", help="Store a provider key, encrypted.")
keys.command("remit.cli.keys:remove", name="rm", help="Delete a provider key.")
keys.command("remit.cli.keys:rotate", name="rotate", help="Encrypt all keys with the newest master key.")
keys.command("remit.cli.keys:master", name="master", help="Print a new master key, and how to use it.")
app.command(keys)

access = App(name="access", help="Manage access keys, with which other programs call the workspace.", group=MAINTAIN)
access.command("remit.cli.access:listing", name="ls", help="List the access keys: scopes, expiry, last use.")
access.command("remit.cli.access:make", name="make", help="Create an access key and print it, once.")
access.command("remit.cli.access:revoke", name="revoke", help="Revoke an access key.")
app.command(access)

hooks = App(name="hooks", help="Manage webhooks: addresses that remit sends signed events to.", group=MAINTAIN)
hooks.command("remit.cli.hooks:listing", name="ls", help="List the hooks, and whether their deliveries succeed.")
hooks.command("remit.cli.hooks:add", name="add", help="Send events to an address from now on.")
hooks.command("remit.cli.hooks:remove", name="rm", help="Remove a hook.")
hooks.command("remit.cli.hooks:rotate", name="rotate", help="Give a hook a new secret.")
hooks.command("remit.cli.hooks:deliveries", name="deliveries", help="List the deliveries of a hook.")
hooks.command("remit.cli.hooks:replay", name="replay", help="Send a delivery again.")
app.command(hooks)

db = App(name="db", help="Create or migrate a store.", group=MAINTAIN)
db.command("remit.cli.db:migrate", name="migrate", help="Create a store, or migrate an older one.")
db.command("remit.cli.db:secure", name="secure", help="Isolate workspaces with PostgreSQL's row-level security.")
app.command(db)
app.command(
    "remit.cli.completion:install", name="--install-completion", help="Install command completion for your shell."
)
