"""Watching a run: a tree that grows in a terminal, plain lines everywhere else."""

from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager

from rich.console import Console
from rich.live import Live
from rich.text import Text

from remit.cli.drawing import drawn
from remit.core.events import Event
from remit.core.printable import escaped
from remit.core.report import Growing
from remit.core.times import iso
from remit.engine.system import SystemClock
from remit.runtime import Runtime

_FRAMES = 12  # a second


@contextmanager
def watching(runtime: Runtime, console: Console) -> Generator[None]:
    """Shows what happens while the body runs."""
    if console.is_terminal:
        with _tree(runtime, console):
            yield
    else:
        stop = runtime.watch(_lines(console))
        try:
            yield
        finally:
            stop()


@contextmanager
def _tree(runtime: Runtime, console: Console) -> Generator[None]:
    growing = Growing()
    clock = SystemClock()

    def feed(events: Sequence[Event]) -> None:
        for event in events:
            growing.add(event)

    def picture() -> Text | object:
        return drawn(growing.root, clock.now()) if growing.root else Text("starting …", "dim")

    stop = runtime.watch(feed)
    try:
        with Live(get_renderable=picture, console=console, refresh_per_second=_FRAMES):  # pyright: ignore[reportArgumentType]
            yield
    finally:
        stop()


def _lines(console: Console) -> Callable[[Sequence[Event]], None]:
    def feed(events: Sequence[Event]) -> None:
        for event in events:
            console.print(plain_line(event), markup=False)

    return feed


def plain_line(event: Event) -> str:
    """2026-11-15T02:36:54.123Z task.started coder: write the auth module"""
    when = f"{iso(event.at)[:23]}Z"
    return f"{when} {event.kind} {event.agent or 'person'}{_detail(event)}"


def _detail(event: Event) -> str:
    data = event.data
    match event.kind:
        case "task.started" | "task.completed":
            told = f": {data['task' if event.kind == 'task.started' else 'result']}"
        case "task.failed" | "task.cancelled":
            told = f": {data['error']}"
        case "hop.refused":
            told = f": {data['to']} ({data['rule']}): {data['sentence']}"
        case "entry.set":
            told = f": {data['namespace']}/{data['key']} v{data['version']}"
        case "message.sent":
            told = f" to {data['to']}"
        case _:
            told = ""
    return escaped(told, 240)
