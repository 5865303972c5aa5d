"""`remit`: run a command, and turn its errors into sentences and exit codes."""

import codecs
import errno
import gc
import io
import json
import os
import signal
import sys
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Final, NoReturn, TextIO

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

if TYPE_CHECKING:
    from cyclopts import App

_UNWRITABLE: Final = frozenset((errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO))


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
    except BrokenPipeError:  # the reader has gone, as with `| head`: no error
        _discard_output()
        sys.exit(0)
    except OSError as error:
        if error.errno not in _UNWRITABLE or error.filename is not None:
            raise
        _discard_output()
        done = "what the command did is in the store"
        sys.stderr.write(f"remit: the output could not be written: {error.strerror}; {done}\n")
        sys.exit(1)


def _run(words: Sequence[str] | None) -> None:
    # A background job of a script ignores SIGINT; handle it anyway.
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    os.environ.setdefault("PYDANTIC_AI_NO_BANNER", "1")  # keep the screen free for the run
    _complete_streams()
    given = sys.argv[1:] if words is None else words
    if [*given] == ["--version"]:  # without the commands, whose import takes most of the time
        sys.stdout.write(f"remit {__version__}\n")
        sys.stdout.flush()
        return
    from cyclopts import CycloptsError

    from remit.cli.commands import app
    from remit.cli.options import forget_place

    if words is None:  # the command itself, not a program that calls it
        sys.stdout, sys.stderr = _keep(sys.stdout), _keep(sys.stderr)
        # What is imported by now stays to the end, so neither a collection nor the exit looks through it for garbage.
        gc.freeze()
    try:
        with _help(app, given):
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
    finally:
        forget_place()
    sys.exit(code if isinstance(code, int) else 0)


def _help(app: "App", given: Sequence[str]) -> AbstractContextManager[None]:
    if {*app.help_flags}.isdisjoint(given):
        return nullcontext()
    from remit.cli.usage import whole_help

    return whole_help(app, given)


def _complete_streams() -> None:
    """Replace closed standard streams, as after `>&-`. Let an output stream whose encoding is not UTF-8 escape the
    characters that it lacks: a command that has done its work must not fail because of a character in its output."""
    sys.stdin = sys.stdin or os.fdopen(os.open(os.devnull, os.O_RDONLY))
    sys.stdout = sys.stdout or os.fdopen(os.open(os.devnull, os.O_WRONLY), "w")
    sys.stderr = sys.stderr or os.fdopen(os.open(os.devnull, os.O_WRONLY), "w")
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper) and codecs.lookup(stream.encoding).name != "utf-8":
            codecs.register_error("remit.escape", _escape)
            stream.reconfigure(errors="remit.escape")


class KeptStream(io.TextIOWrapper):
    """A standard stream that an agent cannot close: `close` only flushes it. Afterwards the command prints to it, and a
    worker prints lines about other tasks."""

    def __init__(self, stream: io.TextIOWrapper) -> None:
        how = (stream.encoding, stream.errors, None, stream.line_buffering, stream.write_through)
        super().__init__(os.fdopen(stream.fileno(), "wb", closefd=False), *how)
        self._replaced = stream  # it would close the file at its end

    def close(self) -> None:
        if not self.buffer.closed:
            self.flush()


def _keep(stream: TextIO) -> TextIO:
    """Return a `KeptStream` in place of this stream. Return a stream that is not a plain `TextIOWrapper` unchanged: a
    program or a test has put it there."""
    if type(stream) is not io.TextIOWrapper:
        return stream
    stream.flush()
    return KeptStream(stream)


def _escape(error: UnicodeError) -> tuple[str, int]:
    """Return the characters that an encoding lacks as JSON escapes, which are valid in JSON output too, and the
    position after them. Raise errors of decoding again."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    return json.dumps(error.object[error.start : error.end])[1:-1], error.end


def _discard_output() -> None:
    """Discard what is still to be written to standard output: Python would try again at its end."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
