"""Credits: money as whole millionths of a US dollar."""

import re
from typing import TypeAlias

from remit.core.text import INT_LIMIT, shown
from remit.errors import BadInput

DOLLAR = 1_000_000
CreditsGiven: TypeAlias = str | int | None  # as people write them
_DOLLARS = re.compile(r"\$?(\d{1,9})(?:\.(\d{1,6}))?")


def credits(given: object) -> int | None:  # noqa: A001 - the word of the domain; nobody exits a REPL in here
    """Read credits as a person writes them: "$0.50", or a whole number of millionths; None for no limit."""
    if given is None:
        return None
    if isinstance(given, str) and (match := _DOLLARS.fullmatch(given.strip())):
        return int(match[1]) * DOLLAR + int((match[2] or "").ljust(6, "0"))
    if isinstance(given, bool) or not isinstance(given, int) or not 0 <= given <= INT_LIMIT:
        raise BadInput(f'credits are written "$0.50" or as whole millionths of a dollar, not {shown(given)}')
    return given


def dollars(amount: int) -> str:
    """$0.50, and more places only where they are needed."""
    rest = f"{amount % DOLLAR:06d}".rstrip("0").ljust(2, "0")
    return f"${amount // DOLLAR}.{rest}"
