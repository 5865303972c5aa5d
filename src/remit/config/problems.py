"""Problems of a file: all of them, each with its line and what to do."""

from collections.abc import Collection, Iterable, Sequence
from difflib import get_close_matches
from typing import Final, NamedTuple

from remit.config.lines import Lines, Path, line_of
from remit.errors import BadInput

LISTED: Final = 50  # problems that are listed
_COMPARED: Final = 20_000  # comparisons of wrong with known names, for hints
_NAMED: Final = 40  # names that are listed in one sentence


class Problem(NamedTuple):
    """One problem. A warning keeps the team from running here, but the file itself is valid."""

    file: str
    line: int
    setting: str
    sentence: str
    warning: bool = False

    @property
    def told(self) -> str:
        """The problem as text: agents.coder.modle: there is no such setting; did you mean 'model'?"""
        return f"{self.setting}: {self.sentence}" if self.setting else self.sentence

    def __str__(self) -> str:
        """Return the problem with its place: remit.toml:7: agents.coder.modle: there is no such setting; did you mean
        'model'?"""
        return f"{self.file}:{self.line}: {self.told}"


class Problems:
    """The list of problems, which grows while a file is read."""

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
        """Return "; did you mean 'model'?", or `otherwise`. A wrong name is compared with all known names, so only the
        first wrong names get a hint if there are very many."""
        self._compared += len(known)
        return (near(word, known) or otherwise) if self._compared <= _COMPARED else ""

    def near_or_all(self, word: str, known: Collection[str]) -> str:
        """Return "; did you mean 'model'?", or else "; there are agent and model"."""
        hint = self.near(word, known)
        return hint if hint or self._compared > _COMPARED else f"; there are {listing(known)}"


def raised(problems: Iterable[Problem]) -> None:
    """Raise `BadInput` with all problems at once, if there are any."""
    listed = in_order(problems)
    if listed:
        raise BadInput("\n".join([*map(str, listed[:LISTED]), *more_than(listed)]))


def more_than(problems: Sequence[Problem]) -> list[str]:
    """Return the line "and 9,950 more" if there are more problems than are listed."""
    return [f"and {len(problems) - LISTED:,} more"] if len(problems) > LISTED else []


def in_order(problems: Iterable[Problem]) -> list[Problem]:
    """Return the problems by file and line, each once."""
    return sorted(set(problems), key=lambda one: (one.file, one.line, one.setting, one.sentence))


def dotted(path: Path) -> str:
    """Return a path as text: agents.coder.model, or agents."my coder".model."""
    return ".".join(part if part.replace("-", "").replace("_", "").isalnum() else f'"{part}"' for part in path)


def near(word: str, known: Iterable[str]) -> str:
    """Return "; did you mean 'model'?", or ""."""
    close = get_close_matches(word[:100], [*known], 1)
    return f"; did you mean '{close[0]}'?" if close else ""


def listing(known: Iterable[str]) -> str:
    """Return "there are a, b and c", for the end of a sentence."""
    *some, last = sorted(known) or ["none"]
    if len(some) >= _NAMED:
        some, last = some[:_NAMED], f"{len(some) + 1 - _NAMED:,} more"
    return f"{', '.join(some)} and {last}" if some else last
