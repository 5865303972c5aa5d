"""The processes that run tasks, as far as this process can tell."""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final, cast

from remit.core.lifecycle import Progress, Record
from remit.core.times import SECOND
from remit.core.values import decode
from remit.engine.presence.peers import process_ended, process_number
from remit.ports import Beat, RunVitals

GONE: Final = "gone"
_SILENT: Final = 30 * SECOND  # a process without a heartbeat for so long has stalled
_AT_WORK: Final = ("running", "waiting")
_SHORT: Final = 6  # characters from the end of a worker's id, because its beginning is the time


@dataclass(frozen=True, slots=True)
class Peer:
    """A process with a heartbeat. `number` is its process id on this machine, or empty. `seen_at` is when it sent its
    latest heartbeat, in microseconds since 1970, by its own clock. `agents` are the agents whose queued tasks it
    runs."""

    id: str
    number: str
    concurrency: int
    seen_at: int = 0
    agents: tuple[str, ...] = ()

    @property
    def called(self) -> str:
        """Return "here 4711", or the end of the id of a process on another machine."""
        return f"here {self.number}" if self.number else self.id[-_SHORT:]


@dataclass(frozen=True)
class Crew:
    """All processes with a heartbeat, as they were `at` that time, and the latest progress that their tasks have
    reported, by task. A process of this machine that has ended is left out; of other machines nothing more is known."""

    at: int
    workers: list[Peer]
    progress: dict[str, Progress]

    @cached_property
    def _called(self) -> dict[str, str]:
        return {worker.id: worker.called for worker in self.workers}

    def where(self, worker: str) -> str:
        """Return the name of the process that runs a task, `GONE` if that process has no heartbeat any more, or "" if
        no process runs the task."""
        return self._called.get(worker, GONE) if worker else ""

    @cached_property
    def _seen_at(self) -> dict[str, int]:
        return {worker.id: worker.seen_at for worker in self.workers}

    def signs(self, record: Record, vitals: RunVitals) -> tuple[int, bool]:
        """Return the time of a run's latest sign of life, in microseconds since 1970, and whether the run has stalled:
        a process that has one of its tasks is gone, or was not seen for 30 seconds. If the run has ended, return the
        time of its end."""
        if vitals.latest is None:
            return record.ended_at or record.asked_at, False
        seen = [self._seen_at.get(worker, 0) for worker in vitals.workers]
        stalled = bool(seen) and min(seen) < self.at - _SILENT
        return max(vitals.latest, *seen) if seen else vitals.latest, stalled

    def workers_of(self, agent: str) -> list[Peer]:
        """Return the workers that run the queued tasks of an agent; a worker that was not seen for 30 seconds does
        not count."""
        since = self.at - _SILENT
        return [one for one in self.workers if one.concurrency and agent in one.agents and one.seen_at >= since]

    def is_lost(self, record: Record) -> bool:
        """Whether a task was started and no process is left that would end it."""
        return record.state in _AT_WORK and (record.until <= self.at or self.where(record.worker) == GONE)

    def state(self, record: Record) -> str:
        """Return the state of a task, or "lost"."""
        return "lost" if self.is_lost(record) else record.state


def crew_of(beats: Iterable[Beat], now: int) -> Crew:
    """Return the processes of these heartbeats, without those of this machine that have ended."""
    alive = [beat for beat in beats if not process_ended(beat.home)]
    workers = [_peer(beat) for beat in alive]
    return Crew(now, workers, {one.task: one for beat in alive if beat.progress for one in _progress_in(beat.progress)})


def _peer(beat: Beat) -> Peer:
    agents = tuple(cast("list[str]", decode(beat.agents))) if beat.agents else ()
    return Peer(beat.worker, process_number(beat.home), beat.hands, beat.seen_at, agents)


def _progress_in(text: str) -> list[Progress]:
    return [Progress(*one) for one in cast("list[Any]", decode(text))]
