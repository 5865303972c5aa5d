"""`remit ps`: the open tasks, and the processes that run them."""

import asyncio
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Annotated, Final, Literal, TypeAlias, cast

from cyclopts import Parameter
from rich.text import Text

from remit.cli.options import HERE, AsJson, Where, emit, now, opened_workspace, out, typed, typed_with_team
from remit.cli.terminal import Rows, state_text
from remit.core.checks import limit as checked_limit
from remit.core.entry import Message
from remit.core.events import Labels
from remit.core.lifecycle import TERMINAL, Progress, Record
from remit.core.remit import STAND_IN
from remit.core.values import Json, canonical
from remit.ports import TaskLine
from remit.report import wire
from remit.report.figures import age, count, duration
from remit.report.looks import urgency
from remit.report.printable import escaped
from remit.runtime.filters import RunFilter, TaskFilter
from remit.runtime.looks import UNDELIVERED, TaskLook
from remit.runtime.workers import Crew, Peer
from remit.runtime.workspace import Workspace

StateName: TypeAlias = Literal[
    "open", "pending", "running", "waiting", "cancelling", "completed", "failed", "cancelled", "dead"
]
_PERSON: Final = "person"  # no agent can have this name
_SPELLED_OUT: Final = 3  # undelivered results that are listed; the rest is counted


@Parameter(name="*")
@dataclass(frozen=True)
class Narrowed:
    """Which tasks or runs to list: all conditions must hold."""

    state: StateName | None = None
    """Only those in this state."""

    agent: str = ""
    """Only those that this agent holds."""

    session: str = ""
    """Only those of this session."""

    asker: str = ""
    """Only those that this agent asked for; `person` for those that people asked for."""

    by: str = ""
    """Only those of runs that this person started."""

    tag: str = ""
    """Only those of runs with this tag."""

    since: str = ""
    """Only those requested after this time: 30m, 1h or 2d ago, or a date and time such as 2026-11-15T02:36Z."""

    until: str = ""
    """Only those requested before this time, in the same format."""

    text: str = ""
    """Only those with this text in their task, in upper or lower case."""

    def which(self) -> RunFilter:
        """Return the conditions that were given."""
        given: dict[str, object] = {
            "session": self.session or None,
            "agent": canonical(self.agent) if self.agent else None,
            "state": self.state,
            "asker": _asker(self.asker),
            "by": self.by or None,
            "tag": self.tag or None,
            "text": self.text or None,
        }
        if self.since or self.until:
            from remit.cli.times import typed_times
            from remit.core.times import aware

            times = zip(("since", "until"), typed_times(self.since, self.until, now()), strict=True)
            given |= {name: aware(at) for name, at in times if at is not None}
        return cast("RunFilter", {name: value for name, value in given.items() if value is not None})


EVERY = Narrowed()


def ps(
    *,
    place: Where = HERE,
    all: Annotated[bool, Parameter(negative="")] = False,
    only: Narrowed = EVERY,
    parent: str = "",
    limit: int = 100,
    json: AsJson = False,
) -> None:
    """List open tasks and their workers: failed and lost tasks first, then running ones, newest first.

    Parameters
    ----------
    all
        Include ended tasks.
    only
        Which tasks to list.
    parent
        Only subtasks of this task: its id, as for `remit status`.
    limit
        Maximum number of rows.
    json
        Print JSON.
    """
    most = checked_limit(limit, most=100_000)
    with opened_workspace(place) as workspace:
        which: TaskFilter = {**only.which(), "limit": most}
        if not (all or only.state):
            which["state"] = "open"
        look, lacking = asyncio.run(_look(workspace, which, parent))
        hint, every = typed_with_team("worker"), typed("remit ps --all")
    if json:
        emit(_data(look))
        return
    console = out()
    if look.tasks:
        console.print(_table(look))
        if len(look.tasks) == most:
            console.print(Text(f"the newest {most:,}; there may be more: --limit, --state, --agent", "dim"))
    else:
        narrowed = all or parent or only != EVERY
        console.print(Text("no such tasks" if narrowed else f"no open tasks; ended ones: {every}", "dim"))
    for text in _below(look, hint):
        console.print(text)
    if lacking:
        console.print(Text(lacking, "yellow"))


def _asker(given: str) -> str | None:
    """Return whose tasks to list: None for all, "" for people, or an agent."""
    if not given:
        return None
    return "" if given == _PERSON else canonical(given)


async def _look(workspace: Workspace, which: TaskFilter, parent: str) -> tuple[TaskLook, str]:
    """Return the tasks, and a sentence about pending ones whose agent no worker has, or ""."""
    if parent:
        which["parent"] = (await workspace.looks.task(parent)).id
    look = await workspace.looks.tasks(**which)
    return look, without_worker([line.record for line in look.tasks], look.crew)


def without_worker(records: Iterable[Record], crew: Crew) -> str:
    """Return a sentence about pending tasks for agents that no worker has, or "" if there are none or no worker
    runs."""
    agents = {record.holder for record in records if record.state == "pending"} - {STAND_IN}
    if not agents or not any(worker.concurrency for worker in crew.workers):
        return ""
    lacking = sorted(name for name in agents if not crew.workers_of(name))
    if not lacking:
        return ""
    names = ", ".join(f"'{escaped(name, 64)}'" for name in lacking[:8])
    return f"no worker has {names}: such a task stays pending until a worker has its agent, or until you cancel it"


def _table(look: TaskLook) -> Rows:
    names = ("id", "state", "agent", "task", "try", "took", "age", "where")
    crew = look.crew
    tasks = sorted(look.tasks, key=lambda line: urgency(crew.state(line.record)))
    rows = [_row(line.record, _subject(line, crew), crew) for line in tasks]
    return Rows(names, rows, left=3, gives_way="task")


def _row(record: Record, task: str, crew: Crew) -> list[Text | str]:
    return [
        Text(record.id),
        state_text(crew.state(record)),
        Text(escaped(record.holder, 64), "bold"),
        Text(escaped(task, 200)),
        str(record.attempt) if record.attempt else "",
        took(record, crew.at),
        age(crew.at - record.asked_at),
        Text(where(record, crew), "dim"),
    ]


def _subject(line: TaskLine, crew: Crew) -> str:
    """Return the text of a task, after its progress if it runs and has reported some."""
    found = _progress(line.record, crew)
    task = labelled(line.task, line.labels)
    return task if found is None else f"[{found}] {task}"


def labelled(task: str, labels: Labels) -> str:
    """Return the task text with the tags of its run in front of it."""
    return f"{' '.join(f'#{tag}' for tag in labels.tags)} {task}" if labels.tags else task


def _progress(record: Record, crew: Crew) -> Progress | None:
    return None if record.state in TERMINAL else crew.progress.get(record.id)


def took(record: Record, now: int) -> str:
    """Return how long a task has been running, or "" for a pending one."""
    if record.state == "pending":
        return ""
    began = record.claimed_at if record.claimed_at is not None else record.asked_at
    return duration((record.ended_at if record.ended_at is not None else now) - began)


def where(record: Record, crew: Crew) -> str:
    """Return the worker of a task, or text such as "due in 3 min" if the task may not start yet; "" if it has ended or
    no process has it."""
    if record.ended_at is not None:
        return ""
    return due_in(record, crew.at) or crew.where(record.worker)


def due_in(record: Record, now: int) -> str:
    """Return text such as "due in 3 min", or "" for a task that may start now or has started."""
    if record.state != "pending" or record.ready_at <= now:
        return ""
    return f"due in {duration(record.ready_at - now)}"


def _below(look: TaskLook, hint: str) -> Iterator[Text]:
    """Yield the lines about processes and undelivered results."""
    crew = look.crew.workers
    workers = [worker for worker in crew if worker.concurrency]
    others = [worker for worker in crew if not worker.concurrency]
    if workers:
        yield Text(
            f"{count(len(workers), 'worker')}, {sum(w.concurrency for w in workers):,} slots: {_worker_names(workers)}",
            "dim",
        )
    elif any(line.record.state == "pending" for line in look.tasks):
        yield Text(f"no worker is running; start one: `{hint}`", "yellow")
    elif any(look.crew.is_lost(line.record) for line in look.tasks):
        yield Text(f"no worker is running; `{hint}` ends or resumes abandoned tasks", "yellow")
    if others:
        yield Text(f"{_worker_names(others)} running without a queue", "dim")
    yield from _unread(look.undelivered)


def _worker_names(crew: list[Peer]) -> str:
    more = f" and {len(crew) - 8} more" if len(crew) > 8 else ""
    return ", ".join(worker.called for worker in crew[:8]) + more


def _unread(orphans: list[Message]) -> Iterator[Text]:
    if not orphans:
        return
    many = f"at least {UNDELIVERED}" if len(orphans) == UNDELIVERED else str(len(orphans))
    yield Text(f"{many} results undelivered, because the asker had ended:", "dim")
    for message in orphans[:_SPELLED_OUT]:
        yield Text.assemble(("  to ", "dim"), (escaped(message.to, 64), "bold"), f"  {escaped(message.text, 120)}")
    if len(orphans) > _SPELLED_OUT:
        yield Text(f"  … and {len(orphans) - _SPELLED_OUT} more; --json lists them", "dim")


def task_data(line: TaskLine, crew: Crew) -> dict[str, Json]:
    record = line.record
    state, place = crew.state(record), where(record, crew)
    said = _progress(record, crew)
    return {
        **wire.task(record, line.task, state=state, where=place),
        "asker": line.asker,
        **wire.labels(line.labels),
        "progress": said and said.data,
    }


def _data(look: TaskLook) -> dict[str, Json]:
    return {
        "tasks": [task_data(line, look.crew) for line in look.tasks],
        "workers": [wire.worker(worker) for worker in look.crew.workers],
        "orphans": [wire.announcement(message) for message in look.undelivered],
    }
