"""The labels of edges: what went along, and what was kept back."""

from remit.report import receipts
from remit.report.figures import count, short
from remit.report.flow.stays import Stay
from remit.report.receipts import slices, tokens
from remit.report.words import may_see


def saw_here(stay: Stay) -> str:
    """Say what a holder saw while the task was with it."""
    if stay.receipt:
        return f"{count(slices(stay.receipt), 'slice')}, {count(tokens(stay.receipt), 'token')}"
    return may_see(stay.node)


def passed(stay: Stay) -> str:
    """Say the same, as short as the label of an edge."""
    if stay.receipt:
        return f"{slices(stay.receipt)} ctx · {short(tokens(stay.receipt))} tok"
    sees = stay.node.sees
    if "*" in sees:
        return "sees all"
    return f"sees {count(len(sees), 'scope')}" if sees else "task only"


def kept_back(stay: Stay) -> str:
    """Say how many slices were withheld."""
    number = withheld(stay)
    return f"\N{MINUS SIGN}{number}" if number else ""


def withheld(stay: Stay) -> int:
    return len(receipts.withheld(stay.receipt))
