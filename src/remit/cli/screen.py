"""Watching runs: trees that grow in a terminal, plain lines everywhere else."""

from collections import deque
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from typing import Final, Self

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.text import Text

from remit.cli.terminal import drawn
from remit.core.events import Event
from remit.core.lifecycle import TERMINAL
from remit.engine.system import SystemClock
from remit.report.lines import detail, plain_line
from remit.report.tree import Growing, Node
from remit.runtime.runtime import Runtime

_FRAMES: Final = 10  # a second
_SHOWN: Final = 12  # runs on the screen at a time
_ENDED: Final = 3  # of those, how many may have ended
_KEPT: Final = 100  # runs in memory before those that have ended are forgotten
_NOTICES: Final = 5  # of breakers, below the trees


class Screen:
    """The trees of some runs as they grow, and what became of breakers meanwhile.

    With a `task`, only its part of the tree; with `first_only`, only the first run that begins.
    """

    def __init__(self, task: str = "", *, first_only: bool = False, idle: str = "nothing is open") -> None:
        self._task = task
        self._first_only = first_only
        self._idle = idle
        self._trees: dict[str, Growing] = {}
        self._notices: deque[Event] = deque(maxlen=_NOTICES)
        self._clock = SystemClock()

    def add(self, events: Sequence[Event]) -> None:
        for event in events:
            if event.kind == "breaker.set":
                self._notices.append(event)
            if event.run and (event.run in self._trees or not (self._first_only and self._trees)):
                self._trees.setdefault(event.run, Growing()).add(event)
        if len(self._trees) > _KEPT:
            self._forget()

    def picture(self) -> RenderableType:
        now = self._clock.now()
        roots = self.roots()
        if not roots:
            return Text(self._idle, "dim")
        parts: list[RenderableType] = [drawn(root, now) for root in roots[:_SHOWN]]
        if len(roots) > _SHOWN:
            parts.append(Text(f"… and {len(roots) - _SHOWN} more runs", "dim"))
        return Group(*parts, *(_notice(event) for event in tuple(self._notices)))

    def roots(self) -> list[Node]:
        """List what ended last and what is open."""
        roots = [tree.root for tree in tuple(self._trees.values()) if tree.root is not None]
        if self._task:
            roots = [node for root in roots for node in root.walk() if node.id == self._task]
        open_ = [_is_open(root) for root in roots]
        ended = [root for root, still in zip(roots, open_, strict=True) if not still]
        return ended[-_ENDED:] + [root for root, still in zip(roots, open_, strict=True) if still]

    def _forget(self) -> None:
        """Whoever watches for days does not want to keep all that has ended."""
        over = [run for run, tree in self._trees.items() if tree.root is None or not _is_open(tree.root)]
        self._trees = {run: tree for run, tree in self._trees.items() if run not in over[:-_ENDED]}


def _is_open(root: Node) -> bool:
    return any(node.state not in TERMINAL for node in root.walk())


def _notice(event: Event) -> Text:
    """breaker coder: open after 3 failures: no disk"""
    return Text.assemble(("breaker ", "dim"), (event.agent, "bold"), (detail(event), "yellow"))


class Drawing:
    """Draws a screen while the body runs, if there is a terminal to draw on. It can be paused, for a person to type."""

    def __init__(self, screen: Screen, console: Console | None) -> None:
        self._screen = screen
        self._console = console if console is not None and console.is_terminal else None
        self._live: Live | None = None
        self._over = False

    def __enter__(self) -> Self:
        self._start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over = True
        self._stop()

    def _start(self) -> None:
        if self._console is not None and not self._over:
            live = Live(get_renderable=self._screen.picture, console=self._console, refresh_per_second=_FRAMES)
            live.start()
            self._live = live

    def _stop(self) -> None:
        if self._live is not None:
            self._live.stop()
            self._live = None

    @contextmanager
    def paused(self) -> Generator[None]:
        """Leave the terminal alone meanwhile; afterwards the screen is drawn anew, below what was typed, unless what is
        drawn has ended."""
        drawing = self._live is not None
        self._stop()
        try:
            yield
        finally:
            if drawing:
                self._start()


def on_screen(screen: Screen, console: Console | None) -> Drawing:
    """Draw the screen while the body runs, if there is a terminal to draw on."""
    return Drawing(screen, console)


def show(screen: Screen, console: Console, events: Sequence[Event]) -> None:
    """Put new events on the screen; where nothing is drawn, an event is a line."""
    screen.add(events)
    if not console.is_terminal:
        for event in events:
            console.print(plain_line(event), markup=False)


@contextmanager
def watching(runtime: Runtime, console: Console | None) -> Generator[Drawing]:
    """Show the run that this runtime carries out while the body runs, if there is a console."""
    screen = Screen(first_only=True, idle="starting …")
    if console is None:
        yield on_screen(screen, None)
        return
    stop = runtime.workspace.watch(lambda events: show(screen, console, events))
    try:
        with on_screen(screen, console) as drawing:
            yield drawing
    finally:
        stop()
