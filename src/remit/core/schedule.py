"""Schedules: which steps of a plan may start, and which can no longer run after a failure; linear in the
dependencies."""

from typing import Literal, NamedTuple

from remit.core.plan import Plan, followers

StepState = Literal["waiting", "running", "completed", "failed", "skipped"]


class StepEnd(NamedTuple):
    """A step that will not run, and why."""

    id: str
    state: StepState
    reason: str


class Schedule:
    """The progress of a plan. Report what happened; each method returns what follows. A step starts as soon as its own
    dependencies are done."""

    def __init__(self, plan: Plan) -> None:
        self._waits_for = {step.id: len(step.after) for step in plan.steps}
        self._followers = followers(plan)
        self.states: dict[str, StepState] = dict.fromkeys(self._waits_for, "waiting")

    def first(self) -> list[str]:
        return [id_ for id_, count in self._waits_for.items() if count == 0]

    def start(self, step: str) -> None:
        self.states[step] = "running"

    def complete(self, step: str) -> list[str]:
        """Mark a step as completed. Return the steps that may start now."""
        self.states[step] = "completed"
        ready: list[str] = []
        for id_ in self._followers[step]:
            self._waits_for[id_] -= 1
            if self._waits_for[id_] == 0 and self.states[id_] == "waiting":
                ready.append(id_)
        return ready

    def fail(self, step: str) -> list[StepEnd]:
        """Mark a step as failed, and with it every waiting step that depends on it, directly or not. Return those."""
        return self._give_up(step, "failed", "failed")

    def skip(self, step: str) -> list[StepEnd]:
        return self._give_up(step, "skipped", "was skipped")

    def skip_rest(self, reason: str) -> list[StepEnd]:
        """Start no more steps; running ones may finish. Return the steps that will not run."""
        waiting = [id_ for id_, state in self.states.items() if state == "waiting"]
        for id_ in waiting:
            self.states[id_] = "skipped"
        return [StepEnd(id_, "skipped", reason) for id_ in waiting]

    def _give_up(self, step: str, state: StepState, word: str) -> list[StepEnd]:
        self.states[step] = state
        ended: list[StepEnd] = []
        pending = [step]
        while pending:
            cause = pending.pop()
            for id_ in self._followers[cause]:
                if self.states[id_] == "waiting":
                    self.states[id_] = state
                    ended.append(StepEnd(id_, state, f'dependency "{cause}" {word}'))
                    pending.append(id_)
        return ended
