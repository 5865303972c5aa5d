"""Watching a run: a tree that grows in a terminal, plain lines everywhere else."""

from collections import deque
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.text import Text

from remit.cli.terminal import drawn
from remit.core.events import Event
from remit.engine.system import SystemClock
from remit.report.lines import detail, plain_line
from remit.report.tree import Growing
from remit.runtime.runtime import Runtime

_FRAMES = 12  # a second
_NOTICES = 5  # of breakers, below the tree


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
    switched: deque[Event] = deque(maxlen=_NOTICES)

    def feed(events: Sequence[Event]) -> None:
        for event in events:
            growing.add(event)
            if event.kind == "breaker.set":
                switched.append(event)

    def picture() -> RenderableType:
        if growing.root is None:
            return Text("starting …", "dim")
        return Group(drawn(growing.root, clock.now()), *(_notice(event) for event in switched))

    stop = runtime.watch(feed)
    try:
        with Live(get_renderable=picture, console=console, refresh_per_second=_FRAMES):
            yield
    finally:
        stop()


def _notice(event: Event) -> Text:
    """What became of an agent's breaker, below the tree."""
    return Text.assemble(("breaker ", "dim"), (event.agent, "bold"), (detail(event), "yellow"))


def _lines(console: Console) -> Callable[[Sequence[Event]], None]:
    def feed(events: Sequence[Event]) -> None:
        for event in events:
            console.print(plain_line(event), markup=False)

    return feed
