"""The book: the leases as they are after the events that a decision has so far."""

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple, TypeAlias

from remit.core.events import Unsealed
from remit.core.money.leases import Lease, LeaseMove, Path, Unit, called, first_line, spelled
from remit.core.money.moves import MOVES, closed_moves, moves, opened_by

Find: TypeAlias = Callable[[str, Unit], Lease | None]


class Short(NamedTuple):
    """A lease that lacks what is wanted. `for_good` says that waiting for what others hold of it would not help."""

    lease: Lease
    wanted: int
    for_good: bool


class Book:
    """The leases as they are after the events that a decision has so far: later steps see the earlier ones."""

    __slots__ = ("_find", "_gone", "_known", "_noted")

    def __init__(self, find: Find) -> None:
        self._find = find
        self._known: dict[tuple[str, Unit], Lease] = {}
        self._gone: set[tuple[str, Unit]] = set()
        self._noted: list[Unsealed] = []

    def lease(self, id_: str, unit: Unit) -> Lease | None:
        key = (id_, unit)
        if key in self._gone:
            return None
        known = self._known.get(key)
        if known is None:
            known = self._find(id_, unit)
            if known is not None:
                self._known[key] = known
        return known

    def note(self, event: Unsealed) -> None:
        """Take in what an event does; once, however often it is noted."""
        if event.kind not in MOVES or any(one is event for one in self._noted):
            return
        self._noted.append(event)
        for opened in opened_by(event):
            self._known[opened.id, opened.unit] = opened
        self.move(moves(event))

    def moved_by(self, event: Unsealed) -> None:
        """Note that what an event does is in the book already."""
        self._noted.append(event)

    def move(self, moves_: Iterable[LeaseMove]) -> None:
        for move in moves_:
            lease = self.lease(move.lease, move.unit)
            if lease is not None:
                self._known[move.lease, move.unit] = lease.moved(move)

    def shorts(self, path: Path, unit: Unit, wanted: int, own: int = 0) -> list[Short]:
        """List the leases of a path's first line that lack this; `own` is what whoever asks holds itself."""
        found: list[Short] = []
        for id_ in first_line(path):
            lease = self.lease(id_, unit)
            if lease is None or (lease.available >= wanted and lease.state != "frozen"):
                continue
            never = lease.state == "frozen" or wanted > lease.granted - lease.spent - own
            found.append(Short(lease, wanted, never))
        return found

    def charge(self, path: Path, unit: Unit, amount: int) -> list[list[Any]]:
        """Tell from which leases a bill is taken that nothing is held for: what the line has, then what the money above
        it has. What is nowhere is the overrun of the last one."""
        steps: list[list[Any]] = []
        rest = amount
        for line in path:
            lacked = rest
            for id_ in line:
                lease = self.lease(id_, unit)
                if lease is None:
                    continue
                taken = min(lease.available, rest)
                lacked = rest - taken
                steps.append([id_, taken, lacked])
            rest = lacked
            if not rest:
                break
        return steps

    def close(self, id_: str, unit: Unit) -> list[list[Any]]:
        """Close a lease whose owner has ended, and those above that only waited for it; tells what closes, in order."""
        closed: list[list[Any]] = []
        waiting = [id_]
        while waiting:
            lease = self.lease(waiting.pop(), unit)
            if lease is None or not lease.is_idle or lease.kind == "account":
                continue
            if lease.id != id_ and lease.state != "closing":
                continue
            row = [lease.id, unit, lease.kind, [*lease.above], lease.granted, lease.spent, lease.overrun]
            closed.append(row)
            self._gone.add((lease.id, unit))
            self.move(closed_moves({"closes": [row]}))
            waiting += reversed(lease.above)
        return closed

    def owner_ended(self, id_: str, unit: Unit) -> None:
        """Note that the owner of a lease has ended: it closes with whoever uses it last."""
        lease = self.lease(id_, unit)
        if lease is not None:
            self._known[id_, unit] = lease._replace(state="closing")

    def leave(self, id_: str, unit: Unit) -> list[list[Any]]:
        """Stop using a lease; tells what closes with that."""
        self.move((LeaseMove(id_, unit, users=-1),))
        lease = self.lease(id_, unit)
        return self.close(id_, unit) if lease is not None and lease.state == "closing" else []


def figures(short: Short, run: str) -> str:
    """Say what a lease lacks: what is wanted, and all that became of what it had."""
    lease, unit = short.lease, short.lease.unit
    what = called(lease, run)
    if lease.state == "frozen":
        over = spelled(unit, lease.overrun)
        return f"{what} is frozen, because {over} more was spent than it had; the owner unfreezes it"
    aside = lease.reserved + lease.lent
    have = f"{spelled(unit, lease.available)} left of {spelled(unit, lease.granted)}"
    became = f"{spelled(unit, lease.spent)} spent, {spelled(unit, aside)} set aside"
    return f"{spelled(unit, short.wanted)} wanted, {what} has {have} ({became})"
