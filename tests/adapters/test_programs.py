"""Programs as agents, with real processes, by themselves and within a run."""

import pickle
from pathlib import Path

import anyio
import pytest

from adapters.processes import CORPUS, STUBBORN, Task, marked, python, running, written
from remit import Card, Failed, Outcome, Runtime
from remit.adapters.process import LIMIT, ProgramFailed, program
from remit.errors import BadInput, Cancelled, TimedOut
from remit.testing import FakeClock
from remit.types import Progress

pytestmark = pytest.mark.anyio


async def test_a_program_answers_with_what_it_prints():
    answer = program(python("import sys; print('got', sys.stdin.read(), '\\n')"))
    turn = Task("this")
    assert await answer(turn) == "got this \n"  # one newline less
    assert [what.split()[:2] for what in turn.took] == [["output", "of"]]


async def test_bytes_that_are_no_text_are_replaced():
    assert await program(python("import os; os.write(1, b'a\\xffb\\n')"))(Task()) == "a\ufffdb"


@pytest.mark.rule("async.processes")
@pytest.mark.parametrize("task", CORPUS)
async def test_a_task_arrives_literally(task: str):
    show = "import sys; sys.stdout.write(repr([sys.argv[1:], sys.stdin.read()]))"
    assert await program(python(show, "--"))(Task(task)) == repr([["--"], task])
    assert await program(python(show, "--"), task_as="argument")(Task(task)) == repr([["--", task], ""])


async def test_a_task_with_nul_or_too_long_for_an_argument_is_refused():
    echo = program(["echo"], task_as="argument")
    with pytest.raises(BadInput, match="NUL"):
        await echo(Task("a\0b"))
    with pytest.raises(BadInput, match="at most"):
        await echo(Task("x" * 2_000_000))


async def test_another_exit_code_is_a_failure_with_the_last_words():
    code = "import sys; print('kept'); print(*range(50), sep='\\n', file=sys.stderr); sys.exit(7)"
    with pytest.raises(ProgramFailed, match=r"ended with exit code 7: 45\n46\n47\n48\n49$") as info:
        await program(python(code))(Task())
    assert info.value.code == 7
    again = pickle.loads(pickle.dumps(info.value))
    assert (str(again), again.code) == (str(info.value), 7)
    with pytest.raises(ProgramFailed, match=r"'false' ended with exit code 1 and said nothing"):
        await program(["false"])(Task())
    with pytest.raises(ProgramFailed, match=r"was ended by signal 9"):
        await program(["sh", "-c", "kill -9 $$"])(Task())


@pytest.mark.rule("progress.program")
async def test_lines_on_stderr_report_how_far_a_program_is(rt: Runtime):
    said = ["working", "::progress:: one", "::progress 0.5::  two of\x00 four ", "::progress 7:: no", "::progress::"]
    said += [f"::progress 1:: {'x' * 300}", "::progress 1.0:: all"]
    code = f"import sys; [print(one, file=sys.stderr, flush=True) for one in {said!r}]; sys.exit(int(input()))"
    rt.add(Card("worker"), program(python(code)))
    reports: list[str] = []
    async for one in rt.stream("worker", "0"):
        reports += [str(one)] if isinstance(one, Progress) else []
    # Of the reports within a second, the first is shown, and those that say that all is done.
    assert reports == ["one", f"{'x' * 199}… (100 %)", "all (100 %)"]
    with pytest.raises(Failed, match="ended with exit code 3: working$"):
        await rt.run("worker", "3")


async def test_an_answer_that_was_cut_says_so():
    assert await program(["echo", "12345678"], limit=4)(Task()) == "1234\n[cut after 4 bytes]"


@pytest.mark.rule("program.cut")
@pytest.mark.parametrize("limit", [LIMIT, 4 * LIMIT])
async def test_an_answer_longer_than_what_is_kept_is_cut_with_a_note_and_does_not_fail(limit: int):
    async with Runtime() as rt:
        rt.add(Card("wordy"), program(python("print('x' * 3_000_000)"), limit=limit))
        said = await rt.run("wordy", "go")
    assert said == "x" * 1_048_476 + "\n[cut after 1,048,476 characters]"
    loud = python("import sys; print('ok'); print('much' * 99, file=sys.stderr)")
    assert await program(loud, limit=40)(Task()) == "ok"


def test_a_program_is_found_when_it_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    with pytest.raises(BadInput, match="there is no program 'no-such-program' here that can be run"):
        program(["no-such-program", "x"])
    (tmp_path / "notes").write_text("not to be run")
    with pytest.raises(BadInput, match="there is no program"):
        program([str(tmp_path / "notes")])
    with pytest.raises(BadInput, match="there is no program 'ls'"):
        program(["ls"], env={"PATH": str(tmp_path)})
    with pytest.raises(BadInput, match="task_as is 'stdin' or 'argument', not 'file'"):
        program(["ls"], task_as="file")  # pyright: ignore[reportArgumentType]


@pytest.mark.rule("async.processes")
async def test_what_the_path_says_later_does_not_matter(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    for place in ("first", "second"):
        (tmp_path / place).mkdir()
        (tmp_path / place / "tool").write_text(f"#!/bin/sh\necho {place}\n")
        (tmp_path / place / "tool").chmod(0o755)
    monkeypatch.chdir(tmp_path / "first")
    here = program(["./tool"], cwd=tmp_path / "second")
    monkeypatch.setenv("PATH", str(tmp_path / "first"), prepend=":")
    found = program(["tool"])
    monkeypatch.setenv("PATH", str(tmp_path / "second"), prepend=":")
    assert (await here(Task()), await found(Task())) == ("first", "first")


@pytest.mark.rule("async.processes")
async def test_a_failed_program_is_a_failed_task(rt: Runtime):
    rt.add(Card("linter"), program(["sh", "-c", "cat; echo 'line 3: oh' >&2; test $0 = good", "bad"]))
    rt.add(Card("cat"), program(["cat"]))
    assert await rt.run("cat", "said") == "said"
    with pytest.raises(Failed, match="'linter' failed: ProgramFailed: 'sh' ended with exit code 1: line 3: oh"):
        await rt.run("linter", "x")


@pytest.mark.rule("async.processes")
async def test_cancelling_a_run_ends_its_programs(rt: Runtime, sign: Path):
    rt.add(Card("worker"), program(python(STUBBORN, str(sign)), grace=0.05))
    ends: list[Outcome] = []

    async def start() -> None:
        ends.append(await rt.outcome("worker", "go"))

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(start)
        group = int(await written(sign))
        await rt.workspace.tasks.cancel((await rt.workspace.journal.history())[0].run, "changed my mind")
    assert [end.state for end in ends] == ["cancelled"]
    with pytest.raises(Cancelled, match="changed my mind"):
        ends[0].unwrap()
    assert running(group) == []  # pyright: ignore[reportPossiblyUnboundVariable]
    assert rt.running() == 0


@pytest.mark.rule("async.processes")
async def test_a_program_whose_time_is_up_is_ended(rt: Runtime, clock: FakeClock, sign: Path):
    word = str(sign)
    rt.add(Card("worker"), program(python(STUBBORN, str(sign)), env={"MARK": word}, grace=0.05))

    async def run() -> None:
        with pytest.raises(TimedOut):
            await rt.run("worker", "go", timeout=5)

    async with anyio.create_task_group() as group:
        group.start_soon(run)
        await written(sign)
        clock.advance(5)
    assert marked(word) == []
