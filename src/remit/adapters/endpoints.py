"""The endpoints of models and their keys. A key belongs to one endpoint and is never sent to another."""

import os
from collections.abc import Callable, Mapping, Sequence
from typing import Final, TypeAlias, TypeVar, cast

from remit.adapters.providers import default_key, endpoint_of, provider_of
from remit.core.checks import items
from remit.core.recovery import Choice, key_mark
from remit.core.secret import Secret
from remit.errors import BadInput

T = TypeVar("T")

KeysGiven: TypeAlias = Sequence[str] | Mapping[str, Sequence[str]]
UrlGiven: TypeAlias = str | Mapping[str, str] | None
KeyOf: TypeAlias = Callable[[str], str]

# Characters; placeholders for servers without keys are shorter, and would match ordinary words.
_SHORTEST_KEY: Final = 12
_LONG_NAME: Final = 20
_BEGINNINGS: Final = ("sk_", "pk_", "rk_", "gsk_", "xai_", "hf_", "ghp_", "AIza")


class MissingKey(BadInput):
    """A key is not set on this machine. The model is not asked with it; another model may be."""


def key_in_environment(name: str) -> str:
    """Return the key in an environment variable. Raise `MissingKey` if it is not set."""
    key = os.environ.get(name, "")
    if not key:
        raise MissingKey(
            f'there is no key: set the environment variable {name}, or name the one that holds it: keys = ["NAME"]'
        )
    return key


def _is_name(key: str) -> bool:
    """Whether this can be the name of a variable. Some keys could be one too: they are recognized by their prefix."""
    pasted = len(key) >= _LONG_NAME and key.startswith(_BEGINNINGS)
    return key.isascii() and key.isidentifier() and not pasted


class Endpoints:
    """The addresses and keys of models, which are named as `provider:model`.

    `keys` are the names of the keys for the endpoint of the `first` model, and `base_url` is the address of its
    provider. Pass dictionaries to set them by model or provider. A model with an address of its own and no keys is
    asked without a key. `key_of` returns the value of the key with a name.
    """

    def __init__(
        self, first: str, keys: KeysGiven = (), base_url: UrlGiven = None, key_of: KeyOf = key_in_environment
    ) -> None:
        self._urls = _by_provider(base_url, provider_of(first))
        self._keys = keys if isinstance(keys, Mapping) else {self.endpoint(first): keys}
        self._key_of = key_of

    def endpoint(self, name: str) -> str:
        """Return the endpoint that the keys of a model belong to."""
        return endpoint_of(provider_of(name), self.address(name))

    def address(self, name: str) -> str | None:
        """Return the address that was given for a model, or None."""
        found = self._urls.get(name)
        return found if found is not None else self._urls.get(provider_of(name))

    def choice(self, name: str) -> Choice:
        """Return a model as a choice: with the keys that were given for it, otherwise with its provider's usual one."""
        endpoint, keys = self.endpoint(name), self._keys_of(name)
        if keys:
            return Choice(name, keys, endpoint, named=True)
        usual_key = "" if self.address(name) and "@" in endpoint else default_key(provider_of(name))
        return Choice(name, (usual_key,) if usual_key and self._is_usual(usual_key, endpoint) else (), endpoint)

    def marked(self, choice: Choice) -> Choice:
        """Return the choice with the current digests of its keys, because an owner may have corrected a key. If only
        some of its keys are set on this machine, leave out the others."""
        if not choice.keys:
            return choice
        marks = [*map(self._mark, choice.keys)]
        if not all(marks) and any(marks):  # skip a key that is not set on this machine
            there = [(key, mark) for key, mark in zip(choice.keys, marks, strict=True) if mark]
            return choice._replace(keys=tuple(key for key, _ in there), marks=tuple(mark for _, mark in there))
        return choice._replace(marks=tuple(marks))

    def key(self, name: str, secret: Secret | None = None) -> str:
        """Return the value of a key: of `secret` if it is given, otherwise of the key with this name. Return "" without
        a name. Raise `MissingKey` if the key is not set."""
        return secret.reveal() if secret is not None else self._key_of(name) if name else ""

    def key_to_redact(self, key: str) -> Secret | None:
        """Return the key with this name, so that it can be redacted, or None if it is a placeholder: shorter than 12
        characters. Raise `MissingKey` if it is not set."""
        value = self._key_of(key)
        return Secret(value) if len(value) >= _SHORTEST_KEY else None

    def _is_usual(self, key: str, endpoint: str) -> bool:
        """Whether `key`, the provider's usual variable, holds the key for this endpoint. At an address other than the
        provider's usual one, the variable must be set."""
        return self._key_of is key_in_environment and ("@" not in endpoint or bool(os.environ.get(key)))

    def _mark(self, key: str) -> str:
        """Return a digest of a key's value, or "" if the key is missing."""
        try:
            return key_mark(self._key_of(key))
        except BadInput:
            return ""  # a missing key is reported when it is used

    def _keys_of(self, name: str) -> tuple[str, ...]:
        """Return the names of the keys for a model: those given for the model, for its endpoint, or for its provider.
        The provider's keys do not apply to a model with an address of its own."""
        provider = provider_of(name)
        apart = self._urls.get(name) is not None and "@" in self.endpoint(name)
        found = (self._keys.get(one) for one in (name, self.endpoint(name), *(() if apart else (provider,))))
        listed = next((one for one in found if one is not None), ())
        keys = tuple(str(key) for key in items(listed, "keys takes a list of names of keys"))
        if self._key_of is key_in_environment and not all(map(_is_name, keys)):
            raise BadInput(
                "keys takes names of environment variables, and one of these is no name: if it is a key itself, put it "
                'in a variable and name that: keys=["NAME"]; nothing of it is shown here'
            )
        return keys


def _by_provider(given: "Mapping[str, T] | T", provider: str) -> Mapping[str, T]:
    if isinstance(given, Mapping):
        return cast("Mapping[str, T]", given)
    return {provider: given}
