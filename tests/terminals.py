"""Commands in a real terminal, and the screen that they leave."""

import fcntl
import os
import pty
import re
import struct
import termios
from collections.abc import Sequence
from multiprocessing.connection import Connection
from pathlib import Path
from typing import NamedTuple

from commands import plain_environment
from programs import Forked

_PIECES = re.compile(r"\x1b\[([?0-9;]*)([A-Za-z])|\x1b\][^\x07]*\x07|.", re.DOTALL)


class Screen(NamedTuple):
    """What a terminal shows at the end, with everything that has scrolled away."""

    lines: list[str]
    cursor: bool
    code: int
    raw: str

    @property
    def text(self) -> str:
        return "\n".join(self.lines)


class _Drawn:
    """The cells of a terminal: as much of it as rich uses."""

    def __init__(self, width: int) -> None:
        self._width = width
        self._rows: list[list[str]] = [[]]
        self._row = self._column = 0
        self.cursor = True

    def lines(self) -> list[str]:
        return ["".join(row).rstrip() for row in self._rows]

    def write(self, data: str) -> None:
        for piece in _PIECES.finditer(data):
            if piece[2] is not None:
                self._control(piece[1], piece[2])
            elif len(piece[0]) == 1:
                self._put(piece[0])

    def _control(self, given: str, what: str) -> None:
        count = int(given) if given.isdigit() else 1
        row = self._rows[self._row]
        if what == "A":
            self._row = max(0, self._row - count)
        elif what == "K":
            del row[0 if given == "2" else self._column :]
        elif what == "G":
            self._column = count - 1
        elif what in "lh" and given == "?25":
            self.cursor = what == "h"

    def _put(self, sign: str) -> None:
        if sign == "\r":
            self._column = 0
        elif sign == "\n":
            self._down()
        elif sign.isprintable():
            if self._column == self._width:
                self._column = 0
                self._down()
            row = self._rows[self._row]
            row.extend(" " * (self._column + 1 - len(row)))
            row[self._column] = sign
            self._column += 1

    def _down(self) -> None:
        self._row += 1
        if self._row == len(self._rows):
            self._rows.append([])


def in_terminal(
    folder: Path, *words: str, width: int = 80, height: int = 50, typed: Sequence[tuple[str, str]] = (), **env: str
) -> Screen:
    """Run `remit` with these words in a terminal. Each of `typed` is (what to wait for, what to type then)."""
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", height, width, 0, 0))
    usual = {name: value for name, value in plain_environment().items() if name not in ("COLUMNS", "LINES", "NO_COLOR")}
    ends = [Connection(os.dup(slave)) for _ in range(3)]
    given = {**usual, "TERM": "xterm-256color", **env}
    child = Forked(("-m", "remit", *words), str(folder), given, *ends, terminal=True)
    for end in ends:
        end.close()
    os.close(slave)
    raw, waiting, begin = b"", list(typed), 0
    while chunk := _read(master):
        raw += chunk
        if waiting and waiting[0][0].encode() in raw[begin:]:
            begin = len(raw)
            os.write(master, waiting.pop(0)[1].encode())
    os.close(master)
    code = child.wait()
    assert not waiting, f"{waiting[0][0]} was never printed: {raw.decode()}"
    drawn = _Drawn(width)
    drawn.write(raw.decode())
    return Screen(drawn.lines(), drawn.cursor, code, raw.decode())


def _read(master: int) -> bytes:
    try:
        return os.read(master, 65_536)
    except OSError:  # the other end is closed
        return b""
