"""Raising leases: the amount that a payment lacks, and which leases get and give an amount that a person adds.

The leases of a line are caps on the same money, and each must have room for the payment. Only the last one has money of
its own: an amount that is added to it comes out of the line above, which is raised in turn if it has too little. The
account is never raised, so it limits every amount.
"""

from typing import Any, NamedTuple

from remit.core.money import ACCOUNT, Book, Lease, Line, Path, Unit, first_line


class Want(NamedTuple):
    """A payment that lacks money: its unit and amount, and its run. `kept` is the last share of the run's lease, which
    this payment must leave; 0 if it may take that."""

    unit: Unit
    amount: int
    run: str
    kept: int = 0


class Raise(NamedTuple):
    """The amount that each lease gets, and the amount that each lease above sets aside for the one below it. `lacks` is
    the amount that the account has too little."""

    adds: list[list[Any]]
    takes: list[list[Any]]
    lacks: int


def tightest(book: Book, path: Path, want: Want) -> Lease | None:
    """Return the lease that has the least room for a payment; None if only the account pays for it."""
    own = [lease for lease in _leases(book, first_line(path), want.unit) if lease.id != ACCOUNT]
    return max(own, key=lambda lease: _gap(lease, want.amount, want), default=None)


def lacking(book: Book, path: Path, want: Want) -> int:
    """Return the amount that must be added for a payment; 0 or less if there is enough."""
    lease = tightest(book, path, want)
    return _gap(lease, want.amount, want) if lease is not None else 0


def raising(book: Book, path: Path, want: Want, amount: int) -> Raise:
    """Return how an amount is added. The lease with the least room gets the whole amount, the others as much as they
    need to leave the same room. Each lease above sets the amount aside for the one below it."""
    adds: list[list[Any]] = []
    takes: list[list[Any]] = []
    room, lacks = want.amount + amount - lacking(book, path, want), 0
    for depth, line in enumerate(path):
        gap = 0
        for lease in _leases(book, line, want.unit):
            gap = _gap(lease, room, want)
            if lease.id == ACCOUNT:
                lacks = amount if lease.state == "frozen" else max(0, gap)
            elif gap > 0:
                adds.append([lease.id, gap])
            if depth:
                takes.append([lease.id, room])
        if gap <= 0:
            break
        room = gap
    return Raise(adds, takes, lacks)


def _leases(book: Book, line: Line, unit: Unit) -> list[Lease]:
    return [lease for id_ in line if (lease := book.lease(id_, unit)) is not None]


def _gap(lease: Lease, room: int, want: Want) -> int:
    """Return the amount that a lease has too little; negative if it has more."""
    return room + (want.kept if lease.id == want.run else 0) - lease.available
