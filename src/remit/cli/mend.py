"""`remit cancel`, `retry` and `prune`: a person's hand on tasks, wherever they run."""

import asyncio
from typing import Annotated, Final

from cyclopts import Parameter
from rich.text import Text

from remit.cli.options import HERE, AsJson, Where, aside, emit, opened, options_for, out
from remit.core.lifecycle import TERMINAL
from remit.core.record import Record
from remit.core.times import DAY, SECOND, span
from remit.engine.system import SystemClock
from remit.engine.upkeep.prune import KEPT_DAYS
from remit.ports import Database, Store, View
from remit.report.words import count
from remit.runtime.finding import task_of
from remit.runtime.following import following
from remit.runtime.runtime import Runtime
from remit.runtime.workers import Crew

STOP_SECONDS: Final = 5.0  # how long `cancel` waits until everything has stopped
_LOOKED_AT: Final = 100_000  # runs


def cancel(task: str, *, place: Where = HERE, why: str = "cancelled by its owner", json: AsJson = False) -> None:
    """Stop a task, or a whole run, and everything below it, wherever it runs.

    Parameters
    ----------
    task
        Its id, the id's beginning or end as long as only one fits, or `last`.
    why
        What those are told who wait for it.
    json
        Print what came of it as JSON.
    """
    with opened(place) as (database, store):
        asyncio.run(_cancel(_runtime(database, store), task, why, as_json=json))


async def _cancel(runtime: Runtime, given: str, why: str, *, as_json: bool) -> None:
    store, console = runtime.store, out()
    found = await store.read(lambda view: _tree(view, given))
    if not as_json and found[1:]:
        console.print(Text(f"stopping {found[0].id} and {count(len(found) - 1, 'task')} below it", "yellow"))
    stopped = await runtime.cancel(found[0].id, why)
    left, gone = await _stopped(store, [record.id for record in found])
    if as_json:
        emit({"task": found[0].id, "cancelled": stopped, "stopping": [*left]})
    elif not left:
        console.print(Text(f"{found[0].id} is cancelled" + ("; all of it has stopped" if found[1:] else "")))
    else:
        who = "their process is gone; `remit worker` ends them" if gone else "their process has been told"
        console.print(Text(f"{len(left)} of {stopped} have not stopped yet: {who}", "yellow"))


def _tree(view: View, given: str) -> list[Record]:
    """The task first, then what is open below it."""
    record = task_of(view, given)
    below = view.below(record.id)
    return [record, *(one for one in below if one.id != record.id)]


async def _stopped(store: Store, tasks: list[str]) -> tuple[list[str], bool]:
    """Which of them are still stopping after a few seconds, and whether nobody is there to stop them."""

    def look(view: View) -> tuple[list[str], bool]:
        records = [record for task in tasks if (record := view.record(task)) is not None]
        left = [record for record in records if record.state not in TERMINAL]
        crew = Crew(view.workers())
        return [record.id for record in left], all(crew.where(record.worker) in ("", "gone") for record in left)

    loop = asyncio.get_running_loop()
    until = loop.time() + STOP_SECONDS
    async with following(store) as follow:
        left, gone = await store.read(look)
        while left and loop.time() < until and not (gone and await _nobody(store)):
            await follow.next()
            left, gone = await store.read(look)
    return left, gone


async def _nobody(store: Store) -> bool:
    """Whether there is no process at all that could end what others left behind."""
    return not await store.read(lambda view: Crew(view.workers()).workers)


def retry(task: str, *, place: Where = HERE, json: AsJson = False) -> None:
    """Have a task carried out once more that failed, died or was cancelled; what it had finished is not done again.

    Parameters
    ----------
    task
        Its id, the id's beginning or end as long as only one fits, or `last`.
    json
        Print the new task's id as JSON.
    """
    with opened(place) as (database, store):
        again = asyncio.run(_retry(_runtime(database, store), task))
        where = options_for(database, store.workspace, place.store)
    if json:
        emit({"task": again})
        return
    out().print(Text(again))
    aside().print(Text(f"remit wait {again}{where}", "dim"))


async def _retry(runtime: Runtime, given: str) -> str:
    record = await runtime.store.read(lambda view: task_of(view, given))
    return (await runtime.task(record.id).retry()).id


def prune(
    *,
    place: Where = HERE,
    days: float = KEPT_DAYS,
    dry_run: Annotated[bool, Parameter(negative="")] = False,
    json: AsJson = False,
) -> None:
    """Take away the runs that ended long ago; the journal keeps a line of each.

    Parameters
    ----------
    days
        How long ago.
    dry_run
        Only say how many it would be.
    json
        Print what came of it as JSON.
    """
    older = span(days, "--days") * (DAY // SECOND)
    with opened(place) as (database, store):
        if dry_run:
            before = SystemClock().now() - older
            number = asyncio.run(store.read(lambda view: _old(view, before)))
        else:
            number = asyncio.run(_runtime(database, store).prune(days))
    if json:
        emit({"pruned": 0 if dry_run else number, "old": number})
    elif dry_run:
        out().print(Text(f"{count(number, 'run')} ended more than {days:g} days ago and would be taken away"))
    else:
        out().print(Text(f"{count(number, 'run')} that ended more than {days:g} days ago taken away"))


def _old(view: View, before: int) -> int:
    return sum(
        all(state in TERMINAL and ended is not None and ended < before for _, state, ended in view.of_run(run))
        for run in view.old(before, _LOOKED_AT)
    )


def _runtime(database: Database, store: Store) -> Runtime:
    """One without agents, which changes what is in the store and carries nothing out."""
    return Runtime(database, workspace=store.workspace, hands=0)
