"""Text from agents, made safe to show: a terminal executes escape codes, so none may come from an agent."""

import unicodedata
from functools import lru_cache
from itertools import chain
from typing import Final

from remit.core.patterns import pattern

_BREAK: Final = "␊"
_ACCENTS: Final = 3  # on one letter
_EMOJI_STYLE: Final = "\ufe0f"
# Characters that count as printable but are invisible: fillers, selectors, the empty braille cell.
_UNSEEN: Final = frozenset(
    chain(
        "\u034f\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0",
        map(chr, chain(range(0x180B, 0x1810), range(0xFE00, 0xFE10), range(0xE0100, 0xE01F0))),
    )
)
_JOINER: Final = "\u200d"  # joins emoji; the only invisible character that is allowed
# Control characters: terminal codes, marks that change the direction of writing, half surrogate pairs.
_ACTING: Final = pattern(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff\ufeff\ufff9-\ufffb]"
)


def harmless(text: str) -> str:
    r"""Return text for a file, a pipe or a program: control characters become \uXXXX, everything else stays. In JSON
    this has the same meaning."""
    return _ACTING.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def escaped(text: str, columns: int) -> str:
    """Return one line for a terminal: control and format characters become escapes."""
    return cut_line("".join(_visible(char) for char in text[: columns * 4]), columns, more=len(text) > columns * 4)


def on_one_line(text: str) -> str:
    """Return the whole text on one line, for a log. Line breaks become escapes, so the text cannot forge a log line."""
    return text if text.isprintable() else "".join(_visible(char) for char in text)


def block(text: str) -> str:
    """Return several lines for a terminal: line breaks stay, other control characters become escapes."""
    return "\n".join("".join(_visible(char) for char in line) for line in text.split("\n"))


def visible_line(text: str) -> str:
    """Return one line in which every character is visible, for a person who decides by it. Control and invisible
    characters and every space but the common one become escapes, a line break becomes ␊, and stacked accents are
    limited, so that they cover no other text."""
    if text.isascii() and text.isprintable():
        return text
    made: list[str] = []
    accents = 0
    before = ""
    for char in text:
        accents = accents + 1 if unicodedata.combining(char) else 0
        dressed = char == _EMOJI_STYLE and before not in _UNSEEN and unicodedata.category(before or " ") == "So"
        shows = char.isprintable() and char not in _UNSEEN and accents <= _ACCENTS
        made.append(char if shows or dressed else _BREAK if char == "\n" else _written_out(char))
        before = char
    return "".join(made)


def picture_line(text: str, columns: int) -> str:
    """Return one line for a picture: white space becomes one space, and unprintable characters are removed."""
    start = text[: columns * 4]
    if not start.isprintable():
        start = "".join(char if _prints(char) else " " if char.isspace() else "" for char in start)
    return cut_line(" ".join(start.split()), columns, more=len(text) > columns * 4)


def cut_line(text: str, columns: int, *, more: bool = False) -> str:
    """Return the text cut to this many columns, with an ellipsis for the rest. `more` says that some text is already
    gone."""
    used = 0
    for index, char in enumerate(text):
        used += columns_of(char)
        # A pile of accents takes no column at all, so the number of characters has a limit as well.
        if used > columns or index >= columns * 3:
            return f"{_within(text[:index], columns - 1)}…"
    return f"{_within(text, columns - 1)}…" if more else text


@lru_cache(maxsize=4096)  # a picture measures the same few characters again and again
def columns_of(char: str) -> int:
    """Return the number of columns that a character takes in a monospace font."""
    if unicodedata.combining(char) or char == _JOINER:
        return 0
    return 2 if unicodedata.east_asian_width(char) in "WF" else 1


def _within(text: str, columns: int) -> str:
    used = sum(columns_of(char) for char in text)
    while used > columns:
        used -= columns_of(text[-1])
        text = text[:-1]
    return text.rstrip()


def _prints(char: str) -> bool:
    return char.isprintable() or char == _JOINER


def _written_out(char: str) -> str:
    escape = repr(char)[1:-1]
    if escape != char:
        return escape
    return f"\\u{ord(char):04x}" if ord(char) <= 0xFFFF else f"\\U{ord(char):08x}"


def _visible(char: str) -> str:
    if _prints(char):
        return char
    return " " if unicodedata.category(char) == "Zs" else repr(char)[1:-1]
