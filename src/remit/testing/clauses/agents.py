"""Agents: their breakers and the cards that processes publish."""

from typing import Final

from remit.core.breaker import CLOSED, Breaker
from remit.core.card import Card
from remit.core.kinds import Place, breaker_set, cards_published
from remit.ports import Database, Decision
from remit.testing.clauses.making import NOW, append, equal, look, sound


async def a_breaker_is_kept_as_it_was_last_set(database: Database) -> None:
    """As a reader sees it, and as a decision does."""
    store = database.store("one")
    equal(await look(store, lambda view: view.breaker("helper")), CLOSED, "the breaker of an agent that never failed")
    for number, breaker in enumerate(
        (Breaker("open", 3, NOW + 5, "", "why"), Breaker("half-open", 3, NOW + 9, "t", "why"))
    ):
        await append(store, f"set {number}", breaker_set("helper", breaker, Place(), NOW + number))
        equal(await look(store, lambda view: view.breaker("helper")), breaker, "a breaker as it was last set")
        within = await store.tx("look", lambda view: Decision([*view.breaker("helper")]))
        equal(within, [*breaker], "a breaker as it was last set, within a decision")
        expected = [("helper", breaker, NOW + number)]
        equal(await look(store, lambda view: view.breakers()), expected, "all breakers, with the time they were set")
    await sound(store)


async def a_card_is_kept_as_it_was_last_published(database: Database) -> None:
    store = database.store("one")
    equal(await look(store, lambda view: view.card("helper")), None, "a card that nobody published")
    equal(await look(store, lambda view: view.cards()), [], "the cards, where nobody published any")
    full = Card(
        "helper",
        "a role, ü \U0001f600 'quoted'",
        can=("write code", "review"),
        asks=["lead"],
        reads=["notes", "board"],
        writes=["notes"],
        tools=["read_file"],
        concurrency=3,
    )
    plain, open_ = Card("anna"), Card("zoe", asks="*", reads="*", tools="*")
    await append(store, "publish", cards_published([full, open_, plain], NOW))
    await append(store, "nothing", cards_published([], NOW + 1))
    equal(await look(store, lambda view: view.cards()), [(plain, NOW), (full, NOW), (open_, NOW)], "the cards, by name")
    changed = Card("helper", "another role")
    await append(store, "again", cards_published([changed], NOW + 2))
    equal(await look(store, lambda view: view.card("helper")), changed, "a card as it was last published")
    equal(await look(store, lambda view: view.card("zoe")), open_, "a card that was published once")
    expected = [(plain, NOW), (changed, NOW + 2), (open_, NOW)]
    equal(await look(store, lambda view: view.cards()), expected, "the cards with the time they were published")
    within = await store.tx("look", lambda view: Decision([card.role for card, _ in view.cards()]))
    equal(within, ["", "another role", ""], "the cards, within a decision")
    await sound(store)


CLAUSES: Final = (a_breaker_is_kept_as_it_was_last_set, a_card_is_kept_as_it_was_last_published)
