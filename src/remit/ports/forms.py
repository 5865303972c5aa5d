"""The form of a result."""

from typing import Any, Protocol

from remit.core.values import Json


class Form(Protocol):
    """A type or a JSON Schema; an adapter implements it. Both methods raise `BadInput` that names each place that does
    not fit."""

    def read(self, value: Json, what: str) -> Any:
        """Return the object that a JSON value describes. Raise `BadInput`, whose message calls the value `what`, if it
        does not fit."""
        ...

    def write(self, answer: object, what: str) -> Json:
        """Return an agent's result as JSON that `read` can read. Raise `BadInput`, whose message calls the result
        `what`, if it does not fit."""
        ...
