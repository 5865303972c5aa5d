"""`remit`: the commands, and what their exit codes mean."""

import os
import sys
from typing import Final

from cyclopts import App, CycloptsError

from remit import __version__
from remit.errors import BadInput, NotFound, Refused, RemitError, StoreError

EXIT_CODES: Final = (
    "Exit codes: 0 done; 1 the work failed, or the doctor found something broken; 2 wrong usage or bad input; "
    "3 refused by a rule; 4 not found; 5 the store could not be used; 130 interrupted."
)

app = App(
    name="remit",
    help="Agents hand work to each other, and nobody loses control of it.",
    help_epilogue=EXIT_CODES,
    version=f"remit {__version__}",
)

# Commands are imported when they are used, so that `remit runs` does not pay for `remit run`.
app.command("remit.cli.demo:demo", name="demo", help="Scripted agents at work: no key, no server, a few seconds.")
app.command("remit.cli.run:run", name="run", help="Ask an agent of a runtime to do a task, and watch it happen.")
app.command("remit.cli.look:runs", name="runs", help="The latest runs of a store.")
app.command("remit.cli.look:show", name="show", help="One run: its tree, times, refusals and receipts.")
app.command("remit.cli.flow:flow", name="flow", help="One run as a picture: text, Mermaid or SVG.")
app.command("remit.cli.look:history", name="history", help="The journal, or a part of it.")
app.command("remit.cli.stats:stats", name="stats", help="Who works, how long, and how often tasks change hands.")
app.command("remit.cli.breakers:breakers", name="breakers", help="Agents that are left alone because they fail.")
app.command("remit.cli.doctor:doctor", name="doctor", help="Whether a store still keeps what it promises.")

context = App(name="context", help="Look at and change the entries that agents share.")
context.command("remit.cli.context:listing", name="ls", help="Namespaces, or the entries of one.")
context.command("remit.cli.context:get", name="get", help="One entry's value.")
context.command("remit.cli.context:put", name="set", help="Write an entry.")
context.command("remit.cli.context:remove", name="rm", help="Take an entry away.")
context.command("remit.cli.context:cleanup", name="cleanup", help="Remove what has expired.")
app.command(context)

breaker = App(name="breaker", help="Take an agent out, or let it in again.")
breaker.command("remit.cli.breakers:trip", name="trip", help="Nobody can ask this agent until it is reset.")
breaker.command("remit.cli.breakers:reset", name="reset", help="Let this agent be asked again at once.")
app.command(breaker)
app.register_install_completion_command(help="Teach your shell to complete remit's commands.")  # pyright: ignore[reportUnknownMemberType]


def exit_code(error: RemitError) -> int:
    """The most telling code for an error."""
    codes = ((BadInput, 2), (Refused, 3), (NotFound, 4), (StoreError, 5))
    return next((code for kind, code in codes if isinstance(error, kind)), 1)


def main() -> None:
    """The entry point: an error of ours is a sentence and a code, never a traceback."""
    try:
        code = app(exit_on_error=False, result_action="return_value")
        sys.stdout.flush()
    except CycloptsError:
        sys.exit(2)  # it has printed what was wrong
    except RemitError as error:
        sys.stderr.write(f"remit: {error}\n")
        sys.exit(exit_code(error))
    except KeyboardInterrupt:
        sys.exit(130)
    except BrokenPipeError:  # whoever read our output has gone, as `| head` does; not worth a word
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(0)
    sys.exit(code if isinstance(code, int) else 0)
