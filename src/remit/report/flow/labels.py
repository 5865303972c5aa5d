"""The labels of edges: what was passed on, and what was withheld."""

from collections.abc import Sequence
from typing import Final

from remit.report import receipts
from remit.report.figures import short
from remit.report.printable import cleaned
from remit.report.receipts import slices, tokens
from remit.report.stays import Stay
from remit.report.words import may_see, saw_in

_BRIEF: Final = 10  # columns of a name on an edge of a picture


def saw_here(stay: Stay) -> str:
    """Return what a holder saw while it had the task: 2 slices (spec/auth), 11 tokens."""
    if stay.receipt:
        return saw_in([stay.receipt])
    return may_see(stay.node)


def passed(stay: Stay, columns: int = _BRIEF) -> str:
    """Return what was passed, short enough for the label of an edge: spec/auth +1 · 2.4k tok."""
    if stay.receipt:
        names = receipts.passed_on(stay.receipt)
        size = f"{short(tokens(stay.receipt))} tok"
        return f"{_first_of(names, columns)} · {size}" if names else f"{slices(stay.receipt)} ctx · {size}"
    sees = stay.node.sees
    if "*" in sees:
        return "sees all"
    return f"sees {_first_of(sees, columns)}" if sees else "task only"


def _first_of(names: Sequence[str], columns: int) -> str:
    """Return the first name, or the end of its path if it is too long, and the number of others: spec/auth +1."""
    more = f" +{len(names) - 1}" if len(names) > 1 else ""
    name = cleaned(names[0], 4 * columns)
    end = name.rpartition("/")[2]
    return cleaned(name if len(name) <= columns or end in ("", "*") else end, columns) + more


def kept_back(stay: Stay) -> str:
    """Return the number of withheld slices as a label, or "" if there are none."""
    number = withheld(stay)
    return f"\N{MINUS SIGN}{number}" if number else ""


def withheld(stay: Stay) -> int:
    return len(receipts.withheld(stay.receipt))
