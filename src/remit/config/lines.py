"""Line numbers of settings in a TOML text, which tomllib does not report."""

import re
import tomllib
from collections.abc import Iterable, Mapping
from typing import Any, Final, TypeAlias, cast

Path: TypeAlias = tuple[str, ...]  # of a setting: agents, coder, model
Lines: TypeAlias = Mapping[Path, int]

# Strings of all four kinds, comments, line ends, brackets, and any other run of characters.
_TOKEN: Final = re.compile(
    r'(?s)"""(?:\\.|[^\\])*?"{3,5}'
    r"|'''.*?'{3,5}"
    r'|"(?:\\.|[^"\\\n])*"'
    r"|'[^'\n]*'"
    r"|\#[^\n]*"
    r"|\n"
    r"|[\[\]{}=]"
    r"|[^\s\[\]{}=\"'#]+"
)
_AT: Final = re.compile(r"\(at (?:line (\d{1,9}), column \d{1,9}|end of document)\)")


def lines_of(text: str) -> Lines:
    """Return the line of every table and key of a text that tomllib can parse. The first `[[x]]` is x.0."""
    return _Scan().of(text)


def line_of(lines: Lines, path: Path) -> int:
    """Return the line of a setting, or of its table if it has none of its own."""
    return next((lines[path[:end]] for end in range(len(path), 0, -1) if path[:end] in lines), 1)


def trouble(error: tomllib.TOMLDecodeError, text: str) -> tuple[int, str]:
    """Return the line and the message of a tomllib error, which combines both in its text."""
    said = str(error)
    place = _AT.search(said)
    last = max(len(text.splitlines()), 1)
    number = min(int(place[1]), last) if place and place[1] else last
    return number, _AT.sub("", said).rstrip()


class _Scan:
    """One pass over a text: before a `=` and in a header it collects words; after it, it counts brackets."""

    def __init__(self) -> None:
        self.found: dict[Path, int] = {}
        self._table: Path = ()
        self._many: dict[Path, int] = {}
        self._words: list[str] = []
        self._depth: int | None = None  # depth of brackets in a value; None before it

    def of(self, text: str) -> Lines:
        line = 1
        for token in _TOKEN.finditer(f"{text}\n".replace("\r\n", "\n")):
            word = token[0]
            if not word.startswith("#"):
                self._take(word, line)
            line += word.count("\n")
        return self.found

    def _take(self, word: str, line: int) -> None:
        if self._depth is not None:
            self._depth += (word in "[{") - (word in "]}")
            if word == "\n" and self._depth <= 0:
                self._depth = None
        elif word == "\n":
            self._header(line)
        elif word == "=":
            self._note(self._table, self._words, line)
            self._words, self._depth = [], 0
        else:
            self._words.append(word)

    def _header(self, line: int) -> None:
        words, self._words = self._words, []
        if not words:
            return
        many = words[:2] == ["[", "["]
        path = self._note((), words[2:-2] if many else words[1:-1], line)
        if many:
            count = self._many.get(path, 0)
            self._many[path] = count + 1
            path = (*path, str(count))
            self.found[path] = line
        self._table = path

    def _note(self, table: Path, words: Iterable[str], line: int) -> Path:
        """Record a key and the tables that it implies. Return its path."""
        path = (*table, *_parts("".join(words)))
        for end in range(len(table) + 1, len(path) + 1):
            self.found.setdefault(path[:end], line)
        return path


def _parts(key: str) -> Iterable[str]:
    """Yield the parts of a key as TOML does, with dots and quotes."""
    inside: Any = tomllib.loads(f"{key} = 0")
    while isinstance(inside, dict):
        ((part, inside),) = cast("dict[str, Any]", inside).items()
        yield part
