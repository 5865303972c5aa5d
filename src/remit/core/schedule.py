"""Which steps of a plan may start, and what a failure means for those that wait: bookkeeping, linear in the edges."""

from typing import Literal, NamedTuple

from remit.core.plan import Plan, followers

StepState = Literal["waiting", "running", "completed", "failed", "skipped"]


class Ended(NamedTuple):
    """A step that will not run, and why."""

    id: str
    state: StepState
    reason: str


class Schedule:
    """Feed it what happened; it answers what follows. A step starts as soon as its own dependencies are done."""

    def __init__(self, plan: Plan) -> None:
        self._waits_for = {step.id: len(step.after) for step in plan.steps}
        self._followers = followers(plan)
        self.states: dict[str, StepState] = dict.fromkeys(self._waits_for, "waiting")

    def first(self) -> list[str]:
        return [one for one, count in self._waits_for.items() if count == 0]

    def start(self, step: str) -> None:
        self.states[step] = "running"

    def complete(self, step: str) -> list[str]:
        """The steps that may start now."""
        self.states[step] = "completed"
        ready: list[str] = []
        for one in self._followers[step]:
            self._waits_for[one] -= 1
            if self._waits_for[one] == 0 and self.states[one] == "waiting":
                ready.append(one)
        return ready

    def fail(self, step: str) -> list[Ended]:
        """Those who depend on it fail too, and those who depend on them."""
        return self._give_up(step, "failed", "failed")

    def skip(self, step: str) -> list[Ended]:
        return self._give_up(step, "skipped", "was skipped")

    def skip_rest(self, reason: str) -> list[Ended]:
        """Nothing more is admitted; what runs may finish."""
        waiting = [one for one, state in self.states.items() if state == "waiting"]
        for one in waiting:
            self.states[one] = "skipped"
        return [Ended(one, "skipped", reason) for one in waiting]

    def _give_up(self, step: str, state: StepState, word: str) -> list[Ended]:
        self.states[step] = state
        found: list[Ended] = []
        pending = [step]
        while pending:
            cause = pending.pop()
            for one in self._followers[cause]:
                if self.states[one] == "waiting":
                    self.states[one] = state
                    found.append(Ended(one, state, f'dependency "{cause}" {word}'))
                    pending.append(one)
        return found
