"""For tests that something does not grow: what a database in memory had to do, counted and never timed."""

from collections.abc import Generator
from contextlib import contextmanager

from remit.stores.sqlite.database import SqliteDatabase


class Work:
    """What SQLite had to do: `steps` are instructions of its machine, in tens, and `statements` what it was asked."""

    def __init__(self) -> None:
        self.steps = 0
        self.statements: list[str] = []

    def step(self) -> int:
        self.steps += 1
        return 0


@contextmanager
def counted(database: SqliteDatabase) -> Generator[Work]:
    """Count what is done in a database in memory, which has one connection."""
    work = Work()
    connection = database.writer.connection
    connection.set_trace_callback(work.statements.append)
    connection.set_progress_handler(work.step, 10)
    try:
        yield work
    finally:
        connection.set_trace_callback(None)
        connection.set_progress_handler(None, 10)
