"""The index: the words of many cards turned round, so that finding looks only at those that have one of the words.

A card is read once, when it is added. Who may be asked differs from asker to asker, so what a word weighs is counted at
each question, among those: by the agents that have it, which the index knows.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from heapq import nsmallest
from math import log
from typing import Final, NamedTuple

from remit.core.card import Card
from remit.core.match.choosing import ANYTHING, CALIBRATED, Certainty, Match, enough
from remit.core.match.words import LIGHT, CardPart, bases, meaning_the_same, one_slip, places, trigrams, words_of

MATCHES: Final = 10  # agents that are worth a look at most
_LISTED: Final = 0.15  # the score from which an agent is worth a look
_WORDS: Final = 64  # of a question, at most
_SYNONYM: Final = 0.75
_FORM: Final = 0.7  # for a word that is another form of the one wanted
_SLIP: Final = 0.5  # for a word that differs by one slip
_CHANGED: Final = 4  # trigrams that one slip changes at most
_LIGHT_WORD: Final = 0.4
_CROWD: Final = 20  # agents: among fewer a word weighs as it would there, or what nobody has would outweigh all else
_REMEMBERED: Final = 10_000  # words of questions

Near = Mapping[str, float]  # words or agents, and how near each is


class _Roster(NamedTuple):
    """Those who may be asked: all, all `without` some, or `only` some, whichever is less to look at."""

    size: int
    only: AbstractSet[str] | None = None
    without: AbstractSet[str] = frozenset()

    def of(self, having: dict[str, float]) -> dict[str, float]:
        """Leave those of these agents who may be asked."""
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
    """A word of a question: what it weighs among those who may be asked, the words of cards that are near it, and how
    well each agent has it."""

    word: str
    weight: float
    near: Near
    found: Near


class _Asked(NamedTuple):
    """A whole question. Words that nobody has weigh too: they are in `whole`."""

    parts: list[_Part]
    whole: float
    alike: Near | None

    def share(self, name: str) -> float:
        return sum([part.weight * part.found.get(name, 0.0) for part in self.parts]) / self.whole

    def blended(self, name: str, share: float) -> float:
        return share if self.alike is None else (share + self.alike.get(name, 0.0)) / 2

    def best(self) -> list[str]:
        """List the agents with the best scores that are worth a look."""
        if self.alike is not None:
            sums = {name: self.blended(name, self.share(name)) for name in self.alike}
            least = _LISTED
        else:
            sums, least = self._sums(), _LISTED * self.whole
        scores = [(-score, name) for name, score in sums.items() if score >= least]
        return [name for _, name in nsmallest(MATCHES, scores)]

    def _sums(self) -> dict[str, float]:
        """Add up what agents have, what weighs most first: whoever has none of it until what is left is too little to
        be listed for is not looked at any more."""
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
        """Read a card."""
        self._near.clear()
        self._cards[card.name] = card
        if "*" in card.can:
            self._anything.add(card.name)
        weights: dict[str, float] = {}
        for place in reversed(places(card)):  # what weighs most comes last
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
        """Rank those `among` all that have enough of what is wanted to be worth a look, the best of them; then those
        that can do anything. `alike` says of each, from 0 to 1, how near its meaning is."""
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
        found = roster.of(self._having.get(word, {}))  # the word itself: no other way to have it counts for more
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
        # Vectors find agents that share no word with what is wanted, so how many words are shared decides nothing.
        fits = enough(share, found, len(telling), least) if asked.alike is None else score >= least
        read = places(card)
        if any(_is_direct(place, asked.parts) for place in read):
            return Match(card, 1.0, _why(read, asked.parts), fits=True, direct=True)
        why = _why(read, asked.parts) if share else "means nearly the same"
        return Match(card, round(score, 3), why, fits=fits)

    def _near_words(self, word: str) -> Near:
        """Find the words of cards that stand for a word, and how well."""
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
    """Whether a capability is what is wanted and nothing else, in the same words or forms of them. A word that differs
    by a slip may be another word."""
    same = place.capability and len(place.words) == len(parts)
    return same and all(any(part.near.get(word, 0.0) >= _FORM for word in place.words) for part in parts)


def _why(read: Sequence[CardPart], parts: list[_Part]) -> str:
    """Tell the place that says most of what is wanted, and unless it is a capability, which of its words do."""

    def points(place: CardPart) -> float:
        nearest = [max([part.near[word] for word in part.near.keys() & place.words], default=0.0) for part in parts]
        return place.weight * sum([part.weight * how for part, how in zip(parts, nearest, strict=True)])

    best = max(read, key=points)
    if best.capability:
        return best.told
    return f"{best.told} {', '.join(sorted({word for part in parts for word in part.near.keys() & best.words}))}"


def suits(wanted: str, card: Card) -> bool:
    """Tell whether a card has enough of what is wanted, or can do anything."""
    return any(match.fits or match.score == ANYTHING for match in rank(wanted, (card,)))


def rank(wanted: str, cards: Iterable[Card]) -> list[Match]:
    """Rank a few cards that are looked at once."""
    return Index(cards).rank(wanted)
