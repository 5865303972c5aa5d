"""Words: what is read of a text when agents are looked for, which words mean the same, and which are spelled alike."""

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Final, NamedTuple
from unicodedata import normalize

from remit.core.card import Card

_WORD: Final = re.compile(r"(?:[^\W_]|[+#])+")
READ: Final = 500  # characters of a role and of instructions
_LONGEST: Final = 64  # letters of a word; the rest of it is not looked at
_SHORTEST: Final = 4  # letters of a word that can be spelled like another

_SAYS_NOTHING: Final = """
a about after again all also am an and any are as at be been before being but by can cannot come could did do does doing
done for from get gets getting give go goes going got had has have having he her here him his how i if in into is it its
itself just let like made make makes making many may me more most much must my need needs no nor not now of off on one
only or other our out over own please put said same say says shall she should so some such take takes taking tell than
that the their them then there these they this those through to too up upon us use used uses using very via want wants
was we were what when where whether which while who whom whose why will with within without would yes yet you your
agent agents assistant someone somebody something stuff task tasks thing things work
"""
_NOTHING: Final = frozenset(_SAYS_NOTHING.split())
_GROUPS: Final = (
    "document doc file",
    "memory remember recall past history",
    "web internet online browse url link",
    "email mail send",
    "notification notify alert",
    "search find lookup",
)
_MEANS: Final[Mapping[str, tuple[str, ...]]] = {
    word: tuple(other for other in group.split() if other != word) for group in _GROUPS for word in group.split()
}
# Whoever wants something finds it: these say little about what it is.
LIGHT: Final = frozenset(["find", "look", "lookup", "search", "show"])


class CardPart(NamedTuple):
    """Words of a card that belong together, how much they weigh, and how the place is told."""

    words: frozenset[str]
    weight: float
    told: str
    capability: bool = False


def words_of(text: str) -> tuple[str, ...]:
    """List the words that say something, each once, in their order: letters and digits of any script, + and #."""
    found = _WORD.findall(normalize("NFKC", text).casefold())
    return tuple(dict.fromkeys([_stem(word[:_LONGEST]) for word in found if _says_something(word)]))


def _says_something(word: str) -> bool:
    if word in _NOTHING or not word.strip("+#"):
        return False
    return len(word) > 1 or word.isdigit() or not word.isascii()


def _stem(word: str) -> str:
    """Take the plural off."""
    if len(word) > _SHORTEST and word.endswith("ies"):
        return f"{word[:-3]}y"
    return word[:-1] if len(word) >= _SHORTEST and word.endswith("s") and not word.endswith("ss") else word


def meaning_the_same(word: str) -> tuple[str, ...]:
    """List the other words that mean the same."""
    return _MEANS.get(word, ())


@lru_cache(maxsize=16_384)
def trigrams(word: str) -> frozenset[str]:
    """Cut a word into pieces of three letters, its ends marked; a short word has none, it is spelled like no other."""
    if len(word) < _SHORTEST:
        return frozenset()
    padded = f"  {word} "
    return frozenset([padded[at : at + 3] for at in range(len(padded) - 2)])


@lru_cache(maxsize=512)  # whoever was found is often found again
def places(card: Card) -> tuple[CardPart, ...]:
    """Read a card: its name says most, then what it can do, then its role and its instructions."""
    found = [CardPart(frozenset(words_of(card.name)), _weight(15), "named for")]
    found += [CardPart(frozenset(words_of(can)), _weight(10), f"can {can}", True) for can in card.can if can != "*"]
    found.append(CardPart(frozenset(words_of(card.role[:READ])), _weight(8), "its role says"))
    found.append(CardPart(frozenset(words_of(card.instructions[:READ])), _weight(8), "its instructions say"))
    return tuple(found)


def _weight(points: int) -> float:
    return 0.6 + 0.4 * points / 15


def about(card: Card) -> str:
    """Say what a card is about in one text: what is read of it."""
    parts = (card.name, "; ".join(can for can in card.can if can != "*"), card.role[:READ], card.instructions[:READ])
    return "\n".join(part for part in parts if part)
