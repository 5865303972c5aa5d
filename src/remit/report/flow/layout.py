"""Layout: the drawn parts of a run, as tiles, and their positions, as a tree from left to right, with boxes and edges
in whole coordinates.

Trees are walked with a list, not with recursion: a run may be deeper than Python's stack. Every leaf has a row of its
own, and an asker is placed in the middle of the agents it asked: two passes over the tiles. An agent that takes a task
over is placed below the previous one in the same column, because a handoff leads no deeper. The dependencies of a plan
step are to its left. For a new kind of hop, add an `EdgeKind`, and its look to the drawing.
"""

from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Final, Literal, NamedTuple, TypeAlias

from remit.report.looks import FOLDED, known_state, mark
from remit.report.printable import picture_line
from remit.report.tree import Node, PlanStep, Refusal, Stay, member_of, stays
from remit.report.words import ASKED, kept_back, passed_text, saw_here, states, withheld

# -- tiles ---------------------------------------------------------------------------------------------------


SIBLINGS: Final = 8
_NO_LIMIT: Final = 10**9

Hop: TypeAlias = Node | Refusal | Stay


class Stack(NamedTuple):
    """Siblings, or the stays of one task with its holders, folded into one tile."""

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


# -- the steps of a plan, in columns -------------------------------------------------------------------------


COLUMNS: Final = 8
ROWS: Final = 8


class Cell(NamedTuple):
    """A step, or several steps folded into one, with its position in the grid."""

    steps: tuple[PlanStep, ...]
    column: int
    row: int

    @property
    def state(self) -> str:
        first, *others = self.steps
        return FOLDED if others else known_state(first.state)

    def sentence(self) -> str:
        return f"+{len(self.steps):,} more ({states(step.state for step in self.steps)})"


class Grid(NamedTuple):
    """Cells and their dependencies: the first of each pair comes before the second."""

    cells: list[Cell]
    needs: list[tuple[Cell, Cell]]


def grid(plan: Sequence[PlanStep]) -> Grid:
    cells: list[Cell] = []
    home: dict[str, int] = {}  # step to cell
    for column, steps in enumerate(_columns(plan)):
        whole = column == COLUMNS - 1 and any(before.id in step.after for step in steps for before in steps)
        for row, shown in enumerate(_folded(_sorted(steps, home, cells), 1 if whole else ROWS)):
            home.update({step.id: len(cells) for step in shown})
            cells.append(Cell(shown, column, row))
    pairs = {
        (home[before], at): None
        for at, cell in enumerate(cells)
        for step in cell.steps
        for before in step.after
        if before in home and home[before] != at
    }
    return Grid(cells, [(cells[before], cells[after]) for before, after in pairs])


def _columns(plan: Sequence[PlanStep]) -> list[list[PlanStep]]:
    depths = _depths(plan)
    columns: list[list[PlanStep]] = [[] for _ in range(1 + max(depths.values(), default=0))]
    for step in plan:
        # Steps in a cycle go to the first column; `remit doctor` reports them.
        columns[depths.get(step.id, 0)].append(step)
    return [column for column in columns if column]


def _depths(plan: Sequence[PlanStep]) -> dict[str, int]:
    """Return the number of steps before each step on its longest path, limited to the last column."""
    ids = {step.id for step in plan}
    missing = {step.id: sum(before in ids for before in step.after) for step in plan}
    after: dict[str, list[str]] = {id_: [] for id_ in ids}
    for step in plan:
        for before in step.after:
            after.get(before, []).append(step.id)
    ready = deque(id_ for id_, count in missing.items() if count == 0)
    depths = dict.fromkeys(ready, 0)
    while ready:
        done = ready.popleft()
        for id_ in after[done]:
            missing[id_] -= 1
            depths[id_] = max(depths.get(id_, 0), min(depths[done] + 1, COLUMNS - 1))
            if missing[id_] == 0:
                ready.append(id_)
    return depths


def _sorted(steps: list[PlanStep], home: dict[str, int], cells: list[Cell]) -> list[PlanStep]:
    """Return the steps in the order of their dependencies' rows, so that edges rarely cross."""

    def middle(step: PlanStep) -> float:
        rows = [cells[home[before]].row for before in step.after if before in home]
        return sum(rows) / len(rows) if rows else ROWS

    return sorted(steps, key=middle)


def _folded(steps: list[PlanStep], most: int) -> list[tuple[PlanStep, ...]]:
    if len(steps) <= most:
        return [(step,) for step in steps]
    return [*((step,) for step in steps[: most - 1]), tuple(steps[most - 1 :])]


# -- positions -----------------------------------------------------------------------------------------------


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
            return Edge(
                kind, start, end, known_state(shown.state), passed_text(shown), kept_back(shown), _tip(shown), word
            )
        case Refusal() as refusal:
            return Edge(
                "refusal",
                start,
                end,
                "refused",
                f"{mark('refused')} {picture_line(refusal.rule, 16)}",
                tip=refusal.sentence,
            )
        case _:
            return Edge("stack", start, end, FOLDED)


def _handoff(start: Box, end: Box) -> Edge:
    """Return the edge of a handoff; its label is the phase of the handoff."""
    came = end.tile.shows.came if isinstance(end.tile.shows, Stay) else None
    if came is None:
        return Edge("handoff", start, end, FOLDED)
    tip = f"{came.sender} handed the task to {came.to[0]}"
    return Edge("handoff", start, end, "handed", picture_line(came.phase, 28) or "handed over", tip=tip)


def _tip(stay: Stay) -> str:
    number = withheld(stay)
    return f"{saw_here(stay)}; {number} withheld" if number else saw_here(stay)
