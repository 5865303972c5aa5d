"""Databases that share workspaces: the records of which database has which workspace, and moving a workspace between
two."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple, Protocol, Self

from remit.core.events import SealKey
from remit.core.placement import Membership, MoveMark
from remit.ports.store import Database


class TableColumns(NamedTuple):
    """A table with rows of workspaces: its columns, and those of its key after the workspace."""

    columns: tuple[str, ...]
    key: tuple[str, ...]


class MoveEnd(Protocol):
    """One end of a move: a connection of its own, with one transaction for each call. Every call may wait for a disk or
    a server."""

    def join(self, home: str) -> Membership:
        """Set the name of the database, if it has none, and its home: `home`, or its own name if that is empty. A home
        that it has already stays. Return both."""
        ...

    def place(self, workspace: str, place: str, *, moves: bool = False) -> str:
        """In the home database, record the database of a workspace, unless one is recorded; with `moves`, in any case.
        Return the recorded database."""
        ...

    def has(self, workspace: str) -> bool:
        """Whether a workspace has events here."""
        ...

    def mark(self, workspace: str, mark: MoveMark | None) -> None:
        """Set the mark of a workspace, or remove it, after all writes to the workspace that have begun. Raise
        `BadInput` if it would arrive where there is another workspace of that name."""
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
        """Return the database in which a workspace lives, as this one knows if it is the home."""
        ...

    def has(self, workspace: str) -> bool:
        """Whether a workspace has events here."""
        ...

    def marks(self) -> dict[str, MoveMark]:
        """Return the workspaces that may not be written here."""
        ...

    def end(self) -> MoveEnd: ...
    def seal_with(self, key: SealKey | None) -> None: ...
