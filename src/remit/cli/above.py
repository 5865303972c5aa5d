"""Text that arrives while a picture is drawn: log lines, prints of agents and notices are printed above it.

Handlers of `logging` and other loggers keep the stream that they found when they were made. Therefore a command that
draws replaces both standard streams before it imports a team, and never puts them back.
"""

import io
import os
import sys
import threading
from collections.abc import Generator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Final, TextIO

from rich.ansi import AnsiDecoder
from rich.console import Console
from rich.text import Text

_SHOW_CURSOR: Final = b"\x1b[?25h\r\n"


class SharedStream(io.TextIOBase):
    """A standard stream. While a picture is drawn, whole lines go above it; a started line waits for its end."""

    def __init__(self, real: TextIO) -> None:
        self.real = real
        self._console: Console | None = None
        self._drawing: AbstractContextManager[object] = nullcontext()
        self._decoder = AnsiDecoder()
        self._rest = ""
        self._lock = threading.Lock()  # never held while something is printed: drawing may log

    def write(self, text: str) -> int:
        with self._lock:
            console, drawing = self._console, self._drawing
            whole, newline, self._rest = ("", "", "") if console is None else (self._rest + text).rpartition("\n")
        if console is None:
            return self.real.write(text)
        if newline:
            lines = Text("\n").join(self._decoder.decode_line(line) for line in whole.split("\n"))
            with drawing:  # otherwise a frame between the two parts of a print leaves a second picture behind
                console.print(lines, soft_wrap=True)
        return len(text)

    def flush(self) -> None:
        if self._console is None:
            self.real.flush()

    def print_above(self, console: Console | None, drawing: AbstractContextManager[object]) -> None:
        """Print above the picture of this console from now on; with None, as usual. `drawing` is the lock that is held
        while a frame is drawn."""
        with self._lock:
            self._console, self._drawing, rest = console, drawing, self._rest
            self._rest = ""
        self.real.write(rest)

    def isatty(self) -> bool:
        return self.real.isatty()

    def fileno(self) -> int:
        return self.real.fileno()

    def writable(self) -> bool:
        return True

    @property
    def encoding(self) -> str:  # pyright: ignore[reportIncompatibleVariableOverride] - a field of the class in typeshed
        return self.real.encoding

    @property
    def errors(self) -> str | None:  # pyright: ignore[reportIncompatibleVariableOverride] - the same
        return self.real.errors

    @property
    def buffer(self) -> object:
        return self.real.buffer


def share_streams() -> None:
    """Replace `sys.stdout` and `sys.stderr` with a `SharedStream` each, if they are terminals. A stream that is
    redirected to a file or a pipe stays as it is."""
    for name in ("stdout", "stderr"):
        stream: TextIO = getattr(sys, name)
        if not isinstance(stream, SharedStream) and stream.isatty():
            setattr(sys, name, SharedStream(stream))


@contextmanager
def above(console: Console, drawing: AbstractContextManager[object]) -> Generator[None]:
    """Print everything that arrives while the body runs above the picture that the console draws. `drawing` is the lock
    that is held while a frame is drawn."""
    share_streams()
    shared = [stream for stream in (sys.stdout, sys.stderr) if isinstance(stream, SharedStream)]
    if isinstance(console.file, SharedStream):  # the picture itself goes to the terminal
        console.file = console.file.real
    for stream in shared:
        stream.print_above(console, drawing)
    try:
        yield
    finally:
        for stream in shared:
            stream.print_above(None, nullcontext())


def leave_terminal() -> None:
    """Show the cursor again, below the picture: the process ends at once, without closing the drawing."""
    if isinstance(sys.stdout, SharedStream):
        os.write(sys.stdout.fileno(), _SHOW_CURSOR)
