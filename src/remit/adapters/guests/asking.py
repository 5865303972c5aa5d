"""Shared code around one request of a framework: its prompt and dependencies, text that a store can hold, the digest,
size, usage and origin of the request, and the meaning of a client's error.

The clients of OpenAI and Anthropic and similar ones use the same names for their errors, so they are recognized by
name, without an import.
"""

import inspect
import json
import math
import re
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from enum import Enum
from functools import partial
from typing import Any, Final, TypeAlias, cast, get_args

from remit.adapters.bodies import provider_words, unreadable
from remit.adapters.providers import endpoint_of
from remit.core.command import Command
from remit.core.prices import MOST_COUNTED, PER_MESSAGE, Usage
from remit.core.recovery import Choice, FailureKind, ModelFailure, ModelTry, key_mark, kind_of
from remit.core.secret import Secret
from remit.core.times import SECOND
from remit.core.values import Json, NotJson, digest, encode, json_form, tokens_in
from remit.errors import BadInput
from remit.ports.models import HandedOver, Rendered
from remit.ports.turn import TurnLike, current_turn
from remit.verbs import Verb

# -- text and values that a store can hold -------------------------------------------------------------------


_UNKEPT: Final = re.compile("[\0\ud800-\udfff]")  # characters that no store can hold: NUL and half surrogate pairs
_SPELLED: Final = re.compile(r"\\u(0000|[dD][89a-fA-F])")
_RECENT: Final = 4  # latest tool results, which the model most likely still needs
MOST_CALLS: Final = 64  # tool calls of one answer that are used
_LIMITS: Final = ((16_000, 4_000), (4_000, 500), (1_000, 100))  # characters of a recent result, and of an older one


def clean(text: str) -> str:
    """Return the text with characters that no store can hold replaced by U+FFFD."""
    return text if text.isascii() and "\0" not in text else _UNKEPT.sub("\ufffd", text)


def clean_json(text: str) -> str:
    """Return JSON text with characters that no store can hold replaced by U+FFFD. In JSON they appear as escapes, and
    not every framework can read them."""
    if _SPELLED.search(text) is None:
        return clean(text)
    try:
        return encode(json_of(json.loads(text)))
    except (ValueError, RecursionError):
        return clean(text)


def json_of(value: object) -> Json:
    """Return the result of a tool or agent as JSON; a value that is not JSON and cannot be converted becomes text."""
    if value is None or (isinstance(value, bool | int | str) and not isinstance(value, Enum)):
        return clean(value) if isinstance(value, str) else value
    if isinstance(value, Mapping):
        pairs = cast("Mapping[object, object]", value).items()
        return {clean(str(key)): json_of(item) for key, item in pairs}
    if isinstance(value, list | tuple | set | frozenset):
        return [json_of(item) for item in cast("Iterable[object]", value)]
    if isinstance(value, float) and math.isfinite(value):
        return value
    try:
        return json_of(json_form(value))
    except NotJson:
        return clean(str(value))


def unlike(name: str, seen: set[str]) -> str:
    """Return the name, with a number appended if it is in `seen` already, and add the returned name to `seen`. A model
    may give two calls of an answer the same id."""
    others = (f"{name}_{number}" for number in range(2, len(seen) + 3))
    found = name if name not in seen else next(other for other in others if other not in seen)
    seen.add(found)
    return found


def left_out(more: int) -> str:
    """Return the note that `more` tool calls of an answer are not used; the model reads it in its own answer."""
    calls = "1 more tool call" if more == 1 else f"{more:,} more tool calls"
    return f"[{calls} of this answer left out, not used: at most {MOST_CALLS} of one answer are used]"


def without(value: Any, names: Collection[str]) -> Any:
    """Return the value without these keys, at every depth."""
    if isinstance(value, Mapping):
        pairs = cast("Mapping[str, Any]", value).items()
        return {key: without(item, names) for key, item in pairs if key not in names}
    if isinstance(value, list | tuple):
        return [without(item, names) for item in cast("Sequence[Any]", value)]
    return value


def shortened(results: Sequence[str], trim: int) -> list[str]:
    """Return the tool results, the newest last, shortened to level `trim`. Level 0 changes nothing; levels 1 to 3 cut
    more each, and cut older results more than the latest four."""
    if not trim:
        return list(results)
    recent, older = _LIMITS[min(trim, len(_LIMITS)) - 1]
    first = len(results) - _RECENT
    return [_cut(text, older if at < first else recent) for at, text in enumerate(results)]


def _cut(text: str, limit: int) -> str:
    if len(text) <= limit:
        return text
    half = limit // 2
    return f"{text[:half]}\n[{len(text) - 2 * half:,} characters left out]\n{text[-half:]}"


# -- requests ------------------------------------------------------------------------------------------------


MAX_TOKENS: Final = 4_096  # default limit of an answer; holds need a limit
# Characters; placeholders for servers without keys are shorter, and would match ordinary words.
_SHORTEST_KEY: Final = 12

Prompt: TypeAlias = Callable[[TurnLike], str | Awaitable[str]]


async def prompted(prompt: Prompt, turn: TurnLike) -> str:
    """Return the guest's prompt for this turn."""
    made = prompt(turn)
    return await made if inspect.isawaitable(made) else made


async def prompt_of(turn: TurnLike) -> str:
    """Return the turn's own prompt, in which an untrusted task is quoted."""
    return await turn.prompt()


def the_turn(what: str) -> TurnLike:
    """Return the current turn. Raise `BadInput` outside of one: a governed model or tool works only inside a turn,
    because it could not be paid for otherwise. `what` names the model or tool in the error."""
    turn = current_turn()
    if turn is None:
        raise BadInput(f"{what} works in a turn of an agent only; run it by a Runtime, or use it ungoverned")
    return turn


def choice_of(name: str, client: Any) -> Choice:
    """Return where a guest's model is reached and with which key, as far as its client reveals it: a failure puts only
    that on cooldown. The key is identified by a digest of its value."""
    url, key = str(getattr(client, "base_url", None) or ""), getattr(client, "api_key", None)
    marks = (key_mark(key),) if isinstance(key, str) and key else ()
    return Choice(name, marks=marks, endpoint=endpoint_of("", url).removeprefix("@") if url else "")


def key_inside(*clients: Any) -> Secret | None:
    """Return the first key in a provider's clients that has at least 12 characters, so that it can be redacted, or
    None. Shorter ones are placeholders."""
    keys = [key for one in clients if isinstance(key := getattr(one, "api_key", None), str)]
    return next((Secret(key) for key in keys if len(key) >= _SHORTEST_KEY), None)


def key_of(*clients: Any) -> Callable[[ModelTry], Awaitable[Secret | None]]:
    """Return the `ready` function of a guest's request. It returns the key in the guest's client, which is redacted
    from then on."""

    async def ready(_tried: ModelTry) -> Secret | None:
        return key_inside(*clients)

    return ready


def digest_of(asked: object) -> str:
    """Return the digest of a request."""
    return digest(clean(encode(json_of(asked))))


def size_of(messages: Iterable[object]) -> int:
    """Return a rough token count; anything but text counts as its JSON."""
    return sum(tokens_in(text_for_model(json_of(message))) + PER_MESSAGE for message in messages)


def text_for_model(value: Json) -> str:
    """Return the text that a model is given for a value."""
    return value if isinstance(value, str) else encode(value)


def usage_of(
    read: int, written: int, cached: int = 0, cache_written: int = 0, cache_written_1h: int = 0
) -> Usage | None:
    """Return the provider's token count, or None if it reported none that can be true."""
    if (read <= 0 and written <= 0) or max(read, written) > MOST_COUNTED:
        return None
    try:
        return Usage(read, written, cached, cache_written, cache_written_1h=cache_written_1h)
    except BadInput:
        return None


def verb_function(verb: Verb) -> Callable[[dict[str, Any]], Awaitable[Rendered]]:
    """Return the function that runs a verb for `TurnLike.tool`. It raises `HandedOver` if the verb hands the task
    over."""

    async def do(arguments: dict[str, Any]) -> Rendered:
        done = await verb.use(the_turn(verb.name), _without_nulls(arguments))
        if isinstance(done, Command):
            raise HandedOver(done)
        return done

    return do


def _without_nulls(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments without nulls, which a model fills in if its schema requires every name."""
    return {name: value for name, value in arguments.items() if value is not None}


# -- dependencies --------------------------------------------------------------------------------------------


NO_DEPS: Final = object()  # None may be a valid dependency
_UNDECLARED: Final = (object, None, type(None), Any)


def checked_deps(name: str, declared: Any, given: object) -> object:
    """Return the given dependencies. Raise `BadInput` if the agent declares some and was given none, or was given the
    declared class instead of an instance. `name` is the agent's name."""
    wants = declared not in _UNDECLARED and type(None) not in get_args(declared)
    if wants and given is NO_DEPS:
        kind = getattr(declared, "__name__", str(declared))
        raise BadInput(
            f"'{name}' declares deps of type {kind} and was given none: pass rt.add(..., deps={kind}(...)), or a "
            f"function of the turn: deps=lambda turn: {kind}(...)"
        )
    if wants and given is declared:
        kind = getattr(declared, "__name__", str(declared))
        raise BadInput(f"deps of '{name}' is the class {kind} itself; pass {kind}(...), or lambda turn: {kind}(...)")
    return given


async def deps_of(given: object, turn: TurnLike) -> Any:
    """Return the dependencies for a turn: the value itself, or the result of a function of the turn; None if none."""
    if given is NO_DEPS:
        return None
    if not (inspect.isroutine(given) or isinstance(given, partial)):
        return given
    made = cast("Callable[[TurnLike], object]", given)(turn)
    return await made if inspect.isawaitable(made) else made


# -- errors of model clients ---------------------------------------------------------------------------------


_UNSENT: Final = frozenset(("ConnectError", "ConnectTimeout", "PoolTimeout"))  # no connection, so nothing was sent
# The first match counts; None means that the HTTP status decides.
_KINDS: Final[tuple[tuple[str, FailureKind | None], ...]] = (
    ("ContextOverflowError", "overflow"),
    ("APITimeoutError", "timeout"),
    ("APIConnectionError", "connection"),
    ("APIStatusError", None),
    ("APIResponseValidationError", "broken"),
    ("APIError", "broken"),  # reported in the middle of a stream
    ("LengthFinishReasonError", "broken"),
    ("ContentFilterFinishReasonError", "broken"),
    ("ModelBehaviorError", "broken"),
    ("JSONDecodeError", "broken"),
    ("ValidationError", "broken"),  # JSON, but not an answer
    ("TimeoutException", "timeout"),  # of the transport, while reading an answer
    ("TransportError", "connection"),
)


def failure_of(error: Exception) -> ModelFailure | None:
    """Return the meaning of a client's error, or None if it is not a model failure."""
    if why := unreadable(error):
        return ModelFailure("broken", said=why)
    if isinstance(error, AttributeError) and isinstance(error.obj, str | tuple):
        return ModelFailure("broken")  # an HTML page, which clients return as text, was taken for an answer
    names = {kind.__name__ for kind in type(error).__mro__}
    row = next((row for row in _KINDS if row[0] in names), None)
    if row is None:
        return None
    status, code = _status(error), str(getattr(error, "code", None) or "")
    kind = row[1]
    if kind is None:
        kind = kind_of(status or 500, code)
    sent = status is not None or not _UNSENT & _causes(error)
    return ModelFailure(kind, status, code, _retry_after(error), sent, provider_words(error))


def _status(error: Exception) -> int | None:
    found = getattr(error, "status_code", None)
    return found if isinstance(found, int) else None


def _causes(error: BaseException) -> set[str]:
    """Return the class names of the error and its causes; a cycle of causes is handled."""
    names: set[str] = set()
    seen: set[int] = set()
    at: BaseException | None = error
    while at is not None and id(at) not in seen:
        seen.add(id(at))
        names.update(kind.__name__ for kind in type(at).__mro__)
        at = at.__cause__ or at.__context__
    return names


def _retry_after(error: Exception) -> int | None:
    headers: Mapping[str, str] = getattr(getattr(error, "response", None), "headers", None) or {}
    return _micros(headers, "retry-after-ms", SECOND // 1_000) or _micros(headers, "retry-after", SECOND)


def _micros(headers: Mapping[str, str], name: str, unit: int) -> int | None:
    try:
        return max(0, round(float(headers.get(name, "")) * unit))
    except (ValueError, OverflowError):  # a date, or nonsense
        return None
