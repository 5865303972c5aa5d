"""PostgreSQL: the same store for any number of processes on any number of machines."""

from collections.abc import Callable
from typing import TypeVar

from remit.errors import StoreError
from remit.ports import NOTHING, Decide, Decided, Fault, Sink, View, Wants, no_fault
from remit.stores.sinks import Sinks

try:
    import psycopg

    from remit.stores.postgres.address import Address
    from remit.stores.postgres.dispatcher import Procrastinate
    from remit.stores.postgres.notices import Notices
    from remit.stores.postgres.reader import Reader
    from remit.stores.postgres.schema import set_up
    from remit.stores.postgres.writer import BatchWriter
except ImportError as missing:  # pragma: no cover - in a process of its own in the tests
    raise StoreError(f"a store on PostgreSQL needs more packages ({missing}); install remit[postgres]") from missing

T = TypeVar("T")


class PostgresDatabase:
    """Opens, migrates and owns the connections; hands out stores bound to a workspace.

    `patience` is how many seconds a lost server is waited for, `poll` how often others' writes are looked for should
    their notice have been missed.
    """

    lasting = True

    def __init__(
        self,
        conninfo: str,
        *,
        fault: Fault = no_fault,
        migrate: bool = True,
        pool_size: int = 4,
        patience: float = 10.0,
        poll: float = 0.5,
    ) -> None:
        self._address = Address(conninfo)
        self.where = self._address.where
        self._sinks = Sinks()
        self._reading = Reader(self._address, pool_size, patience)
        self._writing = BatchWriter(self._address, self._sinks.feed, self._reading.learn, fault, patience)
        self._notices = Notices(self._address, lambda: self._writing.backend, poll)
        try:
            set_up(self._writing.open().connection, self.where, migrate=migrate)
        except psycopg.Error as error:
            self.close()
            raise self._address.translated(error) from error
        except BaseException:
            self.close()
            raise

    def store(self, workspace: str) -> "PostgresStore":
        return PostgresStore(workspace, self._writing, self._reading, self._notices, self._sinks)

    def dispatcher(self, workspace: str) -> Procrastinate:
        return Procrastinate(self._address, workspace)

    def workspaces(self) -> list[str]:
        return [row[0] for row in self._reading.rows("workspaces")]

    def faulty(self) -> list[str]:
        try:
            return [row[0] for row in self._reading.rows("faults")]
        except StoreError as error:
            return [str(error)]

    def close(self) -> None:
        self._notices.close()
        self._writing.close()
        self._reading.close()


class PostgresStore:
    """One workspace's part of the database."""

    __slots__ = ("_notices", "_reading", "_sinks", "_writing", "workspace")

    def __init__(self, workspace: str, writing: BatchWriter, reading: Reader, notices: Notices, sinks: Sinks) -> None:
        self.workspace = workspace
        self._writing = writing
        self._reading = reading
        self._notices = notices
        self._sinks = sinks

    async def tx(self, op: str, decide: Decide[T], wants: Wants = NOTHING) -> T:
        return (await self._writing.submit(self.workspace, op, decide, wants))[0]

    async def transact(self, op: str, decide: Decide[T], wants: Wants = NOTHING) -> Decided[T]:
        return Decided(*await self._writing.submit(self.workspace, op, decide, wants))

    async def read(self, look: Callable[[View], T]) -> T:
        return await self._reading.look(self.workspace, look)

    def subscribe(self, sink: Sink) -> Callable[[], None]:
        return self._sinks.add(self.workspace, sink)

    def listen(self, ring: Callable[[], None]) -> Callable[[], None]:
        return self._notices.add(self.workspace, ring)
