"""Chat models of LangChain whose requests all go through the turn.

They are copies whose class goes through the turn and is otherwise unchanged: code that inspects a copy, binds tools to
it or asks for structured output gets the answers of the original. Copies of tools are made in the same way.
"""

from collections.abc import AsyncIterator, Awaitable, Callable, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any, ClassVar, Final, TypeAlias, TypeVar, cast

from langchain_core.callbacks import AsyncCallbackManagerForLLMRun, CallbackManagerForLLMRun
from langchain_core.language_models.chat_models import BaseChatModel, agenerate_from_stream
from langchain_core.messages import AIMessage, BaseMessage, SystemMessage, ToolMessage
from langchain_core.outputs import ChatGenerationChunk, ChatResult
from langchain_core.runnables.config import var_child_runnable_config
from pydantic import BaseModel

from remit.adapters.bodies import bounded, http_of
from remit.adapters.guests import (
    MAX_TOKENS,
    NextRequest,
    choice_of,
    conversed,
    digest_of,
    failure_of,
    from_thread,
    key_of,
    shortened,
    size_of,
    the_turn,
    usage_of,
)
from remit.adapters.langgraph.talking import DIALECT, chunk, recorded
from remit.core.prices import Usage
from remit.core.recovery import Choice, ModelFailure, ModelTry
from remit.ports.models import Hear, ModelAnswer, ModelCall
from remit.ports.turn import TurnLike

# -- copies that go through the turn -------------------------------------------------------------------------


ThingT = TypeVar("ThingT", bound=BaseModel)


def mixed(thing: ThingT, seam: type[BaseModel]) -> ThingT:
    """Return a copy of `thing` with the methods of `seam` before its own, and without its cached properties."""
    copied = thing.model_copy()
    for name in [name for name in vars(copied) if isinstance(getattr(type(copied), name, None), cached_property)]:
        del vars(copied)[name]
    object.__setattr__(copied, "__class__", _kind(seam, type(thing)))
    return copied


@lru_cache(256)
def _kind(seam: type[BaseModel], kind: type[BaseModel]) -> type[BaseModel]:
    """Return the mixed class. It has the name of the original, which traces and caches use."""
    said = {"__module__": kind.__module__, "__qualname__": kind.__qualname__, "__doc__": kind.__doc__}
    make = cast("Callable[..., type[BaseModel]]", type(kind))
    return make(kind.__name__, (seam, kind), said)


_INSIDE: Final[ContextVar[object]] = ContextVar("remit.langgraph.inside", default=None)


@contextmanager
def inside(thing: object) -> Generator[None]:
    """Mark that the object's own methods are running: calls that they make on themselves are not governed again."""
    token = _INSIDE.set(thing)
    try:
        yield
    finally:
        _INSIDE.reset(token)


def is_inside(thing: object) -> bool:
    """Whether this object's own methods are running, and not those of another wrapped object that they use."""
    return _INSIDE.get() is thing


def at_work() -> object:
    """Return the object whose own methods are running, or None."""
    return _INSIDE.get()


# -- chat models ---------------------------------------------------------------------------------------------


Ask: TypeAlias = Callable[[list[BaseMessage], int, Hear | None], Awaitable[ChatResult]]
# `CONVERSES`: whether requests belong to the conversation of an agent of `create_agent`. `IN_GUEST`: whether a guest's
# graph runs.
CONVERSES: Final[ContextVar[bool]] = ContextVar("remit.langgraph.converses", default=False)
TASK_MESSAGE: Final = "task"  # the id of the message that a guest's graph begins with
IN_GUEST: Final[ContextVar[bool]] = ContextVar("remit.langgraph.in_guest", default=False)
ChatT = TypeVar("ChatT", bound=BaseChatModel)

_ABOUT_TOOLS: Final = frozenset(("tools", "tool_choice", "parallel_tool_calls"))
_LIMITS: Final = ("max_tokens", "max_completion_tokens", "max_output_tokens")  # names of the limit in different models
_CLIENTS: Final = (("root_client", "client"), ("root_async_client", "async_client"))


def governed(model: ChatT) -> ChatT:
    """Return a copy of a chat model that is asked through the current turn. Its client does not retry: the turn decides
    about retries. The given model is not changed."""
    if isinstance(model, Seam):
        return model
    made = mixed(model, Seam)
    said = {"max_retries": 0, "stream_usage": True}
    vars(made).update({name: value for name, value in said.items() if hasattr(made, name)})
    for root, part in _CLIENTS:  # clients of OpenAI, which are created with the model
        client = getattr(made, root, None)
        if client is not None:
            once = client.with_options(max_retries=0)
            vars(made).update({root: once, part: once.chat.completions})
    return made


class Seam(BaseChatModel):
    """The methods that send a chat model's requests through the turn; `mixed` puts them before the model's own."""

    # A model may have these ways around `_agenerate`: switch them off.
    _stream_chat_model_events: ClassVar[None] = None
    _astream_chat_model_events: ClassVar[None] = None

    async def _agenerate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: AsyncCallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        plain, streamed = super()._agenerate, super()._astream
        if is_inside(self):
            return await plain(messages, stop, run_manager, **kwargs)
        limit = next((name for name in _LIMITS if kwargs.get(name)), _LIMITS[0])

        turn = the_turn(f"the model {_name(self)}")
        offered = await _permitted_arguments(turn, kwargs)

        async def ask(shown: list[BaseMessage], most: int, hear: Hear | None) -> ChatResult:
            how = {**offered, limit: most}
            with inside(self), bounded(*http):
                if hear is None or not _streams(type(self)):
                    return await plain(shown, stop, run_manager, **how)
                return await agenerate_from_stream(_with_listener(streamed(shown, stop, None, **how), hear))

        most = kwargs.get(limit) or getattr(self, "max_tokens", None) or MAX_TOKENS
        name, client = _name(self), getattr(self, "root_async_client", None)
        choice, http = choice_of(name, client), (http_of(client), http_of(getattr(self, "_async_client", None)))
        system, said = _parted(messages)
        ready = key_of(client, getattr(self, "_async_client", None))

        def make(request: NextRequest[BaseMessage]) -> ModelCall:
            asked = _Asked(name, [*system, *request.messages], kwargs, stop, choice)
            return asked.call(most, ask, request.ids)._replace(at=request.at, ready=ready)

        if CONVERSES.get():
            return await conversed(turn, DIALECT, said, make)
        if (node := _node()) is not None:
            return await conversed(turn, DIALECT, said, make, node, begins=bool(said) and said[0].id == TASK_MESSAGE)
        asked = _Asked(name, messages, kwargs, stop, choice)
        return DIALECT.answer(await turn.model(asked.known_by_content(most, ask)._replace(ready=ready)))

    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        if is_inside(self):
            return super()._generate(messages, stop, run_manager, **kwargs)
        return from_thread(self._agenerate(messages, stop, None, **kwargs))

    async def _astream(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: AsyncCallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> AsyncIterator[ChatGenerationChunk]:
        if is_inside(self):
            async for piece in super()._astream(messages, stop, run_manager, **kwargs):
                yield piece
            return
        result = await self._agenerate(messages, stop, None, **_unstreamed(kwargs))
        yield chunk(result.generations[0])

    def _stream(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> Iterator[ChatGenerationChunk]:
        if is_inside(self):
            yield from super()._stream(messages, stop, run_manager, **kwargs)
            return
        result = self._generate(messages, stop, None, **_unstreamed(kwargs))
        yield chunk(result.generations[0])


@dataclass(frozen=True, slots=True)
class _Asked:
    """The content of a request to a model."""

    model: str
    messages: list[BaseMessage]
    settings: Mapping[str, Any]
    stop: list[str] | None
    choice: Choice

    def known_by_content(self, most: int, ask: Ask) -> ModelCall:
        """Return the call of a request outside of a conversation: equal content means the same request."""
        made = self.call(most, ask)
        output = _schema(self.settings.get("response_format"))
        words = [self.model, [DIALECT.words(one) for one in self.messages], sorted(made.tools), output, self.stop]
        return made._replace(digest=digest_of(words))

    def call(self, most: int, ask: Ask, taken: frozenset[str] = frozenset()) -> ModelCall:
        """Return the `ModelCall` of this request: `most` is its output limit, `ask` sends it, and `taken` are the call
        ids that the conversation has used."""
        tools: Sequence[Any] = self.settings.get("tools") or ()
        names = frozenset(map(_tool_name, tools))
        output = _schema(self.settings.get("response_format"))

        async def send(how: ModelTry, most: int, hear: Hear | None) -> ModelAnswer:
            result = await ask(_shortened(self.messages, how.trim), most, hear)
            text, kept = recorded(result, taken)
            message = cast("AIMessage", kept.generations[0].message)
            calls = (*message.tool_calls, *message.invalid_tool_calls)
            return ModelAnswer(text, self.model, _usage(message), tuple(call["name"] or "" for call in calls), kept)

        def size(trim: int) -> int:
            return size_of([*map(DIALECT.words, _shortened(self.messages, trim)), output, *tools])

        return ModelCall(
            digest="",
            choices=(self.choice,),
            size=size,
            most=most,
            send=send,
            failure=_failure,
            tools=names,
        )


def _name(model: BaseChatModel) -> str:
    found = (getattr(model, name, None) for name in ("model_name", "model", "model_id"))
    return next((str(name) for name in found if name), type(model).__name__)


def _parted(messages: list[BaseMessage]) -> tuple[list[BaseMessage], list[BaseMessage]]:
    """Return the system messages, which are always the current ones, and the conversation, which is recorded."""
    at = next((at for at, one in enumerate(messages) if not isinstance(one, SystemMessage)), len(messages))
    return messages[:at], messages[at:]


def _node() -> str | None:
    """Return the digest that identifies the step and node of a guest's graph that this code runs in, the same in every
    attempt, or None outside of a guest."""
    if not IN_GUEST.get():
        return None
    known = cast("Mapping[str, Any]", (var_child_runnable_config.get() or {}).get("metadata") or {})
    nodes = "/".join(part.partition(":")[0] for part in str(known.get("langgraph_checkpoint_ns", "")).split("|"))
    return digest_of([nodes, known.get("langgraph_step"), known.get("langgraph_path")])


def _shortened(messages: list[BaseMessage], trim: int) -> list[BaseMessage]:
    results = [one for one in messages if isinstance(one, ToolMessage) and isinstance(one.content, str)]
    texts = shortened([cast("str", one.content) for one in results], trim)
    cut = {id(one): text for one, text in zip(results, texts, strict=True)}
    return [one.model_copy(update={"content": cut[id(one)]}) if id(one) in cut else one for one in messages]


async def _permitted_arguments(turn: TurnLike, kwargs: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments without the tools that the model may not use for this task, and without verbs that cannot
    succeed now."""
    tools: Sequence[Any] = kwargs.get("tools") or ()
    if not tools:
        return {**kwargs}
    offers = await turn.offers()
    shown = [tool for tool in tools if (offers.shows if _is_function(tool) else offers.at_provider)(_tool_name(tool))]
    if shown:
        return {**kwargs, "tools": shown}
    return {name: value for name, value in kwargs.items() if name not in _ABOUT_TOOLS}


def _is_function(tool: Any) -> bool:
    """Whether a tool runs here, not at the provider."""
    if not isinstance(tool, Mapping):
        return True
    found = cast("Mapping[str, Any]", tool)
    return "function" in found or "input_schema" in found or found.get("type") in (None, "function", "custom")


def _tool_name(tool: Any) -> str:
    """Return the name of a tool that is bound to a model: a dictionary in the format of its provider."""
    if not isinstance(tool, Mapping):
        return str(getattr(tool, "name", None) or type(tool).__name__)
    found = cast("Mapping[str, Any]", tool)
    function = cast("Mapping[str, Any]", found.get("function") or {})
    return str(function.get("name") or found.get("name") or found.get("type") or "")


def _schema(output: Any) -> object:
    if isinstance(output, type) and issubclass(cast("type[object]", output), BaseModel):
        return cast("type[BaseModel]", output).model_json_schema()
    return cast("object", output)


def _usage(message: AIMessage) -> Usage | None:
    found = message.usage_metadata
    if found is None:
        return None
    details = cast("Mapping[str, int | None]", found.get("input_token_details") or {})
    # Of a cache with two ages, the framework reports the parts and leaves the sum at 0.
    short, hour = (details.get(f"ephemeral_{age}_input_tokens") or 0 for age in ("5m", "1h"))
    cached, written = details.get("cache_read") or 0, max(details.get("cache_creation") or 0, short + hour)
    return usage_of(found["input_tokens"], found["output_tokens"], cached, written, hour)


def _failure(error: Exception) -> ModelFailure | None:
    """Return the meaning of an error. This framework raises a plain ValueError if there is no answer at all."""
    return ModelFailure("broken") if type(error) is ValueError else failure_of(error)


def _streams(kind: type[BaseChatModel]) -> bool:
    """Whether the model below the seam can stream."""
    own = kind.__mro__[2 : kind.__mro__.index(BaseChatModel)]
    return any("_astream" in vars(one) or "_stream" in vars(one) for one in own)


async def _with_listener(pieces: AsyncIterator[ChatGenerationChunk], hear: Hear) -> AsyncIterator[ChatGenerationChunk]:
    async for piece in pieces:
        if piece.text:
            hear(piece.text)
        yield piece


def _unstreamed(kwargs: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in kwargs.items() if name not in ("stream", "stream_usage")}
