"""Tracebacks of agents and of functions of the owner: places in the code, never values."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Generator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from traceback import walk_tb
from types import FrameType, TracebackType
from typing import Final, TypeVar, cast

from remit import watching
from remit.core.records import NamedTuple
from remit.errors import RemitError

TRACE_LIMIT: Final = 8_000  # characters; the part nearest to the failure is kept
_CHAIN_LIMIT: Final = 8  # causes of an error
_ASYNCIO: Final = str(Path(asyncio.__file__).parent)
_OURS: Final = f"{Path(__file__).parents[1]}{os.sep}"  # not its parent, where other packages are installed too

BaseExceptionOf = TypeVar("BaseExceptionOf", bound=BaseException)


@cache
def libraries() -> tuple[str, ...]:
    """Return the folders of Python's own modules and of installed packages. They are computed on first use, because
    Python reads its whole configuration for that."""
    import sysconfig  # noqa: PLC0415

    return tuple({sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib")})


class Frame(NamedTuple):
    path: str
    line: int
    function: str

    @property
    def is_ours(self) -> bool:
        return self.path.startswith(_OURS)

    @property
    def is_library(self) -> bool:
        return self.path.startswith((*libraries(), "<frozen")) or "site-packages" in self.path

    def __str__(self) -> str:
        return f"{self.path}:{self.line} in {self.function}"


def trace(error: BaseException) -> str:
    """Return the traceback of an error and its causes: the outermost frame first, without remit's own frames."""
    lines: list[str] = []
    _tell(error, lines, set())
    text = storable("\n".join(lines))
    return text if len(text) <= TRACE_LIMIT else f"…{text[1 - TRACE_LIMIT :]}"


def error_text(error: BaseException) -> str:
    """Return the message of an error, even if its class cannot produce one. For an exception group, return the messages
    of its members."""
    if isinstance(error, BaseExceptionGroup):
        inside = cast("BaseExceptionGroup[BaseException]", error).exceptions
        return "; ".join(f"{type(one).__name__}: {error_text(one)}" for one in inside)
    try:
        return str(error) or "no message"
    except Exception:  # noqa: BLE001 - foreign code
        return "its message cannot be read"


def storable(text: str) -> str:
    """Return a text of foreign code with only the characters that every store can hold."""
    return text.encode("utf-8", "replace").decode().replace("\0", "\\0")


def place(error: BaseException, *, library: bool = True) -> str:
    """Return the last line of the user's own code that an error came through: `team.py:14 in coder`. If there is none,
    return the last line of a `library`, unless that is False or remit itself raised the error."""
    theirs = _frames(error)
    own = [frame for frame in theirs if not frame.is_library]
    if not own and library and not _is_raised_here(error):
        own = theirs
    if not own or own[-1].path.startswith("<"):  # code without a file
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


def _is_raised_here(error: BaseException) -> bool:
    frames = [frame for frame, _ in walk_tb(error.__traceback__)]
    return bool(frames) and _is_of_remit(frames[-1])


def _is_of_remit(frame: FrameType) -> bool:
    path = frame.f_code.co_filename
    # The methods of dataclasses have no file.
    return path.startswith(_OURS) or (path == "<string>" and str(frame.f_globals.get("__name__")).startswith("remit."))


def shortened(error: BaseExceptionOf) -> BaseExceptionOf:
    """Remove the frames of remit and of asyncio from the traceback of an error, so that it ends in the user's code.
    Return the error. A traceback that ends in remit without an error of remit shows a bug of remit and stays whole."""
    entries: list[TracebackType] = []
    entry = error.__traceback__
    while entry is not None:
        entries.append(entry)
        entry = entry.tb_next
    if not entries or (_is_of_remit(entries[-1].tb_frame) and not isinstance(error, RemitError)):
        return error
    kept: TracebackType | None = None
    for entry in reversed(entries):
        frame = entry.tb_frame
        if not (_is_of_remit(frame) or frame.f_code.co_filename.startswith(_ASYNCIO)):
            kept = TracebackType(kept, frame, entry.tb_lasti, entry.tb_lineno)
    error.__traceback__ = kept
    return error


def is_cancelled() -> bool:
    """Whether the current asyncio task is being cancelled. If not, a CancelledError comes from inside, such as from an
    inner task that the code cancelled itself."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


class OwnersFunctionFailed(Exception):
    """A function of the owner raised. `role` says which function, `error` is its exception. `in_script` says that the
    function stands in for an agent in a test."""

    def __init__(self, role: str, error: BaseException, *, in_script: bool = False) -> None:
        super().__init__(f"{role} raised {type(error).__name__}: {error_text(error)}")
        self.role = role
        self.error = error
        watching.tell_bug(watching.Bug(error, role, in_script))


@contextmanager
def owners_function(role: str) -> Generator[None]:
    """Call a function of the owner in the body. An error of remit, such as `Refused`, passes unchanged. For any other
    exception, raise `OwnersFunctionFailed`; this includes SystemExit, which would end the process, and a CancelledError
    although the asyncio task was not cancelled."""
    try:
        yield
    except (RemitError, OwnersFunctionFailed):
        raise
    except asyncio.CancelledError as error:
        if is_cancelled():
            raise
        raise OwnersFunctionFailed(role, error) from error
    except (Exception, SystemExit) as error:
        raise OwnersFunctionFailed(role, error) from error


def owners_fault(error: BaseException | None) -> OwnersFunctionFailed | None:
    """Return the `OwnersFunctionFailed` that caused an error, or None. The causes of the error and the members of
    exception groups are searched."""
    while error is not None and not isinstance(error, OwnersFunctionFailed):
        if isinstance(error, BaseExceptionGroup):
            inside = cast("BaseExceptionGroup[BaseException]", error).exceptions
            return next((found for one in inside if (found := owners_fault(one)) is not None), None)
        error = error.__cause__
    return error
