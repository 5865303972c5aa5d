"""Conversion of tasks to A2A tasks, messages and stream events."""

import re
from collections.abc import AsyncGenerator, Callable, Iterable
from contextlib import aclosing
from dataclasses import replace
from typing import Any, Final, NamedTuple, cast

from a2a.types.a2a_pb2 import (
    Artifact,
    Message,
    Role,
    Task,
    TaskArtifactUpdateEvent,
    TaskState,
    TaskStatus,
    TaskStatusUpdateEvent,
)
from a2a.utils.errors import InternalError, TaskNotFoundError

from remit.adapters.a2a.call import MESSAGE, A2ACall
from remit.adapters.a2a.files import files_of
from remit.adapters.a2a.parts import as_text, parts_of, text_part
from remit.core.events import Event
from remit.core.lifecycle import MOVES, TERMINAL, lands
from remit.core.question import Inquiry
from remit.errors import NotFound, StoreError, Unauthorised
from remit.runtime.journal import Follow
from remit.runtime.tasks import Status

CHECK: Final = 0.3  # seconds between two looks whether the key still counts: with its cache, less than a second
LOOK: Final = 6  # checks between two looks at a task of which nothing is heard
CHANNEL: Final = "a2a"  # of the answers that clients give
NOT_NOW: Final = "the store does not answer; try again later"
ALL: Final = 1_000  # messages of a history, if no number is asked for
_LISTED: Final = 1_000
_ID: Final = re.compile(r"[a-z2-7]{16}", re.ASCII)

Update = TaskStatusUpdateEvent | TaskArtifactUpdateEvent

_STATES: Final[dict[str, int]] = {
    "pending": TaskState.TASK_STATE_SUBMITTED,
    "running": TaskState.TASK_STATE_WORKING,
    "waiting": TaskState.TASK_STATE_WORKING,
    "cancelling": TaskState.TASK_STATE_WORKING,
    "completed": TaskState.TASK_STATE_COMPLETED,
    "failed": TaskState.TASK_STATE_FAILED,
    "dead": TaskState.TASK_STATE_FAILED,
    "cancelled": TaskState.TASK_STATE_CANCELED,
}


class Seen(NamedTuple):
    """A task at one moment: its record, its open question to the client, its progress, and the time since which it has
    this state."""

    status: Status
    question: Inquiry | None = None
    progress: str = ""
    at: int = 0

    @property
    def state(self) -> int:
        """The A2A state: "input required" while the client can answer a question or an approval."""
        return _STATES[self.status.state] if self.question is None else TaskState.TASK_STATE_INPUT_REQUIRED

    @property
    def is_over(self) -> bool:
        return self.status.state in TERMINAL

    @property
    def said(self) -> str:
        """The text of the state: the open question, the error of an ended task, or the progress."""
        if self.question is not None:
            return _question_text(self.question)
        return self.status.error if self.is_over else self.progress


def _question_text(question: Inquiry) -> str:
    choices = question.choices if question.kind == "ask" else ("approve", "reject")
    return question.text + "".join(f"\n- {one}" for one in choices)


# -- one moment -----------------------------------------------------------------------------------------------------


async def looked_at(call: A2ACall, task: str) -> Seen:
    """Return a task of the caller as it is now. Raise `TaskNotFoundError` for an unknown or impossible id and for a
    task of another client, so that a client cannot tell these apart; raise `InternalError` if the store does not
    answer."""
    status = None
    if _ID.fullmatch(task):
        try:
            status = await call.workspace.tasks.get(task).status()
        except NotFound:
            status = None
        except StoreError:
            raise InternalError(NOT_NOW) from None
    if status is None or status.by != call.caller.by:
        raise TaskNotFoundError
    return await seen_task(call, status)


async def seen_task(call: A2ACall, status: Status) -> Seen:
    """Return a task with its open question, and the time since which it has this state."""
    if status.ended_at is not None or status.claimed_at is None:
        return Seen(status, at=status.ended_at or status.asked_at)
    asked = await _open(call, status) if status.state == "waiting" else []
    if asked:
        return Seen(status, asked[0], at=asked[0].asked_at)
    answered = [one.answered_at or 0 for one in await _questions(call, status, decided=True)]
    return Seen(status, at=max(status.claimed_at, *answered, 0))


async def _open(call: A2ACall, status: Status) -> list[Inquiry]:
    """Return the open questions of a task that the caller may answer; if the task is a root, those of its run."""
    return await _questions(call, status, decided=False)


async def _questions(call: A2ACall, status: Status, *, decided: bool) -> list[Inquiry]:
    found = await call.workspace.questions.list(decided=decided, run=status.run, limit=_LISTED)
    return [one for one in found if _is_for(call, status, one.task, one.kind)]


def _is_for(call: A2ACall, status: Status, task: str, kind: str) -> bool:
    """Whether a question belongs to a task, or to the run that the task began, and the caller may answer it. `task` and
    `kind` are those of the question. Only callers with the scope `approve` may answer a request for an approval."""
    return (task == status.id or not status.parent) and (kind == "ask" or call.caller.may("approve"))


# -- what happens ---------------------------------------------------------------------------------------------------


class TaskStory:
    """The state of a task, followed event by event, so that every client gets the same updates, even of a task that is
    faster than its readers."""

    def __init__(self, call: A2ACall, look: Seen, asked: Iterable[Inquiry]) -> None:
        self._call = call
        self._asked = {one.id: one for one in asked}
        self.look = look

    async def hear(self, event: Event) -> None:
        """Update the state with an event of the task's run."""
        status, data = self.look.status, cast("dict[str, Any]", event.data)
        if event.kind == "question.asked":
            if _is_for(self._call, status, event.task, data["kind"]):
                self._asked[data["question"]] = _inquiry(event, data)
        elif event.kind == "question.answered":
            self._asked.pop(data["question"], None)
        elif event.kind in MOVES and event.task == status.id:
            state = lands(event.kind)
            if state in TERMINAL:
                await self.look_again()
                return
            status = replace(status, state=state)
        else:
            return
        asked = sorted(self._asked.values(), key=lambda one: one.until) if status.state == "waiting" else []
        now = self.look._replace(status=status, question=asked[0] if asked else None)
        is_same = (now.state, now.question) == (self.look.state, self.look.question)
        self.look = now if is_same else now._replace(progress="", at=asked[0].asked_at if asked else event.at)

    async def look_again(self) -> None:
        """Read the state of the task from the store."""
        look = await looked_at(self._call, self.look.status.id)
        self.look = look._replace(progress=self.look.progress)

    async def see_progress(self) -> None:
        """Read the progress of the task, if it is running."""
        if not self.look.is_over and self.look.question is None:
            found = (await self._call.workspace.tasks.progress()).get(self.look.status.id)
            if found is not None:
                self.look = self.look._replace(progress=found.text)

    async def since(self, before: Seen) -> AsyncGenerator[Update]:
        """Yield the updates for a client that knows the state `before`: the result if the task has completed, and the
        state if it or its text differs."""
        call, look = self._call, self.look
        task, context = look.status.id, call.context_of(look.status)
        if look.status.state == "completed":
            made = await _artifact(call, look)
            yield TaskArtifactUpdateEvent(task_id=task, context_id=context, artifact=made, last_chunk=True)
        if (look.state, look.said) != (before.state, before.said):
            yield TaskStatusUpdateEvent(task_id=task, context_id=context, status=status_of(call, look))


def _inquiry(event: Event, data: dict[str, Any]) -> Inquiry:
    asked, where = (data["question"], data["kind"], data["text"]), (event.agent, event.task, event.run, event.session)
    return Inquiry(*asked, *where, event.at, data["until"], "open", tuple(data["choices"]))


def never(look: Seen) -> bool:
    """Return False: follow a task to its end."""
    del look
    return False


def asks(look: Seen) -> bool:
    """Whether the task asks a person: stop following it there."""
    return look.question is not None


async def watched(
    call: A2ACall, task: str, stops: Callable[[Seen], bool], history: int = ALL
) -> AsyncGenerator[Task | Update]:
    """Yield a task with its latest `history` messages, and then its updates, until it ends, `stops` returns True, or
    the access key is no longer valid."""
    head = await call.workspace.journal.read(lambda view: view.head().seq)
    look = await looked_at(call, task)
    async with call.workspace.journal.follow(run=look.status.run, after=head) as follow:
        told = await _beginning(call, look, follow)
        yield await task_of(call, told.look, history)
        quiet = 0
        while not told.look.is_over and not stops(told.look):
            heard = await follow.next(CHECK)
            try:
                await call.check()
            except Unauthorised:
                return
            quiet = 0 if heard else quiet + 1
            async with aclosing(_updates(told, heard, stops, looks=quiet % LOOK == 0)) as updates:
                async for update in updates:
                    yield update


async def _beginning(call: A2ACall, look: Seen, follow: Follow[Event]) -> TaskStory:
    """Return the state of a task to which the next events of `follow` apply. It is read again as long as events that
    concern the task arrive meanwhile."""
    task = look.status.id
    while True:
        asked = [] if look.is_over else await _open(call, look.status)
        if look.is_over or not any(_matters(task, event) for event in await follow.next(0)):
            return TaskStory(call, look, asked)
        look = await looked_at(call, task)


def _matters(task: str, event: Event) -> bool:
    return event.kind.startswith("question.") or (event.kind in MOVES and event.task == task)


async def _updates(
    told: TaskStory, heard: list[Event], stops: Callable[[Seen], bool], *, looks: bool
) -> AsyncGenerator[Update]:
    for event in heard:
        before = told.look
        await told.hear(event)
        async for update in told.since(before):
            yield update
        if told.look.is_over or stops(told.look):
            return
    if looks:
        before = told.look
        if not heard:  # it may have been removed
            await told.look_again()
        await told.see_progress()
        async for update in told.since(before):
            yield update


# -- as messages of the protocol ------------------------------------------------------------------------------------


async def task_of(call: A2ACall, look: Seen, history: int = ALL, *, result: str = "files") -> Task:
    """Return the A2A task with its latest `history` messages. `result` is "files" for the result with the files that it
    names, "data" for the result without them, "" for none."""
    status = look.status
    task = Task(id=status.id, context_id=call.context_of(status), status=status_of(call, look))
    if result and status.state == "completed":
        task.artifacts.append(await _artifact(call, look, with_files=result == "files"))
    if history:
        task.history.extend((await _exchanged(call, status))[-history:])
    return task


def status_of(call: A2ACall, look: Seen) -> TaskStatus:
    made = TaskStatus(state=cast("Any", look.state))
    made.timestamp.FromMicroseconds(look.at)
    if look.said:
        status, asked = look.status, look.question
        name = f"{status.id}-{status.state}-{status.attempt}" if asked is None else asked.id
        made.message.CopyFrom(_message(call, status, name, look.said, Role.ROLE_AGENT))
    return made


async def _exchanged(call: A2ACall, status: Status) -> list[Message]:
    """Return the messages of a task, oldest first: the request, the questions that were decided, and the answers of the
    caller."""
    first = str(status.meta.get(MESSAGE, "")) or f"{status.id}-1"
    said = [_message(call, status, first, status.task)]
    for one in sorted(await _questions(call, status, decided=True), key=lambda one: one.asked_at):
        said.append(_message(call, status, one.id, _question_text(one), Role.ROLE_AGENT))
        if one.channel == CHANNEL and one.by == call.caller.by:
            said.append(_message(call, status, f"{one.id}-answer", _answer(one)))
    return said


def _answer(question: Inquiry) -> str:
    if question.kind == "ask":
        return as_text(question.value)
    word = "approve" if question.state == "approved" else "reject"
    return f"{word}: {question.why}" if question.why else word


def _message(call: A2ACall, status: Status, name: str, text: str, role: Any = Role.ROLE_USER) -> Message:
    where = call.context_of(status)
    return Message(message_id=name, role=role, task_id=status.id, context_id=where, parts=[text_part(text)])


async def _artifact(call: A2ACall, look: Seen, *, with_files: bool = True) -> Artifact:
    parts, status = parts_of(look.status.result), look.status
    if with_files:
        parts += await files_of(call.workspace, status.id, status.result)
    return Artifact(artifact_id=f"{status.id}-result", name="result", parts=parts)
