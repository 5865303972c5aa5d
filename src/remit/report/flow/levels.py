"""The steps of a plan in columns: the dependencies of a step are to its left."""

from collections import deque
from collections.abc import Sequence
from typing import Final, NamedTuple

from remit.report.looks import FOLDED, known
from remit.report.tree import PlanStep
from remit.report.words import states

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
        return FOLDED if others else known(first.state)

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
