"""Redaction: the owner's secrets are removed from everything that is written."""

from collections.abc import Iterable
from typing import Final, cast

from remit.core.secret import REDACTED, Secret
from remit.core.values import Json
from remit.errors import BadInput

SHORTEST: Final = 8


class Redaction:
    """Replaces secrets in text and in the strings of JSON values. Without secrets it returns its input unchanged."""

    __slots__ = ("_secrets",)

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        # Longest first: a secret may be part of a longer one.
        self._secrets = sorted({_checked(secret) for secret in _listed(secrets)}, key=len, reverse=True)

    def learn(self, secret: Secret) -> None:
        """Redact this secret from now on, unless it is so short that it would match everywhere."""
        if len(secret.reveal()) >= SHORTEST and secret.reveal() not in self._secrets:
            # A new list, because another thread may be iterating over the old one.
            self._secrets = sorted([*self._secrets, secret.reveal()], key=len, reverse=True)

    def __bool__(self) -> bool:
        return bool(self._secrets)

    def text(self, text: str) -> str:
        for secret in self._secrets:
            text = text.replace(secret, REDACTED)
        return text

    def json(self, value: Json) -> Json:
        """Return the value with every string redacted, keys included."""
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, list):
            return [self.json(item) for item in value]
        if isinstance(value, dict):
            return {self.text(key): self.json(item) for key, item in value.items()}
        return value


def _listed(secrets: object) -> Iterable[object]:
    if isinstance(secrets, str | bytes) or not isinstance(secrets, Iterable):
        raise BadInput("secrets takes a list of texts, such as secrets=[os.environ['API_KEY']]")
    return cast("Iterable[object]", secrets)


def _checked(secret: object) -> str:
    if not isinstance(secret, str):
        raise BadInput(f"a secret is text, not {type(secret).__name__}; nothing of it is shown here")
    if len(secret) < SHORTEST:
        raise BadInput(f"a secret has at least {SHORTEST} characters, or it would be found everywhere")
    return secret


NOTHING_SECRET: Final = Redaction()
