"""Names and plain text: one spelling per agent, and nothing a store would keep differently."""

import string
from unicodedata import category

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.make import texts
from remit.core.values import (
    NAME_LIMIT,
    SUMMARY_LIMIT,
    canonical,
    endpoint,
    excerpt,
    line,
    plain,
    shown,
    summary,
    tokens_in,
)
from remit.errors import BadInput

LETTERS = string.ascii_lowercase + string.digits
SEPARATORS = " \t\n_-.,;:!?/\\'\"()[]{}@#$%^&*+=~`|<>"
words = st.lists(st.text(LETTERS, min_size=1, max_size=6), min_size=1, max_size=4)
gaps = st.text(SEPARATORS, min_size=1, max_size=4)

# --- names -------------------------------------------------------------------------------------


@pytest.mark.rule("names.one-agent")
@pytest.mark.parametrize(
    ("written", "spelled"),
    [
        ("coder", "coder"),
        ("Coder", "coder"),
        ("  Code   Reviewer\t", "code-reviewer"),
        ("code_reviewer", "code-reviewer"),
        ("code--reviewer", "code-reviewer"),
        ("-code.reviewer!", "code-reviewer"),
        ("Agent #7", "agent-7"),
        ("\u212aik", "kik"),  # the Kelvin sign is a K
        ("M\xfcller", "m\xfcller"),
        ("Mu\u0308ller", "m\xfcller"),  # the same letter, written as two
        ("M\xd6LLER", "m\xf6ller"),
        ("\xdf", "ss"),
        ("Stra\xdfe 7", "strasse-7"),
        ("\u65e5\u672c", "\u65e5\u672c"),
        ("\u041f\u0440\u043e\u0432\u0435\u0440\u043a\u0430!", "\u043f\u0440\u043e\u0432\u0435\u0440\u043a\u0430"),
        ("\u092e\u0930\u093e\u0920\u0940", "\u092e\u0930\u093e\u0920\u0940"),  # its vowels are marks
        ("\u0301x", "x"),  # a mark that belongs to no letter
        ("\uff21\uff27\uff25\uff2e\uff34 \u2460", "agent-1"),
        ("ad\u200bmin", "ad-min"),  # what nobody sees joins no words
        ("agent\ufe0f\u3164\U000e0041", "agent"),
    ],
)
def test_a_name_has_one_spelling(written, spelled):
    assert canonical(written) == spelled


@pytest.mark.rule("names.one-agent")
@given(parts=words, data=st.data())
def test_names_that_differ_only_by_case_spaces_or_punctuation_are_one_agent(parts, data):
    shouted = [part.upper() if data.draw(st.booleans()) else part for part in parts]
    other = "".join(f"{data.draw(gaps)}{part}" for part in shouted) + data.draw(gaps)

    assert canonical(other) == canonical("-".join(parts)) == "-".join(parts)


@pytest.mark.rule("names.one-agent")
@given(parts=words, other=words)
def test_names_with_other_letters_or_digits_are_other_agents(parts, other):
    assert (canonical(" ".join(parts)) == canonical(" ".join(other))) == (parts == other)


@pytest.mark.rule("names.limits")
@given(st.text(max_size=100))
def test_whatever_is_written_the_spelling_is_stable_and_safe_or_a_clear_error(written):
    try:
        spelled = canonical(written)
    except BadInput as error:
        spelled, reason = "", str(error)
    else:
        reason = ""

    assert "an agent's name" in reason or canonical(spelled) == spelled
    assert "an agent's name" in reason or 1 <= len(spelled) <= NAME_LIMIT
    assert all(letter == "-" or category(letter)[0] in "LNM" for letter in spelled)
    assert spelled == spelled.strip("-")
    assert "--" not in spelled


@pytest.mark.rule("names.limits")
def test_a_name_may_have_64_characters_and_not_one_more():
    assert canonical("n" * 64) == "n" * 64

    with pytest.raises(BadInput, match="at most 64 characters, got 65"):
        canonical("n" * 65)
    with pytest.raises(BadInput, match="at most 64 characters, got 1,001"):
        canonical("-" * 1_000 + "n")


@pytest.mark.rule("names.scripts")
@pytest.mark.case("names")
def test_letters_of_every_script_tell_agents_apart():
    names = [
        "M\xfcller",
        "M\xf6ller",
        "Muller",
        "\u65e5\u672c",
        "\u4e2d\u56fd",
        "\u0394",
        "\u05d0",
        "\u0e01",
        "a",
        "\u0430",
    ]

    assert len({canonical(name) for name in names}) == len(names)  # look-alikes of two scripts are two agents


@pytest.mark.rule("names.limits")
def test_what_counts_is_the_length_after_spelling_out():
    assert canonical(" " * 100 + "n" * 64 + "!" * 100) == "n" * 64


@pytest.mark.rule("names.limits")
@pytest.mark.parametrize(
    "written", ["", " ", "---", "\0", "\ud800", "\u200b", "\u0301", "\U0001f600", "\u3164", "\ufe0f"]
)
def test_a_name_without_a_letter_or_digit_is_refused(written):
    with pytest.raises(BadInput, match="needs at least one letter or digit"):
        canonical(written)


@pytest.mark.rule("names.limits")
@pytest.mark.parametrize("written", [None, 7, b"coder", ["coder"]])
def test_a_name_that_is_not_text_is_refused_with_its_type(written):
    with pytest.raises(BadInput, match=f"named by text, not {type(written).__name__}"):
        canonical(written)


# --- plain text --------------------------------------------------------------------------------


@pytest.mark.rule("input.text")
@given(texts.filter(bool))
def test_plain_text_is_kept_exactly(text):
    assert plain(text, "a task", 100) == text


@pytest.mark.rule("input.text")
@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "must not be empty"),
        ("12345678901", "has at most 10 characters, got 11"),
        ("a\0b", "must not contain a NUL character"),
        ("\0", "must not contain a NUL character"),
        ("\ud83d", "half of a surrogate pair"),
        ("a\udc00b", "half of a surrogate pair"),
        ("\ude00\ud83d", "half of a surrogate pair"),
        (None, "must be text, not NoneType"),
        (b"bytes", "must be text, not bytes"),
    ],
)
def test_text_that_a_store_cannot_keep_is_refused_with_the_reason(text, reason):
    with pytest.raises(BadInput, match=f"^a task {reason}|^a task contains {reason}"):
        plain(text, "a task", 10)


@pytest.mark.rule("input.text")
@given(st.text(st.characters(categories=["Cs"]), min_size=1, max_size=2), texts, texts)
def test_half_a_surrogate_pair_is_found_wherever_it_stands(half, before, after):
    with pytest.raises(BadInput, match="half of a surrogate pair"):
        plain(before + half + after, "a task", 100)


@pytest.mark.rule("input.text")
def test_a_limit_is_exact_and_counts_characters_not_bytes():
    assert plain("\U0001f600" * 10, "a task", 10) == "\U0001f600" * 10


def test_empty_text_is_fine_where_it_is_said_to_be():
    assert plain("", "a role", 10, empty=True) == ""


@pytest.mark.rule("input.text")
@pytest.mark.parametrize("text", ["two\nlines", "tab\t", "bell\a", "\u2028", "\x1b[31m", "\u202e"])
def test_a_line_holds_only_printable_characters(text):
    with pytest.raises(BadInput, match="a session must be one line of printable characters"):
        line(text, "a session", 20)


def test_a_line_is_kept_exactly():
    assert line("ticket 42 / \u00e9", "a session", 20) == "ticket 42 / \u00e9"


def test_a_line_obeys_the_limits_of_plain_text():
    with pytest.raises(BadInput, match="must not be empty"):
        line("", "a session", 20)


# --- showing -----------------------------------------------------------------------------------


def test_a_value_is_shown_quoted_and_escaped():
    assert shown("a\nb") == "'a\\nb'"


@given(st.text(max_size=100), st.integers(5, 60))
def test_a_shown_value_is_never_longer_than_the_limit(text, limit):
    found = shown(text, limit)

    assert len(found) <= limit
    assert found == repr(text) or (found.endswith("…") and repr(text).startswith(found[:-1]))


@pytest.mark.rule("input.text")
def test_a_number_too_long_to_be_shown_is_still_refused_clearly():
    with pytest.raises(BadInput, match="a task must be text, not int"):
        plain(10**5000, "a task", 10)


@given(st.integers(0, 1000))
def test_four_characters_are_a_token_rounded_up(length):
    tokens = tokens_in("x" * length)

    assert 4 * tokens >= length > 4 * (tokens - 1)


# --- summaries ---------------------------------------------------------------------------------


def test_a_summary_cuts_long_text_to_197_characters_and_an_ellipsis():
    assert summary("x" * 200) == "x" * 200
    assert summary("x" * 201) == "x" * 197 + "…"
    assert summary(" one\n\ttwo ") == "one two"


@given(texts)
def test_a_summary_is_one_line_and_never_long(text):
    found = summary(text * 20)

    assert len(found) <= SUMMARY_LIMIT
    assert len(found.splitlines()) <= 1


@pytest.mark.rule("key.endpoint")
def test_an_endpoint_is_a_provider_or_a_provider_at_a_host():
    assert endpoint("OpenAI") == "openai"
    assert endpoint("OpenAI@ LLM.example.com:8000 ") == "openai@llm.example.com:8000"
    for wrong in ("openai@", "openai@two words", "openai@http://x/v1"):
        with pytest.raises(BadInput, match="an endpoint is named as provider@host"):
            endpoint(wrong)
    with pytest.raises(BadInput, match="named by text"):
        endpoint(7)


def test_a_long_text_keeps_its_beginning_and_its_end():
    assert excerpt("x" * 52, 12) == "x" * 52
    assert excerpt("abcdefgh" + "." * 80 + "WXYZ", 12) == "abcdefgh … [80 characters left out] … WXYZ"
