"""Where the cards of a run go: a tree from left to right, as boxes and edges with whole coordinates.

Every leaf has a row of its own, and an asker sits in the middle of those it asked: two passes over the cards. Whoever
takes a task over stands below the one who had it, in the same column: handing over leads no deeper.
A new kind of hop is a new `EdgeKind`, and the drawing says how it looks and how it ends.
"""

from typing import Final, Literal, NamedTuple, TypeAlias

from remit.report.flow.labels import kept_back, passed, saw_here, withheld
from remit.report.flow.stays import Stay, member_of
from remit.report.flow.tiles import Tile, cards_of
from remit.report.looks import FOLDED, known, mark
from remit.report.printable import cleaned
from remit.report.tree import Refusal
from remit.report.words import ASKED

CARD_WIDTH: Final = 244
CARD_HEIGHT: Final = 82
ROW: Final = CARD_HEIGHT + 22
COLUMN: Final = CARD_WIDTH + 220

HANDOFF_GAP: Final = 32  # what a handoff adds to the space between two rows, for its arrow and its label

EdgeKind: TypeAlias = Literal["delegation", "submitted", "spawned", "member", "handoff", "refusal", "stack"]


class Box(NamedTuple):
    """A card with its place; `x` and `y` are its upper left corner."""

    card: Tile
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
    """A hop. `label` is what was passed, `aside` what was kept back, `tip` both at length, `word` how it was asked."""

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
    """Every card as a box in tree order, and an edge to each from the one that asked."""
    order = list(cards_of(top))
    rows = _rows(order)
    boxes = {card: Box(card, left + card.depth * COLUMN, upper + rows[card]) for card in order}
    edges = [_edge(boxes[card], boxes[child]) for card in order for child in card.children]
    edges += [_handoff(boxes[card], boxes[card.heir]) for card in order if card.heir is not None]
    width = max(card.depth for card in order) * COLUMN + CARD_WIDTH
    height = max(rows.values()) + CARD_HEIGHT
    return Picture(list(boxes.values()), edges, width, height)


def _rows(order: list[Tile]) -> dict[Tile, int]:
    rows: dict[Tile, int] = {}
    heirs = {card.heir for card in order if card.heir is not None}
    top = 0
    for card in order:
        top += HANDOFF_GAP * (card in heirs)
        if not card.children:
            rows[card] = top
            top += ROW
    for card in reversed(order):  # tree order backwards: whoever was asked comes before the asker
        if card.children:
            rows[card] = (rows[card.children[0]] + rows[card.children[-1]]) // 2
    return rows


_KINDS: Final[dict[str, EdgeKind]] = {"submit": "submitted", "spawn": "spawned"}


def _edge(start: Box, end: Box) -> Edge:
    asker, shown = start.card.shows, end.card.shows
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
    """The same task in other hands; the label is the phase it was handed over in."""
    came = end.card.shows.came if isinstance(end.card.shows, Stay) else None
    if came is None:
        return Edge("handoff", start, end, FOLDED)
    tip = f"{came.sender} handed the task to {came.to[0]}"
    return Edge("handoff", start, end, "handed", cleaned(came.phase, 28) or "handed over", tip=tip)


def _tip(stay: Stay) -> str:
    number = withheld(stay)
    return f"{saw_here(stay)}; {number} withheld" if number else saw_here(stay)
