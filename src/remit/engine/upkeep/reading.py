"""Reading a journal from its beginning to its end, once: is each event what was sealed, is each move one of the table,
and what do all of them tell about the tables? What it keeps grows with what there is, not with what happened."""

import hashlib
from bisect import bisect_left
from collections.abc import Iterable, Iterator
from typing import Final, cast

from remit.core import lifecycle
from remit.core.change import KEYS, Key, Row, Table
from remit.core.events import KEYED, Event, Gap, Head, SealKey, genuine
from remit.core.kinds import JournalCut, PrunedRun, RunsPruned, read
from remit.core.projection import Tables, fold_in

_MOST: Final = 20  # sentences about the moves of tasks


class Reading:
    """Takes the events of one workspace in order, and then tells what is wrong and what should be in the tables."""

    def __init__(self, key: SealKey | None, *, forgets: bool = False) -> None:
        """Begin to read. A store in memory forgets: what is missing there was forgotten."""
        self.head = Head()
        self.events = 0
        self.forgotten = 0
        self._forgets = forgets
        self.gaps = StatedGaps()
        self.sentences: list[str] = []
        self.notices: list[str] = []
        self._seals = _Seals(key)
        self._moves = _Moves()
        self._tables: Tables = {table: {} for table in KEYS}
        self._ended: dict[str, bytes] = {}  # of tasks that have ended, a digest of the row

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
                self._ended[event.task] = digest(row)
        elif event.kind == "runs.pruned":
            for run in _pruned(event):
                for task in run["tasks"]:
                    self._ended.pop(task, None)
                self._moves.forget(run["tasks"])
            self.gaps.state(read(event, RunsPruned)["gaps"])
        elif event.kind == "journal.cut":
            self.gaps.state(read(event, JournalCut)["gaps"])
        self.head = Head(event.seq, event.hash)

    def pass_over(self, gap: Gap) -> None:
        """Go on behind a gap, if it begins here."""
        if gap.first == self.head.seq + 1:
            self.head = Head(gap.last, gap.hash)

    def end(self) -> None:
        """Tell what is wrong with the journal itself."""
        self._seals.end()
        self.notices = self._seals.notices
        if self.forgotten:
            self.sentences = self._seals.broken
            self.notices.append(
                f"{self.forgotten} events are forgotten; what they told cannot be compared with the tables"
            )
        else:
            self.sentences = [*self._seals.broken, *self._moves.broken]

    def told(self, table: Table, key: Key) -> Row | bytes | None:
        """Give what the journal tells of a row, of a task that has ended its digest; each is asked for once."""
        if table == "task" and key[0] in self._ended:
            return self._ended.pop(key[0])
        return self._tables[table].pop(key, None)

    def untold(self, table: Table) -> Iterator[Key]:
        """List what the journal tells of and no row was seen for."""
        yield from self._tables[table]
        if table == "task":
            yield from ((task,) for task in self._ended)


class StatedGaps:
    """The gaps that the events state, each by the last event that states it or one that it is part of."""

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
        """Compare with the gaps that there are."""
        for gap in found:
            if self._gaps.pop(gap.last, None) != gap:
                yield f"events {gap.first} to {gap.last} are missing, and no event states that they were removed"
        for gap in self._gaps.values():
            yield f"events {gap.first} to {gap.last} are said to be removed, and there is no such gap"


class _Seals:
    """The chain of hashes."""

    def __init__(self, key: SealKey | None) -> None:
        self.broken: list[str] = []
        self.notices: list[str] = []
        self._key = key
        self._mark = ""  # how the hashes of the present key begin
        self._unproven = 0

    def take(self, event: Event, head: Head) -> None:
        if self.broken:
            return  # everything after a break is unproven; one sentence says so
        self._key_of(event)
        if not self.broken and not self._proven(event, head):
            missing = event.seq - head.seq - 1
            why = f"{missing} before it are missing" if missing else "it was changed after it was sealed"
            self.broken.append(f"event {event.seq} ({event.kind}) does not follow from event {head.seq}: {why}")

    def _key_of(self, event: Event) -> None:
        """Follow which key seals: once there is one, whatever comes without it is not ours."""
        if event.hash.startswith(self._mark) and (self._mark or not event.hash.startswith(KEYED)):
            return
        if self._mark:
            self.broken.append(
                f"event {event.seq} ({event.kind}) is not sealed with the key that the events before it were"
            )
            return
        self._mark = event.hash[: event.hash.find("-", len(KEYED)) + 1] or KEYED
        if self._key is not None and self._mark != self._key.mark:
            self.broken.append(f"from event {event.seq} on the journal is sealed with another key than the one given")

    def _proven(self, event: Event, head: Head) -> bool:
        if self._mark and self._key is None:
            self._unproven += 1
            return event.seq == head.seq + 1
        return genuine(event, head, self._key)

    def end(self) -> None:
        if self._unproven and not self.broken:
            self.notices.append(
                f"{self._unproven} events are sealed with a key that was not given, so they could not be verified; "
                "give it as REMIT_JOURNAL_KEY"
            )
        if self._key is not None and not self._mark and not self.broken:
            self.notices.append("no event is sealed with the key yet; if the key is not new, the journal was made anew")


class _Moves:
    """The life of each task: begun once, under a parent that was there before, and moved as the table allows."""

    def __init__(self) -> None:
        self.broken: list[str] = []
        self._state: dict[str, str] = {}

    def take(self, event: Event) -> None:
        if event.kind not in lifecycle.MOVES or len(self.broken) >= _MOST:
            return
        parent = event.data.get("parent")
        if parent and parent not in self._state:
            self.broken.append(f"task {event.task} began under {parent}, which never began")
        before = self._state.get(event.task, lifecycle.START)
        after = lifecycle.TRANSITIONS[before].get(event.kind)
        if after is None:
            move = event.kind.removeprefix("task.")
            self.broken.append(f"event {event.seq}: task {event.task} was {before} and then {move}")
        else:
            self._state[event.task] = after

    def forget(self, tasks: list[str]) -> None:
        """Forget tasks that are pruned: they have ended, and nothing begins under them."""
        for task in tasks:
            self._state.pop(task, None)


def _pruned(event: Event) -> list[PrunedRun]:
    return cast("list[PrunedRun]", event.data["runs"])


def digest(row: Row) -> bytes:
    """Tell rows apart in few bytes."""
    return hashlib.blake2b(repr(sorted(row.items())).encode(), digest_size=16).digest()
