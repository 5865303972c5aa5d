"""The stores that a chaos run is done to, and how each is made to say no. Whatever touches the store does so in a
process of its own: a process that has it open must not fork others."""

import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Protocol

import psycopg

from postgres import OwnServer, Server, running
from torture.chaos.harm import ON_A_FILE, ON_A_SERVER


class Target(Protocol):
    """A store, and the harm that can be done to it. `pause` is how many seconds lie between two harms."""

    store: str
    weights: dict[str, int]
    pause: tuple[float, float]

    def hold(self, seconds: float) -> None:
        """Keep everyone from writing for so long."""
        ...

    def cut(self) -> None:
        """Cut all connections."""
        ...

    def restart(self) -> None:
        """Restart the server, as if its machine had lost its power."""
        ...


class File:
    """A SQLite file."""

    weights = ON_A_FILE
    pause = (0.05, 0.5)

    def __init__(self, folder: Path) -> None:
        self.store = str(folder / "team.db")

    def hold(self, seconds: float) -> None:
        with closing(sqlite3.connect(self.store, isolation_level=None, timeout=10)) as connection:
            connection.execute("BEGIN IMMEDIATE")
            time.sleep(seconds)
            connection.execute("ROLLBACK")

    def cut(self) -> None:
        raise NotImplementedError("nobody is connected to a file")

    def restart(self) -> None:
        raise NotImplementedError("a file has no server")


class Database:
    """A PostgreSQL database; its server is restarted if it is our own."""

    pause = (0.2, 1.2)

    def __init__(self, server: Server) -> None:
        self._server = server
        self.store = server.database(empty=True)
        own = isinstance(server, OwnServer)
        self.weights = ON_A_SERVER if own else {name: n for name, n in ON_A_SERVER.items() if name != "restart"}

    def hold(self, seconds: float) -> None:
        with psycopg.connect(self.store) as connection:
            connection.execute("LOCK TABLE remit.event, remit.task IN EXCLUSIVE MODE")
            time.sleep(seconds)

    def cut(self) -> None:
        with psycopg.connect(self.store, autocommit=True) as connection:
            connection.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
                "WHERE datname = current_database() AND pid <> pg_backend_pid()"
            )

    def restart(self) -> None:
        assert isinstance(self._server, OwnServer)
        self._server.restart()


@contextmanager
def target(kind: str, folder: Path) -> Iterator[Target]:
    """Have a store while the body runs."""
    if kind == "sqlite":
        yield File(folder)
        return
    with running() as server:
        database = Database(server)
        try:
            yield database
        finally:
            server.drop(database.store)
