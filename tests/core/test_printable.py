"""Text from agents, on a terminal or in a picture: nothing in it acts, and it keeps to its columns."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from remit.core.printable import block, cleaned, columns_of, cut, escaped

JOINER = "\u200d"
anything = st.text(
    st.characters() | st.sampled_from("\n\t\0\x1b\u202e\u200d\u0301\u4e2d\U0001f600 "), max_size=40
)
columns = st.integers(1, 30)


def width(text: str) -> int:
    return sum(columns_of(char) for char in text)


def acts(text: str) -> bool:
    """Whether a terminal would do anything but print it."""
    return not text.replace(JOINER, "").isprintable()


@pytest.mark.parametrize("shown", [escaped, cleaned])
@given(text=anything, most=columns)
def test_whatever_an_agent_says_is_one_line_within_its_columns_and_nothing_acts(shown, text, most):
    found = shown(text, most)

    assert not acts(found)
    assert width(found) <= most


@given(anything)
def test_a_block_keeps_its_lines_and_nothing_else_acts(text):
    found = block(text)

    assert found.count("\n") == text.count("\n")
    assert not acts(found.replace("\n", ""))


@pytest.mark.parametrize(
    ("text", "on_a_terminal", "in_a_picture"),
    [
        ("two\nlines\tand  more ", "two\\nlines\\tand  more ", "two lines and more"),
        ("\x1b[31mred", "\\x1b[31mred", "[31mred"),
        ("a\u202eb", "a\\u202eb", "ab"),
        ("nul\0", "nul\\x00", "nul"),
        ("half \ud800", "half \\ud800", "half"),
        ("a\u00a0b", "a b", "a b"),
        (
            "\u00e9\u4e2d\U0001f469\u200d\U0001f680",
            "\u00e9\u4e2d\U0001f469\u200d\U0001f680",
            "\u00e9\u4e2d\U0001f469\u200d\U0001f680",
        ),
    ],
)
def test_a_terminal_shows_escapes_and_a_picture_leaves_them_out(text, on_a_terminal, in_a_picture):
    assert escaped(text, 40) == on_a_terminal
    assert cleaned(text, 40) == in_a_picture


@pytest.mark.parametrize("shown", [escaped, cleaned])
def test_a_very_long_text_is_marked_as_cut_even_where_its_beginning_would_fit(shown):
    assert shown("\u0301" * 1000, 10).endswith("…")
    assert shown("a" + " " * 1000 + "b", 10).endswith("…")


@given(anything, columns)
def test_what_fits_is_not_cut_and_what_does_not_is_marked(text, most):
    found = cut(text, most)

    assert found == text or (found.endswith("…") and text.startswith(found[:-1]))
    assert width(found) <= most


@pytest.mark.parametrize(
    ("text", "most", "found"),
    [
        ("abcd", 4, "abcd"),
        ("abcde", 4, "abc…"),
        ("\u4e2d\u4e2d", 4, "\u4e2d\u4e2d"),
        ("\u4e2d\u4e2da", 4, "\u4e2d…"),
    ],
)
def test_wide_characters_take_two_columns(text, most, found):
    assert cut(text, most) == found


def test_a_pile_of_accents_is_cut_though_it_takes_no_column():
    assert len(cut("e" + "\u0301" * 1000, 10)) <= 31
