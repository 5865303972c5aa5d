"""`remit watch` and `remit wait`: follow the events of a store, from all processes."""

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager, suppress
from functools import partial
from typing import Annotated, Final

from cyclopts import Parameter
from rich.console import Console
from rich.text import Text

from remit.cli.completing import TaskId
from remit.cli.drawing import summed_up
from remit.cli.options import HERE, AsJson, Where, aside, emit, opened_workspace, out, typed_with_team
from remit.cli.outages import Outages
from remit.cli.ps import without_worker
from remit.cli.screen import Screen, on_screen, show
from remit.cli.status import seen_data
from remit.cli.terminal import Rows, outcome_text, state_text
from remit.core.lifecycle import TERMINAL, Record
from remit.core.times import SECOND, span
from remit.engine.system import SystemClock
from remit.errors import StoreError
from remit.report.printable import escaped
from remit.runtime.looks import DetailLook
from remit.runtime.workspace import Workspace

TIMED_OUT: Final = 124  # as in timeout(1)
_PROGRESS_SECONDS: Final = 1.0  # between two reads of the heartbeats


class StoreAway(Exception):
    """The time to wait is up, and the store cannot be asked for the state of this task."""


def watch(
    run: TaskId = "last",
    *,
    place: Where = HERE,
    all: Annotated[bool, Parameter(negative="")] = False,
) -> None:
    """Follow one run or task until it ends, or all open runs until you press Ctrl-C.

    A terminal shows the growing task tree; files and pipes get plain lines. Events of other processes appear within
    half a second.

    Parameters
    ----------
    run
        Id of a run or of one of its tasks, a unique prefix or suffix of it, or `last`.
    all
        Follow all open runs and those that start from now on.
    """
    if not all:
        follow_run(run, place)
        return
    with opened_workspace(place) as workspace:
        asyncio.run(_all(workspace, out()))


def follow_run(typed: str, place: Where, *, quiet: bool = False) -> None:
    """Show a run until it ends; with `quiet`, only wait."""
    with opened_workspace(place) as workspace:
        asyncio.run(_until_end(workspace, typed) if quiet else _one(workspace, typed, out()))


async def _until_end(workspace: Workspace, typed: str) -> None:
    record = await workspace.looks.run(typed)
    await wait_for_end(workspace, record, None, None)


async def _one(workspace: Workspace, typed: str, console: Console) -> None:
    record = await workspace.looks.run(typed)
    screen, outages = Screen(record.id if record.parent else ""), Outages()
    async with workspace.journal.follow(after=0, run=record.run) as follow, _with_progress(workspace, screen, console):
        with on_screen(screen, console):
            ended = False
            while not (ended or console.quiet):
                # Checked before the last read, so that the end is on the screen.
                ended = await outages.read(lambda: workspace.looks.has_ended(record.id, run=not record.parent))
                show(screen, console, await outages.read(follow.next))
    print_end(console, await outages.read(lambda: workspace.looks.detail(record.id)), screen)


async def _all(workspace: Workspace, console: Console) -> None:
    screen, outages = Screen(), Outages()
    events = await workspace.looks.open_events()
    screen.add(events)
    follow = workspace.journal.follow(after=events[-1].seq if events else 0)
    async with follow, _with_progress(workspace, screen, console):
        with on_screen(screen, console):
            while not console.quiet:  # or until the reader has gone
                show(screen, console, await outages.read(follow.next))


@asynccontextmanager
async def _with_progress(workspace: Workspace, screen: Screen, console: Console | None) -> AsyncGenerator[None]:
    """Keep the progress of tasks on the screen up to date while the body runs; without a drawing, do nothing."""

    async def poll() -> None:
        while True:
            with suppress(StoreError):  # the command itself says that the store is away
                screen.progress = partial(dict, (await workspace.agents.workers()).progress)
            await asyncio.sleep(_PROGRESS_SECONDS)

    polling = asyncio.create_task(poll()) if console is not None and console.is_terminal else None
    try:
        yield
    finally:
        if polling is not None:
            polling.cancel()
            await asyncio.wait((polling,))


def wait(*tasks: TaskId, place: Where = HERE, timeout: float | None = None, json: AsJson = False) -> int:
    """Wait for tasks and print their results. A terminal shows their progress meanwhile.

    Exits with 1 if a task ended without a result, with 124 if a task has not ended in time.

    Parameters
    ----------
    tasks
        Ids of runs or tasks, or unique prefixes or suffixes of them. [default: last]
    timeout
        Maximum time to wait for all of them, in seconds. The tasks continue. [default: no limit]
    json
        Print the task as JSON; several as a list.
    """
    limit = None if timeout is None else span(timeout, "timeout") / SECOND
    with opened_workspace(place) as workspace:
        try:
            found = asyncio.run(_wait(workspace, tasks or ("last",), limit, None if json else out()))
        except StoreAway as away:
            line = (
                f"the store could not be reached for the last part of {timeout:g} s, so the state of {away} is unknown"
            )
            aside().print(Text(line, "yellow"))
            return TIMED_OUT
    if len(tasks) <= 1:
        return print_outcome(found[0], as_json=json, seconds=timeout)
    if json:
        emit([seen_data(seen) for seen in found])
    else:
        names = ("id", "state", "agent", "result")
        out().print(Rows(names, [_ended_row(seen) for seen in found], left=3, gives_way="result"))
    return max(map(exit_code, found))


def _ended_row(seen: DetailLook) -> list[Text | str]:
    record, detail = seen.record, seen.detail
    said = outcome_text(record.state, detail.result, detail.error).plain if record.state in TERMINAL else "it continues"
    agent = Text(escaped(record.holder, 64), "bold")
    return [Text(record.id), state_text(record.state), agent, Text(escaped(said, 300))]


async def _wait(
    workspace: Workspace, tasks: Sequence[str], seconds: float | None, console: Console | None
) -> list[DetailLook]:
    """Wait until all tasks have ended or the time is up, and return their details."""

    records = [await workspace.looks.task(task) for task in tasks]
    if any(record.state == "pending" for record in records):
        crew = await workspace.agents.workers()
        if not crew.workers:
            aside().print(Text(f"no worker is running; start one: `{typed_with_team('worker')}`", "yellow"))
        elif lacking := without_worker(records, crew):
            aside().print(Text(lacking, "yellow"))
    until = None if seconds is None else asyncio.get_running_loop().time() + seconds
    found: list[DetailLook] = []
    for record in records:
        left = None if until is None else max(0.0, until - asyncio.get_running_loop().time())
        found.append((await wait_for_end(workspace, record, left, console))[0])
    return found


async def wait_for_end(
    workspace: Workspace, record: Record, seconds: float | None, console: Console | None
) -> tuple[DetailLook, Screen]:
    """Wait until the task has ended or the time is up; `seconds` is None for no limit. Return its details, and the
    screen with its tree, which a terminal shows meanwhile. Raise `StoreAway` if the time is up during an outage."""
    screen, outages = Screen(record.id), Outages()
    drawing = console if console is not None and console.is_terminal else None
    try:
        async with (
            asyncio.timeout(seconds),
            workspace.journal.follow(after=0, run=record.run) as follow,
            _with_progress(workspace, screen, drawing),
        ):
            with on_screen(screen, drawing):
                while not await outages.read(lambda: workspace.looks.has_ended(record.id)):
                    screen.add(await outages.read(follow.next))
                screen.add(await outages.read(lambda: follow.next(0)))
                return await outages.read(lambda: workspace.looks.detail(record.id)), screen
    except TimeoutError:
        if outages.is_away:
            raise StoreAway(record.id) from None
    return await workspace.looks.detail(record.id), screen


def print_outcome(seen: DetailLook, *, as_json: bool, seconds: float | None) -> int:
    """Print the result of waiting. Return the exit code."""
    record = seen.record
    ended = record.state in TERMINAL
    if as_json:
        emit(seen_data(seen))
    elif ended:
        out().print(outcome_text(record.state, seen.detail.result, seen.detail.error))
    else:
        aside().print(Text(f"task {record.id} is {record.state} after waiting {seconds:g} s; it continues", "yellow"))
    return exit_code(seen)


def exit_code(seen: DetailLook) -> int:
    """Return the exit code of waiting for a task: 0 if it is completed, 1 if it ended otherwise, 124 if it is still
    open."""
    if seen.record.state not in TERMINAL:
        return TIMED_OUT
    return 0 if seen.record.state == "completed" else 1


def print_end(console: Console, seen: DetailLook, screen: Screen) -> None:
    """Print the end of a run: its sentence, figures and result."""
    for root in screen.roots()[-1:]:
        console.print(summed_up(root, SystemClock().now()))
    console.print(outcome_text(seen.record.state, seen.detail.result, seen.detail.error))
