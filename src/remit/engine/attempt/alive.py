"""The tasks that are alive in this process."""

from __future__ import annotations

from collections.abc import Mapping

from remit.core.life import Life
from remit.engine.attempt.calls import Call
from remit.engine.attempt.lines import Hands, Line
from remit.engine.attempt.live import LiveTask


class LiveTasks:
    """The tasks alive in this process. Cancelling one cancels all below it, because their scopes nest."""

    __slots__ = ("_live", "hands")

    def __init__(self) -> None:
        self._live: dict[str, LiveTask] = {}
        self.hands = Hands(0)  # of this process's worker, once there is one

    def enter(self, live: LiveTask) -> LiveTask:
        """Make a task alive, in the line of its asker or in one of its own."""
        self._live[live.remit.id] = live
        line = live.control.line
        if line is None:
            line = live.control.line = Line(self.hands if live.attempt.queued else None)
        line.enter(live.remit.id, live)
        return live

    def leave(self, live: LiveTask) -> None:
        """Forget a task that is over, in whoever's hands it ended."""
        last = self.latest(live)
        live.over = last.over = True
        last.life.end()
        if self._live.get(live.remit.id) is last:
            del self._live[live.remit.id]
        line = last.control.line
        assert line is not None  # it was alive
        line.leave(last.remit.id, waits=last.life.waits > 0, last=last.attempt.queued)

    def latest(self, live: LiveTask) -> LiveTask:
        """Return the turn of the present holder under the same claim; a later claim of the same task does not count."""
        now = self._live.get(live.remit.id)
        return now if now is not None and now.control is live.control else live

    def lost(self, held: Mapping[str, int]) -> list[LiveTask]:
        """List the queued tasks that run here although their claim is not ours any more. `held` has the fences of those
        that are."""
        queued = (live for live in self._live.values() if live.attempt.queued)
        return [live for live in queued if held.get(live.remit.id) != live.attempt.fence]

    def nested_in(self, live: LiveTask) -> list[LiveTask]:
        """List the task and those it is nested in, as far as they are alive here."""
        line: list[LiveTask] = []
        above: LiveTask | None = live
        while above is not None:
            line.append(above)
            above = self._live.get(above.remit.parent)
        return line

    def under(self, life: Life) -> list[LiveTask]:
        """List the tasks that one waits for, as far as they are alive here."""
        return [live for live in self._live.values() if live.life.is_under(life)]

    def calls_inside(self, call: Call) -> list[Call]:
        """List the calls that are under way inside of this one."""
        control = next((live.control for live in self._live.values() if call in live.control.calls), None)
        if control is None:
            return []
        own = control.calls[control.calls.index(call) + 1 :]
        return own + [one for live in self.under(control.life) for one in live.control.calls]

    def get(self, task: str) -> LiveTask | None:
        return self._live.get(task)

    def __len__(self) -> int:
        return len(self._live)
