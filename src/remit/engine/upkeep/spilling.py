"""Tables that may exceed memory: the doctor folds a whole journal, which may be of any size."""

import sqlite3
from collections.abc import Iterator, MutableMapping
from itertools import islice
from typing import Any, Final, cast

from remit.codec import decode, encode
from remit.core.change import Key

_NEAR: Final = 4_000  # rows of one table that stay in memory


def spilling() -> sqlite3.Connection:
    """Open a file for rows that do not stay in memory. It has no name, and is gone when it is closed or the process
    ends. SQLite creates it when needed."""
    disk = sqlite3.connect("", isolation_level=None, check_same_thread=False)  # one thread makes it, another uses it
    for pragma in ("journal_mode = OFF", "synchronous = OFF", "temp_store = FILE", "cache_size = -4096"):
        disk.execute(f"PRAGMA {pragma}")
    disk.execute("CREATE TABLE far (part TEXT, key TEXT, value TEXT, PRIMARY KEY (part, key)) WITHOUT ROWID")
    return disk


class Spilled(MutableMapping[Key, Any]):
    """One table: the rows that were added or loaded last are in memory, all others on disk. A returned row may be
    changed until the next row is read."""

    def __init__(self, disk: sqlite3.Connection, part: str) -> None:
        self._disk = disk
        self._part = part
        self._near: dict[Key, Any] = {}
        self._has_far = False

    def __getitem__(self, key: Key) -> Any:
        if key in self._near:
            return self._near[key]
        value = self._far(key)
        if value is None:
            raise KeyError(key)
        self[key] = value
        return value

    def __setitem__(self, key: Key, value: Any) -> None:
        self._near[key] = value
        if len(self._near) > _NEAR:
            self._spill()

    def __delitem__(self, key: Key) -> None:
        if self.pop(key, None) is None:
            raise KeyError(key)

    def pop(self, key: Key, default: Any = None) -> Any:
        """Remove a row and return it. A row on disk is not moved into memory first."""
        far = self._far(key)
        if far is not None:
            self._disk.execute("DELETE FROM far WHERE part = ? AND key = ?", (self._part, encode(key)))
        return self._near.pop(key, default if far is None else far)

    def __iter__(self) -> Iterator[Key]:
        yield from [*self._near]
        rows = self._disk.execute("SELECT key FROM far WHERE part = ?", (self._part,)) if self._has_far else ()
        for (text,) in rows:
            key = tuple(cast("list[str]", decode(text)))
            if key not in self._near:
                yield key

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def _far(self, key: Key) -> Any:
        if not self._has_far:
            return None
        where = (self._part, encode(key))
        row = self._disk.execute("SELECT value FROM far WHERE part = ? AND key = ?", where).fetchone()
        return None if row is None else decode(row[0])

    def _spill(self) -> None:
        """Move the older half of the rows in memory to disk."""
        old = [*islice(self._near, _NEAR // 2)]
        rows = [(self._part, encode(key), encode(self._near.pop(key))) for key in old]
        self._disk.execute("BEGIN")
        self._disk.executemany("INSERT OR REPLACE INTO far VALUES (?, ?, ?)", rows)
        self._disk.execute("COMMIT")
        self._has_far = True
