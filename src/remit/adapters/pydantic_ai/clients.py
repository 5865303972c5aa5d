"""The models that a request may go to, and the clients that send it: one for each model, key and event loop.

A client keeps connections, and those belong to the event loop that opened them. So each loop has its own.
"""

import asyncio
import hashlib
import inspect
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from importlib import import_module
from typing import Any, Final, NamedTuple, TypeAlias, TypeVar, cast
from weakref import WeakKeyDictionary

from anyio import to_thread
from pydantic_ai import UserError
from pydantic_ai.models import Model, infer_model, parse_model_id
from pydantic_ai.models.fallback import FallbackModel
from pydantic_ai.models.wrapper import WrapperModel
from pydantic_ai.providers import Provider, infer_provider, infer_provider_class
from pydantic_ai.settings import ModelSettings

from remit.adapters.pydantic_ai.failures import said
from remit.core.checks import items
from remit.core.recovery import Choice
from remit.core.secret import Secret
from remit.core.text import shown
from remit.errors import BadInput

T = TypeVar("T")

ModelGiven: TypeAlias = str | Model | tuple[str, Model]
KeysGiven: TypeAlias = Sequence[str] | Mapping[str, Sequence[str]]
UrlGiven: TypeAlias = str | Mapping[str, str] | None
KeyOf: TypeAlias = Callable[[str], str]

_WAYS: Final = ("-chat", "-responses")  # ways to talk to one provider, which have names of their own


def key_in_environment(name: str) -> str:
    """Give the key that an environment variable holds."""
    key = os.environ.get(name, "")
    if not key:
        raise BadInput(f"there is no key named {name}: set the environment variable of that name, or take it off keys")
    return key


class _Made(NamedTuple):
    models: dict[tuple[str, str, str], Model]  # by name, name of the key, and digest of a key that may change
    lock: asyncio.Lock


class Clients:
    """Models in the order in which they are asked, and their clients.

    A model is named as `provider:model`, or is one of pydantic-ai's own objects, which brings its own client; a pair
    gives such an object a name. `keys` are names of keys, `base_url` is where the provider is reached: both hold for
    the provider of the first model alone, so that no key is ever shown to another provider. As dictionaries they go by
    model or by provider. `key_of` looks a key up by its name.
    """

    def __init__(
        self,
        models: Sequence[ModelGiven],
        keys: KeysGiven = (),
        base_url: UrlGiven = None,
        key_of: KeyOf = key_in_environment,
    ) -> None:
        self._given = dict(_listed(models))
        first = next((_provider(name) for name, own in self._given.items() if own is None), "")
        self._keys, self._urls = _by_provider(keys, first), _by_provider(base_url, first)
        self._key_of = key_of
        self._loops: WeakKeyDictionary[asyncio.AbstractEventLoop, _Made] = WeakKeyDictionary()
        for name, own in self._given.items():
            if own is None:
                _preload(name)
        self.choices = tuple(
            Choice(name, self._keys_of(name, own), "" if own is not None or name == "test" else _provider(name))
            for name, own in self._given.items()
        )

    @property
    def own(self) -> list[Model]:
        """The models that were given as objects: whoever made them looks after their clients."""
        return [model for model in self._given.values() if model is not None]

    @property
    def settings(self) -> ModelSettings | None:
        """The settings that the first model brings along, if it was given as an object."""
        first = next(iter(self._given.values()))
        return None if first is None else first.settings

    async def find(self, name: str, key: str, secret: Secret | None = None) -> Model:
        """Give the model of that name with that key, as this event loop can use it. `secret` is the key itself where
        its name is not enough to look it up; it may be another than the last time."""
        own = self._given[name]
        if own is not None:
            return own
        made, lock = self._loops.setdefault(asyncio.get_running_loop(), _Made({}, asyncio.Lock()))
        which = name, key, "" if secret is None else hashlib.sha256(secret.reveal().encode()).hexdigest()
        if which not in made:
            async with lock:
                if which not in made:
                    model = await to_thread.run_sync(self._make, name, key, secret)  # certificates are read from files
                    made[which] = await model.__aenter__()
        return made[which]

    async def aclose(self) -> None:
        """Close the clients that were made for this event loop."""
        loop = self._loops.pop(asyncio.get_running_loop(), None)
        for model in loop.models.values() if loop is not None else ():
            await model.__aexit__(None, None, None)

    def _keys_of(self, name: str, own: Model | None) -> tuple[str, ...]:
        if own is not None:
            return ()
        listed = _of(self._keys, name)
        return () if listed is None else tuple(str(key) for key in items(listed, "keys takes a list of names of keys"))

    def _make(self, name: str, key: str, secret: Secret | None) -> Model:
        options: dict[str, str] = {}
        if key:
            options["api_key"] = self._key_of(key) if secret is None else secret.reveal()
        if url := _of(self._urls, name):
            options["base_url"] = url
        try:
            model = infer_model(name, lambda provider: _made_provider(provider, options))
        except UserError as error:
            raise BadInput(f"model {shown(name)} cannot be asked: {said(error)}") from None
        if asks_again(model):  # here once, rather than by a copy of the client for every request
            cast("Any", model.provider).client.max_retries = 0
        return model


def asks_again(model: Model) -> bool:
    """Tell whether a model's client sends a request again by itself. Whether to do that, and to whom, is not its to
    say."""
    inside = _inside(model)
    return inside.provider is not None and bool(getattr(inside.provider.client, "max_retries", 0))


def streams(model: Model) -> bool:
    """Tell whether a model can give its answer piece by piece."""
    return type(_inside(model)).request_stream is not Model.request_stream


def _inside(model: Model) -> Model:
    while isinstance(model, WrapperModel):
        model = model.wrapped
    return model


def _listed(models: Sequence[ModelGiven]) -> Iterator[tuple[str, Model | None]]:
    """Name each model, and give its object if it has one. Names must differ: keys and rests go by them."""
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


def _provider(name: str) -> str:
    kind = name.partition(":")[0]
    return next((kind.removesuffix(way) for way in _WAYS if kind.endswith(way)), kind)


def _by_provider(given: "Mapping[str, T] | T", provider: str) -> Mapping[str, T]:
    if isinstance(given, Mapping):
        return cast("Mapping[str, T]", given)
    return {provider: given}


def _of(given: Mapping[str, T], name: str) -> T | None:
    found = given.get(name)
    return found if found is not None else given.get(_provider(name))


def _preload(name: str) -> None:
    """Import what a model needs now, not in the middle of a turn; and find out whether there is such a provider."""
    if name == "test":
        return
    provider = name.partition(":")[0]
    try:
        infer_provider_class(provider)
    except ValueError:
        raise BadInput(f"model {shown(name)}: there is no provider {shown(provider)}") from None
    except ImportError as error:
        raise BadInput(f"model {shown(name)} needs a package that is not installed: {said(error)}") from None
    with suppress(ImportError):  # many providers share the client of another
        import_module(f"pydantic_ai.models.{_provider(name)}")


def _made_provider(provider: str, options: Mapping[str, str]) -> Provider[Any]:
    if not options:
        return infer_provider(provider)
    kind = infer_provider_class(provider)
    strange = sorted(options.keys() - inspect.signature(kind).parameters.keys())
    if strange or provider.startswith("gateway/"):  # a gateway's key is not for the provider behind it
        raise BadInput(f"provider {shown(provider)} takes no {(strange or sorted(options))[0]}; give a model object")
    return kind(**options)
