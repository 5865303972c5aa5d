"""The prompt of a run that waits for a person: what is typed, what is answered elsewhere, and who leaves."""

import asyncio
import fcntl
import io
import os
import pty
import subprocess
import sys
import termios
from collections.abc import Iterator
from contextlib import closing, nullcontext
from pathlib import Path

import pytest
from rich.console import Console

import remit as package
from remit import Runtime
from remit.cli.prompting import PromptDesk, TypedAnswer, Typist, answering, decided_by
from remit.cli.screen import Screen, on_screen
from remit.runtime.workspace import subscribe
from remit.types import Inquiry

pytestmark = pytest.mark.anyio

HOP = Inquiry("q1", "hop", "'boss' wants to ask 'x'", "boss", "t1", "t1", "s1", 0, 9, "open")
TOOL = Inquiry("q1", "tool", "'boss' wants to deploy()", "boss", "t1", "t1", "s1", 0, 9, "open")
MONEY = Inquiry("q1", "money", "'boss' wants $0.05", "boss", "t1", "t1", "s1", 0, 9, "open")
ASK = Inquiry("q1", "ask", "Which?", "boss", "t1", "t1", "s1", 0, 9, "open", choices=("red", "2", "blue"))
FREE = Inquiry("q1", "ask", "Why?", "boss", "t1", "t1", "s1", 0, 9, "open", default="because")


async def typed(question: Inquiry, *lines: str) -> tuple[TypedAnswer | None, list[str]]:
    rest, said = iter(lines), list[str]()

    async def read(text: str) -> str | None:
        return next(rest, None)

    return await decided_by(question, read, said.append), said


@pytest.mark.rule("terminal.prompt")
@pytest.mark.parametrize(
    ("question", "lines", "verdict"),
    [
        (HOP, ("y",), TypedAnswer("approve")),
        (HOP, ("YES",), TypedAnswer("approve")),
        (HOP, ("", "y"), TypedAnswer("approve")),
        (HOP, ("n", "not today"), TypedAnswer("reject", why="not today")),
        (HOP, ("n", ""), TypedAnswer("reject", why="no")),
        (HOP, ("e", "ship half"), TypedAnswer("approve", "ship half")),
        (HOP, ("e", "", "y"), TypedAnswer("approve")),
        (TOOL, ("e", '{"env": "test"}'), TypedAnswer("approve", {"env": "test"})),
        (TOOL, ("e", "", "y"), TypedAnswer("approve")),
        (MONEY, ("y",), TypedAnswer("approve")),
        (MONEY, ("e", "0.20USD"), TypedAnswer("approve", "0.20USD")),
        (HOP, (), None),
        (ASK, ("blue",), TypedAnswer("answer", "blue")),
        (ASK, ("3",), TypedAnswer("answer", "blue")),
        (ASK, ("2",), TypedAnswer("answer", "2")),
        (ASK, ("", "1"), TypedAnswer("answer", "red")),
        (FREE, ("so",), TypedAnswer("answer", "so")),
        (FREE, ("",), TypedAnswer("answer", "because")),
    ],
)
async def test_what_is_typed_is_a_verdict(question: Inquiry, lines: tuple[str, ...], verdict: TypedAnswer | None):
    assert await typed(question, *lines) == (verdict, [])


@pytest.mark.parametrize(
    ("question", "line", "sentence"),
    [
        (HOP, "maybe", "y approves it, n rejects it"),
        (ASK, "green", "it is one of: red, 2, blue"),
        (ASK, "4", "it is one of: red, 2, blue"),
        (ASK, "٣", "it is one of: red, 2, blue"),
    ],
)
async def test_what_means_nothing_is_asked_for_again(question: Inquiry, line: str, sentence: str):
    verdict, said = await typed(question, line)
    assert verdict is None
    assert said[0].startswith(sentence)


async def test_arguments_that_are_no_object_are_asked_for_again():
    verdict, said = await typed(TOOL, "e", "[1]", "e", "{", "y")
    assert verdict == TypedAnswer("approve")
    assert len(said) == 2


@pytest.mark.rule("people.shown")
async def test_nothing_is_decided_before_all_of_it_was_shown():
    rest, hints, shown = iter(("y", "", "w", "y")), list[str](), list[str]()

    async def read(text: str) -> str | None:
        hints.append(text)
        return next(rest, None)

    assert await decided_by(TOOL, read, hints.append, lambda: shown.append("whole")) == TypedAnswer("approve")
    assert shown == ["whole"]
    assert hints == ["shortened; w shows the whole question: "] * 3 + [
        "y to approve, n to reject, e to edit the arguments: "
    ]


@pytest.fixture
def pipe() -> Iterator[tuple[int, int]]:
    reading, writing = os.pipe()
    yield reading, writing
    for end in (reading, writing):
        try:
            os.close(end)
        except OSError:  # a test has closed it
            continue


async def test_a_line_is_read_whole_and_what_was_typed_ahead_is_dropped(pipe: tuple[int, int]):
    shown = io.StringIO()
    typist = Typist(pipe[0], Console(file=shown))
    os.write(pipe[1], b"fi")
    reading = asyncio.create_task(typist.read("say: "))
    await asyncio.sleep(0)
    os.write(pipe[1], b"rst\nahead\n")
    assert await reading == "first"
    typist.forget()
    os.write(pipe[1], b"second\n")
    assert await typist.read("say: ") == "second"
    os.close(pipe[1])
    assert await typist.read("say: ") is None
    assert shown.getvalue() == "say: say: say: "


def team() -> Runtime:
    rt = Runtime()

    @rt.agent
    async def asking(turn: package.Turn) -> str:
        return await turn.ask_human("Which colour?", ["red", "blue"])

    return rt


async def answered(rt: Runtime, desk: PromptDesk) -> object:
    runs: list[str] = []
    stop = subscribe(
        rt.workspace, lambda events: runs.extend(event.run for event in events if event.kind == "task.started")
    )
    try:
        async with answering(rt.workspace, runs, desk):
            return await rt.run("asking", "go")
    finally:
        stop()


@pytest.mark.rule("terminal.prompt")
async def test_a_person_at_the_terminal_answers_right_there(pipe: tuple[int, int]):
    shown = Shown()
    console = Console(file=shown)
    with team() as rt:
        run = asyncio.create_task(answered(rt, PromptDesk(console, nullcontext, "", Typist(pipe[0], console))))
        await until(shown, "a number or the answer: ")
        os.write(pipe[1], b"7\n2\n")
        assert await run == "blue"
        (question,) = await rt.workspace.questions.list(decided=True)
    assert (question.channel, question.by.partition(":")[0]) == ("terminal", "terminal")
    assert "it is one of: red, blue" in shown.getvalue()


async def test_an_answer_from_elsewhere_ends_the_prompt(pipe: tuple[int, int]):
    shown = Shown()
    console = Console(file=shown)
    with team() as rt:
        run = asyncio.create_task(answered(rt, PromptDesk(console, nullcontext, "", Typist(pipe[0], console))))
        await until(shown, "a number or the answer: ")
        (question,) = await rt.workspace.questions.list()
        await rt.workspace.questions.answer(question.id, "red", by="bob")
        assert await run == "red"
    assert f"question {question.id} is answered by bob" in shown.getvalue()


async def test_who_leaves_is_told_how_to_answer_later(pipe: tuple[int, int]):
    shown = Shown()
    console = Console(file=shown, width=200)
    with team() as rt:
        run = asyncio.create_task(
            answered(rt, PromptDesk(console, nullcontext, " --store a.db", Typist(pipe[0], console)))
        )
        await until(shown, "a number or the answer: ")
        os.close(pipe[1])
        await until(shown, "the question stays open; answer it with: remit answer")
        (question,) = await rt.workspace.questions.list()
        await rt.workspace.questions.answer(question.id, "red")
        assert await run == "red"
    assert f"remit answer {question.id} CHOICE --store a.db" in shown.getvalue()


class Shown(io.StringIO):
    """A screen that says when it is written to."""

    def __init__(self) -> None:
        super().__init__()
        self.written = asyncio.Event()

    def write(self, text: str) -> int:
        self.written.set()
        return super().write(text)


async def until(shown: Shown, text: str) -> None:
    """Wait until a text is on the screen."""
    async with asyncio.timeout(30):
        while text not in shown.getvalue():
            shown.written.clear()
            await shown.written.wait()


def test_a_screen_can_be_paused_and_is_drawn_again():
    shown = io.StringIO()
    drawing = on_screen(Screen(), Console(file=shown, force_terminal=True))
    with drawing.paused():
        assert shown.getvalue() == ""
    with drawing:
        with drawing.paused():
            before = shown.getvalue().count("nothing is open")
        assert before >= 1
    assert shown.getvalue().count("nothing is open") > before


TEAM = """
import remit

rt = remit.Runtime()

@rt.agent
async def asking(turn):
    return "it is " + await turn.ask_human("Which colour?", ["red", "blue"])
"""


@pytest.mark.rule("terminal.prompt")
def test_a_run_in_a_terminal_asks_and_goes_on(tmp_path: Path):
    (tmp_path / "team.py").write_text(TEAM)
    seen, code = at_a_terminal(tmp_path, b"a number or the answer: ", b"2\n")
    assert code == 0
    assert "it is blue" in seen


@pytest.mark.rule("terminal.prompt")
def test_control_c_at_the_prompt_cancels_the_run(tmp_path: Path):
    (tmp_path / "team.py").write_text(TEAM)
    seen, code = at_a_terminal(tmp_path, b"a number or the answer: ", b"\x03")
    assert code == 130
    assert "is withdrawn" in seen


def at_a_terminal(folder: Path, when: bytes, type_: bytes) -> tuple[str, int]:
    """Run it in a terminal of its own, and type something when a text shows."""
    master, slave = pty.openpty()

    def own_terminal() -> None:
        os.setsid()
        fcntl.ioctl(slave, termios.TIOCSCTTY, 0)

    child = subprocess.Popen(
        [sys.executable, "-m", "remit.cli", "run", "team:rt", "asking", "go"],
        cwd=folder,
        stdin=slave,
        stdout=slave,
        stderr=slave,
        env={**os.environ, "TERM": "xterm", "COLUMNS": "160"},
        preexec_fn=own_terminal,  # noqa: PLW1509 - no thread of ours is there
    )
    os.close(slave)
    seen, done = b"", False
    with closing(os.fdopen(master, "rb", buffering=0)) as screen:
        while chunk := _read(screen.fileno()):
            seen += chunk
            if when in seen and not done:
                os.write(master, type_)
                done = True
    return seen.decode(errors="replace"), child.wait()


def _read(master: int) -> bytes:
    try:
        return os.read(master, 65_536)
    except OSError:  # the other end is closed
        return b""
