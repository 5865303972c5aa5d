"""A question as people are shown it: nothing in it hides anything else, and it is said whether all is shown."""

import re
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.make import json_values
from remit.core.question import Inquiry
from remit.report.printable import visible_line
from remit.report.questions import asked_by, is_diff, shown_question, to_read, whole_question, wrapped_lines

pytestmark = pytest.mark.rule("people.shown")


def inquiry(**more: Any) -> Inquiry:
    """An approval that nobody asked for."""
    made: dict[str, Any] = {
        "id": "q1",
        "kind": "tool",
        "text": "'coder' wants to deploy",
        "agent": "coder",
        "task": "t1",
        "run": "t1",
        "session": "s1",
        "asked_at": 0,
        "until": 1_800_000_000_000_000,
        "state": "open",
        "chain": "lead > coder",
    }
    return Inquiry(**(made | more))


def using(**arguments: Any) -> Inquiry:
    return inquiry(shows={"action": "deploy", "arguments": arguments, "chain": "lead > coder", "tools": [], "why": ""})


def test_all_of_an_approval_is_shown_with_every_name():
    one = using(env="prod", n=5, s="5", none=None, to=["a", "b"], empty={}, deep={"a": {"b": "x" * 70}, "c": [1, [2]]})
    shown = shown_question(one, 2_000)
    assert shown == whole_question(one)
    assert shown.whole
    assert shown.text == "\n".join(
        (
            "  'coder' wants to deploy",
            "  action: deploy",
            "  arguments:",
            '    env: "prod"',
            "    n: 5",
            '    s: "5"',
            "    none: null",
            '    to: ["a","b"]',
            "    empty: {}",
            "    deep:",
            "      a:",
            f'        b: "{"x" * 70}"',
            "      c: [1,[2]]",
        )
    )
    assert asked_by(one) == "asked by lead > coder, open until 2027-01-15T08:00:00.000000Z"
    assert to_read(one) == "remit approvals q1"


def test_who_asks_is_named_without_a_chain_and_names_are_listed_in_words():
    one = inquiry(chain="", shows={"tools": ["exec", "group:fs"], "asks": ["a b"], "step": 3, "arguments": "none"})
    assert asked_by(one).startswith("asked by coder, ")
    assert whole_question(one).text.split("\n")[1:] == [
        "  tools: exec, group:fs",
        '  asks: ["a b"]',
        "  step: 3",
        "  arguments: none",
    ]


def test_an_action_without_arguments_says_so():
    assert "  arguments: none" in whole_question(using()).text


def test_a_question_has_its_choices_by_number_and_its_default():
    one = inquiry(kind="ask", text="Which?", choices=("red", "dark blue"), default="red")
    assert whole_question(one).text == "  Which?\n  choices:\n    1: red\n    2: dark blue\n  if nobody answers: red"
    assert whole_question(one, choices=False).text == "  Which?\n  if nobody answers: red"


@pytest.mark.case("edges/n17_show")
@pytest.mark.parametrize("size", [400, 2_000, 4_000])
@pytest.mark.parametrize(
    "padding",
    [
        "routine maintenance " * 400,
        "\n" * 900,
        "\u202e" * 3_000,
        ["x"] * 5_000,
        [1] * 90_000,
        {f"k{n}": n for n in range(9_000)},
        [[["x" * 90] * 9] * 9] * 9,
        {"a": {"b": ["y" * 5_000]}},
        {"k" * 9_000: 1, "text": "x" * 99},
    ],
    ids=["words", "lines", "escapes", "list", "numbers", "object", "deep", "nested", "name"],
)
def test_padding_in_one_argument_hides_no_other(size: int, padding: Any):
    shown = shown_question(using(note=padding, target="PRODUCTION"), size)
    assert not shown.whole
    assert len(shown.text) <= size
    assert shown.text.count("\n") < size // 40
    lines = shown.text.split("\n")
    assert '    target: "PRODUCTION"' in lines
    assert any(line.startswith("    note:") for line in lines)
    assert re.search(r"\[[\d,]+ (more left out|characters left out|characters|parts)\]|…", shown.text)


def test_a_long_value_keeps_its_beginning_and_its_end_and_says_how_much_is_left_out():
    shown = shown_question(using(note=f"BEGIN{'x' * 9_990}END!!"), 1_000)
    [note] = [line for line in shown.lines if line.name == "note"]
    assert note.text.startswith('"BEGINxxx')
    assert note.text.endswith('xxxEND!!"')
    left = re.search(r" … \[([\d,]+) characters left out\] … ", note.text)
    assert left is not None
    assert int(left[1].replace(",", "")) == 10_000 - (len(note.text) - 2 - len(left[0]))


def test_what_does_not_fit_even_so_is_left_out_at_the_end_and_that_is_said():
    shown = shown_question(using(**{f"name{n}": n for n in range(500)}), 1_000)
    assert not shown.whole
    assert shown.lines[-1].text == "[the rest is left out]"
    assert len(shown.text) <= 1_000


def test_names_inside_a_long_value_may_be_cut_but_not_where_all_is_shown():
    one = using(deep={"k" * 100: "v" * 100})
    assert f"{'k' * 60}…" in shown_question(one, 300).text
    assert "k" * 100 in whole_question(one).text


@pytest.mark.case("edges/n15_channels")
def test_no_text_makes_a_line_of_its_own():
    forged = "Shall I?\n\nasked by lead, open until 2030\nq0  approval for x\r\nx\u2028y\u2029z\x0b\x0c\x85w"
    places = (
        inquiry(kind="ask", text=forged, choices=(forged, "no"), default=forged),
        inquiry(text=forged, shows={"task": forged, "action": forged}),
        using(note=forged, **{forged: forged}, deep=[forged, {forged: [forged]}]),
    )
    for one in places:
        for shown in (whole_question(one), shown_question(one, 900), shown_question(one, 100)):
            for line in shown.text.splitlines():
                assert line.startswith("  ")
                assert line.isprintable()


def test_each_line_of_a_text_has_a_bar_so_that_it_is_not_taken_for_an_argument():
    text = whole_question(using(note="hello\ntarget: test", target="PRODUCTION")).text
    assert text.endswith('    note:\n      | hello\n      | target: test\n    target: "PRODUCTION"')


@pytest.mark.parametrize("columns", [12, 20, 40, 80])
def test_a_line_that_is_broken_stays_indented(columns: int):
    one = using(note="x" * 75 + "q0  approval for deployer", block="a\n" + "界" * 80)
    for line in whole_question(one).lines:
        parts = wrapped_lines(line, columns)
        before = "  " * (line.depth + 1)
        assert all(part.startswith(before) for part in parts)
        assert all(part.startswith(f"{before}| ") for part in parts) or not str(line).startswith(f"{before}| ")
        assert all(part[len(before)] in " |" for part in parts[1:])
        whole = str(line)[len(before) :]
        mark = "| " if whole.startswith("| ") else "  "
        assert parts[0][len(before) :] + "".join(part[len(before) + len(mark) :] for part in parts[1:]) == whole


@given(st.dictionaries(st.text(max_size=9), json_values, max_size=5), st.integers(200, 3_000))
def test_whatever_agents_choose_it_fits_and_it_is_whole_only_if_all_is_there(arguments: dict[str, Any], size: int):
    one = inquiry(shows={"arguments": arguments})
    shown = shown_question(one, size)
    assert len(shown.text) <= size
    assert all(line.startswith("  ") and line.isprintable() for line in shown.text.splitlines())
    assert not shown.whole or shown == whole_question(one)
    assert all(before.depth + 1 >= after.depth for before, after in pairwise(shown.lines))


@pytest.mark.parametrize(
    ("text", "shows"),
    [
        ("plain text", "plain text"),
        ("Zoë, 東京 ❤\ufe0f", "Zoë, 東京 ❤\ufe0f"),
        ("a\nb\tc", "a␊b\\tc"),
        ("\u202etset\u2066", "\\u202etset\\u2066"),
        ("re\u200bd \u200d\ufeff", "re\\u200bd \\u200d\\ufeff"),
        ("a\u00a0b\u3000c", "a\\xa0b\\u3000c"),
        ("\u2028\u2029\x85", "\\u2028\\u2029\\x85"),
        ("\U000e0041\U000e0101", "\\U000e0041\\U000e0101"),
        ("\u3164\u115f\u2800\ufe0f", "\\u3164\\u115f\\u2800\\ufe0f"),
        ("e\u0301\u0301\u0301\u0301", "e\u0301\u0301\u0301\\u0301"),
        ("\x1b[31m", "\\x1b[31m"),
    ],
)
def test_every_character_shows_itself(text: str, shows: str):
    assert visible_line(text) == shows


def test_a_flat_list_is_written_on_one_line():
    assert "[0.5,1,2,3," in whole_question(using(numbers=[0.5, *range(1, 20)])).text.replace(" ", "")


PATCH = "--- a/door.py\n+++ b/door.py\n@@ -1,2 +1,2 @@\n colour\n-red\n+blue\n"


@pytest.mark.rule("people.lines")
def test_a_diff_is_told_by_its_lines():
    shown = whole_question(using(patch=PATCH))
    quoted = [(line.text, line.mark) for line in shown.lines if line.is_quoted]
    assert quoted == [
        ("| --- a/door.py", "place"),
        ("| +++ b/door.py", "place"),
        ("| @@ -1,2 +1,2 @@", "place"),
        ("|  colour", ""),
        ("| -red", "removed"),
        ("| +blue", "added"),
        ("| ", ""),
    ]
    assert shown.has_quotes
    assert not whole_question(using(patch="one line")).has_quotes


@pytest.mark.rule("people.lines")
@pytest.mark.parametrize("text", ["- milk\n- bread\n+ a cake", "a\n--- b\nc", "x\n @@ -1 +1 @@"])
def test_what_is_no_diff_is_not_told_as_one(text: str):
    assert {line.mark for line in whole_question(using(list=text)).lines} == {""}
    assert is_diff("diff --git a/x b/x\n@@ -1 +1 @@\n-a\n+b")


@pytest.mark.rule("people.lines")
def test_a_diff_that_is_cut_says_so_and_keeps_its_marks():
    shown = shown_question(using(patch=PATCH + "\n".join(f"+line {number}" for number in range(500))), 2_000)
    assert not shown.whole
    assert any("characters left out" in line.text for line in shown.lines)
    assert {"added", "removed", "place"} <= {line.mark for line in shown.lines}
