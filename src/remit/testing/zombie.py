"""A process that others consider dead while its code runs on: it writes no heartbeat, receives nothing, and claims to
be on another machine.

`Runtime(Zombie.database("team.db"), system=System(clock=Zombie.clock(clock)))` is such a process. Give it work, let
time pass for the others, and check that nothing it does afterwards counts.
"""

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, TypeVar

from remit.ports import (
    NOTHING,
    Clock,
    Database,
    Decide,
    Decided,
    Decision,
    Dispatcher,
    Pulse,
    Store,
    Timer,
    View,
    Wants,
)
from remit.stores.opening import database_at

T = TypeVar("T")


class _NeverFires:
    """A timer of a stopped process."""

    def cancel(self) -> None:
        """Do nothing: the timer never fires."""


class StoppedClock:
    """A clock that returns the time and fires no timers."""

    def __init__(self, clock: Clock) -> None:
        self.now = clock.now
        self.ticks = clock.ticks

    def call_later(self, seconds: float, call: Callable[[], None]) -> Timer:
        return _NeverFires()


class DeafStore:
    """A store that does not report what others have written."""

    def __init__(self, store: Store, unheard: list[Callable[[], None]]) -> None:
        self._unheard = unheard
        self._store = store
        self.workspace = store.workspace
        self.read = store.read
        self.browse = store.browse
        self.subscribe = store.subscribe

    def tx(self, op: str, decide: Decide[T], wants: Wants = NOTHING) -> Awaitable[T]:
        return self._store.tx(op, _elsewhere(decide), wants)

    def transact(self, op: str, decide: Decide[T], wants: Wants = NOTHING) -> Awaitable[Decided[T]]:
        return self._store.transact(op, _elsewhere(decide), wants)

    def listen(self, ring: Callable[[], None]) -> Callable[[], None]:
        self._unheard.append(ring)

        def stop() -> None:
            if ring in self._unheard:
                self._unheard.remove(ring)

        return stop


def _elsewhere(decide: Decide[T]) -> Decide[T]:
    """Return a decision whose heartbeat claims another machine: on this one, every process could see that it is
    alive."""

    def decided(view: View) -> Decision[T]:
        decision = decide(view)
        beat = decision.beat
        return decision if beat is None else decision._replace(beat=beat._replace(home="another machine"))

    return decided


class DeafDatabase:
    """A database whose stores report nothing until `wake`, when the process notices what others have done."""

    def __init__(self, database: Database) -> None:
        self._unheard: list[Callable[[], None]] = []
        self._database = database
        self.lasting = database.lasting
        self.server_time = database.server_time
        self.workspaces = database.workspaces
        self.key = database.key
        self.faulty = database.faulty
        self.remarks = database.remarks
        self.advice = database.advice
        self.close = database.close

    def store(self, workspace: str) -> Any:
        return DeafStore(self._database.store(workspace), self._unheard)

    def wake(self) -> None:
        """Notify all listeners."""
        for ring in list(self._unheard):
            ring()

    def dispatcher(self, workspace: str) -> Dispatcher | None:
        return None

    def pulse(self, workspace: str) -> Pulse | None:
        return None


class Zombie:
    """The parts of a runtime that all others consider dead."""

    @staticmethod
    def database(store: str | Path) -> DeafDatabase:
        """Return a store that reports nothing to this process."""
        return DeafDatabase(database_at(store))

    @staticmethod
    def clock(clock: Clock) -> StoppedClock:
        """Return a clock that follows another but fires no timers: no heartbeat is written."""
        return StoppedClock(clock)
