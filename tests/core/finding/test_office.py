"""The matcher on a labelled set: how often the right agent is first, and how rarely someone is asked for what nobody
does. Each half for itself: the one by which figures were chosen, and the one that was kept back."""

from collections.abc import Sequence
from math import log

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.finding.office import AGENTS, IN_SCOPE, KEPT, OUT_OF_SCOPE, TUNED
from remit.core.card import Card
from remit.core.match import MATCHES, Index, choice, words_of

INDEX = Index(AGENTS)
HALVES = pytest.mark.parametrize("half", [TUNED, KEPT], ids=["tuned", "kept"])
Half = tuple[tuple[tuple[str, str], ...], tuple[str, ...]]


def routed(wanted: str) -> str:
    chosen = choice(INDEX.rank(wanted))
    return "" if chosen is None else chosen.card.name


def test_the_set_is_whole():
    assert (len(AGENTS), len(IN_SCOPE), len(OUT_OF_SCOPE)) == (30, 60, 20)
    assert {right for _, right in IN_SCOPE} == {card.name for card in AGENTS}
    assert all(card.instructions for card in AGENTS)


@HALVES
@pytest.mark.rule("asks.found")
def test_the_right_agent_is_first_for_four_of_five_requests(half: Half):
    first = [[match.card.name for match in INDEX.rank(wanted)[:1]] == [right] for wanted, right in half[0]]

    assert sum(first) >= 0.8 * len(first)


@HALVES
@pytest.mark.rule("asks.scope")
def test_hardly_anyone_is_asked_for_what_nobody_does(half: Half):
    assert sum(routed(wanted) != "" for wanted in half[1]) <= 0.05 * len(half[1])


@HALVES
@pytest.mark.rule("asks.margin")
def test_hardly_anyone_is_asked_in_place_of_another(half: Half):
    wrong = [wanted for wanted, right in half[0] if routed(wanted) not in ("", right)]

    assert len(wrong) <= 0.05 * len(half[0])


@pytest.mark.rule("asks.scope")
def test_without_the_one_who_does_it_hardly_anyone_is_asked():
    """Nearer to the roster than what is out of scope by intent: the same requests, when their agent is not there."""
    names = {card.name for card in AGENTS}
    asked = [wanted for wanted, right in IN_SCOPE if choice(INDEX.rank(wanted, names - {right})) is not None]

    assert len(asked) <= 0.1 * len(IN_SCOPE)


@pytest.mark.rule("asks.capability")
def test_neither_the_order_of_cards_nor_an_index_that_grew_changes_anything():
    cards = [*AGENTS[2::3], *AGENTS[::3], *AGENTS[1::3]]
    grown = Index(cards[:10])
    grown.rank(IN_SCOPE[0][0])
    for card in cards[10:]:
        grown.add(card)

    assert grown.card("payroll") is INDEX.card("payroll")
    for wanted in [*(wanted for wanted, _ in IN_SCOPE), *OUT_OF_SCOPE]:
        assert grown.rank(wanted) == INDEX.rank(wanted)


# -- the recipe, said once more ------------------------------------------------------------------------------------

WEIGHTS = (("name", 15), ("can", 10), ("role", 8), ("instructions", 8))


FORMS = (  # of the words below that are in a card in another form
    {"translate", "translator"},
    {"contract", "contractor"},
    {"plan", "planner"},
    {"new", "newer"},
)


def distance(one: str, other: str) -> int:
    """Count the letters to add, to leave out, to replace or to swap with the next, by the usual table."""
    rows = [[*range(len(other) + 1)]]
    for at, letter in enumerate(one):
        row = [at + 1]
        for column, its in enumerate(other):
            row.append(min(row[-1] + 1, rows[-1][column + 1] + 1, rows[-1][column] + (letter != its)))
            if at and column and letter == other[column - 1] and one[at - 1] == its:
                row[-1] = min(row[-1], rows[-2][column - 1] + 1)
        rows.append(row)
    return rows[-1][-1]


def nearness(wanted: str, word: str) -> float:
    """No words of these cards mean the same as one that is asked for below, so this is without synonyms."""
    if wanted == word:
        return 1.0
    if any({wanted, word} <= forms for forms in FORMS):
        return 0.7
    return 0.5 if min(len(wanted), len(word)) >= 5 and distance(wanted, word) == 1 else 0.0


def has(card: Card, wanted: str) -> float:
    return max(
        nearness(wanted, word) * (0.6 + 0.4 * points / 15)
        for place, points in WEIGHTS
        for word in (*words_of(" ".join(card.can) if place == "can" else getattr(card, place)[:500]), "-")
    )


def reckoned(wanted: str, cards: Sequence[Card]) -> dict[str, float]:
    words = words_of(wanted)
    found = {word: {card.name: has(card, word) for card in cards} for word in words}
    weights = {
        word: log(1 + max(len(cards), 20) / (0.5 + sum(how > 0 for how in found[word].values()))) for word in words
    }
    whole = sum(weights.values())
    return {card.name: sum(weights[word] * found[word][card.name] for word in words) / whole for card in cards}


@pytest.mark.rule("asks.words", "asks.scope")
@pytest.mark.parametrize("cards", [AGENTS, AGENTS[::3], AGENTS[4:28], AGENTS[:2]], ids=["all", "third", "most", "two"])
def test_a_score_is_what_the_recipe_says_whichever_agents_may_be_asked(cards: Sequence[Card]):
    names = {card.name for card in cards}
    for wanted in ("translate the contract", "salary of a new employee", "plan truck routes", "broken heatings"):
        scores = {name: score for name, score in reckoned(wanted, cards).items() if score >= 0.15}
        found = {match.card.name: match.score for match in INDEX.rank(wanted, names) if not match.direct}

        assert found == {name: pytest.approx(scores[name], abs=0.001) for name in found}
        assert len(found) == min(len(scores), MATCHES)


@pytest.mark.rule("asks.words")
@given(st.text("abc", min_size=5, max_size=9), st.text("abc", min_size=5, max_size=9))
def test_a_slip_is_one_letter_added_left_out_replaced_or_swapped(wanted: str, word: str):
    matches = Index([Card("x", instructions=word)]).rank(wanted)

    assert bool(matches) == (distance(*(words_of(text)[0] for text in (wanted, word))) <= 1)
