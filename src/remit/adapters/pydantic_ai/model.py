"""A model of pydantic-ai whose requests go through the current turn, which has the journal and the money."""

from collections.abc import AsyncGenerator, Iterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final

import anyio
from pydantic_ai.exceptions import ModelConnectionError, ModelRequestTimeout, UnexpectedModelBehavior
from pydantic_ai.messages import (
    BinaryContent,
    ModelMessage,
    ModelRequest,
    ModelResponse,
    PartDeltaEvent,
    PartStartEvent,
    TextPart,
    TextPartDelta,
    UserPromptPart,
)
from pydantic_ai.models import CompletedStreamedResponse, Model, ModelRequestParameters, StreamedResponse
from pydantic_ai.settings import ModelSettings
from pydantic_ai.tools import RunContext

from remit.adapters.bodies import bounded, unreadable
from remit.adapters.guests import NextRequest, conversed, usage_of
from remit.adapters.pydantic_ai.clients import (
    Clients,
    EmptyAnswer,
    asks_again,
    failure_of,
    http_clients,
    key_in,
    streams,
)
from remit.adapters.pydantic_ai.talking import (
    DIALECT,
    calls_of,
    clean_text,
    cleaned,
    encoded,
    is_empty,
    made_by,
    portable,
    size_of,
    trimmed,
)
from remit.core.artifact import Artifact, digests_in, reference_in
from remit.core.prices import Usage
from remit.core.recovery import ModelFailure, ModelTry
from remit.core.secret import Secret
from remit.errors import BadInput, Refused
from remit.ports.models import Hear, ModelAnswer, ModelCall
from remit.ports.turn import TurnLike, current_turn

MAX_TOKENS: Final = 4_096  # default limit of an answer
_IMAGES: Final = frozenset(("image/png", "image/jpeg", "image/gif", "image/webp"))
_PDF: Final = "application/pdf"
_LARGEST: Final = 10_000_000  # bytes of a file that a model is shown
_MOST_FILES: Final = 20
_IMAGE_TOKENS: Final = 2_000  # rough counts, for holds
_BYTES_PER_TOKEN: Final = 20  # of a document
_STUMBLES: Final = (AssertionError, AttributeError, LookupError, TypeError, ValueError)


def turn_under_way(what: str) -> TurnLike:
    """Return the turn that the calling code runs in. Raise `BadInput` outside of one."""
    turn = current_turn()
    if turn is None:
        raise BadInput(f"{what} works inside of a turn only; run the agent through its runtime, not by itself")
    return turn


class GovernedModel(Model[Any]):
    """The model that pydantic-ai sees for all models of `clients`; the turn chooses the one that answers. It has no
    profile of its own: a request is prepared for each model when it is sent. `empty` says that an answer without
    content is valid, and `rewrites` that its agent may change the earlier conversation."""

    def __init__(
        self, clients: Clients, *, max_tokens: int = MAX_TOKENS, empty: bool = False, rewrites: bool = True
    ) -> None:
        super().__init__()
        self.rewrites = rewrites
        self.clients = clients
        self.max_tokens = max_tokens
        self.empty = empty

    @property
    def model_name(self) -> str:
        return self.clients.choices[0].model.partition(":")[2] or self.clients.choices[0].model

    @property
    def system(self) -> str:
        return self.clients.choices[0].model.partition(":")[0]

    @property
    def model_id(self) -> str:
        return self.clients.choices[0].model

    @property
    def settings(self) -> ModelSettings | None:
        """The settings of the first model, if it was given as an object."""
        return None if self.clients.first is None else self.clients.first.settings

    def prepare_request(
        self, model_settings: ModelSettings | None, model_request_parameters: ModelRequestParameters
    ) -> tuple[ModelSettings | None, ModelRequestParameters]:
        return model_settings, model_request_parameters

    def prepare_messages(
        self, messages: list[ModelMessage], model_request_parameters: ModelRequestParameters | None = None
    ) -> list[ModelMessage]:
        return messages

    def _start_request_deadline(self, model_settings: ModelSettings | None, *, stream: bool) -> None:
        """Set no time limit over all tries: each try has its own."""

    def _refresh_http_client(self) -> None:
        for model in self.clients.own:
            model._refresh_http_client()  # noqa: SLF001 - as the framework's own wrapper models do

    async def request(
        self,
        messages: list[ModelMessage],
        model_settings: ModelSettings | None,
        model_request_parameters: ModelRequestParameters,
    ) -> ModelResponse:
        """Ask through the turn. If the task is run again, return the recorded answer."""
        turn = turn_under_way(f"model {self.model_id}")
        every = frozenset(model_request_parameters.tool_defs)
        shown = await _permitted_parameters(turn, model_request_parameters, every)
        files = await _files_in(turn, messages)

        def make(request: NextRequest[ModelMessage]) -> ModelCall:
            return _Asked(self, request, model_settings, shown, every, files).call()

        return await conversed(turn, DIALECT, messages, make, rewrites=self.rewrites)

    @asynccontextmanager
    async def request_stream(
        self,
        messages: list[ModelMessage],
        model_settings: ModelSettings | None,
        model_request_parameters: ModelRequestParameters,
        run_context: RunContext[Any] | None = None,
    ) -> AsyncGenerator[StreamedResponse]:
        """Ask as in `request`, and yield the whole answer as a stream: only a whole answer is recorded."""
        answer = await self.request(messages, model_settings, model_request_parameters)
        yield CompletedStreamedResponse(answer, model_request_parameters=model_request_parameters, replay_events=True)


async def _permitted_parameters(
    turn: TurnLike, parameters: ModelRequestParameters, every: frozenset[str]
) -> ModelRequestParameters:
    """Return the parameters without the tools that the model may not use for this task, and without verbs that cannot
    succeed now."""
    if not parameters.function_tools and not parameters.native_tools:
        return parameters
    offers = await turn.offers()
    if not parameters.native_tools and offers.shows_all(every):
        return parameters
    tools = [tool for tool in parameters.function_tools if offers.shows(tool.name)]
    native = [tool for tool in parameters.native_tools if offers.at_provider(tool.kind)]
    if len(tools) == len(parameters.function_tools) and len(native) == len(parameters.native_tools):
        return parameters
    return replace(parameters, function_tools=tools, native_tools=native)


# -- files ---------------------------------------------------------------------------------------------------


def _prompts(messages: list[ModelMessage]) -> Iterator[str]:
    """Yield the texts of prompts that may refer to files."""
    for message in messages:
        if isinstance(message, ModelRequest):
            for part in message.parts:
                if isinstance(part, UserPromptPart) and isinstance(part.content, str) and "sha256:" in part.content:
                    yield part.content


async def _files_in(turn: TurnLike, messages: list[ModelMessage]) -> dict[str, Any]:
    """Open the images and documents that the prompts refer to and that the holder sees. This is done again for an
    answer from the record, so that the turn gets the trust labels of the files."""
    files: dict[str, Any] = {}
    for text in _prompts(messages):
        for digest in sorted(digests_in(text) - files.keys()):
            reference = reference_in(text, digest)
            if reference is None or reference.media_type not in (*_IMAGES, _PDF) or len(files) == _MOST_FILES:
                continue
            try:
                files[digest] = await turn.artifacts.open(reference)
            except Refused:  # the text names a file that was not passed to the holder
                continue
    return files


def _tokens(file: Artifact) -> int:
    return _IMAGE_TOKENS if file.media_type in _IMAGES else max(_IMAGE_TOKENS, file.size // _BYTES_PER_TOKEN)


async def _with_files(messages: list[ModelMessage], files: Mapping[str, Any], model: Model) -> list[ModelMessage]:
    """Return the messages with each file after the prompt that refers to it. The record has only the reference; the
    content is read for each request."""
    left, told = dict(files), list[ModelMessage]()
    for message in messages:
        if not isinstance(message, ModelRequest):
            told.append(message)
            continue
        parts = [*message.parts]
        for at, part in enumerate(parts):
            if isinstance(part, UserPromptPart) and isinstance(part.content, str):
                named = [digest for digest in left if digest in part.content]
                shown = [item for digest in named for item in await _shown_file(left.pop(digest), model)]
                if shown:
                    parts[at] = replace(part, content=[part.content, *shown])
        told.append(replace(message, parts=parts))
    return told


async def _shown_file(opened: Any, model: Model) -> list[str | BinaryContent]:
    """Return a file as a part of a prompt, after a line with its name; for a file that the model does not take, a line
    that says so."""
    file: Artifact = opened.artifact
    about = f"{file.name} ({file.media_type}, {file.size:,} bytes)"
    if file.size > _LARGEST or not _takes(model, file.media_type):
        why = "it is too large" if file.size > _LARGEST else "you cannot read files of this kind"
        return [f"[the file {about} is not shown: {why}; read_artifact returns the text of a file]"]
    return [f"[the file {about}]", BinaryContent(data=await opened.read(), media_type=file.media_type)]


def _takes(model: Model, media_type: str) -> bool:
    profile = model.profile
    if media_type in _IMAGES:
        return bool(profile.get("supports_image_input", True))
    known = profile.get("supported_document_media_types")
    return bool(profile.get("supports_document_input", True)) and (known is None or media_type in known)


@dataclass(frozen=True, slots=True)
class _Asked:
    """One request, before a model is chosen."""

    model: GovernedModel
    request: NextRequest[ModelMessage]
    settings: ModelSettings | None
    parameters: ModelRequestParameters
    callable: frozenset[str]  # names of all tools, including those that the model is not shown
    files: Mapping[str, Any]  # opened artifacts that the prompts refer to, by digest

    @property
    def messages(self) -> list[ModelMessage]:
        return self.request.messages

    def call(self) -> ModelCall:
        return ModelCall(
            digest="",
            choices=self.model.clients.choices_now(),
            size=partial(size_of, self.messages, self.parameters) if not self.files else self._size,
            most=(self.settings or {}).get("max_tokens") or self.model.max_tokens,
            send=self.send,
            failure=self.failure,
            tools=self.callable,
            ready=self.ready,
            at=self.request.at,
        )

    def _size(self, trim: int = 0) -> int:
        return size_of(self.messages, self.parameters, trim) + sum(_tokens(one.artifact) for one in self.files.values())

    def failure(self, error: Exception) -> ModelFailure | None:
        return failure_of(error, self.model.clients.secrets)

    async def ready(self, tried: ModelTry) -> Secret | None:
        """Create the client for a request. Return its key, which is redacted, or None if it has none."""
        clients = self.model.clients
        model = await clients.find(tried.model, tried.key, tried.secret)
        if tried.secret is not None:
            return tried.secret
        return clients.key_to_redact(tried.key) if tried.key else key_in(model)

    async def send(self, tried: ModelTry, most: int, hear: Hear | None) -> ModelAnswer:
        """Send the request once, to this model with this key."""
        model = await self.model.clients.find(tried.model, tried.key, tried.secret)
        limit = (self.settings or {}).get("request_timeout")
        with bounded(*http_clients(model)):
            if limit is None:
                return self._reply(await self._read(model, tried, most, hear), tried)
            with anyio.move_on_after(limit):
                return self._reply(await self._read(model, tried, most, hear), tried)
        raise ModelRequestTimeout(tried.model, limit)

    async def _read(self, model: Model, tried: ModelTry, most: int, hear: Hear | None) -> ModelResponse:
        """Return the answer. If the client fails on a malformed answer with one of `_STUMBLES`, raise
        `UnexpectedModelBehavior` in its place."""
        try:
            return await self._answer(model, tried, most, hear)
        except _STUMBLES as error:
            if model.provider is None:  # without a provider there is no server to blame
                raise
            if unreadable(error):
                raise
            what = type(error).__name__
        raise UnexpectedModelBehavior(f"the answer cannot be read: {what}")

    async def _answer(self, model: Model, tried: ModelTry, most: int, hear: Hear | None) -> ModelResponse:
        settings = ModelSettings(**(self.settings or {}))
        settings["max_tokens"] = most
        if asks_again(model):
            settings["max_retries"] = 0
        told = portable(trimmed(self.messages, tried.trim), tried.model)
        if self.files:
            told = await _with_files(told, self.files, model)
        messages = model.prepare_messages(told, self.parameters)
        if hear is not None and streams(model):
            async with model.request_stream(messages, settings, self.parameters) as stream:
                return await _read_stream(stream, tried, hear)
        answer = await model.request(messages, settings, self.parameters)
        if hear is not None:
            hear(clean_text(answer.text or ""))
        return answer

    def _reply(self, answer: ModelResponse, tried: ModelTry) -> ModelAnswer:
        answer = made_by(cleaned(answer, self.request.ids), tried.model)
        if is_empty(answer) and not self.model.empty:
            raise EmptyAnswer(_usage(answer))
        try:
            text = encoded(answer)
        except ValueError:  # it contains something that cannot be serialized
            raise UnexpectedModelBehavior("the answer cannot be kept as text") from None
        return ModelAnswer(text, tried.model, _usage(answer), calls_of(answer), answer)


async def _read_stream(stream: StreamedResponse, tried: ModelTry, hear: Hear) -> ModelResponse:
    """Read a stream to its end, pass its text on as it arrives, and return the answer."""
    async for event in stream:
        match event:
            case PartStartEvent(part=TextPart(content=str() as text)) if text:
                hear(clean_text(text))
            case PartDeltaEvent(delta=TextPartDelta(content_delta=str() as text)) if text:
                hear(clean_text(text))
            case _:
                pass
    answer = stream.get()
    if answer.state == "incomplete":
        raise ModelConnectionError(tried.model, "the stream ended before the answer did", phase="read")
    return answer


def _usage(answer: ModelResponse) -> Usage | None:
    """Return the provider's token count, or None if it reported none that can be true."""
    told = answer.usage
    if told.unmeasured_requests:
        return None
    parts = (told.cache_read_tokens, told.cache_write_tokens, told.cache_write_1h_tokens)
    return usage_of(told.input_tokens, told.output_tokens, *parts)
