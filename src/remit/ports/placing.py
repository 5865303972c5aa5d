"""Databases that share workspaces: the records of which database has which workspace, and moving a workspace between
two."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple, Protocol, Self

from remit.core.events import SealKey
from remit.core.placement import Membership, MoveMark
from remit.ports.store import Database


class TableColumns(NamedTuple):
    """The columns of a table that has rows of workspaces: all of them, and those of its primary key without
    `workspace`."""

    columns: tuple[str, ...]
    key: tuple[str, ...]


class MoveEnd(Protocol):
    """One end of a move: a connection of its own, with one transaction for each call. Every call may wait for a disk or
    a server."""

    def join(self, home: str) -> Membership:
        """Record that this database is one of several: name it if it has no name, and set its home to `home`, or to its
        own name if `home` is empty. A recorded home stays as it is. Return the name and the home."""
        ...

    def place(self, workspace: str, place: str, *, moves: bool = False) -> str:
        """In the home database, record the database of a workspace, unless one is recorded; with `moves`, in any case.
        Return the recorded database."""
        ...

    def has(self, workspace: str) -> bool:
        """Whether a workspace has events here."""
        ...

    def mark(self, workspace: str, mark: MoveMark | None) -> None:
        """Wait for the writes to a workspace that have started, then set its mark; None removes it. Raise `BadInput`
        for a new mark `arriving` if this database has a workspace of that name already."""
        ...

    def tables(self) -> Mapping[str, TableColumns]:
        """Return all tables with rows of workspaces, except the contents of artifacts."""
        ...

    def pages(self, table: str, has: TableColumns, workspace: str) -> Iterator[Sequence[tuple[Any, ...]]]:
        """Yield the rows of a workspace in a table, some at a time, in the order of the key."""
        ...

    def add(self, table: str, has: TableColumns, rows: Sequence[Sequence[Any]]) -> None: ...
    def clear(self, table: str, has: TableColumns, workspace: str) -> None:
        """Delete the rows of a workspace in a table, some at a time."""
        ...

    def wake(self, workspace: str, now: int) -> None:
        """Notify the workers of this database of a workspace, now and when its tasks are due; `now` is the time of this
        process."""
        ...

    def __enter__(self) -> Self: ...
    def __exit__(self, *_: object) -> None: ...


class Member(Database, Protocol):
    """A database that can be one of several."""

    where: str

    def membership(self) -> Membership | None: ...
    def placed(self, workspace: str) -> str | None:
        """Return the recorded name of the database in which a workspace lives, or None. Only the home has records."""
        ...

    def has(self, workspace: str) -> bool:
        """Whether a workspace has events here."""
        ...

    def marks(self) -> dict[str, MoveMark]:
        """Return the workspaces that may not be written here."""
        ...

    def end(self) -> MoveEnd: ...
    def seal_with(self, key: SealKey | None) -> None: ...
