"""Secrets: text that cannot be shown by accident, and its redaction from everything that is written."""

import hmac
from collections.abc import Iterable
from typing import Final, Never, Self, cast

from remit.core.values import Json
from remit.errors import BadInput

REDACTED: Final = "[secret]"
LONGEST: Final = 8_192  # bytes


class Secret:
    """Text that stays hidden when it is printed, formatted, logged, copied or listed with a frame's variables.

    `reveal()` is the only way to read it. The text is kept in a closure, so there is no attribute to show. A secret
    reveals neither its length nor a hash. JSON and pickle refuse it, and a copy of it is the same object.
    """

    __slots__ = ("_told",)

    def __init__(self, text: str) -> None:
        wrong = _wrong(text)
        if wrong:
            del text  # so that a traceback with local variables does not show it
            raise BadInput(wrong)
        self._told = lambda: text

    def reveal(self) -> str:
        """Return the text itself."""
        return self._told()

    def __repr__(self) -> str:
        return REDACTED

    def __format__(self, how: str) -> str:
        return format(REDACTED, how)

    def __eq__(self, other: object) -> bool:
        """Compare in constant time, so that the duration does not tell where two secrets differ."""
        if not isinstance(other, Secret):
            return NotImplemented
        return hmac.compare_digest(self.reveal().encode(), other.reveal().encode())

    __hash__ = None  # pyright: ignore[reportAssignmentType] - a hash would reveal something about the text

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, _known: object) -> Self:
        return self

    def __reduce_ex__(self, _protocol: object) -> Never:
        raise TypeError("a Secret is not pickled: it would be written down; hand on its name and open it there")


def _wrong(text: object) -> str:
    """Return what is wrong with a value that should be a secret, without showing any of it, or "" if it is fine."""
    if not isinstance(text, str):
        return f"a secret is text, not {type(text).__name__}; nothing of it is shown here"
    if not text:
        return "a secret is not empty; was a variable of the environment not set?"
    if len(text) > LONGEST or len(text.encode(errors="replace")) > LONGEST:
        return f"a secret has at most {LONGEST:,} bytes, and this one has more; nothing of it is shown here"
    if any("\ud800" <= letter <= "\udfff" for letter in text):
        return "a secret is text that can be written, and this one has half of a surrogate pair; it is not shown here"
    return ""


SHORTEST: Final = 8


class Redaction:
    """Replaces secrets in text and in the strings of JSON values. Without secrets it returns its input unchanged."""

    __slots__ = ("_secrets", "is_empty")

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        # Longest first: a secret may be part of a longer one.
        self._secrets = sorted({_checked(secret) for secret in _secret_list(secrets)}, key=len, reverse=True)
        self.is_empty = not self._secrets  # an attribute, because every write asks

    def learn(self, secret: Secret) -> None:
        """Redact this secret from now on, unless it is so short that it would match everywhere."""
        if len(secret.reveal()) >= SHORTEST and secret.reveal() not in self._secrets:
            # A new list, because another thread may be iterating over the old one.
            self._secrets = sorted([*self._secrets, secret.reveal()], key=len, reverse=True)
            self.is_empty = False

    def __bool__(self) -> bool:
        return bool(self._secrets)

    def text(self, text: str) -> str:
        for secret in self._secrets:
            text = text.replace(secret, REDACTED)
        return text

    def split(self, text: str) -> tuple[str, str]:
        """Return the beginning of a text that is not complete yet, redacted, and the rest, which may be the beginning
        of a secret. Put the rest in front of the text that follows."""
        cut = len(text)
        for secret in self._secrets:
            cut = min(cut, _beginning(secret, text))
        earlier = -1
        while earlier != cut:  # a secret that is whole must not be cut in two, and neither must one that this moves
            earlier = cut
            for secret in self._secrets:
                found = text.find(secret, max(0, cut - len(secret) + 1), cut + len(secret) - 1)
                cut = min(cut, found) if found >= 0 else cut
        return self.text(text[:cut]), text[cut:]

    def json(self, value: Json) -> Json:
        """Return the value with every string redacted, keys included."""
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, list):
            return [self.json(item) for item in value]
        if isinstance(value, dict):
            return {self.text(key): self.json(item) for key, item in value.items()}
        return value


def _beginning(secret: str, text: str) -> int:
    """Return the position from which the end of a text is the beginning of a secret, but not the whole secret. Return
    the length of the text if there is none."""
    at = text.find(secret[0], max(0, len(text) - len(secret) + 1))
    while at >= 0:
        if secret.startswith(text[at:]):
            return at
        at = text.find(secret[0], at + 1)
    return len(text)


def _secret_list(secrets: object) -> Iterable[object]:
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
