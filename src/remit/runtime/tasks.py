"""`ws.tasks`: the tasks and runs of a workspace."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Unpack

from remit.core import checks
from remit.core.checks import keywords, of_type
from remit.core.entry import Message
from remit.core.lifecycle import TERMINAL, Progress
from remit.core.values import NAME_LIMIT, TASK_LIMIT, line, plain
from remit.engine.acts import act_of
from remit.engine.queue.task import Status, Task
from remit.ports import RunLine, View
from remit.runtime.filters import RunFilter, TaskFilter, which_runs, which_tasks
from remit.runtime.opening import Opening
from remit.runtime.workers import crew_of

if TYPE_CHECKING:
    from remit.ports.models import TextChunk


class WorkspaceTasks:
    """The tasks and runs of a workspace: list, cancel and retry them."""

    __slots__ = ("_opening",)

    def __init__(self, opening: Opening) -> None:
        self._opening = opening

    def get(self, task: str) -> Task:
        """Return the handle of a task by its id."""
        return Task(self._opening.engine.control, id_of(task))

    @keywords(RunFilter)
    async def runs(self, limit: int = 100, **which: Unpack[RunFilter]) -> list[RunLine]:
        """Return the runs that match all conditions, newest first; `before` is the `began` of the last run on the
        previous page."""
        wanted = which_runs(limit, which)
        if not which.keys() - {"before"}:
            return await self._opening.records.browse(lambda view: view.runs(wanted.limit, wanted.before))
        return await self._opening.records.browse(lambda view: view.run_lines(wanted))

    async def progress(self) -> dict[str, Progress]:
        """Return the latest progress of the running tasks that report some, by id: of this process at once, of other
        processes with their heartbeats."""
        here, now = live_progress(self._opening), self._opening.clock.now()

        def look(view: View) -> dict[str, Progress]:
            found = {**crew_of(view.workers(), now).progress, **here}
            running = {task: view.standing(task) for task in found}
            return {task: found[task] for task, one in running.items() if one is not None and one.state not in TERMINAL}

        return await self._opening.records.read(look)

    def words(self, hear: Callable[[TextChunk], None]) -> Callable[[], None]:
        """Call `hear` with each piece of the answers of this workspace's models, as it arrives. On PostgreSQL this
        includes models in other processes; some of their pieces may be joined or lost. Return a function that stops the
        calls. `hear` may be called on another thread, and must return at once."""
        checks.callable_(hear, "words takes a function that is given a TextChunk")
        return self._opening.hear(hear)

    async def cancel(self, task: str, why: str = "cancelled by its owner", *, op: str = "", by: str = "") -> int:
        """Cancel a task or a whole run, with all its subtasks, wherever they run. Return the number of tasks."""
        return await self._opening.engine.control.cancel(id_of(task), why, act=act_of(op, by))

    async def retry(
        self, task: str, *, from_step: str | None = None, restart: bool = False, op: str = "", by: str = ""
    ) -> Task:
        """Retry a task that did not complete, as a new task; its finished work is not repeated.

        With `from_step`, run the plan of a run that has ended again from this step, in a new run: the step and those
        that depend on it are done again, also if they completed. The results of the other steps count, and steps
        without a result continue. With `restart`, a conversation with a model that cannot be continued restarts, in
        this task and its subtasks; the model is told which tools were used before.
        """
        of_type(restart, bool, "restart is True or False")
        control, act = self._opening.engine.control, act_of(op, by)
        if from_step is None:
            return Task(control, await control.retry(id_of(task), act=act, restart=restart))
        step = plain(from_step, "from_step", TASK_LIMIT)
        return Task(control, await control.retry_from(id_of(task), step, act, restart=restart))

    async def orphans(self, limit: int = 100) -> list[Message]:
        """Return the result messages of spawned tasks whose asker had ended before it could read them."""
        most = checks.limit(limit)
        return await self._opening.records.read(lambda view: view.orphans(most))

    @keywords(TaskFilter)
    async def list(self, **which: Unpack[TaskFilter]) -> list[Status]:
        """Return the tasks that match all conditions, newest first."""
        return await self._opening.engine.control.statuses(which_tasks(which))


def live_progress(opening: Opening) -> dict[str, Progress]:
    """Return the latest progress of the tasks that run in this process, by id."""
    return opening.engine.services.conductor.alive.progress() if opening.has_engine else {}


def id_of(given: object, what: str = "a task's id") -> str:
    """Return an id as it was given. Raise `BadInput` if it cannot be one."""
    return line(given, what, NAME_LIMIT)
