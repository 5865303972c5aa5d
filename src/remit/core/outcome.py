"""Outcomes: what came of asking an agent, told truthfully."""

from dataclasses import dataclass, replace
from typing import Any, Literal

from remit.core.text import shown
from remit.core.trust import INSIDE, Trust
from remit.core.values import Json, copied
from remit.errors import Refused, RemitError

OutcomeState = Literal["completed", "failed", "timed-out", "cancelled", "dead", "refused"]


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of a task: its value, or the error that stands in its place.

    `agent` is whom one asked; `by` is who answered, if the task was handed on. `id` is the task's; a refused one has
    none. `trust` is "outside" if whoever answered had taken in something from outside.
    """

    agent: str
    id: str
    state: OutcomeState
    value: Json = None
    error: RemitError | None = None
    by: str = ""
    trust: Trust = INSIDE

    @property
    def ok(self) -> bool:
        """Whether it completed."""
        return self.state == "completed"

    @property
    def rule(self) -> str:
        """Which rule refused it; empty if none did."""
        return self.error.rule if isinstance(self.error, Refused) else ""

    def as_asked(self, agent: str) -> "Outcome":
        """Give it as an answer of the agent that was asked, by the one that answered in the end."""
        return Outcome(agent, self.id, self.state, self.value, self.error, self.agent, self.trust)

    def copied(self) -> "Outcome":
        """Give an outcome whose value can be changed without changing this one's."""
        return replace(self, value=copied(self.value)) if isinstance(self.value, list | dict) else self

    def unwrap(self) -> Any:
        """Give the value, or raise the error."""
        if self.error is not None:
            raise self.error
        return self.value

    def __str__(self) -> str:
        return f"{self.agent}: {self.value if self.ok else self.error}"

    def __repr__(self) -> str:
        what = shown(self.value) if self.ok else str(self.error)
        return f"<Outcome of '{self.agent}', task {self.id}, {self.state}: {what}>"
