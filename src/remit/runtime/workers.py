"""Who is there: the processes that run tasks, as far as one can tell from here."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from remit.core.lifecycle import Record
from remit.engine.presence.peers import process_ended, process_number
from remit.ports import Beat

GONE: Final = "gone"
_AT_WORK: Final = ("running", "waiting")
_SHORT: Final = 6  # the end of a worker's id, which differs where its beginning is the time


@dataclass(frozen=True, slots=True)
class Peer:
    """A process that has said that it is there. `number` is that of a process of this machine, or empty."""

    id: str
    number: str
    concurrency: int

    @property
    def called(self) -> str:
        """here 4711, or the end of the id of a process on another machine"""
        return f"here {self.number}" if self.number else self.id[-_SHORT:]


class Crew:
    """Everyone who is there. A process of this machine that has ended is not; of others only they themselves know."""

    def __init__(self, beats: Iterable[Beat]) -> None:
        self.workers = [
            Peer(beat.worker, process_number(beat.home), beat.hands) for beat in beats if not process_ended(beat.home)
        ]
        self._called = {worker.id: worker.called for worker in self.workers}

    def where(self, worker: str) -> str:
        """Say where a task runs; empty if nobody runs it."""
        return self._called.get(worker, GONE) if worker else ""

    def lost(self, record: Record, now: int) -> bool:
        """Whether it was begun, and nobody is there any more who would end it."""
        return record.state in _AT_WORK and (record.until <= now or self.where(record.worker) == GONE)

    def state(self, record: Record, now: int) -> str:
        return "lost" if self.lost(record, now) else record.state
