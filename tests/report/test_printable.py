"""Text from agents on a terminal: nothing that the terminal would obey."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from remit.report.printable import block, columns_of, escaped, harmless, picture_line


def shows_only_what_prints(text: str) -> bool:
    return text.replace("\u200d", "").isprintable()


@given(st.text(max_size=60))
def test_whatever_an_agent_says_is_one_harmless_line(text: str):
    assert shows_only_what_prints(escaped(text, 20))
    assert shows_only_what_prints(picture_line(text, 20))


@given(st.text(max_size=60))
def test_a_line_keeps_within_its_columns(text: str):
    assert sum(columns_of(char) for char in escaped(text, 12)) <= 12


@given(st.text(max_size=60))
def test_a_block_keeps_its_lines_and_nothing_else_that_acts(text: str):
    shown = block(text)
    assert shown.count("\n") == text.count("\n")
    assert all(shows_only_what_prints(line) for line in shown.split("\n"))


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("\x1b[31mred", "\\x1b[31mred"),
        ("a\u202eb", "a\\u202eb"),
        ("nul\0", "nul\\x00"),
        ("two\nlines", "two\\nlines"),
        ("thin\u2009space", "thin space"),
    ],
)
def test_what_could_act_is_shown_instead(text: str, shown: str):
    assert escaped(text, 40) == shown


@pytest.mark.rule("terminal.harmless")
@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("plain, with\ttabs\r\nand lines, é 日本 👩‍👧", "plain, with\ttabs\r\nand lines, é 日本 👩‍👧"),
        ("\x1b[31m", "\\u001b[31m"),
        ("\x9b2J\x7f\x00", "\\u009b2J\\u007f\\u0000"),
        ("a\u202eb\u2066c\u200f", "a\\u202eb\\u2066c\\u200f"),
        ("\ud800", "\\ud800"),
    ],
)
def test_only_what_acts_is_written_out_for_a_pipe(text: str, written: str):
    assert harmless(text) == written


def test_a_block_shows_what_acts_in_each_of_its_lines():
    assert block("a\x1b[2J\nb\tc") == "a\\x1b[2J\nb\\tc"
