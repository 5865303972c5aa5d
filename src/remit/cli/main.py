"""`remit`: the commands, and their exit codes."""

import os
import signal
import sys
from collections.abc import Sequence
from typing import Final

from cyclopts import App, CycloptsError, Group, Parameter

from remit import __version__
from remit.errors import BadInput, Conflict, NotFound, Refused, RemitError, StoreError
from remit.report.printable import block
from remit.stores.addresses import redacted

EXIT_CODES: Final = (
    "Exit codes: 0 success; 1 task failed, cancelled or dead, or a check failed; 2 usage error or bad input; "
    "3 refused by a rule, or conflict; 4 not found; 5 store unavailable; "
    "124 wait timed out, the task continues; 130 interrupted."
)


def _shown_default(value: object) -> str | None:
    """Return a default as help shows it, or None to hide an empty one."""
    return None if value in ("", False, None) else str(value)


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
    (RUN, "wait", "watch:wait", "Wait for a task and print its result."),
    (RUN, "cancel", "cancel:cancel", "Cancel a task and its subtasks."),
    (RUN, "retry", "retry:retry", "Retry a failed, dead or cancelled task."),
    (RUN, "approve", "approvals:approve", "Approve an agent's request."),
    (RUN, "reject", "approvals:reject", "Reject an agent's request."),
    (RUN, "answer", "approvals:answer", "Answer an agent's question."),
    (INSPECT, "ps", "ps:ps", "List open tasks and their workers."),
    (INSPECT, "status", "status:status", "Show the state, attempts and result of a task."),
    (INSPECT, "watch", "watch:watch", "Follow events of all processes live."),
    (INSPECT, "agents", "agents:agents", "List the agents that workers have published."),
    (INSPECT, "find", "find:find", "Search agents by capability."),
    (INSPECT, "runs", "runs:runs", "List recent runs."),
    (INSPECT, "show", "show:show", "Show a run: task tree, times, refusals, receipts."),
    (INSPECT, "flow", "flow:flow", "Draw one run: as text, Mermaid or SVG."),
    (INSPECT, "history", "history:history", "Print journal events."),
    (INSPECT, "stats", "stats:stats", "Show statistics per agent: tasks, durations, handoffs, refusals."),
    (INSPECT, "approvals", "approvals:approvals", "List open questions and requests, or past decisions."),
    (INSPECT, "spend", "spend:spend", "Show spending by day, agent, model, session or run."),
    (INSPECT, "limits", "limits:limits", "Show the usage of a team's limits."),
    (INSPECT, "credits", "credits:app", "Show the account balance; grant money; unfreeze."),
    (INSPECT, "ledger", "ledger:app", "List and reconcile calls of uncertain cost; verify the ledger."),
    (INSPECT, "breakers", "breakers:breakers", "List agents with an open circuit breaker."),
    (
        INSPECT,
        "cooling",
        "cooling:app",
        "List provider keys and models that are paused after a failure; end the pause.",
    ),
    (MAINTAIN, "trust", "trust:trust", "Trust a folder: let commands import its modules and connect to its server."),
    (MAINTAIN, "prune", "prune:prune", "Delete old runs and their events."),
    (MAINTAIN, "backup", "backup:backup", "Back up a SQLite store while it is in use."),
    (MAINTAIN, "doctor", "doctor:doctor", "Verify the integrity of a store."),
)
for group, name, where, sentence in _COMMANDS:
    app.command(f"remit.cli.{where}", name=name, help=sentence, group=group)

context = App(name="context", help="List and edit shared context entries.", group=MAINTAIN)
context.command("remit.cli.context:listing", name="ls", help="List namespaces, or the entries of one.")
context.command("remit.cli.context:get", name="get", help="Print the value of an entry.")
context.command("remit.cli.context:put", name="set", help="Write an entry.")
context.command("remit.cli.context:remove", name="rm", help="Remove an entry.")
context.command("remit.cli.context:cleanup", name="cleanup", help="Remove expired entries.")
app.command(context)

breaker = App(name="breaker", help="Open or reset an agent's circuit breaker.", group=MAINTAIN)
breaker.command("remit.cli.breakers:trip", name="trip", help="Refuse calls to an agent until it is reset.")
breaker.command("remit.cli.breakers:reset", name="reset", help="Allow calls to an agent again at once.")
app.command(breaker)

keys = App(name="keys", help="Manage the workspace's provider API keys (stored encrypted).", group=MAINTAIN)
keys.command("remit.cli.keys:listing", name="list", help="List the keys; none is decrypted.")
keys.command("remit.cli.keys:put", name="set", help="Store a key, read from a pipe or prompted for without echo.")
keys.command("remit.cli.keys:remove", name="remove", help="Delete a key.")
keys.command("remit.cli.keys:rotate", name="rotate", help="Encrypt all keys with the newest master key.")
keys.command("remit.cli.keys:master", name="master", help="Print a new master key, and how to use it.")
app.command(keys)

db = App(name="db", help="Create or migrate a store.", group=MAINTAIN)
db.command("remit.cli.db:migrate", name="migrate", help="Create a store, or migrate an older one.")
app.command(db)
app.register_install_completion_command(help="Install command completion for your shell.")  # pyright: ignore[reportUnknownMemberType]


def exit_code(error: RemitError) -> int:
    """Return the exit code of an error."""
    codes = ((BadInput, 2), (Refused, 3), (Conflict, 3), (NotFound, 4), (StoreError, 5))
    return next((code for kind, code in codes if isinstance(error, kind)), 1)


def _say(sentence: str) -> None:
    """Print an error. It may quote input or stored text, so passwords are removed and escape codes are escaped."""
    sys.stderr.write(f"remit: {block(redacted(sentence)).strip()}\n")


def main(words: Sequence[str] | None = None) -> None:
    """Run a command. An error of remit is printed as a sentence, with an exit code and without a traceback."""
    # A background job of a script ignores SIGINT; handle it anyway.
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    os.environ.setdefault("PYDANTIC_AI_NO_BANNER", "1")  # keep the screen free for the run
    try:
        given = sys.argv[1:] if words is None else words
        code = app(given, exit_on_error=False, print_error=False, result_action="return_value")
        sys.stdout.flush()
    except CycloptsError as error:
        _say(str(error))
        sys.exit(2)
    except RemitError as error:
        _say(str(error))
        sys.exit(exit_code(error))
    except KeyboardInterrupt:
        sys.exit(130)
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        if os.environ.get("REMIT_TRACEBACK"):
            raise
        what = f"this was not expected: {type(error).__name__}: {error}"
        _say(f"{what}; if the store was changed by hand `remit doctor` says where; REMIT_TRACEBACK=1 shows the code")
        sys.exit(5)
    except BrokenPipeError:  # the reader has gone, as with `| head`: no error
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(0)
    sys.exit(code if isinstance(code, int) else 0)
