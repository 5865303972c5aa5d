"""Tiles: the drawn parts of a run, for stays, for refused hops, and for folded groups.

Trees are walked with a list, not with recursion: a run may be deeper than Python's stack.
"""

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Final, NamedTuple, TypeAlias

from remit.report.stays import Stay, stays
from remit.report.tree import Node, Refusal
from remit.report.words import states

SIBLINGS: Final = 8
_NO_LIMIT: Final = 10**9

Hop: TypeAlias = Node | Refusal | Stay


class Stack(NamedTuple):
    """Siblings, or stays of one task, folded into one tile."""

    hidden: tuple[Hop, ...]

    @property
    def states(self) -> list[str]:
        return [_state(hop) for hop in self.hidden]

    @property
    def below(self) -> int:
        """The number of tasks folded away under these."""
        under = (child for hop in self.hidden for child in _under(hop))
        return sum(sum(1 for _ in node.walk()) for node in under)

    def sentence(self) -> str:
        return f"+{len(self.hidden):,} more ({states(self.states)})"


@dataclass(slots=True, eq=False)  # identity, because positions are stored by tile
class Tile:
    """A drawn part. `children` are the tasks it requested, `heir` is the same task with its next holder."""

    shows: Stay | Refusal | Stack
    depth: int = 0
    children: "list[Tile]" = field(default_factory=list["Tile"])
    heir: "Tile | None" = None


def _state(hop: Hop) -> str:
    return "refused" if isinstance(hop, Refusal) else hop.state


def outline(root: Node, at_most: int = _NO_LIMIT) -> Tile:
    """Return the tiles to draw, chosen level by level: under a limit, the tasks nearest to the root stay."""
    made = _strung(root, 0, at_most)
    top, room = made[0], at_most - len(made)
    waiting = deque(made)
    while waiting:
        tile = waiting.popleft()
        hops = tile.shows.hops() if isinstance(tile.shows, Stay) else []
        for at, hop in enumerate(hops):
            if at == SIBLINGS or room <= 0:
                tile.children.append(Tile(Stack(tuple(hops[at:])), tile.depth + 1))
                break
            made = _strung(hop, tile.depth + 1, room)
            tile.children.append(made[0])
            room -= len(made)
            waiting.extend(made)
    return top


def tiles_of(top: Tile) -> Iterator[Tile]:
    """Yield every tile in tree order: requested tasks come before the next holder."""
    waiting = [top]
    while waiting:
        tile = waiting.pop()
        yield tile
        if tile.heir is not None:
            waiting.append(tile.heir)
        waiting.extend(reversed(tile.children))


def _strung(hop: Node | Refusal, depth: int, room: int) -> list[Tile]:
    """Return one tile for each stay of a task; if there are very many, the first and the last ones."""
    if isinstance(hop, Refusal):
        return [Tile(hop, depth)]
    every = stays(hop)
    most = max(3, min(SIBLINGS, room))
    shown: list[Stay | Stack] = [*every]
    if len(every) > most:
        shown = [*every[: most - 2], Stack(tuple(every[most - 2 : -1])), every[-1]]
    tiles = [Tile(stay, depth) for stay in shown]
    for tile, heir in pairwise(tiles):
        tile.heir = heir
    return tiles


def _under(hop: Hop) -> list[Node]:
    if isinstance(hop, Stay):
        return [child for child in hop.hops() if isinstance(child, Node)]
    return hop.children if isinstance(hop, Node) else []
