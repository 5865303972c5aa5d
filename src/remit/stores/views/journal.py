"""The journal, and the tables page by page."""

from collections.abc import Iterator
from itertools import islice
from typing import Any, Final

from remit.codec import decode
from remit.core.events import Event, Head, Mark
from remit.core.projection import COLUMNS, KEYS, Key, Row, Table, Tables
from remit.core.values import Json
from remit.errors import StoreError
from remit.ports import Span
from remit.stores.views.base import FOREVER, Queries, Values

_PAGES: Final[dict[Table, str]] = {
    "task": "task_page",
    "run": "run_page",
    "used_key": "used_key_page",
    "entry": "entry_page",
    "retired": "retired_page",
    "message": "message_page",
    "breaker": "breaker_page",
    "card": "card_page",
}
_PAGE: Final = 10_000


class JournalQueries(Queries):
    __slots__ = ()

    def head(self) -> Head:
        row = self._one("head")
        return Head(*row) if row else Head()

    def event(self, seq: int) -> Event | None:
        row = self._one("event", seq=seq)
        return event_of(row) if row else None

    def marks(self, since: int, limit: int) -> list[Mark]:
        return [Mark(*row) for row in self._rows("marks", since=since, limit=limit)]

    def done(self, op: str) -> tuple[Json] | None:
        row = self._one("done", op=op)
        return None if row is None else (answer_of(row[0]),)

    def done_under(self, prefix: str) -> list[Event]:
        after = prefix[:-1] + chr(ord(prefix[-1]) + 1)
        events = (event_of(row) for row in self._rows("done_under", prefix=prefix, after=after))
        return sorted(events, key=lambda event: event.seq)

    def events(self, span: Span) -> list[Event]:
        """Find events by the narrowest index, then check the other conditions on what it gives."""
        window = {
            "after": span.after,
            "since": span.since if span.since is not None else -FOREVER,
            "until": span.until if span.until is not None else FOREVER,
            "limit": span.limit if span.session is span.agent is span.task is span.kinds is None else FOREVER,
        }
        if span.run is not None:
            rows = self._rows("events_of_run", run=span.run, **window)
        elif span.session is not None:
            rows = self._rows("events_of_session", session=span.session, **window)
        else:
            rows = self._rows("events", **window)
        events = (event_of(row) for row in rows)
        return list(islice((event for event in events if _is_within(event, span)), span.limit))

    def to_empty(self, run: str) -> list[Mark]:
        return [Mark(*row) for row in self._rows("to_empty", run=run)]

    def tables(self) -> Tables:
        return {table: dict(self._whole(table)) for table in _PAGES}

    def page(self, table: Table, after: Key | None, limit: int) -> list[tuple[Key, Row]]:
        names, columns = KEYS[table], COLUMNS[table]
        values = dict(zip(names, after or ("",) * len(names), strict=True))
        width = len(names)
        rows = self._rows(_PAGES[table], **values, limit=limit)
        return [(tuple(row[:width]), dict(zip(columns, row, strict=True))) for row in rows]

    def _whole(self, table: Table) -> Iterator[tuple[Key, Row]]:
        page = self.page(table, None, _PAGE)
        while page:
            yield from page
            page = self.page(table, page[-1][0], _PAGE)


def _is_within(event: Event, span: Span) -> bool:
    return (
        (span.session is None or event.session == span.session)
        and (span.agent is None or event.agent == span.agent)
        and (span.task is None or event.task == span.task)
        and (span.kinds is None or event.kind in span.kinds)
    )


def answer_of(text: str | None) -> Json:
    """Read the answer of an operation from its JSON text; None is kept as no text at all."""
    return None if text is None else decode(text)


def event_of(row: Values) -> Event:
    """Make the event that a row of the journal tells of."""
    try:
        data: Any = decode(row[8]) if row[8] else {}  # a pruned run's events are empty
    except ValueError as error:
        raise StoreError(f"event {row[1]} of '{row[0]}' cannot be read ({error}); run `remit doctor`") from error
    return Event._make((*row, data))
