"""Finding agents: by words, and by meaning if an owner passes an embedding function. Agents that can be called now come
first."""

from __future__ import annotations

import inspect
from asyncio import to_thread
from collections.abc import Awaitable, Callable, Collection, Iterable, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import replace
from math import hypot
from operator import mul
from typing import Final, TypeAlias

from remit.core.breaker import admits
from remit.core.card import Card
from remit.core.match import CALIBRATED, Certainty, Index, Match, about, behind, choice, unclear
from remit.engine.attempt.live import LiveTask
from remit.engine.ground import Ground
from remit.engine.traces import owners_function
from remit.errors import Refused
from remit.ports import View

Vectors: TypeAlias = Sequence[Sequence[float]]
Embed: TypeAlias = Callable[[list[str]], Vectors | Awaitable[Vectors]]

_AT_ONCE: Final = 256  # texts that are embedded in one call
_KEPT: Final = 20_000  # vectors


class Meanings:
    """The similarity of cards to a request, by an owner's embedding function. The vector of a card is computed once."""

    def __init__(self, embed: Embed) -> None:
        self._embed = embed
        self._vectors: dict[str, list[float]] = {}

    async def alike(self, wanted: str, cards: Collection[Card]) -> dict[str, float] | None:
        """Return for each card how much closer it is to the request than the other cards are on average, from 0 to 1.
        Return None if there are fewer than two cards.

        The meaning of a cosine differs from model to model, so only the difference between cards counts."""
        texts = {card.name: about(card) for card in cards}
        if len(texts) < 2:
            return None
        with owners_function("System(embed=...)"):
            known = await self._all((wanted, *texts.values()))
            return await to_thread(_nearness, known[wanted], {name: known[text] for name, text in texts.items()})

    async def _all(self, texts: Iterable[str]) -> dict[str, list[float]]:
        every = list(dict.fromkeys(texts))
        missing = [text for text in every if text not in self._vectors]
        for at in range(0, len(missing), _AT_ONCE):
            part = missing[at : at + _AT_ONCE]
            if len(self._vectors) + len(part) > _KEPT:
                self._vectors = {text: self._vectors[text] for text in every if text in self._vectors}
            made = await self._embedded(part)
            self._vectors.update(zip(part, [_of_length_one(vector) for vector in made], strict=True))
        return {text: self._vectors[text] for text in every}

    async def _embedded(self, texts: list[str]) -> Vectors:
        """Return the vectors of texts from the owner's function; a function that is not async runs in a thread, so that
        it does not block the loop."""
        made = self._embed(texts) if inspect.iscoroutinefunction(self._embed) else await to_thread(self._embed, texts)
        return await made if inspect.isawaitable(made) else made


class Finder:
    """Finds agents among those of this process, or among cards from the store."""

    def __init__(self, ground: Ground, embed: Embed | None = None, certainty: Certainty = CALIBRATED) -> None:
        self._ground = ground
        self._meanings = Meanings(embed) if embed is not None else None
        self._certainty = certainty
        self._read: tuple[list[Card], Index] = ([], Index())

    async def find(self, wanted: str, live: LiveTask) -> list[Match]:
        """Return the ranked agents that a holder may ask."""
        directory = self._ground.directory
        return await self._ranked(wanted, directory.index, directory.askable(live.remit, live.card))

    async def find_in(self, wanted: str, cards: list[Card]) -> list[Match]:
        """Return ranked cards from the store; the index is rebuilt only if they have changed."""
        if self._read[0] != cards:
            self._read = (cards, Index(cards))
        return await self._ranked(wanted, self._read[1], frozenset(card.name for card in cards))

    async def chosen(self, wanted: str, live: LiveTask) -> str:
        """Return the agent that a holder would ask for a capability now, or "" if that is unclear."""
        found = await self.find(wanted, live)
        return next((match.card.name for match in found if match.chosen), "")

    async def choose(self, wanted: str, live: LiveTask, ops: Callable[[str], list[str]]) -> str:
        """Return the agent to ask for a capability. In a rerun, return the agent that was asked before, even if another
        one is free by now; `ops` returns the operation ids of a request to an agent. Raise `Refused` if no match is
        clear."""
        matches = await self.find(wanted, live)
        if live.attempt.is_rerun and (before := await self._asked_before(matches, ops)):
            return before
        chosen = next((match for match in matches if match.chosen), None)
        if chosen is None:
            directory = self._ground.directory
            others = [directory.index.card(name) for name in sorted(directory.askable(live.remit, live.card))]
            raise Refused(unclear(wanted, matches, others), rule="unknown")
        return chosen.card.name

    async def _ranked(self, wanted: str, index: Index, among: AbstractSet[str]) -> list[Match]:
        alike = None
        if self._meanings is not None:
            alike = await self._meanings.alike(wanted, [index.card(name) for name in sorted(among)])
        matches = index.rank(wanted, among, alike, self._certainty)
        if not matches:
            return []
        now = self._ground.clock.now()
        found = behind(matches, await self._ground.store.read(lambda view: _hindered(view, matches, now)))
        chosen = choice(found, self._certainty)
        return [replace(match, chosen=True) if match is chosen else match for match in found]

    async def _asked_before(self, matches: list[Match], ops: Callable[[str], list[str]]) -> str:
        tried = [(match.card.name, ops(match.card.name)) for match in matches]
        return await self._ground.store.read(
            lambda view: next((name for name, its in tried if any(view.done(op) is not None for op in its)), "")
        )


def _hindered(view: View, matches: list[Match], now: int) -> dict[str, str]:
    """Return for each agent that cannot be called now the reason."""
    found: dict[str, str] = {}
    for match in matches:
        name, most = match.card.name, match.card.concurrency
        if admits(view.breaker(name), now) == "no":
            found[name] = "not now: its breaker is open"
        elif most is not None and (running := view.running(name, now)) >= most:
            found[name] = f"not now: it has {running} of {most} tasks"
    return found


def _of_length_one(vector: Sequence[float]) -> list[float]:
    length = hypot(*vector)
    if not 0 < length < float("inf"):
        raise ValueError("a vector without a direction")
    return [part / length for part in vector]


def _nearness(wanted: Sequence[float], cards: dict[str, list[float]]) -> dict[str, float]:
    if any(len(vector) != len(wanted) for vector in cards.values()):
        raise ValueError("vectors of different lengths")
    cosines = {name: sum(map(mul, wanted, vector)) for name, vector in cards.items()}
    whole, others = sum(cosines.values()), len(cosines) - 1
    # Leave the card itself out of the average: with two cards it would hide half of the difference.
    usual = {name: min((whole - cosine) / others, 0.999) for name, cosine in cosines.items()}
    return {name: max(0.0, (cosine - usual[name]) / (1 - usual[name])) for name, cosine in cosines.items()}
