"""How tables look in a terminal, however narrow it is."""

import pytest
from rich.console import Console
from rich.text import Text

from remit.cli.terminal import tabled

NAMES = ("id", "state", "task", "try", "age")
ROWS = [
    ["3objnm3wsnd6tbhu", Text("completed", "green"), Text("check the style of all the modules " * 3), "1", "3 d"],
    ["3objnm3wsnd6tbhv", Text("pending"), "short", "", "now"],
]


def printed(width: int, gives_way: str = "task") -> list[str]:
    console = Console(width=width)
    with console.capture() as capture:
        console.print(tabled(NAMES, ROWS, left=3, gives_way=gives_way))
    return [line.rstrip() for line in capture.get().splitlines()]


@pytest.mark.parametrize("width", [60, 80, 100, 400])
def test_only_one_column_gives_way_when_the_terminal_is_narrow(width):
    head, first, second = printed(width)

    assert head.split() == [*NAMES]
    assert first.startswith("3objnm3wsnd6tbhu  completed  check the")
    assert first.endswith("1  3 d")
    assert second.split() == ["3objnm3wsnd6tbhv", "pending", "short", "now"]
    assert ("…" in first) == (width < 150)
    assert max(map(len, (head, first, second))) <= width


def test_a_table_in_which_nothing_gives_way_keeps_its_words():
    head, *_ = printed(400, "")

    assert head.split() == [*NAMES]
