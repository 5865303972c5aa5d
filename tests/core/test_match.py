"""Finding an agent by what it can do."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from remit.core.card import Card
from remit.core.match import rank

TEAM = [
    Card("reviewer", can=["review code", "find bugs"]),
    Card("coder", can="write code"),
    Card("web-searcher", role="looks things up online", can="search the web"),
    Card("helper-bot"),
]


def names(wanted: str, cards: list[Card] = TEAM) -> list[str]:
    return [match.card.name for match in rank(wanted, cards)]


@pytest.mark.rule("asks.capability")
@pytest.mark.parametrize(
    ("wanted", "found"),
    [
        ("review code", ["reviewer", "coder"]),
        ("write code", ["coder", "reviewer"]),
        ("web", ["web-searcher"]),
        ("BUGS", ["reviewer"]),
        ("bug", ["reviewer"]),
        ("helper", ["helper-bot"]),
        ("online", ["web-searcher"]),
    ],
)
def test_the_best_match_comes_first(wanted, found):
    assert names(wanted) == found


@pytest.mark.rule("asks.capability")
@pytest.mark.parametrize("wanted", ["quantum physics theoretical framework", "on", "a", "i", "", "()", "of it"])
def test_what_no_one_can_do_matches_no_one(wanted):
    assert names(wanted) == []


@pytest.mark.rule("asks.capability")
@given(st.permutations([*TEAM, Card("auditor", can=["review code", "find bugs"])]))
def test_the_order_of_the_cards_does_not_matter_and_equals_go_by_name(cards):
    assert names("review code", cards) == ["auditor", "reviewer", "coder"]


@pytest.mark.parametrize("wanted", ["c++", "c#", "(c++", "[c++] code", "7"])
def test_names_of_languages_and_numbers_are_plain_text(wanted):
    cards = [Card("plus", can="write c++"), Card("sharp", can="write c#"), Card("seven", can="count to 7")]

    found = names(wanted, cards)

    expected = {"c++": "plus", "c#": "sharp", "(c++": "plus", "[c++] code": "plus", "7": "seven"}
    assert found == [expected[wanted]]


def test_a_match_says_why():
    (best, *_) = rank("find bugs", TEAM)
    assert best.why == "can find bugs"

    (named,) = rank("helper bots", TEAM)
    assert named.why == "named for bot, helper"


def test_a_whole_capability_scores_above_a_part_of_one_and_above_a_name():
    cards = [
        Card("exact", can="review code"),
        Card("long", can="review code and prose and poems"),
        Card("review-code"),
    ]

    assert names("review code", cards) == ["exact", "long", "review-code"]


def test_the_best_capability_of_a_card_counts():
    (match,) = rank("review code", [Card("x", can=["review", "review code", "code"])])

    assert match.why == "can review code"
    assert match.score == 1.1


def test_whoever_can_do_anything_is_asked_when_no_one_can_do_just_this():
    handy, painter = Card("handy", can="*"), Card("painter", can="paint walls")

    assert [match.card.name for match in rank("paint", [handy, painter])] == ["painter", "handy"]
    assert [match.card.name for match in rank("juggle", [handy, painter])] == ["handy"]
