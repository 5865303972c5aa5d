"""Watching a run: a tree that grows in a terminal, plain lines everywhere else."""

from collections import deque
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from typing import Final, TypeAlias, cast

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.text import Text

from remit.cli.drawing import drawn
from remit.core.events import Event
from remit.core.flow.words import count
from remit.core.printable import escaped
from remit.core.report import Growing
from remit.core.times import iso
from remit.core.values import Json
from remit.engine.system import SystemClock
from remit.runtime import Runtime

_FRAMES = 12  # a second
_NOTICES = 5  # of breakers, below the tree

Data: TypeAlias = dict[str, Json]


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
    return Text.assemble(("breaker ", "dim"), (event.agent, "bold"), (_detail(event), "yellow"))


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
    return escaped(_TOLD[event.kind](event.data), 240) if event.kind in _TOLD else ""


def _handed(data: Data) -> str:
    """to billing (phase refund)"""
    to, phase = data["to"], cast("dict[str, Json]", data["update"]).get("phase")
    whom = ", ".join(cast("list[str]", to)) if isinstance(to, list) else str(to)
    return f" to {whom}" + (f" (phase {phase})" if phase else "")


def _refused(data: Data) -> str:
    word = "handoff to " if data.get("handoff") else ""
    return f": {word}{data['to']} ({data['rule']}): {data['sentence']}"


def _planned(data: Data) -> str:
    steps = cast("list[dict[str, Json]]", data["steps"])
    return f": {len(steps)} steps: {', '.join(str(step['title']) for step in steps[:20])}"


def _breaker(data: Data) -> str:
    """: open after 3 failures: no disk"""
    failures = f" after {count(cast('int', data['failures']), 'failure')}" if data["failures"] else ""
    return f": {data['state']}{failures}" + (f": {data['why']}" if data["why"] else "")


_TOLD: Final[dict[str, Callable[[Data], str]]] = {
    "task.started": lambda data: f": {data['task']}",
    "task.completed": lambda data: f": {data['result']}",
    "task.failed": lambda data: f": {data['error']}",
    "task.cancelled": lambda data: f": {data['error']}",
    "task.handed": _handed,
    "hop.refused": _refused,
    "plan.started": _planned,
    "step.ended": lambda data: f": step {data['step']} {data['state']}: {data['reason']}",
    "breaker.set": _breaker,
    "entry.set": lambda data: f": {data['namespace']}/{data['key']} v{data['version']}",
    "message.sent": lambda data: f" to {data['to']}",
}
