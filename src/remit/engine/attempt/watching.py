"""Watching the delegations of a task: the same request with the same outcome again and again is a repeat, and is
stopped in the end.

The record is kept in memory with the live task. A rerun finds the finished delegations, and so builds it again.
"""

from collections.abc import Sequence
from typing import Final

from remit.core.bounds import TOP
from remit.core.identity import said
from remit.core.lifecycle import Outcome
from remit.core.loops import GROWN, ONCE, USUAL, Repetition, Sign, Thresholds
from remit.core.remit import Pass
from remit.core.values import digest, encode
from remit.engine.attempt.live import LiveTask
from remit.errors import Refused

_PASSING: Final = frozenset(("concurrency", "breaker"))  # refusals that pass with time
_SHORT: Final = 64


class Watch:
    """One delegation, or several that go out together. `again` is how often it was the same."""

    __slots__ = ("_action", "_task", "_wish", "again")

    def __init__(
        self, task: LiveTask, action: str, at: Thresholds, wish: Pass | None = None, echo: int | None = None
    ) -> None:
        """`at` are the thresholds; `wish` is the pass, if there is only one; `echo` is how often an answer may be
        repeated while the text grows."""
        self._task = task
        if at is not USUAL:
            task.delegated.judge_by(at)
        self._action = action
        self._wish = wish if echo is not None and wish is not None and len(wish.task) >= GROWN else None
        self.again = task.delegated.asks(action)
        if self._wish is not None and echo is not None:
            times = task.echoes.times(self._wish.to, self._wish.task)
            if times >= echo:
                self.again = Repetition(max(self.again.times, at.block + times - echo), echo=echo, at=at)

    def learn(self, outcomes: Sequence[Outcome]) -> None:
        """Record the outcome. Stop the task if it keeps repeating a delegation that is already blocked."""
        seen = self._task.delegated
        if self._wish is not None:
            self._hear(self._wish, outcomes[0])
        again = self.again
        if again is not ONCE and again.sign >= Sign.BLOCK and all(outcome.rule == "repeat" for outcome in outcomes):
            seen.blocked(self._action)
            now = again
        elif len(outcomes) == 1 and outcomes[0].error is None:
            now = seen.seen(self._action, _came_of(outcomes[0]))
        elif any(outcome.rule in _PASSING for outcome in outcomes):
            return
        else:
            came = [_came_of(outcome) for outcome in outcomes]
            now = seen.seen(self._action, came[0] if len(came) == 1 else digest(encode(came)))
        if now is not ONCE and now.sign is Sign.STOP:
            self._task.control.give_up(_why(now, outcomes[-1]))

    def _hear(self, wish: Pass, outcome: Outcome) -> None:
        if outcome.ok:
            value = outcome.value
            self._task.echoes.learn(wish.to, wish.task, value if isinstance(value, str) else encode(value))
        elif self.again.echo and outcome.rule == "repeat":
            self._task.echoes.refused(wish.to)


def _why(again: Repetition, last: Outcome) -> Exception:
    if last.error is not None and last.rule == "repeat":
        return last.error
    return Refused(f"the same was asked {again.times} times, and each time it was: {last}", rule="repeat")


def action_of(op: str, wish: Pass) -> str:
    """Return a key that identifies a delegation within its task: agent, task text and everything passed along. `op`
    already contains a digest of the first two."""
    asked = op.rsplit("/", 2)[1]
    return asked if _is_plain(wish) else f"{asked}/{digest(encode(said(wish)))}"


def action_of_all(wishes: Sequence[Pass]) -> str:
    """Return a key that identifies several delegations that go out together."""
    return digest(encode([[wish.to, wish.task] if _is_plain(wish) else said(wish) for wish in wishes]))


def _is_plain(wish: Pass) -> bool:
    """Whether nothing is passed along, as nearly always: then agent and text identify the delegation."""
    return wish.within is TOP and not wish.passes


def _came_of(outcome: Outcome) -> str:
    value = outcome.value if outcome.error is None else str(outcome.error)
    text = value if isinstance(value, str) else encode(value)
    return f"{outcome.state} {text if len(text) <= _SHORT else digest(text)}"
