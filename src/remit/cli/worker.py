"""`remit worker`: run queued tasks until stopped."""

import asyncio
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Annotated, Final, NamedTuple, cast

from cyclopts import Parameter
from rich.console import Console
from rich.text import Text

from remit.cli.completing import TeamName
from remit.cli.interrupts import INTERRUPTED, Interrupts, interrupts
from remit.cli.loading import lasting, load_team
from remit.cli.observing import LogFormat, json_line, json_logs, observed
from remit.cli.options import OwnStore, out, usual_team
from remit.cli.terminal import COLOURS, colour
from remit.config.teams import Team
from remit.core.checks import whole
from remit.core.events import Event
from remit.core.lifecycle import ENDS, lands
from remit.core.times import SECOND, iso
from remit.engine.settings import HANDS
from remit.engine.system import SystemClock
from remit.errors import BadInput
from remit.report.figures import count, duration
from remit.report.looks import look
from remit.report.printable import escaped
from remit.runtime.runtime import Runtime, run_main
from remit.runtime.workspace import announce, subscribe

# Events that end an attempt, and their words.
_TOLD: Final = {kind: (look(lands(kind)).word, colour(lands(kind))) for kind in sorted(ENDS)} | {
    "task.retrying": ("retrying", COLOURS["stopped"]),
    "task.released": ("requeued", COLOURS["stopped"]),
}
_QUEUED: Final = ("submit", "spawn", "async")


def worker(
    runtime: TeamName = "",
    *,
    store: OwnStore = None,
    concurrency: int | None = None,
    drain_timeout: float = 30.0,
    heartbeat_timeout: Annotated[float | None, Parameter(name="--heartbeat-timeout")] = None,
    metrics: int | None = None,
    log_format: LogFormat = "text",
) -> int:
    """Start a worker: run queued tasks, and take over the tasks of dead workers.

    The first SIGTERM or Ctrl-C drains the worker: it claims no new tasks and requeues those that do not finish in time.
    The second stops it at once. If the database is not up yet, the worker waits for it.

    Parameters
    ----------
    runtime
        The Runtime as `team:rt` or `./team.py:rt`, or a team file. [default: REMIT_TEAM, else remit.toml]
    store
        Store of the queue: a SQLite file or a postgresql:// URL. [default: the runtime's own]
    concurrency
        Maximum number of tasks at a time. [default: the runtime's, else 100]
    drain_timeout
        Time for running tasks to finish on shutdown, in seconds.
    heartbeat_timeout
        Other workers take over after this many seconds without a heartbeat. [default: the runtime's, else 15]
    metrics
        Port on this machine for Prometheus; 0 for any free one. [default: no metrics]
    log_format
        Format of the lines about tasks, and of the log: text, or json with one object per line.
    """
    whole(concurrency, "--concurrency", least=1)
    if drain_timeout < 0:
        raise BadInput("--drain-timeout is a number of seconds, 0 to requeue at once")
    loaded = load_team(runtime)
    own = loaded.runtime
    given = {"concurrency": concurrency or own.concurrency or HANDS, "heartbeat_timeout": heartbeat_timeout}
    serving = replace(own.serving_settings, **{name: value for name, value in given.items() if value is not None})
    log = Log(out()) if log_format == "text" else JsonLog(out())
    with own.at(store, serving=serving) as team, json_logs(log_format), observed(team, metrics, log.say):
        try:
            named = loaded._replace(runtime=team)
            return run_main(_work(named, runtime or usual_team(), log, drain_timeout))
        except asyncio.CancelledError:  # the second signal
            return INTERRUPTED


async def _work(team: Team, called: str, log: "Log", drain_timeout: float) -> int:
    runtime = team.runtime
    with interrupts() as heard:
        if not await _available(runtime, heard):
            log.summary()
            return 0
        lasting(runtime, "no other process could submit to its queue")
        await _set_schedules(team, log)
        stop = subscribe(runtime.workspace, log.feed)
        await announce(runtime.workspace)
        serving = asyncio.create_task(runtime.serve())
        try:
            log.say(_greeting(runtime, called, runtime.concurrency))
            await _until_told(serving, heard)
            await drained(runtime, log, drain_timeout)
            await serving
        finally:
            stop()
            log.summary()
    return 0


async def _set_schedules(team: Team, log: "Log") -> None:
    """Set the schedules of the team's file, and print what changed."""
    if not team.file:
        return
    from remit.cli.schedule import set_schedules

    for sentence, style in await set_schedules(team):
        log.say(sentence, style)


async def _available(runtime: Runtime, heard: Interrupts) -> bool:
    """Wait until the store is reachable. Return False if this process was told to stop first."""
    waiting = asyncio.create_task(runtime.available())
    told = asyncio.create_task(heard.first.wait())
    await asyncio.wait((waiting, told), return_when=asyncio.FIRST_COMPLETED)
    told.cancel()
    if waiting.done():
        waiting.result()
        return True
    waiting.cancel()
    await asyncio.wait([waiting])
    return False


def _greeting(runtime: Runtime, called: str, concurrency: int) -> str:
    workspace = runtime.workspace
    where = f"{workspace.where}, workspace {workspace.name}"
    return f"worker started: {called} on {where}, up to {count(concurrency, 'task')} at a time; Ctrl-C drains"


async def _until_told(serving: "asyncio.Task[None]", heard: Interrupts) -> None:
    told = asyncio.create_task(heard.first.wait())
    await asyncio.wait((serving, told), return_when=asyncio.FIRST_COMPLETED)
    told.cancel()
    if serving.done():  # serving never ends by itself, so it has failed
        serving.result()


async def drained(runtime: Runtime, log: "Log", seconds: float) -> None:
    """Give running tasks this long to finish, and requeue the rest."""
    if log.open:
        still = f"{count(len(log.open), 'task')} still running"
        log.say(f"draining: {still}; press Ctrl-C again to stop at once", "yellow")
    await runtime.drain(seconds)


class Log:
    """Prints a line for each task that starts here, and for each that ends or is requeued."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._clock = SystemClock()
        self._since = self._clock.now()
        self.open: dict[str, int] = {}  # since when
        self.counts: Counter[str] = Counter()

    def feed(self, events: Sequence[Event]) -> None:
        for event in events:
            if event.kind == "task.lost":
                self.show(event, "taken over", "magenta", TaskFacts(more="from a dead process"))
            elif event.kind == "task.claimed" or (
                event.data.get("asked_how") in _QUEUED and event.kind == "task.started"
            ):
                self._begun(event)
            elif event.kind in _TOLD and (event.task in self.open or "receipt" not in event.data):
                self._ended(event)

    def say(self, sentence: str, colour: str = "") -> None:
        self._console.print(Text(sentence, colour))

    def summary(self) -> None:
        counts = ", ".join(f"{number:,} {word}" for word, number in self.counts.items()) or "no tasks"
        self.say(f"worker stopped after {duration(self._clock.now() - self._since)}: {counts}")

    def _begun(self, event: Event) -> None:
        if event.task not in self.open:  # otherwise it only waited, in this process
            self.open[event.task] = event.at
            self.show(event, "started", "cyan", TaskFacts(attempt=cast("int", event.data.get("attempt", 1))))

    def _ended(self, event: Event) -> None:
        """Print a task's end. A task that was not started here has no duration: its process is gone, or its time was up
        before."""
        word, colour = _TOLD[event.kind]
        self.counts[word] += 1
        began = self.open.pop(event.task, None)
        took = None if began is None else event.at - began
        self.show(event, word, colour, TaskFacts(took=took, error=str(event.data.get("error") or "")))

    def show(self, event: Event, word: str, colour: str, facts: "TaskFacts") -> None:
        """Print a line such as: 2026-11-15T02:36:54Z completed b7k2… coder after 1.3 s."""
        parts = [f"after {duration(facts.took)}"] if facts.took is not None else []
        parts += [escaped(facts.error, 200)] if facts.error else []
        more = facts.more or (f"attempt {facts.attempt}" if facts.attempt != 1 else ": ".join(parts))
        when = f"{iso(event.at)[:19]}Z "
        text = Text.assemble((when, "dim"), (f"{word:<12}", colour), event.task, " ", (event.agent, "bold"))
        self._console.print(text.append(f"  {more}" if more else "", "dim"), soft_wrap=True)


class TaskFacts(NamedTuple):
    """Facts of a line about a task."""

    attempt: int = 1
    took: int | None = None  # microseconds
    error: str = ""
    more: str = ""


class JsonLog(Log):
    """Prints the same as `Log`, each line as a JSON object, and without the texts of errors."""

    def say(self, sentence: str, colour: str = "") -> None:
        self._print(json_line(self._clock.now(), "warning" if colour == "yellow" else "info", sentence, {}))

    def show(self, event: Event, word: str, colour: str, facts: TaskFacts) -> None:
        more: dict[str, object] = {"kind": event.kind, "run": event.run, "task": event.task, "agent": event.agent}
        if word == "started":
            more["attempt"] = facts.attempt
        if facts.took is not None:
            more["seconds"] = facts.took / SECOND
        more["error"] = event.data.get("type")
        self._print(json_line(event.at, "error" if lands(event.kind) in ("failed", "dead") else "info", word, more))

    def _print(self, line: str) -> None:
        self._console.print(Text(line), soft_wrap=True)
