"""Secrets: text that cannot be shown by accident."""

import hmac
from typing import Final, Never, Self

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
