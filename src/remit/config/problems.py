"""What is wrong with a file, all of it, each with its line and what to do."""

from collections.abc import Collection, Iterable, Sequence
from difflib import get_close_matches
from typing import Final, NamedTuple

from remit.config.lines import Lines, Path, line_of
from remit.errors import BadInput

LISTED: Final = 50  # problems that are told one by one
_COMPARED: Final = 20_000  # names that the wrong ones of a file are compared with
_NAMED: Final = 40  # names that are listed in one sentence


class Problem(NamedTuple):
    """One thing that is wrong; a warning is one that stops the team from running here, but not the file from being
    right."""

    file: str
    line: int
    setting: str
    sentence: str
    warning: bool = False

    @property
    def told(self) -> str:
        """agents.coder.modle: there is no such setting; did you mean 'model'?"""
        return f"{self.setting}: {self.sentence}" if self.setting else self.sentence

    def __str__(self) -> str:
        """remit.toml:7: agents.coder.modle: there is no such setting; did you mean 'model'?"""
        return f"{self.file}:{self.line}: {self.told}"


class Problems:
    """A list of what is wrong that grows while a file is read."""

    def __init__(self, file: str, lines: Lines) -> None:
        self.found: list[Problem] = []
        self.file = file
        self._lines = lines
        self._compared = 0

    def at(self, line: int, sentence: str) -> None:
        self.found.append(Problem(self.file, line, "", sentence))

    def add(self, path: Path, sentence: str, *, warning: bool = False) -> None:
        self.found.append(Problem(self.file, line_of(self._lines, path), dotted(path), sentence, warning))

    def near(self, word: str, known: Collection[str], otherwise: str = "") -> str:
        """; did you mean 'model'? Or what is said otherwise. A wrong name is compared with all that are known, so that
        only the first get a hint when very many are wrong."""
        self._compared += len(known)
        return (near(word, known) or otherwise) if self._compared <= _COMPARED else ""

    def near_or_all(self, word: str, known: Collection[str]) -> str:
        """; did you mean 'model'? Or: ; there are agent and model"""
        hint = self.near(word, known)
        return hint if hint or self._compared > _COMPARED else f"; there are {listing(known)}"


def raised(problems: Iterable[Problem]) -> None:
    """Raise everything that is wrong at once, if anything is."""
    listed = in_order(problems)
    if listed:
        raise BadInput("\n".join([*map(str, listed[:LISTED]), *more_than(listed)]))


def more_than(problems: Sequence[Problem]) -> list[str]:
    """and 9,950 more, if there are more than are told one by one"""
    return [f"and {len(problems) - LISTED:,} more"] if len(problems) > LISTED else []


def in_order(problems: Iterable[Problem]) -> list[Problem]:
    """List problems by file and line, each once."""
    return sorted(set(problems), key=lambda one: (one.file, one.line, one.setting, one.sentence))


def dotted(path: Path) -> str:
    """agents.coder.model, and agents."my coder".model"""
    return ".".join(part if part.replace("-", "").replace("_", "").isalnum() else f'"{part}"' for part in path)


def near(word: str, known: Iterable[str]) -> str:
    """; did you mean 'model'?"""
    close = get_close_matches(word[:100], [*known], 1)
    return f"; did you mean '{close[0]}'?" if close else ""


def listing(known: Iterable[str]) -> str:
    """There are a, b and c, for the end of a sentence."""
    *some, last = sorted(known) or ["none"]
    if len(some) >= _NAMED:
        some, last = some[:_NAMED], f"{len(some) + 1 - _NAMED:,} more"
    return f"{', '.join(some)} and {last}" if some else last
