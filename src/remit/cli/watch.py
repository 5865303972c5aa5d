"""`remit watch` and `remit wait`: what happens in a store, while it happens, whichever process does it."""

import asyncio
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from typing import Annotated, Final

from cyclopts import Parameter
from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.text import Text

from remit.cli.options import HERE, AsJson, Where, aside, emit, opened, options_for, out
from remit.cli.status import Detail, detail, detail_data, outcome_text
from remit.cli.terminal import drawn, summary
from remit.core.events import Event
from remit.core.lifecycle import TERMINAL
from remit.core.record import Record
from remit.core.times import SECOND, span
from remit.engine.system import SystemClock
from remit.errors import NotFound
from remit.ports import Span, Store, View, Which
from remit.report.lines import plain_line
from remit.report.tree import Growing, Node
from remit.runtime.finding import MANY, run_of, task_of
from remit.runtime.following import following, over
from remit.runtime.workers import Crew

TIMED_OUT: Final = 124  # as timeout(1) has it
_FRAMES: Final = 8  # a second
_SHOWN: Final = 12  # runs on the screen at a time
_ENDED: Final = 3  # of those, how many may have ended
_KEPT: Final = 100  # runs in memory before those that have ended are forgotten


class Screen:
    """The trees of some runs as they grow; of one task, only its part."""

    def __init__(self, task: str = "") -> None:
        self._task = task
        self._trees: dict[str, Growing] = {}
        self._clock = SystemClock()

    def add(self, events: Sequence[Event]) -> None:
        for event in events:
            if event.run:
                self._trees.setdefault(event.run, Growing()).add(event)
        if len(self._trees) > _KEPT:
            self._forget()

    def picture(self) -> RenderableType:
        now = self._clock.now()
        roots = self.roots()
        if not roots:
            return Text("nothing is open", "dim")
        parts: list[RenderableType] = [drawn(root, now) for root in roots[:_SHOWN]]
        if len(roots) > _SHOWN:
            parts.append(Text(f"… and {len(roots) - _SHOWN} more runs", "dim"))
        return Group(*parts)

    def _forget(self) -> None:
        """Whoever watches for days does not want to keep all that has ended."""
        over = [run for run, tree in self._trees.items() if tree.root is None or not _is_open(tree.root)]
        self._trees = {run: tree for run, tree in self._trees.items() if run not in over[:-_ENDED]}

    def roots(self) -> list[Node]:
        """What is open, and what ended last."""
        found = [tree.root for tree in tuple(self._trees.values()) if tree.root is not None]
        if self._task:
            found = [node for root in found for node in root.walk() if node.id == self._task]
        open_ = [_is_open(root) for root in found]
        ended = [root for root, still in zip(found, open_, strict=True) if not still]
        return ended[-_ENDED:] + [root for root, still in zip(found, open_, strict=True) if still]


def _is_open(root: Node) -> bool:
    return any(node.state not in TERMINAL for node in root.walk())


def watch(
    run: str = "last",
    *,
    place: Where = HERE,
    all: Annotated[bool, Parameter(negative="")] = False,
) -> None:
    """One run until it has ended, or everything that is open until you press Ctrl-C.

    A tree that grows in a terminal, plain lines everywhere else. What other processes do shows within half a second.

    Parameters
    ----------
    run
        The run's id, its beginning or its end as long as only one fits, or `last`.
    all
        Everything that is open, and what begins from now on.
    """
    with opened(place) as (_, store):
        asyncio.run(_all(store, out()) if all else _one(store, run, out()))


async def _one(store: Store, given: str, console: Console) -> None:
    run = await store.read(lambda view: run_of(view, given))
    screen = Screen()
    async with following(store, run=run) as follow:
        with on_screen(screen, console):
            ended = False
            while not (ended or console.quiet):
                ended = await over(store, run)  # before the last look, so that its end is on the screen
                _show(screen, console, await follow.next())
    print_end(console, await store.read(lambda view: detail(view, run)), screen)


async def _all(store: Store, console: Console) -> None:
    screen = Screen()
    events = await store.read(_what_is_open)
    screen.add(events)
    async with following(store, after=events[-1].seq if events else 0) as follow:
        with on_screen(screen, console):
            while not console.quiet:  # or nobody reads it any more
                _show(screen, console, await follow.next())


def _what_is_open(view: View) -> list[Event]:
    """The events of all runs with something open, and the one that began the newest run, in order."""
    runs = {record.run for record, _ in view.tasks(Which(state="open", limit=MANY))}
    found = [event for run in runs for event in view.events(Span(run=run))]
    for line in view.runs(1):
        newest = view.event(line.record.ended or line.record.began)
        if newest is not None and newest.run not in runs:
            found.append(newest)
    return sorted(found, key=lambda event: event.seq)


def wait(task: str = "last", *, place: Where = HERE, seconds: float | None = None, json: AsJson = False) -> int:
    """Wait until a task has ended and print its result; exits with 1 if there is none, with 124 if it takes too long.

    Parameters
    ----------
    task
        Its id, the id's beginning or end as long as only one fits, or `last`.
    seconds
        Wait at most so long; the task itself goes on.
    json
        Print all that is known of the task as JSON.
    """
    limit = None if seconds is None else span(seconds, "seconds") / SECOND
    with opened(place) as (database, store):
        where = options_for(database, store.workspace, place.store)
        found, _ = asyncio.run(_wait(store, task, limit, None if json else out(), where))
    return answered(found, as_json=json, seconds=seconds)


async def _wait(
    store: Store, given: str, seconds: float | None, console: Console | None, where: str
) -> tuple[Detail, Screen]:
    record, crew = await store.read(lambda view: (task_of(view, given), Crew(view.workers())))
    if record.state == "pending" and not crew.workers:
        aside().print(Text(f"nobody is there to carry it out: start `remit worker module:runtime{where}`", "yellow"))
    return await waited(store, record, seconds, console)


async def waited(store: Store, record: Record, seconds: float | None, console: Console | None) -> tuple[Detail, Screen]:
    """The task once it has ended, or when the time is up; in a terminal it is drawn meanwhile."""
    screen = Screen(record.id)
    drawing = console if console is not None and console.is_terminal else None
    try:
        async with asyncio.timeout(seconds), following(store, run=record.run) as follow:
            with on_screen(screen, drawing):
                while not await store.read(lambda view: _ended(view, record.id)):
                    screen.add(await follow.next())
                screen.add(await follow.next(0))
    except TimeoutError:
        pass
    return await store.read(lambda view: detail(view, record.id)), screen


def _ended(view: View, task: str) -> bool:
    standing = view.standing(task)
    if standing is None:
        raise NotFound(f"task {task} was pruned meanwhile; `remit history` has a line of it")
    return standing.state in TERMINAL


def answered(found: Detail, *, as_json: bool, seconds: float | None) -> int:
    """Says what came of waiting; gives back the exit code."""
    record = found.record
    ended = record.state in TERMINAL
    if as_json:
        emit(detail_data(found, SystemClock().now()))
    elif ended:
        out().print(outcome_text(record.state, found.result, found.error))
    else:
        aside().print(Text(f"task {record.id} is {record.state} after {seconds:g} s of waiting; it goes on", "yellow"))
    if not ended:
        return TIMED_OUT
    return 0 if record.state == "completed" else 1


def print_end(console: Console, found: Detail, screen: Screen) -> None:
    """A run's end: its sentence and figures, and what came of it."""
    for root in screen.roots()[-1:]:
        console.print(summary(root, SystemClock().now()))
    console.print(outcome_text(found.record.state, found.result, found.error))


@contextmanager
def on_screen(screen: Screen, console: Console | None) -> Generator[None]:
    """Draws the screen while the body runs, if there is one to draw on."""
    if console is None or not console.is_terminal:
        yield
        return
    with Live(get_renderable=screen.picture, console=console, refresh_per_second=_FRAMES):
        yield


def _show(screen: Screen, console: Console, events: Sequence[Event]) -> None:
    """Where nothing is drawn, an event is a line."""
    screen.add(events)
    if not console.is_terminal:
        for event in events:
            console.print(plain_line(event), markup=False)
