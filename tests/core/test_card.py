"""Cards: what an agent is; lists left out are empty."""

import pytest

from remit.core.allow import ANY, NONE
from remit.core.card import Card, restored
from remit.core.scope import BOARD, NOTHING, Scope, memory_of
from remit.core.values import decode, encode
from remit.errors import BadInput


@pytest.mark.rule("bounds.empty", "asks.default-deny")
def test_a_card_with_only_a_name_asks_no_one_reads_nothing_and_has_no_tools():
    card = Card("coder")

    assert (card.asks, card.reads, card.tools) == (NONE, NOTHING, NONE)
    assert (card.role, card.can, card.concurrency) == ("", (), None)


@pytest.mark.rule("sight.writes")
def test_a_card_that_says_nothing_about_writing_writes_nothing():
    assert Card("coder").writes == frozenset()


def test_a_card_reads_what_people_write():
    card = Card(
        "Code Reviewer",
        role="reads every line",
        can="review code",
        asks=["Tester"],
        reads=["codebase", BOARD],
        writes=[Scope("reviews", prefix="2026/")],
        tools=["group:exec"],
        concurrency=2,
    )

    assert card.name == "code-reviewer"
    assert card.can == ("review code",)
    assert card.asks == {"tester"}
    assert card.reads == {Scope("codebase"), BOARD}
    assert card.writes == {Scope("reviews", prefix="2026/")}
    assert card.tools == {"exec"}
    assert card.concurrency == 2


@pytest.mark.rule("names.one-agent")
def test_cards_whose_names_differ_only_in_writing_are_cards_of_one_agent():
    assert Card("Code Reviewer") == Card("code_reviewer")


@pytest.mark.parametrize(
    ("written", "found"),
    [
        ("write code", ("write code",)),
        ("  write code ", ("write code",)),
        (["write code", "test", "write code"], ("write code", "test")),
        ([" test", "test"], ("test",)),
        ({"test", "code"}, ("code", "test")),
        ((word for word in ("test", "code")), ("test", "code")),
        ((), ()),
    ],
)
def test_capabilities_keep_their_order_and_appear_once(written, found):
    assert Card("coder", can=written).can == found


@pytest.mark.parametrize("written", ["*", ANY])
def test_a_card_can_do_anything_if_it_says_so(written):
    assert Card("coder", can=written).can == ("*",)


@pytest.mark.parametrize(
    ("wrong", "reason"),
    [
        ({"name": ""}, "an agent's name"),
        ({"role": None}, "a role must be text"),
        ({"role": "r" * 65_537}, "a role has at most 65,536 characters"),
        ({"instructions": None}, "the text of instructions must be text"),
        ({"instructions": "r" * 65_537}, "the text of instructions has at most 65,536 characters"),
        ({"can": None}, "must be text, not NoneType"),
        ({"can": [7]}, "a capability must be text"),
        ({"can": ["c" * 201]}, "a capability has at most 200 characters"),
        ({"can": ""}, "a capability must not be empty"),
        ({"can": "   "}, "a capability must not be empty"),
        ({"asks": None}, "asks is None"),
        ({"asks": ["tester", "*"]}, "asks: '.' stands alone"),
        ({"reads": ["board:s2"]}, "is a session's board"),
        ({"writes": None}, "writes is None"),
        ({"tools": ["group:flies"]}, "no tool group"),
        ({"concurrency": 0}, "concurrency is a whole number of at least 1"),
    ],
)
def test_a_card_that_cannot_be_meant_is_refused(wrong, reason):
    with pytest.raises(BadInput, match=reason):
        Card(**{"name": "coder", **wrong})


def test_a_card_knows_the_memory_of_its_agent():
    assert Card("Coder").memory == "memory:coder" == memory_of("coder").namespace


@pytest.mark.parametrize(
    "card",
    [
        Card("coder"),
        Card("lead", "leads", can=("plan", "write"), asks="*", reads=["spec"], writes=["code"], tools=["exec"]),
        Card("poet", asks=["coder"], writes=(), concurrency=3, instructions="Rhyme.\nAlways."),
        Card("writer", review=True),
    ],
)
def test_a_card_comes_back_from_its_data_as_it_was(card):
    assert restored(decode(encode(card.data))) == card


@pytest.mark.parametrize("later", ["needs_approval", "instructions"])
def test_a_card_of_before_there_was_a_field_can_still_be_read(later):
    data = {name: value for name, value in Card("poet", role="rhymes").data.items() if name != later}

    assert restored(data) == Card("poet", role="rhymes")
