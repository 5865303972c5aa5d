"""Callers by the access keys of the store. What a key permits comes from its row, never from the request."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from secrets import token_hex
from typing import Final, NamedTuple

from remit.core.access import included, parse_key
from remit.core.events import Event
from remit.core.identity import AccessRow
from remit.core.times import SECOND
from remit.errors import StoreError
from remit.ports import AccessUse, Clock, Database, Decision
from remit.server.callers import Caller, TokenDoorkeeper, no_key
from remit.server.tenants import workspaces_of

KNOWN_FOR: Final = SECOND // 2  # a key that another process revoked is refused after this time
USED_EVERY: Final = 60 * SECOND  # between two writes of the last use
_MOST: Final = 10_000  # keys in memory

_log = logging.getLogger("remit")


class KnownAccess(NamedTuple):
    """An access key's row from the store, and its caller. `at` is when the row was read, in microseconds of the
    monotonic clock."""

    workspace: str
    row: AccessRow
    caller: Caller
    at: int


class StoreDoorkeeper:
    """The doorkeeper of a server's store. `token` is the doorkeeper for the token of this machine, if there is one.

    A row stays in memory for half a second, so every server refuses a revoked key within that time. A revocation in
    this process counts at once. The memory has ids, no keys.
    """

    def __init__(self, database: Database, clock: Clock, token: TokenDoorkeeper | None = None) -> None:
        self._database = database
        self._clock = clock
        self._token = token
        self._known: dict[str, KnownAccess] = {}
        self._used: dict[str, int] = {}
        self._heard: dict[str, Callable[[], None]] = {}
        self._writing: set[asyncio.Task[None]] = set()
        self._reading: dict[str, asyncio.Task[KnownAccess | None]] = {}

    async def caller(self, key: str) -> Caller:
        asked = parse_key(key)
        if asked is None and self._token is not None:
            return await self._token.caller(key)
        del key  # so that a traceback with local variables does not show it
        known = None if asked is None else await self._find_access(asked.id)
        if asked is None or known is None or not known.row.admits(asked.digest, self._clock.now()):
            raise no_key()
        self._note_use(known)
        return known.caller

    async def again(self, access: str) -> Caller:
        """Return the caller of the access key with this id, which was checked before, for the session of a browser; ""
        stands for the token of this machine. Raise `Unauthorised` if the key has been revoked or has expired since."""
        if access == "" and self._token is not None:
            return self._token.own
        known = await self._find_access(access)
        if known is None or not known.row.lives(self._clock.now()):
            raise no_key()
        self._note_use(known)
        return known.caller

    async def close(self) -> None:
        """Stop listening, and wait for the writes in flight."""
        for stop in self._heard.values():
            stop()
        self._heard.clear()
        reading = [*self._reading.values()]
        for one in reading:
            one.cancel()
        await asyncio.gather(*reading, return_exceptions=True)
        await asyncio.gather(*self._writing)

    async def _find_access(self, id_: str) -> KnownAccess | None:
        now = self._clock.ticks()
        known = self._known.get(id_)
        if known is not None and now - known.at < KNOWN_FOR:
            return known
        self._known.pop(id_, None)
        reading = self._reading.get(id_)
        if reading is None:  # all requests with this key that come meanwhile wait for the same read
            reading = self._reading[id_] = asyncio.create_task(self._read(id_, now), name="an access key")
            reading.add_done_callback(lambda done: self._end_read(id_, done))
        return await asyncio.shield(reading)

    def _end_read(self, id_: str, done: asyncio.Task[KnownAccess | None]) -> None:
        if self._reading.get(id_) is done:
            del self._reading[id_]

    async def _read(self, id_: str, now: int) -> KnownAccess | None:
        workspace = await self._database.opened_by(id_)
        if workspace is None:
            return None
        self._hear(workspace)  # before the read: a revocation after it must drop the row
        found = await self._database.store(workspace).read(lambda view: view.access(id_))
        if found is None:
            return None
        fresh = KnownAccess(workspace, found[0], _caller(workspace, found[0]), now)
        if self._reading.get(id_) is asyncio.current_task():  # otherwise it was revoked during the read
            if len(self._known) >= _MOST:
                self._known.clear()
            self._known[id_] = fresh
        return fresh

    def _hear(self, workspace: str) -> None:
        """From now on, drop the row of an access key of this workspace when this process revokes the key."""
        if workspace not in self._heard:
            self._heard[workspace] = self._database.store(workspace).subscribe(self._forget)

    def _forget(self, events: Sequence[Event]) -> None:
        for event in events:
            if event.kind == "access.revoked":
                id_ = str(event.data["id"])
                self._known.pop(id_, None)
                self._reading.pop(id_, None)  # a request that comes now must not get what was read before

    def _note_use(self, known: KnownAccess) -> None:
        now, last = self._clock.ticks(), self._used.get(known.row.id)
        if last is not None and now - last < USED_EVERY:
            return
        if len(self._used) >= _MOST:
            self._used.clear()
        self._used[known.row.id] = now
        writing = asyncio.create_task(self._write_use(known), name="the use of an access key")
        self._writing.add(writing)
        writing.add_done_callback(self._writing.discard)

    async def _write_use(self, known: KnownAccess) -> None:
        use = AccessUse(known.row.id, self._clock.now())
        try:
            await self._database.store(known.workspace).tx(f"use/{token_hex(16)}", lambda _: Decision(None, beat=use))
        except StoreError as error:  # the request must not fail for it
            _log.warning("the use of access %s was not written: %s", known.row.id, error)


def _caller(workspace: str, row: AccessRow) -> Caller:
    return Caller(row.id, workspace, included(row.scopes.split()), row.agent, row.limits, f"access:{row.id}")


async def has_access(database: Database, first: str, now: int) -> bool:
    """Whether any workspace of the database has an active access key at `now`, in microseconds since 1970. The
    workspace `first` is read before the others."""
    if await _has_active(database, first, now):
        return True
    for name in await workspaces_of(database):
        if await _has_active(database, name, now):
            return True
    return False


async def _has_active(database: Database, workspace: str, now: int) -> bool:
    rows = await database.store(workspace).read(lambda view: view.accesses())
    return any(row.lives(now) for row, _ in rows)
