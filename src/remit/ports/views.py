"""Reads within one workspace, by role, with their parameters and result rows. Expired entries are included: whether an
entry is alive is a rule of the core, not a query."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Protocol

from remit.core.breaker import Breaker
from remit.core.card import Card
from remit.core.change import Key, Row, Table
from remit.core.entry import Entry, Message, Retired
from remit.core.events import NO_LABELS, Chapter, Event, Gap, Head, Hook, Labels, Mark
from remit.core.identity import AccessRow, UsedKey
from remit.core.lifecycle import Record, RunFacts, Standing
from remit.core.limits import MeterUnit
from remit.core.loops import AskCount
from remit.core.money import Hold, Lease, Unit
from remit.core.projection import Tables
from remit.core.question import Question
from remit.core.records import NamedTuple
from remit.core.recovery import Cooling
from remit.core.scope import Scope
from remit.core.times import Schedule
from remit.core.trust import Trust
from remit.core.values import INT_LIMIT, Json
from remit.ports.services import KeyInfo, KeyRow

if TYPE_CHECKING:
    from remit.core.tally import Figures, Period, UnderWay, Window

# -- parameters and rows -------------------------------------------------------------------------------------


class AccessUse(NamedTuple):
    """The time at which a caller used an access key. It is not history, so it is written without an event."""

    id: str
    used_at: int


class Beat(NamedTuple):
    """A heartbeat. `home` is the address of the process. `count` grows with each beat; 0 says that the process left.
    `hands` is the number of queued tasks that it runs at once; 0 for a process that runs only its own calls.
    `progress` is the latest that its tasks have reported, as JSON, or "". `seen_at` is when it was sent, by the clock
    of the process. `agents` are the names of the agents whose queued tasks it runs, as a JSON list, or "".

    A heartbeat is not history, so it is written without an event.
    """

    worker: str
    home: str
    count: int  # pyright: ignore[reportIncompatibleMethodOverride] - hides tuple.count
    hands: int = 0
    progress: str = ""
    seen_at: int = 0
    agents: str = ""


class ArtifactRow(NamedTuple):
    """An event that refers to an artifact: the one that saved it (`artifact.saved`), or one with a value that contains
    the reference. For an entry, `namespace` and `key` are its address."""

    seq: int
    digest: str
    kind: str
    run: str
    task: str
    agent: str
    namespace: str
    key: str
    size: int
    name: str
    media_type: str
    trust: Trust
    at: int


class RunAge(NamedTuple):
    """The first task of a run: its id, the number of its first event, and when it was requested and ended, in
    microseconds since 1970."""

    id: str
    began: int
    asked_at: int
    ended_at: int | None


class TallyRow(NamedTuple):
    """The statistics of an agent for the hour or day that began at `start`, computed from events `first` to `last`."""

    width: int
    start: int
    agent: str
    first: int
    last: int
    figures: "Figures"


class Tallied(NamedTuple):
    """Statistics of a slice of the journal: the rows as they are now, the last event that they count, and the facts
    about running tasks. None stands for tasks that have ended since.

    It contains nothing that the journal does not, so it is written without an event.
    """

    upto: int
    rows: Sequence[TallyRow]
    under_way: Mapping[str, "UnderWay | None"]


class Which(NamedTuple):
    """Which tasks to list: all conditions must hold; newest first. `state` may be `open`, for all tasks that have not
    ended. `before` is the `began` of the last task on the previous page. `asker` is the agent that delegated them,
    empty for a person. `by` is the person who started their runs, empty for runs without a named one. `tag` is a tag of
    their runs. They were requested at `since` or later, and before `until`. `text` is a part of the task text, in any
    case."""

    session: str | None = None
    agent: str | None = None
    state: str | None = None
    parent: str | None = None
    run: str | None = None
    limit: int = 100
    before: int | None = None
    asker: str | None = None
    by: str | None = None
    tag: str | None = None
    since: int | None = None
    until: int | None = None
    text: str | None = None


class TaskLine(NamedTuple):
    """One task in a list; `asker` is the agent that delegated it, empty for a person; `labels` are those of its run."""

    record: Record
    task: str
    asker: str = ""
    labels: Labels = NO_LABELS

    @property
    def by(self) -> str:
        """The person who started its run."""
        return self.labels.by


class RunLine(NamedTuple):
    """One run in a list; `labels` are the person who started it, its tags and its metadata."""

    record: Record
    task: str
    facts: RunFacts
    labels: Labels = NO_LABELS

    @property
    def by(self) -> str:
        """The person who started it."""
        return self.labels.by


class RunVitals(NamedTuple):
    """The present state of a run: how many levels its tasks have, the number of its tasks by state, the processes that
    have its running tasks, the credits that its open calls hold and those that it was given (None: no limit of its
    own), the number of its open questions, and the time of its latest event (None: no task is open)."""

    depth: int
    states: dict[str, int]
    workers: tuple[str, ...]
    held: int
    granted: int | None
    questions: int
    latest: int | None


class Span(NamedTuple):
    """Which events to read: all conditions must hold. `since` and `until` are times; `after` and `before` are numbers
    of events, excluded. Events come in order of `seq`: the first `limit` of them, or with `latest` the last. Without a
    limit, all. `label`, as `core.events.mark` writes it, skips the chapters in which no task with this label began."""

    run: str | None = None
    session: str | None = None
    agent: str | None = None
    since: int | None = None
    until: int | None = None
    after: int = 0
    limit: int | None = None
    task: str | None = None
    kinds: frozenset[str] | None = None
    before: int | None = None
    latest: bool = False
    label: str | None = None


# -- reads, by role ------------------------------------------------------------------------------------------


class JournalView(Protocol):
    """The journal."""

    def head(self) -> Head:
        """Return the end of the journal."""
        ...

    def event(self, seq: int) -> Event | None: ...
    def events(self, span: Span) -> list[Event]: ...
    def marks(self, since: int, limit: int) -> list[Mark]:
        """Return the headers of the events from that number on."""
        ...

    def marks_of_run(self, run: str) -> list[Mark]:
        """Return the headers of a run's events."""
        ...

    def lasting_of_run(self, run: str) -> list[Event]:
        """Return the events of a run about entries, breakers and messages, in order."""
        ...

    def chapters(self, after: int, limit: int) -> list[Chapter]:
        """Return the chapters of the journal that end after this event, in order."""
        ...

    def last_before(self, at: int) -> int:
        """Return the number of an event after which no event happened before the time `at`. Some events up to it may
        have happened later."""
        ...

    def gap_before(self, seq: int) -> Gap | None:
        """Return the gap that ends right before that number, or None."""
        ...

    def gaps_around(self, first: int, last: int) -> list[Gap]:
        """Return the gaps that overlap this range of events or are adjacent to it, in order."""
        ...

    def gaps_stated(self, seq: int) -> list[Gap]:
        """Return the gaps that this event declares, in order."""
        ...

    def gaps_after(self, last: int, limit: int) -> list[Gap]:
        """Return the gaps that end after that number, in order."""
        ...

    def done(self, op: str) -> tuple[Json] | None:
        """Return the recorded answer of an operation in a one-tuple, or None if the operation has not happened."""
        ...

    def blob(self, seq: int) -> str | None:
        """Return the long answer that is stored next to an event, as JSON text, or None."""
        ...

    def blobs(self) -> int:
        """Return the number of answers that are stored next to their events."""
        ...

    def done_under(self, prefix: str) -> list[Event]:
        """Return the first event of each operation whose id has this prefix, in order."""
        ...

    def tables(self) -> Tables: ...
    def page(self, table: Table, after: Key | None, limit: int) -> list[tuple[Key, Row]]:
        """Return the rows of a table after this key, in the order of their keys."""
        ...


class TaskView(Protocol):
    """Tasks and runs, one by one and as lists."""

    def standing(self, task: str) -> Standing | None: ...
    def record(self, task: str) -> Record | None: ...
    def run(self, run: str) -> RunFacts:
        """Return the totals of a run; all zeros if there is none."""
        ...

    def asks(self, run: str, keys: tuple[str, str, str]) -> dict[str, AskCount]:
        """Return the rows of these keys: counters of the requests that models of a run made, and of stopped agents."""
        ...

    def below(self, task: str) -> list[Record]:
        """Return the task and all its unfinished subtasks, from the top down."""
        ...

    def spawned(self, parent: str) -> int:
        """Return the number of unfinished tasks that the task `parent` spawned."""
        ...

    def same_requests(self, dedup_key: str, since: int) -> list[Record]:
        """Return the tasks requested with this dedup key since then, newest first."""
        ...

    def lineage(self, origin: str) -> list[Record]:
        """Return the retries of this task, in order."""
        ...

    def used_key(self, key: str) -> UsedKey | None:
        """Return the use of an idempotency key, even if its run was pruned, or None."""
        ...

    def keys_of_run(self, run: str) -> list[UsedKey]:
        """Return the idempotency keys that were used in a run, in order."""
        ...

    def key_of_task(self, task: str) -> UsedKey | None:
        """Return the idempotency key that a task was requested with, or None."""
        ...

    def tasks(self, which: Which) -> list[tuple[Record, str]]:
        """Return tasks with their text."""
        ...

    def task_lines(self, which: Which) -> list[TaskLine]:
        """Return tasks with their text and their asker."""
        ...

    def runs_of_session(self, session: str, agent: str, limit: int) -> list[Record]:
        """Return the ended runs of a session that started with this agent, the latest end first."""
        ...

    def runs(self, limit: int, before: int | None = None) -> list[RunLine]: ...
    def run_lines(self, which: Which) -> list[RunLine]:
        """Return the runs whose first task matches."""
        ...

    def vitals(self, runs: Sequence[str]) -> dict[str, RunVitals]:
        """Return the `RunVitals` of these runs, by id."""
        ...

    def roots(self, after: int, limit: int) -> list[RunAge]:
        """Return the first tasks of the runs that began after event number `after`, in the order of their beginning."""
        ...

    def prunable(self, run: str, before: int) -> list[tuple[str, str, int]] | None:
        """Return the id, the state and the time of the end of every task of a run. Return None if the run cannot be
        pruned: a task is open or ended at `before` or later, or this is true of another task in a retry lineage that
        reaches into the run."""
        ...

    def of_run(self, run: str) -> list[tuple[str, str, int | None]]:
        """Return the id, the state and the time of the end (None: it is open) of every task of a run."""
        ...

    def ids_like(self, start: str, limit: int, *, runs: bool = False) -> list[str]:
        """Return the ids of tasks with this prefix, in order; with `runs`, only those of runs."""
        ...

    def ids_ending(self, ending: str, limit: int, *, runs: bool = False) -> list[str]:
        """Return the ids of tasks with this ending, in order; with `runs`, only those of runs."""
        ...


class QueueView(Protocol):
    """The queue, the running tasks, and the processes."""

    def running(self, holder: str, now: int) -> int:
        """Return the number of tasks that this agent is running; a task that waits for another does not count."""
        ...

    def working(self) -> int:
        """Return the number of queued tasks that the workspace is running."""
        ...

    def resuming(self, holder: str) -> int:
        """Return the number of tasks of an agent, or of all (`*`), that have waited for another task and want to
        resume."""
        ...

    def queues(self) -> list[str]:
        """Return the agents that have pending tasks."""
        ...

    def open_tasks(self, limit: int) -> dict[str, int]:
        """Return the number of open tasks by state, each counted up to a limit."""
        ...

    def has_due(self, holder: str, now: int) -> bool:
        """Whether the agent has a pending task that is due and that any worker could claim."""
        ...

    def due(self, holder: str, worker: str, now: int, limit: int, losses: int = INT_LIMIT) -> list[Record]:
        """Return the tasks that this worker could claim for that agent, oldest first, without those that were lost more
        than `losses` times. Of the tasks that are due again after a failure, only the few hundred oldest are read."""
        ...

    def front(self, now: int, limit: int) -> list[Record]:
        """Return the tasks of all queues that any worker could claim, oldest first, as `due` does for one agent."""
        ...

    def next_due(self, now: int) -> int | None:
        """Return the time when the next task becomes due, or None."""
        ...

    def late(self, now: int, limit: int) -> list[Record]:
        """Return pending tasks whose expiry has passed, the longest overdue first."""
        ...

    def tasks_of_worker(self, worker: str) -> list[Record]:
        """Return the unfinished tasks of a worker."""
        ...

    def cancelling(self, worker: str) -> list[str]:
        """Return the tasks that this worker has been asked to cancel."""
        ...

    def workers(self) -> list[Beat]: ...
    def unseen(self) -> list[str]:
        """Return the workers that hold tasks but have no heartbeat."""
        ...


class AgentView(Protocol):
    """Breakers, published cards, and cooldowns of models and keys."""

    def breaker(self, name: str) -> Breaker: ...
    def breaker_set_at(self, name: str) -> int | None:
        """Return when a breaker was last set, or None if it never was."""
        ...

    def breakers(self) -> list[tuple[str, Breaker, int]]: ...
    def coolings(self) -> dict[str, Cooling]:
        """Return the cooldowns of models and keys by the names that `core.recovery.resting` returns, also those that
        are over."""
        ...

    def cooling_set_at(self, name: str) -> int | None:
        """Return when a failure of a model or key was last recorded, or None if there is none since its last answer."""
        ...

    def card(self, name: str) -> Card | None: ...
    def cards(self) -> list[tuple[Card, int]]:
        """Return the published cards, and when each was published."""
        ...


class EntryView(Protocol):
    """Context entries."""

    def entry(self, namespace: str, key: str) -> Entry | None: ...
    def recent(self, scope: Scope, now: int, limit: int) -> list[Entry]: ...
    def by_key(self, scope: Scope, now: int, limit: int) -> list[Entry]: ...
    def retired(self, namespace: str, key: str) -> Retired:
        """Return the versions that a new entry at this address must not use again."""
        ...

    def expired(self, now: int, limit: int) -> list[tuple[str, str, int]]: ...
    def namespaces(self, now: int) -> list[tuple[str, int]]: ...


class MessageView(Protocol):
    """Unread messages."""

    def has_message(self, message: str) -> bool:
        """Whether such a message exists, read or not."""
        ...

    def waiting(self, run: str, agent: str, task: str, limit: int) -> list[Message]:
        """Return the unread messages for this agent in a run, and the result messages for this task."""
        ...

    def still_waiting(self, run: str, agent: str, limit: int) -> list[str]:
        """Return the ids of the unread messages for this agent, in order."""
        ...

    def unread(self, run: str, agent: str, sender: str) -> int:
        """Return the number of unread messages from one sender to this agent."""
        ...

    def orphans(self, limit: int) -> list[Message]:
        """Return result messages whose asker ended before it could read them."""
        ...


class TallyView(Protocol):
    """Statistics of the journal, and the facts that are needed to extend them."""

    def tallied(self) -> int:
        """Return the number of the last event that the statistics include."""
        ...

    def tally(self, period: "Period", agent: str | None = None) -> list[TallyRow]:
        """Return the statistics of a period, one row per agent and hour or day; of one agent, if it is named."""
        ...

    def tally_row(self, width: int, start: int, agent: str) -> TallyRow | None: ...
    def under_way(self, task: str) -> "UnderWay | None":
        """Return what the statistics store about a task that had not ended at event `tallied()`, or None."""
        ...

    def open_runs(self, window: "Window", agent: str | None = None) -> Counter[str]:
        """Return the number of unfinished runs that began within the window, by state."""
        ...

    def events_between(self, after: int, upto: int, limit: int) -> list[Event]:
        """Return the events of a range of the journal, in order."""
        ...

    def events_of_run_before(self, run: str, seq: int) -> list[Event]:
        """Return the events of a run before that one, in order."""
        ...


class LedgerView(Protocol):
    """Leases, holds, and spending by the hour."""

    def lease(self, lease: str, unit: Unit) -> Lease | None: ...
    def leases(self, after: tuple[str, str], limit: int) -> list[Lease]:
        """Return leases in the order of their ids and units, after that one."""
        ...

    def hold(self, hold: str) -> Hold | None: ...
    def holds(self, task: str) -> list[Hold]:
        """Return the open holds of a task."""
        ...

    def holds_expired(self, now: int, limit: int) -> list[Hold]:
        """Return holds whose calls were not sent in time."""
        ...

    def holds_uncertain(self, after: str, limit: int) -> list[Hold]:
        """Return the holds that were charged with unknown cost, in the order of runs, after that run."""
        ...

    def holds_of_run(self, run: str) -> list[Hold]:
        """Return the holds of one run that were charged with unknown cost."""
        ...

    def disputed(self, agent: str) -> Hold | None:
        """Return a call of an agent whose bill exceeded its lease and is not reconciled, or None."""
        ...

    def on_hold(self, unit: Unit, agent: str = "*", session: str = "*", person: str = "*") -> int:
        """Return the sum of all open holds: of all, of an agent, of a session, or for a person."""
        ...

    def metered(self, scope: str, name: str, unit: MeterUnit, since: str) -> int:
        """Return the spending of the workspace, an agent, a session or a person from the hour `since` on. `scope` says
        which of them, and `name` is its name, "" for the workspace."""
        ...

    def meter(self, scope: str, name: str, unit: MeterUnit, hour: str) -> int | None:
        """Return the spending of one hour, or None if there is none."""
        ...

    def meter_hours(self, scope: str, name: str, unit: MeterUnit, since: str) -> list[tuple[str, str, int]]:
        """Return the spending of each hour from that one on: by name ("*" for every name of the scope), then by
        hour."""
        ...


class QuestionView(Protocol):
    """Questions to people."""

    def question(self, question: str) -> Question | None: ...
    def questions_of(self, task: str) -> list[Question]:
        """Return the open questions of a task."""
        ...

    def questions_open_in(self, run: str) -> list[Question]:
        """Return the open questions of a run."""
        ...

    def questions_of_run(self, run: str) -> list[str]:
        """Return the ids of all questions of a run."""
        ...

    def questions_expired(self, now: int, limit: int) -> list[Question]:
        """Return open questions whose expiry has passed."""
        ...

    def questions_open(self, limit: int) -> list[Question]:
        """Return the open questions, the first to expire first."""
        ...

    def questions(self, limit: int, before: int | None = None) -> list[Question]:
        """Return questions before that event, the latest first."""
        ...


class ArtifactView(Protocol):
    """The artifacts that events refer to. Their contents are not part of the tables."""

    def artifact_rows(self, digest: str) -> list[ArtifactRow]:
        """Return the events that refer to an artifact, in order; none if nothing refers to it any more."""
        ...

    def artifacts(self, limit: int, before: int = INT_LIMIT) -> list[ArtifactRow]:
        """Return the references before that event, the latest first."""
        ...

    def artifacts_of_run(self, run: str) -> list[ArtifactRow]:
        """Return the references of a run, in order."""
        ...

    def artifacts_at(self, seq: int) -> list[ArtifactRow]:
        """Return the references of one event, by digest."""
        ...

    def artifact_count(self) -> int:
        """Return the number of references."""
        ...

    def artifact_bytes(self, run: str = "") -> int:
        """Return the size of all contents together, each once; with `run`, of all that its agents have saved."""
        ...


class KeyView(Protocol):
    """The workspace's own provider keys, encrypted; no key is decrypted here."""

    def secret(self, name: str) -> KeyRow | None: ...
    def secrets(self) -> list[KeyInfo]:
        """Return the visible facts about the keys, by name."""
        ...


class ScheduleView(Protocol):
    """Schedules."""

    def schedule(self, name: str) -> Schedule | None: ...
    def schedules(self) -> list[Schedule]:
        """Return all schedules, by name."""
        ...

    def schedules_due(self, now: int, limit: int) -> list[Schedule]:
        """Return the schedules whose next planned time has come, the earliest first."""
        ...

    def next_planned(self) -> int | None:
        """Return the earliest next planned time of all schedules, or None."""
        ...


class HookView(Protocol):
    """Hooks."""

    def hook(self, hook: str) -> Hook | None: ...
    def hooks(self) -> list[Hook]:
        """Return all hooks, the oldest first."""
        ...


class AccessView(Protocol):
    """The keys of callers from outside, each with the time of its last known use."""

    def access(self, id_: str) -> tuple[AccessRow, int | None] | None: ...
    def accesses(self) -> list[tuple[AccessRow, int | None]]:
        """Return all, also the revoked and expired ones, by id."""
        ...


class View(
    JournalView,
    TaskView,
    QueueView,
    AgentView,
    EntryView,
    MessageView,
    TallyView,
    LedgerView,
    QuestionView,
    ArtifactView,
    KeyView,
    ScheduleView,
    HookView,
    AccessView,
    Protocol,
):
    """All reads, as of one moment."""
