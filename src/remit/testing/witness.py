"""The trees of a failed test's runs, as plain text.

The newest events that this process commits are kept, so that they can be shown after a runtime is closed. A persistent
store is read again instead, because other processes may have written to it.
"""

import asyncio
from collections import deque
from collections.abc import Iterable, Sequence
from concurrent.futures import Future
from pathlib import Path
from threading import Thread
from typing import Any, Final, NamedTuple, TypeAlias
from weakref import ref

from remit.core.events import Event
from remit.ports import Span, View
from remit.report.flow import text
from remit.report.lines import plain_line
from remit.report.looks import AGAIN, LOOKS, MODEL, TOOL
from remit.report.printable import cut_line, escaped
from remit.report.tree import tree
from remit.stores.addresses import is_server
from remit.stores.opening import database_at
from remit.stores.sqlite.database import MEMORY
from remit.watching import Opened, Subscribe

OPERATIONS: Final = 200  # of a workspace that are kept; a hundred delegations
EVENTS: Final = 5_000  # of a run that are read
CANDIDATES: Final = 20  # runs of a store that are read; failed ones are shown first
LINES: Final = 40  # of a tree
TROUBLES: Final = 10  # further lines for failures below the cut
LATEST: Final = 10  # events of a run that cannot be drawn
COLUMNS: Final = 300
SECONDS: Final = 5.0  # for a store that may not answer any more

_TROUBLE: Final = tuple(f"[{LOOKS[state].word}]" for state in ("failed", "dead", "lost", "refused"))
_WORDS: Final = {LOOKS[state].mark: f"[{LOOKS[state].word}]" for state in LOOKS if not LOOKS[state].mark.isascii()}
_SIGNS: Final = {"→": "->", "⇉": "=>", "…": "...", "⋯": "...", "·": "|", "│": "|", "├": "|", "└": "`", "─": "-"}
_ASCII: Final = str.maketrans(
    {**_WORDS, AGAIN: "[again]", MODEL: "[model]", TOOL: "[tool]", **_SIGNS, "╌": "~", "┄": ".", "µ": "u"}
)

Runs: TypeAlias = dict[str, list[Event]]


class _Run(NamedTuple):
    """A run as it is shown, and whether it went well."""

    lines: list[str]
    went_well: bool


class _Place:
    """A workspace that was opened: where it is, and the events that this process has committed there."""

    def __init__(self, opened: Opened, subscribe: Subscribe) -> None:
        self.workspace = opened.workspace
        self.address = _address(opened.store)
        self.kept: deque[Sequence[Event]] = deque(maxlen=OPERATIONS)
        self._opened = ref(opened)
        subscribe(self.kept.append)  # a built-in method, so that it costs next to nothing

    @property
    def is_open(self) -> bool:
        opened = self._opened()
        return opened is not None and opened.is_open

    @property
    def name(self) -> str:
        where = "in memory" if not self.address else "on a server" if is_server(self.address) else self.address
        return f"{where}, workspace {self.workspace}:"

    def runs(self) -> tuple[Runs, str]:
        """Return the newest runs, the oldest of them first, and a remark if some may be missing."""
        kept = _by_run(self.kept)
        if not self.address:
            return kept, ""
        try:
            return _read(self.address, self.workspace, [*kept]), ""
        except Exception as error:  # noqa: BLE001 - any error here is secondary: the test has failed already
            why = f"the store cannot be read any more: {escaped(f'{type(error).__name__}: {error}', COLUMNS)}"
            return kept, f"{why}; this is what this process wrote" if kept else why


class Witness:
    """Records the workspaces that a test opens, and those that were open when it started. It shows `most` runs of
    each."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._places: list[_Place] = []

    def record_workspace(self, opened: Opened, subscribe: Subscribe) -> None:
        """Record the events that this process commits in a workspace from now on."""
        self._places.append(_Place(opened, subscribe))

    def begin(self) -> None:
        """Drop closed workspaces and all earlier events."""
        self._places = [place for place in self._places if place.is_open]
        for place in self._places:
            place.kept.clear()

    def trees(self) -> str:
        """Return the trees of the runs, or "" if there are none."""
        places = {(place.address or str(id(place)), place.workspace): place for place in self._places}
        parts = [(place.name, part) for place in places.values() if (part := self._part(place))]
        if len(parts) == 1:
            return parts[0][1]
        return "\n\n".join(f"{name}\n{part}" for name, part in parts)

    def _part(self, place: _Place) -> str:
        found, remark = place.runs()
        runs = [_run(run, events) for run, events in found.items()]
        numbers = sorted(range(len(runs)), key=lambda at: (runs[at].went_well, -at))[: self._most]
        left = len(runs) - len(numbers)
        paragraphs = [[remark]] if remark else []
        paragraphs += [runs[at].lines for at in sorted(numbers)]
        paragraphs += [[f"and {left} more"]] if left else []
        return "\n\n".join("\n".join(lines) for lines in paragraphs)


# -- sources of runs ----------------------------------------------------------------------------------------------


def _address(store: Any) -> str:
    """Return the address at which other processes can read a store, or "" if they cannot. A path is made absolute,
    because the test may change its folder."""
    if not isinstance(store, str | Path) or str(store) == MEMORY:
        return ""
    return str(store) if is_server(store) else str(Path(store).absolute())


def _by_run(operations: Iterable[Sequence[Event]]) -> Runs:
    found: Runs = {}
    for events in operations:
        for event in events:
            if event.run:
                found.setdefault(event.run, []).append(event)
    return dict([*found.items()][-CANDIDATES:])


def _read(address: str, workspace: str, runs: list[str]) -> Runs:
    """Return these runs, or the newest if none are named. It reads in a thread, because this thread may or may not have
    an event loop, and a server may never answer."""
    told: Future[Runs] = Future()

    def read() -> None:
        try:
            told.set_result(asyncio.run(_looked_up(address, workspace, runs)))
        except BaseException as error:  # noqa: BLE001 - raised in the waiting thread
            told.set_exception(error)

    Thread(target=read, name="remit-witness", daemon=True).start()
    try:
        return told.result(SECONDS)
    except TimeoutError:
        raise TimeoutError(f"no answer within {SECONDS:g} seconds") from None


async def _looked_up(address: str, workspace: str, runs: list[str]) -> Runs:
    def look(view: View) -> Runs:
        wanted = runs or [line.record.id for line in reversed(view.runs(CANDIDATES, None))]
        return {run: view.events(Span(run=run, limit=EVENTS)) for run in wanted}

    database = database_at(address, create=False)
    try:
        return await database.store(workspace).browse(look)
    finally:
        database.close()


# -- text ---------------------------------------------------------------------------------------------------------


def _run(run: str, events: list[Event]) -> _Run:
    try:
        return _drawn(run, events)
    except Exception as error:  # noqa: BLE001 - for example a damaged journal; the test's failure must still be shown
        return _Run([f"run {run} cannot be drawn: {escaped(f'{type(error).__name__}: {error}', COLUMNS)}"], False)


def _drawn(run: str, events: list[Event]) -> _Run:
    root = tree(events)
    if root is not None and root.id == run:  # otherwise it is the root of a remaining part
        lines = text(root, events[-1].at).translate(_ASCII).splitlines()
        return _Run(_bounded(lines), all(node.state == "completed" for node in root.walk()))
    latest = [cut_line(plain_line(event).translate(_ASCII), COLUMNS) for event in events[-LATEST:]]
    return _Run([f"run {run} cannot be drawn: its first events are not kept; its last events:", *latest], False)


def _bounded(lines: list[str]) -> list[str]:
    """Return a tree cut to its limit, with the failures below the cut."""
    shown = [cut_line(line, COLUMNS) for line in lines]
    first, rest = shown[:LINES], shown[LINES:]
    if not rest:
        return first
    wrong = [line for line in rest if line.lstrip(" |`-~.").startswith(_TROUBLE)]
    more = f"... {len(rest):,} lines more"
    return [*first, f"{more}; what went wrong there:", *wrong[:TROUBLES]] if wrong else [*first, more]
