"""Finding an agent by what it can do, and choosing one without asking back."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from remit.core.card import Card
from remit.core.match import MATCHES, Certainty, Index, Match, about, behind, choice, rank, suits, unclear, words_of

CODE = [
    Card("reviewer", can=["review code", "find bugs"]),
    Card("coder", can="write code"),
    Card("web-searcher", role="looks things up online", can="search the web"),
    Card("helper-bot"),
]
POETS = [Card("ann", can="write poems"), Card("bob", can="read poems")]
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


@pytest.mark.rule("asks.words")
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


def test_an_agent_that_can_do_anything_is_asked_when_no_other_can_do_just_this():
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


SYNONYMS = (
    ("document", "doc", "file"),
    ("memory", "remember", "recall", "past", "history"),
    ("web", "internet", "online", "browse", "url", "link"),
    ("email", "mail", "send"),
    ("notification", "notify", "alert"),
    ("search", "find", "lookup"),
)


@pytest.mark.rule("asks.words")
@pytest.mark.parametrize(("wanted", "has"), [(one, two) for group in SYNONYMS for one in group for two in group])
def test_words_that_mean_the_same_find_each_other(wanted: str, has: str):
    others = [Card("painter", can="paint walls"), Card("cook", can="cook dinner")]

    assert chosen(wanted, [*others, Card("right", can=has)]) == "right"


@pytest.mark.rule("asks.words")
@pytest.mark.parametrize("place", ["name", "can", "role", "instructions"])
@pytest.mark.parametrize("wanted", ["gardening", "gardner", "GARDENERS"])
def test_a_word_is_found_in_every_part_of_a_card_also_if_it_is_spelled_differently(wanted: str, place: str):
    right = Card(**{"name": "someone", place: "gardener"})  # pyright: ignore[reportArgumentType]

    assert [match.card for match in rank(wanted, [Card("cook"), right])] == [right]


@pytest.mark.rule("asks.words")
def test_the_name_says_more_than_a_capability_and_that_more_than_the_rest():
    cards = [
        Card("d", instructions="paint", role="x"),
        Card("c", role="paint", can="x"),
        Card("b", can=["x", "paint walls"]),
        Card("paint"),
    ]

    assert names("paint", cards) == ["paint", "b", "c", "d"]


@pytest.mark.rule("asks.words")
def test_of_instructions_the_first_five_hundred_characters_are_read():
    near, far = Card("near", instructions="x" * 490 + " paint"), Card("far", instructions="x" * 500 + " paint")

    assert names("paint", [far, near]) == ["near"]
    assert about(far) == f"far\n{'x' * 500}"


@pytest.mark.rule("asks.scope")
def test_what_a_word_weighs_is_counted_among_those_who_may_be_asked():
    """Everyone paints, so that it is walls that tell; among the two that may be asked, one alone paints."""
    index = Index([*[Card(f"painter {at}", can="paint doors") for at in range(8)], Card("mason", can="build walls")])
    every, few = index.rank("paint walls"), index.rank("paint walls", {"mason", "painter-3", "stranger"})

    assert every[0].card.name == "mason"
    assert [(match.card.name, match.score) for match in few] == [("mason", 0.433), ("painter-3", 0.433)]
    assert index.rank("paint walls", set()) == []


def test_more_than_enough_are_not_listed():
    cards = [Card(f"painter {at:02}", can=["paint walls", "x"]) for at in range(30)]

    assert names("paint", cards) == [card.name for card in cards[:MATCHES]]


def test_an_agent_that_can_do_anything_is_listed_behind_all_others():
    cards = [Card(f"painter {at:02}", can="paint walls and doors") for at in range(30)]

    assert names("paint", [Card("handy", can="*"), *cards])[-1] == "handy"


@pytest.mark.rule("asks.words")
@given(st.text(max_size=300), st.lists(st.text(max_size=300), max_size=4))
def test_whatever_is_written_is_plain_text(wanted: str, roles: list[str]):
    cards = [Card(f"agent {at}", instructions=role) for at, role in enumerate(roles) if "\0" not in role]
    found = rank(wanted, cards)

    assert found == rank(wanted, cards[::-1])
    assert all(0 < match.score <= 1 and match.why for match in found)


def test_words_of_questions_are_not_remembered_without_limit():
    index = Index([Card("painter", can="paint")])
    for at in range(200):
        index.rank(" ".join(f"word{at}x{word}" for word in range(60)))

    assert [match.card.name for match in index.rank("paint")] == ["painter"]


@pytest.mark.rule("asks.words")
@pytest.mark.parametrize(
    ("wanted", "has"),
    [
        *(
            ("tranlsate", "translate"),
            ("translat", "translate"),
            ("transxlate", "translate"),
            ("trunslate", "translate"),
        ),
        *(("invioce", "invoice"), ("paynt", "paint"), ("invoice", "invoices")),
    ],
)
def test_one_slip_in_a_word_of_five_letters_or_more_is_found(wanted: str, has: str):
    assert names(wanted, [Card("cook"), Card("right", can=[has, "x"])]) == ["right"]


@pytest.mark.rule("asks.words")
@pytest.mark.parametrize(
    ("wanted", "has"),
    [
        *(("text", "test"), ("form", "farm"), ("plan", "plane"), ("rice", "price")),
        *(("date", "database"), ("late", "translate"), ("port", "report"), ("each", "teach"), ("line", "timeline")),
        *(("deduction", "production"), ("region", "regression"), ("reset", "research"), ("replication", "reply")),
        *(("post", "postmortem"), ("mission", "missing"), ("voice", "invoice"), ("tanrslate", "translator")),
    ],
)
def test_two_slips_or_a_short_word_or_a_part_of_a_word_is_not_found(wanted: str, has: str):
    assert names(wanted, [Card("cook"), Card("wrong", can=[has, "x"])]) == []


@pytest.mark.rule("asks.words")
@pytest.mark.parametrize(
    ("wanted", "has"),
    [
        *(("review", "reviewer"), ("reviewing", "reviewed"), ("coder", "code"), ("coding", "coder")),
        *(("planning", "planner"), ("plan", "planner"), ("translation", "translator"), ("translate", "translation")),
        *(("documentation", "documenting"), ("notifier", "notified"), ("supplier", "supply"), ("monthly", "month")),
        *(("replacement", "replace"), ("shipment", "ship"), ("breaches", "breach"), ("producing", "producer")),
    ],
)
def test_another_form_of_a_word_is_found(wanted: str, has: str):
    assert names(wanted, [Card("cook"), Card("right", can=[has, "x"])]) == ["right"]
    assert names(has, [Card("cook"), Card("right", can=[wanted, "x"])]) == ["right"]


@pytest.mark.rule("asks.words", "asks.margin")
def test_a_capability_with_a_slip_in_it_is_found_but_is_not_the_very_one():
    cards = [Card("cashier", can="charge cards"), Card("clerk", can="change cards")]

    assert [(match.card.name, match.direct) for match in rank("charge cards", cards)] == [
        ("cashier", True),
        ("clerk", False),
    ]
    assert chosen("chrage cards", [cards[0], Card("cook", can="cook dinner")]) == "cashier"


# -- meaning ---------------------------------------------------------------------------------------------------


@pytest.mark.rule("asks.embed")
def test_meaning_counts_half_beside_the_words():
    cards = [Card("painter", can="paint walls"), Card("mason", can="build walls"), Card("cook")]
    index = Index(cards)
    plain = {match.card.name: match.score for match in index.rank("white walls")}
    found = index.rank("white walls", None, {"painter": 0.8, "mason": 0.1, "cook": 0.7})

    assert plain["painter"] == plain["mason"]
    assert [(match.card.name, match.fits) for match in found] == [("painter", True), ("cook", True), ("mason", False)]
    assert found[0].score == pytest.approx((plain["painter"] + 0.8) / 2, abs=0.001)
    assert (found[1].score, found[1].why) == (0.35, "means nearly the same")


@pytest.mark.rule("asks.embed")
def test_with_vectors_an_agent_that_shares_one_word_or_none_is_chosen_by_its_meaning():
    cards = [Card("painter", can="paint walls"), Card("mason", can="build walls"), Card("cook", can="cook dinner")]
    index = Index(cards)

    assert choice(index.rank("make the walls of my kitchen white again")) is None
    for wanted in ("make the walls of my kitchen white again", "a fresh coat of colour for my kitchen"):
        found = choice(index.rank(wanted, None, {"painter": 0.45, "mason": 0.1, "cook": 0.05}))
        assert found is not None
        assert found.card.name == "painter"


@pytest.mark.rule("asks.embed")
def test_with_vectors_two_shared_words_of_a_request_that_means_something_else_are_not_enough():
    index = Index([Card("keeper", can="back up the production database"), Card("cook", can="cook dinner")])
    wanted = "production figures from a database of customers"
    plain = choice(index.rank(wanted))

    assert plain is not None
    assert plain.card.name == "keeper"
    assert choice(index.rank(wanted, None, {"keeper": 0.0, "cook": 0.0})) is None


@pytest.mark.rule("asks.embed")
def test_what_nobody_means_is_not_listed_and_a_capability_that_is_named_stays_first():
    index = Index([Card("painter", can="paint walls"), Card("cook", can="cook dinner")])

    assert index.rank("juggle", None, {"painter": 0.02, "cook": 0.0}) == []
    assert index.rank("paint walls", None, {"painter": 0.0, "cook": 0.9})[0].direct


@pytest.mark.rule("asks.certainty")
def test_how_sure_it_must_be_is_a_setting():
    index = Index([Card("painter", can="paint walls"), Card("mason", can="build walls and paint doors")])
    bold, careful = Certainty(score=0.1, margin=0.0), Certainty(score=0.9, margin=0.5)

    def asked(wanted: str, certainty: Certainty) -> str:
        match = choice(index.rank(wanted, certainty=certainty), certainty)
        return "" if match is None else match.card.name

    assert [asked("paint", one) for one in (bold, Certainty(), careful)] == ["mason", "", ""]
    assert [asked("build walls", one) for one in (bold, Certainty(), careful)] == ["mason", "mason", ""]
    assert asked("paint walls", careful) == "painter"  # it names the very capability


# -- those that cannot be asked now ----------------------------------------------------------------------------


@pytest.mark.rule("asks.free")
def test_agents_that_cannot_be_asked_now_are_listed_last_with_the_reason():
    found = behind(rank("poems", POETS), {"ann": "not now: its breaker is open"})

    assert [(match.card.name, match.free, match.why) for match in found] == [
        ("bob", True, "can read poems"),
        ("ann", False, "can write poems; not now: its breaker is open"),
    ]
    assert choice(found) == found[0]  # nobody else who is free is as good


@pytest.mark.rule("asks.free")
def test_the_only_one_who_can_do_it_is_chosen_also_if_it_cannot_be_asked_now():
    cards = [Card("ann", can="write poems"), Card("cook", can="cook dinner")]
    found = behind(rank("write poems", cards), {"ann": "not now"})

    assert choice(found) == found[0]
    assert found[0].card.name == "ann"


@pytest.mark.rule("asks.free")
def test_of_two_that_name_the_capability_the_free_one_is_chosen():
    found = behind(rank("write poems", [Card("ann", can="write poems"), Card("bob", can="write poems")]), {"ann": "no"})

    assert choice(found) == Match(found[0].card, 1.0, "can write poems", fits=True, direct=True)
    assert found[0].card.name == "bob"


# -- choosing --------------------------------------------------------------------------------------------------


@pytest.mark.rule("asks.margin", "asks.words")
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


@pytest.mark.rule("asks.margin", "asks.words", "asks.scope")
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
        "it is not clear who can poems; the nearest are: ann (can write poems; score 0.87); "
        "bob (reads poems; score 0.81). Ask one of them by name, do it yourself or finish without"
    )
    assert unclear("fly", [], cards) == (
        "no one you may ask can fly; there is: ann (can write poems); bob (reads poems); cy and 1 more. "
        "Ask one of them by name, do it yourself or finish without"
    )
    assert unclear("poems", behind(poets, {"bob": "no"})[1:], cards) == (
        "it is not clear who can poems; the nearest are: bob (reads poems; score 0.81; not now). "
        "Ask one of them by name, do it yourself or finish without"
    )
    assert unclear("cy", rank("cy", cards), cards).startswith(
        "it is not clear who can cy; the nearest are: cy (score 1.00)"
    )
    assert unclear("fly", [], []) == "no one you may ask can fly; do it yourself or finish without"
