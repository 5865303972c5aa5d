"""AG-UI: a page gives a message to an agent, and gets the run as the events of that protocol."""

from __future__ import annotations

from contextlib import AsyncExitStack
from typing import Annotated, Final

import orjson
from pydantic import ConfigDict, JsonValue, WithJsonSchema
from starlette.responses import Response

from remit.core.events import Event
from remit.core.values import Json
from remit.errors import BadInput
from remit.ports.models import TextChunk
from remit.runtime.workspace import opening_of
from remit.server.calls import BodyModel, HttpCall, NoQuery
from remit.server.feed import SseFrame, StreamFilter, StreamForm
from remit.server.fields import JSON_MARK, NO_NUL, AnyJson, Line, Session
from remit.server.handlers.events import STREAM
from remit.server.handlers.tasks import queueing
from remit.server.live import HELLO, EventStream

_BEGINS: Final = ("task.submitted", "task.started")
_ENDS: Final = ("task.completed", "task.failed", "task.cancelled", "task.died")
_OTHER_FIELDS: Final[dict[str, JsonValue]] = {
    "propertyNames": {"pattern": NO_NUL},
    "additionalProperties": {JSON_MARK: True},
}
_Words = Annotated[str, WithJsonSchema({"type": "string", "pattern": NO_NUL})]
_NOTHING: Final = b":\n\n"  # a comment: an empty page would say that the reader has everything


class AguiPart(BodyModel):
    """A part of a message's content. In the user's last message, only the type `text` is accepted."""

    model_config = ConfigDict(extra="ignore", json_schema_extra=_OTHER_FIELDS)
    type: _Words
    text: _Words = ""


class AguiMessage(BodyModel):
    """A message of the conversation; only the user's last one is read."""

    model_config = ConfigDict(extra="ignore", json_schema_extra=_OTHER_FIELDS)
    role: _Words
    content: _Words | list[AguiPart] | dict[str, AnyJson] | None = None


class AguiInput(BodyModel):
    """The input of a run. Its thread is a session. The other fields of the protocol are accepted, and not used."""

    model_config = ConfigDict(extra="ignore", json_schema_extra=_OTHER_FIELDS)
    threadId: Session  # noqa: N815 - the protocol's name
    runId: Line  # noqa: N815
    messages: list[AguiMessage]

    def task(self) -> str:
        """Return the last text of the user. Raise `BadInput` if there is none."""
        found = next((one.content for one in reversed(self.messages) if one.role == "user"), None)
        parts = [AguiPart(type="text", text=found)] if isinstance(found, str) else found
        if not isinstance(parts, list) or any(part.type != "text" for part in parts):
            raise BadInput("the last message of the user must be text; agents take no images or files here")
        return "\n".join(part.text for part in parts)


class AguiForm(StreamForm):
    """A run as AG-UI shows it: its first task is the run, other tasks are steps, and the words of its first agent are
    messages. Messages and steps are closed before the run ends, as the protocol demands."""

    revoked = b'data: {"type":"RUN_ERROR","message":"the key was revoked"}\n\n'

    def __init__(self, asked: AguiInput, task: str) -> None:
        self._ids = {"threadId": asked.threadId, "runId": asked.runId}
        self._task = task
        self._steps = dict[str, str]()  # open steps: names by task
        self._said, self._number = "", 0  # the text of the open message, and the number of the latest

    def started(self) -> bytes:
        return _sse("RUN_STARTED", **self._ids)

    def frame(self, frame: SseFrame) -> bytes:
        event = frame.event
        if event is None or self.is_over:
            return _NOTHING
        if event.task == self._task and event.kind in _ENDS:
            return self.ended(event.kind[5:], event.data.get("result"), str(event.data.get("error", "")))
        return self._closed() + self._progress(event)

    def words(self, chunk: TextChunk) -> bytes:
        if chunk.task != self._task or self.is_over:
            return b""
        return (self._closed() if chunk.begins else b"") + (self._more(chunk.text) if chunk.text else b"")

    def ended(self, state: str, result: Json, error: str) -> bytes:
        """Return the end of the run. Its result is the last message; words of it that were sent are not repeated."""
        self.is_over, sent = True, b""
        if state == "completed" and result not in (None, ""):
            text = result if isinstance(result, str) else orjson.dumps(result).decode()
            sent = b"" if text.startswith(self._said) else self._closed()
            sent += self._more(text.removeprefix(self._said))
        sent += self._closed() + b"".join(_sse("STEP_FINISHED", stepName=name) for name in self._steps.values())
        if state not in ("completed", "cancelled"):
            return sent + _sse("RUN_ERROR", message=error)
        how: dict[str, Json] = {"result": result} if state == "completed" else {"outcome": {"type": "cancelled"}}
        return sent + _sse("RUN_FINISHED", **self._ids, **how)

    def _progress(self, event: Event) -> bytes:
        if event.kind == "tool.done":
            return _tool_call(event)
        if event.task == self._task:
            return self.started()
        if event.kind in _BEGINS:  # open steps must have different names
            taken = event.agent in self._steps.values()
            self._steps[event.task] = f"{event.agent} {event.task}" if taken else event.agent
            return _sse("STEP_STARTED", stepName=self._steps[event.task])
        return _sse("STEP_FINISHED", stepName=self._steps.pop(event.task)) if event.task in self._steps else _NOTHING

    def _more(self, text: str) -> bytes:
        """Return the next part of the open message, or of a new one if none is open."""
        self._number += not self._said
        name = f"{self._task}.{self._number}"
        begin = b"" if self._said else _sse("TEXT_MESSAGE_START", messageId=name, role="assistant")
        self._said += text
        return begin + (_sse("TEXT_MESSAGE_CONTENT", messageId=name, delta=text) if text else b"")

    def _closed(self) -> bytes:
        is_open, self._said = self._said != "", ""
        return _sse("TEXT_MESSAGE_END", messageId=f"{self._task}.{self._number}") if is_open else b""


def _tool_call(event: Event) -> bytes:
    data, call = event.data, f"{event.data['call']}.{event.seq}"
    return (
        _sse("TOOL_CALL_START", toolCallId=call, toolCallName=data["tool"])
        + _sse("TOOL_CALL_ARGS", toolCallId=call, delta=data["given"])
        + _sse("TOOL_CALL_END", toolCallId=call)
        + _sse("TOOL_CALL_RESULT", toolCallId=call, messageId=f"{call}.result", content=data.get("result", ""))
    )


def _sse(kind: str, **data: Json) -> bytes:
    return b"data: %b\n\n" % orjson.dumps({"type": kind, **data})


async def run(call: HttpCall[NoQuery, AguiInput]) -> Response:
    """Submit the user's last message as a task of the thread's session, and send the run as events of AG-UI. The same
    `runId` again is the same task. A reader that leaves does not cancel it; it comes back with the same `runId`."""
    asked, who = call.body, call.caller
    how = queueing(call, {"session": asked.threadId})
    how["key"] = call.op or who.op(f"ag-ui {asked.runId}")
    task = await call.workspace.submit(call.agent, asked.task(), asker=who.agent, ceiling=who.bounds, **how)
    status, form = await task.status(), AguiForm(asked, task.id)
    if status.ended_at is not None:  # its events may have been removed
        end = form.ended(status.state, status.result, status.error)
        return Response(HELLO + form.started() + end, media_type=STREAM)
    wanted = StreamFilter(run=status.run, kinds=frozenset((*_BEGINS, *_ENDS, "tool.done")))
    async with AsyncExitStack() as stack:
        opened = call.feeds.reader(call.workspace, wanted, after=status.began - 1, access=who.access, words=True)
        reader = await stack.enter_async_context(opened)
        reader.form = form
        return EventStream(reader, stack.pop_all(), opening_of(call.workspace).clock, call.is_valid)
