"""Plans in the picture of a run: a small card for each step, with an edge to each dependent step."""

from collections.abc import Mapping
from typing import Final, NamedTuple

from remit.report.figures import duration
from remit.report.flow.levels import Cell, Grid, grid
from remit.report.flow.shapes import arrow_head, line_width, moved, share_bar, state_dot, tooltip, words
from remit.report.flow.tiles import Tile
from remit.report.looks import known, look
from remit.report.stays import Stay
from remit.report.tree import Node, PlanStep
from remit.report.words import plan_of, progress, tries

_PLANS: Final = 4
_WIDTH: Final = 190
_HEIGHT: Final = 50
_GAP: Final = 40
_COLUMN: Final = _WIDTH + _GAP
_ROW: Final = _HEIGHT + 12
_PAD: Final = 16
_HEAD: Final = 46
_BAR: Final = 120
_NAME: Final = 220
_ROOM: Final = _WIDTH - 40


class Panel(NamedTuple):
    """One plan with its steps in columns; `tasks` are the tasks of the steps, by id."""

    title: str
    plan: list[PlanStep]
    grid: Grid
    tasks: Mapping[str, Node]
    now: int

    @property
    def width(self) -> int:
        return 2 * _PAD + max(cell.column for cell in self.grid.cells) * _COLUMN + _WIDTH

    @property
    def height(self) -> int:
        return _HEAD + max(cell.row for cell in self.grid.cells) * _ROW + _HEIGHT + _PAD

    def drawn(self, width: int) -> str:
        bar = width - _PAD - _BAR
        name = min(_NAME, line_width(self.title, "name"))
        parts = [
            f'<rect class="card" width="{width}" height="{self.height}" rx="10"/>',
            words(self.title, (_PAD, 27), "name", _NAME),
            words(progress(self.plan), (bar - 12, 27), "faint", bar - name - _PAD - 24, "end"),
            share_bar([step.state for step in self.plan], (bar, 20), _BAR),
            *(_need(before, after) for before, after in self.grid.needs),
            *(self._cell(cell) for cell in self.grid.cells),
        ]
        return "\n".join(parts)

    def _cell(self, cell: Cell) -> str:
        x, y = _place(cell)
        rim = " rim" if look(cell.state).rimmed else ""
        back = f'<rect class="card {cell.state}{rim}" width="{_WIDTH}" height="{_HEIGHT}" rx="8"/>'
        inside = self._step(cell.steps[0]) if len(cell.steps) == 1 else _rest(cell)
        return moved(x, y, back + inside)

    def _step(self, step: PlanStep) -> str:
        task = self.tasks.get(step.task)
        took = duration(task.elapsed(self.now)) if task is not None else ""
        who = " · ".join(part for part in (step.agent, took, tries(step)) if part)
        bad = step.state == "failed" and step.reason
        why = step.reason.removeprefix(f"'{step.agent}' ")
        second = (why, "fill failed") if bad else (why or who, "faint")
        return (
            tooltip(f"{step.id}: {step.title} ({step.agent}) {step.reason}")
            + state_dot(known(step.state), 18, 25)
            + words(step.title, (34, 21), "ink", _ROOM)
            + words(second[0], (34, 38), second[1], _ROOM)
        )


def panels(tiles: list[Tile], now: int) -> list[Panel]:
    """Return the panels for the plans of the visible tasks; if there are very many, the first ones."""
    nodes = [tile.shows.node for tile in tiles if isinstance(tile.shows, Stay) and tile.shows.left is None]
    made: list[Panel] = []
    for node in nodes:
        tasks = {child.id: child for child in node.children if child.step}
        made += [
            Panel(plan_of(plan[0].planner or node.agent), plan, grid(plan), tasks, now)
            for plan in node.plans[:_PLANS]
            if plan
        ]
    return made[:_PLANS]


def _rest(cell: Cell) -> str:
    states = [step.state for step in cell.steps]
    return (
        tooltip(cell.sentence())
        + words(f"+{len(states):,} more steps", (14, 22), "ink", _WIDTH - 28)
        + share_bar(states, (14, 33), _WIDTH - 28)
    )


def _place(cell: Cell) -> tuple[int, int]:
    return _PAD + cell.column * _COLUMN, _HEAD + cell.row * _ROW


def _need(before: Cell, after: Cell) -> str:
    """Draw the edge from a dependency to a step, in the colour of the dependency's state."""
    (left, top), (x, y) = _place(before), _place(after)
    left, top, y = left + _WIDTH, top + _HEIGHT // 2, y + _HEIGHT // 2
    bend, half = x - _GAP, x - _GAP // 2 - 3
    path = f"M{left} {top}H{bend}C{half} {top} {half} {y} {x - 6} {y}"
    return f'<path class="edge need {before.state}" d="{path}"/>{arrow_head(x, y, before.state)}'
