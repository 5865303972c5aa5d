"""How much of a server one caller gets: a rate for each key and each workspace, and turns that workspaces share.

A workspace that is alone may use all turns at once. As soon as others ask for some, and for a second after, each gets
its share, and those that wait are let in one workspace after the other: a burst of one workspace delays another by some
turns, not by the burst.
"""

from __future__ import annotations

import asyncio
import math
from collections import OrderedDict, deque
from collections.abc import Callable
from time import monotonic
from typing import Final, NamedTuple

from remit.errors import TooMany

_KEPT: Final = 10_000  # buckets
_RECENT: Final = 1.0  # seconds in which a workspace counts as there after its last request


class RateLimits(NamedTuple):
    """Requests per second of one key and of one workspace; a burst may have twice as many. `turns` is the number of
    requests that are handled at the same time. A workspace may use all of them while no other has requests, and at most
    `beside` otherwise. `waiting` is the number of requests of one workspace that may wait for a turn."""

    access: float = 2_000.0
    workspace: float = 5_000.0
    turns: int = 64
    beside: int = 4
    least: int = 4  # turns of a workspace, however many others there are
    waiting: int = 1_000


USUAL_RATES: Final = RateLimits()


class TokenBucket:
    """A token bucket: `rate` tokens a second, with a burst of twice as many. `take` takes a token and returns 0; if the
    bucket is empty, it returns the seconds until the next token. `now` is in seconds."""

    __slots__ = ("_burst", "_last", "_left", "_rate")

    def __init__(self, rate: float, now: float) -> None:
        self._rate = rate
        self._burst = max(1.0, 2 * rate)
        self._left = self._burst
        self._last = now

    def take(self, now: float) -> float:
        self._left = min(self._burst, self._left + (now - self._last) * self._rate)
        self._last = now
        if self._left < 1:
            return (1 - self._left) / self._rate
        self._left -= 1
        return 0.0


class RequestRates:
    """The token buckets of all access keys and workspaces, at most 10,000. The least recently used one is dropped
    first: after two seconds without requests, a bucket is as full as a new one."""

    def __init__(self, limits: RateLimits, ticks: Callable[[], float]) -> None:
        self._limits = limits
        self._ticks = ticks
        self._buckets: OrderedDict[tuple[str, str, str], TokenBucket] = OrderedDict()

    def admit(self, access: str, workspace: str) -> None:
        """Count a request of this access key and its workspace. Raise `TooMany` if either has made too many."""
        now = self._ticks()
        for name, rate in (
            (("key", access, workspace), self._limits.access),
            (("workspace", "", workspace), self._limits.workspace),
        ):
            seconds = self._bucket(name, rate, now).take(now)
            if seconds:
                what = name[0]
                sentence = f"this {what} makes more than {rate:g} requests a second; wait, then try again"
                raise TooMany(sentence, seconds=max(1, math.ceil(seconds)))

    def _bucket(self, name: tuple[str, str, str], rate: float, now: float) -> TokenBucket:
        found = self._buckets.get(name)
        if found is None:
            found = self._buckets[name] = TokenBucket(rate, now)
            if len(self._buckets) > _KEPT:
                self._buckets.popitem(last=False)
        else:
            self._buckets.move_to_end(name)
        return found


class FairTurn:
    """One turn, as a context manager: entering it waits until the turn starts. Every request has one, so it is a class:
    a generator costs more."""

    __slots__ = ("_turns", "_workspace")

    def __init__(self, turns: FairTurns, workspace: str) -> None:
        self._turns = turns
        self._workspace = workspace

    async def __aenter__(self) -> None:
        await self._turns.begin(self._workspace)

    async def __aexit__(self, *_error: object) -> None:
        self._turns.end(self._workspace)


class FairTurns:
    """The limited number of requests that are handled at the same time, with a share of it for each workspace."""

    def __init__(self, limits: RateLimits = USUAL_RATES, ticks: Callable[[], float] = monotonic) -> None:
        self._limits = limits
        self._ticks = ticks
        self._seen: OrderedDict[str, float] = OrderedDict()  # workspaces by their last request, the latest last
        self._taken: dict[str, int] = {}
        self._busy = 0
        self._waiting: OrderedDict[str, deque[asyncio.Future[None]]] = OrderedDict()

    def turn(self, workspace: str) -> FairTurn:
        """Return a turn of this workspace: a context manager that waits until the request may run."""
        return FairTurn(self, workspace)

    async def begin(self, workspace: str) -> None:
        """Wait until a request of this workspace may run, and count it as running until `end`. Raise `TooMany` if too
        many requests of the workspace wait already."""
        self._seen[workspace] = self._ticks()
        self._seen.move_to_end(workspace)
        if workspace not in self._waiting and self._has_room(workspace):
            self._take(workspace)  # at once, and not in the next turn of the loop: others that wait have their share
        else:
            await self._wait(workspace)

    def _share(self) -> int:
        """Return the number of turns that a workspace may have now: all of them, or its share if other workspaces have
        requests too."""
        limits, there = self._limits, self._there()
        return limits.turns if there == 1 else max(limits.least, min(limits.beside, limits.turns // there))

    def _there(self) -> int:
        """Return the number of workspaces that have a turn, wait for one, or asked for one within the last second."""
        recent = self._ticks() - _RECENT
        while len(self._seen) > 1:
            first, at = next(iter(self._seen.items()))
            if at > recent or first in self._taken or first in self._waiting:
                break
            del self._seen[first]
        return len(self._seen)

    def _has_room(self, workspace: str) -> bool:
        return self._busy < self._limits.turns and self._taken.get(workspace, 0) < self._share()

    def _take(self, workspace: str) -> None:
        self._busy += 1
        self._taken[workspace] = self._taken.get(workspace, 0) + 1

    def end(self, workspace: str) -> None:
        """Release a turn."""
        self._busy -= 1
        left = self._taken[workspace] - 1
        if left:
            self._taken[workspace] = left
        else:
            del self._taken[workspace]
        self._let_in()

    async def _wait(self, workspace: str) -> None:
        line = self._waiting.setdefault(workspace, deque())
        if len(line) >= self._limits.waiting:
            raise TooMany("too many requests of this workspace wait already; try again later")
        turn = asyncio.get_running_loop().create_future()
        line.append(turn)
        self._let_in()
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():  # it was let in at the same moment
                self.end(workspace)
            else:
                self._leave(workspace, turn)
            raise

    def _leave(self, workspace: str, turn: asyncio.Future[None]) -> None:
        line = self._waiting.get(workspace)
        if line is not None and turn in line:
            line.remove(turn)
            if not line:
                del self._waiting[workspace]
        self._let_in()

    def _let_in(self) -> None:
        """Start waiting turns while slots are free: one of each workspace in rotation, up to its share."""
        passed = 0
        while self._waiting and self._busy < self._limits.turns and passed < len(self._waiting):
            workspace, line = next(iter(self._waiting.items()))
            if not self._has_room(workspace):
                self._waiting.move_to_end(workspace)
                passed += 1
                continue
            passed = 0
            turn = line.popleft()
            if line:
                self._waiting.move_to_end(workspace)
            else:
                del self._waiting[workspace]
            if not turn.done():
                self._take(workspace)
                turn.set_result(None)
