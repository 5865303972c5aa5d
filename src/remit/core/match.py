"""Matches: agents found by what they can do; deterministic, best match first, then by name."""

import re
from collections.abc import Iterable
from dataclasses import dataclass

from remit.core.card import Card

_WORD = re.compile(r"[a-z0-9+#]+")
_ANYTHING = 0.01  # whoever can do anything is asked when no one can do just this
_SHORTEST = 3  # "on", "a" and "i" say nothing about an agent


@dataclass(frozen=True, slots=True)
class Match:
    card: Card
    score: float
    why: str


def rank(wanted: str, cards: Iterable[Card]) -> list[Match]:
    """Rank the cards that have at least one word of what is wanted, by the share of it they cover."""
    words = _words(wanted)
    matches = [match for card in cards if (match := _match(words, card)) is not None]
    return sorted(matches, key=lambda match: (-match.score, match.card.name))


def _match(wanted: frozenset[str], card: Card) -> Match | None:
    best = 0.0
    why = ""
    for capability in card.can:
        has = _words(capability)
        hits = wanted & has
        if hits and (score := len(hits) / len(wanted) + len(hits) / len(has) / 10) > best:
            best, why = score, f"can {capability}"
    if not best and "*" in card.can:
        best, why = _ANYTHING, "can do anything"
    hits = wanted & _words(f"{card.name} {card.role}")
    if hits and (score := len(hits) / len(wanted) * 0.9) > best:
        best, why = score, f"named for {', '.join(sorted(hits))}"
    return Match(card, round(best, 3), why) if best else None


def _words(text: str) -> frozenset[str]:
    words = (word.removesuffix("s") for word in _WORD.findall(text.lower()))
    return frozenset(word for word in words if len(word) >= _SHORTEST or not word.isalpha())
