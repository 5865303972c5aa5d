"""The doctor: whether a store still keeps its promises. Users and all tests use the same check."""

import asyncio
import hashlib
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, MutableMapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from itertools import islice
from typing import Final, Literal, Self, TypeAlias, TypeVar, cast

from remit.core import lifecycle
from remit.core.change import KEYS, Key, Row, Table
from remit.core.events import KEYED, Chapter, Event, Gap, Head, SealKey, blob_reference, genuine, is_blob, read
from remit.core.kinds.upkeep import JournalCut, PrunedRun, RunsPruned
from remit.core.ledger import unbalanced
from remit.core.projection import Tables, changes, fold, fold_in
from remit.core.values import shown
from remit.engine.artifacts import examined
from remit.engine.upkeep.keys import KeysTold
from remit.engine.upkeep.spilling import Spilled, spilling
from remit.errors import StoreError
from remit.ports import Database, Span, View

# Tables of which little is kept.
_SMALL: Final = ("retired", "breaker", "card", "cooling", "ask", "meter", "schedule", "hook", "access")
_MOST: Final = 20  # sentences about the moves of tasks


class Reading:
    """Reads the events of one workspace in order. After the last event it has the errors of the journal, and the rows
    that the tables should contain."""

    def __init__(self, key: SealKey | None, *, forgets: bool = False) -> None:
        """Start reading. A store in memory forgets old events, so missing ones are no error there."""
        self.head = Head()
        self.events = 0
        self.forgotten = 0
        self._forgets = forgets
        self.gaps = StatedGaps()
        self.sentences: list[str] = []
        self.notices: list[str] = []
        self._seals = _Seals(key)
        self._disk = spilling()
        self._moves = _Moves(Spilled(self._disk, "moves"))
        self._tables: Tables = {table: {} if table in _SMALL else Spilled(self._disk, table) for table in KEYS}
        self._ended = Spilled(self._disk, "ended")  # digests of the rows of ended tasks

    def take(self, event: Event) -> None:
        self.events += 1
        if self._forgets and event.seq != self.head.seq + 1:
            self.forgotten += event.seq - self.head.seq - 1
        else:
            self._seals.take(event, self.head)
        self._moves.take(event)
        fold_in(self._tables, event)
        if event.kind in lifecycle.ENDS:
            row = self._tables["task"].pop((event.task,), None)
            if row is not None:
                self._ended[event.task,] = digest(row)
        elif event.kind == "runs.pruned":
            for run in _pruned(event):
                for task in run["tasks"]:
                    self._ended.pop((task,), None)
                self._moves.forget(run["tasks"])
            self.gaps.state(read(event, RunsPruned)["gaps"])
        elif event.kind == "journal.cut":
            self.gaps.state(read(event, JournalCut)["gaps"])
        self.head = Head(event.seq, event.hash)

    def pass_over(self, gap: Gap) -> None:
        """If a gap starts right after the last event that was read, continue after the gap."""
        if gap.first == self.head.seq + 1:
            self.head = Head(gap.last, gap.hash)

    def end(self) -> None:
        """Collect what is wrong with the journal itself."""
        self._seals.end()
        self.notices = self._seals.notices
        if self.forgotten:
            self.sentences = self._seals.broken
            self.notices.append(
                f"{self.forgotten} events are forgotten; what they told cannot be compared with the tables"
            )
        else:
            self.sentences = [*self._seals.broken, *self._moves.broken]

    def take_row(self, table: Table, key: Key) -> Row | str | None:
        """Return a row as it should be according to the journal, or its digest for an ended task, or None. The row is
        removed from the expected rows, so it can be taken once."""
        if table == "task" and (ended := self._ended.pop(key, None)) is not None:
            return ended
        return self._tables[table].pop(key, None)

    def untold(self, table: Table) -> Iterator[Key]:
        """Yield the keys that the journal has and for which no row was read."""
        yield from self._tables[table]
        if table == "task":
            yield from self._ended

    def close(self) -> None:
        """Remove the rows that were written to disk."""
        self._disk.close()


class StatedGaps:
    """The gaps that events declare. A later declaration replaces the earlier gaps that it covers."""

    def __init__(self) -> None:
        self._lasts: list[int] = []
        self._gaps: dict[int, Gap] = {}

    def state(self, gaps: list[tuple[int, int, str]]) -> None:
        for gap in gaps:
            first, last, _ = gap
            begin, end = bisect_left(self._lasts, first), bisect_left(self._lasts, last + 1)
            for one in self._lasts[begin:end]:
                del self._gaps[one]
            self._lasts[begin:end] = [last]
            self._gaps[last] = Gap(*gap)

    def differences(self, found: Iterable[Gap]) -> Iterator[str]:
        """Yield a sentence for each gap in `found` that no event declares, and for each declared gap that is not in
        `found`."""
        for gap in found:
            if self._gaps.pop(gap.last, None) != gap:
                yield f"events {gap.first} to {gap.last} are missing, and no event states that they were removed"
        for gap in self._gaps.values():
            yield f"events {gap.first} to {gap.last} are said to be removed, and there is no such gap"


class _Seals:
    """The check of the chain of hashes."""

    def __init__(self, key: SealKey | None) -> None:
        self.broken: list[str] = []
        self.notices: list[str] = []
        self._key = key
        self._mark = ""  # prefix of the hashes of the present key
        self._unproven = 0

    def take(self, event: Event, head: Head) -> None:
        if self.broken:
            return  # everything after a break is unproven; one finding says so
        self._key_of(event)
        if not self.broken and not self._proven(event, head):
            missing = event.seq - head.seq - 1
            why = f"{missing} before it are missing" if missing else "it was changed after it was written"
            self.broken.append(f"event {event.seq} ({event.kind}) does not follow from event {head.seq}: {why}")

    def _key_of(self, event: Event) -> None:
        """Check the signing key of an event. After the first event that is signed, each event must be signed with the
        same key."""
        if event.hash.startswith(self._mark) and (self._mark or not event.hash.startswith(KEYED)):
            return
        if self._mark:
            self.broken.append(f"event {event.seq} ({event.kind}) is not signed with the key of the events before it")
            return
        self._mark = event.hash[: event.hash.find("-", len(KEYED)) + 1] or KEYED
        if self._key is not None and self._mark != self._key.mark:
            self.broken.append(f"from event {event.seq} on the journal is signed with another key than the one given")

    def _proven(self, event: Event, head: Head) -> bool:
        if self._mark and self._key is None:
            self._unproven += 1
            return event.seq == head.seq + 1
        return genuine(event, head, self._key)

    def end(self) -> None:
        if self._unproven and not self.broken:
            self.notices.append(
                f"{self._unproven} events are signed with a key that was not given, so they could not be verified; "
                "give it as REMIT_JOURNAL_KEY"
            )
        if self._key is not None and not self._mark and not self.broken:
            self.notices.append("no event is signed with the key yet; if the key is not new, the journal was replaced")


class _Moves:
    """The check of each task's life: started once, under an existing parent, and moved as the state machine allows."""

    def __init__(self, state: MutableMapping[Key, str]) -> None:
        self.broken: list[str] = []
        self._state = state

    def take(self, event: Event) -> None:
        if event.kind not in lifecycle.MOVES or len(self.broken) >= _MOST:
            return
        parent = event.data.get("parent")
        if parent and (parent,) not in self._state:
            self.broken.append(f"task {event.task} began under {parent}, which never began")
        before = self._state.get((event.task,), lifecycle.START)
        after = lifecycle.TRANSITIONS[before].get(event.kind)
        if after is None:
            move = event.kind.removeprefix("task.")
            self.broken.append(f"event {event.seq}: task {event.task} was {before} and then {move}")
        else:
            self._state[event.task,] = after

    def forget(self, tasks: list[str]) -> None:
        """Drop pruned tasks: they have ended, and nothing starts under them."""
        for task in tasks:
            self._state.pop((task,), None)


def _pruned(event: Event) -> list[PrunedRun]:
    return cast("list[PrunedRun]", event.data["runs"])


def digest(row: Row) -> str:
    """Return a digest of a row, to compare rows without keeping them in memory."""
    return hashlib.blake2b(repr(sorted(row.items())).encode(), digest_size=16).hexdigest()


T = TypeVar("T")

_PAGE: Final = 1_000
_SHOWN: Final = 5  # findings of one kind that are listed; the rest is counted
Tell: TypeAlias = Callable[[str, int, int], None]  # workspace, event number, and total

_UNREADABLE: Final = (ValueError, KeyError, TypeError, AttributeError, OverflowError, StoreError)


def _to_no_one(_workspace: str, _event: int, _of: int) -> None:
    """Report no progress."""


@dataclass(frozen=True, slots=True)
class Finding:
    """A finding: `broken` means that a promise is broken; `notice` is worth knowing and harmless."""

    level: Literal["broken", "notice"]
    workspace: str
    sentence: str


@dataclass(frozen=True, slots=True)
class Health:
    """The result of the doctor: what was checked and found. `heads` is the end of each workspace's journal, `advice`
    are outside risks for the store."""

    events: int
    tasks: int
    entries: int
    messages: int
    findings: list[Finding]
    heads: dict[str, Head]
    advice: list[str]

    @property
    def sound(self) -> bool:
        return not any(finding.level == "broken" for finding in self.findings)


async def examine(
    database: Database, now: int, workspaces: Sequence[str] | None = None, kept: str = "", tell: Tell = _to_no_one
) -> Health:
    """Check every workspace of a database, or those named. `kept` is the hash of an event that was noted elsewhere; the
    result says whether it is still in a journal. `tell` is called with the progress, on another thread."""
    findings = [Finding("broken", "", what) for what in await _beside(database, database.faulty)]
    findings += [Finding("notice", "", what) for what in await _beside(database, database.remarks)]
    events = tasks = entries = messages = 0
    heads: dict[str, Head] = {}
    found = False
    try:
        names = await _beside(database, database.workspaces) if workspaces is None else workspaces
    except StoreError as error:
        return Health(0, 0, 0, 0, [*findings, Finding("broken", "", str(error))], {}, [])
    for workspace in names:
        with closing(Reading(database.key, forgets=not database.lasting)) as reading:
            part = await database.store(workspace).browse(
                lambda view, name=workspace, reading=reading: _Part(name, now, kept, reading, tell).examine(view)
            )
        findings += part.findings
        wrong, left = await examined(database.store(workspace), database.contents(workspace))
        findings += [Finding("broken", workspace, sentence) for sentence in _some(wrong, "artifacts are damaged")]
        findings += [Finding("notice", workspace, sentence) for sentence in left]
        found = found or part.has_kept
        events += part.events
        tasks += part.rows["task"]
        entries += part.rows["entry"]
        messages += part.rows["message"]
        heads[workspace] = part.head
    if kept and not found:
        why = "something before it was changed, the journal ends earlier, or it was pruned; keep a newer one"
        findings.append(Finding("broken", "", f"no event has the hash {shown(kept)} that was kept: {why}"))
    return Health(events, tasks, entries, messages, findings, heads, await _beside(database, database.advice))


async def _beside(database: Database, ask: Callable[[], T]) -> T:
    """Query a database in a thread, so that the event loop is not blocked; one in memory is queried directly, because
    it is small."""
    return await asyncio.to_thread(ask) if database.lasting else ask()


class _Part:
    """The check of one workspace, on a snapshot."""

    def __init__(self, workspace: str, now: int, kept: str, reading: Reading, tell: Tell) -> None:
        self.findings: list[Finding] = []
        self.rows: dict[Table, int] = dict.fromkeys(KEYS, 0)
        self.head = Head()
        self.events = 0
        self.has_kept = False
        self._workspace = workspace
        self._now = now
        self._kept = kept
        self._reading = reading
        self._tell = tell
        self._abandoned: list[str] = []
        self._unbalanced: list[str] = []
        self._blobs = _Blobs()
        self._references = _References()
        self._chapters = _Chapters()
        self._keys = KeysTold()

    def examine(self, view: View) -> Self:
        reading = self._reading
        try:
            for event in self._events(view):
                if event.seq != reading.head.seq + 1 and (gap := view.gap_before(event.seq)) is not None:
                    reading.pass_over(gap)
                    self.has_kept = self.has_kept or gap.hash == self._kept
                reading.take(event)
                self._keys.take(event)
                self._chapters.take(view, event)
                if is_blob(event.answer):
                    self._blobs.take(view, event)
                if "artifacts" in event.data:
                    self._references.take(view, event)
                self.has_kept = self.has_kept or event.hash == self._kept
            reading.end()
            self._broken(reading.sentences)
            if not reading.forgotten:
                self._broken([*islice(reading.gaps.differences(_gaps(view)), _SHOWN)])
            self._broken(self._differences(view, reading))
            if not reading.forgotten:
                self._broken(_some(self._keys.differences(view), "keys differ from the journal"))
            self._broken(_some(self._chapters.wrong, "events are missing in their chapters"))
            self._broken(_some(self._unbalanced, "leases do not balance"))
            self._broken(_some(self._blobs.wrong(view), "answers are missing or changed"))
            if not reading.forgotten:
                self._broken(_some(self._references.wrong(view), "references to artifacts differ from the journal"))
        except _UNREADABLE as error:
            sentence = f"the journal or a table has a row that cannot be read ({type(error).__name__}: {error})"
            self._broken([*reading.sentences, sentence])
        self.head, self.events = reading.head, reading.events
        self._notice(reading.notices)
        if self.has_kept:
            self._notice(["the head that was kept is in the journal: nothing before it was changed"])
        self._notice(self._abandoned_lines())
        return self

    def _events(self, view: View) -> Iterator[Event]:
        last, after = view.head().seq, 0
        while page := view.events(Span(after=after, limit=_PAGE)):
            self._tell(self._workspace, after, last)
            yield from page
            after = page[-1].seq

    def _broken(self, sentences: Sequence[str]) -> None:
        self.findings += [Finding("broken", self._workspace, sentence) for sentence in sentences]

    def _notice(self, sentences: Sequence[str]) -> None:
        self.findings += [Finding("notice", self._workspace, sentence) for sentence in sentences]

    def _differences(self, view: View, reading: Reading) -> list[str]:
        """Return the differences between the tables, page by page, and the journal."""
        sentences: list[str] = []
        for table in KEYS:
            wrong = 0
            for key, row in _rows(view, table):
                self.rows[table] += 1
                self._see(table, row)
                if reading.forgotten:
                    continue
                told = reading.take_row(table, key)
                if told != (digest(row) if isinstance(told, str) else row):
                    wrong += 1
                    if wrong <= _SHOWN:
                        sentences.append(_how(table, key, _spelled_out(view, key, told, row), row))
            for key in () if reading.forgotten else reading.untold(table):
                wrong += 1
                if wrong <= _SHOWN:
                    sentences.append(f"{_name(table, key)} is in the journal but not in the table")
            if wrong > _SHOWN:
                sentences.append(f"and {wrong - _SHOWN} more rows of table {table} differ from the journal")
        return sentences

    def _see(self, table: Table, row: Row) -> None:
        """Record the two faults that a row can show by itself: a lease that does not balance, and a task that has not
        ended although its time is up. A running worker ends such tasks."""
        if table == "lease" and (sentence := unbalanced(row)):
            self._unbalanced.append(sentence)
        until = row.get("until")
        if table == "task" and row["ended"] is None and isinstance(until, int) and until <= self._now:
            self._abandoned.append(str(row["id"]))

    def _abandoned_lines(self) -> list[str]:
        left = self._abandoned
        if not left:
            return []
        more = f" and {len(left) - _SHOWN} more" if len(left) > _SHOWN else ""
        which = f"{', '.join(left[:_SHOWN])}{more}"
        help_ = "`remit worker` ends or resumes what a process left behind"
        return [f"{len(left)} tasks have not ended although their time is up: {which}; {help_}"]


class _Chapters:
    """The check that each chapter covers every event in its range: a search would miss the others."""

    def __init__(self) -> None:
        self.wrong: list[str] = []
        self._page: list[Chapter] = []
        self._upto = 0
        self._begun = False  # events before the first chapter are read one by one

    def take(self, view: View, event: Event) -> None:
        while not self._page or self._page[-1].last < event.seq:
            if not self._page:
                self._page = view.chapters(self._upto, _PAGE)[::-1]
                if not self._page:
                    return  # so is what is behind the last
                self._upto = self._page[0].last
            else:
                self._page.pop()
        chapter = self._page[-1]
        self._begun = self._begun or chapter.first <= event.seq
        if self._begun and not (chapter.first <= event.seq and chapter.has(event)) and len(self.wrong) < _PAGE:
            self.wrong.append(
                f"event {event.seq} ({event.kind}) is not in its chapter, so no look for its time, agent or kind "
                "finds it; delete the rows of table chapter, and remit writes them again"
            )


class _Blobs:
    """The check of answers that are stored next to their events: each exists and matches its event."""

    def __init__(self) -> None:
        self._seen = 0
        self._wrong: list[str] = []

    def take(self, view: View, event: Event) -> None:
        text = view.blob(event.seq)
        self._seen += text is not None
        if text is None or blob_reference(text) != event.answer:
            what = "is missing" if text is None else "was changed after it was written"
            self._wrong.append(f"the answer of event {event.seq} ({event.kind}) {what}")

    def wrong(self, view: View) -> list[str]:
        strange = view.blobs() - self._seen
        return [*self._wrong, *([f"{strange} long answers belong to no event"] if strange else [])]


class _References:
    """The check that each event has the rows of the artifacts that it refers to, and no row exists without an event."""

    def __init__(self) -> None:
        self._seen = 0
        self._wrong: list[str] = []

    def take(self, view: View, event: Event) -> None:
        found = view.artifacts_at(event.seq)
        self._seen += len(found)
        told = {digest(change.row) for change in changes(event) if change.table == "artifact"}
        if told != {digest({**row._asdict()}) for row in found}:
            self._wrong.append(f"the artifacts of event {event.seq} ({event.kind}) differ from the journal")

    def wrong(self, view: View) -> list[str]:
        strange = view.artifact_count() - self._seen
        return [*self._wrong, *([f"{strange} references to artifacts belong to no event"] if strange else [])]


def _some(sentences: list[str], rest: str) -> list[str]:
    more = len(sentences) - _SHOWN
    return [*sentences[:_SHOWN], *([f"and {more} more {rest}"] if more > 0 else [])]


def _rows(view: View, table: Table) -> Iterator[tuple[Key, Row]]:
    page = view.page(table, None, _PAGE)
    while page:
        yield from page
        page = view.page(table, page[-1][0], _PAGE)


def _gaps(view: View) -> Iterator[Gap]:
    page = view.gaps_after(0, _PAGE)
    while page:
        yield from page
        page = view.gaps_after(page[-1].last, _PAGE)


def _spelled_out(view: View, key: Key, told: Row | str | None, found: Row) -> Row | None:
    """Return the row as the journal has it. For an ended task only a digest was kept, so its run is read again."""
    if not isinstance(told, str):
        return told
    return fold(view.events(Span(run=str(found["run"]))))["task"].get(key, {})


def _name(table: Table, key: Key) -> str:
    return f"{table} {shown('/'.join(key))}"


def _how(table: Table, key: Key, told: Row | None, found: Row) -> str:
    if told is None:
        return f"{_name(table, key)} is in the table but not in the journal"
    columns = [column for column in told if told[column] != found.get(column)] or ["run"]
    return f"{_name(table, key)} differs from the journal in {', '.join(columns)}"
