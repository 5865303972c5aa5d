"""Figures of the journal, rolled up, and what is needed to roll up the rest."""

from collections import Counter
from collections.abc import Callable
from typing import TypeVar

from remit.codec import decode
from remit.core.events import Event
from remit.core.tally import Period, Root, UnderWay, Window, figures_from, under_way_from
from remit.core.values import Json
from remit.errors import StoreError
from remit.ports import TallyRow
from remit.stores.views.base import Queries, Values
from remit.stores.views.journal import event_of

T = TypeVar("T")

_ANY = "*"  # no agent has this name


class TallyQueries(Queries):
    __slots__ = ()

    def tallied(self) -> int:
        return self._count("tally_mark")

    def tally(self, period: Period, agent: str | None = None) -> list[TallyRow]:
        rows = self._rows("tally_rows", **period._asdict(), agent=_ANY if agent is None else agent)
        return [self._row(row) for row in rows]

    def tally_row(self, width: int, start: int, agent: str) -> TallyRow | None:
        row = self._one("tally_row", width=width, start=start, agent=agent)
        return None if row is None else self._row(row)

    def under_way(self, task: str) -> UnderWay | None:
        row = self._one("tally_task", task=task)
        if row is None:
            return None
        state, at, agent, data = row
        return self._read(data, lambda found: under_way_from(found, Root(state, at, agent) if state else None))

    def open_runs(self, window: Window, agent: str | None = None) -> Counter[str]:
        who = _ANY if agent is None else agent
        rows = self._rows("tally_runs", start=window.start, stop=window.stop, agent=who)
        return Counter({row[0]: row[1] for row in rows})

    def events_between(self, after: int, upto: int, limit: int) -> list[Event]:
        return [event_of(row) for row in self._rows("events_between", after=after, upto=upto, limit=limit)]

    def events_of_run_before(self, run: str, seq: int) -> list[Event]:
        return [event_of(row) for row in self._rows("events_of_run_before", run=run, before=seq)]

    def _row(self, row: Values) -> TallyRow:
        width, start, agent, first, last, data = row
        return TallyRow(width, start, agent, first, last, self._read(data, figures_from))

    def _read(self, text: str, make: Callable[[Json], T]) -> T:
        """Read what was rolled up. The doctor does not look at it: it is counted anew wherever it is missing."""
        try:
            return make(decode(text))
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise StoreError(
                f"the tally of '{self.workspace}' cannot be read ({type(error).__name__}: {error}); delete the rows of "
                "tally, tally_task and tally_mark, and it is counted anew"
            ) from error
