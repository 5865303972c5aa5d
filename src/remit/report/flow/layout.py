"""Layout: the positions of a run's tiles, as a tree from left to right, with boxes and edges in whole coordinates.

Every leaf has a row of its own, and an asker is placed in the middle of the agents it asked: two passes over the tiles.
An agent that takes a task over is placed below the previous one in the same column, because a handoff leads no deeper.
For a new kind of hop, add an `EdgeKind`, and its look to the drawing.
"""

from typing import Final, Literal, NamedTuple, TypeAlias

from remit.report.flow.labels import kept_back, passed, saw_here, withheld
from remit.report.flow.tiles import Tile, tiles_of
from remit.report.looks import FOLDED, known, mark
from remit.report.printable import cleaned
from remit.report.stays import Stay, member_of
from remit.report.tree import Refusal
from remit.report.words import ASKED

CARD_WIDTH: Final = 244
CARD_HEIGHT: Final = 82
ROW: Final = CARD_HEIGHT + 22
COLUMN: Final = CARD_WIDTH + 220

HANDOFF_GAP: Final = 32  # what a handoff adds to the space between two rows, for its arrow and its label

EdgeKind: TypeAlias = Literal["delegation", "submitted", "spawned", "member", "handoff", "refusal", "stack"]


class Box(NamedTuple):
    """A tile with its position; `x` and `y` are its upper left corner."""

    tile: Tile
    x: int
    y: int

    @property
    def middle(self) -> int:
        return self.y + CARD_HEIGHT // 2

    @property
    def bottom(self) -> int:
        return self.y + CARD_HEIGHT

    @property
    def right(self) -> int:
        return self.x + CARD_WIDTH


class Edge(NamedTuple):
    """A hop. `label` is what was passed, `aside` what was withheld, `tip` both in full, `word` how it was requested."""

    kind: EdgeKind
    start: Box
    end: Box
    state: str
    label: str = ""
    aside: str = ""
    tip: str = ""
    word: str = ""


class Picture(NamedTuple):
    boxes: list[Box]
    edges: list[Edge]
    width: int
    height: int


def place(top: Tile, left: int = 0, upper: int = 0) -> Picture:
    """Return every tile as a box in tree order, with an edge from its asker."""
    order = list(tiles_of(top))
    rows = _rows(order)
    boxes = {tile: Box(tile, left + tile.depth * COLUMN, upper + rows[tile]) for tile in order}
    edges = [_edge(boxes[tile], boxes[child]) for tile in order for child in tile.children]
    edges += [_handoff(boxes[tile], boxes[tile.heir]) for tile in order if tile.heir is not None]
    width = max(tile.depth for tile in order) * COLUMN + CARD_WIDTH
    height = max(rows.values()) + CARD_HEIGHT
    return Picture(list(boxes.values()), edges, width, height)


def _rows(order: list[Tile]) -> dict[Tile, int]:
    rows: dict[Tile, int] = {}
    heirs = {tile.heir for tile in order if tile.heir is not None}
    top = 0
    for tile in order:
        top += HANDOFF_GAP * (tile in heirs)
        if not tile.children:
            rows[tile] = top
            top += ROW
    for tile in reversed(order):  # reverse tree order: children before their asker
        if tile.children:
            rows[tile] = (rows[tile.children[0]] + rows[tile.children[-1]]) // 2
    return rows


_KINDS: Final[dict[str, EdgeKind]] = {"submit": "submitted", "async": "submitted", "spawn": "spawned"}


def _edge(start: Box, end: Box) -> Edge:
    asker, shown = start.tile.shows, end.tile.shows
    match shown:
        case Stay():
            member = isinstance(asker, Stay) and member_of(shown.node, asker.node)
            kind: EdgeKind = "member" if member else _KINDS.get(shown.node.asked_how, "delegation")
            word = ASKED.get(shown.node.asked_how, "")
            return Edge(kind, start, end, known(shown.state), passed(shown), kept_back(shown), _tip(shown), word)
        case Refusal() as refusal:
            return Edge(
                "refusal", start, end, "refused", f"{mark('refused')} {cleaned(refusal.rule, 16)}", tip=refusal.sentence
            )
        case _:
            return Edge("stack", start, end, FOLDED)


def _handoff(start: Box, end: Box) -> Edge:
    """Return the edge of a handoff; its label is the phase of the handoff."""
    came = end.tile.shows.came if isinstance(end.tile.shows, Stay) else None
    if came is None:
        return Edge("handoff", start, end, FOLDED)
    tip = f"{came.sender} handed the task to {came.to[0]}"
    return Edge("handoff", start, end, "handed", cleaned(came.phase, 28) or "handed over", tip=tip)


def _tip(stay: Stay) -> str:
    number = withheld(stay)
    return f"{saw_here(stay)}; {number} withheld" if number else saw_here(stay)
