"""The models that a request may go to, the clients that send it, one for each model, key and event loop, and the
meaning of their errors.

A client keeps connections, which belong to the event loop that opened them. So each loop has its own clients. An error
is judged by its type and status. A provider's message never decides, because its wording may change; it is shown to
people, without any key in it.
"""

import asyncio
import inspect
import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from importlib import import_module
from typing import Any, Final, NamedTuple, TypeAlias, cast
from weakref import WeakKeyDictionary

from anyio import to_thread
from pydantic_ai import UserError
from pydantic_ai import exceptions as pai
from pydantic_ai.models import Model, infer_model, parse_model_id
from pydantic_ai.models.fallback import FallbackModel
from pydantic_ai.models.wrapper import WrapperModel
from pydantic_ai.providers import Provider, infer_provider, infer_provider_class

from remit.adapters.bodies import http_of, provider_words, unreadable
from remit.adapters.endpoints import Endpoints, KeyOf, KeysGiven, MissingKey, UrlGiven, key_in_environment
from remit.adapters.guests import key_inside
from remit.adapters.providers import endpoint_of, provider_of
from remit.core.prices import Usage
from remit.core.recovery import Choice, FailureKind, ModelFailure, key_mark, kind_of
from remit.core.secret import Secret
from remit.core.times import SECOND
from remit.core.values import shown
from remit.errors import BadInput

# -- errors --------------------------------------------------------------------------------------------------


class EmptyAnswer(pai.UnexpectedModelBehavior):
    """A model gave a valid answer without content; `usage` is None if its provider reported none."""

    def __init__(self, usage: Usage | None) -> None:
        super().__init__("the answer is empty")
        self.usage = usage


_UNSENT: Final = ("pool", "connect")  # phases before anything is sent
_CODE: Final = re.compile(r"[a-z][a-z_]{0,63}|\d{1,6}")  # a provider's error code; keys do not look like this
_LINK: Final = re.compile(r"https?://", re.IGNORECASE)
_SENTENCES: Final = re.compile(r"(?<=[.!?])\s+")
_LONGEST: Final = 500  # characters of a framework's message

# The first match counts, so subclasses come before their base classes.
_KINDS: Final[tuple[tuple[type[Exception], FailureKind], ...]] = (
    (pai.ModelContextWindowExceededError, "overflow"),
    (pai.ModelAuthenticationError, "auth"),
    (pai.ModelNotFoundError, "not-found"),
    (pai.ModelQuotaExceededError, "billing"),
    (pai.ModelRateLimitError, "rate-limit"),
    (pai.ModelUnavailableError, "unavailable"),
    (pai.ModelServerError, "unavailable"),
    (pai.ModelRequestRejectedError, "rejected"),
    (pai.ModelRequestTimeout, "timeout"),
    (pai.ModelTimeoutError, "timeout"),
    (pai.ModelConnectionError, "connection"),
    (pai.ContentFilterError, "rejected"),
    (pai.ModelAPIError, "broken"),
    (EmptyAnswer, "empty"),
    (pai.UnexpectedModelBehavior, "broken"),
)
_FORBIDDEN: Final = 403
_PLAIN: Final[frozenset[FailureKind]] = frozenset(("rate-limit", "broken"))  # status and code may be more specific


class AgentStopped(RuntimeError):
    """A framework's agent could not continue. The message has no provider's text and no links."""


def failure_of(error: Exception, secrets: Iterable[str] = ()) -> ModelFailure | None:
    """Return the meaning of a failed request, or None if it is not a model failure. `secrets` are removed from the
    provider's message."""
    if isinstance(error, MissingKey):
        return ModelFailure("no-key", sent=False, said=str(error))
    if why := unreadable(error):
        return ModelFailure("broken", said=why)
    if isinstance(error, pai.FallbackExceptionGroup):  # a model that tries several itself: the last failure counts
        last = error.exceptions[-1]
        return failure_of(last, secrets) if isinstance(last, Exception) else None
    found: FailureKind | None = next((kind for of, kind in _KINDS if isinstance(error, of)), None)
    if found is None:
        return None
    if not isinstance(error, pai.ModelAPIError):
        return ModelFailure(found, usage=error.usage if isinstance(error, EmptyAnswer) else None)
    status = error.status_code if isinstance(error, pai.ModelHTTPError) else None
    code = _code(error)
    kind = kind_of(status, code) if status is not None and (found in _PLAIN or status == _FORBIDDEN) else found
    sent = not (isinstance(error, pai.ModelConnectionError) and error.phase in _UNSENT)
    return ModelFailure(kind, status, code, _microseconds(error.retry_after), sent, provider_words(error, secrets))


def stopped(error: Exception) -> AgentStopped:
    """Return the error that says in one sentence why a framework's agent could not continue."""
    failure = failure_of(error) if isinstance(error, pai.ModelAPIError | pai.FallbackExceptionGroup) else None
    if failure is not None:
        status = "" if failure.status is None else f" ({failure.status})"
        return AgentStopped(f"the model did not answer: {failure.kind}{status}")
    if isinstance(error, pai.ContentFilterError):
        return AgentStopped("the provider's content filter held the answer back; ask in another way")
    return AgentStopped(error_text(error))


def error_text(error: Exception) -> str:
    """Return the framework's own message, up to 500 characters, without sentences that contain a link; the name of the
    exception's class if nothing is left."""
    text = error.message if isinstance(error, pai.AgentRunError | pai.UserError) else str(error)
    kept = [sentence for sentence in _SENTENCES.split(" ".join(text.split())) if not _LINK.search(sentence)]
    told = " ".join(kept) or type(error).__name__
    return told if len(told) <= _LONGEST else f"{told[: _LONGEST - 1]}…"


def _code(error: pai.ModelAPIError) -> str:
    for given in (error.provider_error_code, error.provider_error_type):
        if given is not None and _CODE.fullmatch(given):
            return given
    return ""


def _microseconds(seconds: float | None) -> int | None:
    return None if seconds is None or not math.isfinite(seconds) or seconds < 0 else round(seconds * SECOND)


# -- clients -------------------------------------------------------------------------------------------------


ModelGiven: TypeAlias = str | Model | tuple[str, Model]

_NO_KEY: Final = "no-key"  # sent to an address without a key, so that the client does not send another endpoint's key


class _Made(NamedTuple):
    models: dict[tuple[str, str, str], Model]  # by model, key name and digest of the key, which may change
    lock: asyncio.Lock


class Clients:
    """Models in the order in which they are tried, and their clients.

    A model is named as `provider:model`, or is a model object of pydantic-ai, which has its own client; a pair gives
    such an object a name. `keys` are names of keys for the endpoint of the first model; `base_url` is its address. As
    dictionaries they go by model or provider. A key belongs to an endpoint: a model with an address of its own and no
    keys is asked without one. `key_of` returns a key by its name.
    """

    def __init__(
        self,
        models: Sequence[ModelGiven],
        keys: KeysGiven = (),
        base_url: UrlGiven = None,
        key_of: KeyOf = key_in_environment,
    ) -> None:
        self._given = dict(_model_pairs(models))
        self.first = next(iter(self._given.values()))  # None if it was given by name
        first = next((name for name, own in self._given.items() if own is None), "")
        self._places = Endpoints(first, keys, base_url, key_of)
        self._sent: set[str] = set()  # values of used keys, because providers may quote them
        self._loops: WeakKeyDictionary[asyncio.AbstractEventLoop, _Made] = WeakKeyDictionary()
        for name, own in self._given.items():
            if own is None:
                _preload(name)
        self._endpoints = {name: self._places.endpoint(name) for name in self._given}
        self.choices = tuple(self._choice(name, own) for name, own in self._given.items())

    def choices_now(self) -> tuple[Choice, ...]:
        """Return the choices with the digests of their keys as they are now: an owner may have corrected one."""
        return tuple(map(self._places.marked, self.choices))

    def _choice(self, name: str, own: Model | None) -> Choice:
        if own is not None:
            return Choice(name, endpoint=_place(own.base_url))
        if name == "test":
            return Choice(name)
        return self._places.choice(name)

    @property
    def own(self) -> list[Model]:
        """The models that were given as objects; their creators manage their clients."""
        return [model for model in self._given.values() if model is not None]

    async def find(self, name: str, key: str, secret: Secret | None = None) -> Model:
        """Return the model of that name with that key, for this event loop. `secret` is the key itself where its name
        is not enough. Both may have changed since the last call. Raise `MissingKey` if there is no key."""
        own = self._given[name]
        if own is not None:
            return own
        made, lock = self._loops.setdefault(asyncio.get_running_loop(), _Made({}, asyncio.Lock()))
        value = self._places.key(key, secret)
        which = name, key, value and key_mark(value)
        if which not in made:
            async with lock:
                if which not in made:
                    # In a thread: it reads certificates from files.
                    model = await to_thread.run_sync(self._make, name, value)
                    made[which] = await model.__aenter__()
        return made[which]

    def key_to_redact(self, key: str) -> Secret | None:
        """Return the key of this name, so that it can be redacted, or None if it is a placeholder."""
        return self._places.key_to_redact(key)

    @property
    def secrets(self) -> frozenset[str]:
        """The values of used keys, which are removed from a provider's messages."""
        return frozenset(self._sent)

    async def aclose(self) -> None:
        """Close the clients of this event loop."""
        loop = self._loops.pop(asyncio.get_running_loop(), None)
        for model in loop.models.values() if loop is not None else ():
            await model.__aexit__(None, None, None)

    def _make(self, name: str, key: str) -> Model:
        options: dict[str, str] = {}
        url, endpoint = self._places.address(name), self._places.endpoint(name)
        if endpoint != self._endpoints[name]:
            raise BadInput(
                f"model {shown(name)} was registered for {self._endpoints[name]} and would now be asked at {endpoint}; "
                "start the process again, so that no key goes to another address"
            )
        if url:
            options["base_url"] = url
        self._sent.add(key)
        if key or (url and "@" in endpoint):  # otherwise the client would send the environment's key there
            options["api_key"] = key or _NO_KEY
        try:
            model = infer_model(name, lambda provider: _made_provider(provider, options))
        except UserError as error:
            raise BadInput(f"model {shown(name)} cannot be asked: {error_text(error)}") from None
        if asks_again(model):  # once here, not with a copy of the client for every request
            cast("Any", model.provider).client.max_retries = 0
        return model


def _place(url: str | None) -> str:
    return endpoint_of("", url).removeprefix("@") if url else ""


def asks_again(model: Model) -> bool:
    """Whether a model's client retries by itself. It must not: the turn decides about retries."""
    inside = _inside(model)
    return inside.provider is not None and bool(getattr(inside.provider.client, "max_retries", 0))


def http_clients(model: Model) -> tuple[Any, ...]:
    """Return the HTTP clients of a model, as far as they can be found."""
    provider: Any = _inside(model).provider
    return () if provider is None else (getattr(provider, "_own_http_client", None), http_of(provider.client))


def key_in(model: Model) -> Secret | None:
    """Return the key in the client of the owner's model object, or None."""
    provider: Any = _inside(model).provider
    return None if provider is None else key_inside(provider.client)


def streams(model: Model) -> bool:
    """Whether a model can stream its answer."""
    return type(_inside(model)).request_stream is not Model.request_stream


def _inside(model: Model) -> Model:
    while isinstance(model, WrapperModel):
        model = model.wrapped
    return model


def _model_pairs(models: Sequence[ModelGiven]) -> Iterator[tuple[str, Model | None]]:
    """Yield each model's name and its object, if it has one. Raise `BadInput` for a repeated name: keys and cooldowns
    go by names."""
    seen: set[str] = set()
    for given in models:
        for name, own in _one(given):
            if name in seen:
                raise BadInput(f"two models are named {shown(name)}; give one of them another name: ('other', model)")
            seen.add(name)
            yield name, own
    if not seen:
        raise BadInput("name a model, such as 'openai:gpt-5'")


def _one(given: object) -> Iterator[tuple[str, Model | None]]:
    match given:
        case str():
            if given != "test" and not all(parse_model_id(given)):
                raise BadInput(f"a model is named as 'provider:model', such as 'openai:gpt-5', not {shown(given)}")
            yield given, None
        case FallbackModel():
            for model in given.models:
                yield from _one(model)
        case Model():
            yield given.model_id, given
        case (str() as name, Model()):
            yield name, cast("tuple[str, Model]", given)[1]
        case _:
            raise BadInput(f"a model is a name, one of pydantic-ai's models, or (name, model), not {shown(given)}")


def _preload(name: str) -> None:
    """Import the packages of a model now, not in the middle of a turn. Raise `BadInput` for an unknown provider."""
    if name == "test":
        return
    provider = name.partition(":")[0]
    try:
        infer_provider_class(provider)
    except ValueError:
        raise BadInput(f"model {shown(name)}: there is no provider {shown(provider)}") from None
    except ImportError as error:
        raise BadInput(f"model {shown(name)} needs a package that is not installed: {error_text(error)}") from None
    with suppress(ImportError):  # many providers use another provider's client
        import_module(f"pydantic_ai.models.{provider_of(name)}")


def _made_provider(provider: str, options: Mapping[str, str]) -> Provider[Any]:
    if not options:
        return infer_provider(provider)
    kind = infer_provider_class(provider)
    if options.get("api_key") == _NO_KEY and "api_key" not in inspect.signature(kind).parameters:
        options = {"base_url": options["base_url"]}  # this client takes no keys, so it sends none
    strange = sorted(options.keys() - inspect.signature(kind).parameters.keys())
    if strange or provider.startswith("gateway/"):  # a gateway's key is not the key of the provider behind it
        raise BadInput(f"provider {shown(provider)} takes no {(strange or sorted(options))[0]}; give a model object")
    return kind(**options)
