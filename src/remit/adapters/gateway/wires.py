"""The formats in which programs ask models: Anthropic's messages, OpenAI's chat completions and its responses.

A format reads a request, rewrites it for the model and the output limit that the gateway allows, reads the answer, and
spells a refusal so that the program stops at once and shows the sentence. Nothing here sends anything.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import replace
from http import HTTPStatus
from typing import Any, ClassVar, Final, NamedTuple

from remit.adapters.gateway.reading import (
    RESULT,
    AnswerRead,
    StreamedAnswer,
    WholeAnswer,
    are_counted,
    count,
    fields,
    items_of,
    json_text,
)
from remit.adapters.gateway.tools import ToolPermit, hosted, permitted
from remit.core.prices import Usage
from remit.core.values import Json, encode, shown
from remit.errors import BadInput

LEAST_THINKING: Final = 1_280  # output tokens; with fewer there is no room to think
JSON: Final = ("content-type", "application/json")
STOPS: Final = ("x-should-retry", "false")  # Anthropic's clients heed it


class RefusalSent(NamedTuple):
    """A refusal as it is sent to a program."""

    status: int
    headers: tuple[tuple[str, str], ...]
    body: bytes


class ReadRequest(NamedTuple):
    """A program's request: the model it names, its output limit (None without one), whether it wants a stream, the
    names of the tools it offers, and the part that is new since the model's last answer, as it is recorded."""

    model: str
    most: int | None
    streams: bool
    tools: frozenset[str]
    news: list[Json]


class WireFormat(ABC):
    """One format. `path` is where programs send it, `address` the path below a provider's base address. `provider` is
    asked if no model is named."""

    name: ClassVar[str]
    path: ClassVar[str]
    address: ClassVar[str] = ""
    provider: ClassVar[str] = "openai"

    def speaks(self, provider: str) -> bool:
        """Whether this provider's models can be asked in this format."""
        return provider not in ("anthropic", "google")

    def place(self, model: str) -> str:
        """Return the path for requests to a model, below a provider's base address."""
        del model
        return self.address

    def read_request(self, body: dict[str, Any]) -> ReadRequest:
        """Read a request. Raise `BadInput` if it cannot be passed on."""
        model, streams = body.get("model"), body.get("stream", False)
        if not isinstance(model, str) or not model:
            raise BadInput("a request names its model: model is missing")
        if not isinstance(streams, bool):
            raise BadInput(f"stream is true or false, not {shown(streams)}")
        tools = frozenset(self.tool_names(items_of(body.get("tools"))))
        return ReadRequest(model, self._most(body), streams, tools, self._news(body))

    def permitted_request(self, body: dict[str, Any], permit: ToolPermit) -> dict[str, Any]:
        """Return the request without the tools that the program may not use."""
        return permitted(body, permit)

    def _most(self, body: dict[str, Any]) -> int | None:
        given = self._limit(body)
        if given is None:
            return None
        if not isinstance(given, int) or isinstance(given, bool) or given < 1:
            raise BadInput(f"the limit of output tokens is a number of at least 1, not {shown(given)}")
        return given

    def reader(self, *, streams: bool, drops_usage: bool = False) -> StreamedAnswer | WholeAnswer:
        """Return a reader for one answer."""
        return StreamedAnswer(self.take_event, drops_usage=drops_usage) if streams else WholeAnswer(self.take_whole)

    def refusal(self, sentence: str, *, streams: bool) -> RefusalSent:
        """Return a refusal in this format. 400 is the one status at which every program stops at once and shows the
        sentence. `streams` says whether the program asked for a stream."""
        del streams
        body: dict[str, Json] = {"error": {"message": sentence, "type": "invalid_request_error", "code": None}}
        return RefusalSent(HTTPStatus.BAD_REQUEST, (JSON, STOPS), encode(body).encode())

    def cut(self, sentence: str, *, again: bool) -> bytes:
        """Return the bytes that end a stream that broke off in the middle. With `again`, the program may ask again."""
        kind = "server_error" if again else "invalid_request_error"
        body: dict[str, Json] = {"error": {"message": sentence, "type": kind, "code": None}}
        return f"data: {encode(body)}\n\n".encode()

    def drops_usage(self, body: dict[str, Any]) -> bool:
        """Whether the answer has a part with its usage that the program did not ask for."""
        del body
        return False

    def key_headers(self, key: str) -> dict[str, str]:
        """Return the header that carries a provider's key."""
        return {"authorization": f"Bearer {key}"} if key else {}

    def _limit(self, body: dict[str, Any]) -> object:
        """Return the output limit that a request states, or None."""
        return next((body[name] for name in self._limits() if body.get(name) is not None), None)

    def _limits(self) -> tuple[str, ...]:
        """Return the names under which a request states its output limit."""
        return ()

    @abstractmethod
    def tool_names(self, tools: list[Any]) -> Iterable[str]:
        """Return the names of the offered tools."""

    @abstractmethod
    def rewritten(self, body: dict[str, Any], model: str, most: int, provider: str) -> dict[str, Any]:
        """Return the request with this model and this output limit."""

    @abstractmethod
    def take_event(self, answer: AnswerRead, event: dict[str, Any]) -> bool: ...

    @abstractmethod
    def take_whole(self, answer: AnswerRead, body: dict[str, Any]) -> bool: ...

    @abstractmethod
    def _news(self, body: dict[str, Any]) -> list[Json]: ...


def without(body: dict[str, Any], *left_out: str) -> dict[str, Any]:
    """Return a request without some of its fields."""
    return {name: value for name, value in body.items() if name not in left_out}


def _after_last(messages: list[Any], roles: Iterable[str]) -> list[Any]:
    """Return the messages after the last one of these roles, or all of them."""
    own = frozenset(roles)
    places = [place for place, one in enumerate(messages) if fields(one).get("role") in own]
    return messages[places[-1] + 1 :] if places else messages


def _words(content: Any) -> str:
    """Return the text of a message's content, with the type in brackets for each part that is not text."""
    if isinstance(content, str):
        return content
    parts = [fields(part) for part in items_of(content)]
    return "\n".join(
        part["text"] if isinstance(part.get("text"), str) else f"[{part.get('type', 'part')}]" for part in parts
    )


def result(call: Any, output: Any) -> Json:
    """Return the result of a tool call as it is recorded."""
    return {"type": RESULT, "call_id": str(call or ""), "output": _words(output)}


def recorded_message(role: Any, content: Any) -> Json:
    """Return a message as it is recorded."""
    return {"type": "message", "role": str(role or "user"), "content": _words(content)}


class Messages(WireFormat):
    """Anthropic's messages."""

    name = "messages"
    path = "/v1/messages"
    address = "/v1/messages"
    provider = "anthropic"

    def speaks(self, provider: str) -> bool:
        return provider == "anthropic"

    def key_headers(self, key: str) -> dict[str, str]:
        return {"x-api-key": key} if key else {}

    def refusal(self, sentence: str, *, streams: bool) -> RefusalSent:
        del streams
        return RefusalSent(HTTPStatus.BAD_REQUEST, (JSON, STOPS), encode(_messages_error(sentence)).encode())

    def cut(self, sentence: str, *, again: bool) -> bytes:
        error = _messages_error(sentence, "api_error" if again else "invalid_request_error")
        return f"event: error\ndata: {encode(error)}\n\n".encode()

    def permitted_request(self, body: dict[str, Any], permit: ToolPermit) -> dict[str, Any]:
        sent = permitted(body, permit)
        return sent if permit.at_provider("mcp") else without(sent, "mcp_servers")

    def _limits(self) -> tuple[str, ...]:
        return ("max_tokens",)

    def tool_names(self, tools: list[Any]) -> Iterable[str]:
        return [name for tool in tools if isinstance(name := fields(tool).get("name"), str)]

    def rewritten(self, body: dict[str, Any], model: str, most: int, provider: str) -> dict[str, Any]:
        sent = {**body, "model": model, "max_tokens": most}
        budget = fields(sent.get("thinking")).get("budget_tokens")
        if isinstance(budget, int) and budget >= most:
            if most < LEAST_THINKING:
                del sent["thinking"]
            else:
                sent["thinking"] = {**fields(sent["thinking"]), "budget_tokens": most - 1}
        return sent

    def take_event(self, answer: AnswerRead, event: dict[str, Any]) -> bool:
        match event.get("type"):
            case "message_start":
                message = fields(event.get("message"))
                answer.model = str(message.get("model") or "")
                self._count(answer, fields(message.get("usage")))
            case "content_block_start":
                _take_block(answer, event.get("index"), fields(event.get("content_block")))
            case "content_block_delta":
                delta = fields(event.get("delta"))
                if delta.get("type") == "text_delta":
                    answer.say(delta.get("text"))
                elif delta.get("type") == "input_json_delta":
                    answer.call(event.get("index"), arguments=delta.get("partial_json"))
            case "content_block_stop":
                return bool(answer.calls)  # a program may act on the call as soon as it is complete
            case "message_delta":
                self._count(answer, fields(event.get("usage")))
            case "message_stop":
                answer.ended = True
                return True
            case "error":
                answer.failed = str(fields(event.get("error")).get("message") or "the provider reported an error")
                return True
            case _:
                pass
        return False

    def take_whole(self, answer: AnswerRead, body: dict[str, Any]) -> bool:
        answer.model = str(body.get("model") or "")
        for place, block in enumerate(items_of(body.get("content"))):
            one = fields(block)
            if one.get("type") == "tool_use":
                answer.set_call(place, one.get("id"), one.get("name"), json_text(one.get("input")))
            else:
                _take_block(answer, place, one)
        self._count(answer, fields(body.get("usage")))
        answer.ended = body.get("type") == "message"
        return True

    def _count(self, answer: AnswerRead, usage: dict[str, Any]) -> None:
        """Record the usage: the input comes at the beginning, the output at the end, and either may come twice."""
        read, written = count(usage.get("cache_read_input_tokens")), count(usage.get("cache_creation_input_tokens"))
        known = answer.usage or Usage()
        if are_counted(usage, "input_tokens"):
            ages = fields(usage.get("cache_creation"))  # only at the beginning
            hour = min(written, count(ages.get("ephemeral_1h_input_tokens")) if ages else known.cache_written_1h)
            known = Usage(usage["input_tokens"] + read + written, known.output, read, written, cache_written_1h=hour)
            answer.read = known.input
        if are_counted(usage, "output_tokens"):
            known = replace(known, output=usage["output_tokens"])
        if known.input:
            answer.usage = known

    def _news(self, body: dict[str, Any]) -> list[Json]:
        found: list[Json] = []
        for message in _after_last(items_of(body.get("messages")), ("assistant",)):
            one = fields(message)
            parts = [fields(part) for part in items_of(one.get("content"))]
            results = [part for part in parts if part.get("type") == "tool_result"]
            found += [result(part.get("tool_use_id"), part.get("content")) for part in results]
            rest = one.get("content") if isinstance(one.get("content"), str) else [p for p in parts if p not in results]
            if rest:
                found.append(recorded_message(one.get("role"), rest))
        return found


def _messages_error(sentence: str, kind: str = "invalid_request_error") -> dict[str, Json]:
    return {"type": "error", "error": {"type": kind, "message": sentence}}


def _take_block(answer: AnswerRead, place: object, block: dict[str, Any]) -> None:
    if block.get("type") == "tool_use":
        given = block.get("input")
        answer.call(place, id_=block.get("id"), name=block.get("name"), arguments=json_text(given) if given else "")
    elif block.get("type") == "text":
        answer.say(block.get("text"))
    elif block.get("type") in ("server_tool_use", "mcp_tool_use"):
        answer.use_hosted(block.get("name"))


class Chat(WireFormat):
    """OpenAI's chat completions, which many providers speak."""

    name = "chat"
    path = "/v1/chat/completions"
    address = "/chat/completions"

    def read_request(self, body: dict[str, Any]) -> ReadRequest:
        if body.get("n", 1) not in (1, None):
            raise BadInput("ask for one answer at a time: n is 1")
        return super().read_request(body)

    def permitted_request(self, body: dict[str, Any], permit: ToolPermit) -> dict[str, Any]:
        sent = permitted(body, permit)
        return sent if permit.at_provider("web_search") else without(sent, "web_search_options")

    def _limits(self) -> tuple[str, ...]:
        return ("max_completion_tokens", "max_tokens")

    def tool_names(self, tools: list[Any]) -> Iterable[str]:
        described = [fields(fields(tool).get("function") or fields(tool).get("custom")) for tool in tools]
        return [name for one in described if isinstance(name := one.get("name"), str)]

    def rewritten(self, body: dict[str, Any], model: str, most: int, provider: str) -> dict[str, Any]:
        usual = "max_completion_tokens" if provider == "openai" else "max_tokens"
        limit = next((name for name in self._limits() if body.get(name) is not None), usual)
        sent = {**body, "model": model, limit: most}
        if body.get("stream"):
            sent["stream_options"] = {**fields(body.get("stream_options")), "include_usage": True}
        return sent

    def drops_usage(self, body: dict[str, Any]) -> bool:
        return bool(body.get("stream")) and not fields(body.get("stream_options")).get("include_usage")

    def take_event(self, answer: AnswerRead, event: dict[str, Any]) -> bool:
        if "error" in event and not event.get("choices"):
            answer.failed = str(fields(event["error"]).get("message") or "the provider reported an error")
            return True
        answer.model = answer.model or str(event.get("model") or "")
        finished = False
        for choice in items_of(event.get("choices")):
            one = fields(choice)
            delta = fields(one.get("delta"))
            _take_chat_words(answer, delta)
            for call in items_of(delta.get("tool_calls")):
                _take_chat_call(answer, fields(call))
            finished = finished or one.get("finish_reason") is not None
        _count_chat(answer, fields(event.get("usage")))
        return finished

    def take_whole(self, answer: AnswerRead, body: dict[str, Any]) -> bool:
        answer.model = str(body.get("model") or "")
        for choice in items_of(body.get("choices")):
            message = fields(fields(choice).get("message"))
            _take_chat_words(answer, message)
            for place, call in enumerate(items_of(message.get("tool_calls"))):
                _take_chat_call(answer, {"index": place, **fields(call)})
        _count_chat(answer, fields(body.get("usage")))
        answer.ended = bool(items_of(body.get("choices")))
        return True

    def _news(self, body: dict[str, Any]) -> list[Json]:
        found: list[Json] = []
        for message in _after_last(items_of(body.get("messages")), ("assistant",)):
            one = fields(message)
            if one.get("role") in ("tool", "function"):
                found.append(result(one.get("tool_call_id"), one.get("content")))
            else:
                found.append(recorded_message(one.get("role"), one.get("content")))
        return found


def _take_chat_words(answer: AnswerRead, part: dict[str, Any]) -> None:
    answer.say(part.get("content"))
    if part.get("annotations"):  # the sources of a search are all that this format says of it
        answer.use_hosted("web_search")


def _take_chat_call(answer: AnswerRead, call: dict[str, Any]) -> None:
    given = fields(call.get("function") or call.get("custom"))
    arguments = given.get("arguments", given.get("input"))
    answer.call(call.get("index"), id_=call.get("id"), name=given.get("name"), arguments=arguments)


def _count_chat(answer: AnswerRead, usage: dict[str, Any]) -> None:
    if are_counted(usage, "prompt_tokens", "completion_tokens"):
        _note_usage(answer, usage["prompt_tokens"], usage["completion_tokens"], usage.get("prompt_tokens_details"))


def _note_usage(answer: AnswerRead, read: int, written: int, parts: Any) -> None:
    """Record the usage in OpenAI's form, where the cached parts are parts of the input."""
    cached, stored = (count(fields(parts).get(name)) for name in ("cached_tokens", "cache_write_tokens"))
    answer.read = max(read, cached + stored)
    answer.usage = Usage(answer.read, written, cached, stored)


class Responses(WireFormat):
    """OpenAI's responses."""

    name = "responses"
    path = "/v1/responses"
    address = "/responses"

    def read_request(self, body: dict[str, Any]) -> ReadRequest:
        if body.get("background"):
            raise BadInput("a request in the background would go on without its task: leave background out")
        return super().read_request(body)

    def refusal(self, sentence: str, *, streams: bool) -> RefusalSent:
        """Return a refusal in this format. If the program asked for a stream, the refusal is a failed response in a
        stream with status 200: programs show its sentence and nothing around it."""
        if not streams:
            return super().refusal(sentence, streams=streams)
        return RefusalSent(HTTPStatus.OK, (("content-type", "text/event-stream"),), self.cut(sentence, again=False))

    def cut(self, sentence: str, *, again: bool) -> bytes:
        failed: dict[str, Json] = {
            "id": "resp_refused",
            "object": "response",
            "status": "failed",
            "error": {"code": "server_error" if again else "invalid_prompt", "message": sentence},
            "output": [],
        }
        event = encode({"type": "response.failed", "sequence_number": 0, "response": failed})
        return f"event: response.failed\ndata: {event}\n\n".encode()

    def _limits(self) -> tuple[str, ...]:
        return ("max_output_tokens",)

    def tool_names(self, tools: list[Any]) -> Iterable[str]:
        for tool in map(fields, tools):
            if tool.get("type") == "namespace":
                yield from self.tool_names(items_of(tool.get("tools")))
            elif isinstance(name := tool.get("name") or tool.get("type"), str):
                yield name

    def rewritten(self, body: dict[str, Any], model: str, most: int, provider: str) -> dict[str, Any]:
        return {**body, "model": model, "max_output_tokens": most}

    def take_event(self, answer: AnswerRead, event: dict[str, Any]) -> bool:
        match event.get("type"):
            case "response.output_text.delta":
                answer.say(event.get("delta"))
            case "response.output_item.done":
                return _take_item(answer, event.get("output_index"), fields(event.get("item")))
            case "response.completed" | "response.incomplete":
                response = fields(event.get("response"))
                answer.model = str(response.get("model") or "")
                _count_responses(answer, fields(response.get("usage")))
                answer.ended = True
                return True
            case "response.failed" | "error":
                told = fields(fields(event.get("response")).get("error") or event)
                answer.failed = str(told.get("message") or "the provider reported an error")
                return True
            case _:
                pass
        return False

    def take_whole(self, answer: AnswerRead, body: dict[str, Any]) -> bool:
        answer.model = str(body.get("model") or "")
        for place, item in enumerate(items_of(body.get("output"))):
            one = fields(item)
            if not _take_item(answer, place, one):
                answer.say(_words(one.get("content")))
        _count_responses(answer, fields(body.get("usage")))
        answer.ended = body.get("status") in ("completed", "incomplete")
        return True

    def _news(self, body: dict[str, Any]) -> list[Json]:
        given = body.get("input")
        if isinstance(given, str):
            return [recorded_message("user", given)]
        items = items_of(given)
        own = [place for place, one in enumerate(items) if _is_answer(fields(one))]
        found: list[Json] = []
        for item in items[own[-1] + 1 :] if own else items:
            one = fields(item)
            if str(one.get("type", "")).endswith("_call_output"):
                found.append(result(one.get("call_id"), one.get("output")))
            else:
                found.append(recorded_message(one.get("role"), one.get("content")))
        return found


def _is_answer(item: dict[str, Any]) -> bool:
    return item.get("role") == "assistant" or str(item.get("type", "")).endswith("_call")


def _take_item(answer: AnswerRead, place: object, item: dict[str, Any]) -> bool:
    """Read an item of an answer. Return whether it is a call of a tool that the program runs."""
    kind = str(item.get("type", ""))
    if not kind.endswith("_call"):
        return False
    if name := hosted(kind.removesuffix("_call")):
        answer.use_hosted(name)
        return False
    given = item.get("arguments", item.get("input", item.get("action")))
    arguments = given if isinstance(given, str) else json_text(given)
    answer.set_call(place, item.get("call_id") or item.get("id"), item.get("name") or kind, arguments)
    return True


def _count_responses(answer: AnswerRead, usage: dict[str, Any]) -> None:
    if are_counted(usage, "input_tokens", "output_tokens"):
        _note_usage(answer, usage["input_tokens"], usage["output_tokens"], usage.get("input_tokens_details"))


WIRES: Final[dict[str, WireFormat]] = {wire.path: wire for wire in (Messages(), Chat(), Responses())}
