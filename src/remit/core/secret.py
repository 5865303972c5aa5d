"""Secrets: text that nothing shows by accident."""

import hmac
from typing import Final, Never, Self

from remit.errors import BadInput

REDACTED: Final = "[secret]"
LONGEST: Final = 8_192  # bytes


class Secret:
    """Text that is shown nowhere: not when it is printed, formatted, logged, copied or listed with a frame's variables.

    `reveal()` is the only way out. It is held in a closure, so that there is no attribute to show. It tells neither how
    long it is nor a hash, it is refused by JSON and pickle, and a copy of it is the same object.
    """

    __slots__ = ("_told",)

    def __init__(self, text: str) -> None:
        wrong = _wrong(text)
        if wrong:
            del text  # a traceback that lists variables must not show it either
            raise BadInput(wrong)
        self._told = lambda: text

    def reveal(self) -> str:
        """Give the text itself."""
        return self._told()

    def __repr__(self) -> str:
        return REDACTED

    def __format__(self, how: str) -> str:
        return format(REDACTED, how)

    def __eq__(self, other: object) -> bool:
        """Compare in a time that tells nothing of where two secrets differ."""
        if not isinstance(other, Secret):
            return NotImplemented
        return hmac.compare_digest(self.reveal().encode(), other.reveal().encode())

    __hash__ = None  # pyright: ignore[reportAssignmentType] - it would tell something of the text

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, _known: object) -> Self:
        return self

    def __reduce_ex__(self, _protocol: object) -> Never:
        raise TypeError("a Secret is not pickled: it would be written down; hand on its name and open it there")


def _wrong(text: object) -> str:
    """Say what is wrong with what shall be a secret, without showing any of it."""
    if not isinstance(text, str):
        return f"a secret is text, not {type(text).__name__}; nothing of it is shown here"
    if not text:
        return "a secret is not empty; was a variable of the environment not set?"
    if len(text) > LONGEST or len(text.encode(errors="replace")) > LONGEST:
        return f"a secret has at most {LONGEST:,} bytes, and this one has more; nothing of it is shown here"
    if any("\ud800" <= letter <= "\udfff" for letter in text):
        return "a secret is text that can be written, and this one has half of a surrogate pair; it is not shown here"
    return ""
