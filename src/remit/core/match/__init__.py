"""Matches: agents found by what they can do; deterministic, best match first, then by name.

What is wanted is taken as words. Those that say nothing ("the", "please", "agent") are left out; each of the rest is
looked for in a card's name, capabilities, role and instructions: as it is, as a word that means the same, or as one
that is spelled nearly so. Rare words weigh more than those that many cards have, and words that no card has weigh
most: whoever wants something that nobody here does finds nobody.
"""

from remit.core.match.choosing import BEST, Match, behind, choice, unclear
from remit.core.match.index import MATCHES, Index, rank, suits
from remit.core.match.words import about, words_of

__all__ = ["BEST", "MATCHES", "Index", "Match", "about", "behind", "choice", "rank", "suits", "unclear", "words_of"]
