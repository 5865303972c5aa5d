"""Credits and prices: money and the cost of tokens in whole millionths of a US dollar, always rounded up."""

import math
from collections.abc import Iterable
from dataclasses import fields
from decimal import Decimal
from functools import lru_cache
from typing import TYPE_CHECKING, Final, Literal, TypeAlias, cast

from remit.core.checks import counted, items, of_type
from remit.core.patterns import pattern
from remit.core.records import dataclass
from remit.core.values import INT_LIMIT, plain, shown, tokens_in
from remit.errors import BadInput

DOLLAR: Final = 1_000_000
PLACES: Final = 6
MOST: Final = 1_000_000_000 * DOLLAR - 1  # of one amount, so that sums stay within 64 bits
CreditsGiven: TypeAlias = str | Literal[0] | None  # as callers write them
# The pattern accepts a minus on either side of the dollar sign, so that the error can name it.
_WRITTEN = pattern(r"(-?)(\$?)(-?)([0-9]+)(?:\.([0-9]+))? *([Uu][Ss][Dd])?")
_HOW: Final = '"$0.50" or "0.50 USD"'


def credits(given: object, what: str = "credits") -> int | None:  # noqa: A001 - the word of the domain
    """Return an amount written as "$0.50" or "0.50 USD" in millionths of a dollar. 0 stands for nothing and None for no
    limit; both are returned as they are. Raise `BadInput` for any other value; `what` names it in the error."""
    if given is None:
        return None
    if isinstance(given, bool):
        raise BadInput(f"{what}: {given} is not an amount; write {_HOW}, 0 for nothing or None for no limit")
    if isinstance(given, str):
        return _amount_in(given, what)
    if not isinstance(given, int | float):
        raise BadInput(f"{what}: an amount is written {_HOW}, not {shown(given)}")
    return _read(_number_text(given, what), given, what)


@lru_cache(maxsize=1024)
def _amount_in(text: str, what: str) -> int:
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


def _number_text(number: float, what: str) -> str:
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


PER: Final = 1_000_000  # tokens per unit of price
PER_MESSAGE: Final = 3  # tokens around each message: role, start and end
MOST_COUNTED: Final = 100_000_000  # tokens of one request; a higher count from a provider is wrong
RateGiven: TypeAlias = str | Literal[0]  # as callers write them; a price cannot be None
_COUNTS: Final = ("input", "output", "cached_input", "cache_written", "requests", "cache_written_1h")
_WHOLE: Final = {int}
_LONGEST: Final = 1 << 31  # of a text to count, in characters


@dataclass(frozen=True, slots=True)
class Usage:
    """The token counts that a provider reported. `input` is the whole input; `cached_input` is the part that was read
    from a cache and `cache_written` the part that was written to one. `cache_written_1h` is the part of `cache_written`
    that the cache keeps for an hour. `output` is the whole output, and `requests` the number of requests."""

    input: int = 0
    output: int = 0
    cached_input: int = 0
    cache_written: int = 0
    requests: int = 1
    cache_written_1h: int = 0

    def __post_init__(self) -> None:
        counts = (self.input, self.output, self.cached_input, self.cache_written, self.requests, self.cache_written_1h)
        if not are_counts(*counts):
            for name in _COUNTS:
                counted(getattr(self, name), f"usage: {name}")
        if self.cached_input + self.cache_written > self.input:
            raise BadInput(
                f"usage: input is everything that was read; {self.cached_input:,} from a cache and "
                f"{self.cache_written:,} put into one are more than {self.input:,}, so add them to it"
            )
        if self.cache_written_1h > self.cache_written:
            raise BadInput(
                f"usage: cache_written is everything that was put into a cache; {self.cache_written_1h:,} for an hour "
                f"are more than {self.cache_written:,}, so add them to it"
            )


@dataclass(frozen=True, slots=True)
class Price:
    """The price of a million tokens: `Price(input="$2.50", output="$10")`. Cached input costs the same as other input
    unless `cached_input` or `cache_written` says otherwise, and `cache_written_1h` costs the same as `cache_written`.
    `request` is added for every request."""

    input: int
    output: int
    cached_input: int | None = None
    cache_written: int | None = None
    request: int = 0
    cache_written_1h: int | None = None

    if TYPE_CHECKING:  # what callers may pass; stored in millionths of a dollar

        def __init__(
            self,
            input: RateGiven,
            output: RateGiven,
            cached_input: CreditsGiven = None,
            cache_written: CreditsGiven = None,
            request: RateGiven = 0,
            cache_written_1h: CreditsGiven = None,
        ) -> None: ...

    def __post_init__(self) -> None:
        for part in fields(self):
            found = credits(getattr(self, part.name), f"price: {part.name}")
            if found is None and part.name not in ("cached_input", "cache_written", "cache_written_1h"):
                raise BadInput(f'price: {part.name} is an amount such as "$2.50", or 0 for nothing, not None')
            object.__setattr__(self, part.name, found)


def are_counts(*counts: object) -> bool:
    """Whether all `counts` are whole numbers from 0 to the most tokens of one request."""
    if {*map(type, counts)} != _WHOLE:
        return False
    whole = cast("tuple[int, ...]", counts)
    return min(whole) >= 0 and max(whole) <= MOST_COUNTED


def cost(price: Price, usage: Usage) -> int:
    """Return the cost of `usage` in millionths of a dollar, rounded up, so that a sum of many small costs is never too
    low."""
    of_type(price, Price, "price takes Price(...)")
    of_type(usage, Usage, "usage takes Usage(...)")
    cached = price.input if price.cached_input is None else price.cached_input
    written = price.input if price.cache_written is None else price.cache_written
    kept = written if price.cache_written_1h is None else price.cache_written_1h
    total = (
        (usage.input - usage.cached_input - usage.cache_written) * price.input
        + usage.cached_input * cached
        + (usage.cache_written - usage.cache_written_1h) * written
        + usage.cache_written_1h * kept
        + usage.output * price.output
    )
    return countable(-(-total // PER) + usage.requests * price.request)


def worst(price: Price, input_tokens: int, max_output: int, tries: int = 1) -> int:
    """Return the highest possible cost of a call in millionths of a dollar: the full output at every try, and the whole
    input at its highest price."""
    ways = readings(input_tokens, max_output)
    return countable(max(cost(price, usage) for usage in ways) * counted(tries, "tries", least=1))


def readings(input_tokens: int, max_output: int) -> tuple[Usage, ...]:
    """Return the usages of which one is the most expensive: nothing cached, everything read from a cache, everything
    written to one, and that for an hour."""
    return (
        Usage(input_tokens, max_output),
        Usage(input_tokens, max_output, cached_input=input_tokens),
        Usage(input_tokens, max_output, cache_written=input_tokens),
        Usage(input_tokens, max_output, cache_written=input_tokens, cache_written_1h=input_tokens),
    )


def rough_tokens(messages: Iterable[str]) -> int:
    """Return a rough token count of a prompt, where no tokenizer is available: four characters a token, plus three
    tokens for each message."""
    texts = items(messages, "rough_tokens takes a list of texts")
    return sum(tokens_in(plain(text, "a message", _LONGEST, empty=True)) + PER_MESSAGE for text in texts)


def countable(millionths: int) -> int:
    """Return the cost if a store can hold it. Raise `BadInput` otherwise."""
    if millionths > INT_LIMIT:
        raise BadInput("so many tokens cost more than can be counted; look at the usage and at the price")
    return millionths
