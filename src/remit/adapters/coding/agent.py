"""A coding agent at work on a task: started or resumed, listened to line by line, and ended with the turn."""

from __future__ import annotations

import asyncio
import json
import logging
import os
from collections.abc import AsyncGenerator, Callable, Generator, Mapping, Sequence
from contextlib import AbstractContextManager, asynccontextmanager, contextmanager, suppress
from pathlib import Path
from typing import Any, Final, NamedTuple, Protocol, cast

import anyio
from anyio import to_thread

from remit.adapters.coding.places import TaskPlace, TaskPlaces
from remit.adapters.coding.record import calls_before, finished_in, going_on
from remit.adapters.endpoints import provider_of
from remit.adapters.gateway.joining import JoinedProgram, Joining
from remit.adapters.gateway.wires import WireFormat
from remit.adapters.process import Finished, ProgramFailed, ending, last_words, located, run_process
from remit.adapters.program_files import answer_with
from remit.core.command import Command
from remit.core.lifecycle import progress_line
from remit.core.values import NAME_LIMIT, VALUE_LIMIT, shown
from remit.errors import BadInput, RemitError

LINGER: Final = 60.0
WEEK: Final = 604_800  # seconds that a verb may take: a person may have to answer
SECONDS: Final = 3_600  # of one attempt: coding takes longer than an answer
_EVERY: Final = 1.0  # seconds between two reports that are shown
_LINE: Final = 16 * 2**20  # bytes of a line that are read
_log: Final = logging.getLogger("remit")
_KEPT: Final = VALUE_LIMIT - 1_000  # characters of an answer, with room for the references of files


class ProgramStart(NamedTuple):
    """The command line and the environment of a coding agent, and the open files that it inherits. The prompt goes to
    its stdin."""

    argv: list[str]
    env: Mapping[str, str]
    descriptors: tuple[int, ...] = ()


class ProgramSaid:
    """The output of a coding agent so far: its answer, its errors, and the tokens that it has counted itself. `ended`
    is true once it has printed its result. `broken` is the reason to stop the program before its end, such as no
    connection to its team; "" if there is none."""

    def __init__(self) -> None:
        self.answer = ""
        self.error = ""
        self.doing = ""
        self.broken = ""
        self.ended = False
        self.tokens = 0
        self.warned = ""  # an error that may not be its end


class CodingProgram(Protocol):
    """The differences between coding agents, one class for each program."""

    @property
    def name(self) -> str: ...

    def sessions(self, place: TaskPlace) -> list[Path]:
        """Return the files of the session of a task that can be resumed; none if there is no such session."""
        ...

    def started(
        self, joined: JoinedProgram, place: TaskPlace, *, resumes: bool, instructions: str
    ) -> AbstractContextManager[ProgramStart]:
        """Return a context manager that prepares a start and yields the command. At its end it cleans up."""
        ...

    def hear(self, said: ProgramSaid, line: dict[str, Any], place: TaskPlace) -> None:
        """Parse one line of the program's output."""
        ...


class CodingAgent:
    """An agent that is a coding program: its models, verbs and approvals are remit's, its tools are its own."""

    polices_tools = True  # in its model requests
    approves_tools = False  # by their names on the card: its own setting decides what a person is asked

    def __init__(self, program: CodingProgram, joins: Joining, places: TaskPlaces) -> None:
        self._program = program
        self._joins = joins
        self._places = places
        self.name = program.name
        self.outside = ("a coding agent", "it", f"in {program.name.replace('-', '_')}(...)")
        self.iterations = joins.requests
        self.seconds = SECONDS
        self.linger = LINGER  # seconds from its result to its end
        self._at_work = 0  # tasks in its folder

    async def __call__(self, turn: Any) -> Any:
        async with self._joins.joined(turn) as joined, self._places.of(turn) as place, self._noted(turn, place):
            answer = await joined.until_over(self._worked(turn, joined, place))
            if isinstance(answer, Command):
                return answer
            saved = await self._places.saved(turn, place)
            if not turn.card.review:  # otherwise a person may send the result back, and the session continues
                await self._places.remove(place)
            return answer_with(answer, saved)

    @asynccontextmanager
    async def _noted(self, turn: Any, place: TaskPlace) -> AsyncGenerator[None]:
        """Count the tasks that work in the owner's folder while the body runs. Log a warning if there are several,
        because one may undo the work of another."""
        self._at_work += not place.base
        if self._at_work > 1 and not place.base:
            _log.warning("%s", _crowded(turn.agent, self._at_work, place.cwd))
        try:
            yield
        finally:
            self._at_work -= not place.base

    async def _worked(self, turn: Any, joined: JoinedProgram, place: TaskPlace) -> str:
        sessions = await to_thread.run_sync(self._program.sessions, place)
        finished = await to_thread.run_sync(finished_in, sessions)
        before = calls_before(await turn.kept_answers())
        task = going_on(await turn.prompt(), before, finished, has_session=bool(sessions), has_files=not place.is_new)
        said = ProgramSaid()
        instructions = turn.card.instructions
        with self._program.started(joined, place, resumes=bool(sessions), instructions=instructions) as start:
            done = await self._run(turn, start, task, place, said)
        if not sessions and said.tokens > joined.member.tokens:  # a resumed session may count earlier tokens
            _log.warning("%s", _past_the_gateway(turn.agent, self.name, said.tokens, joined.member.tokens))
        if done is None or done.code or said.error or not said.ended:
            raise self._failed(turn, done, said, joined.refused)
        answer = _storable(said.answer)[:_KEPT]
        turn.mark_untrusted(f"output of {self.name}"[:NAME_LIMIT], answer)
        return answer

    async def _run(
        self, turn: Any, start: ProgramStart, task: str, place: TaskPlace, said: ProgramSaid
    ) -> Finished | None:
        """Run the program and return how it ended, or None if it was stopped because `said.broken` is set. A program
        that hangs after its result is stopped; its result counts."""
        with anyio.CancelScope() as scope:

            def hear(line: dict[str, Any]) -> None:
                self._program.hear(said, line, place)
                if said.broken:
                    scope.cancel()
                if said.ended:
                    scope.deadline = asyncio.get_running_loop().time() + self.linger
                if said.doing:
                    text, said.doing = progress_line(said.doing), ""
                    with suppress(RemitError):  # the turn is over: no one is shown a report then
                        turn.progress(text, every=_EVERY)

            return await run_process(
                start.argv,
                text=task,
                env=start.env,
                cwd=place.cwd,
                on_stdout=JsonLines(hear),
                descriptors=start.descriptors,
            )
        return Finished(0, b"", b"", cut=False) if said.ended and not said.broken else None

    def _failed(self, turn: Any, done: Finished | None, said: ProgramSaid, refused: str) -> ProgramFailed:
        code = 0 if done is None else done.code
        how = ending(self.name, done) if done is not None and done.code else f"'{self.name}' failed"
        why = said.broken or said.error or (last_words(done.err) if done is not None else "") or said.answer
        if not code and not why:
            why = "it ended without a result"
        why = _storable(why)
        turn.mark_untrusted(f"output of {self.name}"[:NAME_LIMIT], why)
        if refused and refused not in why:
            why = f"{why}; its last model request had no answer: {refused}" if why else refused
        return ProgramFailed(f"{how}: {why[:2_000]}" if why else f"{how} and said nothing", code=code)


def _storable(text: str) -> str:
    """Return a text that every store can hold: a program may print half of a character, or NUL."""
    return text.replace("\0", "\ufffd").encode(errors="replace").decode()


def _crowded(agent: str, tasks: int, cwd: Path) -> str:
    return (
        f"{tasks} tasks of '{agent}' work in {cwd} at once, and each sees what the others change; "
        "give the agent worktree=True, or concurrency=1 on its card"
    )


def _past_the_gateway(agent: str, program: str, counted: int, passed: int) -> str:
    return (
        f"'{agent}': {program} says that it used {counted:,} tokens, and {passed:,} went through the gateway; "
        "it may have asked a model that its budget does not cover, see env= of the agent"
    )


class JsonLines:
    """Takes the output of a program piece by piece, and passes each line that is a JSON object on."""

    def __init__(self, hear: Callable[[dict[str, Any]], None]) -> None:
        self._hear = hear
        self._rest = bytearray()

    def __call__(self, data: bytes) -> None:
        *lines, rest = data.split(b"\n")
        for line in lines:
            whole, self._rest = bytes(self._rest + line), bytearray()
            self._take(whole)
        if len(self._rest) < _LINE:
            self._rest += rest

    def _take(self, line: bytes) -> None:
        with suppress(ValueError, RecursionError):  # the program may print other lines too
            if isinstance(found := json.loads(line.decode(errors="replace")), dict):
                self._hear(cast("dict[str, Any]", found))


@contextmanager
def token_pipe(token: str) -> Generator[int]:
    """Put a token into a pipe, and yield the descriptor from which the program reads it. It can be read once."""
    reading, writing = os.pipe()
    try:
        os.write(writing, token.encode())
        os.close(writing)
        yield reading
    finally:
        os.close(reading)


def write_private(file: Path, text: str) -> None:
    """Write a file that only this user can read. Replace an existing one."""
    file.unlink(missing_ok=True)
    with os.fdopen(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as out:
        out.write(text)


def installed(command: Sequence[str], env: Mapping[str, str] | None, package: str) -> list[str]:
    """Return the command with the path of its program. Raise `BadInput` if it is not installed; the error says to
    install the npm package."""
    return located(command, env, f"npm install -g {package}")


def places_of(cwd: str | os.PathLike[str] | None, home: str | os.PathLike[str] | None, *, worktree: bool) -> TaskPlaces:
    """Return the folders of an agent: where its tasks work, and where their sessions are stored. Raise `BadInput` if
    `cwd` is not a folder."""
    folder = Path(cwd or ".").absolute()
    if not folder.is_dir():
        raise BadInput(f"cwd is the folder that the agent works in, and {folder} is none")
    return TaskPlaces(None if home is None else Path(home).absolute(), folder, worktree)


def model_names(models: Sequence[str], wire: WireFormat, who: str) -> list[str]:
    """Return the models without their provider's name. Raise `BadInput` if one cannot be asked in the format of the
    program, which the error calls `who`."""
    for one in models:
        if not wire.speaks(provider_of(one)):
            raise BadInput(f"{who} speaks the format {wire.path}, and {shown(one)} does not; name another model")
    return [one.partition(":")[2] for one in models]


def checked_names(given: Sequence[str], what: str) -> list[str]:
    """Return a list of names. Raise `BadInput` for anything else: a text would be read letter by letter."""
    if isinstance(given, str) or not all(isinstance(one, str) and one for one in given):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise BadInput(f"{what} is a list of texts such as ['Edit', 'Bash(pytest*)']")
    return list(given)
