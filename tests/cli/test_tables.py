"""Tables at every width: nothing is cut that a person would copy, and a pipe has no width."""

from io import StringIO

import pytest
from rich.console import Console
from rich.text import Text

from remit.cli.terminal import Rows

NAMES = ("id", "state", "task", "spent")
TASK = "compare the three offers and say which of them is the best for a team of eight"
ROWS = [
    [Text("3obonpcqaetlzxo4"), "completed", TASK, "$1,234.56"],
    [Text("3obonpft2zdhz2v3"), "failed", "short", ""],
]


def printed(width: int, *, terminal: bool = True, gives_way: str = "task") -> list[str]:
    written = StringIO()
    console = Console(file=written, width=width, force_terminal=terminal, color_system=None, soft_wrap=not terminal)
    console.print(Rows(NAMES, ROWS, left=2, gives_way=gives_way))
    return written.getvalue().splitlines()


@pytest.mark.rule("screen.tables")
def test_a_wide_terminal_shows_every_cell_in_its_column():
    head, first, second = printed(200)

    assert head.split() == ["id", "state", "spent", "task"]
    assert first.rstrip().endswith(f"$1,234.56  {TASK}")
    assert first.index("completed") == second.index("failed") == head.index("state")


@pytest.mark.rule("screen.tables")
def test_at_80_columns_only_the_text_gives_way():
    head, first, _ = printed(80)

    assert head.split() == ["id", "state", "spent", "task"]
    assert first.startswith("3obonpcqaetlzxo4  completed  $1,234.56  compare the three")
    assert first.endswith("…")
    assert len(first) <= 80


@pytest.mark.rule("screen.tables")
@pytest.mark.parametrize("width", [30, 60, 79])
def test_below_80_columns_a_table_that_does_not_fit_is_stacked(width: int):
    lines = printed(width)

    assert lines[0].strip() == "3obonpcqaetlzxo4"
    assert "  state  completed" in [line.rstrip() for line in lines]
    assert "".join(line[9:].strip() + " " for line in lines[3:-4]).split() == TASK.split()
    assert lines[-4].strip() == ""
    assert [line.strip() for line in lines[-3:]] == ["3obonpft2zdhz2v3", "state  failed", "task   short"]
    assert all(len(line) <= width for line in lines)


@pytest.mark.rule("screen.tables")
def test_figures_that_do_not_fit_are_stacked_in_a_wide_terminal_too():
    lines = printed(100, gives_way="")

    assert "$1,234.56" in "\n".join(lines)
    assert TASK in " ".join(line.strip() for line in lines)
    assert lines[0].strip() == "3obonpcqaetlzxo4"


@pytest.mark.rule("screen.tables")
@pytest.mark.parametrize("width", [20, 80])
def test_in_a_pipe_every_row_is_one_whole_line(width: int):
    head, first, second = printed(width, terminal=False)

    assert head.split() == ["id", "state", "spent", "task"]
    assert first == f"3obonpcqaetlzxo4  completed  $1,234.56  {TASK}"
    assert second.split() == ["3obonpft2zdhz2v3", "failed", "short"]


@pytest.mark.rule("screen.tables")
def test_a_column_that_says_nothing_takes_no_room():
    written = StringIO()
    Console(file=written, width=80, soft_wrap=True).print(Rows(("id", "where", "age"), [["a", "", "1 s"]]))
    assert written.getvalue().splitlines() == ["id  age", "a   1 s"]


def test_a_table_without_rows_is_its_head():
    written = StringIO()
    Console(file=written, width=80, soft_wrap=True).print(Rows(NAMES, []))
    assert written.getvalue().split() == list(NAMES)
