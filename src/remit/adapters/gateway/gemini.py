"""Google's format for model requests: the model and the wish for a stream are in the path, not in the body."""

import re
from collections.abc import Iterable, Iterator
from http import HTTPStatus
from typing import Any, Final

from remit.adapters.gateway.reading import AnswerRead, are_counted, fields, items_of, json_text
from remit.adapters.gateway.tools import ToolPermit
from remit.adapters.gateway.wires import (
    JSON,
    STOPS,
    ReadRequest,
    RefusalSent,
    WireFormat,
    recorded_message,
    result,
    without,
)
from remit.core.prices import Usage
from remit.core.values import Json, encode, shown
from remit.errors import BadInput

MODELS: Final = "/v1beta/models"
_PATH: Final = re.compile(r"/(v1|v1beta)/models/([^/:]{1,200}):(generateContent|streamGenerateContent)")
# Tools that the provider runs, by the names under which a card lists them.
_HOSTED: Final = {
    "googleSearch": "web_search",
    "googleSearchRetrieval": "web_search",
    "googleMaps": "web_search",
    "urlContext": "web_fetch",
    "codeExecution": "code_execution",
    "fileSearch": "file_search",
}
_PARTS: Final = ("cachedContentTokenCount", "candidatesTokenCount", "thoughtsTokenCount", "toolUsePromptTokenCount")
_TOOLS: Final = ("tools", "toolConfig", "tool_config")


class Gemini(WireFormat):
    """Google's contents. There is one for each request: it knows the model and the version of its path, and whether it
    streams."""

    name = "gemini"
    path = f"{MODELS}/MODEL:generateContent"
    provider = "google"

    def __init__(self, model: str, *, streams: bool, version: str = "v1beta") -> None:
        self._model = model
        self._streams = streams
        self._version = version

    def speaks(self, provider: str) -> bool:
        return provider == "google"

    def place(self, model: str) -> str:
        way = "streamGenerateContent?alt=sse" if self._streams else "generateContent"
        return f"/{self._version}/models/{model}:{way}"

    def key_headers(self, key: str) -> dict[str, str]:
        return {"x-goog-api-key": key} if key else {}

    def read_request(self, body: dict[str, Any]) -> ReadRequest:
        if _config(body).get("candidateCount", 1) not in (1, None):
            raise BadInput("ask for one answer at a time: candidateCount is 1")
        return super().read_request({**body, "model": self._model, "stream": self._streams})

    def refusal(self, sentence: str, *, streams: bool) -> RefusalSent:
        del streams
        return RefusalSent(HTTPStatus.BAD_REQUEST, (JSON, STOPS), encode(_error(sentence)).encode())

    def cut(self, sentence: str, *, again: bool) -> bytes:
        error = _error(sentence, 500, "INTERNAL") if again else _error(sentence)
        return f"data: {encode(error)}\r\n\r\n".encode()

    def permitted_request(self, body: dict[str, Any], permit: ToolPermit) -> dict[str, Any]:
        given = items_of(body.get("tools"))
        kept = [one for tool in given if (one := _permitted_part(fields(tool), permit))]
        if kept == given:
            return body
        if not kept:
            return without(body, *_TOOLS)
        # Leave out toolConfig: it may name tools that were removed, and a provider refuses those names.
        return {**without(body, *_TOOLS[1:]), "tools": kept}

    def tool_names(self, tools: list[Any]) -> Iterable[str]:
        return [name for tool in map(fields, tools) for name in _names(tool)]

    def rewritten(self, body: dict[str, Any], model: str, most: int, provider: str) -> dict[str, Any]:
        config = {**_config(body), "maxOutputTokens": most}
        config.pop("max_output_tokens", None)
        thinking = fields(config.get("thinkingConfig"))
        budget = thinking.get("thinkingBudget")
        if isinstance(budget, int) and budget >= most:  # thoughts are a part of the output
            config["thinkingConfig"] = {**thinking, "thinkingBudget": max(0, most - 1)}
        return {**without(body, "generation_config"), "generationConfig": config}

    def take_event(self, answer: AnswerRead, event: dict[str, Any]) -> bool:
        if "error" in event:
            answer.failed = str(fields(event["error"]).get("message") or "the provider reported an error")
            return True
        called = self._take(answer, event)
        return called or answer.ended

    def take_whole(self, answer: AnswerRead, body: dict[str, Any]) -> bool:
        self._take(answer, body)
        return True

    def _take(self, answer: AnswerRead, body: dict[str, Any]) -> bool:
        """Read a part of an answer, or all of it. Return whether it calls a tool of the program."""
        answer.model = str(body.get("modelVersion") or answer.model)
        for candidate in map(fields, items_of(body.get("candidates"))[:1]):
            for part in map(fields, items_of(fields(candidate.get("content")).get("parts"))):
                _take_part(answer, part)
            if candidate.get("groundingMetadata"):
                answer.use_hosted("web_search")
            if candidate.get("urlContextMetadata"):
                answer.use_hosted("web_fetch")
            answer.ended = answer.ended or bool(candidate.get("finishReason"))
        answer.ended = answer.ended or bool(fields(body.get("promptFeedback")).get("blockReason"))
        _count(answer, fields(body.get("usageMetadata")))
        return bool(answer.calls)

    def _limit(self, body: dict[str, Any]) -> object:
        config = _config(body)
        return config.get("maxOutputTokens", config.get("max_output_tokens"))

    def _news(self, body: dict[str, Any]) -> list[Json]:
        contents = [fields(one) for one in items_of(body.get("contents"))]
        own = [place for place, one in enumerate(contents) if one.get("role") == "model"]
        found: list[Json] = []
        for one in contents[own[-1] + 1 :] if own else contents:
            parts = [fields(part) for part in items_of(one.get("parts"))]
            answers = [fields(part["functionResponse"]) for part in parts if "functionResponse" in part]
            found += [result(each.get("id") or each.get("name"), _output(each.get("response"))) for each in answers]
            if rest := [part for part in parts if "functionResponse" not in part]:
                found.append(recorded_message(one.get("role"), rest))
        return found


def gemini_at(path: str, query: bytes) -> Gemini | None:
    """Return the format of a request at this path, or None if it is no path of Google's. Raise `BadInput` for a stream
    that is not asked for with `alt=sse`."""
    found = _PATH.fullmatch(path)
    if found is None:
        return None
    version, model, way = found.groups()
    streams = way == "streamGenerateContent"
    if streams and b"alt=sse" not in query.split(b"&"):
        raise BadInput(f"ask for a stream of events: {shown(way)} takes alt=sse")
    return Gemini(model, streams=streams, version=version)


def _error(sentence: str, code: int = 400, status: str = "INVALID_ARGUMENT") -> dict[str, Json]:
    return {"error": {"code": code, "message": sentence, "status": status}}


def _config(body: dict[str, Any]) -> dict[str, Any]:
    return fields(body.get("generationConfig") or body.get("generation_config"))


def _declared(tool: dict[str, Any]) -> tuple[str, list[Any]]:
    """Return the name of the field of a tool that lists functions, and the list; "" and an empty list if there is
    none."""
    name = next((name for name in ("functionDeclarations", "function_declarations") if name in tool), "")
    return name, items_of(tool.get(name))


def _names(tool: dict[str, Any]) -> Iterator[str]:
    _, declared = _declared(tool)
    yield from (name for one in declared if isinstance(name := fields(one).get("name"), str))
    yield from filter(None, map(_hosted, tool))


def _hosted(field: str) -> str:
    """Return the name of the tool that the provider runs and that this field asks for, otherwise ""."""
    first, *rest = field.split("_")
    return _HOSTED.get(first + "".join(word.capitalize() for word in rest), "")


def _permitted_part(tool: dict[str, Any], permit: ToolPermit) -> dict[str, Any]:
    """Return a tool with only the fields and functions that are permitted; empty if none is."""
    field, declared = _declared(tool)
    kept = {name: value for name, value in tool.items() if name != field and permit.at_provider(_hosted(name) or name)}
    functions = [one for one in declared if permit.shows(str(fields(one).get("name", "")))]
    return {**kept, field: functions} if functions else kept


def _take_part(answer: AnswerRead, part: dict[str, Any]) -> None:
    if "functionCall" in part:
        call = fields(part["functionCall"])
        place = len(answer.calls)
        answer.set_call(place, call.get("id") or call.get("name"), call.get("name"), json_text(call.get("args") or {}))
    elif "executableCode" in part:
        answer.use_hosted("code_execution")
    elif not part.get("thought"):
        answer.say(part.get("text"))


def _count(answer: AnswerRead, usage: dict[str, Any]) -> None:
    """Record the usage, which every part of a stream may repeat. Google omits counts of 0."""
    parts: dict[str, Any] = {
        "promptTokenCount": usage.get("promptTokenCount"),
        **{name: usage.get(name, 0) for name in _PARTS},
    }
    if not usage:
        return
    answer.usage = None
    if are_counted(parts, *parts):
        cached = parts["cachedContentTokenCount"]
        read = max(parts["promptTokenCount"] + parts["toolUsePromptTokenCount"], cached)
        written = parts["candidatesTokenCount"] + parts["thoughtsTokenCount"]
        answer.usage, answer.read = Usage(read, written, cached), read


def _output(response: object) -> object:
    """Return the readable part of a function's result."""
    given = fields(response)
    found = given.get("output", given.get("result"))
    return found if isinstance(found, str) else json_text(response)
