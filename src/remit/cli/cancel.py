"""`remit cancel`: stop a task and all its subtasks, wherever they run."""

import asyncio
from typing import Final, NamedTuple

from rich.text import Text

from remit.cli.options import HERE, MYSELF, Acting, AsJson, Where, emit, opened, out
from remit.core.lifecycle import TERMINAL, Record
from remit.ports import View
from remit.report.figures import count
from remit.runtime.finding import task_of
from remit.runtime.workers import Crew
from remit.runtime.workspace import Workspace

STOP_SECONDS: Final = 5.0  # how long `cancel` waits until everything has stopped


class Stopping(NamedTuple):
    """Tasks that have not stopped yet; `abandoned` if their processes are gone, `alone` if no process runs."""

    tasks: list[str]
    abandoned: bool
    alone: bool


def cancel(
    task: str,
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
    with opened(place) as workspace:
        asyncio.run(_cancel(workspace, task, why, act, as_json=json))


async def _cancel(workspace: Workspace, typed: str, why: str, act: Acting, *, as_json: bool) -> None:
    console = out()
    top, *below = await workspace.journal.read(lambda view: _subtree(view, typed))
    if not as_json and below:
        console.print(Text(f"cancelling {top.id} and {count(len(below), 'subtask')}", "yellow"))
    number = await workspace.tasks.cancel(top.id, why, **act.said)
    stopping = await _stopped(workspace, [top.id, *(record.id for record in below)])
    if as_json:
        emit({"task": top.id, "cancelled": number, "stopping": stopping.tasks})
    elif not stopping.tasks:
        console.print(Text(f"{top.id} is cancelled" + ("; all subtasks have stopped" if below else "")))
    else:
        gone = "their process is dead; a worker (`remit worker`) will end them"
        who = gone if stopping.abandoned else "their process has been notified"
        console.print(Text(f"{len(stopping.tasks)} of {number} have not stopped yet: {who}", "yellow"))


def _subtree(view: View, typed: str) -> list[Record]:
    """Return the task, then its open subtasks."""
    record = task_of(view, typed)
    return [record, *(below for below in view.below(record.id) if below.id != record.id)]


async def _stopped(workspace: Workspace, tasks: list[str]) -> Stopping:
    """Wait a few seconds until the tasks have stopped. Return those that have not."""
    loop = asyncio.get_running_loop()
    until = loop.time() + STOP_SECONDS
    async with workspace.journal.follow(after=0) as follow:
        stopping = await workspace.journal.read(lambda view: _stopping(view, tasks))
        while stopping.tasks and loop.time() < until and not (stopping.abandoned and stopping.alone):
            await follow.next()
            stopping = await workspace.journal.read(lambda view: _stopping(view, tasks))
    return stopping


def _stopping(view: View, tasks: list[str]) -> Stopping:
    records = [record for task in tasks if (record := view.record(task)) is not None]
    left = [record for record in records if record.state not in TERMINAL]
    crew = Crew(view.workers())
    abandoned = all(crew.where(record.worker) in ("", "gone") for record in left)
    return Stopping([record.id for record in left], abandoned, not crew.workers)
