"""The words of a text: which of them count, which mean the same, which are forms of one word, and which differ by a
slip of the pen."""

import re
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Final, NamedTuple
from unicodedata import normalize

from remit.core.card import Card

_WORD: Final = re.compile(r"(?:[^\W_]|[+#])+")
READ: Final = 500  # characters of a role and of instructions
_LONGEST: Final = 64  # letters of a word; the rest of it is not looked at
_PLURAL: Final = 4  # letters of a word, from which on an s at its end is a plural
_SHORTEST: Final = 5  # letters of a word that can have a slip: of shorter words one letter makes another word

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
# Endings that make another form of a word, and how many letters must be left of it: "miss" and "mission" are two words.
_ENDINGS: Final = (("ing", 3), ("ed", 3), ("er", 3), ("ment", 3), ("or", 4), ("ly", 4), ("ation", 4), ("ion", 5))
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
    if len(word) > _PLURAL and word.endswith("ies"):
        return f"{word[:-3]}y"
    return word[:-1] if len(word) >= _PLURAL and word.endswith("s") and not word.endswith("ss") else word


def meaning_the_same(word: str) -> tuple[str, ...]:
    """List the other words that mean the same."""
    return _MEANS.get(word, ())


def bases(word: str) -> Iterator[str]:
    """Yield the word and what may be left of it without its ending. Two words that share one are forms of one word:
    "planner" and "planning", "translate" and "translation"."""
    yield word
    if word.endswith(("che", "she", "sse", "xe")):
        yield word[:-1]  # of a plural: "breaches"
    for ending, least in _ENDINGS:
        root = word.removesuffix(ending)
        if root == word or len(root) < least:
            continue
        yield root
        yield f"{root}e"
        if root[-1] == root[-2]:
            yield root[:-1]
        if root[-1] == "i":
            yield f"{root[:-1]}y"


@lru_cache(maxsize=16_384)
def trigrams(word: str) -> frozenset[str]:
    """Cut a word into pieces of three letters, its ends marked. A word that is too short for a slip has none."""
    if len(word) < _SHORTEST:
        return frozenset()
    padded = f"  {word} "
    return frozenset([padded[at : at + 3] for at in range(len(padded) - 2)])


def one_slip(one: str, other: str) -> bool:
    """Whether two different words differ by one slip: a letter that is missing, added, wrong, or swapped with the
    next."""
    short, long = sorted((one, other), key=len)
    if len(long) - len(short) > 1:
        return False
    at = next((at for at, (a, b) in enumerate(zip(short, long, strict=False)) if a != b), len(short))
    if len(short) < len(long):
        return short[at:] == long[at + 1 :]
    return short[at + 1 :] == long[at + 1 :] or short[at:] == f"{long[at + 1 : at + 2]}{long[at]}{long[at + 2 :]}"


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
