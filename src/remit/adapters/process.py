"""Programs as agents: started from a list and never by a shell, and none of their processes outlives the turn.

    rt.add(Card("linter"), program(["ruff", "check", "-"]))

A small process, the reaper, runs between remit and each program. It ends every process that the program has started,
also those with a session of their own: when the caller is cancelled, when the program ends, and when remit is killed.
The caller may be cancelled at any moment; the processes are gone before the cancellation continues.
"""

import asyncio
import errno
import logging
import marshal
import os
import re
import shutil
import socket
import sys
import weakref
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from functools import partial
from importlib import import_module
from pathlib import Path
from signal import SIGKILL
from types import MappingProxyType
from typing import Any, Final, Literal, NamedTuple, Protocol, cast

import anyio
from anyio.lowlevel import checkpoint_if_cancelled

from remit.adapters import reaper
from remit.adapters.endpoints import KeysGiven, UrlGiven
from remit.adapters.program_files import VARIABLE, answer_with, program_folder
from remit.adapters.reaper import ASK, KILL, PREFIX
from remit.core.lifecycle import progress_line
from remit.core.prompt import ReviewNote, sent_back
from remit.core.remit import Remit
from remit.core.session import EarlierExchange, said_before
from remit.core.values import NAME_LIMIT, TASK_LIMIT, VALUE_LIMIT, encode, plain, shown
from remit.errors import BadInput, RemitError

LIMIT: Final = 1_048_576  # bytes of each stream
_KEPT: Final = VALUE_LIMIT - 100  # characters of output: the limit of a value, minus room for a note
GRACE: Final = 5.0  # seconds between SIGTERM and SIGKILL

_INHERITED: Final = frozenset({"PATH", "HOME", "LANG", "TMPDIR", "TZ"})  # and LC_*; keys and tokens are not passed on
_CALLER: Final = frozenset({errno.ENOENT, errno.ENOTDIR, errno.EACCES, errno.EPERM, errno.ENOEXEC, errno.E2BIG})
_LIBRARIES: Final = ("LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH")  # our own Python may need these to start
_DRAIN: Final = 0.5  # seconds to drain pipes that a process of another user keeps open
_AT_ONCE: Final = 2.0  # seconds for the reaper to end all processes when the loop is closed
_LAST_LINES, _LAST_CHARACTERS = 5, 1_000
_PROGRESS: Final = re.compile(r"::progress(?: (0(?:\.[0-9]{1,6})?|1(?:\.0{1,6})?))?::(.*)")
_LINE: Final = 1_000  # bytes of a line that are looked at
_EVERY: Final = 1.0  # seconds between two reports that are shown


_log: Final = logging.getLogger("remit")


class HasTask(Protocol):
    """The part of a turn that a program needs."""

    @property
    def remit(self) -> Remit: ...
    @property
    def handoff(self) -> Any: ...
    def mark_untrusted(self, source: str, text: str = "") -> None: ...
    def progress(self, text: str, fraction: float | None = None, *, every: float = 0) -> bool: ...
    async def talk_so_far(self) -> list[EarlierExchange]: ...


class Finished(NamedTuple):
    """How a program ended; a negative code is the signal that ended it.

    The beginning of stdout is kept, and the end of stderr, where programs report errors. `cut` says that one of them
    was longer.
    """

    code: int
    out: bytes
    err: bytes
    cut: bool


class ProgramFailed(RuntimeError):
    """A program ended with an exit code other than 0; `code` is negative for a signal."""

    def __init__(self, sentence: str, *, code: int) -> None:
        super().__init__(sentence)
        self.code = code

    def __reduce__(self) -> tuple[object, ...]:
        return partial(type(self), code=self.code), self.args


class ReaperLost(RuntimeError):
    """The process that watches a program was killed, so the program's exit code is unknown."""


def program(
    argv: Sequence[str],
    *,
    task_as: Literal["stdin", "argument"] = "stdin",
    env: Mapping[str, str] | None = None,
    cwd: str | os.PathLike[str] | None = None,
    limit: int = LIMIT,
    grace: float = GRACE,
    files: bool | os.PathLike[str] = False,
    gateway: bool | Sequence[str] = False,
    verbs: bool = False,
    keys: KeysGiven = (),
    base_url: UrlGiven = None,
    max_tokens: int | None = None,
) -> Callable[[HasTask], Awaitable[Any]]:
    """Return an agent that passes its task to a program and returns the program's output. The output is untrusted,
    unless the agent's card declares its output trusted.

    The task goes to stdin, or becomes the last argument; its data follows the text as JSON. If the run remembers its
    session, the earlier conversation follows the task; so does a result that a person sent back, with the reason. With
    `task_as="argument"`, end `argv` with "--" if the program takes options: remit passes the task on unread, and the
    program would read "-o" as an option.

    With `files`, the program gets a private folder, in the given one or in the system's temporary folder, and finds its
    path in the variable REMIT_FILES: `in/` has the files that its agent was given, `index.json` lists them, and what it
    leaves in `out/` is saved as artifacts if it ends with 0. Their references follow its output; if it prints nothing,
    they are the result.

    With `gateway`, the program asks models through remit: under the budget and the bounds of its task, recorded, and
    without a provider's key. It finds the address and its token in ANTHROPIC_BASE_URL and ANTHROPIC_API_KEY, in
    OPENAI_BASE_URL and OPENAI_API_KEY, and in GOOGLE_GEMINI_BASE_URL and GEMINI_API_KEY. `gateway` are the models that
    it may ask, or True for any; `keys` and `base_url` are those of `rt.model_agent`, and `max_tokens` limits each
    answer. With `verbs`, it reaches the verbs of its turn over MCP, at the address in REMIT_MCP with the token in
    REMIT_TOKEN. The token is worthless once the turn is over.

    A line on stderr such as `::progress 0.3:: 3 of 10 files`, or `::progress:: 3 of 10 files`, reports how far it is;
    one a second is shown.

    `env` are variables in addition to PATH, HOME, LANG, LC_*, TMPDIR and TZ, and `cwd` is the folder that the program
    starts in. remit keeps `limit` bytes of each of its output streams. When the turn is cancelled, the program has
    `grace` seconds between SIGTERM and SIGKILL.
    """
    command = located(argv, env)
    if task_as not in ("stdin", "argument"):
        raise BadInput(f"task_as is 'stdin' or 'argument', not {shown(task_as)}")
    if not isinstance(cast("object", files), bool | os.PathLike):
        raise BadInput(f"files is True, or a pathlib.Path of the folder for its files, not {shown(files)}")
    models = {"keys": keys or None, "base_url": base_url, "max_tokens": max_tokens}
    joins = _gateway(gateway, verbs, {name: value for name, value in models.items() if value is not None})
    run = partial(run_process, cwd=cwd, limit=limit, grace=grace)
    return ProgramAgent(command, run, env or {}, limit, task_as == "stdin", files, joins)


class ProgramAgent:
    """An agent that is a program. `joins` is how it reaches models and agents, or None. `polices_tools` says whether
    remit sees which tools it offers its model."""

    approves_tools = False
    outside = ("a program", "a program", "in the program")

    def __init__(
        self,
        command: list[str],
        run: Callable[..., Awaitable[Finished]],
        env: Mapping[str, str],
        limit: int,
        on_stdin: bool,
        files: bool | os.PathLike[str],
        joins: Any,
    ) -> None:
        self._command = command
        self._name = Path(command[0]).name
        self._run = run
        self._env = env
        self._limit = limit
        self._on_stdin = on_stdin
        self._files = files
        self._joins = joins
        self.iterations: int = 0 if joins is None else joins.requests
        self.polices_tools: bool = joins is not None and joins.upstreams is not None

    async def __call__(self, turn: HasTask) -> Any:
        if self._joins is None:
            return await self._worked(turn, self._env)
        async with self._joins.joined(turn) as joined:
            try:
                return await joined.until_over(self._worked(turn, {**self._env, **joined.variables}))
            except ProgramFailed as failed:
                if not joined.refused or joined.refused in str(failed):
                    raise
                why = f"{failed}; its last model request had no answer: {joined.refused}"
                raise ProgramFailed(why, code=failed.code) from None

    async def _worked(self, turn: HasTask, env: Mapping[str, str]) -> Any:
        if self._files is False:
            return await self._output(turn, env)
        async with program_folder(None if self._files is True else os.fspath(self._files)) as folder:
            await folder.fill(cast("Any", turn))
            said = await self._output(turn, {**env, VARIABLE: str(folder.path)})
            return answer_with(said, await folder.saved(cast("Any", turn)))

    async def _output(self, turn: HasTask, env: Mapping[str, str]) -> str:
        task = await task_text(turn)
        run = partial(self._run, env=env, on_stderr=ProgressLines(turn))
        done = await (run(self._command, text=task) if self._on_stdin else run([*self._command, task]))
        said = last_words(done.err) if done.code else printed(done, self._limit)
        turn.mark_untrusted(f"output of {self._name}"[:NAME_LIMIT], said)
        if done.code:
            raise ProgramFailed(
                f"{ending(self._name, done)}{f': {said}' if said else ' and said nothing'}", code=done.code
            )
        return said


def _gateway(gateway: bool | Sequence[str], verbs: bool, models: Mapping[str, Any]) -> Any:
    """Return the program's access to models and agents through remit, or None if it has none. Raise `BadInput` if there
    are options of models without `gateway`."""
    if models and gateway is False:
        raise BadInput(f"{min(models)} is for the models that a program asks; name them: gateway=['openai:gpt-5']")
    if gateway is False and not verbs:
        return None
    return import_module("remit.adapters.gateway.joining").joining(gateway, verbs, **models)


async def task_text(turn: HasTask) -> str:
    """Return the text that a program gets: its task, the earlier conversation, and a result that was sent back."""
    task = plain(turn.remit.task, "a task", TASK_LIMIT)
    if before := await turn.talk_so_far():
        task = f"{task}\n\n{said_before(before)}"
    if (sent := turn.handoff.sent_back) is not None:
        result = sent.result if isinstance(sent.result, str) else encode(sent.result)
        task = "\n".join([task, *sent_back(ReviewNote(result, sent.why, sent.by))])
    return task


class ProgressLines:
    """Takes a program's stderr piece by piece, and reports the lines that say how far it is."""

    def __init__(self, turn: HasTask) -> None:
        self._turn = turn
        self._rest = b""

    def __call__(self, data: bytes) -> None:
        *lines, rest = (self._rest + data).split(b"\n")
        self._rest = rest[:_LINE]
        for line in lines:
            if line.startswith(b"::progress") and (found := _PROGRESS.fullmatch(_keepable(line[:_LINE]).rstrip())):
                said = progress_line(found[2])
                with suppress(RemitError):  # an empty text, or the turn is over: no one is shown a report then
                    self._turn.progress(said, None if found[1] is None else float(found[1]), every=_EVERY)


def located(argv: Sequence[str], env: Mapping[str, str] | None = None, how: str = "install it") -> list[str]:
    """Return the command with the absolute path of its program. It is looked up once, so a later change of PATH or of
    the working directory cannot replace the program. Raise `BadInput` if it is not found; `how` says what to do."""
    name, *rest = _command(argv)
    found = shutil.which(name, path=(env or {}).get("PATH"))
    if found is None:
        raise BadInput(f"there is no program {shown(name)} here that can be run; {how} or give its full path")
    return [str(Path(found).absolute()), *rest]


def printed(done: Finished, limit: int) -> str:
    """Return a program's output as storable text, with a note if it was cut."""
    text = _keepable(done.out).removesuffix("\n")
    if len(text) > _KEPT:
        return f"{text[:_KEPT]}\n[cut after {_KEPT:,} characters]"
    return f"{text}\n[cut after {limit:,} bytes]" if done.cut and len(done.out) == limit else text


def ending(name: str, done: Finished) -> str:
    """Return how a failed program ended."""
    return (
        f"'{name}' ended with exit code {done.code}" if done.code > 0 else f"'{name}' was ended by signal {-done.code}"
    )


def last_words(err: bytes) -> str:
    """Return the last 5 lines of a program's stderr, at most 1,000 characters, without its reports of progress."""
    lines = [line for line in _keepable(err).strip().splitlines() if not line.startswith("::progress")][-_LAST_LINES:]
    return "\n".join(lines)[-_LAST_CHARACTERS:]


def _keepable(said: bytes) -> str:
    """Return bytes as text that every store can hold."""
    return said.decode(errors="replace").replace("\0", "\ufffd")


async def run_process(
    argv: Sequence[str],
    *,
    text: str = "",
    env: Mapping[str, str] | None = None,
    cwd: str | os.PathLike[str] | None = None,
    limit: int = LIMIT,
    grace: float = GRACE,
    on_stdout: Callable[[bytes], None] | None = None,
    on_stderr: Callable[[bytes], None] | None = None,
    descriptors: Sequence[int] = (),
) -> Finished:
    """Run a program with `text` on its stdin and wait until it and every process that it has started are gone.

    From our environment it gets PATH, HOME, LANG, LC_*, TMPDIR and TZ, plus the variables in `env`. When the caller is
    cancelled, or the program ends and leaves processes behind, all of them get SIGTERM, and after `grace` seconds
    SIGKILL. On systems other than Linux this covers only the program's process group. `on_stdout` and `on_stderr` are
    called with each piece of its output, of which the result keeps `limit` bytes for each stream. The program inherits
    the open files of `descriptors`.

    Raise `BadInput` if the program cannot be started, and `ReaperLost` if its end is unknown.
    """
    command, data = _command(argv), text.encode()
    await checkpoint_if_cancelled()
    child = Child(command, limit, grace, {1: on_stdout, 2: on_stderr}, descriptors)
    # The process belongs to a separate task, which the caller's cancellation does not reach, not even during the
    # start: asyncio itself would kill only the leader and leave its children.
    owner = asyncio.create_task(child.live(data, env, cwd))
    try:
        await asyncio.wait([owner])
    finally:
        child.over.set()
        with anyio.CancelScope(shield=True):
            while not owner.done():
                # Asyncio's cancel() ignores shields; the first cancellation is being handled already.
                with suppress(asyncio.CancelledError):
                    await asyncio.wait([owner])
    return owner.result()


def _command(argv: Sequence[str]) -> list[str]:
    if isinstance(argv, str | bytes) or not argv:
        raise BadInput(f"a program is given as a list, its name first and then its arguments, not {shown(argv)}")
    return [plain(part, "an argument", TASK_LIMIT, empty=True) for part in argv]


def _environment(given: Mapping[str, str] | None) -> dict[str, str]:
    ours = {name: value for name, value in os.environ.items() if name in _INHERITED or name.startswith("LC_")}
    return {**ours, **(given or {})}


class _Wire:
    """Our end of the socket to a reaper: we send orders and receive lines."""

    def __init__(self) -> None:
        self.ours, self.theirs = socket.socketpair()
        self.ours.setblocking(False)
        _wires.add(self.ours)
        self.ordered = False
        self.program = 0
        self.failed = 0
        self.code: int | None = None
        self.left = ""
        self.broken = ""
        self._heard = b""

    async def order(self, argv: list[str], env: Mapping[str, str], grace: float) -> None:
        """Send the order to start the program, and wait until it has started or failed to."""
        words = {os.fsencode(name): os.fsencode(value) for name, value in env.items()}
        data = marshal.dumps(([os.fsencode(part) for part in argv], words, float(grace), sys.platform == "linux"))
        loop = asyncio.get_running_loop()
        with suppress(ConnectionError):  # the reaper has been killed and sends nothing more
            await loop.sock_sendall(self.ours, len(data).to_bytes(PREFIX, "big") + data)
            self.ordered = True
            while not (self.program or self.failed or self.broken) and (more := await loop.sock_recv(self.ours, 4_096)):
                self._hear(more)

    def say(self, word: bytes) -> None:
        with suppress(OSError):  # it has ended already
            if self.ordered:
                self.ours.send(word)
            else:  # an incomplete order is ignored: nothing was started
                self.ours.shutdown(socket.SHUT_WR)

    def kill(self) -> None:
        """Order the reaper to kill all processes at once, and wait until it has, for about two seconds at most. It
        blocks, because the event loop may be closing."""
        self.say(KILL)
        self.ours.settimeout(_AT_ONCE)
        self.read()
        self.ours.setblocking(False)

    def read(self) -> None:
        """Read what the reaper sends until its end."""
        with suppress(OSError):
            while more := self.ours.recv(4_096):
                self._hear(more)

    def close(self) -> None:
        self.ours.close()
        self.theirs.close()

    def _hear(self, more: bytes) -> None:
        *lines, self._heard = (self._heard + more).split(b"\n")
        for line in lines:
            word, _, rest = line.decode(errors="replace").partition(" ")
            match word:
                case "started":
                    self.program = int(rest)
                case "failed":
                    self.failed = int(rest)
                case "ended":
                    self.code = int(rest)
                case "left":
                    self.left = rest
                case _:
                    self.broken = rest


_wires: weakref.WeakSet[socket.socket] = weakref.WeakSet()


def _forget_wires() -> None:
    """Close the sockets in a forked child: a reaper must see the end of file when this process ends, not when its fork
    does."""
    for wire in list(_wires):
        wire.close()


os.register_at_fork(after_in_child=_forget_wires)


class Child(asyncio.SubprocessProtocol):
    """One program, its output and its end. It must run in a task that no other code cancels.

    The process that asyncio knows is the reaper. This is a protocol of our own, because asyncio's Process.wait() also
    waits for the pipes, which a process of another user may keep open.
    """

    def __init__(
        self,
        command: list[str],
        limit: int,
        grace: float,
        hear: Mapping[int, Callable[[bytes], None] | None] = MappingProxyType({}),
        descriptors: Sequence[int] = (),
    ) -> None:
        self.over = asyncio.Event()  # all its processes have ended, or no caller waits any more
        self.exited = asyncio.Event()
        self._closed = asyncio.Event()
        self._wire: _Wire
        self._command = command
        self._limit = limit
        self._grace = grace
        self._listeners = hear
        self._descriptors = descriptors
        self._kept = {1: bytearray(), 2: bytearray()}
        self._cut = False

    async def live(self, data: bytes, env: Mapping[str, str] | None, cwd: str | os.PathLike[str] | None) -> Finished:
        async with self.living(env, cwd) as transport:
            stdin = transport.get_pipe_transport(0)
            stdin.write(data)
            stdin.write_eof()
            await self.over.wait()
        if self._wire.code is None:
            raise ReaperLost(self._lost_sentence())
        return Finished(self._wire.code, bytes(self._kept[1]), self.err, self._cut)

    @asynccontextmanager
    async def living(self, env: Mapping[str, str] | None, cwd: str | os.PathLike[str] | None) -> AsyncGenerator[Any]:
        """Run the program while the body runs, and yield its transport. Then end every process that it started."""
        self._wire = _Wire()
        transport = await self._started(cwd)
        try:
            # Send the order only now: if the start is cancelled, asyncio kills the reaper, and no program may exist by
            # then.
            await self._wire.order(self._command, _environment(env), self._grace)
            self._check_started()
            yield transport
        finally:
            with anyio.CancelScope(shield=True):
                await self._end(transport)

    async def _started(self, cwd: str | os.PathLike[str] | None) -> Any:
        """Start the reaper, which waits for its order, and return its transport. Raise `BadInput` if the reaper cannot
        be started because of what the caller gave, such as `cwd`."""
        wire = self._wire
        env = {name: os.environ[name] for name in _LIBRARIES if name in os.environ}
        command = [sys.executable, "-I", "-S", reaper.__file__, str(wire.theirs.fileno()), Path(self._command[0]).name]
        start = partial(asyncio.get_running_loop().subprocess_exec, lambda: self, *command)
        starting = asyncio.ensure_future(
            start(env=env, cwd=cwd, start_new_session=True, pass_fds=(wire.theirs.fileno(), *self._descriptors))
        )
        try:
            with anyio.CancelScope(shield=True):  # without a shield, asyncio would kill only the leader
                await asyncio.wait([starting])
            return starting.result()[0]
        except asyncio.CancelledError:
            await self._not_started(starting)
            raise
        except OSError as error:
            raise self._cannot_start(error) from error
        finally:
            wire.theirs.close()
            if not starting.done() or starting.cancelled() or starting.exception() is not None:
                wire.close()

    async def _not_started(self, starting: asyncio.Future[tuple[Any, Any]]) -> None:
        """End a reaper that was being started when the loop is closed. Closing also cancels asyncio's own tasks, and
        asyncio then waits for pipes that are never connected: it has killed the reaper, so do not wait for it."""
        for _ in range(2):
            await asyncio.wait([starting], timeout=_DRAIN)
            if starting.done():
                break
            starting.cancel()
        if starting.done() and not starting.cancelled() and starting.exception() is None:
            await self._end(starting.result()[0])

    def _check_started(self) -> None:
        if self._wire.failed:
            raise self._cannot_start(OSError(self._wire.failed, os.strerror(self._wire.failed), self._command[0]))
        if not self._wire.program:
            raise ReaperLost(self._lost_sentence())

    def _cannot_start(self, error: OSError) -> Exception:
        if error.errno not in _CALLER:
            return error
        why = f"{error.strerror}: {shown(str(error.filename), 200)}"
        return BadInput(f"{shown(self._command[0])} cannot be started: {why}")

    def _lost_sentence(self) -> str:
        """Return the sentence for a program whose end is unknown."""
        name, wire = shown(Path(self._command[0]).name), self._wire
        if wire.left:
            return f"{name} could not be ended: it runs as another user (process {wire.left}); end it yourself"
        why = f"failed ({wire.broken})" if wire.broken else "was killed"
        if not wire.program:
            return f"{name} was not started: the process that was to watch over it {why}; try again"
        return (
            f"the process that watched over {name} {why}, so {name} was killed too and how far it got is unknown; "
            f"commands that it ran in sessions of their own may still run: look for them with `ps`"
        )

    @property
    def err(self) -> bytes:
        """The end of its stderr so far."""
        return bytes(self._kept[2])

    async def _end(self, transport: Any) -> None:
        try:
            self._wire.say(ASK)
            await self.exited.wait()
            with anyio.move_on_after(_DRAIN):
                await self._closed.wait()
        except BaseException:  # the loop is being closed: no time for a grace period
            self._wire.kill()
            raise
        finally:
            self._hear_the_last()
            stdin = transport.get_pipe_transport(0)
            if stdin.get_write_buffer_size():  # close() would wait until the data is read
                stdin.abort()
            transport.close()
        await self._closed.wait()

    def _hear_the_last(self) -> None:
        """Read how the program ended. If the reaper was killed, the kernel has killed the program; end its group."""
        wire = self._wire
        wire.read()
        wire.close()
        if wire.code is None and wire.program and not wire.left:
            _log.warning("%s", self._lost_sentence())
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(wire.program, SIGKILL)
        elif wire.left:
            name = shown(Path(self._command[0]).name)
            _log.warning("%s has left processes of another user that remit may not end: %s", name, wire.left)

    # -- callbacks of asyncio ---------------------------------------------------------------------------

    def pipe_data_received(self, fd: int, data: bytes) -> None:
        kept = self._kept[fd]
        kept += data
        if (hear := self._listeners.get(fd)) is not None:
            hear(data)
        if (more := len(kept) - self._limit) > 0:
            self._cut = True
            del kept[slice(self._limit, None) if fd == 1 else slice(more)]

    def process_exited(self) -> None:
        self.exited.set()
        self.over.set()

    def connection_lost(self, exc: Exception | None) -> None:
        self._closed.set()
