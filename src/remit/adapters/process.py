"""Programs as agents: started from a list and never by a shell, in a process group that does not outlive the turn.

    rt.add(Card("linter"), program(["ruff", "check", "-"]))

Whoever waits may stop waiting at any moment; the group is gone before the cancellation goes on.
A process that makes itself a group of its own has left on purpose and is out of reach.
"""

import asyncio
import errno
import os
import shutil
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from functools import partial
from pathlib import Path
from signal import SIGKILL, SIGTERM
from typing import Any, Final, Literal, NamedTuple, Protocol

import anyio
from anyio.lowlevel import checkpoint_if_cancelled

from remit.core.text import NAME_LIMIT, TASK_LIMIT, plain, shown
from remit.errors import BadInput

LIMIT: Final = 1_048_576  # bytes of each stream
GRACE: Final = 5.0  # seconds between asking to end and ending

_INHERITED: Final = frozenset({"PATH", "HOME", "LANG", "TMPDIR", "TZ"})  # and LC_*; keys and tokens stay with us
_CALLER: Final = frozenset({errno.ENOENT, errno.ENOTDIR, errno.EACCES, errno.EPERM, errno.ENOEXEC, errno.E2BIG})
_DRAIN: Final = 0.5  # seconds for pipes that someone outside the group keeps open; what the group wrote is in them
_LAST_LINES, _LAST_CHARACTERS = 5, 1_000


class HasTask(Protocol):
    """As much of a turn as a program needs."""

    @property
    def task(self) -> str: ...
    def outside(self, what: str, text: str = "") -> None: ...


class Finished(NamedTuple):
    """How a program ended; a negative code is the signal that ended it.

    Of stdout the beginning is kept, of stderr the end, where programs say what went wrong. `cut` says that there
    was more than was kept of one of them.
    """

    code: int
    out: bytes
    err: bytes
    cut: bool


class ProgramFailed(RuntimeError):
    """A program ended with another exit code than 0; `code` is negative for a signal."""

    def __init__(self, sentence: str, *, code: int) -> None:
        super().__init__(sentence)
        self.code = code

    def __reduce__(self) -> tuple[object, ...]:
        return partial(type(self), code=self.code), self.args


def program(
    argv: Sequence[str],
    *,
    task_as: Literal["stdin", "argument"] = "stdin",
    env: Mapping[str, str] | None = None,
    cwd: str | os.PathLike[str] | None = None,
    limit: int = LIMIT,
    grace: float = GRACE,
) -> Callable[[HasTask], Awaitable[str]]:
    """Make an agent that gives its task to a program and answers with what the program prints. What a program prints
    comes from outside, unless the agent's card vouches for it.

    The task goes to stdin, or becomes the last argument. End `argv` with "--" in that case if the program takes
    options: remit hands the task over unread, and the program would read "-o" as an option.
    """
    command = located(argv, env)
    if task_as not in ("stdin", "argument"):
        raise BadInput(f"task_as is 'stdin' or 'argument', not {shown(task_as)}")
    name = Path(argv[0]).name
    run = partial(run_process, env=env, cwd=cwd, limit=limit, grace=grace)

    async def answer(turn: HasTask) -> str:
        task = plain(turn.task, "a task", TASK_LIMIT)
        done = await (run(command, text=task) if task_as == "stdin" else run([*command, task]))
        said = last_words(done.err) if done.code else printed(done, limit)
        turn.outside(f"output of {name}"[:NAME_LIMIT], said.replace("\0", "\ufffd"))
        if done.code:
            raise ProgramFailed(f"{ending(name, done)}{f': {said}' if said else ' and said nothing'}", code=done.code)
        return said

    return answer


def located(argv: Sequence[str], env: Mapping[str, str] | None = None) -> list[str]:
    """Find the program of a command once, when the owner says it: what the path or the directory is later cannot put
    another in its place."""
    name, *rest = _command(argv)
    found = shutil.which(name, path=(env or {}).get("PATH"))
    if found is None:
        raise BadInput(f"there is no program {shown(name)} here that can be run; install it or give its full path")
    return [str(Path(found).absolute()), *rest]


def printed(done: Finished, limit: int) -> str:
    """Give what a program printed as text, and say so if there was more."""
    text = done.out.decode(errors="replace").removesuffix("\n")
    return f"{text}\n[cut after {limit:,} bytes]" if done.cut and len(done.out) == limit else text


def ending(name: str, done: Finished) -> str:
    """Say how a program ended that failed."""
    return (
        f"'{name}' ended with exit code {done.code}" if done.code > 0 else f"'{name}' was ended by signal {-done.code}"
    )


def last_words(err: bytes) -> str:
    """Give the end of what a program said on stderr."""
    lines = err.decode(errors="replace").strip().splitlines()[-_LAST_LINES:]
    return "\n".join(lines)[-_LAST_CHARACTERS:]


async def run_process(
    argv: Sequence[str],
    *,
    text: str = "",
    env: Mapping[str, str] | None = None,
    cwd: str | os.PathLike[str] | None = None,
    limit: int = LIMIT,
    grace: float = GRACE,
) -> Finished:
    """Run a program with `text` on its stdin and wait until it and everyone in its process group is gone.

    Of our environment it gets PATH, HOME, LANG, LC_*, TMPDIR and TZ, and what `env` gives besides.
    When the caller is cancelled, or the program ends and leaves others behind, the group is asked to end (SIGTERM),
    and after `grace` seconds it is ended (SIGKILL).
    """
    command, data = _command(argv), text.encode()
    await checkpoint_if_cancelled()
    child = Child(command, limit, grace)
    # The process belongs to a task that the caller's cancellation does not reach, not even while it is being started:
    # asyncio's own answer to that is to kill the leader alone.
    owner = asyncio.create_task(child.live(data, env, cwd))
    try:
        await asyncio.wait([owner])
    finally:
        child.over.set()
        with anyio.CancelScope(shield=True):
            while not owner.done():
                with suppress(asyncio.CancelledError):  # asyncio's cancel() knows no shield; one is under way already
                    await asyncio.wait([owner])
    return owner.result()


def _command(argv: Sequence[str]) -> list[str]:
    if isinstance(argv, str | bytes) or not argv:
        raise BadInput(f"a program is given as a list, its name first and then its arguments, not {shown(argv)}")
    return [plain(part, "an argument", TASK_LIMIT, empty=True) for part in argv]


def _environment(given: Mapping[str, str] | None) -> dict[str, str]:
    ours = {name: value for name, value in os.environ.items() if name in _INHERITED or name.startswith("LC_")}
    return {**ours, **(given or {})}


class Child(asyncio.SubprocessProtocol):
    """One process, what it prints, and its end: whoever lets it live does so in a task that nobody else cancels.

    A protocol of our own, because asyncio's Process.wait() waits for the pipes too, and whoever the leader leaves
    behind holds them open.
    """

    def __init__(self, command: list[str], limit: int, grace: float) -> None:
        self.over = asyncio.Event()  # the leader has ended, or nobody waits for it any more
        self.exited = asyncio.Event()
        self._closed = asyncio.Event()
        self._command = command
        self._limit = limit
        self._grace = grace
        self._kept = {1: bytearray(), 2: bytearray()}
        self._cut = False

    async def live(self, data: bytes, env: Mapping[str, str] | None, cwd: str | os.PathLike[str] | None) -> Finished:
        async with self.living(env, cwd) as transport:
            stdin = transport.get_pipe_transport(0)
            stdin.write(data)
            stdin.write_eof()
            await self.over.wait()
        return Finished(transport.get_returncode(), bytes(self._kept[1]), self.err, self._cut)

    @asynccontextmanager
    async def living(self, env: Mapping[str, str] | None, cwd: str | os.PathLike[str] | None) -> AsyncGenerator[Any]:
        """Run the program while the body runs, and give its transport; then end every process of its group."""
        transport = await self._started(_environment(env), cwd)
        try:
            yield transport
        finally:
            with anyio.CancelScope(shield=True):
                await self._end(transport)

    async def _started(self, env: dict[str, str], cwd: str | os.PathLike[str] | None) -> Any:
        start = partial(asyncio.get_running_loop().subprocess_exec, lambda: self, *self._command)
        starting = asyncio.ensure_future(start(env=env, cwd=cwd, start_new_session=True))
        try:
            with anyio.CancelScope(shield=True):  # asyncio's own answer to a cancellation is to kill the leader alone
                await asyncio.wait([starting])
        except asyncio.CancelledError:
            await self._not_started(starting)
            raise
        try:
            return starting.result()[0]
        except OSError as error:
            if error.errno not in _CALLER:
                raise
            why = f"{error.strerror}: {shown(str(error.filename), 200)}"
            raise BadInput(f"{shown(self._command[0])} cannot be started: {why}") from error

    async def _not_started(self, starting: asyncio.Future[tuple[Any, Any]]) -> None:
        """End what was being started when the loop is closed. That cancels asyncio's own tasks too, and then asyncio
        waits for pipes that nobody connects any more: it has killed the leader, and is not waited for."""
        for _ in range(2):
            await asyncio.wait([starting], timeout=_DRAIN)
            if starting.done():
                break
            starting.cancel()
        if starting.done() and not starting.cancelled() and starting.exception() is None:
            await self._end(starting.result()[0])

    @property
    def err(self) -> bytes:
        """The end of what it has said on stderr so far."""
        return bytes(self._kept[2])

    async def _end(self, transport: Any) -> None:
        group: int = transport.get_pid()  # it leads a session of its own, so its pid is the group's id
        try:
            await _clear(group, self._grace)
            await self.exited.wait()
            with anyio.move_on_after(_DRAIN):
                await self._closed.wait()
        except BaseException:  # the loop itself is being closed: there is no time left to be polite
            _signal(group, SIGKILL)
            raise
        finally:
            stdin = transport.get_pipe_transport(0)
            if stdin.get_write_buffer_size():  # close() would wait until someone reads it
                stdin.abort()
            transport.close()
        await self._closed.wait()

    # -- what asyncio calls -----------------------------------------------------------------------------

    def pipe_data_received(self, fd: int, data: bytes) -> None:
        kept = self._kept[fd]
        kept += data
        if (more := len(kept) - self._limit) > 0:
            self._cut = True
            del kept[slice(self._limit, None) if fd == 1 else slice(more)]

    def process_exited(self) -> None:
        self.exited.set()
        self.over.set()

    def connection_lost(self, exc: Exception | None) -> None:
        self._closed.set()


async def _clear(group: int, grace: float) -> None:
    """End everyone in the group and wait until they are gone."""
    for number, patience in ((SIGTERM, grace), (SIGKILL, None)):
        if not _alive(group):
            return
        _signal(group, number)
        with anyio.move_on_after(patience):
            pause = 0.005
            while _alive(group):  # they are not our children: there is nothing to wait on, one can only look
                await anyio.sleep(pause)
                pause = min(2 * pause, 0.1)


def _alive(group: int) -> bool:
    """Whether someone in the group still runs.

    The dead whom nobody has collected do not count. In a container whose first process collects nobody they stay.
    """
    if not _signal(group, 0):
        return False
    states = [state for path in Path("/proc").glob("[0-9]*/stat") for state in _state(path, group)]
    return not states or any(state not in "ZX" for state in states)  # none: a system without /proc


def _state(path: Path, group: int) -> list[str]:
    try:
        fields = path.read_text(errors="replace").rpartition(")")[2].split()
    except OSError:  # it has gone since
        return []
    return [fields[0]] if int(fields[2]) == group else []


def _signal(group: int, number: int) -> bool:
    """Whether there was someone to get it. Whoever runs under another user's name is not ours to end."""
    try:
        os.killpg(group, number)
    except (ProcessLookupError, PermissionError):
        return False
    return True
