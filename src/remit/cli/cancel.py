"""`remit cancel`: stop a task and all its subtasks, wherever they run."""

import asyncio
from collections.abc import Container
from typing import Final, NamedTuple

from rich.text import Text

from remit.cli.completing import TaskId
from remit.cli.options import HERE, MYSELF, Acting, AsJson, Where, emit, opened_workspace, out, typed_with_team
from remit.core.lifecycle import TERMINAL
from remit.errors import Conflict
from remit.report.figures import count
from remit.runtime.finding import MANY
from remit.runtime.looks import RecordLook
from remit.runtime.workspace import Workspace

STOP_SECONDS: Final = 5.0  # how long `cancel` waits until everything has stopped


class Stopping(NamedTuple):
    """Tasks that have not stopped yet. `abandoned` if no living process has any of them, `alone` if no process of this
    store has a heartbeat."""

    tasks: list[str]
    abandoned: bool
    alone: bool


def cancel(
    task: TaskId,
    *,
    place: Where = HERE,
    act: Acting = MYSELF,
    why: str = "cancelled by its owner",
    json: AsJson = False,
) -> None:
    """Cancel a task or a run, with all its subtasks, in every process.

    Parameters
    ----------
    task
        Id of a run or a task, a unique prefix or suffix of it, or `last`.
    why
        Reason; shown to all that wait for the task.
    json
        Print JSON.
    """
    with opened_workspace(place) as workspace:
        asyncio.run(_cancel(workspace, task, why, act, as_json=json))


def stop_all(
    *, place: Where = HERE, act: Acting = MYSELF, why: str = "everything was stopped", json: AsJson = False
) -> None:
    """Cancel every open run and task of the workspace, in every process.

    Workers keep running and take new tasks. To stop a worker, send it SIGTERM.

    Parameters
    ----------
    why
        Reason; shown to all that wait for the tasks.
    json
        Print JSON.
    """
    with opened_workspace(place) as workspace:
        asyncio.run(_stop_all(workspace, why, act, as_json=json))


async def _stop_all(workspace: Workspace, why: str, act: Acting, *, as_json: bool) -> None:
    cancelled: dict[str, int] = {}  # tasks by the topmost one
    open_tasks: set[str] = set()
    while tops := await _tops(workspace, cancelled):  # an agent may submit meanwhile
        for top, tasks in tops.items():
            open_tasks |= tasks
            op = f"{act.op}/{top}" if act.op else ""
            try:
                cancelled[top] = await workspace.tasks.cancel(top, why, op=op, by=act.said["by"])
            except Conflict:  # it ended meanwhile
                cancelled[top] = 0
    stopping = await _stopped(workspace, sorted(open_tasks))
    number = sum(cancelled.values())
    if as_json:
        emit({"cancelled": number, "tasks": sorted(cancelled), "stopping": stopping.tasks})
    elif not cancelled:
        out().print(Text("nothing is open"))
    elif not stopping.tasks:
        out().print(Text(f"{count(number, 'task')} cancelled; all have stopped"))
    else:
        _print_stopping(stopping, number)


async def _tops(workspace: Workspace, known: Container[str]) -> dict[str, set[str]]:
    """Return the ids of the open tasks, grouped by the topmost open task above each. Groups whose topmost task is in
    `known` are left out."""
    look = await workspace.looks.tasks(state="open", limit=MANY)
    open_ = {line.record.id: line.record.parent for line in look.tasks}
    found: dict[str, set[str]] = {}
    for task in open_:
        top = task
        while open_[top] in open_:
            top = open_[top]
        if top not in known:
            found.setdefault(top, set()).add(task)
    return found


async def _cancel(workspace: Workspace, typed: str, why: str, act: Acting, *, as_json: bool) -> None:
    console = out()
    top, *below = await workspace.looks.below(typed)
    if not as_json and below:
        console.print(Text(f"cancelling {top.id} and {count(len(below), 'subtask')}", "yellow"))
    number = await workspace.tasks.cancel(top.id, why, **act.said)
    stopping = await _stopped(workspace, [top.id, *(record.id for record in below)])
    if as_json:
        emit({"task": top.id, "cancelled": number, "stopping": stopping.tasks})
    elif not stopping.tasks:
        console.print(Text(f"{top.id} is cancelled" + ("; all subtasks have stopped" if below else "")))
    else:
        _print_stopping(stopping, number)


def _print_stopping(stopping: Stopping, number: int) -> None:
    gone = f"their process is dead; a worker will end them: {typed_with_team('worker')}"
    who = gone if stopping.abandoned else "their process has been notified"
    out().print(Text(f"{len(stopping.tasks)} of {number} have not stopped yet: {who}", "yellow"))


async def _stopped(workspace: Workspace, tasks: list[str]) -> Stopping:
    """Wait until the tasks have stopped, for up to 5 seconds. If no process is left that could stop them, do not wait.
    Return the tasks that have not stopped."""
    loop = asyncio.get_running_loop()
    until = loop.time() + STOP_SECONDS
    async with workspace.journal.follow(after=0) as follow:
        stopping = _stopping(await workspace.looks.records(tasks))
        while stopping.tasks and loop.time() < until and not (stopping.abandoned and stopping.alone):
            await follow.next()
            stopping = _stopping(await workspace.looks.records(tasks))
    return stopping


def _stopping(look: RecordLook) -> Stopping:
    left, crew = [record for record in look.records if record.state not in TERMINAL], look.crew
    abandoned = all(crew.where(record.worker) in ("", "gone") for record in left)
    return Stopping([record.id for record in left], abandoned, not crew.workers)
