"""Receipts: what a turn saw and why, and what was withheld from it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.make import entry, scope_sets
from remit.core import scope
from remit.core.allow import ANY
from remit.core.entry import Draft, Writer, after_write
from remit.core.receipt import LISTED, Receipt, Slice, kept_back
from remit.core.scope import NOTHING, Scope, normal
from remit.core.values import checked, digest, tokens_in

sights = st.just(ANY) | scope_sets.map(normal)


def saw(receipt: Receipt) -> list[Slice]:
    return list(receipt.saw.values())


# --- what was seen -----------------------------------------------------------------------------


@pytest.mark.rule("sight.receipt")
def test_a_receipt_lists_what_was_seen_why_how_much_and_which_version():
    receipt = Receipt()
    note = entry("notes", "plan", "12345")

    receipt.task("build it")
    receipt.entry(note, "passed")
    receipt.message("tester", "all green")

    assert saw(receipt) == [
        Slice("task", "task", 2, 1, digest("build it")),
        Slice("notes/plan", "passed", 2, 1, note.digest),
        Slice("message from tester", "message", 3, 1, digest("all green")),
    ]
    assert receipt.tokens == 7
    assert receipt.unlisted == 0


@pytest.mark.rule("receipt.untrusted")
def test_what_a_tool_took_in_without_a_text_has_the_text_that_the_tool_returned():
    receipt = Receipt()
    receipt.tell("/tool/a", "nothing was taken in")
    receipt.mark_untrusted("a page", "", "/tool/a")
    receipt.mark_untrusted("a mail", "", "/tool/b")
    receipt.mark_untrusted("a file", "12345", "/tool/a")
    receipt.mark_untrusted("a talk", "", "")
    receipt.tell("/tool/a", {"words": 1})
    assert saw(receipt) == [
        Slice("a mail", "said", 0, 1, digest(""), "untrusted"),
        Slice("a file", "said", 2, 1, digest("12345"), "untrusted"),
        Slice("a talk", "said", 0, 1, digest(""), "untrusted"),
        Slice("a page", "said", 3, 1, digest('{"words":1}'), "untrusted"),
    ]
    assert receipt.tokens == 5
    receipt.tell("/tool/b", "hi")
    assert saw(receipt)[-1] == Slice("a mail", "said", 1, 1, digest("hi"), "untrusted")


@pytest.mark.rule("sight.receipt")
def test_an_entry_read_twice_is_listed_and_counted_once():
    receipt = Receipt()

    for _ in range(3):
        receipt.entry(entry(), "card")

    assert len(receipt.saw) == 1
    assert receipt.tokens == 1


@pytest.mark.rule("sight.receipt")
def test_a_new_version_of_an_entry_is_listed_again():
    receipt = Receipt()
    old = entry(value="old")
    new = after_write(old, Draft("codebase", "auth", "new"), Writer("tester"), old.updated_at)

    receipt.entry(old, "card")
    receipt.entry(new, "card")

    assert [part.version for part in saw(receipt)] == [1, 2]


@pytest.mark.rule("sight.receipt")
def test_an_entry_that_was_removed_and_written_again_is_listed_again():
    receipt = Receipt()

    receipt.entry(entry(value="old"), "card")
    receipt.entry(entry(value="new"), "card")

    assert [part.digest for part in saw(receipt)] == [digest("old"), digest("new")]


@pytest.mark.rule("sight.receipt")
def test_entries_whose_addresses_look_alike_are_both_listed():
    receipt = Receipt()

    receipt.entry(entry("a/b", "c"), "card")
    receipt.entry(entry("a", "b/c"), "card")

    assert len(receipt.saw) == 2


@pytest.mark.rule("sight.receipt")
@given(st.lists(st.sampled_from(["tester", "coder"]), max_size=6))
def test_every_message_is_listed_even_the_same_words_from_the_same_agent(senders):
    receipt = Receipt()

    for sender in senders:
        receipt.message(sender, "ok")

    assert [part.what for part in saw(receipt)] == [f"message from {sender}" for sender in senders]
    assert receipt.tokens == len(senders)


@pytest.mark.rule("sight.receipt")
def test_a_receipt_names_the_first_ones_and_counts_the_rest():
    receipt = Receipt()

    for number in range(LISTED + 7):
        receipt.entry(entry(key=f"k{number}"), "card")

    assert len(receipt.saw) == LISTED
    assert receipt.unlisted == 7
    assert receipt.tokens == LISTED + 7


@pytest.mark.rule("sight.receipt")
def test_a_receipt_is_json():
    receipt = Receipt()
    receipt.task("build it")
    receipt.withhold("notes/*", "not passed")

    data = receipt.data()

    assert checked(data, "a receipt") == data
    assert data == {
        "saw": [["task", "task", 2, 1, digest("build it"), "trusted"]],
        "tokens": 2,
        "unlisted": 0,
        "withheld": [["notes/*", "not passed"]],
    }


@pytest.mark.rule("sight.receipt")
def test_two_receipts_share_nothing():
    one, other = Receipt(), Receipt()

    one.task("build it")
    one.withhold("notes/*", "not passed")

    assert other.data() == Receipt().data() == {"saw": [], "tokens": 0, "unlisted": 0, "withheld": []}


# --- what the task's text brings along ---------------------------------------------------------


def part(what: str, text: str, why: str = "dependency") -> Slice:
    return Slice(what, why, tokens_in(text), 1, digest(text))


@pytest.mark.rule("sight.receipt", "plan.prompt")
def test_what_the_task_s_text_brings_along_is_listed_by_itself_and_counted_once():
    receipt = Receipt()
    parts = [part("step a", "x" * 40), part("message from bob", "y" * 8, "message")]

    receipt.add_parts(parts)
    receipt.task("# Task: T" + "x" * 40 + "y" * 8)

    assert saw(receipt)[:2] == parts
    assert saw(receipt)[2][:3] == ("task", "task", 3)
    assert receipt.tokens == tokens_in("# Task: T" + "x" * 40 + "y" * 8)


@pytest.mark.rule("sight.receipt")
@given(st.lists(st.text(max_size=30), max_size=8), st.text(min_size=1, max_size=30))
def test_the_tokens_of_a_task_are_those_of_its_text_or_of_its_parts_if_those_are_more(texts, own):
    receipt = Receipt()
    parts = [part(f"step {number}", text) for number, text in enumerate(texts)]
    whole = own + "".join(texts)

    receipt.add_parts(parts)
    receipt.task(whole)

    assert receipt.tokens == max(tokens_in(whole), sum(one.tokens for one in parts))
    assert receipt.tokens == sum(one.tokens for one in saw(receipt))
    assert all(one.tokens >= 0 for one in saw(receipt))


@pytest.mark.rule("sight.receipt")
def test_given_nothing_a_receipt_lists_nothing():
    receipt = Receipt()

    receipt.add_parts([])

    assert receipt.data() == Receipt().data()


@pytest.mark.rule("sight.receipt")
def test_the_same_result_given_twice_is_listed_once_and_every_message_is_listed():
    receipt = Receipt()

    receipt.add_parts([part("step a", "x"), part("step a", "x"), *[part("message from bob", "ok", "message")] * 2])

    assert [one.what for one in saw(receipt)] == ["step a", "message from bob", "message from bob"]


# --- what was withheld -------------------------------------------------------------------------


@pytest.mark.rule("sight.receipt")
def test_what_was_withheld_is_listed_with_the_reason_up_to_the_limit():
    receipt = Receipt()

    for number in range(LISTED + 7):
        receipt.withhold(f"n{number}", "not passed")

    assert list(receipt.withheld.items())[:2] == [("n0", "not passed"), ("n1", "not passed")]
    assert len(receipt.withheld) == LISTED
    receipt.withhold("n0", "not passed")  # listed already
    assert receipt.data()["withheld"][-1] == ["and 7 more", "not listed"]


@pytest.mark.rule("sight.receipt")
@pytest.mark.parametrize("number", [0, LISTED, LISTED + 1, 1_500])
def test_what_an_asker_kept_back_is_listed_up_to_the_same_limit(number):
    receipt = Receipt()
    sight = frozenset(Scope("n", key=f"k{index}") for index in range(number))

    receipt.withhold_all(kept_back(sight, NOTHING, NOTHING))

    listed = receipt.data()["withheld"]
    more = [[f"and {number - LISTED:,} more", "not listed"]] if number > LISTED else []
    assert listed[LISTED:] == more
    assert len(listed) == min(number, LISTED) + len(more)


@pytest.mark.rule("sight.receipt")
@pytest.mark.parametrize(
    ("seen", "passed", "wished", "found"),
    [
        (ANY, ANY, ANY, {}),
        (ANY, NOTHING, NOTHING, {"everything else": "not passed"}),
        (ANY, {Scope("a")}, {Scope("a")}, {"everything else": "not passed"}),
        ({Scope("a"), Scope("b")}, {Scope("a")}, {Scope("a")}, {"b/*": "not passed"}),
        ({Scope("a")}, {Scope("a", prefix="p")}, {Scope("a", prefix="p")}, {"a/*": "not passed"}),
        ({Scope("a")}, {Scope("a")}, ANY, {}),
        (
            {Scope("a", prefix="p")},
            {Scope("a", prefix="p")},
            {Scope("a")},
            {"a/*": "the asker does not see all of it"},
        ),
        (NOTHING, NOTHING, {Scope("x", key="k")}, {"x/k": "the asker does not see all of it"}),
    ],
)
def test_what_is_kept_back_is_what_was_not_passed_and_what_the_asker_does_not_see(seen, passed, wished, found):
    as_sight = [one if one is ANY else frozenset(one) for one in (seen, passed, wished)]

    assert kept_back(*as_sight) == found


@pytest.mark.rule("sight.receipt")
@given(sights, sights)
def test_nothing_is_kept_back_exactly_when_all_the_asker_sees_is_passed(seen, wished):
    passed = scope.both(seen, wished)

    kept = [why for why in kept_back(seen, passed, wished).values() if why == "not passed"]

    assert (kept == []) == scope.within(seen, passed)


@pytest.mark.rule("sight.receipt")
def test_scopes_that_look_alike_are_both_kept_back():
    sight = frozenset({Scope("a/b"), Scope("a", prefix="b/")})

    assert len(kept_back(sight, NOTHING, NOTHING)) == 2


@pytest.mark.rule("sight.receipt")
def test_what_comes_beside_the_task_counts_beside_it_and_once():
    receipt = Receipt()
    part = Slice.of("handed over", "passed", "four score and seven")
    receipt.beside([part, part])
    receipt.task("build it")

    data = receipt.data()
    assert [one[0] for one in data["saw"]] == ["handed over", "task"]  # pyright: ignore[reportGeneralTypeIssues]
    assert (part.version, part.tokens) == (1, tokens_in("four score and seven"))
    assert data["tokens"] == part.tokens + tokens_in("build it")
