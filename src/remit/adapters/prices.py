"""Model prices from the genai-prices package (`remit[prices]`), and the owner's own.

The price list is the one in the installed package. Nothing is downloaded: the package can update its prices in the
background if a program starts that, but the updated prices are not used here.
"""

import re
import time
from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta
from decimal import ROUND_CEILING, Context, localcontext
from functools import lru_cache
from importlib import import_module
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, cast

from remit.core import prices
from remit.core.checks import of_type
from remit.core.prices import DOLLAR, Price, Usage
from remit.core.times import aware
from remit.errors import BadInput
from remit.ports import Clock

if TYPE_CHECKING:  # imported on first use, by KnownPrices
    from genai_prices.types import ModelInfo, ModelPrice

__all__ = ["KnownPrices", "Price", "Usage"]

REMEMBERED: Final = 1_000  # models, known and unknown
_LONGEST_NAME: Final = 256  # of a model; a longer text is no name and not worth matching
_MARK: Final = re.compile("[:/]")
_EXACT: Final = Context(prec=100)  # more digits than any price times any number of tokens has
_STEP, _STEPS = timedelta(minutes=30), 48  # a day ahead: some prices depend on the hour, and dates begin at midnight
_NONE: Final[Mapping[str, Price]] = MappingProxyType({})


class KnownPrices:
    """Model prices: from `overrides`, otherwise from the genai-prices package, otherwise None.

    Name a model as `gpt-5`, or with its provider as `openai:gpt-5` or `openai/gpt-5`, which are the same. An override
    for `gpt-5` applies to every provider, one for `openai:gpt-5` to that one only. `clock` is used for prices that
    depend on the time.
    """

    def __init__(self, overrides: Mapping[str, Price] = _NONE, *, clock: Clock | None = None) -> None:
        self._overrides = _checked(overrides)
        self._clock = clock
        self._listed = lru_cache(REMEMBERED)(_list_entry)
        self._has_list = True
        try:
            import_module("genai_prices.data")  # the import takes half a second, so do it now and not while agents run
        except ImportError as error:
            self._has_list = False
            if self._overrides:
                return  # the owner's prices are enough
            sentence = "KnownPrices needs the genai-prices package; pip install 'remit[prices]'"
            raise BadInput(f"{sentence} ({error})") from error

    def cost(self, model: str, usage: Usage) -> int | None:
        """Return the cost of this usage in millionths of a dollar, rounded up, or None if the price is unknown."""
        of_type(usage, Usage, "usage takes Usage(...)")
        if (price := self._override(model)) is not None:
            return prices.cost(price, usage)
        found = self._look_up(model)
        return None if found is None else _cost(found.get_prices(self._now()), usage)

    def worst(self, model: str, input_tokens: int, max_output: int) -> int | None:
        """Return the highest possible cost of one try in millionths of a dollar: at the most expensive hour of the
        coming day, with the input size and cache use that cost most. Return None if the price is unknown."""
        ways = prices.readings(input_tokens, max_output)
        if (price := self._override(model)) is not None:
            return prices.worst(price, input_tokens, max_output)
        if (found := self._look_up(model)) is None:
            return None
        # Also try the price steps below: with less input a call may be at a more expensive step.
        costs = [
            _cost(listed, usage)
            for listed in _coming(found, self._now())
            for count in (input_tokens, *(start for start in _steps(listed) if start < input_tokens))
            for usage in (ways if count == input_tokens else prices.readings(count, max_output))
        ]
        return None if None in costs else max(cast("list[int]", costs))

    def _override(self, model: str) -> Price | None:
        of_type(model, str, "a model is named by text")
        return next((self._overrides[name] for name in _spellings(model) if name in self._overrides), None)

    def _look_up(self, model: str) -> "ModelInfo | None":
        return self._listed(model) if self._has_list and len(model) <= _LONGEST_NAME else None

    def _now(self) -> datetime:
        return aware(time.time_ns() // 1_000 if self._clock is None else self._clock.now())


def _checked(overrides: Mapping[str, Price]) -> dict[str, Price]:
    given = dict(cast("Mapping[object, object]", of_type(overrides, Mapping, "overrides takes a dictionary of prices")))
    for name, price in given.items():
        of_type(name, str, "an override is for a model, which is named by text")
        of_type(price, Price, f"the override for {name} takes Price(...)")
    return cast("dict[str, Price]", given)


def _spellings(model: str) -> Iterator[str]:
    """Yield the names under which a price may be listed, the closest first."""
    yield model
    if (mark := _MARK.search(model)) is not None:
        provider, name = model[: mark.start()], model[mark.end() :]
        yield from (f"{provider}:{name}", f"{provider}/{name}", name)


def _list_entry(model: str) -> "ModelInfo | None":
    """Return the model's entry in the price list, or None. If the part before the first `:` or `/` is the name of a
    provider in the list, the rest is the name of the model."""
    from genai_prices.data import providers  # noqa: PLC0415 - see above
    from genai_prices.data_snapshot import DataSnapshot  # noqa: PLC0415

    # A new snapshot for each lookup: it caches every name forever.
    snapshot = DataSnapshot(providers, from_auto_update=False)
    mark = _MARK.search(model)
    provider = model[: mark.start()] if mark is not None else None
    try:
        snapshot.find_provider(None, provider, None)
        name = model[mark.end() :] if mark is not None else model
    except LookupError:
        provider, name = None, model
    try:
        found = snapshot.find_provider_model(name, None, provider, None)[1]
    except LookupError:
        return None
    return found if found.prices else None


def _coming(model: "ModelInfo", now: datetime) -> "list[ModelPrice]":
    """Return the prices of a model now and in the coming day, each once."""
    found = [model.get_prices(now + step * _STEP) for step in range(_STEPS + 1)]
    return list({id(one): one for one in found}.values())


def _steps(listed: "ModelPrice") -> set[int]:
    """Return the input sizes at which the price changes."""
    from genai_prices.types import TieredPrices  # noqa: PLC0415 - see above

    return {tier.start for price in vars(listed).values() if isinstance(price, TieredPrices) for tier in price.tiers}


def _cost(listed: "ModelPrice", usage: Usage) -> int | None:
    """Return the cost of the usage in millionths of a dollar, as the package computes it, or None if the list has no
    price for a part of it."""
    from genai_prices import Usage as Counted  # noqa: PLC0415 - see above

    if listed.input_mtok is None or (usage.output and listed.output_mtok is None):
        return None
    tokens = Counted(
        input_tokens=usage.input,
        output_tokens=usage.output,
        cache_read_tokens=usage.cached_input,
        cache_write_tokens=usage.cache_written,
        cache_write_1h_tokens=usage.cache_written_1h,
    )
    with localcontext(_EXACT):
        total = listed.calc_price(tokens)["total_price"]  # the price of one request
        if usage.requests != 1:
            total += (usage.requests - 1) * listed.calc_price(Counted())["total_price"]
        return prices.countable(int((total * DOLLAR).to_integral_value(ROUND_CEILING)))
