"""Several databases: which one gets a new workspace, and which copy of a workspace that is being moved is the valid
one."""

import hashlib
from collections.abc import Callable, Iterable
from typing import Final, Literal, NamedTuple, TypeAlias

from remit.errors import Moved

MarkState: TypeAlias = Literal["leaving", "left", "arriving"]

_HOPS: Final = 100  # more than any workspace moves between two looks; a circle of marks ends here


class Membership(NamedTuple):
    """The name of a database among several, and the name of their home, which keeps the placement of workspaces."""

    name: str
    home: str


class MoveMark(NamedTuple):
    """Why a database refuses writes to a workspace.

    A workspace that is `leaving` lives here and may be read. One that has `left` lives elsewhere, and one that is
    `arriving` is being copied. `place` is the name of the other database and `where` its address without a password.
    Both marks of a move have the same `generation`.
    """

    state: MarkState
    place: str
    where: str
    generation: int


def chosen(workspace: str, places: Iterable[str]) -> str:
    """Return the database for a new workspace, by a rendezvous hash: a database that is added to `places` takes its
    share of the new workspaces from all others, and the choice among the others stays the same."""
    return max(places, key=lambda place: (hashlib.sha256(f"{place}\n{workspace}".encode()).digest(), place))


def living_at(place: str, mark_of: Callable[[str], MoveMark | None]) -> str | None:
    """Return the database with the valid copy of a workspace, following the marks from `place`. Return None between the
    two steps that make the new copy valid (the old copy is marked `left`, the new one is still `arriving`), and if the
    marks form a circle."""
    for _ in range(_HOPS):
        mark = mark_of(place)
        if mark is None or mark.state == "leaving":
            return place
        if mark.state == "arriving":
            other = mark_of(mark.place)
            if other is not None and other.state == "left" and other.place == place:
                return None
        place = mark.place
    return None


def moved(workspace: str, mark: MoveMark) -> Moved:
    """Return the error for a write to a workspace with this mark."""
    if mark.state == "leaving":
        sentence = f"workspace '{workspace}' is being moved to {mark.where}; try again in a moment"
    elif mark.state == "arriving":
        sentence = f"workspace '{workspace}' is being moved here from {mark.where}; try again in a moment"
    else:
        sentence = f"workspace '{workspace}' was moved to {mark.where}; open it there"
    error = Moved(sentence)
    error.retryable = mark.state != "left"
    return error
