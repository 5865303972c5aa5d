"""Conversations with models from the journal: requests, answers and tool calls.

An answer is recorded in the format of its framework. This module reads JSON, so it needs no framework.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal, TypeAlias, cast

from remit.core.events import Event, answer_of, read
from remit.core.kinds.models import ModelAnswered, ModelFailed, TalkRestarted, ToolDone, ToolOutcome
from remit.core.kinds.tasks import FirstData
from remit.core.records import NamedTuple
from remit.core.remit import task_of
from remit.core.values import Json, decoded, encode

Who: TypeAlias = Literal["prompt", "model", "tool", "restart"]

GONE: Final = "[what was said is not in the journal any more]"


class CalledTool(NamedTuple):
    """A tool call of a model; `given` are the arguments as JSON text."""

    tool: str
    given: str = ""
    id: str = ""


class Utterance(NamedTuple):
    """One message: of the prompt, of a model, or of a tool, with the id of its call in `call`."""

    who: Who
    words: str = ""
    calls: tuple[CalledTool, ...] = ()
    call: str = ""


class TalkLine(NamedTuple):
    """One line of a conversation. `name` is the model or the tool. `tokens` and `credits` are those of an answer.
    `outcome`, `elapsed` and `place` are those of a tool call; a model that did not answer has the outcome `failed`.
    `lost` lines belong to a conversation that could not be continued; a line of `restart` says where and why the next
    one begins."""

    at: int
    who: Who
    name: str
    words: str = ""
    calls: tuple[CalledTool, ...] = ()
    tokens: int = 0
    credits: int = 0
    outcome: ToolOutcome = "done"
    elapsed: int = 0
    place: str = ""
    lost: bool = False


@dataclass(slots=True)
class TaskTalk:
    """The conversation of one task's models, in the order of the journal. `about` is the text of the task."""

    task: str
    agent: str
    about: str
    lines: list[TalkLine] = field(default_factory=list[TalkLine])

    def restart(self, turn: int) -> None:
        """Mark the lines from index `turn` on, where the current turn begins, as lost: a new conversation replaces
        them."""
        self.lines[turn:] = [line._replace(lost=True) for line in self.lines[turn:]]


def conversations(events: Iterable[Event], long: Mapping[int, str]) -> list[TaskTalk]:
    """Return the conversations of a run, one for each task that has one. `long` has the answers that are stored next to
    their events, by event number."""
    found: dict[str, TaskTalk] = {}
    turns: dict[str, int] = {}  # where the lines of each task's current turn begin
    for event in events:
        if event.kind in ("task.started", "task.submitted"):
            begun = TaskTalk(event.task, event.agent, task_of(read(event, FirstData)))
            found.setdefault(event.task, begun)
        elif event.kind in _READERS and (talk := found.get(event.task)) is not None:
            if event.kind == "talk.restarted":
                talk.restart(turns.get(event.task, 0))
            talk.lines += _READERS[event.kind](event, answer_of(event, long.get(event.seq)), talk)
        elif event.kind == "task.handed" and (talk := found.get(event.task)) is not None:
            turns[event.task] = len(talk.lines)
    return [talk for talk in found.values() if talk.lines]


# -- events ----------------------------------------------------------------------------------------------------------


def _answered(event: Event, answer: Json, talk: TaskTalk) -> Iterator[TalkLine]:
    data = read(event, ModelAnswered)
    kept = cast("dict[str, Any]", answer) if isinstance(answer, dict) else {}
    yield from _new_lines(event, kept.get("told", ""), talk)
    usage = data.get("usage", {})
    tokens = usage.get("input", 0) + usage.get("output", 0)
    said = _joined(said_in(kept["text"])) if "text" in kept else Utterance("model", GONE)
    yield TalkLine(event.at, "model", data["model"], said.words, said.calls, tokens, data.get("cost", 0))


def _new_lines(event: Event, told: str, talk: TaskTalk) -> Iterator[TalkLine]:
    """Yield the lines that were new to the model; recorded tool results have lines of their own."""
    if not told:
        if all(line.outcome == "failed" for line in talk.lines):  # nothing yet, or only failures
            yield TalkLine(event.at, "prompt", "", talk.about)
        return
    written = decoded(told)
    parts = cast("dict[str, Any]", written) if isinstance(written, dict) else {"messages": written}
    recorded = cast("list[str]", parts.get("results", []))
    for said in said_in(parts.get("messages", written)):
        if said.call not in recorded or not said.call:
            yield TalkLine(event.at, said.who, "", said.words, said.calls)


def _failed(event: Event, _answer: Json, _talk: TaskTalk) -> Iterator[TalkLine]:
    data = read(event, ModelFailed)
    status = f" ({data['status']})" if "status" in data else ""
    yield TalkLine(event.at, "model", data["model"], f"no answer: {data['why']}{status}", outcome="failed")


def _used(event: Event, answer: Json, _talk: TaskTalk) -> Iterator[TalkLine]:
    data = read(event, ToolDone)
    words = _value(answer[0]) if isinstance(answer, list) and answer else data.get("result", "")
    outcome, elapsed, place = data["outcome"], data.get("elapsed", 0), data.get("place", "")
    yield TalkLine(event.at, "tool", data["tool"], words, outcome=outcome, elapsed=elapsed, place=place)


def _value(value: Json) -> str:
    match value:
        case str():
            return value
        case {"langgraph": {"message": dict(message)}}:  # a result that is more than text
            return _joined(_message(message)).words
        case _:
            return encode(value)


def _restarted(event: Event, _answer: Json, _talk: TaskTalk) -> Iterator[TalkLine]:
    yield TalkLine(event.at, "restart", "", read(event, TalkRestarted)["why"])


_READERS: Final = {
    "model.answered": _answered,
    "model.failed": _failed,
    "tool.done": _used,
    "talk.restarted": _restarted,
}


# -- messages of frameworks ------------------------------------------------------------------------------------------


def said_in(kept: Json) -> list[Utterance]:
    """Return the messages of pydantic-ai, openai-agents or langchain, as JSON or as its text. Any other value counts as
    a model's text."""
    value = decoded(kept) if isinstance(kept, str) else kept
    match value:
        case {"output": list(items), "usage": _}:
            return [said for item in items for said in _openai(item)]
        case list():
            return [said for message in value for said in _message(message)]
        case dict():
            return _message(value)
        case _:
            return [Utterance("model", _text(kept))]


def _message(message: Json) -> list[Utterance]:
    match message:
        case {"message": dict(inner)}:
            return _message(inner)
        case {"parts": list(parts)}:
            return [_part(cast("dict[str, Any]", part)) for part in parts if isinstance(part, dict)]
        case {"type": str(kind), "data": dict(data)}:
            return [_langchain(kind, cast("dict[str, Any]", data))]
        case {"type": _} | {"role": _}:
            return _openai(message)
        case _:
            return [Utterance("model", _text(message))]


def _part(part: dict[str, Any]) -> Utterance:
    """Return the message of a part of pydantic-ai."""
    kind, call = str(part.get("part_kind", "")), str(part.get("tool_call_id", ""))
    words = _text(part.get("content"))
    if kind.endswith("tool-call"):
        return Utterance(
            "model", calls=(CalledTool(str(part.get("tool_name", "")), _arguments_text(part.get("args")), call),)
        )
    if kind in ("tool-return", "retry-prompt"):
        return Utterance("tool" if "tool_name" in part else "prompt", words, call=call)
    return Utterance("prompt" if kind.endswith("-prompt") else "model", words)


def _langchain(kind: str, data: dict[str, Any]) -> Utterance:
    """Return a message of LangChain as an utterance. `kind` is the type of the message, `data` has its fields."""
    words = _text(data.get("content"))
    if kind == "tool":
        return Utterance("tool", words, call=str(data.get("tool_call_id", "")))
    asked = cast("list[dict[str, Any]]", data.get("tool_calls") or [])
    calls = tuple(
        CalledTool(str(one.get("name", "")), _arguments_text(one.get("args")), str(one.get("id", ""))) for one in asked
    )
    return Utterance("model" if kind.startswith(("ai", "AI")) else "prompt", words, calls)


def _openai(item: Json) -> list[Utterance]:
    """Return the messages of an item of openai-agents."""
    if not isinstance(item, dict):
        return [Utterance("model", _text(item))]
    one = cast("dict[str, Any]", item)
    kind, call = str(one.get("type", "")), str(one.get("call_id", ""))
    if kind == "reasoning":
        words = _text(one.get("summary"))
        return [Utterance("model", words)] if words else []
    if kind.endswith("_call_output"):
        return [Utterance("tool", _text(one.get("output")), call=call)]
    if kind.endswith("_call"):
        return [
            Utterance(
                "model", calls=(CalledTool(str(one.get("name", kind)), _arguments_text(one.get("arguments")), call),)
            )
        ]
    return [Utterance("model" if one.get("role") == "assistant" else "prompt", _text(one.get("content")))]


def _joined(parts: list[Utterance]) -> Utterance:
    """Return the parts of an answer as one message."""
    words = "\n".join(part.words for part in parts if part.words)
    return Utterance("model", words, tuple(call for part in parts for call in part.calls))


def _arguments_text(arguments: Json) -> str:
    if isinstance(arguments, str):
        return arguments
    return encode(arguments) if arguments else ""


def _text(content: Json) -> str:
    """Return the readable text of a content: text, the texts of its parts, otherwise its kind."""
    match content:
        case None:
            return ""
        case str():
            return content
        case list():
            return "\n".join(filter(None, map(_text, content)))
        case {"text": str(text)} | {"refusal": str(text)} | {"msg": str(text)}:
            return text
        case {"type": str(kind)} | {"kind": str(kind)}:
            return f"[{kind}]"
        case _:
            return encode(content)
