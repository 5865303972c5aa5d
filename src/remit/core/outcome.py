"""Outcomes: what came of asking an agent, told truthfully."""

from typing import Literal, NamedTuple

from remit.core.values import Json
from remit.errors import RemitError

OutcomeState = Literal["completed", "failed", "timed-out", "cancelled", "dead", "refused"]


class Outcome(NamedTuple):
    """One member of a fan-out: its value, or the error that stands in its place.

    `agent` is whom one asked; `by` is who answered, if the task was handed on.
    """

    agent: str
    task: str
    state: OutcomeState
    value: Json = None
    error: RemitError | None = None
    by: str = ""

    @property
    def ok(self) -> bool:
        return self.state == "completed"

    def unwrap(self) -> Json:
        """The value, or the error raised."""
        if self.error is not None:
            raise self.error
        return self.value

    def __str__(self) -> str:
        return f"{self.agent}: {self.value if self.ok else self.error}"
