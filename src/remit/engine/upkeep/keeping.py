"""What a worker does beside its work so that a store does not grow for ever: it removes the entries that have expired,
prunes, and cuts the journal. In small steps and in a task of its own, so that nothing waits for it."""

from __future__ import annotations

import asyncio
import logging
from typing import Final

from remit.core.times import SECOND
from remit.engine.ground import Ground
from remit.engine.settings import Serving
from remit.engine.sharing.entries import Entries
from remit.engine.upkeep.cutting import cut
from remit.engine.upkeep.prune import Pruning, prune
from remit.errors import NewerStore, StoreError

_CLEANUP_EVERY: Final = 60 * SECOND
_CUT_ALL: Final = 24  # prunes, after which all old events are looked at again

_log = logging.getLogger("remit")


class Upkeep:
    """One in every worker. A process that is here for a moment does none of it."""

    def __init__(self, ground: Ground, serving: Serving) -> None:
        self._ground = ground
        self._entries = Entries(ground)
        self._keep = serving.keep
        self._prune_every = round(serving.pace.prune * SECOND)
        self._cleaned = self._pruned = ground.clock.ticks()
        self._rounds = self._cut_upto = 0
        self._wanted = asyncio.Event()

    def look(self) -> None:
        """See to it that what is due is done; this is called more often than that."""
        now = self._ground.clock.ticks()
        if now - self._cleaned >= _CLEANUP_EVERY or self._prunes(now):
            self._wanted.set()

    async def serve(self) -> None:
        """Remove expired entries and prune, each when `look` has found it due, until cancelled."""
        while True:
            await self._wanted.wait()
            self._wanted.clear()
            try:
                await self._do()
            except NewerStore:  # which whoever serves tells
                return
            except StoreError as error:
                _log.warning("what is old could not be deleted, which is tried again later: %s", error)
            except Exception as error:  # noqa: BLE001 - the work goes on, whatever is wrong with an old record
                _log.error("deleting what is old failed, which is tried again later: %r", error, exc_info=error)

    async def _do(self) -> None:
        now = self._ground.clock.ticks()
        if now - self._cleaned >= _CLEANUP_EVERY:
            self._cleaned = now
            await self._entries.cleanup()
        if self._keep is not None and self._prunes(now):
            self._pruned = now
            before = self._ground.clock.now() - self._keep
            await prune(self._ground, Pruning(before, thorough=False))
            # What became old since the last time, and now and then all that was needed until then.
            self._cut_upto = await cut(self._ground, before, self._cut_upto if self._rounds % _CUT_ALL else 0)
            self._rounds += 1

    def _prunes(self, now: int) -> bool:
        return self._keep is not None and now - self._pruned >= self._prune_every
