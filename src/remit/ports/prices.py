"""Model prices."""

from typing import Protocol

from remit.core.prices import Usage


class Prices(Protocol):
    """The price list: the cost of a model's tokens, in millionths of a US dollar, rounded up. None means that the price
    is unknown, never that it is zero."""

    def cost(self, model: str, usage: Usage) -> int | None:
        """Return the cost of this usage, or None if the price is unknown."""
        ...

    def worst(self, model: str, input_tokens: int, max_output: int) -> int | None:
        """Return the highest possible cost of one try of a call, or None if the price is unknown."""
        ...
