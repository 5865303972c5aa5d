"""How procrastinate reaches the server: through the connection that listens."""

import asyncio
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Any, LiteralString

from procrastinate.connector import BaseAsyncConnector, Notify
from procrastinate.exceptions import NoResult
from procrastinate.sync_psycopg_connector import wrap_exceptions
from psycopg.rows import dict_row

from remit.stores.postgres.address import Connection
from remit.stores.postgres.ear import Ear

_Row = dict[str, Any]


class Connector(BaseAsyncConnector):
    """Has procrastinate's statements run on an ear's thread; procrastinate alone would open five connections."""

    def __init__(self, ear: Ear) -> None:
        self._ear = ear

    def get_sync_connector(self) -> "Connector":
        return self

    async def open_async(self, pool: object = None) -> None:
        """Find out whether the server can be reached."""
        await self.execute_query_async("SELECT 1")

    async def close_async(self) -> None:
        """Close nothing: the connection is not ours."""

    async def execute_query_async(self, query: LiteralString, **arguments: Any) -> None:
        await self._ask(lambda connection: connection.execute(query, arguments) and None)

    async def execute_query_one_async(self, query: LiteralString, **arguments: Any) -> _Row:
        rows = await self.execute_query_all_async(query, **arguments)
        if not rows:
            raise NoResult
        return rows[0]

    async def execute_query_all_async(self, query: LiteralString, **arguments: Any) -> list[_Row]:
        def rows(connection: Connection) -> list[_Row]:
            with connection.cursor(row_factory=dict_row) as cursor:
                return cursor.execute(query, arguments).fetchall()

        return await self._ask(rows)

    async def listen_notify(self, on_notification: Notify, channels: Iterable[str]) -> None:
        """Pass on what is heard, until cancelled."""
        loop = asyncio.get_running_loop()
        heard: asyncio.Queue[tuple[str, str]] = asyncio.Queue()

        def hear(channel: str, text: str) -> bool:
            with suppress(RuntimeError):  # the loop has closed
                loop.call_soon_threadsafe(heard.put_nowait, (channel, text))
            return False

        names = tuple(channels)
        for name in names:
            self._ear.hear(name, lambda text, _, name=name: hear(name, text))
        try:
            while True:
                channel, payload = await heard.get()
                await on_notification(channel=channel, payload=payload)
        finally:
            for name in names:
                self._ear.hear_no_more(name)

    async def _ask(self, use: Callable[[Connection], Any]) -> Any:
        with wrap_exceptions():
            return await asyncio.wrap_future(self._ear.ask(use))
