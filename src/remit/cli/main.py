"""`remit`: run a command, and turn its errors into sentences and exit codes."""

import json
import os
import signal
import sys
from collections.abc import Sequence
from typing import NoReturn

from remit import __version__
from remit.errors import (
    BadInput,
    Conflict,
    Forbidden,
    NotFound,
    Refused,
    RemitError,
    StoreError,
    TooMany,
    Unauthorised,
)


def exit_code(error: RemitError) -> int:
    """Return the exit code of an error."""
    refused = (Refused, Conflict, Unauthorised, Forbidden)
    codes = ((BadInput, 2), (refused, 3), (NotFound, 4), (StoreError, 5), (TooMany, 5))
    return next((code for kind, code in codes if isinstance(error, kind)), 1)


def _end(error: Exception, code: int, given: Sequence[str], sentence: str = "") -> NoReturn:
    """Print an error and exit. It may quote input or stored text, so passwords are removed and escape codes are
    escaped.

    People read it on standard error. With --json it is one line of JSON on standard output, where a program reads the
    result.
    """
    from remit.cli.options import completed
    from remit.report.printable import block, harmless
    from remit.stores.addresses import redacted

    text = redacted(sentence or str(error)).strip()
    if isinstance(error, Refused) and error.rule.startswith("guard.") and not _wants_json(given):
        text = f"{text} ({error.rule})"  # the owner looks for the guard by its name
    if not isinstance(error, StoreError):  # a hint may need the store
        text = completed(text)
    if _wants_json(given):
        found = {"type": type(error).__name__, "message": text, "exit_code": code}
        if isinstance(error, Refused):
            found["rule"] = error.rule
        sys.stdout.write(harmless(json.dumps({"error": found}, ensure_ascii=False)) + "\n")
    else:
        sys.stderr.write(f"remit: {block(text)}\n")
    sys.exit(code)


def _wants_json(given: Sequence[str]) -> bool:
    options = given[: given.index("--")] if "--" in given else given
    return "--json" in options


def main(words: Sequence[str] | None = None) -> None:
    """Run a command. An error of remit is printed as a sentence, with an exit code and without a traceback."""
    try:
        _run(words)
    except KeyboardInterrupt:  # also while modules are imported
        sys.exit(130)


def _run(words: Sequence[str] | None) -> None:
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
    from remit.cli.options import forget_place

    try:
        code = app(given, exit_on_error=False, print_error=False, result_action="return_value")
        sys.stdout.flush()
    except CycloptsError as error:
        from remit.cli.usage import usage_error

        _end(BadInput(usage_error(error)), 2, given)
    except RemitError as error:
        _end(error, exit_code(error), given)
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        if os.environ.get("REMIT_TRACEBACK"):
            raise
        what = f"this was not expected: {type(error).__name__}: {error}"
        hint = "if the store was changed by hand `remit doctor` says where; REMIT_TRACEBACK=1 shows the code"
        _end(error, 5, given, f"{what}; {hint}")
    except BrokenPipeError:  # the reader has gone, as with `| head`: no error
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(0)
    finally:
        forget_place()
    sys.exit(code if isinstance(code, int) else 0)
