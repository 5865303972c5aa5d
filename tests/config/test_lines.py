"""Where a setting stands in a text, however it is written."""

import tomllib

import pytest

from remit.config.reading import line_of, lines_of, trouble

TEXT = '''# agents = 1
title = "not [a.table] # nor = a key"
long = """
[agents.fake]
model = "in a text, with a \\""" quote"
"""
raw = \'\'\'
[agents.raw] = 1\'\'\'

[agents.coder]  # who writes
model = "openai:gpt-5"
asks = [
  "reviewer",  # and = nobody else
  "x]",
]
"keys" = ["A"]

[ agents . "my = agent" ]
'model' = { a = 1, b = [2,
  3] }
deep.er."est" = 1
[[step]]
name = 1
[[step]]
name = 2
last = 3'''


@pytest.mark.rule("file.line")
@pytest.mark.parametrize(
    ("path", "line"),
    [
        ("title", 2),
        ("long", 3),
        ("raw", 7),
        ("agents", 10),
        ("agents/coder", 10),
        ("agents/coder/model", 11),
        ("agents/coder/asks", 12),
        ("agents/coder/keys", 16),
        ("agents/my = agent", 18),
        ("agents/my = agent/model", 19),
        ("agents/my = agent/deep", 21),
        ("agents/my = agent/deep/er/est", 21),
        ("step/0/name", 23),
        ("step/1", 24),
        ("step/1/last", 26),
    ],
)
def test_the_line_of_a_setting_is_found(path: str, line: int):
    tomllib.loads(TEXT)
    assert lines_of(TEXT)[tuple(path.split("/"))] == line


def test_nothing_is_found_that_is_not_there():
    found = {"/".join(path) for path in lines_of(TEXT)}
    assert not [path for path in found if "fake" in path or path.startswith("agents/raw")]


def test_what_has_no_line_of_its_own_has_the_line_of_what_it_is_in():
    lines = lines_of(TEXT)
    assert line_of(lines, ("agents", "my = agent", "model", "b")) == 19
    assert line_of(lines, ("nothing", "of", "it")) == 1


def test_lines_are_counted_alike_on_every_system():
    assert lines_of(TEXT.replace("\n", "\r\n")) == lines_of(TEXT)


@pytest.mark.rule("file.line")
@pytest.mark.parametrize(("text", "line"), [("a = 1\nb 2\n", 2), ("a = 1\n\nb = [1,\n", 3), ("", 1)])
def test_the_line_of_bad_toml_is_told_apart_from_its_sentence(text: str, line: int):
    try:
        tomllib.loads(text)
        error = tomllib.TOMLDecodeError("nothing here (at end of document)")
    except tomllib.TOMLDecodeError as found:
        error = found
    number, said = trouble(error, text)
    assert number == line
    assert "(at" not in said
