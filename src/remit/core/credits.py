"""Credits: money as whole millionths of a US dollar. Callers write amounts with a unit; inside, an amount is an
integer."""

import math
import re
from decimal import Decimal
from functools import lru_cache
from typing import Final, Literal, TypeAlias

from remit.core.text import shown
from remit.errors import BadInput

DOLLAR: Final = 1_000_000
PLACES: Final = 6
MOST: Final = 1_000_000_000 * DOLLAR - 1  # of one amount, so that sums stay within 64 bits
CreditsGiven: TypeAlias = str | Literal[0] | None  # as callers write them
# The pattern accepts a minus on either side of the dollar sign, so that the error can name it.
_WRITTEN = re.compile(r"(-?)(\$?)(-?)([0-9]+)(?:\.([0-9]+))? *([Uu][Ss][Dd])?")
_HOW: Final = '"$0.50" or "0.50 USD"'


def credits(given: object, what: str = "credits") -> int | None:  # noqa: A001 - the word of the domain; nobody exits a REPL in here
    """Return an amount written as "$0.50" or "0.50 USD" in millionths of a dollar; 0 for nothing, None for no limit."""
    if given is None:
        return None
    if isinstance(given, bool):
        raise BadInput(f"{what}: {given} is not an amount; write {_HOW}, 0 for nothing or None for no limit")
    if isinstance(given, str):
        return _written(given, what)
    if not isinstance(given, int | float):
        raise BadInput(f"{what}: an amount is written {_HOW}, not {shown(given)}")
    return _read(_spelled(given, what), given, what)


@lru_cache(maxsize=1024)
def _written(text: str, what: str) -> int:
    """Return the amount of a text. Cached, because callers pay the same few amounts again and again."""
    return _read(text, text, what)


def _read(text: str, given: object, what: str) -> int:
    match = _WRITTEN.fullmatch(text.strip())
    if match is None or (match[2] and match[6]):
        raise BadInput(f"{what}: an amount is written {_HOW}, not {shown(given)}")
    if match[1] or match[3]:
        raise _negative(given, what)
    found = _millionths(match[4], match[5] or "", given, what)
    if found and not (match[2] or match[6]):
        plain = dollars(found)[1:].removesuffix(".00")
        raise BadInput(f'{what}: {plain} could be dollars or millionths; write "${plain}" or "{plain} USD"')
    return found


def amount(given: object, what: str) -> int:
    """Return an amount that must be given and above zero. Raise `BadInput` for None and 0."""
    found = credits(given, what)
    if not found:
        raise BadInput(f"{what}: an amount of more than nothing is needed, such as {_HOW}, not {shown(given)}")
    return found


def dollars(amount: int) -> str:
    """Return the amount as "$0.50", with more decimal places only where they are needed."""
    rest = f"{amount % DOLLAR:06d}".rstrip("0").ljust(2, "0")
    return f"${amount // DOLLAR}.{rest}"


def _spelled(number: float, what: str) -> str:
    """Return a bare number as text, to parse it like an amount in a text."""
    if isinstance(number, float) and not math.isfinite(number):
        raise BadInput(f"{what}: {number} is not an amount, and None is no limit; write {_HOW}")
    if number < 0:
        raise _negative(number, what)
    if number > MOST:  # checked first, so that a huge number is not written out
        raise _too_large(number, what)
    return f"{Decimal(float.__repr__(number)):f}" if isinstance(number, float) else str(int(number))


def _millionths(whole: str, places: str, given: object, what: str) -> int:
    if len(places) > PLACES:
        raise BadInput(
            f"{what}: an amount has at most {PLACES} decimal places, a millionth of a dollar: {shown(given)}"
        )
    if len(whole.lstrip("0")) > len(str(MOST // DOLLAR)):
        raise _too_large(given, what)
    return int(whole.lstrip("0") or "0") * DOLLAR + int(places.ljust(PLACES, "0"))


def _negative(given: object, what: str) -> BadInput:
    return BadInput(f"{what}: an amount is not negative: {shown(given)}")


def _too_large(given: object, what: str) -> BadInput:
    return BadInput(f"{what}: an amount is less than ${MOST // DOLLAR + 1:,}: {shown(given)}")
