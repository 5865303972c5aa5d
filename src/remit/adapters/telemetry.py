"""The events that this process commits, passed to observers such as OpenTelemetry and Prometheus on a separate thread.

A store passes each event only to the process that committed it. So observers get every task, model request and tool
call once, whatever number of processes work on the store.
"""

from __future__ import annotations

import asyncio
import atexit
import logging
import os
from collections import Counter, OrderedDict, deque
from collections.abc import Callable, Iterable, Sequence
from threading import Event as Signal
from threading import Thread
from typing import Any, Final, NamedTuple, Protocol, cast

from remit import watching
from remit.adapters import otel_names as names
from remit.adapters.otel_names import OTHER, Metric
from remit.core.checks import of_type
from remit.core.events import FIRST_KINDS, Event
from remit.core.kinds.money import SPENDS, spent_in
from remit.core.lifecycle import ENDS, MOVES, lands
from remit.core.times import SECOND
from remit.ports import Span, Store, View
from remit.runtime.opening import Opening
from remit.runtime.runtime import Runtime
from remit.runtime.workspace import Workspace, opening_of

CALLS: Final = frozenset(("model.answered", "model.failed", "tool.done"))
_ASIDE: Final = frozenset(("hop.refused", "question.asked", "question.answered"))
STORY: Final = MOVES | _ASIDE  # the events that a task's story is made of
_FOLLOWED: Final = STORY | CALLS
_CLAIMS: Final = frozenset(("task.claimed", "task.fenced"))

MOST_STORIES: Final = 2_000  # open tasks that are remembered, of about 7 kB each; the events of others are read again
MOST_RUNS: Final = 10_000
BACKLOG: Final = 50_000  # facts that wait for the observers; more are dropped

_OFTEN: Final = 1_000
_PAUSE: Final = 0.05  # seconds, in which facts gather

_log = logging.getLogger("remit")


class EndedTask(NamedTuple):
    """A task that has ended: its events, the first and the last among them. `trace` is the trace that its run belongs
    to, as W3C traceparent; "" if it has its own."""

    events: Sequence[Event]
    trace: str

    @property
    def first(self) -> Event:
        return self.events[0]

    @property
    def last(self) -> Event:
        return self.events[-1]

    @property
    def is_whole(self) -> bool:
        """Whether the first event is there. If not, the task began in another process and could not be read."""
        return self.first.kind in FIRST_KINDS

    @property
    def attempts(self) -> int:
        """The number of times that an agent started to work on the task."""
        return sum(event.kind in ("task.started", "task.claimed") for event in self.events)


class Observer(Protocol):
    """Gets events on the telemetry thread. It may block; that delays no task."""

    def committed(self, events: Sequence[Event], agents: Agents) -> None:
        """Observe the events of one operation."""
        ...

    def called(self, event: Event, trace: str) -> None:
        """Observe a model request or tool call of a run that belongs to this trace."""
        ...

    def ended(self, task: EndedTask, agents: Agents) -> None:
        """Observe a task that ended in this process."""
        ...

    def dropped(self, number: int) -> None:
        """Count calls of `committed`, `called` and `ended` that were dropped because the observers were too slow."""
        ...

    def rest(self) -> None:
        """Pass on collected data. The telemetry thread calls this when its queue is empty, after every thousand calls
        of the other methods, and when calls were dropped."""
        ...


class Agents:
    """The agents of this process, by whose names metrics are labelled. Any other name becomes "other", so that a label
    has a limited number of values."""

    __slots__ = ("_openings",)

    def __init__(self) -> None:
        self._openings: list[Opening] = []

    def add(self, opening: Opening) -> None:
        if all(one.directory is not opening.directory for one in self._openings):
            self._openings.append(opening)

    def label(self, name: object) -> str:
        """Return the name of an agent of this process, or "other"."""
        known = isinstance(name, str) and any(one.directory.get(name) is not None for one in self._openings)
        return cast("str", name) if known else OTHER


class _Story:
    """The events of an open task, as far as this process knows them. While earlier ones are `loading`, new ones wait in
    `later`."""

    __slots__ = ("events", "fence", "following", "later", "loading", "trace")

    def __init__(self, following: _Following) -> None:
        self.following = following
        self.events: list[Event] = []
        self.fence = 0
        self.trace = ""
        self.later: list[Event] = []
        self.loading: asyncio.Event | None = None

    def add(self, event: Event) -> None:
        self.events.append(event)
        self.fence = cast("int", event.data.get("fence", 1 if event.kind == "task.started" else self.fence))

    def misses_events(self, event: Event) -> bool:
        """Whether another process may have moved the task since the last event here."""
        if event.kind not in MOVES or event.kind in FIRST_KINDS:
            return False
        state = next((lands(one.kind) for one in reversed(self.events) if one.kind in MOVES), "")
        if event.kind in _CLAIMS:
            return state != "pending" or event.data["fence"] != self.fence + 1
        return state != "running" and event.kind != "task.resumed"


class _Following:
    """One workspace of an open database."""

    __slots__ = ("_telemetry", "database", "opening", "stop", "store", "workspace")

    def __init__(self, telemetry: Telemetry, opening: Opening, subscribe: watching.Subscribe) -> None:
        self._telemetry = telemetry
        self.opening = opening
        self.database = opening.database
        self.store: Store = opening.database.store(opening.workspace)
        self.workspace = opening.workspace
        self.stop = subscribe(self._commit)

    def _commit(self, events: Sequence[Event]) -> None:
        telemetry = self._telemetry
        telemetry.tell_committed(events)
        for event in events:
            if event.kind in _FOLLOWED and event.task:
                telemetry.follow(self, event)


class Telemetry:
    """Tells observers of every task that ends in this process, and of its model requests and tool calls. `concerns`
    says which workspaces it follows."""

    def __init__(
        self, observers: Iterable[Observer], concerns: Callable[[Opening], bool], backlog: int = BACKLOG
    ) -> None:
        self._observers = tuple(observers)
        self._concerns = concerns
        self._agents = Agents()
        self._followings: list[_Following] = []
        self._stories: OrderedDict[str, _Story] = OrderedDict()
        self._traces: OrderedDict[str, str] = OrderedDict()  # of runs
        self._loads: set[asyncio.Task[None]] = set()
        self._pump = Pump(self._tell_dropped, lambda: self._each(lambda one: one.rest()), backlog)
        self._unwatch = watching.watch(self._on_opened)
        atexit.register(self._pump.flush, 2)

    def follow_open(self, opening: Opening) -> None:
        """Follow a workspace, now if it is open, else from its opening on."""
        self._agents.add(opening)
        if opening.is_open:
            self._on_opened(opening, opening.records.subscribe)

    def _on_opened(self, opened: watching.Opened, subscribe: watching.Subscribe) -> None:
        opening = cast("Opening", opened)
        if not self._concerns(opening):
            return
        self._agents.add(opening)
        for one in [one for one in self._followings if not one.opening.is_open]:
            one.stop()
            self._followings.remove(one)
        # Two workspaces of one name on one database share their sinks: one of them is enough.
        if all(one.database is not opening.database or one.workspace != opening.workspace for one in self._followings):
            self._followings.append(_Following(self, opening, subscribe))

    def flush(self, timeout: float = 5.0) -> bool:
        """Wait until the observers know everything that was committed so far. Return whether they do."""
        return self._pump.flush(timeout)

    async def settled(self) -> None:
        """Wait until the events of tasks that began in other processes have been read."""
        while loads := [one for one in self._loads if not one.done()]:
            await asyncio.wait(loads)

    def stop(self) -> None:
        """Stop following. Wait up to two seconds until the observers have got everything that is committed so far."""
        self._unwatch()
        for one in self._followings:
            one.stop()
        self._followings.clear()
        self._pump.flush(2)
        atexit.unregister(self._pump.flush)

    # -- stories ------------------------------------------------------------------------------------------------

    async def trace_of(self, task: str) -> tuple[str, str] | None:
        """Return the workspace and the trace of an open task; None if it is not known here."""
        story = self._stories.get(task)
        if story is None:
            return None
        if story.loading is not None:
            await story.loading.wait()
        return story.following.workspace, story.trace

    def follow(self, following: _Following, event: Event) -> None:
        story = self._stories.get(event.task)
        if story is None or story.following is not following:
            story = self._met(following, event)
        if story.loading is not None:
            story.later.append(event)
        elif story.misses_events(event):
            story.later.append(event)
            self._load(story, event)
        else:
            self._tell(story, event)

    def _met(self, following: _Following, event: Event) -> _Story:
        story = self._stories[event.task] = _Story(following)
        while len(self._stories) > MOST_STORIES:
            self._stories.popitem(last=False)
        if event.kind in FIRST_KINDS:
            if event.task == event.run:
                self._remember(event.run, str(event.data.get("trace", "")))
            if event.run in self._traces:
                story.trace = self._traces[event.run]
                return story
        self._load(story, event)
        return story

    def _remember(self, run: str, trace: str) -> None:
        self._traces[run] = trace
        while len(self._traces) > MOST_RUNS:
            self._traces.popitem(last=False)

    def _tell(self, story: _Story, event: Event) -> None:
        if event.kind in CALLS:
            self._pump.put(lambda: self._each(lambda one: one.called(event, story.trace)))
            return
        story.add(event)
        if event.kind in ENDS:
            self._stories.pop(event.task, None)
            task = EndedTask([*story.events], story.trace)  # a question of it may still be closed
            self._pump.put(lambda: self._each(lambda one: one.ended(task, self._agents)))

    def _load(self, story: _Story, event: Event) -> None:
        """Read the task's events before this one: another process committed some of them."""
        story.loading = asyncio.Event()
        try:
            loop = asyncio.get_running_loop()
        except RuntimeError:
            self._loaded(story, None)
            return
        loading = loop.create_task(self._read(story, event))
        self._loads.add(loading)
        loading.add_done_callback(self._loads.discard)

    async def _read(self, story: _Story, event: Event) -> None:
        found = None
        try:
            found = await story.following.store.browse(lambda view: _events_before(view, event))
        except Exception as error:  # noqa: BLE001 - the work goes on, with a span that is marked as incomplete
            _log.warning("the first events of task %s could not be read: %s", event.task, type(error).__name__)
        finally:
            self._loaded(story, found)

    def _loaded(self, story: _Story, found: tuple[list[Event], Event | None] | None) -> None:
        if found is not None:
            events, root = found
            story.events.clear()
            for event in events:
                story.add(event)
            if root is not None:
                story.trace = str(root.data.get("trace", ""))
                self._remember(root.run, story.trace)
        later, story.later = story.later, []
        loading, story.loading = story.loading, None
        for event in later:
            self._tell(story, event)
        if loading is not None:
            loading.set()

    # -- the observers ------------------------------------------------------------------------------------------

    def tell_committed(self, events: Sequence[Event]) -> None:
        self._pump.put(lambda: self._each(lambda one: one.committed(events, self._agents)))

    def _tell_dropped(self, number: int) -> None:
        self._each(lambda one: one.dropped(number))

    def _each(self, tell: Callable[[Observer], None]) -> None:
        for observer in self._observers:
            try:
                tell(observer)
            except Exception:  # noqa: BLE001 - an error of one observer must not affect the others
                _log.exception("telemetry failed; the work goes on")


def telemetry_of(
    given: Runtime | Workspace | None,
    observers: Iterable[Observer],
    *,
    everywhere: bool = False,
    backlog: int = BACKLOG,
) -> Telemetry:
    """Return the telemetry that passes the events of a runtime or workspace in this process to the observers. If
    `given` is None or `everywhere` is set, it passes those of every workspace that this process opens from now on. If
    `backlog` facts wait for the observers, more are dropped."""
    workspace = given.workspace if isinstance(given, Runtime) else given
    what = "telemetry is of a Runtime or a Workspace"
    opening = None if workspace is None else opening_of(of_type(workspace, Workspace, what))

    def concerns(other: Opening) -> bool:
        return everywhere or opening is None or other.directory is opening.directory

    telemetry = Telemetry(observers, concerns, backlog)
    if opening is not None:
        telemetry.follow_open(opening)
    return telemetry


def _events_before(view: View, event: Event) -> tuple[list[Event], Event | None]:
    """Return the earlier events of a task's story, and the first event of its run, or None if that is gone."""
    found = view.events(Span(task=event.task, kinds=STORY, before=event.seq))
    if event.task == event.run:
        return found, found[0] if found and found[0].kind in FIRST_KINDS else None
    first = view.events(Span(task=event.run, kinds=frozenset(FIRST_KINDS), limit=1))
    return found, first[0] if first else None


class Measures:
    """An observer that counts and times what happens. `add` takes a metric, an amount and the values of the metric's
    labels. These are names of agents of this process, states, rules and kinds, and never ids or text."""

    def __init__(self, add: Callable[..., None]) -> None:
        self._pass_on = add
        self._counts: Counter[tuple[Any, ...]] = Counter()  # by metric and labels: sums cost less than each amount

    def _add(self, metric: Metric, amount: float, *labels: str) -> None:
        self._counts[metric, *labels] += amount  # pyright: ignore[reportArgumentType] - a sum of numbers

    def rest(self) -> None:
        counts, self._counts = self._counts, Counter()
        for (metric, *labels), amount in counts.items():
            self._pass_on(metric, amount, *labels)

    def committed(self, events: Sequence[Event], agents: Agents) -> None:
        for event in events:
            self._add(names.EVENTS, 1, event.kind)
            if event.kind in FIRST_KINDS:
                self._add(names.BEGUN, 1, agents.label(event.agent))
            elif event.kind in CALLS:
                self._count_call(event, agents.label(event.agent))
            elif event.kind == "hop.refused":
                self._add(names.REFUSED, 1, agents.label(event.agent), str(event.data["rule"]))
            elif event.kind in SPENDS and (spent := spent_in(event).credits) > 0:  # a counter never falls
                self._add(names.SPENT, spent, agents.label(event.agent))

    def _count_call(self, event: Event, agent: str) -> None:
        data: Any = event.data
        if event.kind == "tool.done":
            self._add(names.TOOL_CALLS, 1, agent, data["outcome"])
            self._time(names.TOOL_TIME, data.get("elapsed"), agent)
            return
        self._add(names.MODEL_CALLS, 1, agent, event.kind.removeprefix("model."))
        if event.kind == "model.answered":
            self._time(names.MODEL_TIME, data.get("elapsed"), agent)
        usage = data.get("usage")
        for kind in ("input", "output") if usage else ():  # cached tokens are a part of the input
            self._add(names.TOKENS, usage[kind], agent, kind)

    def called(self, event: Event, trace: str) -> None:
        """Do nothing: the call was counted when it was committed."""

    def ended(self, task: EndedTask, agents: Agents) -> None:
        agent, state = agents.label(task.first.agent), lands(task.last.kind)
        self._add(names.ENDED, 1, agent, state)
        if task.is_whole:
            self._time(names.TASK_TIME, task.last.at - task.first.at, agent, state)
        claims = (event.at for event in task.events if event.kind == "task.claimed")
        if task.first.kind == "task.submitted" and (claimed := next(claims, None)) is not None:
            self._time(names.QUEUE_TIME, claimed - task.first.at, agent)

    def dropped(self, number: int) -> None:
        self._add(names.DROPPED, number)

    def _time(self, metric: Metric, elapsed: int | None, *labels: str) -> None:
        if elapsed is not None:
            self._pass_on(metric, max(0, elapsed) / SECOND, *labels)  # clocks of two machines may disagree


class Pump:
    """Calls functions on a thread of its own, in their order. If `most` of them wait, new ones are dropped and counted.
    It calls `rest` when nothing waits any more, and after every thousand."""

    def __init__(self, dropped: Callable[[int], None], rest: Callable[[], None], most: int) -> None:
        self._most = most
        self._dropped = dropped
        self._rest = rest
        self._lost = 0  # counted by the threads that put
        self._told = 0  # counted by the thread of the pump
        self._process = 0

    def put(self, call: Callable[[], None]) -> None:
        if self._process != os.getpid():  # at first, and in a forked process, which has no thread
            self._start()
        if len(self._waiting) >= self._most:
            self._lost += 1
        else:
            self._waiting.append(call)
        if not self._awake:  # waking the thread for each call would cost more than the calls
            self._awake = True
            self._wake.set()

    def flush(self, timeout: float) -> bool:
        """Wait until everything that was put so far has been called, and passed on. Return whether it has."""
        if self._process != os.getpid():
            return True
        done = Signal()
        self._waiting.extend((self._rest, done.set))
        self._hurry.set()
        self._wake.set()
        return done.wait(timeout)

    def _start(self) -> None:
        self._waiting: deque[Callable[[], None]] = deque()  # what waits in the parent is called there
        self._wake, self._hurry, self._awake = Signal(), Signal(), False
        self._process = os.getpid()
        Thread(target=self._work, name="remit-telemetry", daemon=True).start()

    def _work(self) -> None:
        waiting, wake, hurry = self._waiting, self._wake, self._hurry
        while True:
            wake.wait()
            hurry.wait(_PAUSE)
            hurry.clear()
            wake.clear()
            self._awake = False  # before the calls: whatever is put during them wakes the thread again
            called = 0
            while waiting:
                waiting.popleft()()
                called += 1
                if called % _OFTEN == 0 or self._lost > self._told:
                    self._pass_on()
            self._pass_on()

    def _pass_on(self) -> None:
        if (lost := self._lost - self._told) > 0:
            self._told += lost
            _log.warning("telemetry was too slow: %s facts were dropped", lost)
            self._dropped(lost)
        self._rest()
