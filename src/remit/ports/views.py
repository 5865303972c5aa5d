"""Reads within one workspace, by role. Expired entries are returned too: being alive is a rule, not a query."""

from collections import Counter
from typing import Protocol

from remit.core.breaker import Breaker
from remit.core.card import Card
from remit.core.change import Key, Row, Table
from remit.core.entry import Entry, Retired
from remit.core.events import Event, Gap, Head, Mark
from remit.core.identity import UsedKey
from remit.core.limits import MeterUnit
from remit.core.loops import AskCount
from remit.core.message import Message
from remit.core.money import Hold, Lease, Unit
from remit.core.projection import Tables
from remit.core.question import Question
from remit.core.record import Record, RunFacts, Standing
from remit.core.recovery import Cooling
from remit.core.scope import Scope
from remit.core.tally import Period, UnderWay, Window
from remit.core.text import INT_LIMIT
from remit.core.values import Json
from remit.ports.looking import Beat, RunAge, RunLine, Span, TallyRow, TaskLine, Which
from remit.ports.vault import KeyInfo, KeyRow


class JournalView(Protocol):
    """What happened."""

    def head(self) -> Head:
        """Tell where the journal ends."""
        ...

    def event(self, seq: int) -> Event | None: ...
    def events(self, span: Span) -> list[Event]: ...
    def marks(self, since: int, limit: int) -> list[Mark]:
        """List the events from that number on, without what they say."""
        ...

    def marks_of_run(self, run: str) -> list[Mark]:
        """List the events of a run in the same way."""
        ...

    def lasting_of_run(self, run: str) -> list[Event]:
        """List the events of a run that tell of entries, breakers and messages, in order."""
        ...

    def gap_before(self, seq: int) -> Gap | None:
        """Give the gap that ends right before that place."""
        ...

    def gaps_around(self, first: int, last: int) -> list[Gap]:
        """List the gaps that begin or end within this stretch or touch it, in order."""
        ...

    def gaps_stated(self, seq: int) -> list[Gap]:
        """List the gaps that this event states, in order."""
        ...

    def gaps_after(self, last: int, limit: int) -> list[Gap]:
        """List the gaps that end after that place, in order."""
        ...

    def done(self, op: str) -> tuple[Json] | None:
        """Tell what an operation answered, if it has happened."""
        ...

    def blob(self, seq: int) -> str | None:
        """Give the long answer that is kept beside an event, as JSON text; None if there is none."""
        ...

    def blobs(self) -> int:
        """Count the answers that are kept beside their events."""
        ...

    def done_under(self, prefix: str) -> list[Event]:
        """List the first events of the operations whose id begins so, in order."""
        ...

    def tables(self) -> Tables: ...
    def page(self, table: Table, after: Key | None, limit: int) -> list[tuple[Key, Row]]:
        """Give the rows of a table that follow this key, in the order of their keys."""
        ...


class TaskView(Protocol):
    """Tasks and runs, one by one and as lists."""

    def standing(self, task: str) -> Standing | None: ...
    def record(self, task: str) -> Record | None: ...
    def run(self, run: str) -> RunFacts:
        """Tell what a run has come to; all zeros if there is none."""
        ...

    def asks(self, run: str, keys: tuple[str, str, str]) -> dict[str, AskCount]:
        """Give the rows of these keys: what models of a run have asked for, and who was stopped in it."""
        ...

    def below(self, task: str) -> list[Record]:
        """List the task and everything under it that has not ended, from the top down."""
        ...

    def spawned(self, parent: str) -> int:
        """Count the tasks it spawned that have not ended."""
        ...

    def same_requests(self, dedup_key: str, since: int) -> list[Record]:
        """List the tasks asked for with this key since then, newest first."""
        ...

    def lineage(self, origin: str) -> list[Record]:
        """List the tasks that were tried again for this one, in order."""
        ...

    def used_key(self, key: str) -> UsedKey | None:
        """Tell what an idempotency key was used for, also after that run was pruned."""
        ...

    def keys_of_run(self, run: str) -> list[UsedKey]:
        """List the idempotency keys that were used in a run, in order."""
        ...

    def key_of_task(self, task: str) -> UsedKey | None:
        """Find the idempotency key that a task was asked for with."""
        ...

    def tasks(self, which: Which) -> list[tuple[Record, str]]:
        """List tasks with their text."""
        ...

    def task_lines(self, which: Which) -> list[TaskLine]:
        """List tasks with their text and their asker."""
        ...

    def runs_of_session(self, session: str, agent: str, limit: int) -> list[Record]:
        """List the runs of a session that were asked of an agent and have ended, the latest end first."""
        ...

    def runs(self, limit: int, before: int | None = None) -> list[RunLine]: ...
    def roots(self, after: int, limit: int) -> list[RunAge]:
        """List the first tasks of runs in the order in which they began, from behind that one on."""
        ...

    def prunable(self, run: str, before: int) -> list[tuple[str, str, int]] | None:
        """List every task of a run: its id, its state and when it ended. None if one of them is open or ended later
        than before then; or if one was tried again, or may be, and that is so of another of its lineage."""
        ...

    def of_run(self, run: str) -> list[tuple[str, str, int | None]]:
        """List every task of a run: its id, its state and when it ended."""
        ...

    def ids_like(self, start: str, limit: int, *, runs: bool = False) -> list[str]:
        """List ids that begin so, in order; only those of runs if told so."""
        ...

    def ids_ending(self, ending: str, limit: int, *, runs: bool = False) -> list[str]:
        """List ids that end so, in the same way."""
        ...


class QueueView(Protocol):
    """What is queued, who works on what, and which processes there are."""

    def running(self, holder: str, now: int) -> int:
        """Count the tasks this agent works on; one that waits for another task is not worked on."""
        ...

    def working(self) -> int:
        """Count the tasks from the queue that are being worked on in the workspace."""
        ...

    def resuming(self, holder: str) -> int:
        """Count the tasks of an agent, or of any (`*`), that have waited for another and want to go on."""
        ...

    def queues(self) -> list[str]:
        """List the agents that have something pending."""
        ...

    def has_due(self, holder: str, now: int) -> bool:
        """Tell whether the agent has a pending task that is due and that any worker could claim."""
        ...

    def due(self, holder: str, worker: str, now: int, limit: int, losses: int = INT_LIMIT) -> list[Record]:
        """List what this worker could claim for that agent, oldest first, unless it was lost more often than so. Of
        what is due again after a failure, the few hundred that have been due for the longest are looked at."""
        ...

    def front(self, now: int, limit: int) -> list[Record]:
        """List what anyone could claim of all queues together, oldest first, as `due` does for one."""
        ...

    def next_due(self, now: int) -> int | None:
        """Tell when something will be due that is not yet."""
        ...

    def late(self, now: int, limit: int) -> list[Record]:
        """List what is still pending although its time is up; first what has been late for the longest."""
        ...

    def held(self, worker: str) -> list[Record]:
        """List what a worker has and has not ended."""
        ...

    def cancelling(self, worker: str) -> list[str]:
        """List what someone wants this worker to stop."""
        ...

    def workers(self) -> list[Beat]: ...
    def unseen(self) -> list[str]:
        """List the workers that hold tasks and of whom there is no heartbeat."""
        ...


class AgentView(Protocol):
    """Breakers, published cards, and the models and keys that rest."""

    def breaker(self, name: str) -> Breaker: ...
    def breaker_set_at(self, name: str) -> int | None:
        """Tell when a breaker was set the last time; None if it never was."""
        ...

    def breakers(self) -> list[tuple[str, Breaker, int]]: ...
    def coolings(self) -> dict[str, Cooling]:
        """Give the models and keys that have failed of late."""
        ...

    def cooling_set_at(self, name: str) -> int | None:
        """Tell when a model or a key was last put down as failed; None if it never was, or has answered since."""
        ...

    def card(self, name: str) -> Card | None: ...
    def cards(self) -> list[tuple[Card, int]]:
        """List the published cards, and when each was published."""
        ...


class EntryView(Protocol):
    """Shared entries."""

    def entry(self, namespace: str, key: str) -> Entry | None: ...
    def recent(self, scope: Scope, now: int, limit: int) -> list[Entry]: ...
    def by_key(self, scope: Scope, now: int, limit: int) -> list[Entry]: ...
    def retired(self, namespace: str, key: str) -> Retired:
        """Tell which versions are used up at this address."""
        ...

    def expired(self, now: int, limit: int) -> list[tuple[str, str, int]]: ...
    def namespaces(self, now: int) -> list[tuple[str, int]]: ...


class MessageView(Protocol):
    """Messages that wait to be read."""

    def has_message(self, message: str) -> bool:
        """Tell whether there is such a message, read or not."""
        ...

    def waiting(self, run: str, agent: str, task: str, limit: int) -> list[Message]:
        """List messages for this agent in a run, and announcements for this task."""
        ...

    def still_waiting(self, run: str, agent: str, limit: int) -> list[str]:
        """List the ids of the messages for this agent, in order, without reading them."""
        ...

    def unread(self, run: str, agent: str, sender: str) -> int:
        """Count the messages of one sender that wait for this agent."""
        ...

    def orphans(self, limit: int) -> list[Message]:
        """List announcements whose asker ended before it could read them."""
        ...


class TallyView(Protocol):
    """Figures of the journal, rolled up, and what is needed to roll up the rest."""

    def tallied(self) -> int:
        """Tell up to which event the tally counts."""
        ...

    def tally(self, period: Period, agent: str | None = None) -> list[TallyRow]:
        """List the rows of a period, of one agent or of all."""
        ...

    def tally_row(self, width: int, start: int, agent: str) -> TallyRow | None: ...
    def under_way(self, task: str) -> UnderWay | None:
        """Tell what is remembered of a task that had not ended by then."""
        ...

    def open_runs(self, window: Window, agent: str | None = None) -> Counter[str]:
        """Count the runs that had not ended by then and began within a time, by their states."""
        ...

    def events_between(self, after: int, upto: int, limit: int) -> list[Event]:
        """List the events of a stretch of the journal, in order."""
        ...

    def events_of_run_before(self, run: str, seq: int) -> list[Event]:
        """List the events of a run before that one, in order."""
        ...


class LedgerView(Protocol):
    """Leases, what is held of them, and what was spent by the hour."""

    def lease(self, lease: str, unit: Unit) -> Lease | None: ...
    def leases(self, after: tuple[str, str], limit: int) -> list[Lease]:
        """List leases in the order of their ids and units, from behind that one on."""
        ...

    def hold(self, hold: str) -> Hold | None: ...
    def holds(self, task: str) -> list[Hold]:
        """List what is held for calls of a task that have not ended."""
        ...

    def holds_expired(self, now: int, limit: int) -> list[Hold]:
        """List what was held for calls that did not leave in time."""
        ...

    def holds_uncertain(self, after: str, limit: int) -> list[Hold]:
        """List what was charged without knowing what it cost, in the order of runs, from behind that run on."""
        ...

    def holds_of_run(self, run: str) -> list[Hold]:
        """List the same of one run."""
        ...

    def disputed(self, agent: str) -> Hold | None:
        """Find a call of an agent whose bill was more than its lease had, and that nobody has settled."""
        ...

    def on_hold(self, unit: Unit, agent: str = "*", session: str = "*") -> int:
        """Sum up what is held right now: of all, of an agent, or of a session."""
        ...

    def metered(self, scope: str, name: str, unit: MeterUnit, since: str) -> int:
        """Sum up what was spent after that hour by the workspace, an agent or a session."""
        ...

    def meter(self, scope: str, name: str, unit: MeterUnit, hour: str) -> int | None:
        """Tell what was spent in one hour; None if nothing was."""
        ...

    def meter_hours(self, scope: str, name: str, unit: MeterUnit, since: str) -> list[tuple[str, str, int]]:
        """List what was spent in each hour from that one on: by name ("*" for every name of the scope), then by
        hour."""
        ...


class QuestionView(Protocol):
    """Questions to people."""

    def question(self, question: str) -> Question | None: ...
    def questions_of(self, task: str) -> list[Question]:
        """List what is open in a task."""
        ...

    def questions_open_in(self, run: str) -> list[Question]:
        """List what is open in a run."""
        ...

    def questions_of_run(self, run: str) -> list[str]:
        """List the ids of all that was asked in a run."""
        ...

    def questions_expired(self, now: int, limit: int) -> list[Question]:
        """List what is open although its time is up."""
        ...

    def questions_open(self, limit: int) -> list[Question]:
        """List what is open, first what expires first."""
        ...

    def questions(self, limit: int, before: int | None = None) -> list[Question]:
        """List questions, the latest first, from before that event on."""
        ...


class KeyView(Protocol):
    """A workspace's own keys, sealed; nothing is opened here."""

    def secret(self, name: str) -> KeyRow | None: ...
    def secrets(self) -> list[KeyInfo]:
        """List what is told of the keys, by name."""
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
    KeyView,
    Protocol,
):
    """All of it, as of one moment."""
