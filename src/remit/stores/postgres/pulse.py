"""Heartbeats on a connection of their own: they are written also while everything else of this process is busy."""

from typing import Final

import psycopg

from remit.errors import StoreError
from remit.ports import Beat
from remit.stores import forks
from remit.stores.postgres.address import STATEMENTS, Address, Connection
from remit.stores.queries import queries

_FILL: Final = queries()["worker_beat"].fill


class PostgresPulse:
    """Writes the heartbeats of one worker; gives up after so many seconds of `patience`."""

    def __init__(self, address: Address, workspace: str, patience: float) -> None:
        self._address = address
        self._workspace = workspace
        self._patience = patience
        wait = str(max(1, int(patience * 1000)))
        # A heartbeat need not survive the server, and whoever writes it does not wait for long.
        self._session = {
            "application_name": "remit-heartbeat",
            "synchronous_commit": "off",
            "lock_timeout": wait,
            "statement_timeout": wait,
        }
        self._connection: Connection | None = None
        self._elsewhere = ""
        forks.tell(self)

    def write(self, beat: Beat) -> None:
        if self._elsewhere:
            raise StoreError(self._elsewhere)
        row = _FILL({**beat._asdict(), "workspace": self._workspace})
        try:
            if self._connection is None:
                self._connection = self._address.connect(self._patience, **self._session)
            self._connection.execute(STATEMENTS["worker_beat"], row)
        except psycopg.Error as error:
            self.close()
            raise self._address.translated(error) from error

    def close(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()

    # -- forks ----------------------------------------------------------------------------------------

    def before_fork(self) -> None:
        """Do nothing: the connection stays with the parent."""

    def after_fork(self) -> None:
        """Do nothing."""

    def leave(self) -> None:
        forks.keep(self._connection)
        self._connection = None
        self._elsewhere = forks.ELSEWHERE.format(where=self._address.where)
