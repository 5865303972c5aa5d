"""Running named queries, always within one workspace."""

from collections.abc import Callable, Sequence
from typing import Any, Final, TypeAlias

from remit.core.record import Record
from remit.stores.queries import queries

Values: TypeAlias = Sequence[Any]
Ask: TypeAlias = Callable[[str, Values], Sequence[Values]]

FOREVER: Final = 2**62

_QUERIES: Final = queries()


class Queries:
    """Runs named queries. `ask(name, values)` reaches the database; the workspace is put in here and nowhere else."""

    __slots__ = ("_ask", "workspace")

    def __init__(self, workspace: str, ask: Ask) -> None:
        self.workspace = workspace
        self._ask = ask

    def _rows(self, name: str, /, **values: object) -> Sequence[Values]:
        values["workspace"] = self.workspace
        return self._ask(name, _QUERIES[name].fill(values))

    def _one(self, name: str, **values: object) -> Values | None:
        rows = self._rows(name, **values)
        return rows[0] if rows else None

    def _count(self, name: str, **values: object) -> int:
        row = self._one(name, **values)
        return row[0] if row else 0

    def _records(self, name: str, **values: object) -> list[Record]:
        return [Record(*row) for row in self._rows(name, **values)]
