"""A program that is stopped leaves no process behind, whatever sessions it opened and however remit ended."""

import logging
import marshal
import os
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

import anyio
import anyio.lowlevel
import pytest

import programs
from adapters.processes import Roll, python, roll_at, table, text_of
from remit import Card, Runtime
from remit.adapters import reaper
from remit.adapters.mcp_tools import MCPServer
from remit.adapters.process import Finished, ReaperLost, program, run_process
from remit.adapters.program_tools import program_tool

pytestmark = [pytest.mark.anyio, pytest.mark.rule("program.nobody-left")]

# What programs do. Each signs the roll, which is the last argument, once all its processes are there.
SESSION = 'exec 9>"$0"; setsid sh -c "echo in >&9; sleep 1000" & sleep 1000'
DAEMON = 'exec 9>"$0"; (setsid sh -c "setsid sleep 1000 & echo in >&9" &) & sleep 1000'
DEAF = """exec 9>"$0"; setsid sh -c "trap '' TERM HUP INT; echo in >&9; while :; do sleep 1000; done" & sleep 1000"""
STOPPED = 'exec 9>"$0"; setsid sh -c "echo in >&9; kill -STOP \\$\\$; sleep 1000" & sleep 1000'
RESTARTED = 'exec 9>"$0"; echo in >&9; trap "" TERM; while :; do setsid sleep 1000; done'
COMET = """if True:
    import os, signal, sys
    roll = os.open(sys.argv[1], os.O_WRONLY)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    os.write(roll, b"in\\n")
    while True:  # each one starts the next, in a session of its own, and is gone
        if os.fork():
            os._exit(0)
        os.setsid()
"""
# A reaper that is not root. Our Python may be where nobody else can read it, so everything is imported before.
NOBODY = """if True:
    import ctypes, marshal, os, select, sys, time
    code = compile(open(sys.argv.pop(1)).read(), "reaper", "exec")
    os.setresuid(65_534, 65_534, 65_534)
    exec(code, {"__name__": "__main__"})
"""
WAYS = {
    "session": ["sh", "-c", SESSION],
    "daemon": ["sh", "-c", DAEMON],
    "deaf": ["sh", "-c", DEAF],
    "stopped": ["sh", "-c", STOPPED],
    "restarted": ["sh", "-c", RESTARTED],
    "comet": python(COMET),
}


@pytest.fixture
def roll(tmp_path: Path) -> Iterator[Roll]:
    with roll_at(tmp_path / "roll") as roll:
        yield roll


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A folder that every user can enter, which one of the tests' own folders is not."""
    with TemporaryDirectory() as name:
        Path(name).chmod(0o755)
        yield Path(name)


@pytest.mark.parametrize("way", WAYS)
async def test_cancelling_ends_every_process_of_a_program(way: str, roll: Roll):
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(partial(run_process, [*WAYS[way], str(roll.path)], grace=0.2))
        await roll.signed()
        tasks.cancel_scope.cancel()
    assert roll.over()


@pytest.mark.parametrize("way", WAYS)
async def test_killing_remit_ends_every_process_of_its_programs(way: str, roll: Roll):
    code = f"import anyio\nfrom remit.adapters.process import run_process\nargv = {[*WAYS[way], str(roll.path)]!r}\n"
    with programs.running("-c", f"{code}anyio.run(lambda: run_process(argv, grace=0.2))") as remit:
        await roll.signed()
        remit.kill()
        await roll.ended()


@pytest.mark.parametrize("streams", ["", ">/dev/null 2>&1 </dev/null"])
async def test_a_program_that_ends_leaves_no_daemon_behind(streams: str, roll: Roll):
    code = f'exec 9>"$0"; setsid sh -c "setsid sleep 1000 {streams} & echo in >&9; sleep 1000" {streams} & read x <$1'
    gate = roll.path.with_name("gate")
    os.mkfifo(gate)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(partial(run_process, ["sh", "-c", code, str(roll.path), str(gate)]))
        await roll.signed()
        gate.write_text("end\n")
    assert roll.over()


@pytest.mark.parametrize("name", ["agent", "user"])
async def test_agents_and_tools_that_are_programs_are_ended_with_their_task(name: str, rt: Runtime, roll: Roll):
    argv = [*WAYS["session"], str(roll.path)]
    tool = program_tool("shell", argv, "Run a shell.", [])

    async def by_tool(turn: object) -> object:
        return await tool.call({})

    rt.add(Card("agent"), program(argv))
    rt.add(Card("user"), by_tool)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(rt.outcome, name, "go")
        await roll.signed()
        await rt.workspace.tasks.cancel((await rt.workspace.journal.history())[-1].run, "enough")
    assert roll.over()


async def test_a_server_over_pipes_is_ended_with_its_daemons(roll: Roll):
    server = MCPServer("evil", [*WAYS["daemon"], str(roll.path)], allow=["x"], grace=0.2)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(server.tools)
        await roll.signed()
        tasks.cancel_scope.cancel()
    await server.close()
    assert roll.over()


# -- as if remit had run the program itself --------------------------------------------------------------------


@pytest.mark.parametrize("code", [0, 1, 7, 126, 127, 255])
async def test_an_exit_code_is_handed_on(code: int):
    assert await run_process(["sh", "-c", f"exit {code}"]) == Finished(code, b"", b"", cut=False)


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGSEGV, signal.SIGPIPE, signal.SIGUSR1])
async def test_a_death_by_signal_is_handed_on(number: signal.Signals):
    assert (await run_process(["sh", "-c", f"kill -{number} $$; sleep 1000"])).code == -number


async def test_a_program_has_its_streams_and_nothing_of_ours(tmp_path: Path):
    code = "import os; print(sorted(os.listdir('/proc/self/fd'), key=int)); print(os.getsid(0) == os.getpid())"
    done = await run_process(python(code))
    assert done.out.decode().splitlines() == ["['0', '1', '2', '3']", "True"]  # 3 is the folder that it lists


async def test_a_program_that_closes_a_stream_is_seen_to():
    async with anyio.create_task_group() as tasks:
        server = MCPServer("mute", ["sh", "-c", "exec >&-; sleep 1000"], allow=["x"], grace=0.1)
        with anyio.fail_after(30), pytest.raises(Exception, match="mute"):
            await server.tools()
        await server.close()
        tasks.cancel_scope.cancel()


@pytest.mark.parametrize("ignored", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
async def test_signals_are_as_remit_has_them(ignored: signal.Signals):
    show = "grep -E '^Sig(Ign|Blk)' /proc/self/status"
    before = signal.signal(ignored, signal.SIG_IGN)
    try:
        done = await run_process(["sh", "-c", show])
        bare = await anyio.run_process(["sh", "-c", show], start_new_session=True)
    finally:
        signal.signal(ignored, before)
    assert done.out == bare.stdout


async def test_a_script_that_signals_its_own_group_ends_itself_alone():
    done = await run_process(["sh", "-c", "trap 'exit 3' USR1; sleep 1000 & kill -USR1 0; wait"])
    assert done.code == 3
    assert (await run_process(["sh", "-c", "kill -9 0"])).code == -9


# -- politely -------------------------------------------------------------------------------------------------


async def test_each_process_is_asked_once_and_may_run_others_to_tidy_up(roll: Roll, tmp_path: Path):
    code = f"""if True:
        import os, signal, subprocess, sys
        def tidy(*_):
            asked.append(1)
            subprocess.run(["sh", "-c", "sleep 0.2; echo tidy >>{tmp_path}/end"], check=True)
            with open("{tmp_path}/end", "a") as end:
                print(len(asked), file=end)
            sys.exit()
        asked = []
        signal.signal(signal.SIGTERM, tidy)
        roll = open(sys.argv[1], "w")
        print("in", file=roll, flush=True)
        signal.pause()
    """
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(partial(run_process, python(code, str(roll.path)), grace=30))
        await roll.signed()
        tasks.cancel_scope.cancel()
    assert (tmp_path / "end").read_text().split() == ["tidy", "1"]


async def test_a_signal_to_the_reaper_ends_the_program_politely(roll: Roll):
    found: list[Finished] = []

    async def run() -> None:
        code = 'exec 9>"$0"; trap "exit 5" TERM; echo in >&9; while :; do sleep 0.01; done'
        found.append(await run_process(["sh", "-c", code, str(roll.path)]))

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(run)
        await roll.signed()
        os.kill(reapers()[0], signal.SIGTERM)
    assert [done.code for done in found] == [5]


# -- the reaper itself ----------------------------------------------------------------------------------------


async def test_a_killed_reaper_takes_its_program_along_and_is_told(roll: Roll, caplog: pytest.LogCaptureFixture):
    async def run() -> None:
        with pytest.raises(ReaperLost, match="the process that watched over 'sh' was killed, so 'sh' was killed too"):
            await run_process(["sh", "-c", 'exec 9>"$0"; sleep 1000 & echo in >&9; wait', str(roll.path)])

    with caplog.at_level(logging.WARNING, "remit"):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(run)
            await roll.signed()
            os.kill(reapers()[0], signal.SIGKILL)
    await roll.ended()
    assert "may still run" in caplog.text


async def test_a_reaper_that_is_killed_before_it_begins_has_started_nothing(sign: Path):
    async def run() -> None:
        with pytest.raises(ReaperLost, match="'touch' was not started: the process that .* was killed"):
            await run_process(["touch", str(sign), *["x" * 100_000] * 15])

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(run)
        while not (found := reapers()):
            await anyio.lowlevel.checkpoint()
        os.kill(found[0], signal.SIGKILL)
    assert text_of(sign) is None


async def test_a_reaper_ends_with_its_program():
    await run_process(["true"])
    assert reapers() == []


async def test_a_fork_of_remit_does_not_keep_its_programs_alive(roll: Roll):
    """A program of the owner that forks workers, and is killed: its forks live on, its programs do not."""
    code = f"""if True:
        import anyio, os, signal
        from remit.adapters.process import run_process
        async def main():
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(run_process, {[*WAYS["session"], str(roll.path)]!r})
                await anyio.wait_readable(0)
                fork = os.fork() or signal.pause()
                print(fork, flush=True)
                await anyio.sleep_forever()
        anyio.run(main)
    """
    with programs.running("-c", code) as remit:
        await roll.signed()
        assert remit.stdin is not None
        remit.stdin.write("now\n")
        remit.stdin.flush()
        fork = int(await anyio.to_thread.run_sync(remit.stdout.readline))
        try:
            remit.kill()
            await roll.ended()
            os.kill(fork, 0)
        finally:
            os.kill(fork, signal.SIGKILL)


async def test_a_reaper_without_remit_ends_by_itself():
    with wired() as (wire, process):
        wire.close()
        assert await anyio.to_thread.run_sync(process.wait) == 0


async def test_elsewhere_than_on_linux_the_group_is_ended(roll: Roll):
    code = 'exec 9>"$0"; trap "" TERM; sleep 1000 & echo in >&9; wait'
    with wired() as (wire, process):
        order(wire, ["sh", "-c", code, str(roll.path)], linux=False)
        assert wire.recv(100).split()[0] == b"started"
        await roll.signed()
        wire.send(reaper.ASK)
        assert await anyio.to_thread.run_sync(process.wait) == 0
        assert wire.recv(100) == b"ended -9\n"
    await roll.ended()


@pytest.mark.skipif(os.geteuid() != 0, reason="makes a program that becomes another user")
async def test_a_process_of_another_user_is_told_of_and_not_waited_for(open_folder: Path):
    become = open_folder / "become"
    shutil.copy(shutil.which("setpriv") or "setpriv", become)
    become.chmod(0o4755)
    with roll_at(open_folder / "roll") as roll, wired("-c", NOBODY) as (wire, process):
        roll.path.chmod(0o666)
        code = f'exec 9>"$0"; {become} --reuid 0 sh -c "echo \\$\\$ >&9; exec sleep 1000" & wait'
        order(wire, ["sh", "-c", code, str(roll.path)])
        other = int(await roll.signed())
        wire.send(reaper.KILL)
        assert await anyio.to_thread.run_sync(process.wait) == 0
        assert wire.recv(100).splitlines()[1:] == [f"left {other}".encode(), b"ended -9"]
        os.kill(other, signal.SIGKILL)
        await roll.ended()


def reapers() -> list[int]:
    """The reapers that this process has started."""
    ours = [pid for pid, fields in table() if int(fields[1]) == os.getpid() and fields[0] not in "ZX"]
    return [pid for pid in ours if reaper.__file__.encode() in Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")]


@contextmanager
def wired(*how: str) -> Generator[tuple[socket.socket, "subprocess.Popen[bytes]"]]:
    """A reaper and our end of its socket."""
    ours, theirs = socket.socketpair()
    with ours, theirs:
        argv = [sys.executable, "-I", "-S", *how, reaper.__file__, str(theirs.fileno())]
        process = subprocess.Popen(argv, pass_fds=(theirs.fileno(),), start_new_session=True)
        theirs.close()
        yield ours, process
    process.wait()


def order(wire: socket.socket, argv: list[str], *, linux: bool = True) -> None:
    words = [part.encode() for part in argv]
    data = marshal.dumps((words, {b"PATH": os.environ["PATH"].encode()}, 0.2, linux))
    wire.sendall(len(data).to_bytes(reaper.PREFIX, "big") + data)
