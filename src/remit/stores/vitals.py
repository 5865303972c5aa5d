"""How runs stand, for a page of them at once: read from the rows of their tasks, calls and questions, not from their
events."""

from collections.abc import Sequence
from typing import Any, Final, cast

from remit.codec import decode, encode
from remit.ports import RunVitals
from remit.stores.history import Queries, Values

_PAGE: Final = 500  # runs per query


class VitalQueries(Queries):
    __slots__ = ()

    def vitals(self, runs: Sequence[str]) -> dict[str, RunVitals]:
        found: dict[str, RunVitals] = {}
        for start in range(0, len(runs), _PAGE):
            found |= self._vitals_of(encode([*runs[start : start + _PAGE]]))
        return found

    def _vitals_of(self, ids: str) -> dict[str, RunVitals]:
        rows: dict[str, list[Values]] = {}
        for row in self._rows("vitals_tasks", ids=ids):
            rows.setdefault(row[0], []).append(row)
        open_ = encode([run for run, parts in rows.items() if any(is_open for *_, is_open in parts)])
        latest = {run: (int(questions), at) for run, questions, at in self._rows("vitals_open", ids=open_)}
        granted = {run: _granted(run, data) for run, data in self._rows("vitals_ended", ids=ids)}
        granted |= {run: int(amount) for run, amount in self._rows("vitals_leases", ids=ids)}
        return {run: _vitals(parts, granted.get(run), *latest.get(run, (0, None))) for run, parts in rows.items()}


def _vitals(rows: list[Values], granted: int | None, questions: int, latest: int | None) -> RunVitals:
    states: dict[str, int] = {}
    for row in rows:
        states[row[1]] = states.get(row[1], 0) + int(row[4])
    return RunVitals(
        depth=max(row[3] for row in rows),
        states=dict(sorted(states.items())),
        workers=tuple(sorted({row[2] for row in rows if row[2]})),
        held=sum(int(row[5]) for row in rows),
        granted=granted,
        questions=questions,
        latest=latest,
    )


def _granted(run: str, text: str) -> int | None:
    """Return the credits that a run had, from the data of its last event, because the row of its lease is gone; None if
    it had no lease."""
    data = cast("dict[str, Any]", decode(text))
    return next((row[4] for row in data.get("closes", ()) if row[:2] == [run, "credits"]), None)
