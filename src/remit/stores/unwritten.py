"""What a transaction has yet to write: figures that its events add to rows, summed up, and holds that are new.

A hundred calls that one account pays for in a transaction change its row once, and so it is with the figures of runs
and of meters. A hold that ends in the transaction in which it began is never written at all.
"""

from collections.abc import Callable, Sequence
from itertools import pairwise
from operator import add, itemgetter
from typing import Any, Final, TypeAlias, cast

from remit.core.change import Key, Row, Table
from remit.core.money import LeaseMove
from remit.core.projection import ONE_TASK, Count
from remit.stores.queries import queries

Write: TypeAlias = Callable[[str, Sequence[Any]], None]

_FIGURES: Final = LeaseMove._fields[2:]
_METERED: Final = ("workspace", "unit", "hour", "agent", "session")
_METERED_BY: Final = itemgetter(*_METERED)
_COUNT, _MOVE, _METER, _HOLD = (queries()[name].fill for name in ("run_count", "lease_move", "meter_count", "hold_add"))
TABLES: Final = frozenset(("run", "lease", "hold", "meter"))  # whose rows may be behind


def _reads(sql: str) -> bool:
    """Tell whether a statement looks into one of these tables."""
    return any(word in ("FROM", "JOIN") and table in TABLES for word, table in pairwise(sql.split()))


READERS: Final = frozenset(name for name, query in queries().items() if _reads(query.sql))


class Unwritten:
    """Changes that wait for the end of a transaction: they must be written before it is committed, and before one of
    the `READERS` is asked in it."""

    __slots__ = ("_holds", "_leases", "_meters", "_runs")

    def __init__(self) -> None:
        self._runs: dict[tuple[str, str], list[Any]] = {}
        self._leases: dict[tuple[str, ...], list[int]] = {}
        self._meters: dict[tuple[Any, ...], int] = {}
        self._holds: dict[tuple[str, ...], Row] = {}

    def __bool__(self) -> bool:
        return bool(self._runs or self._leases or self._meters or self._holds)

    def clear(self) -> None:
        """Forget all of it: it is written, or the transaction was rolled back."""
        self._runs.clear()
        self._leases.clear()
        self._meters.clear()
        self._holds.clear()

    def count(self, workspace: str, run: str, count: Count) -> None:
        """Add to the figures of a run."""
        key = (workspace, run)
        waiting = self._runs.get(key)
        if waiting is None:
            self._runs[key] = [*count]
        elif count is ONE_TASK:  # nearly always
            waiting[1] += 1
        else:
            self._runs[key] = [*map(add, waiting, count)]

    def move(self, workspace: str, move: LeaseMove) -> None:
        """Add to the figures of a lease."""
        key = (workspace, move.lease, move.unit)
        waiting = self._leases.get(key)
        if waiting is None:
            self._leases[key] = [*move[2:]]
        else:
            self._leases[key] = [have + more for have, more in zip(waiting, move[2:], strict=True)]

    def takes(self, table: Table, verb: str, key: Key, row: Row) -> bool:
        """Take a change that can wait: what is added to a meter, a hold that begins, and the end of one that was never
        written. Of a lease that goes, nothing is added to its row any more."""
        if verb == "count":
            metered = _METERED_BY(row)
            self._meters[metered] = self._meters.get(metered, 0) + cast("int", row["spent"])
            return True
        place = (cast("str", row["workspace"]), *key)
        if table == "hold" and verb == "add":
            self._holds[place] = row
            return True
        if table == "lease" and verb == "drop":
            self._leases.pop(place, None)
        return table == "hold" and verb == "drop" and self._holds.pop(place, None) is not None

    def write(self, write: Write) -> None:
        """Write what has come together."""
        for (workspace, run), figures in self._runs.items():
            row = {"workspace": workspace, "id": run, **dict(zip(Count._fields, figures, strict=True))}
            write("run_count", _COUNT(row))
        for (workspace, lease, unit), figures in self._leases.items():
            row = {"workspace": workspace, "id": lease, "unit": unit, **dict(zip(_FIGURES, figures, strict=True))}
            write("lease_move", _MOVE(row))
        for metered, spent in self._meters.items():
            write("meter_count", _METER({**dict(zip(_METERED, metered, strict=True)), "spent": spent}))
        for row in self._holds.values():
            write("hold_add", _HOLD(row))
        self.clear()
