"""States, tables and results in a terminal."""

from collections.abc import Sequence
from typing import Final

from rich.cells import cell_len
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


def state_text(state: str) -> Text:
    """Return the word of a state in its colour."""
    return Text(state, colour(state))


def colour(state: str) -> str:
    return COLOURS[look(state).role]


def tabled(names: Sequence[str], rows: Sequence[Sequence[Text | str]], *, left: int = 1, gives_way: str = "") -> Table:
    """Return a plain table, the first columns left-aligned and figures right-aligned. Only one column may be cut in a
    narrow terminal: a name or figure that is cut cannot be read or copied."""
    table = Table(box=None, pad_edge=False, header_style="dim")
    for index, name in enumerate(names):
        if name == gives_way:
            table.add_column(name)  # rich shortens wrapping columns first; the cells themselves do not wrap
        else:
            width = max(len(name), *(cell_len(str(row[index])) for row in rows))
            table.add_column(name, justify="left" if index < left else "right", no_wrap=True, min_width=width)
    for row in rows:
        table.add_row(*(_cut(cell) if name == gives_way else cell for name, cell in zip(names, row, strict=True)))
    return table


def _cut(cell: Text | str) -> Text:
    text = cell if isinstance(cell, Text) else Text(cell)
    text.no_wrap, text.overflow = True, "ellipsis"
    return text


def outcome_text(state: str, result: Json, error: str) -> Text:
    """Return the result of a task, or its error."""
    if state == "completed":
        return Text(block(result if isinstance(result, str) else encode(result)))
    return Text(block(error or state), "red")


def moment(at: int) -> str:
    """Return a time such as 2026-11-15T02:36:54Z."""
    return f"{iso(at)[:19]}Z"
