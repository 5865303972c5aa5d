"""The ledger, and questions to people."""

from typing import cast

from remit.codec import decode
from remit.core.limits import MeterUnit
from remit.core.money import Hold, Lease, Unit
from remit.core.question import Question
from remit.stores.views.base import FOREVER, Queries, Values


class LedgerQueries(Queries):
    __slots__ = ()

    def lease(self, lease: str, unit: Unit) -> Lease | None:
        rows = self._ask("lease", (self.workspace, lease, unit))  # read at every hold: filled by hand
        return lease_of(rows[0]) if rows else None

    def leases(self, after: tuple[str, str], limit: int) -> list[Lease]:
        return [lease_of(row) for row in self._rows("lease_page", id=after[0], unit=after[1], limit=limit)]

    def hold(self, hold: str) -> Hold | None:
        row = self._one("hold", id=hold)
        return Hold(*row) if row else None

    def holds(self, task: str) -> list[Hold]:
        return self._holds("holds_of", task=task)

    def holds_expired(self, now: int, limit: int) -> list[Hold]:
        return self._holds("holds_expired", now=now, limit=limit)

    def holds_uncertain(self, after: str, limit: int) -> list[Hold]:
        return self._holds("holds_uncertain", run=after, limit=limit)

    def holds_of_run(self, run: str) -> list[Hold]:
        return self._holds("holds_of_run", run=run)

    def disputed(self, agent: str) -> Hold | None:
        row = self._one("hold_disputed", agent=agent)
        return Hold(*row) if row else None

    def on_hold(self, unit: Unit, agent: str = "*", session: str = "*") -> int:
        row = self._one("on_hold", agent=agent, session=session)
        assert row is not None  # a sum always answers
        return int(row[0 if unit == "credits" else 1])

    def metered(self, scope: str, name: str, unit: MeterUnit, since: str) -> int:
        return int(self._count("metered", scope=scope, of=name, unit=unit, since=since))

    def meter(self, scope: str, name: str, unit: MeterUnit, hour: str) -> int | None:
        row = self._one("meter_row", scope=scope, of=name, unit=unit, hour=hour)
        return None if row is None else row[-1]

    def meter_hours(self, scope: str, name: str, unit: MeterUnit, since: str) -> list[tuple[str, str, int]]:
        rows = self._rows("meter_hours", scope=scope, of=name, unit=unit, since=since)
        return sorted((row[0], row[1], int(row[2])) for row in rows)

    def _holds(self, name: str, **values: object) -> list[Hold]:
        return [Hold(*row) for row in self._rows(name, **values)]


class QuestionQueries(Queries):
    __slots__ = ()

    def question(self, question: str) -> Question | None:
        row = self._one("question", id=question)
        return Question(*row) if row else None

    def questions_of(self, task: str) -> list[Question]:
        return sorted(self._questions("questions_of", task=task), key=_asked)

    def questions_open_in(self, run: str) -> list[Question]:
        return sorted(self._questions("questions_open_in", run=run), key=_asked)

    def questions_of_run(self, run: str) -> list[str]:
        return [row[0] for row in self._rows("questions_of_run", run=run)]

    def questions_expired(self, now: int, limit: int) -> list[Question]:
        return self._questions("questions_expired", now=now, limit=limit)

    def questions_open(self, limit: int) -> list[Question]:
        return self._questions("questions_open", until=-FOREVER, limit=limit)

    def questions(self, limit: int, before: int | None = None) -> list[Question]:
        return self._questions("questions", before=FOREVER if before is None else before, limit=limit)

    def _questions(self, name: str, **values: object) -> list[Question]:
        return [Question(*row) for row in self._rows(name, **values)]


def _asked(question: Question) -> int:
    return question.asked


def lease_of(row: Values) -> Lease:
    """Make the lease that a row tells of."""
    id_, unit, kind, above, *figures = row
    return Lease._make((id_, unit, kind, tuple(cast("list[str]", decode(above))), *figures))
