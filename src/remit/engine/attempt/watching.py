"""Watching what a task asks for: the same again and again with the same outcome is a repeat, and is stopped in the end.

What was seen lives with the live task. Carried out again, a task finds what it finished, and so it is seen again.
"""

from collections.abc import Sequence
from typing import Final

from remit.core.bounds import TOP
from remit.core.identity import said
from remit.core.lifecycle import Outcome
from remit.core.loops import GROWN, USUAL, Repetition, Sign, Thresholds
from remit.core.remit import Pass
from remit.core.values import digest, encode
from remit.engine.attempt.live import LiveTask
from remit.errors import Refused

_PASSING: Final = frozenset(("concurrency", "breaker"))  # refusals that may be none a moment later
_SHORT: Final = 64


class Watch:
    """One delegation, or several that go out at once. `again` tells how often it has been the same."""

    __slots__ = ("_action", "_task", "_wish", "again")

    def __init__(
        self, task: LiveTask, action: str, at: Thresholds, wish: Pass | None = None, echo: int | None = None
    ) -> None:
        """`at` is when the same is too often; `wish` is what goes out, if it is one thing; `echo` how often an answer
        may come again if the text grows."""
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
        """Note what came of it. Whoever goes on with what is blocked, or refused each time, is stopped."""
        seen = self._task.delegated
        if self._wish is not None:
            self._hear(self._wish, outcomes[0])
        if self.again.sign >= Sign.BLOCK and all(outcome.rule == "repeat" for outcome in outcomes):
            seen.blocked(self._action)
            now = self.again
        elif any(outcome.rule in _PASSING for outcome in outcomes):
            return
        else:
            came = [_came_of(outcome) for outcome in outcomes]
            now = seen.seen(self._action, came[0] if len(came) == 1 else digest(encode(came)))
        if now.sign is Sign.STOP:
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
    """Give what tells one delegation of a task from another: whom, what for (its operation has a digest of these), and
    everything passed along."""
    asked = op.rsplit("/", 2)[1]
    return asked if _is_plain(wish) else f"{asked}/{digest(encode(said(wish)))}"


def action_of_all(wishes: Sequence[Pass]) -> str:
    """Give what tells several delegations that go out at once from others."""
    return digest(encode([[wish.to, wish.task] if _is_plain(wish) else said(wish) for wish in wishes]))


def _is_plain(wish: Pass) -> bool:
    """Whether nothing goes along, as nearly always: then whom and what for say it all."""
    return wish.within is TOP and not wish.passes


def _came_of(outcome: Outcome) -> str:
    value = outcome.value if outcome.error is None else str(outcome.error)
    text = value if isinstance(value, str) else encode(value)
    return f"{outcome.state} {text if len(text) <= _SHORT else digest(text)}"
