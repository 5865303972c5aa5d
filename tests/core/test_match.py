"""Finding an agent by what it can do, and choosing one without asking back."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from remit.core.card import Card
from remit.core.match import choice, rank, suits, unclear, words_of

CODE = [
    Card("reviewer", can=["review code", "find bugs"]),
    Card("coder", can="write code"),
    Card("web-searcher", role="looks things up online", can="search the web"),
    Card("helper-bot"),
]
HOUSE = [
    Card("Document Searcher", can="search documents"),
    Card("web", can="browse the internet"),
    Card("Mailer", can=["send e-mail", "attach files to e-mail"]),
    Card("memory", role="remembers what was said"),
    Card("Helper Bot", role="helps with this and that"),
    Card("dishwasher", can="wash the dishes"),
    Card("notifier", can="alert people"),
    Card("keeper", can="back up the production database"),
    Card("translator", can=["translate German", "translate French"]),
]


def names(wanted: str, cards: list[Card] = CODE) -> list[str]:
    return [match.card.name for match in rank(wanted, cards)]


def chosen(wanted: str, cards: list[Card]) -> str:
    match = choice(rank(wanted, cards))
    return match.card.name if match is not None else ""


# -- finding ---------------------------------------------------------------------------------------------------


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
        ("reviewing", ["reviewer"]),
    ],
)
def test_the_best_match_comes_first(wanted: str, found: list[str]):
    assert names(wanted) == found


@pytest.mark.rule("asks.capability")
@given(st.permutations([*CODE, Card("auditor", can=["review code", "find bugs"])]))
def test_the_order_of_the_cards_does_not_matter(cards: list[Card]):
    assert names("review code", cards) == ["auditor", "reviewer", "coder"]  # two name it: then by name
    assert chosen("review code", cards) == "auditor"


@pytest.mark.parametrize("wanted", ["c++", "c#", "(c++", "[c++] code", "7"])
def test_names_of_languages_and_numbers_are_plain_text(wanted: str):
    cards = [Card("plus", can="write c++"), Card("sharp", can="write c#"), Card("seven", can="count to 7")]
    expected = {"c++": "plus", "c#": "sharp", "(c++": "plus", "[c++] code": "plus", "7": "seven"}

    assert names(wanted, cards) == [expected[wanted]]


def test_a_match_says_why():
    assert rank("find bugs", CODE)[0].why == "can find bugs"
    assert rank("helper bots", CODE)[0].why == "named for bot, helper"
    assert rank("online", CODE)[0].why == "its role says online"
    assert rank("remember", HOUSE)[0].why == "its role says remember"


def test_whoever_can_do_anything_is_asked_when_no_one_can_do_just_this():
    handy, painter = Card("handy", can="*"), Card("painter", can="paint walls")

    assert names("paint walls", [handy, painter]) == ["painter", "handy"]
    assert chosen("paint walls", [handy, painter]) == "painter"
    assert chosen("juggle", [painter, handy]) == "handy"
    assert chosen("paint a very large picture", [painter, handy]) == "handy"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("The quick, quick searchers!", ("quick", "searcher")),
        ("queries and classes", ("query", "classe")),
        ("C++ (foo [x c# + #", ("c++", "foo", "c#")),
        (
            "M\xfcller \u65e5 \u041f\u0440\u043e\u0432\u0435\u0440\u043a\u0430",
            ("m\xfcller", "\u65e5", "\u043f\u0440\u043e\u0432\u0435\u0440\u043a\u0430"),
        ),
        ("on a i", ()),
    ],
)
def test_words_are_those_that_say_something(text: str, words: tuple[str, ...]):
    assert words_of(text) == words


# -- choosing --------------------------------------------------------------------------------------------------


@pytest.mark.rule("asks.margin")
@pytest.mark.parametrize(
    ("wanted", "who"),
    [
        ("doc search", "document-searcher"),
        ("search documents", "document-searcher"),
        ("lookup of a file", "document-searcher"),
        ("find web stuff", "web"),
        ("browse online", "web"),
        ("send mail", "mailer"),
        ("mail", "mailer"),
        ("memory agent", "memory"),
        ("recall the past", "memory"),
        ("notify people", "notifier"),
        ("wash dishes", "dishwasher"),
        ("dishwasher", "dishwasher"),
        ("translate German", "translator"),
        ("back up a production database, please", "keeper"),
    ],
)
def test_who_clearly_can_do_it_is_chosen(wanted: str, who: str):
    assert chosen(wanted, HOUSE) == who


@pytest.mark.rule("asks.margin")
@pytest.mark.parametrize(
    "wanted",
    [
        *("on", "a", "i", "", "()", "of it", "the", "please", "agent", "c++", "(foo", "[x", "+", "#"),
        "quantum physics theoretical framework",
        "summarise a pdf file",
        "delete the production database",
        "the production of the dishes",
        "wash the car",
        "write the news of the past week",
        "translate a novel from Greek into Polish",
        "attach the trailer to the car",
        "German history",
    ],
)
@pytest.mark.case("any_shared_word")
def test_nobody_is_chosen_on_a_stop_word_or_on_one_word_of_many(wanted: str):
    assert chosen(wanted, HOUSE) == ""


@pytest.mark.rule("asks.margin")
def test_nobody_is_chosen_between_two_that_are_about_as_good():
    cards = [Card("ann", can="write poems"), Card("bob", can="read poems")]

    assert names("poems", cards) == ["ann", "bob"]
    assert chosen("poems", cards) == ""
    assert chosen("read poems", cards) == "bob"


@pytest.mark.rule("asks.margin")
def test_of_several_that_name_the_very_capability_the_first_by_name_is_chosen():
    cards = [
        Card("zoe", can="write poems"),
        Card("ann", can="poems to write"),
        Card("bob", can="write poems and songs"),
    ]

    assert chosen("write poems", cards) == "ann"


@pytest.mark.rule("asks.margin")
def test_who_is_named_for_a_step_must_have_most_of_what_it_needs():
    assert suits("review code", CODE[0])
    assert suits("anything at all", Card("handy", can="*"))
    assert not suits("review code", CODE[1])
    assert not suits("fly", CODE[0])


@pytest.mark.rule("asks.margin")
def test_who_cannot_choose_is_told_who_there_is():
    cards = [Card("ann", can="write poems"), Card("bob", role="reads poems"), Card("cy"), Card("di", can="sing")]
    poets = rank("poems", cards)

    assert unclear("poems", poets, cards) == (
        "it is not clear who can poems; the nearest are: ann (can write poems); bob (reads poems). "
        "Ask one of them by name, do it yourself or finish without"
    )
    assert unclear("fly", [], cards) == (
        "no one you may ask can fly; there is: ann (can write poems); bob (reads poems); cy and 1 more. "
        "Ask one of them by name, do it yourself or finish without"
    )
    assert unclear("fly", [], []) == "no one you may ask can fly; do it yourself or finish without"
