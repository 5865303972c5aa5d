"""What models cost."""

from typing import Protocol

from remit.core.prices import Usage


class Prices(Protocol):
    """Knows what a model's tokens cost, in millionths of a US dollar rounded up. None is a price that is not known:
    never nothing, and for the caller to say openly."""

    def cost(self, model: str, usage: Usage) -> int | None:
        """Tell what that usage costs."""
        ...

    def worst(self, model: str, input_tokens: int, max_output: int) -> int | None:
        """Tell what one try of a call can cost at most."""
        ...
