"""Matches: agents found by their capabilities; deterministic, best match first, then by name.

The request is split into words. Stop words ("the", "please", "agent") are left out. Each of the other words is looked
up in a card's name, capabilities, role and instructions: the word itself, a synonym, another form of it, or a word of
five letters or more that differs by one typo. Rare words weigh more than words that many cards have. Words that no card
has weigh most, so a request that no agent can handle matches no agent.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import replace
from functools import lru_cache
from heapq import nsmallest
from math import log
from typing import Final
from unicodedata import normalize

from remit.core.card import Card
from remit.core.patterns import pattern
from remit.core.records import NamedTuple, dataclass

_WORD: Final = pattern(r"(?:[^\W_]|[+#])+")
READ: Final = 500  # characters of a role and of instructions
_LONGEST: Final = 64  # letters of a word; the rest is ignored
_PLURAL: Final = 4  # letters; in a word this long a final s is a plural
_SHORTEST: Final = 5  # letters; in a shorter word one other letter makes another word

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
# Many requests contain these words, whatever they ask for, so the words weigh little.
LIGHT: Final = frozenset(["find", "look", "lookup", "search", "show"])


class CardPart(NamedTuple):
    """A part of a card: its words, their weight, and how a match there is explained."""

    words: frozenset[str]
    weight: float
    told: str
    capability: bool = False


def words_of(text: str) -> tuple[str, ...]:
    """Return the words that carry meaning, each once, in their order: letters and digits of any script, + and #."""
    found = _WORD.findall(normalize("NFKC", text).casefold())
    return tuple(dict.fromkeys([_stem(word[:_LONGEST]) for word in found if _says_something(word)]))


def _says_something(word: str) -> bool:
    if word in _NOTHING or not word.strip("+#"):
        return False
    return len(word) > 1 or word.isdigit() or not word.isascii()


def _stem(word: str) -> str:
    """Return the word without its plural ending."""
    if len(word) > _PLURAL and word.endswith("ies"):
        return f"{word[:-3]}y"
    return word[:-1] if len(word) >= _PLURAL and word.endswith("s") and not word.endswith("ss") else word


def meaning_the_same(word: str) -> tuple[str, ...]:
    """Return the synonyms of a word."""
    return _MEANS.get(word, ())


def bases(word: str) -> Iterator[str]:
    """Yield the word and its possible stems. Two words that share a stem are forms of one word: "planner" and
    "planning", "translate" and "translation"."""
    yield word
    if word.endswith(("che", "she", "sse", "xe")):
        yield word[:-1]  # for a plural such as "breaches"
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
    """Return the word as pieces of three letters, with its ends marked. A word too short for a typo has none."""
    if len(word) < _SHORTEST:
        return frozenset()
    padded = f"  {word} "
    return frozenset([padded[at : at + 3] for at in range(len(padded) - 2)])


def one_slip(one: str, other: str) -> bool:
    """Whether two different words differ by one typo: a letter that is missing, added, wrong, or swapped with the
    next."""
    short, long = sorted((one, other), key=len)
    if len(long) - len(short) > 1:
        return False
    # Everything before the first difference is equal, so only the rest has to be compared.
    at = next((at for at, (a, b) in enumerate(zip(short, long, strict=False)) if a != b), len(short))
    if len(short) < len(long):
        return short[at:] == long[at + 1 :]
    return short[at + 1 :] == long[at + 1 :] or short[at:] == f"{long[at + 1 : at + 2]}{long[at]}{long[at + 2 :]}"


@lru_cache(maxsize=512)  # the same agents are found again and again
def places(card: Card) -> tuple[CardPart, ...]:
    """Return the parts of a card with their weights: the name weighs most, then capabilities, then role and
    instructions."""
    found = [CardPart(frozenset(words_of(card.name)), _weight(15), "named for")]
    found += [CardPart(frozenset(words_of(can)), _weight(10), f"can {can}", True) for can in card.can if can != "*"]
    found.append(CardPart(frozenset(words_of(card.role[:READ])), _weight(8), "its role says"))
    found.append(CardPart(frozenset(words_of(card.instructions[:READ])), _weight(8), "its instructions say"))
    return tuple(found)


def _weight(points: int) -> float:
    return 0.6 + 0.4 * points / 15


def about(card: Card) -> str:
    """Return the searched parts of a card as one text."""
    parts = (card.name, "; ".join(can for can in card.can if can != "*"), card.role[:READ], card.instructions[:READ])
    return "\n".join(part for part in parts if part)


FEW: Final = 3  # words; up to so many, all must match, otherwise two
BEST: Final = 3  # agents in a refusal
ANYTHING: Final = 0.01  # the score of can="*": called if no other agent matches


class Certainty(NamedTuple):
    """How clear a match must be for a delegation by capability: the least `score` of the agent, from 0 to 1, and the
    `margin` by which it is ahead of the second."""

    score: float = 0.22
    margin: float = 0.08


CALIBRATED: Final = Certainty()


@dataclass(frozen=True, slots=True)
class Match:
    """An agent that was found, with its score from 0 to 1 and the reason.

    `fits` says that it has enough of the wanted words to be called without asking back; `direct` that its card lists
    exactly this capability; `free` that it can be called now: its circuit breaker is closed and it has a free slot;
    `chosen` that a delegation by capability calls it.
    """

    card: Card
    score: float
    why: str
    fits: bool = False
    direct: bool = False
    free: bool = True
    chosen: bool = False


def enough(score: float, found: int, words: int, least: float) -> bool:
    """Whether a card matches a request of so many `words` well enough: its score is at least `least`, and the number of
    its matching words, `found`, is at least two, or all of a request of up to `FEW` words."""
    return score >= least and found >= (words if words <= FEW else 2)


def behind(matches: Sequence[Match], hindered: Mapping[str, str]) -> list[Match]:
    """Return the matches in their order, but with the agents that cannot be called now at the end, and the reason added
    to `why`. `hindered` has the reasons of these agents by name."""
    free = [match for match in matches if match.card.name not in hindered]
    others = [match for match in matches if match.card.name in hindered]
    return free + [replace(one, free=False, why=f"{one.why}; {hindered[one.card.name]}") for one in others]


def choice(matches: Sequence[Match], certainty: Certainty = CALIBRATED) -> Match | None:
    """Return the match to delegate to, or None if no match is clear. A clear match lists exactly this capability, or it
    fits and its score is ahead of all others by the margin. If no match fits, return one with `can="*"`, if there is
    any. Consider only the agents that are free now; if that gives no match, consider all."""
    margin = certainty.margin
    return _choice([match for match in matches if match.free], margin) or _choice(matches, margin)


def _choice(matches: Sequence[Match], margin: float) -> Match | None:
    fit = [match for match in matches if match.fits]
    if not fit:
        return next((match for match in matches if match.score == ANYTHING), None)
    if direct := [match for match in fit if match.direct]:
        return direct[0]
    best = max(fit, key=lambda match: match.score)
    ahead = best.score - max([match.score for match in matches if match is not best], default=0.0)
    return best if ahead >= margin else None


def unclear(wanted: str, matches: Sequence[Match], others: Sequence[Card]) -> str:
    """Return the refusal when no agent can be chosen: it lists the best three with their scores, or else some of the
    agents that may be asked at all."""
    if matches:
        said, listed = f"it is not clear who can {wanted}; the nearest are", [_scored(one) for one in matches[:BEST]]
    else:
        said, listed = f"no one you may ask can {wanted}; there is", [_name_and_about(card) for card in others[:BEST]]
    if not listed:
        return f"no one you may ask can {wanted}; do it yourself or finish without"
    more = f" and {len(others) - BEST} more" if not matches and len(others) > BEST else ""
    return f"{said}: {'; '.join(listed)}{more}. Ask one of them by name, do it yourself or finish without"


def _scored(match: Match) -> str:
    said = f"{_about(match.card)}; score {match.score:.2f}".removeprefix("; ")
    return f"{match.card.name} ({said}{'' if match.free else '; not now'})"


def _name_and_about(card: Card) -> str:
    about = _about(card)
    return f"{card.name} ({about})" if about else card.name


def _about(card: Card) -> str:
    return f"can {', '.join(card.can)}" if card.can else card.role


MATCHES: Final = 10  # agents in a ranking
_LISTED: Final = 0.15  # the least score in a ranking
_WORDS: Final = 64  # of a request
_SYNONYM: Final = 0.75
_FORM: Final = 0.7  # score of another form of the word
_SLIP: Final = 0.5  # score of a word with one typo
_CHANGED: Final = 4  # trigrams that one typo changes at most
_LIGHT_WORD: Final = 0.4
# Agents; in a smaller team a word weighs as in one of this size. Otherwise a word that no card has would outweigh
# everything else.
_CROWD: Final = 20
_REMEMBERED: Final = 10_000  # words of questions

Near = Mapping[str, float]  # words or agents, and how near each is


class _Roster(NamedTuple):
    """The agents that may be asked: all, all `without` some, or `only` some, whichever set is smaller."""

    size: int
    only: AbstractSet[str] | None = None
    without: AbstractSet[str] = frozenset()

    def of(self, having: dict[str, float]) -> dict[str, float]:
        """Return the scores of the agents that may be asked."""
        if self.only is not None:
            return {name: having[name] for name in having.keys() & self.only}
        if having.keys().isdisjoint(self.without):
            return having
        left = {**having}
        for name in self.without:
            left.pop(name, None)
        return left


def _roster(cards: AbstractSet[str], among: AbstractSet[str] | None) -> _Roster:
    if among is None:
        return _Roster(len(cards))
    without = cards - among
    left = len(cards) - len(without)
    return _Roster(left, without=without) if len(without) < left else _Roster(left, only=cards & among)


class _Part(NamedTuple):
    """A word of a request: its weight among the agents that may be asked, the words of cards that are near it, and how
    well each agent matches it."""

    word: str
    weight: float
    near: Near
    found: Near


class _Asked(NamedTuple):
    """A whole request. `whole` is the weight of all its words, including words that no card has. `alike` is the
    semantic similarity of each agent, or None if there are no embeddings."""

    parts: list[_Part]
    whole: float
    alike: Near | None

    def share(self, name: str) -> float:
        return sum([part.weight * part.found.get(name, 0.0) for part in self.parts]) / self.whole

    def blended(self, name: str, share: float) -> float:
        return share if self.alike is None else (share + self.alike.get(name, 0.0)) / 2

    def best(self) -> list[str]:
        """Return the names of the agents with the best scores, at most `MATCHES`, the best first. Leave out scores
        below the threshold for a listing."""
        if self.alike is not None:
            sums = {name: self.blended(name, self.share(name)) for name in self.alike}
            least = _LISTED
        else:
            sums, least = self._sums(), _LISTED * self.whole
        scores = [(-score, name) for name, score in sums.items() if score >= least]
        return [name for _, name in nsmallest(MATCHES, scores)]

    def _sums(self) -> dict[str, float]:
        """Return the score sums of agents. Words are added by weight, the heaviest first: once the rest is too light to
        reach the listing threshold, agents that have no points yet are skipped."""
        sums: dict[str, float] = {}
        left = self.whole
        for _, weight, _, found in sorted(self.parts, key=lambda part: -part.weight):
            names = found if left >= _LISTED * self.whole else found.keys() & sums.keys()
            for name in names:
                sums[name] = sums.get(name, 0.0) + weight * found[name]
            left -= weight
        return sums


class Index:
    def __init__(self, cards: Iterable[Card] = ()) -> None:
        self._cards: dict[str, Card] = {}
        self._having: dict[str, dict[str, float]] = {}  # a word: the agents that have it, and the weight of the place
        self._spelled: dict[str, list[str]] = {}  # a trigram: the words that have it
        self._forms: dict[str, list[str]] = {}  # a base: the words that are forms of it
        self._anything: set[str] = set()
        self._near: dict[str, Near] = {}  # a word of a question: the words of cards that stand for it
        for card in cards:
            self.add(card)

    def add(self, card: Card) -> None:
        """Index a card."""
        self._near.clear()
        self._cards[card.name] = card
        if "*" in card.can:
            self._anything.add(card.name)
        weights: dict[str, float] = {}
        for place in reversed(places(card)):  # the heaviest part comes last and wins
            weights.update(dict.fromkeys(place.words, place.weight))
        for word, weight in weights.items():
            having = self._having.get(word)
            if having is None:
                having = self._learn(word)
            having[card.name] = weight

    def card(self, name: str) -> Card:
        return self._cards[name]

    def _learn(self, word: str) -> dict[str, float]:
        for piece in trigrams(word):
            self._spelled.setdefault(piece, []).append(word)
        for base in bases(word):
            self._forms.setdefault(base, []).append(word)
        return self._having.setdefault(word, {})

    def rank(
        self,
        wanted: str,
        among: AbstractSet[str] | None = None,
        alike: Near | None = None,
        certainty: Certainty = CALIBRATED,
    ) -> list[Match]:
        """Return the best matches `among` these agents (None: all), then the agents with `can="*"`. Return an empty
        list if no word of `wanted` carries meaning. `alike` is the semantic similarity of each agent, from 0 to 1."""
        words = words_of(wanted)[:_WORDS]
        if not words:
            return []
        roster = _roster(self._cards.keys(), among)
        parts = [self._part(word, roster) for word in words]
        asked = _Asked(parts, sum([part.weight for part in parts]), alike)
        matches = [self._match(name, asked, certainty.score) for name in asked.best()]
        matches.sort(key=lambda match: (-match.score, match.card.name))
        named = {match.card.name for match in matches}
        handy = sorted(roster.of(dict.fromkeys(self._anything, 0.0)).keys() - named)
        return [*matches, *[Match(self._cards[name], ANYTHING, "can do anything") for name in handy]]

    # -- inside -----------------------------------------------------------------------------------------

    def _part(self, word: str, roster: _Roster) -> _Part:
        near = self._near_words(word)
        found = roster.of(self._having.get(word, {}))  # an exact match: no other match scores higher
        if len(near) > (word in near):
            found = {**found}
            exact = {*found}
            for other, how in near.items():
                for name, weight in roster.of(self._having[other]).items() if other != word else ():
                    if name not in exact and how * weight > found.get(name, 0.0):
                        found[name] = how * weight
        weight = log(1 + max(roster.size, _CROWD) / (0.5 + len(found)))
        return _Part(word, weight * _LIGHT_WORD if word in LIGHT else weight, near, found)

    def _match(self, name: str, asked: _Asked, least: float) -> Match:
        card, share = self._cards[name], asked.share(name)
        telling = [part for part in asked.parts if part.word not in LIGHT] or asked.parts
        found = sum([name in part.found for part in telling])
        score = asked.blended(name, share)
        # With vectors, an agent may match without sharing a word, so the number of shared words must not decide.
        fits = enough(share, found, len(telling), least) if asked.alike is None else score >= least
        read = places(card)
        if any(_is_direct(place, asked.parts) for place in read):
            return Match(card, 1.0, _why(read, asked.parts), fits=True, direct=True)
        why = _why(read, asked.parts) if share else "means nearly the same"
        return Match(card, round(score, 3), why, fits=fits)

    def _near_words(self, word: str) -> Near:
        """Return the words of cards that match a word, with how well they do."""
        near = self._near.get(word)
        if near is None:
            if len(self._near) >= _REMEMBERED:
                self._near.clear()
            near = self._near[word] = self._look_up(word)
        return near

    def _look_up(self, word: str) -> Near:
        pieces = trigrams(word)
        shared = Counter[str]()
        for piece in pieces:
            shared.update(self._spelled.get(piece, ()))
        likely = [other for other, count in shared.items() if count >= len(pieces) - _CHANGED]
        near = {other: _SLIP for other in likely if one_slip(word, other)}
        near |= {other: _FORM for base in bases(word) for other in self._forms.get(base, ())}
        near |= {other: _SYNONYM for other in meaning_the_same(word) if other in self._having}
        if word in self._having:
            near[word] = 1.0
        return near


def _is_direct(place: CardPart, parts: list[_Part]) -> bool:
    """Whether the capability has exactly the requested words, or forms of them. Typos do not count here: a word that
    differs by one letter may be another word."""
    same = place.capability and len(place.words) == len(parts)
    return same and all(any(part.near.get(word, 0.0) >= _FORM for word in place.words) for part in parts)


def _why(read: Sequence[CardPart], parts: list[_Part]) -> str:
    """Return the reason for a match: the part of the card that matches best and, unless it is a capability, its
    matching words."""

    def points(place: CardPart) -> float:
        nearest = [max([part.near[word] for word in part.near.keys() & place.words], default=0.0) for part in parts]
        return place.weight * sum([part.weight * how for part, how in zip(parts, nearest, strict=True)])

    best = max(read, key=points)
    if best.capability:
        return best.told
    return f"{best.told} {', '.join(sorted({word for part in parts for word in part.near.keys() & best.words}))}"


def suits(wanted: str, card: Card) -> bool:
    """Whether a card matches the request well enough, or can do anything."""
    return any(match.fits or match.score == ANYTHING for match in rank(wanted, (card,)))


def rank(wanted: str, cards: Iterable[Card]) -> list[Match]:
    """Return the matches among a few cards, without keeping an index."""
    return Index(cards).rank(wanted)
