"""Named queries and numbered migrations, read from the .sql files, which explain them."""

import re
from collections.abc import Callable, Mapping
from functools import cache
from itertools import pairwise
from operator import itemgetter
from pathlib import Path
from typing import Final, TypeAlias, cast

from remit.core.change import COLUMNS, KEYS, Table
from remit.core.records import NamedTuple
from remit.errors import NewerStore

OLDER: Final = (
    "was made by remit 0.1.0, whose stores this version does not read; "
    "use remit 0.1.0 to look at it, or start with a new store"
)
OLDEST: Final = 10  # the first schema that this version reads
_HERE = Path(__file__).parent
_NAMED = "\n-- name: "  # before each query
_PLACE = re.compile(r"(?<!:):(\w+)")
_COMMENT = re.compile(r"^[ \t]*--.*\n", re.MULTILINE)
_COLUMNS = re.compile(r"(:?)@(?:(\w+)\.)?(\w+)")

Fill: TypeAlias = Callable[[Mapping[str, object]], tuple[object, ...]]


class Query(NamedTuple):
    """A query with numbered places, and the function that fills them from named values: binding by place is much
    cheaper."""

    sql: str
    names: tuple[str, ...]
    fill: Fill


@cache
def query(name: str, mark: str = "?", folders: tuple[str, ...] = ("sql", "places")) -> Query:
    """Return a query of one of these folders. `mark` is how the database writes a placeholder.

    It is prepared when it is first asked for: there are hundreds, and most processes use few of them.
    """
    sql = _COLUMNS.sub(_columns, _COMMENT.sub("", _bodies(folders)[name]).strip().rstrip(";"))
    names = tuple(_PLACE.findall(sql))
    return Query(_PLACE.sub(mark, sql), names, _filler(names))


@cache
def tables_read(name: str) -> frozenset[str]:
    """Return the tables that a query reads."""
    return frozenset(table for word, table in pairwise(query(name).sql.split()) if word in ("FROM", "JOIN"))


def queries(mark: str = "?", folder: str = "sql") -> dict[str, Query]:
    """Return all queries of a folder by name."""
    return {name: query(name, mark, (folder,)) for name in _bodies((folder,))}


@cache
def _bodies(folders: tuple[str, ...]) -> dict[str, str]:
    """Return the queries of these folders as they are written, by name."""
    paths = [path for folder in folders for path in sorted((_HERE / folder).iterdir()) if path.suffix == ".sql"]
    texts = [path.read_text(encoding="utf-8") for path in paths]
    named = (one.partition("\n") for text in texts for one in f"\n{text}".split(_NAMED)[1:])
    return {name: body for name, _, body in named}


def _columns(match: re.Match[str]) -> str:
    """Return the columns of a table, as SQL, for one place in a query that names them with an @.

    `@task` stands for its columns, `@t.task` for those of the table called t, `:@task` for a value for each.
    `@set.entry` takes the columns that are not part of the key from the row that an upsert proposed.
    """
    place, alias, table = match.groups()
    columns = COLUMNS[cast("Table", table)]
    if alias == "set":
        keys = KEYS[cast("Table", table)]
        return ", ".join(f"{name} = excluded.{name}" for name in columns if name not in keys)
    return ", ".join(f"{place}{f'{alias}.' if alias else ''}{name}" for name in columns)


def _filler(names: tuple[str, ...]) -> Fill:
    """Return a function that picks these values from a mapping; `itemgetter` takes several in one step."""
    if len(names) > 1:
        return itemgetter(*names)
    return lambda values: tuple([values[name] for name in names])


@cache
def migrations(folder: str) -> dict[int, str]:
    """Return the numbered migrations of a database, in order."""
    steps = sorted((_HERE / folder / "migrations").glob("[0-9]*.sql"))
    return {int(path.stem): path.read_text(encoding="utf-8") for path in steps}


@cache
def newest_migration(folder: str) -> int:
    """Return the number of the last migration of a database."""
    return max(int(path.stem) for path in (_HERE / folder / "migrations").iterdir() if path.stem.isdecimal())


def after(prefix: str) -> str:
    """Return the smallest text that is greater than every text with this prefix, in code point order."""
    last = len(prefix) - 1
    while last >= 0 and prefix[last] == "\U0010ffff":
        last -= 1
    if last < 0:
        return "\U0010ffff" * 200  # greater than any valid key
    following = ord(prefix[last]) + 1
    if 0xD800 <= following <= 0xDFFF:  # surrogates are not characters
        following = 0xE000
    return prefix[:last] + chr(following)


class KnownSchema:
    """The newest schema that this remit knows. A store with a newer one is not used any more: the newer remit would not
    expect what an older one writes."""

    __slots__ = ("_newest", "_outgrown", "_where")

    def __init__(self, where: str, newest: int) -> None:
        self._where = where
        self._newest = newest
        self._outgrown = ""  # the error for all callers, once the schema is newer

    def saw(self, number: int) -> None:
        """Record the schema number of the store. If it is newer than the newest known one, raise `NewerStore`; from
        then on `check` raises it too."""
        if number > self._newest:
            self._outgrown = (
                f"{self._where} was brought to schema {number} by a newer remit while this process had it open, and "
                f"this remit knows up to {self._newest}: nothing more is read or written from here. "
                "Upgrade remit and start again"
            )
        self.check()

    def check(self) -> None:
        """Raise `NewerStore` if `saw` has recorded a schema that this remit does not know."""
        if self._outgrown:
            raise NewerStore(self._outgrown)
