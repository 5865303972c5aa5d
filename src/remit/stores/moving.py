"""Moving a workspace from one database to another, while all others go on.

Each step is one transaction of one database, and every state between two steps can be continued: killed at any point,
the same move continues or starts over. At each moment at most one of the two copies takes writes.

1. The target marks the workspace as `arriving`: it takes no writes there, and no reader looks there.
2. The source marks it as `leaving`: from now on it takes no writes there either. It can still be read.
3. All its rows and the contents of its artifacts are copied, and compared.
4. The source marks it as `left`. This is the point of no return.
5. The home notes the new place, and the target removes its mark: writes go on there.
6. After a pause in which all readers learn of it, the source deletes its rows. Its mark stays.
"""

import hashlib
import time
from collections.abc import Callable, Generator
from contextlib import ExitStack, contextmanager, suppress
from typing import Final, NamedTuple

from remit.core.placement import MoveMark, living_at
from remit.errors import BadInput, Conflict, Moved, StoreError
from remit.ports.contents import Clearing, Contents
from remit.ports.placing import MoveEnd, TableColumns
from remit.stores.several import KNOWN_FOR, SeveralDatabases

PAUSE: Final = 4 * KNOWN_FOR  # seconds before the old copy is deleted: longer than a reader relies on what it knows
STEPS: Final = (
    *("arriving", "leaving", "cleared", "table", "content", "compared"),
    *("left", "noted", "arrived", "deleting", "deleted"),
)
_TRIES: Final = 100
_WAIT: Final = 0.1  # seconds between two tries to be the only one at the contents


class MoveSummary(NamedTuple):
    """A move that was done: the two databases as text for people, and the numbers of copied rows and contents, which
    are 0 if the workspace was in the target already."""

    workspace: str
    source: str
    target: str
    rows: int = 0
    contents: int = 0


class WorkspaceMove:
    """Moves one workspace between databases that are opened together. `now` returns the time in microseconds since
    1970. Tests pass `reached`, which is called with the name of each of the `STEPS` after it, and replace `sleep`."""

    def __init__(
        self,
        several: SeveralDatabases,
        workspace: str,
        now: Callable[[], int],
        *,
        reached: Callable[[str], object] = bool,
        sleep: Callable[[float], object] = time.sleep,
    ) -> None:
        self._several = several
        self._workspace = workspace
        self._now = now
        self._reached = reached
        self._sleep = sleep
        self._ends: dict[str, MoveEnd] = {}

    def move(self, target: str) -> MoveSummary:
        """Move the workspace to the database of this name. Raise `BadInput` if there is nothing to move, or the target
        has another workspace of that name; `Conflict` if an unfinished move leads elsewhere, or the copy fails."""
        with ExitStack() as stack:
            self._ends = {name: stack.enter_context(member.end()) for name, member in self._several.members.items()}
            source = self._continued()
            leaving = self._mark(source)
            if source == target:
                return self._stay(target, leaving)
            if leaving is not None and leaving.place != target:
                raise Conflict(
                    f"workspace '{self._workspace}' is being moved to {leaving.where}; move it there to go on, "
                    f"or to {self._where(source)} to give it up"
                )
            if not self._ends[source].has(self._workspace):
                raise BadInput(f"there is no workspace '{self._workspace}' to move in {self._several.where}")
            with self._alone(source) as clearing:
                summary = self._copy(source, target)
                self._turn_over(source, target)
                self._sleep(PAUSE)
                self._delete(source, clearing)
        return summary

    # -- where it is ----------------------------------------------------------------------------------

    def _continued(self) -> str:
        """Finish a move that is past the point of no return, if there is one. Return the database that has the
        workspace."""
        place = self._several.members[self._several.home].placed(self._workspace) or self._several.sought(
            self._workspace
        )
        found = living_at(place, self._mark)
        if found is not None:
            if found not in self._ends:
                self._several.living(self._workspace, found)  # raises, with a sentence
            return found
        for source, mark in ((name, self._mark(name)) for name in self._ends):
            if mark is not None and mark.state == "left" and _is_arriving(self._mark(mark.place), source):
                self._finish(source, mark.place)
                return mark.place
        raise Moved(
            f"workspace '{self._workspace}' is between databases that were not all given; add them with --store"
        )

    def _mark(self, place: str) -> MoveMark | None:
        if place not in self._several.members:
            return None
        return self._several.members[place].marks().get(self._workspace)

    def _where(self, place: str) -> str:
        return self._several.members[place].where

    def _stay(self, target: str, leaving: MoveMark | None) -> MoveSummary:
        """Undo an unfinished move of this workspace to another database, if there is one, and delete the copies that
        moves have left elsewhere."""
        if leaving is not None:
            with self._alone(target):
                self._give_up(target, leaving.place)
        for name in self._ends:
            mark = self._mark(name)
            if name != target and mark is not None and mark.state == "left":
                with self._alone(name) as clearing:
                    if self._ends[name].has(self._workspace):
                        self._sleep(PAUSE)
                    self._delete(name, clearing)
        return MoveSummary(self._workspace, self._where(target), self._where(target))

    @contextmanager
    def _alone(self, place: str) -> Generator[Clearing]:
        """Lock the contents of the workspace in this database: no other process moves it, and none saves an artifact,
        whose event would then be written to another database. Raise `Conflict` if that takes longer than ten
        seconds."""
        contents = self._several.members[place].contents(self._workspace)
        clearing = contents.clearing(make=True)
        for _ in range(_TRIES):
            if clearing is not None:
                break
            self._sleep(_WAIT)
            clearing = contents.clearing(make=True)
        if clearing is None:
            raise Conflict(
                f"another process saves an artifact in workspace '{self._workspace}', or moves it; try again later"
            )
        try:
            yield clearing
        finally:
            clearing.close()

    # -- the steps ------------------------------------------------------------------------------------

    def _copy(self, source: str, target: str) -> MoveSummary:
        """Copy all rows and contents. If that fails, let the workspace continue in the source."""
        here, there = self._ends[source], self._ends[target]
        marks = [mark.generation for mark in (self._mark(source), self._mark(target)) if mark is not None]
        generation = max(marks, default=0) + 1
        there.mark(self._workspace, MoveMark("arriving", source, self._where(source), generation))
        self._reached("arriving")
        here.mark(self._workspace, MoveMark("leaving", target, self._where(target), generation))
        self._reached("leaving")
        try:
            return self._copied(source, target)
        except (StoreError, Conflict):
            with suppress(StoreError):
                self._give_up(source, target)
            raise

    def _copied(self, source: str, target: str) -> MoveSummary:
        here, there, workspace = self._ends[source], self._ends[target], self._workspace
        tables = here.tables()
        if tables != there.tables():
            raise Conflict(f"{self._where(source)} and {self._where(target)} do not have the same tables")
        self._clear(target)
        self._reached("cleared")
        rows = 0
        for table, has in tables.items():
            for page in here.pages(table, has, workspace):
                there.add(table, has, page)
                rows += len(page)
            self._reached("table")
        contents = self._copy_contents(source, target)
        self._reached("content")
        for table, has in tables.items():
            if _digest(here, table, has, workspace) != _digest(there, table, has, workspace):
                raise Conflict(f"the copy of table {table} in {self._where(target)} is not equal; nothing was moved")
        self._reached("compared")
        return MoveSummary(workspace, self._where(source), self._where(target), rows, contents)

    def _copy_contents(self, source: str, target: str) -> int:
        here, there = (self._several.members[name].contents(self._workspace) for name in (source, target))
        stored = [kept.digest for kept in here.stored()]
        for digest in stored:
            if not _copy_content(here, there, digest):
                raise Conflict(f"the content {digest} of an artifact is damaged; run `remit doctor`")
        return len(stored)

    def _turn_over(self, source: str, target: str) -> None:
        leaving = self._mark(source)
        assert leaving is not None
        self._ends[source].mark(self._workspace, leaving._replace(state="left"))
        self._reached("left")
        self._finish(source, target)

    def _finish(self, source: str, target: str) -> None:
        self._ends[self._several.home].place(self._workspace, target, moves=True)
        self._reached("noted")
        self._ends[target].mark(self._workspace, None)
        self._ends[target].wake(self._workspace, self._now())
        self._ends[source].wake(self._workspace, self._now())
        self._reached("arrived")

    def _give_up(self, source: str, target: str) -> None:
        """Let the workspace continue in the source, and delete the copy."""
        mark = self._mark(target)
        self._ends[source].mark(self._workspace, None)
        if target in self._ends and _is_arriving(mark, source):
            self._clear(target)
            self._ends[target].mark(self._workspace, None)

    def _delete(self, place: str, clearing: Clearing) -> None:
        """Delete the old copy. Its mark stays, so that no process creates a new workspace of that name there."""
        contents = self._several.members[place].contents(self._workspace)
        for kept in contents.stored():
            clearing.remove(kept.digest)
        self._reached("deleting")
        self._clear(place)
        self._ends[place].wake(self._workspace, self._now())
        self._reached("deleted")

    def _clear(self, place: str) -> None:
        # The journal last: where there are events, there may be other rows.
        tables = self._ends[place].tables()
        for table in sorted(tables, key=lambda name: name == "event"):
            self._ends[place].clear(table, tables[table], self._workspace)


def _is_arriving(mark: MoveMark | None, source: str) -> bool:
    return mark is not None and mark.state == "arriving" and mark.place == source


def _digest(end: MoveEnd, table: str, has: TableColumns, workspace: str) -> str:
    found = hashlib.sha256()
    for page in end.pages(table, has, workspace):
        for row in page:
            found.update(repr(tuple(row)).encode())
    return found.hexdigest()


def _copy_content(here: Contents, there: Contents, digest: str) -> bool:
    """Copy a content, and return whether it is what its digest says."""
    reader, saving = here.open(digest), there.begin()
    try:
        if reader is None:  # pruned in the meantime: no event refers to it
            return True
        while part := reader.read():
            saving.write(part)
        return saving.keep().digest == digest
    finally:
        saving.close()
        if reader is not None:
            reader.close()
