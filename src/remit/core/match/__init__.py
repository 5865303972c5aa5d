"""Matches: agents found by what they can do; deterministic, best match first, then by name.

The request is split into words. Words without a meaning of their own ("the", "please", "agent") are left out. Each of
the rest is looked up in a card's name, capabilities, role and instructions: the word itself, a synonym, another form of
it, or a word of five letters or more that differs by one slip. Rare words weigh more than words that many cards have.
Words that no card has weigh most, so a request that no agent here can do finds no agent.
"""

from remit.core.match.choosing import BEST, CALIBRATED, Certainty, Match, behind, choice, unclear
from remit.core.match.index import MATCHES, Index, rank, suits
from remit.core.match.words import about, words_of

__all__ = [
    "BEST",
    "CALIBRATED",
    "MATCHES",
    "Certainty",
    "Index",
    "Match",
    "about",
    "behind",
    "choice",
    "rank",
    "suits",
    "unclear",
    "words_of",
]
