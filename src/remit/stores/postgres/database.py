"""PostgreSQL: the same store for any number of processes on any number of machines."""

from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple, Self, TypeVar

from remit.core.events import SealKey
from remit.core.placement import Membership, MoveMark
from remit.errors import NewerStore, StoreError
from remit.ports import NOTHING, Decide, Decided, Fault, Sink, View, Wants, no_fault
from remit.stores import forks
from remit.stores.journal import Sinks
from remit.stores.queries import KnownSchema
from remit.stores.threads import OneLoop

try:
    import psycopg

    from remit.stores.postgres.address import STATEMENTS, Address, Connection
    from remit.stores.postgres.dispatcher import Procrastinate
    from remit.stores.postgres.listening import Notices, PostgresWords
    from remit.stores.postgres.reader import AT_ONCE, Reader
    from remit.stores.postgres.schema import (
        advice,
        differences,
        is_confined,
        may_compare,
        newest,
        refuse_shared_sessions,
        set_up,
    )
    from remit.stores.postgres.writer import BatchWriter, PostgresPulse
except ImportError as missing:  # pragma: no cover - in a process of its own in the tests
    raise StoreError(f"a store on PostgreSQL needs more packages ({missing}); install remit[postgres]") from missing

if TYPE_CHECKING:
    from remit.stores.postgres.contents import PostgresContents
    from remit.stores.postgres.moving import PostgresEnd

T = TypeVar("T")


class PostgresDatabase:
    """Owns the connections to one database and returns stores bound to a workspace.

    `patience` is how many seconds a lost server is waited for. Every `poll` seconds listeners are woken, in case a
    notification was missed.
    """

    lasting = True

    def __init__(
        self,
        conninfo: str,
        *,
        fault: Fault = no_fault,
        migrate: bool = True,
        pool_size: int = 1,
        patience: float = 10.0,
        poll: float = 0.5,
    ) -> None:
        self._address = Address(conninfo)
        self.where = self._address.where
        self._patience = patience
        self._sinks = Sinks()
        self._known = KnownSchema(self.where, newest())
        self._reader = Reader(self._address, pool_size, patience, self._known)
        self._browser = Reader(self._address, AT_ONCE, patience, self._known, long=True)
        self._writer = BatchWriter(self._address, self._sinks.feed, self._reader.learn, fault, patience, self._known)
        self._notices = Notices(self._address, lambda: self._writer.backend, poll, self._look)
        try:
            connection = self._writer.open().connection
            refuse_shared_sessions(connection, self._address)
            set_up(connection, self.where, migrate=migrate)
            self._confined = is_confined(connection)
            self._reader.confined = self._browser.confined = self._writer.confined = self._confined
        except psycopg.Error as error:
            self.close()
            raise self._address.translated(error) from error
        except BaseException:
            self.close()
            raise
        forks.tell(self)

    def store(self, workspace: str) -> "PostgresStore":
        readers = Readers(self._reader, self._browser)
        return PostgresStore(workspace, self._writer, readers, self._notices, self._sinks)

    def contents(self, workspace: str) -> "PostgresContents":
        from remit.stores.postgres.contents import PostgresContents  # noqa: PLC0415 - few programs have artifacts

        return PostgresContents(self._address, workspace)

    def dispatcher(self, workspace: str) -> Procrastinate:
        return Procrastinate(self._notices, workspace)

    def words(self, workspace: str) -> PostgresWords:
        return PostgresWords(self._notices, workspace)

    def pulse(self, workspace: str) -> PostgresPulse:
        return PostgresPulse(self._address, workspace, self._patience)

    def server_time(self) -> int:
        return self._reader.rows("server_time")[0][0]

    def workspaces(self) -> list[str]:
        return [row[0] for row in self._reader.rows("workspaces_apart" if self._confined else "workspaces")]

    async def opened_by(self, access: str) -> str | None:
        rows = await self._reader.ask("opens_apart" if self._confined else "opens", (access,))
        return rows[0][0] if len(rows) == 1 else None

    # -- several databases ----------------------------------------------------------------------------

    def membership(self) -> Membership | None:
        rows = self._reader.rows("member_of")
        return Membership(*rows[0]) if rows else None

    def placed(self, workspace: str) -> str | None:
        rows = self._reader.rows("place_of", (workspace,))
        return rows[0][0] if rows else None

    def has(self, workspace: str) -> bool:
        return self._reader.looked(workspace, lambda view: view.head().seq) > 0

    def marks(self) -> dict[str, MoveMark]:
        return {name: MoveMark(*mark) for name, *mark in self._reader.rows("moving_all")}

    def end(self) -> "PostgresEnd":
        from remit.stores.postgres.moving import PostgresEnd  # noqa: PLC0415 - few programs have several databases

        return PostgresEnd(self._address, self._patience)

    def secure(self, role: str) -> int:
        """Turn on row-level security, and let this role serve the store: it sees only the rows of the workspaces that
        its transaction names. Return the number of tables. Only the owner of the tables may do so."""
        try:
            with self._address.connect() as connection:
                return connection.execute(STATEMENTS["secure"], (role,)).fetchall()[0][0]
        except psycopg.Error as error:
            raise self._address.translated(error) from error

    @property
    def key(self) -> SealKey | None:
        return self._writer.key

    def seal_with(self, key: SealKey | None) -> None:
        """Sign everything that is written from now on with this key."""
        self._writer.key = key

    def faulty(self) -> list[str]:
        try:
            return [*(row[0] for row in self._reader.rows("faults")), *self._compared()]
        except StoreError as error:
            return [str(error)]

    def remarks(self) -> list[str]:
        try:
            with self._address.connect() as connection:
                can = may_compare(connection)
        except psycopg.Error as error:
            return [str(self._address.translated(error))]
        sentence = "the schema was not compared with the migrations: this user may not make one to compare it with"
        return [] if can else [sentence]

    def advice(self) -> list[str]:
        try:
            with self._address.connect() as connection:
                return advice(connection)
        except psycopg.Error as error:
            return [str(self._address.translated(error))]

    def _look(self, connection: Connection) -> None:
        """Check from time to time whether a newer remit has migrated the schema."""
        with suppress(NewerStore):  # every later read or write raises it
            for row in connection.execute(STATEMENTS["version"]).fetchall():
                self._known.saw(row[0])

    def _compared(self) -> list[str]:
        try:
            with self._address.connect() as connection:
                return differences(connection) if may_compare(connection) else []
        except psycopg.Error as error:
            raise self._address.translated(error) from error

    def before_fork(self) -> None:
        """Do nothing: connections stay with the parent, and the server does not depend on processes."""

    def after_fork(self) -> None:
        """Do nothing."""

    def leave(self) -> None:
        why = forks.ELSEWHERE.format(where=self.where)
        self._notices.leave()
        self._writer.leave(why)
        self._reader.leave(why)
        self._browser.leave(why)

    def close(self) -> None:
        forks.no_more(self)
        self._notices.close()
        self._writer.close()
        self._browser.close()
        self._reader.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class Readers(NamedTuple):
    """The reader of short reads and that of long ones."""

    short: Reader
    long: Reader


class PostgresStore:
    """One workspace's part of the database."""

    __slots__ = ("_notices", "_one", "_readers", "_sinks", "_writer", "workspace")

    def __init__(self, workspace: str, writer: BatchWriter, readers: Readers, notices: Notices, sinks: Sinks) -> None:
        self.workspace = workspace
        self._writer = writer
        self._readers = readers
        self._notices = notices
        self._sinks = sinks
        self._one = OneLoop()  # the database accepts any loop; an engine on it belongs to one

    async def tx(self, op: str, decide: Decide[T], wants: Wants = NOTHING) -> Decided[T]:
        self._one.enter()
        return await self._writer.submit(self.workspace, op, decide, wants)

    async def read(self, look: Callable[[View], T]) -> T:
        return await self._readers.short.look(self.workspace, look)

    async def browse(self, look: Callable[[View], T]) -> T:
        return await self._readers.long.look(self.workspace, look)

    def subscribe(self, sink: Sink) -> Callable[[], None]:
        return self._sinks.add(self.workspace, sink)

    def listen(self, ring: Callable[[], None]) -> Callable[[], None]:
        return self._notices.add(self.workspace, ring)
