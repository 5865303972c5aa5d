"""Outcomes: the results of tasks."""

from dataclasses import dataclass, replace
from typing import Any, Literal

from remit.core.text import shown
from remit.core.trust import TRUSTED, Trust
from remit.core.values import Json, copied
from remit.errors import Refused, RemitError

OutcomeState = Literal["completed", "failed", "timed-out", "cancelled", "dead", "refused"]


@dataclass(frozen=True, slots=True)
class Outcome:
    """The result of a task: a value or an error.

    `agent` is the agent that was called; `by` is the agent that returned the result, if the task was handed over. `id`
    is the task id; empty for a refused call. `trust` is the label of the result: untrusted if the agent had read
    untrusted input.
    """

    agent: str
    id: str
    state: OutcomeState
    value: Json = None
    error: RemitError | None = None
    by: str = ""
    trust: Trust = TRUSTED

    @property
    def ok(self) -> bool:
        """Whether the task completed."""
        return self.state == "completed"

    @property
    def rule(self) -> str:
        """The rule that refused the call; empty if none did."""
        return self.error.rule if isinstance(self.error, Refused) else ""

    def as_asked(self, agent: str) -> "Outcome":
        """Return the outcome with `agent` as the called agent and the present one as `by`."""
        return Outcome(agent, self.id, self.state, self.value, self.error, self.agent, self.trust)

    def copied(self) -> "Outcome":
        """Return the outcome with a copy of its value, which can be changed freely."""
        return replace(self, value=copied(self.value)) if isinstance(self.value, list | dict) else self

    def unwrap(self) -> Any:
        """Return the value, or raise the error."""
        if self.error is not None:
            raise self.error
        return self.value

    def __str__(self) -> str:
        return f"{self.agent}: {self.value if self.ok else self.error}"

    def __repr__(self) -> str:
        what = shown(self.value) if self.ok else str(self.error)
        return f"<Outcome of '{self.agent}', task {self.id}, {self.state}: {what}>"
