"""Python programs in processes of their own, forked from one that has imported remit and what asks models: they start
in milliseconds.

What tests are about is that it is another process, which can be killed; a test of how Python itself starts, or of what
is imported then, starts it.
"""

import fcntl
import multiprocessing
import os
import pkgutil
import runpy
import signal
import sys
import termios
import threading
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from multiprocessing.connection import Connection, Pipe
from pathlib import Path
from types import ModuleType
from typing import IO, Any, NamedTuple, NoReturn

import remit.cli

_FORKS = multiprocessing.get_context("forkserver")
_COMMANDS = [module.name for module in pkgutil.iter_modules(remit.cli.__path__, "remit.cli.")]
_MODELS = ("remit.adapters.pydantic_ai.agent", "pydantic_ai.models.openai", "genai_prices.data")
_SERVER = ("remit.server.serve", "remit.server.carrying", "uvicorn.protocols.http.httptools_impl")
_MCP = ("remit.adapters.mcp.stdio", "mcp.server.mcpserver")
_LATER = ("encodings.ascii", "rich._unicode_data.unicode17-0-0")  # what others import when they need it
_FORKS.set_forkserver_preload(
    [
        *(name for name in _COMMANDS if not name.endswith("__main__")),
        *("remit.stores.postgres.database", "remit.testing", "remit.adapters.process", "runpy", "tempfile"),
        *_MODELS,
        *_SERVER,
        *_MCP,
        *_LATER,
        "frozen",
    ]
)

PATIENCE = 60.0


class Said(NamedTuple):
    """How a program ended and what it printed."""

    returncode: int
    stdout: str
    stderr: str


class Forked:
    """A program in a fork, with these for its standard streams: the words are those after `python`. If they are a
    terminal, it is the one that controls the program."""

    def __init__(
        self, words: tuple[str, ...], folder: str, env: Mapping[str, str], *ends: Connection, terminal: bool = False
    ) -> None:
        given = (words, folder, dict(env), terminal, *ends)
        self._process = _FORKS.Process(target=_run, args=given, daemon=True)
        self._process.start()

    @property
    def pid(self) -> int:
        assert self._process.pid is not None
        return self._process.pid

    @property
    def sentinel(self) -> int:
        return self._process.sentinel

    @property
    def returncode(self) -> int | None:
        return self._process.exitcode

    def poll(self) -> int | None:
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        self._process.join(timeout)
        code = self.returncode
        if code is None:
            raise TimeoutError(f"it has not ended within {timeout:g} s")
        return code

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            with suppress(ProcessLookupError):  # it has ended, and how has not been said yet
                os.kill(self.pid, number)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)


class Program(Forked):
    """As much of `subprocess.Popen` as tests need: the words are those after `python`."""

    def __init__(
        self,
        *words: object,
        cwd: Path | None = None,
        env: Mapping[str, str] | None = None,
        together: bool = False,
    ) -> None:
        """Start it; `together` has it print its complaints where it prints everything else."""
        read, saying = Pipe(duplex=False)
        (out, printing), (err, complaining) = Pipe(duplex=False), Pipe(duplex=False)
        here = str(cwd or Path.cwd())
        given = (tuple(map(str, words)), here, os.environ if env is None else env)
        super().__init__(*given, read, printing, printing if together else complaining)
        for end in (read, printing, complaining):
            end.close()
        self.stdin: IO[str] | None = _file(saying, "w")
        self.stdout, self.stderr = _file(out, "r"), _file(err, "r")

    def communicate(self, said: str = "", timeout: float | None = PATIENCE) -> tuple[str, str]:
        """Say something to it, and no more; gives back all that it printed and complained of."""
        found = ["", ""]

        def read(number: int, file: IO[str]) -> None:
            with file:
                found[number] = file.read()

        files = (self.stdout, self.stderr)
        readers = [threading.Thread(target=read, args=pair, daemon=True) for pair in enumerate(files)]
        for reader in readers:
            reader.start()
        if self.stdin is not None:
            with suppress(BrokenPipeError):  # it does not listen
                self.stdin.write(said)
                self.stdin.flush()
            with suppress(BrokenPipeError):
                self.stdin.close()
        try:
            self.wait(timeout)
        except TimeoutError:
            self.kill()
            raise
        for reader in readers:
            reader.join(timeout)
        return found[0], found[1]

    def close(self) -> None:
        """End it, and forget what it still has to say."""
        self.kill()
        self.wait()
        for file in (self.stdin, self.stdout, self.stderr):
            if file is not None:
                file.close()


@contextmanager
def running(*words: object, **how: Any) -> Iterator[Program]:
    """A program that is gone at the end."""
    program = Program(*words, **how)
    try:
        yield program
    finally:
        program.close()


def ran(*words: object, said: str = "", timeout: float = PATIENCE, **how: Any) -> Said:
    """Run a program to its end."""
    with running(*words, **how) as program:
        printed, complaints = program.communicate(said, timeout)
        return Said(program.wait(), printed, complaints)


def _file(end: Connection, mode: str) -> IO[Any]:
    with end:
        return os.fdopen(os.dup(end.fileno()), mode)


# -- in the process that is forked ---------------------------------------------------------------------------------


def _run(words: tuple[str, ...], folder: str, environment: dict[str, str], terminal: bool, *ends: Connection) -> None:
    for number, end in enumerate(ends):
        os.dup2(end.fileno(), number)
    for end in ends:
        end.close()
    sys.stdin = os.fdopen(0, closefd=False)
    if terminal:
        os.setsid()
        fcntl.ioctl(0, termios.TIOCSCTTY, 0)
        # Those of the process that is forked write when they are full, and not after each line.
        sys.stdout, sys.stderr = (os.fdopen(number, "w", buffering=1, closefd=False) for number in (1, 2))
    os.environ.clear()
    os.environ.update(environment)
    os.chdir(folder)
    if words[:2] == ("-W", "error"):
        warnings.simplefilter("error")
        words = words[2:]
    try:
        _as_python_does(words)
    except KeyboardInterrupt:
        _end_by_interrupt()


def _as_python_does(words: tuple[str, ...]) -> None:
    match words:
        case "-m", name, *rest:
            sys.argv[:] = [name, *rest]
            sys.path.insert(0, str(Path.cwd()))
            runpy.run_module(name, run_name="__main__", alter_sys=True)
        case "-c", code, *rest:
            sys.argv[:] = ["-c", *rest]
            sys.path.insert(0, "")
            _run_code(code, "<string>")
        case path, *rest:
            sys.argv[:] = [path, *rest]
            sys.path.insert(0, str(Path(path).parent))
            _run_code(Path(path).read_text(), path)
        case _:
            raise AssertionError("which program?")


def _run_code(code: str, path: str) -> None:
    main = sys.modules["__main__"] = ModuleType("__main__")
    main.__file__ = path
    exec(compile(code, path, "exec"), main.__dict__)


def _end_by_interrupt() -> NoReturn:
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    os.kill(os.getpid(), signal.SIGINT)
    raise AssertionError("it has ended")
