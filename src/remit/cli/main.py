"""`remit`: the commands, and what their exit codes mean."""

import os
import signal
import sys
from collections.abc import Sequence
from typing import Final

from cyclopts import App, CycloptsError, Group

from remit import __version__
from remit.errors import BadInput, Conflict, NotFound, Refused, RemitError, StoreError
from remit.report.printable import block
from remit.stores.addresses import redacted

EXIT_CODES: Final = (
    "Exit codes: 0 done; 1 the work failed, was cancelled or is dead, or something is broken; "
    "2 wrong usage or bad input; 3 refused by a rule, or too late for it; 4 not found; 5 the store could not be used; "
    "124 waited long enough, the task goes on; 130 interrupted."
)

app = App(
    name="remit",
    help="Agents hand work to each other, and nobody loses control of it.",
    help_epilogue=EXIT_CODES,
    version=f"remit {__version__}",
    group_commands=Group("Other", sort_key=9),
)
WORK, LOOK, MEND = (Group(name, sort_key=place) for place, name in enumerate(("Work", "Look", "Mend")))

# Commands are imported when they are used, so that `remit runs` does not pay for `remit run`.
_COMMANDS: Final = (
    (WORK, "demo", "demo:demo", "Watch scripted agents at work: no key, no server, a few seconds."),
    (WORK, "init", "init:init", "Write a team to begin with: it runs at once and without a key."),
    (WORK, "check", "check:check", "List what is wrong with a team's file, each with its line."),
    (WORK, "run", "run:run", "Ask an agent to do a task, and watch it happen."),
    (WORK, "chat", "chat:chat", "Talk to an agent: what was said before goes along."),
    (WORK, "submit", "submit:submit", "Put a task into the queue and come back at once."),
    (WORK, "worker", "worker:worker", "Run the tasks in the queue, until it is stopped."),
    (WORK, "wait", "watch:wait", "Wait until a task has ended, and print its result."),
    (WORK, "approve", "approvals:approve", "Approve what an agent asks for."),
    (WORK, "reject", "approvals:reject", "Say no to what an agent asks for."),
    (WORK, "answer", "approvals:answer", "Answer what an agent asked."),
    (LOOK, "ps", "ps:ps", "List the tasks that are open, and the processes that run them."),
    (LOOK, "status", "status:status", "Show one task: where it stands, its attempts, its result."),
    (LOOK, "watch", "watch:watch", "Watch what happens, in every process, while it happens."),
    (LOOK, "agents", "agents:agents", "List the agents that can be asked through this store."),
    (LOOK, "find", "find:find", "Find who can do something, and who would be asked for it."),
    (LOOK, "runs", "runs:runs", "List the latest runs of a store."),
    (LOOK, "show", "show:show", "Show one run: its tree, times, refusals and receipts."),
    (LOOK, "flow", "flow:flow", "Draw one run: as text, Mermaid or SVG."),
    (LOOK, "history", "history:history", "Print the journal, or a part of it."),
    (LOOK, "stats", "stats:stats", "Show who works, how long, and how often tasks change hands."),
    (LOOK, "approvals", "approvals:approvals", "List what waits for a person, or what was decided."),
    (LOOK, "spend", "spend:spend", "Show who spent what: by day, agent, model, session or run."),
    (LOOK, "limits", "limits:limits", "Show how much of a team's limits is used."),
    (LOOK, "credits", "credits:app", "Show what the account has; grant it money, let it be spent again."),
    (LOOK, "ledger", "ledger:app", "List calls of uncertain cost, say what one cost, verify that all adds up."),
    (LOOK, "breakers", "breakers:breakers", "List agents that are not asked because they fail."),
    (LOOK, "cooling", "cooling:app", "List keys and models that rest after a failure, and clear what rests."),
    (MEND, "trust", "trust:trust", "Trust a folder: commands that look may import its modules and reach its server."),
    (MEND, "cancel", "cancel:cancel", "Stop a task and everything below it, wherever it runs."),
    (MEND, "retry", "retry:retry", "Run a task again that did not complete."),
    (MEND, "prune", "prune:prune", "Delete runs that ended long ago, and what the journal needs no more."),
    (MEND, "backup", "backup:backup", "Copy a store's file while it is used."),
    (MEND, "doctor", "doctor:doctor", "Verify that a store keeps what it promises."),
)
for group, name, where, sentence in _COMMANDS:
    app.command(f"remit.cli.{where}", name=name, help=sentence, group=group)

context = App(name="context", help="Look at and change the entries that agents share.", group=MEND)
context.command("remit.cli.context:listing", name="ls", help="List namespaces, or the entries of one.")
context.command("remit.cli.context:get", name="get", help="Print one entry's value.")
context.command("remit.cli.context:put", name="set", help="Write an entry.")
context.command("remit.cli.context:remove", name="rm", help="Remove an entry.")
context.command("remit.cli.context:cleanup", name="cleanup", help="Remove entries that have expired.")
app.command(context)

breaker = App(name="breaker", help="Take an agent out, or let it in again.", group=MEND)
breaker.command("remit.cli.breakers:trip", name="trip", help="Take an agent out: nobody can ask it until it is reset.")
breaker.command("remit.cli.breakers:reset", name="reset", help="Let an agent be asked again at once.")
app.command(breaker)

keys = App(name="keys", help="A workspace's own keys to providers: put in, never printed.", group=MEND)
keys.command("remit.cli.keys:listing", name="list", help="List the keys there are; none is opened.")
keys.command("remit.cli.keys:put", name="set", help="Keep a key, read from a pipe or asked for without showing it.")
keys.command("remit.cli.keys:remove", name="remove", help="Keep a key no more.")
keys.command("remit.cli.keys:rotate", name="rotate", help="Seal all keys with the newest master key.")
keys.command("remit.cli.keys:master", name="master", help="Print a fresh master key, and how to use it.")
app.command(keys)

db = App(name="db", help="Make a store, or bring it up to date.", group=MEND)
db.command("remit.cli.db:migrate", name="migrate", help="Make a store, or bring an older one up to date.")
app.command(db)
app.register_install_completion_command(help="Teach your shell to complete remit's commands.")  # pyright: ignore[reportUnknownMemberType]


def exit_code(error: RemitError) -> int:
    """Choose the most telling code for an error."""
    codes = ((BadInput, 2), (Refused, 3), (Conflict, 3), (NotFound, 4), (StoreError, 5))
    return next((code for kind, code in codes if isinstance(error, kind)), 1)


def _say(sentence: str) -> None:
    """Say what was wrong. It may quote what was typed or what is stored: no password is shown, no escape code acts."""
    sys.stderr.write(f"remit: {block(redacted(sentence)).strip()}\n")


def main(words: Sequence[str] | None = None) -> None:
    """Run a command; an error of ours is a sentence and a code, never a traceback."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # in the background of a script; Ctrl-C is heard all the same
        signal.signal(signal.SIGINT, signal.default_int_handler)
    os.environ.setdefault("PYDANTIC_AI_NO_BANNER", "1")  # the screen is the run's
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
    except BrokenPipeError:  # whoever read our output has gone, as `| head` does; not worth a word
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(0)
    sys.exit(code if isinstance(code, int) else 0)
