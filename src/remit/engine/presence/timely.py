"""A wrong clock is noticed before anything is written by it: one worker that is a day ahead fails a whole queue."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

from remit.core.times import iso
from remit.engine.ground import StoreAround
from remit.engine.system import TOLERANCE, SystemClock
from remit.errors import StoreError
from remit.ports import NOTHING, Decide, Decided, Store, View, Wants

T = TypeVar("T")


class TimelyStore(StoreAround):
    """A store that is written to only when this machine's clock has been compared with another's: the server's, or
    that of whoever wrote last, which cannot have been in the future."""

    __slots__ = ("_clock", "_right", "_server_time")

    def __init__(self, store: Store, clock: SystemClock, server_time: Callable[[], int | None]) -> None:
        super().__init__(store)
        self._clock = clock
        self._server_time = server_time
        self._right = False

    def tx(self, op: str, decide: Decide[T], wants: Wants = NOTHING) -> Awaitable[T]:
        return self._store.tx(op, decide, wants) if self._right else self._first_tx(op, decide, wants)

    def transact(self, op: str, decide: Decide[T], wants: Wants = NOTHING) -> Awaitable[Decided[T]]:
        return self._store.transact(op, decide, wants) if self._right else self._first_transact(op, decide, wants)

    async def _first_tx(self, op: str, decide: Decide[T], wants: Wants) -> T:
        await self._check()
        return await self._store.tx(op, decide, wants)

    async def _first_transact(self, op: str, decide: Decide[T], wants: Wants) -> Decided[T]:
        await self._check()
        return await self._store.transact(op, decide, wants)

    async def _check(self) -> None:
        self._clock.read_anew()  # it may have been set right since the last time that this was refused
        server = await asyncio.to_thread(self._server_time)
        now = self._clock.now()
        if server is not None:
            if abs(now - server) > TOLERANCE:
                raise _wrong(now, f"the server's clock says {_shown(server)}")
        elif (last := await self._store.read(_last)) - now > TOLERANCE:
            raise _wrong(now, f"the last thing in the store happened at {_shown(last)}")
        self._clock.trust()
        self._right = True


def _last(view: View) -> int:
    """Tell when the newest event of the journal happened; 0 if none did."""
    event = view.event(view.head().seq)
    return 0 if event is None else event.at


def _wrong(now: int, other: str) -> StoreError:
    return StoreError(
        f"this machine's clock says {_shown(now)}, but {other}; by a wrong clock tasks fail or wait for ever, so "
        "nothing is written: set the clock, or say REMIT_CHECK_CLOCK=no or System(check_clock=False) if it is the "
        "other that is wrong"
    )


def _shown(at: int) -> str:
    return f"{iso(at)[:19]}Z"
