"""Forgetting: a database in memory keeps the newest events and what belongs to them, so that a process that runs for
days needs no more memory than one that runs for an hour.

It is no part of the journal: nobody else reads that, and nothing of it is left when the process ends. Runs in which
something is open are kept whole, and so is every entry.
"""

import sqlite3
from typing import Final

from remit.codec import encode
from remit.stores.queries import queries
from remit.stores.sqlite.connection import WritingConnection
from remit.stores.sqlite.files import MEMORY, translated
from remit.stores.views import Values

_STEP: Final = 1_000  # events forgotten at once, at most
_SWEEP: Final = 16  # steps, after which those are looked at that were kept although others around them were not

_QUERIES: Final = queries("?", "sqlite")
_FORGET: Final = (
    *("forget_keys", "forget_messages", "forget_questions", "forget_figures", "forget_asks", "forget_tasks"),
    *("forget_events", "forget_blobs"),
)


class Forgetting:
    """What is old in a database in memory. `keep` is how many events of each workspace are kept; None for all."""

    def __init__(self, connection: WritingConnection) -> None:
        self.keep: int | None = None
        self._connection = connection
        self._after: dict[str, int] = {}  # up to where each workspace was forgotten
        self._steps = 0

    def look(self, written: list[Values]) -> None:
        """Forget a little, if enough is old; to be called when these have been written and no transaction is open."""
        if self.keep is None:
            return
        for workspace, head in {row[0]: row[1] for row in written}.items():
            after = self._after.get(workspace, 0)
            upto = min(head - self.keep, after + _STEP)
            if upto - after >= min(_STEP // 2, self.keep):
                self._after[workspace] = upto
                self._steps += 1
                self._forget(workspace, 0 if self._steps % _SWEEP == 0 else after, upto)

    def _forget(self, workspace: str, after: int, upto: int) -> None:
        assert self.keep is not None
        # What began at about the same time ended at different times: it is forgotten together once all of that is old.
        values: dict[str, object] = {"workspace": workspace, "after": after, "upto": upto}
        values["later"] = upto + self.keep // 2
        self._connection.begin()
        try:
            kept = {row[0] for name in ("open_runs", "ended_later") for row in self._run(name, values)}
            values["kept"] = encode(sorted(kept))
            for name in _FORGET:
                self._run(name, values)
        except sqlite3.Error as error:
            self._connection.rollback()
            raise translated(error, MEMORY) from error
        self._connection.commit()

    def _run(self, name: str, values: dict[str, object]) -> list[tuple[str]]:
        query = _QUERIES[name]
        return self._connection.connection.execute(query.sql, query.fill(values)).fetchall()
