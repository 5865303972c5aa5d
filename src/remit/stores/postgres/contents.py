"""The contents of artifacts in PostgreSQL: rows of up to 1 MiB, written in one transaction."""

import hashlib
import tempfile
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from typing import IO, Final

import psycopg

from remit.ports.contents import PART, Kept
from remit.stores.postgres.address import CONFINED, STATEMENTS, Address, Connection, lock_key

_NEAR: Final = 1_048_576  # bytes of a draft that stay in memory; the rest is in a file without a name


class PostgresContents:
    """The contents of one workspace.

    A process that saves has a shared advisory lock until its event is committed, and a process that removes has an
    exclusive one. So no content is removed between the moment when it is stored and the moment when an event refers to
    it. The server releases the locks of a process that dies.
    """

    def __init__(self, address: Address, workspace: str) -> None:
        self._address = address
        self._workspace = workspace

    def begin(self) -> "PostgresSaving":
        return PostgresSaving(self._address, self._workspace)

    def open(self, digest: str) -> "PostgresReader | None":
        connection = _connected(self._address, self._workspace)
        reader = PostgresReader(self._address, connection, self._workspace, digest)
        if reader.has_next():
            return reader
        reader.close()
        return None

    def stored(self) -> Iterator[Kept]:
        with _store_errors(self._address), _connected(self._address, self._workspace) as connection:
            rows = connection.execute(STATEMENTS["contents"], (self._workspace,)).fetchall()
        return iter([Kept(digest, int(size)) for digest, size in rows])

    def unfinished(self) -> int:
        """Return 0: an unfinished content is a transaction that the server rolls back."""
        return 0

    def clearing(self, *, make: bool = False) -> "PostgresClearing | None":
        connection = _connected(self._address, self._workspace)
        try:
            with _store_errors(self._address):
                rows = connection.execute(STATEMENTS["contents_lock_alone"], (_key(self._workspace),)).fetchall()
        except BaseException:
            connection.close()
            raise
        if rows[0][0]:
            return PostgresClearing(self._address, connection, self._workspace)
        connection.close()
        return None


class PostgresSaving:
    """A content that is being written: to a file without a name, and from there to the server, so that no transaction
    stays open while the content is being made."""

    def __init__(self, address: Address, workspace: str) -> None:
        self._address = address
        self._workspace = workspace
        self._connection: Connection | None = None
        self._draft: IO[bytes] = tempfile.SpooledTemporaryFile(_NEAR)  # noqa: SIM115 - `close` closes it
        self._sum = hashlib.sha256()
        self._size = 0

    def write(self, data: bytes) -> int:
        self._draft.write(data)
        self._sum.update(data)
        self._size += len(data)
        return self._size

    def keep(self) -> Kept:
        kept = Kept(f"sha256:{self._sum.hexdigest()}", self._size)
        self._connection = connection = _connected(self._address, self._workspace)
        with _store_errors(self._address):
            connection.execute(STATEMENTS["contents_lock"], (_key(self._workspace),))
            self._draft.seek(0)
            with connection.transaction():
                part, data = 0, self._draft.read(PART)
                while data or not part:  # an empty content has one empty part
                    connection.execute(STATEMENTS["content_add"], (self._workspace, kept.digest, part, data))
                    part, data = part + 1, self._draft.read(PART)
        return kept

    def close(self) -> None:
        self._draft.close()
        if self._connection is not None:
            self._connection.close()


class PostgresReader:
    """An open content: its parts, one by one."""

    def __init__(self, address: Address, connection: Connection, workspace: str, digest: str) -> None:
        self._address = address
        self._connection = connection
        self._about = (workspace, digest)
        self._part = 0
        self._next: bytes | None = None

    def has_next(self) -> bool:
        """Whether there is another part, which is read ahead."""
        if self._next is None:
            with _store_errors(self._address):
                row = self._connection.execute(STATEMENTS["content"], (*self._about, self._part)).fetchone()
            self._next = None if row is None else bytes(row[0])
            self._part += 1
        return self._next is not None

    def read(self) -> bytes:
        data = self._next if self.has_next() else None
        self._next = None
        return data or b""

    def close(self) -> None:
        self._connection.close()


class PostgresClearing:
    """The exclusive right to remove contents."""

    def __init__(self, address: Address, connection: Connection, workspace: str) -> None:
        self._address = address
        self._connection = connection
        self._workspace = workspace

    def remove(self, digest: str) -> None:
        with _store_errors(self._address):
            self._connection.execute(STATEMENTS["content_drop"], (self._workspace, digest))

    def sweep(self) -> int:
        """Return 0: the server has no drafts."""
        return 0

    def close(self) -> None:
        self._connection.close()


def _key(workspace: str) -> int:
    return lock_key(f"contents of {workspace}")


def _connected(address: Address, workspace: str) -> Connection:
    with _store_errors(address):
        return address.connect(0.0, **{CONFINED: workspace})


@contextmanager
def _store_errors(address: Address) -> Generator[None]:
    """Raise errors of the server as `StoreError`."""
    try:
        yield
    except psycopg.Error as error:
        raise address.translated(error) from error
