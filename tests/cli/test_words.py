"""What models say, as it is shown below the tree while they say it."""

from collections.abc import Iterable

import pytest
from rich.console import Console
from rich.text import Text

from remit.cli.screen import Spoken, Talking, Words
from remit.core.events import Event
from remit.ports.models import TextChunk

TREE = Text("\n".join(f"task {number}" for number in range(6)))
LONG = " ".join(f"word{number}" for number in range(200))


def event(kind: str, task: str) -> Event:
    return Event("default", 1, kind, 0, "run", "s", task, "lead", text="", op="", answer="", hash="", data={})


def begins(agent: str, task: str) -> TextChunk:
    return TextChunk(agent, task, begins=True)


def heard(*parts: Event | TextChunk) -> Words:
    words = Words()
    for part in (event("task.started", "run"), *parts):
        words.hear(part)
    return words


def drawn(words: Words, width: int = 40, height: int = 12, above: Text | None = TREE) -> list[str]:
    console = Console(width=width, height=height, force_terminal=True, color_system=None)
    with console.capture() as capture:
        console.print(Spoken(above, words))
    return [line.rstrip() for line in capture.get().splitlines()]


def lines(names: Iterable[int]) -> list[str]:
    return [f"task {number}" for number in names]


@pytest.mark.rule("terminal.words")
def test_the_answer_stands_below_the_tree_as_far_as_it_has_come():
    words = heard(begins("lead", "run"), TextChunk("lead", "run", "It is "), TextChunk("lead", "run", "warm"))
    assert drawn(words) == [*lines(range(6)), "", "It is warm"]
    words.end()  # it is printed now
    assert drawn(words) == lines(range(6))


@pytest.mark.rule("terminal.words", "stream.begins")
def test_an_answer_that_was_cut_off_is_not_shown_twice():
    cut = (begins("lead", "run"), TextChunk("lead", "run", "It is wa"))
    again = (begins("lead", "run"), TextChunk("lead", "run", "It is"))
    assert heard(*cut, event("model.failed", "run")).answer == ""
    assert heard(*cut, event("model.failed", "run"), *again).answer == "It is"
    assert heard(*cut, *again).answer == "It is"


@pytest.mark.rule("terminal.words")
def test_of_others_the_last_line_is_shown_until_they_have_said_all():
    words = heard(
        *(begins("lead", "run"), TextChunk("lead", "run", "let me see")),
        *(begins("coder", "a"), TextChunk("coder", "a", "first\nsecond ")),
        *(begins("tester", "b"), TextChunk("tester", "b", LONG)),
    )
    assert drawn(words)[-3:] == ["coder  first second", "tester  … word197 word198 word199", "let me see"]
    words.hear(event("model.answered", "a"))
    words.hear(event("model.answered", "run"))  # its answer stays until it is printed, or it says something else
    assert drawn(words)[-2:] == ["tester  … word197 word198 word199", "let me see"]


@pytest.mark.rule("terminal.words")
@pytest.mark.parametrize("width", [20, 40, 80, 200])
@pytest.mark.parametrize("height", [4, 8, 12, 40])
def test_the_end_of_a_long_answer_is_always_to_be_seen(width: int, height: int):
    found = drawn(heard(begins("lead", "run"), TextChunk("lead", "run", LONG)), width, height)
    assert found[-1].endswith("word199")
    assert found[0] == "task 0"
    assert len(found) <= max(height - 1, 6)
    assert max(map(len, found)) <= width


@pytest.mark.rule("terminal.words")
def test_wide_letters_and_escape_codes_stay_within_their_line():
    words = heard(begins("lead", "run"), begins("coder", "a"), TextChunk("coder", "a", "漢字 " * 40 + "\x1b[31mred"))
    (line,) = drawn(words)[-1:]
    assert "\x1b" not in line
    assert line.startswith("coder  … 漢字")
    assert line.endswith("red")


@pytest.mark.rule("terminal.words")
def test_a_talk_shows_who_is_at_work_and_then_the_answer_alone():
    console = Console(width=40, height=12, force_terminal=True, color_system=None)
    words = heard(begins("coder", "a"), TextChunk("coder", "a", "hm"))
    shown: list[str] = []
    for said in ("", "warm"):
        words.hear(TextChunk("lead", "run", said))
        with console.capture() as capture:
            console.print(Talking("lead", words).picture())
        shown.append(capture.get())
        words.hear(event("model.answered", "a"))
    assert shown == ["lead is at work …\n\ncoder  hm\n", "warm\n"]
