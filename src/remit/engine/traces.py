"""Where an agent failed: the frames of its traceback, as the journal keeps them. Only places, never values."""

import sysconfig
from pathlib import Path
from traceback import walk_tb
from typing import Final, NamedTuple, cast

TRACE_LIMIT: Final = 8_000  # characters; what is nearest to the failure is kept
_CHAIN_LIMIT: Final = 8  # errors that led to one another
_OURS: Final = str(Path(__file__).parents[2])
_LIBRARY: Final = tuple({sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib")})


class Frame(NamedTuple):
    path: str
    line: int
    function: str

    @property
    def is_ours(self) -> bool:
        return self.path.startswith(_OURS)

    @property
    def is_library(self) -> bool:
        return self.path.startswith((*_LIBRARY, "<frozen")) or "site-packages" in self.path

    def __str__(self) -> str:
        return f"{self.path}:{self.line} in {self.function}"


def trace(error: BaseException) -> str:
    """Tell where an error came from, and those that led to it: the outermost frame first, our own left out."""
    lines: list[str] = []
    _tell(error, lines, set())
    text = "\n".join(lines).encode("utf-8", "replace").decode().replace("\0", "\\0")
    return text if len(text) <= TRACE_LIMIT else f"…{text[1 - TRACE_LIMIT :]}"


def place(error: BaseException, *, library: bool = True) -> str:
    """Name the last line of the user's own code that an error came through: `team.py:14 in coder`. If there is none,
    name the last line of a `library`, unless that is not wanted."""
    theirs = _frames(error)
    own = [frame for frame in theirs if not frame.is_library] or (theirs if library else [])
    if not own or own[-1].path.startswith("<"):  # code that is in no file: there is nothing to open
        return ""
    last = own[-1]
    return f"{Path(last.path).name}:{last.line} in {last.function}"


def _tell(error: BaseException, lines: list[str], told: set[int]) -> None:
    if id(error) in told or len(told) >= _CHAIN_LIMIT:
        return
    told.add(id(error))
    before = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
    if before is not None:
        _tell(before, lines, told)
    for one in _parts(error):
        _tell(one, lines, told)
    lines.extend(f"{frame}" for frame in _frames(error))
    lines.append(type(error).__name__)


def _parts(error: BaseException) -> tuple[BaseException, ...]:
    return cast("BaseExceptionGroup[BaseException]", error).exceptions if isinstance(error, BaseExceptionGroup) else ()


def _frames(error: BaseException) -> list[Frame]:
    walked = walk_tb(error.__traceback__)
    frames = [Frame(one.f_code.co_filename, line, one.f_code.co_name) for one, line in walked]
    return [frame for frame in frames if not frame.is_ours]
