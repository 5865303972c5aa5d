"""What the events of a transaction add to figures in rows: summed up, and written once for each row at its end.

A hundred calls that one account pays for in a transaction change its row once, and so it is with the figures of runs
and of meters. Whoever reads such a row in the same transaction has it written first.
"""

from collections.abc import Callable, Sequence
from typing import Any, Final, TypeAlias

from remit.core.money import LeaseMove, Unit
from remit.core.projection import ONE_TASK, Count, Row
from remit.stores.queries import queries

Write: TypeAlias = Callable[[str, Sequence[Any]], None]

_FIGURES: Final = LeaseMove._fields[2:]
_METERED: Final = ("unit", "hour", "agent", "session")
_COUNT, _MOVE, _METER = (queries()[name].fill for name in ("run_count", "lease_move", "meter_count"))


class Sums:
    """It must be written before anyone commits, and before one of these rows is read in the same transaction."""

    __slots__ = ("_leases", "_meters", "_runs")

    def __init__(self) -> None:
        self._runs: dict[tuple[str, str], list[Any]] = {}
        self._leases: dict[tuple[str, str, Unit], list[int]] = {}
        self._meters: dict[tuple[Any, ...], int] = {}

    def __bool__(self) -> bool:
        return bool(self._runs or self._leases or self._meters)

    def clear(self) -> None:
        """Forget all of it: the transaction was rolled back."""
        self._runs.clear()
        self._leases.clear()
        self._meters.clear()

    def count(self, workspace: str, run: str, count: Count) -> None:
        """Add to the figures of a run."""
        waiting = self._runs.get((workspace, run))
        if waiting is None:
            self._runs[workspace, run] = [*count]
        elif count is ONE_TASK:  # nearly always
            waiting[1] += 1
        else:
            for place, more in enumerate(count):
                waiting[place] += more

    def move(self, workspace: str, move: LeaseMove) -> None:
        """Add to the figures of a lease."""
        key = (workspace, move.lease, move.unit)
        waiting = self._leases.get(key)
        if waiting is None:
            self._leases[key] = [*move[2:]]
        else:
            self._leases[key] = [have + more for have, more in zip(waiting, move[2:], strict=True)]

    def drop_lease(self, workspace: str, lease: str, unit: Unit) -> None:
        """Forget what is yet to be added to a lease: its row goes."""
        self._leases.pop((workspace, lease, unit), None)

    def meter(self, workspace: str, row: Row) -> None:
        """Add to what was spent in an hour."""
        key = (workspace, *(row[name] for name in _METERED))
        self._meters[key] = self._meters.get(key, 0) + row["spent"]  # type: ignore[operator]

    def write(self, write: Write) -> None:
        """Write what has come together."""
        for (workspace, run), figures in self._runs.items():
            row = {"workspace": workspace, "id": run, **dict(zip(Count._fields, figures, strict=True))}
            write("run_count", _COUNT(row))
        for (workspace, lease, unit), figures in self._leases.items():
            row = {"workspace": workspace, "id": lease, "unit": unit, **dict(zip(_FIGURES, figures, strict=True))}
            write("lease_move", _MOVE(row))
        for (workspace, *about), spent in self._meters.items():
            row = {"workspace": workspace, "spent": spent, **dict(zip(_METERED, about, strict=True))}
            write("meter_count", _METER(row))
        self.clear()
