"""Prompting the person at the terminal when a run waits for an answer; without a terminal, printing how to answer."""

import asyncio
import json as jsons
import os
import termios
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import AbstractContextManager, asynccontextmanager, suppress
from functools import partial
from typing import Final, Literal, NamedTuple, TypeAlias

from rich.console import Console
from rich.text import Text

from remit.cli.approvals import CHANNEL, arguments, how_to, print_question
from remit.cli.options import at_terminal, now
from remit.core.values import Json
from remit.engine.people import Inquiry
from remit.errors import BadInput, Conflict, NotFound, StoreError
from remit.report.printable import escaped
from remit.report.questions import shown_question, to_read
from remit.runtime.workspace import Workspace

# Shows a text and returns the next typed line, or None at the end of the input.
Read: TypeAlias = Callable[[str], Awaitable[str | None]]
Pause: TypeAlias = Callable[[], AbstractContextManager[None]]
_CHUNK: Final = 4_096
_GRACE: Final = 1.0  # seconds for a prompt to report that its question is closed
_LATER: Final = "the question stays open; answer it with"
_TOLD: Final = 200  # and in one line
_SHOWN: Final = 4_000  # characters of a question that are shown at first
_PART: Final = "shortened; w shows the whole question: "


class TypedAnswer(NamedTuple):
    """A typed answer: approve, reject or answer, and its value."""

    verb: Literal["approve", "reject", "answer"]
    value: Json = None
    why: str = ""


class Typist:
    """The person at a terminal. Text that was typed before the question does not count as an answer."""

    def __init__(self, descriptor: int, console: Console) -> None:
        self._descriptor = descriptor
        self.console = console
        self._rest = b""

    def forget(self) -> None:
        """Drop text that was typed ahead."""
        self._rest = b""
        with suppress(termios.error):  # not a terminal, as in a test
            termios.tcflush(self._descriptor, termios.TCIFLUSH)

    async def read(self, text: str) -> str | None:
        """Show a text and return the next line, or None at the end of the input."""
        self.console.print(Text(text, "bold"), end="")
        while b"\n" not in self._rest:
            chunk = await self._chunk()
            if not chunk:
                return None
            self._rest += chunk
        line, _, self._rest = self._rest.partition(b"\n")
        return line.decode(errors="replace").strip()

    async def _chunk(self) -> bytes:
        """Return the next input; b"" at its end. Wait without a thread, so that the wait can be cancelled and no reader
        stays behind."""
        loop = asyncio.get_running_loop()
        ready = asyncio.Event()
        with suppress(PermissionError):  # a file needs no waiting
            loop.add_reader(self._descriptor, ready.set)
            try:
                await ready.wait()
            finally:
                loop.remove_reader(self._descriptor)
        try:
            return os.read(self._descriptor, _CHUNK)
        except OSError:  # the terminal is gone
            return b""


class PromptDesk(NamedTuple):
    """Answers the questions of a run in this terminal. Without a `typist`, `aside` prints how to answer from elsewhere:
    `where` are the options for that, or None if no other process can see the store."""

    aside: Console
    pause: Pause
    where: str | None
    typist: Typist | None = None


# -- typed answers ----------------------------------------------------------------------------------------------------


async def decided_by(
    question: Inquiry, read: Read, say: Callable[[str], None], show: Callable[[], object] | None = None
) -> TypedAnswer | None:
    """Prompt until the person gives an answer, and return it; None if the person leaves the question open. `say` prints
    errors. If only a part of the question was shown, `show` prints all of it, and until then no answer is accepted."""
    take = _choice if question.kind == "ask" else _approval
    while True:
        line = await read(_hint(question) if show is None else _PART)
        if line is None:
            return None
        if show is not None:
            if line.lower() in ("w", "whole"):
                show()
                show = None
            continue
        try:
            verdict = await take(question, line, read)
        except BadInput as error:
            say(str(error))
            continue
        if verdict is not None:
            return verdict


def _hint(question: Inquiry) -> str:
    if question.kind != "ask":
        what = {"hop": "the task", "review": "the result", "money": "the amount"}.get(question.kind, "the arguments")
        no = "send it back" if question.kind == "review" else "reject"
        return f"y to approve, n to {no}, e to edit {what}: "
    enter = f", Enter for {escaped(str(question.default), 40)}" if question.default is not None else ""
    return f"a number or the answer{enter}: " if question.choices else f"your answer{enter}: "


async def _approval(question: Inquiry, line: str, read: Read) -> TypedAnswer | None:
    match line.lower():
        case "y" | "yes":
            return TypedAnswer("approve")
        case "n" | "no":
            why = await read("reason (the agent gets it): ")
            return TypedAnswer("reject", why=why or "no")
        case "e" | "edit":
            return await _edited(question, read)
        case "":
            return None
        case _:
            raise BadInput("y approves it, n rejects it, e edits it first; Ctrl-D leaves it open")


async def _edited(question: Inquiry, read: Read) -> TypedAnswer | None:
    """Return the approval with the edited task, arguments or result, or None if nothing was typed."""
    if question.kind == "review":
        return await _edited_result(question, read)
    if question.kind in ("hop", "money"):
        what = "the task as you approve it" if question.kind == "hop" else "the amount that you give, such as 0.20USD"
        text = await read(f"{what}: ")
        return TypedAnswer("approve", text) if text else None
    typed = await read('the arguments as you approve them, a JSON object such as {"env": "prod"}: ')
    return TypedAnswer("approve", arguments(typed)) if typed else None


async def _edited_result(question: Inquiry, read: Read) -> TypedAnswer | None:
    """Return the approval of a result as the person types it: as text if it was text, otherwise as JSON."""
    if isinstance(question.shows.get("result"), str):
        text = await read("the result as you approve it: ")
        return TypedAnswer("approve", text) if text else None
    typed = await read("the result as you approve it, as JSON: ")
    if not typed:
        return None
    try:
        return TypedAnswer("approve", jsons.loads(typed))
    except ValueError as error:
        raise BadInput(f"the result is JSON, as the agent's was: {error}") from None


async def _choice(question: Inquiry, line: str, _read: Read) -> TypedAnswer | None:
    if not line:
        return TypedAnswer("answer", question.default) if question.default is not None else None
    if not question.choices or line in question.choices:
        return TypedAnswer("answer", line)
    number = int(line) if line.isascii() and line.isdigit() and len(line) <= 3 else 0
    if 1 <= number <= len(question.choices):
        return TypedAnswer("answer", question.choices[number - 1])
    raise BadInput(f"it is one of: {', '.join(question.choices)}; type it, or its number")


# -- during a run ----------------------------------------------------------------------------------------------------


@asynccontextmanager
async def answering(workspace: Workspace, runs: Sequence[str], desk: PromptDesk) -> AsyncGenerator[None]:
    """Answer or announce the questions of a run while the body runs. `runs` is empty at first; the caller appends the
    id of the run as soon as it has started. Questions of other runs are ignored."""
    head, idle = await workspace.looks.head(), asyncio.Event()
    idle.set()
    task = asyncio.create_task(_attend(workspace, runs, desk, head, idle))
    try:
        yield
    finally:
        with suppress(TimeoutError):  # the question is closed, and the prompt is about to say so
            await asyncio.wait_for(idle.wait(), _GRACE)
        task.cancel()
        with suppress(asyncio.CancelledError, StoreError):  # the run's own result is printed in any case
            await task


async def _attend(workspace: Workspace, runs: Sequence[str], desk: PromptDesk, head: int, idle: asyncio.Event) -> None:
    async with workspace.journal.follow(kinds=frozenset(("question.asked",)), after=head) as follow:
        while True:
            for event in await follow.next():
                if event.run in runs[:1]:
                    question = await workspace.questions.get(str(event.data["question"]))
                    if question.state == "open":
                        idle.clear()
                        try:
                            await _handle(workspace, question, desk)
                        finally:
                            idle.set()


async def _handle(workspace: Workspace, question: Inquiry, desk: PromptDesk) -> None:
    if desk.typist is None:
        _tell(question, desk)
        return
    with desk.pause():
        console = desk.typist.console
        show = partial(print_question, console, question, now())
        whole = show(size=_SHOWN)
        desk.typist.forget()
        await _either(workspace, question, desk, None if whole else show)


async def _either(
    workspace: Workspace, question: Inquiry, desk: PromptDesk, show: Callable[[], object] | None = None
) -> None:
    """Wait for an answer typed here or given elsewhere, whichever comes first."""
    here = asyncio.create_task(_typed(workspace, question, desk, show))
    elsewhere = asyncio.create_task(_elsewhere(workspace, question))
    try:
        await asyncio.wait((here, elsewhere), return_when=asyncio.FIRST_COMPLETED)
        if not here.done():
            _say(desk, f"\n{elsewhere.result()}")
        else:
            here.result()
    finally:
        for task in (here, elsewhere):
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task


async def _typed(workspace: Workspace, question: Inquiry, desk: PromptDesk, show: Callable[[], object] | None) -> None:
    assert desk.typist is not None
    while True:
        verdict = await decided_by(question, desk.typist.read, lambda sentence: _say(desk, sentence), show)
        show = None
        if verdict is None:
            _tell(question, desk, left_open=True)
            return
        try:
            await _give(workspace, question.id, verdict)
        except BadInput as error:
            _say(desk, str(error))
        except (Conflict, NotFound) as error:
            _say(desk, str(error))
            return
        else:
            return


async def _give(workspace: Workspace, question: str, verdict: TypedAnswer) -> None:
    by = at_terminal()
    if verdict.verb == "approve":
        await workspace.questions.approve(question, by=by, channel=CHANNEL, value=verdict.value)
    elif verdict.verb == "reject":
        await workspace.questions.reject(question, by=by, channel=CHANNEL, why=verdict.why)
    else:
        await workspace.questions.answer(question, str(verdict.value), by=by, channel=CHANNEL)


async def _elsewhere(workspace: Workspace, question: Inquiry) -> str:
    async with workspace.journal.follow(after=0, kinds=frozenset(("question.answered",)), run=question.run) as follow:
        while True:
            for event in await follow.next():
                if event.data["question"] == question.id:
                    who = f" by {event.data['by']}" if event.data["by"] else ""
                    return f"question {question.id} is {event.data['state']}{who}"


def _say(desk: PromptDesk, sentence: str) -> None:
    desk.aside.print(Text(sentence, "yellow"))


def _tell(question: Inquiry, desk: PromptDesk, *, left_open: bool = False) -> None:
    """Print how to answer from elsewhere."""
    whole = left_open or (question.kind == "ask" and shown_question(question, _TOLD).whole)
    head = _LATER if left_open else f"the run waits for a person: {escaped(question.text, _TOLD)}; answer with"
    if desk.where is None:
        how = "nobody else can answer, because the run is kept in memory only: add --store FILE"
        _say(desk, f"{head.rpartition(';')[0]}; {how}")
    else:
        head = head if whole else head.removesuffix("answer with") + "read it whole"
        command = how_to(question, desk.where) if whole else f"{to_read(question)}{desk.where}"
        _say(desk, f"{head}: {command}")
