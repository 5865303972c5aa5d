"""What it costs to find the right agent among many."""

import time
from itertools import cycle

from measure import Cost, Costs, Load, Subject
from remit import Card
from remit.core.match import Index

_SUBJECTS = ("code", "mail", "tax", "music", "garden", "river", "law", "ship", "bread", "moon", "paint", "glass")
_DEEDS = ("write", "review", "count", "draw", "carry", "clean", "sort", "repair", "plan", "teach")
_INSTRUCTIONS = (
    "You {deed} {subject} for whoever asks. Look at {other} first, compare it with what was ordered, and say in two "
    "sentences what is missing. Never {undo} anything without a word to customer {number}. Keep a list of what was "
    "done in district{district}, and send a report every week."
)
_WANTED = ("repair the river ship", "count what is missing in district 7", "reveiw the pianting", "who sorts glass?")


def _card(number: int) -> Card:
    deed, subject = _DEEDS[number % 10], _SUBJECTS[number % 7]
    other, undo = _SUBJECTS[number % 12], _DEEDS[number % 9]
    text = _INSTRUCTIONS.format(
        deed=deed, subject=subject, other=other, undo=undo, number=number, district=number % 500
    )
    return Card(f"agent {number}", role=f"knows {other}", can=f"{deed} {subject}", instructions=text)


def among(count: int) -> Subject:
    """Rank so many agents once they are read, for an asker that may ask all but one, in milliseconds."""

    def subject(_load: Load) -> Costs:
        cards = [_card(number) for number in range(count)]
        index, roster = Index(cards), frozenset(card.name for card in cards[1:])
        for wanted in cycle(_WANTED):
            wall, cpu = time.perf_counter(), time.process_time()
            index.rank(wanted, roster)
            yield Cost((time.perf_counter() - wall) * 1e3, (time.process_time() - cpu) * 1e3)

    return subject


def reading(_load: Load) -> Costs:
    """Read a thousand cards, in milliseconds."""
    cards = [_card(number) for number in range(1_000)]
    while True:
        wall, cpu = time.perf_counter(), time.process_time()
        Index(cards)
        yield Cost((time.perf_counter() - wall) * 1e3, (time.process_time() - cpu) * 1e3)
