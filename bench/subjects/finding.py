"""What it costs to find the right agent among many."""

import time

from measure import Cost, Costs, Load
from remit import Card
from remit.core.match import rank

_SUBJECTS = ("code", "mail", "tax", "music", "garden", "river", "law", "ship", "bread", "moon", "paint", "glass")
_DEEDS = ("write", "review", "count", "draw", "carry", "clean", "sort", "repair", "plan", "teach")


def _card(number: int) -> Card:
    can = f"{_DEEDS[number % 10]} {_SUBJECTS[number % 7]}"
    return Card(f"agent {number}", role=f"knows {_SUBJECTS[number % 12]}", can=can)


def thousand(_load: Load) -> Costs:
    """Rank a thousand agents, in milliseconds."""
    cards = [_card(number) for number in range(1_000)]
    rank("review some code", cards)  # each card is read once
    while True:
        wall, cpu = time.perf_counter(), time.process_time()
        rank("repair the river ship", cards)
        yield Cost((time.perf_counter() - wall) * 1e3, (time.process_time() - cpu) * 1e3)
