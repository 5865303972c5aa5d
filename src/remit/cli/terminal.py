"""States, tables and results in a terminal."""

from collections.abc import Iterator, Sequence
from typing import Final

from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from remit.core.times import iso
from remit.core.values import Json, encode
from remit.report.looks import Role, look
from remit.report.printable import block

# What each role of a state looks like in a terminal.
COLOURS: Final[dict[Role, str]] = {
    "good": "green",
    "busy": "cyan",
    "bad": "red",
    "grave": "bold magenta",
    "refused": "red",
    "moved": "magenta",
    "queued": "bright_black",
    "stopped": "yellow",
    "idle": "dim",
}
_USUAL: Final = (
    80  # columns; in a narrower terminal nothing is shortened, so that a table which does not fit is stacked
)
_READABLE: Final = 12  # columns that are left of a shortened text at least
_GAP: Final = 2  # columns between two cells


def state_text(state: str) -> Text:
    """Return the name of a state in its colour."""
    return Text(state, colour(state))


def colour(state: str) -> str:
    return COLOURS[look(state).role]


class Rows:
    """A plain table. The first `left` columns are aligned left. Columns without any text are left out.

    The column `gives_way` comes last. In a terminal only it is shortened: a name or figure that is cut can be neither
    read nor copied. Where the rest does not fit, each row is a block of lines. A pipe has no width: there every row is
    one whole line.
    """

    def __init__(
        self, names: Sequence[str], rows: Sequence[Sequence[Text | str]], *, left: int = 1, gives_way: str = ""
    ) -> None:
        whole = [[Text(cell) if isinstance(cell, str) else cell for cell in row] for row in rows]
        said = [index for index in range(len(names)) if not whole or any(row[index].plain for row in whole)]
        said.sort(key=lambda index: names[index] == gives_way)  # last, where its length moves no other column
        self._names = [names[index] for index in said]  # a column that says nothing takes no room
        self._rows = [[row[index] for index in said] for row in whole]
        self._is_left = [index < left or names[index] == gives_way for index in said]
        self._gives_way = gives_way if gives_way in self._names else ""
        self._widths = [
            max(cell_len(name), *(row[index].cell_len for row in self._rows), 0)
            for index, name in enumerate(self._names)
        ]

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        if not console.is_terminal:
            yield from self._whole()
        elif self._least(options.max_width) <= options.max_width:
            yield self._table()
        else:
            yield from self._stacked()

    def _least(self, room: int) -> int:
        """Return the width that the table needs in a terminal of this width."""
        least = sum(self._widths) + _GAP * (len(self._names) - 1)
        if self._gives_way and room >= _USUAL:
            width = self._widths[self._names.index(self._gives_way)]
            least -= width - min(width, _READABLE)
        return least

    def _whole(self) -> Iterator[Text]:
        """Yield each row as one line, whatever its length."""
        for row in ([Text(name) for name in self._names], *self._rows):
            line = Text()
            for cell, width, is_left in zip(row, self._widths, self._is_left, strict=True):
                space = " " * (width - cell.cell_len)
                line.append_text(Text.assemble(cell, space) if is_left else Text.assemble(space, cell))
                line.append(" " * _GAP)
            line.rstrip()
            yield line

    def _table(self) -> Table:
        table = Table(box=None, pad_edge=False, header_style="dim")
        for index, (name, width) in enumerate(zip(self._names, self._widths, strict=True)):
            if name == self._gives_way:
                table.add_column(name)  # rich shortens wrapping columns first; the cells themselves do not wrap
            else:
                side = "left" if self._is_left[index] else "right"
                table.add_column(name, justify=side, no_wrap=True, min_width=width)
        for row in self._rows:
            table.add_row(
                *(_cut(cell) if name == self._gives_way else cell for name, cell in zip(self._names, row, strict=True))
            )
        return table

    def _stacked(self) -> Iterator[RenderableType]:
        """Yield each row as its first cell, and below it a line for each other cell that says something."""
        for number, (first, *others) in enumerate(self._rows):
            if number:
                yield Text()
            yield first
            below = Table.grid(padding=(0, _GAP))
            below.add_column(style="dim", no_wrap=True)
            below.add_column(overflow="fold")
            for name, cell in zip(self._names[1:], others, strict=True):
                if cell.plain:
                    below.add_row(name, cell)
            yield Padding(below, (0, 0, 0, _GAP), expand=False)


def _cut(cell: Text) -> Text:
    cell.no_wrap, cell.overflow = True, "ellipsis"
    return cell


def outcome_text(state: str, result: Json, error: str) -> Text:
    """Return the result of a task, or its error."""
    if state == "completed":
        return Text(block(result if isinstance(result, str) else encode(result)))
    return Text(block(error or state), "red")


def moment(at: int) -> str:
    """Return a time, in microseconds since 1970, as text such as 2026-11-15T02:36:54Z."""
    return f"{iso(at)[:19]}Z"
