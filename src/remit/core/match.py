"""Matches: agents found by what they can do; deterministic, best match first, then by name.

What is wanted is taken as words: those that say nothing ("the", "please", "agent") are left out, and the rest is looked
for in a card's name, in each of its capabilities and in its role. A word is found as it is, by a word that means the
same, or by one that is nearly the same ("search", "searcher"). Finding lists whoever has some of it; choosing wants
most of it, and nobody else close by.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, NamedTuple
from unicodedata import normalize

from remit.core.card import Card

# Points for having all the words that are wanted in one place; a part of them has a part of the points.
_NAME: Final = 15.0
_CAPABILITY: Final = 10.0
_ROLE: Final = 8.0
_DIRECT: Final = 3.0  # a capability that is wanted and nothing else
_WORD: Final = 1.5  # for each word that is found as it is
_ANYTHING: Final = 0.01  # whoever can do anything is asked when no one can do just this

LISTED: Final = 0.25  # the share of the words that a card must have to be listed
CHOSEN: Final = 0.7  # and to be chosen without asking back
MARGIN: Final = 1.2  # how many times the points of the next one

_SIMILAR: Final = 0.66  # of the trigrams of the shorter word
_ALIKE: Final = 0.8  # what a synonym or a similar word counts for
_LIGHT_WORD: Final = 0.4  # what a word counts for that says little: whoever wants something, finds it
_SHORTEST: Final = 4  # letters of a word that can be similar to another
_ROLE_READ: Final = 500  # characters
_TOLD: Final = 3  # candidates, when nobody is chosen

_SAYS_NOTHING: Final = """
a about also an and any are as at be but by can could do does for from get give has have how i if in into is it its
just let like make me my need no not of on one or our out please should so some than that the their them then there
these they thing this those to up us use want was we what when where which who will with would you your
agent agents assistant someone somebody something stuff task things work
"""
_NOTHING: Final = frozenset(_SAYS_NOTHING.split())
_LIGHT: Final = frozenset(["find", "look", "lookup", "search", "show"])
_GROUPS: Final = (
    "document doc file",
    "memory remember recall past history",
    "web internet online browse url link",
    "email mail send",
    "notification notify alert",
    "search find lookup",
)
_MEANS: Final[Mapping[str, str]] = {word: group for group in _GROUPS for word in group.split()}


@dataclass(frozen=True, slots=True)
class Match:
    """An agent that was found: its points, why, and the share of what is wanted that it has. `direct` says that it
    names the very capability."""

    card: Card
    score: float
    why: str
    covers: float = 0.0
    direct: bool = False


class _Place(NamedTuple):
    """Words of a card that belong together, and how the place is told."""

    words: frozenset[str]
    points: float
    told: str


class _Profile(NamedTuple):
    """A card as it is looked at: all its words, and where they are."""

    words: frozenset[str]
    places: tuple[_Place, ...]


class _Wanted(NamedTuple):
    """What is wanted: its words and what each counts for, and the words of cards that stand for them, and how well."""

    words: Mapping[str, float]
    near: Mapping[str, tuple[tuple[str, float], ...]]
    known: frozenset[str]

    @property
    def whole(self) -> float:
        return sum(self.words.values())


def rank(wanted: str, cards: Iterable[Card]) -> list[Match]:
    """Rank the cards that have enough of what is wanted to be worth a look."""
    words = {word: _LIGHT_WORD if word in _LIGHT else 1.0 for word in words_of(wanted)}
    if not words:
        return []
    profiles = [(card, _profile(card.name, card.role, card.can)) for card in cards]
    known = frozenset[str]().union(*[profile.words for _, profile in profiles])
    near = {word: found for word in known if (found := _near(word, words))}
    looked = _Wanted(words, near, frozenset(near))
    matches = [match for card, profile in profiles if (match := _match(card, profile, looked)) is not None]
    return sorted(matches, key=lambda match: (-match.score, match.card.name))


def choice(matches: Sequence[Match]) -> Match | None:
    """Choose whom to ask without asking back: the one that names the capability itself, or that has most of what is
    wanted and is clearly ahead of the next. None if that is nobody."""
    fit = [match for match in matches if match.covers >= CHOSEN]
    if not fit:
        return next((match for match in matches if match.score == _ANYTHING), None)
    if direct := [match for match in fit if match.direct]:
        return direct[0]
    others = [match.score for match in matches if match is not fit[0]]
    return fit[0] if fit[0].score >= MARGIN * max(others, default=0.0) else None


def unclear(wanted: str, matches: Sequence[Match], others: Sequence[Card]) -> str:
    """Say that nobody can be chosen, and who there is: the nearest ones, or else those who may be asked at all."""
    near = [match.card for match in matches]
    if near:
        said, cards = f"it is not clear who can {wanted}; the nearest are", near
    else:
        said, cards = f"no one you may ask can {wanted}; there is", list(others)
    if not cards:
        return f"no one you may ask can {wanted}; do it yourself or finish without"
    more = f" and {len(cards) - _TOLD} more" if len(cards) > _TOLD else ""
    listed = "; ".join(_told(card) for card in cards[:_TOLD])
    return f"{said}: {listed}{more}. Ask one of them by name, do it yourself or finish without"


def _told(card: Card) -> str:
    about = ", ".join(card.can) or card.role
    return f"{card.name} ({f'can {about}' if card.can else about})" if about else card.name


def suits(wanted: str, card: Card) -> bool:
    """Tell whether a card has most of what is wanted, or can do anything."""
    return any(match.covers >= CHOSEN or match.score == _ANYTHING for match in rank(wanted, (card,)))


def words_of(text: str) -> tuple[str, ...]:
    """List the words that say something, each once, in their order: letters and digits of any script, + and #."""
    folded = normalize("NFKC", text).casefold()
    spaced = "".join([letter if letter.isalnum() or letter in "+#" else " " for letter in folded])
    return tuple(dict.fromkeys(_stem(word) for word in spaced.split() if _says_something(word)))


def _says_something(word: str) -> bool:
    if word in _NOTHING or not word.strip("+#"):
        return False
    return len(word) > 1 or word.isdigit() or not word.isascii()


def _stem(word: str) -> str:
    """Take the plural off."""
    if len(word) > _SHORTEST and word.endswith("ies"):
        return f"{word[:-3]}y"
    return word[:-1] if len(word) >= _SHORTEST and word.endswith("s") and not word.endswith("ss") else word


@lru_cache(maxsize=4096)  # a card is looked at again for every question
def _profile(name: str, role: str, can: tuple[str, ...]) -> _Profile:
    places = [_Place(frozenset(words_of(one)), _CAPABILITY, f"can {one}") for one in can if one != "*"]
    places.append(_Place(frozenset(words_of(name)), _NAME, "named for"))
    places.append(_Place(frozenset(words_of(role[:_ROLE_READ])), _ROLE, "its role says"))
    return _Profile(frozenset[str]().union(*[place.words for place in places]), tuple(places))


def _near(word: str, wanted: Iterable[str]) -> tuple[tuple[str, float], ...]:
    """Tell which of the wanted words this one stands for, and how well."""
    return tuple([(want, how) for want in wanted if (how := _closeness(want, word))])


def _closeness(wanted: str, word: str) -> float:
    if wanted == word:
        return 1.0
    if wanted in _MEANS and _MEANS[wanted] == _MEANS.get(word):
        return _ALIKE
    if wanted[:2] != word[:2] or len(wanted) < _SHORTEST or len(word) < _SHORTEST:
        return 0.0
    one, other = _trigrams(wanted), _trigrams(word)
    return _ALIKE if len(one & other) >= _SIMILAR * min(len(one), len(other)) else 0.0


@lru_cache(maxsize=16_384)
def _trigrams(word: str) -> frozenset[str]:
    padded = f"  {word} "
    return frozenset([padded[at : at + 3] for at in range(len(padded) - 2)])


def _match(card: Card, profile: _Profile, wanted: _Wanted) -> Match | None:
    if profile.words.isdisjoint(wanted.known):
        return _anything(card)
    best: dict[str, float] = {}  # each wanted word, and how well the card has it anywhere
    points: dict[float, float] = {}  # of each kind of place, the best
    why, most, direct = "", 0.0, False
    for place in profile.places:
        if not (found := _found(place.words, wanted)):
            continue
        for want, how in found.items():
            best[want] = max(best.get(want, 0.0), how)
        here = place.points * _share(found, wanted)
        if place.points == _CAPABILITY and len(found) == len(wanted.words) == len(place.words):
            direct = True
            here += _DIRECT
        points[place.points] = max(points.get(place.points, 0.0), here)
        if here > most:
            why, most = place.told, here
            if place.points != _CAPABILITY:
                why = f"{place.told} {', '.join(sorted(place.words & wanted.known))}"
    covers = _share(best, wanted)
    if covers < LISTED:
        return _anything(card)
    exact = sum(how == 1.0 for how in best.values())
    return Match(card, round(sum(points.values()) + _WORD * exact, 3), why, round(covers, 3), direct)


def _anything(card: Card) -> Match | None:
    return Match(card, _ANYTHING, "can do anything") if "*" in card.can else None


def _found(words: frozenset[str], wanted: _Wanted) -> dict[str, float]:
    found: dict[str, float] = {}
    for word in words & wanted.known:
        for want, how in wanted.near[word]:
            found[want] = max(found.get(want, 0.0), how)
    return found


def _share(found: Mapping[str, float], wanted: _Wanted) -> float:
    return sum([wanted.words[want] * how for want, how in found.items()]) / wanted.whole
