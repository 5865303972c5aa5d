"""The processes that run tasks, as far as this process can tell."""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final, cast

from remit.core.lifecycle import Progress, Record
from remit.core.values import decode
from remit.engine.presence.peers import process_ended, process_number
from remit.ports import Beat

GONE: Final = "gone"
_AT_WORK: Final = ("running", "waiting")
_SHORT: Final = 6  # characters from the end of a worker's id, because its beginning is the time


@dataclass(frozen=True, slots=True)
class Peer:
    """A process with a heartbeat. `number` is its process id on this machine, or empty."""

    id: str
    number: str
    concurrency: int

    @property
    def called(self) -> str:
        """Return "here 4711", or the end of the id of a process on another machine."""
        return f"here {self.number}" if self.number else self.id[-_SHORT:]


class Crew:
    """All processes with a heartbeat. A process of this machine that has ended is left out; of other machines nothing
    more is known."""

    def __init__(self, beats: Iterable[Beat]) -> None:
        self._beats = [beat for beat in beats if not process_ended(beat.home)]
        self.workers = [Peer(beat.worker, process_number(beat.home), beat.hands) for beat in self._beats]
        self._called = {worker.id: worker.called for worker in self.workers}

    @cached_property
    def progress(self) -> dict[str, Progress]:
        """The latest progress that the tasks of these processes have reported, by task."""
        return {one.task: one for beat in self._beats if beat.progress for one in _progress_in(beat.progress)}

    def where(self, worker: str) -> str:
        """Return where a task runs, or "" if no process runs it."""
        return self._called.get(worker, GONE) if worker else ""

    def lost(self, record: Record, now: int) -> bool:
        """Whether a task was started and no process is left that would end it."""
        return record.state in _AT_WORK and (record.until <= now or self.where(record.worker) == GONE)

    def state(self, record: Record, now: int) -> str:
        return "lost" if self.lost(record, now) else record.state


def _progress_in(text: str) -> list[Progress]:
    return [Progress(*one) for one in cast("list[Any]", decode(text))]
