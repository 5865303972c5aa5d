"""Other processes: whether they are still there.

That is never judged by comparing clocks. On the same machine the process table says it at once; of others, only that
no heartbeat came for a while on our own watch. Whoever could not look has heard nothing either, so it begins to watch
anew. Being wrong about it is harmless: fences see to it that only one of two processes can record anything.
"""

from collections.abc import Iterable
from typing import Final

from remit.core.times import SECOND
from remit.engine.presence.processes import Fate, ProcessTable
from remit.ports import Beat, Clock

PATIENCE: Final = 20  # times as long a process may be silent that is seen to be alive
_ROUNDS: Final = 3  # looks that may fail to take place before what was heard counts no more


class Peers:
    """Watches the heartbeats of the others: after so many seconds of `silence`, looking every `look` seconds."""

    def __init__(self, clock: Clock, silence: float, look: float, processes: ProcessTable | None = None) -> None:
        self._clock = clock
        self._silence = round(silence * SECOND)
        self._gap = max(self._silence // 2, round(_ROUNDS * look * SECOND))
        self._processes = processes or ProcessTable()
        self._looked = clock.ticks()
        self._heard: dict[str, tuple[int, int]] = {}

    def gone(self, beats: Iterable[Beat], unseen: Iterable[str] = ()) -> list[Beat]:
        """List those whose process has ended, or who have been silent for too long while we watched. `unseen` are
        workers that have something and of whom there is no heartbeat."""
        now = self._clock.ticks()
        if now - self._looked > self._gap:
            self.watch_anew()
        self._looked = now
        all_ = [*beats, *(Beat(worker, "", 0) for worker in unseen)]
        self._heard = {beat.worker: self._last_heard(beat, now) for beat in all_}
        return [beat for beat in all_ if self._is_gone(beat, now)]

    def watch_anew(self) -> None:
        """Restart the silence of all peers at zero."""
        self._heard.clear()

    def may_have_died(self, beat: Beat) -> bool:
        """Whether a silent process may have died: the process table does not show it as running or stopped."""
        return self._processes.fate(beat.home) not in (Fate.ALIVE, Fate.STOPPED)

    def _last_heard(self, beat: Beat, now: int) -> tuple[int, int]:
        known = self._heard.get(beat.worker)
        return known if known is not None and known[0] == beat.count else (beat.count, now)

    def _is_gone(self, beat: Beat, now: int) -> bool:
        fate = self._processes.fate(beat.home)
        if fate is Fate.ENDED:
            return True
        silence = self._silence * PATIENCE if fate is Fate.ALIVE else self._silence
        return now - self._heard[beat.worker][1] >= silence
