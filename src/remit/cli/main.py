"""`remit`: run a command, and turn its errors into sentences and exit codes."""

import os
import signal
import sys
from collections.abc import Sequence

from remit import __version__
from remit.errors import BadInput, Conflict, NotFound, Refused, RemitError, StoreError


def exit_code(error: RemitError) -> int:
    """Return the exit code of an error."""
    codes = ((BadInput, 2), (Refused, 3), (Conflict, 3), (NotFound, 4), (StoreError, 5))
    return next((code for kind, code in codes if isinstance(error, kind)), 1)


def _say(sentence: str) -> None:
    """Print an error. It may quote input or stored text, so passwords are removed and escape codes are escaped."""
    from remit.report.printable import block
    from remit.stores.addresses import redacted

    sys.stderr.write(f"remit: {block(redacted(sentence)).strip()}\n")


def main(words: Sequence[str] | None = None) -> None:
    """Run a command. An error of remit is printed as a sentence, with an exit code and without a traceback."""
    # A background job of a script ignores SIGINT; handle it anyway.
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    os.environ.setdefault("PYDANTIC_AI_NO_BANNER", "1")  # keep the screen free for the run
    given = sys.argv[1:] if words is None else words
    if [*given] == ["--version"]:  # without the commands, whose import takes most of the time
        sys.stdout.write(f"remit {__version__}\n")
        return
    from cyclopts import CycloptsError

    from remit.cli.commands import app

    try:
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
