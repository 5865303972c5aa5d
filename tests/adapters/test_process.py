"""Processes: what they get, what comes back, and that none of them is left behind."""

import asyncio
import gc
import os
import signal
import threading
from functools import partial
from pathlib import Path

import anyio
import pytest

from adapters.processes import STUBBORN, marked, open_files, python, running, table, text_of, written
from deep import some
from engine.helping import a_few_rounds
from remit.adapters.process import Finished, program, run_process
from remit.errors import BadInput

pytestmark = pytest.mark.anyio


async def test_a_program_runs_and_its_streams_come_back():
    code = "import sys; print('out'); print('err', file=sys.stderr); sys.exit(3)"
    assert await run_process(python(code)) == Finished(3, b"out\n", b"err\n", cut=False)


@pytest.mark.parametrize("size", [0, 5, 1_000_000])
async def test_text_arrives_on_stdin(size: int):
    done = await run_process(python("import sys; sys.stdout.write(sys.stdin.read())"), text="é" * size, limit=3_000_000)
    assert done == Finished(0, "é".encode() * size, b"", cut=False)


async def test_a_program_that_does_not_read_its_stdin_is_no_error():
    assert await run_process(["true"], text="x" * 1_000_000) == Finished(0, b"", b"", cut=False)


@pytest.mark.rule("async.processes")
async def test_what_is_beyond_the_limit_is_read_thrown_away_and_said():
    code = "import os; [os.write(fd, b'a' * 50_000 + b'z' * 950_000 + b'!') for fd in (1, 2)]"
    done = await run_process(python(code), limit=60_000)
    assert done.cut
    assert done.out == b"a" * 50_000 + b"z" * 10_000  # the beginning
    assert done.err == b"z" * 59_999 + b"!"  # the end


@pytest.mark.parametrize(("limit", "cut"), [(0, True), (4, True), (5, False), (6, False)])
async def test_the_limit_itself_is_allowed(limit: int, cut: bool):
    done = await run_process(python("print('12345', end='')"), limit=limit)
    assert done == Finished(0, b"12345"[:limit], b"", cut)


@pytest.mark.rule("async.processes")
async def test_only_what_is_on_the_list_reaches_the_environment(monkeypatch: pytest.MonkeyPatch):
    for name in [name for name in os.environ if name.startswith("LC_")]:
        monkeypatch.delenv(name)
    for name in ("CANARY", "ANTHROPIC_API_KEY", "AWS_SECRET_ACCESS_KEY", "PYTHONPATH", "PATHS", "XLC_ALL"):
        monkeypatch.setenv(name, "canary")
    passed = ("HOME", "LANG", "LC_TIME", "TMPDIR")
    for name in (*passed, "TZ"):
        monkeypatch.setenv(name, "/passed")
    done = await run_process(["env"], env={"GIVEN": "yes", "TZ": "UTC"})
    got = dict(line.split("=", 1) for line in done.out.decode().splitlines())
    assert got == {"PATH": os.environ["PATH"], **dict.fromkeys(passed, "/passed"), "TZ": "UTC", "GIVEN": "yes"}


async def test_it_runs_where_it_is_told(tmp_path: Path):
    done = await run_process(["pwd", "-P"], cwd=tmp_path)
    assert done.out.decode().strip() == str(tmp_path)


async def test_none_of_our_open_files_reach_it(tmp_path: Path):
    with (tmp_path / "open").open("w") as file:
        os.set_inheritable(file.fileno(), True)
        done = await run_process(python("import os, sys; os.fstat(int(sys.argv[1]))", str(file.fileno())))
    assert b"Bad file descriptor" in done.err


@pytest.mark.parametrize("bad", ["ls -l", b"ls", [], (), ["ls", 7], ["ls", "a\0b"], ["ls", "\ud800"], None])
async def test_a_command_that_is_none_is_a_clear_error(bad):
    with pytest.raises(BadInput):
        await run_process(bad)
    with pytest.raises(BadInput):
        program(bad)


@pytest.mark.rule("async.processes")
async def test_what_cannot_be_started_says_why(tmp_path: Path):
    (tmp_path / "notes").write_text("#!/bin/sh\n")
    with pytest.raises(BadInput, match="'no-such-program' cannot be started: No such file"):
        await run_process(["no-such-program"])
    with pytest.raises(BadInput, match="cannot be started: Permission denied"):
        await run_process([str(tmp_path / "notes")])
    with pytest.raises(BadInput, match="cannot be started: No such file.*nowhere"):
        await run_process(["true"], cwd=tmp_path / "nowhere")
    with pytest.raises(BadInput, match="cannot be started: Argument list too long"):
        await run_process(["true", *["x" * 1_000_000] * 8])


def test_looking_for_processes_finds_them():
    assert os.getpid() in running(os.getpgrp())
    assert os.getpid() in marked("PATH=")


@pytest.mark.rule("async.processes")
async def test_cancelling_ends_a_child_that_will_not_and_its_child(sign: Path):
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(partial(run_process, python(STUBBORN, str(sign)), grace=0.05))
        group = int(await written(sign))
        assert group != os.getpgrp()
        assert len(running(group)) == 2
        tasks.cancel_scope.cancel()
    assert running(group) == []  # pyright: ignore[reportPossiblyUnboundVariable]


@pytest.mark.rule("async.processes")
async def test_who_ends_when_asked_is_asked_first(sign: Path, tmp_path: Path):
    code = """if True:
        import os, pathlib, signal, sys
        def tidy(*_):
            pathlib.Path(sys.argv[2]).write_text("tidied up")
            sys.exit(0)
        signal.signal(signal.SIGTERM, tidy)
        pathlib.Path(sys.argv[1] + ".draft").write_text("ready")
        os.rename(sys.argv[1] + ".draft", sys.argv[1])
        signal.pause()
    """
    with anyio.fail_after(30):  # far less than the grace it is given
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(partial(run_process, python(code, str(sign), str(tmp_path / "end")), grace=1_000))
            await written(sign)
            tasks.cancel_scope.cancel()
    assert (tmp_path / "end").read_text() == "tidied up"


@pytest.mark.rule("async.processes")
@pytest.mark.parametrize("deaf", [False, True])
@pytest.mark.parametrize("streams", ["", ">/dev/null 2>&1 </dev/null"])
async def test_a_leader_that_ends_leaves_nobody_behind(deaf: bool, streams: str):
    trap = "trap '' TERM; " if deaf else ""
    done = await run_process(["sh", "-c", f"{trap}sleep 1000 {streams} & echo $$; exit 4"], grace=0.2)
    assert done.code == 4
    assert running(int(done.out)) == []


async def test_what_those_left_behind_still_say_is_heard(sign: Path):
    left = f"(trap 'echo last words; exit' TERM; : >{sign}; while :; do sleep 0.01; done) &"
    assert (await run_process(["sh", "-c", f"{left} until [ -e {sign} ]; do :; done"])).out == b"last words\n"


@pytest.mark.rule("async.processes")
@pytest.mark.parametrize("times", [1, 5])
async def test_the_cancellation_of_asyncio_waits_for_the_end_too(sign: Path, times: int):
    task = asyncio.create_task(run_process(python(STUBBORN, str(sign)), grace=0.2))
    group = int(await written(sign))
    for _ in range(times):
        task.cancel()
        await a_few_rounds()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert running(group) == []


def test_closing_the_loop_leaves_nobody_behind(sign: Path):
    async def main() -> int:
        task = asyncio.create_task(run_process(python(STUBBORN, str(sign)), grace=0.05))
        group = int(await written(sign))
        assert not task.done()
        return group  # asyncio.run cancels whatever is left

    assert running(asyncio.run(main())) == []


@pytest.mark.rule("async.processes")
# asyncio leaves pipes to the collector that it opened, and processes whose end it cannot tell to a closed loop.
@pytest.mark.filterwarnings("ignore:unclosed:ResourceWarning", "ignore:subprocess .* is still running:ResourceWarning")
@pytest.mark.parametrize("steps", some(range(8), 3))
def test_closing_the_loop_at_any_moment_of_the_start_leaves_nobody_behind(steps: int, tmp_path: Path):
    async def main() -> None:
        task = asyncio.create_task(run_process(["sleep", "1000"], env={"MARK": str(tmp_path)}))
        for _ in range(steps):
            await asyncio.sleep(0)
        assert not task.done()

    before = set(threading.enumerate())
    asyncio.run(main())
    for thread in set(threading.enumerate()) - before:  # not those of other tests
        if thread.name.startswith("asyncio-waitpid"):  # it has the process until its end
            thread.join(30)
    gc.collect()
    assert marked(str(tmp_path)) == []


def test_cancelling_everything_again_and_again_leaves_no_time_for_grace(sign: Path):
    async def main() -> None:
        task = asyncio.create_task(run_process(python(STUBBORN, str(sign)), grace=1_000))
        group = int(await written(sign))
        for _ in range(2):
            for one in asyncio.all_tasks() - {asyncio.current_task()}:
                one.cancel()
            await a_few_rounds()
        await asyncio.wait([task])
        assert task.cancelled()
        with anyio.fail_after(30):
            while running(group) or group in dict(table()):  # noqa: ASYNC110 - nobody was given the time to wait
                await anyio.sleep(0.005)
        await a_few_rounds()  # a thread of asyncio tells the loop that it has collected the leader

    asyncio.run(main())


@pytest.mark.rule("async.processes")
@pytest.mark.parametrize("steps", range(12))
async def test_cancelling_at_any_moment_of_the_start_leaves_nobody_behind(steps: int, tmp_path: Path):
    word = str(tmp_path)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(partial(run_process, ["sh", "-c", "sleep 1000 & sleep 1000"], env={"MARK": word}))
        for _ in range(steps):
            await asyncio.sleep(0)
        tasks.cancel_scope.cancel()
    assert marked(word) == []


async def test_who_is_cancelled_already_starts_nothing(sign: Path):
    before = signal.signal(signal.SIGTERM, signal.SIG_IGN)  # a child would be deaf too, and get its work done
    try:
        with anyio.CancelScope() as scope:
            scope.cancel()
            await run_process(["touch", str(sign)])
    finally:
        signal.signal(signal.SIGTERM, before)
    assert scope.cancelled_caught
    assert text_of(sign) is None


async def test_a_daemon_that_keeps_our_pipes_is_ended_and_what_was_said_arrives():
    code = """if True:
        import os, pathlib, subprocess, sys
        child = subprocess.Popen(["sleep", "1000"], start_new_session=True)
        print(child.pid, flush=True)
    """
    gc.collect()  # whatever other tests left to be collected is not ours
    before = open_files()
    with anyio.fail_after(30):
        done = await run_process(python(code), text="x" * 1_000_000)
    assert int(done.out) not in dict(table())
    assert done.code == 0
    gc.collect()  # a transport that was not closed would say so here, and fail the test
    assert open_files() == before
