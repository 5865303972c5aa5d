"""Reading the journal: events by the narrowest index, operations, gaps, and the tables page by page."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final, TypeAlias, cast

from remit.codec import decode
from remit.core.change import COLUMNS, KEYS, Key, Row, Table
from remit.core.events import Chapter, Event, Gap, Head, Mark, is_blob, joined
from remit.core.kinds.workspace import as_first_recorded
from remit.core.lifecycle import Record
from remit.core.projection import Tables
from remit.core.values import Json
from remit.errors import StoreError
from remit.ports import Span
from remit.stores.queries import query

Values: TypeAlias = Sequence[Any]
Ask: TypeAlias = Callable[[str, Values], Sequence[Values]]

FOREVER: Final = 2**62


class Queries:
    """Runs named queries. `ask(name, values)` reaches the database; the workspace is added here and nowhere else."""

    __slots__ = ("_ask", "workspace")

    def __init__(self, workspace: str, ask: Ask) -> None:
        self.workspace = workspace
        self._ask = ask

    def _rows(self, name: str, /, **values: object) -> Sequence[Values]:
        values["workspace"] = self.workspace
        return self._ask(name, query(name).fill(values))

    def _one(self, name: str, **values: object) -> Values | None:
        rows = self._rows(name, **values)
        return rows[0] if rows else None

    def _count(self, name: str, **values: object) -> int:
        row = self._one(name, **values)
        return row[0] if row else 0

    def _records(self, name: str, **values: object) -> list[Record]:
        return [Record(*row) for row in self._rows(name, **values)]


_PAGES: Final[dict[Table, str]] = {
    "task": "task_page",
    "run": "run_page",
    "used_key": "used_key_page",
    "entry": "entry_page",
    "retired": "retired_page",
    "message": "message_page",
    "breaker": "breaker_page",
    "card": "card_page",
    "cooling": "cooling_page",
    "ask": "ask_page",
    "lease": "lease_page",
    "hold": "hold_page",
    "meter": "meter_page",
    "question": "question_page",
    "schedule": "schedule_page",
    "hook": "hook_page",
    "access": "access_page",
}
_FROM_THE_BEGINNING: Final = ("events_of_run", "events_of_session", "events")
_FROM_THE_END: Final = ("events_of_run_latest", "events_of_session_latest", "events_latest")
_PAGE: Final = 2_000
_FEW, _CHAPTERS = 16, 256  # chapters that are read first, and then at a time
_event: Final = cast("Callable[..., Event]", Event)  # the columns of a row have no types
_SEQ, _KIND, _SESSION, _TASK, _AGENT = map(Event._fields.index, ("seq", "kind", "session", "task", "agent"))


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
        return None if row is None else (self._answer(op, row[0]),)

    def _answer(self, op: str, text: str | None) -> Json:
        """Return the answer of an operation; a long answer is stored next to its event."""
        if is_blob(text):
            row = self._one("blob_of", op=op)
            if row is None:
                raise StoreError(f"the recorded answer of operation '{op}' is missing; run `remit doctor`")
            text = cast("str", row[0])
        return None if text is None else decode(text)

    def blob(self, seq: int) -> str | None:
        row = self._one("blob", seq=seq)
        return row[0] if row else None

    def blobs(self) -> int:
        return self._count("blobs")

    def done_under(self, prefix: str) -> list[Event]:
        after = prefix[:-1] + chr(ord(prefix[-1]) + 1)
        rows = self._rows("done_under", prefix=prefix, after=after)
        events = (as_first_recorded(event_of(row)) for row in rows)
        return sorted(events, key=lambda event: event.seq)

    def events(self, span: Span) -> list[Event]:
        """Return events by the narrowest index, page by page: at most one page of unwanted rows is in memory."""
        most = FOREVER if span.limit is None else span.limit
        if span.task is not None and span.run is None and (run := self._one("run_of_task", task=span.task)):
            span = span._replace(run=run[0])  # if the task was pruned, the whole journal is read
        found: list[Event] = []
        for part in self._parts(span):
            self._find(part, most, found)
            if len(found) >= most:
                break
        return found[::-1] if span.latest else found

    def _find(self, span: Span, most: int, found: list[Event]) -> None:
        """Add the events of a span to those that were found, until there are enough."""
        exact = span.run is None or span.session is None  # the query checks everything
        while len(found) < most:
            size = min(most - len(found), _PAGE) if exact else _PAGE
            rows = self._event_rows(span, size)
            found += [event_of(row) for row in rows if _is_within(row, span)]
            if len(rows) < size:
                break
            span = span._replace(**{"before" if span.latest else "after": rows[-1][_SEQ]})
        del found[most:]

    def _event_rows(self, span: Span, size: int) -> Sequence[Values]:
        of_run, of_session, of_all = _FROM_THE_END if span.latest else _FROM_THE_BEGINNING
        return self._rows(
            of_run if span.run is not None else of_session if span.session is not None else of_all,
            run=span.run,
            session=span.session,
            task="*" if span.task is None else span.task,
            kinds="*" if span.kinds is None else f" {' '.join(span.kinds)} ",
            limit=size,
            **_bounds(span),
        )

    # -- chapters -------------------------------------------------------------------------------------
    # No index finds events by time, agent or kind. A chapter says what its events do not have, so a query skips it;
    # without chapters, a query for rare events reads the whole journal.

    def chapters(self, after: int, limit: int) -> list[Chapter]:
        return self._chapters(Span(after=after), limit)

    def last_before(self, at: int) -> int:
        first, last = self._chaptered()
        behind = self._one("last_before", after=last, until=at)
        if behind is not None:
            return behind[0]
        within = self._chapters(Span(until=at, latest=True), 1)
        return within[0].last if within else max(0, first - 1)

    def _parts(self, span: Span) -> Iterator[Span]:
        """Yield the parts of a span in which something may be found, in its order."""
        given = (span.agent, span.kinds, span.since, span.until, span.label)
        if span.run is not None or span.session is not None or all(one is None for one in given):
            yield span
            return
        first, last = self._chaptered()
        below = span._replace(before=first if span.before is None else min(first, span.before))
        behind = span._replace(after=max(last, span.after))
        if span.latest:
            yield behind
            yield from self._within_chapters(span)
        if first > 1:
            yield below
        if not span.latest:
            yield from self._within_chapters(span)
            yield behind

    def _within_chapters(self, span: Span) -> Iterator[Span]:
        """Yield the ranges of events in matching chapters; adjacent chapters are one range. Usually a few chapters are
        enough, so the first query reads only a few."""
        rest, size = span, _FEW
        while page := self._chapters(rest, size):
            told = [chapter for chapter in page if span.kinds is None or chapter.may_have(span.kinds)]
            for part in joined(Gap(chapter.first, chapter.last, "") for chapter in told)[:: -1 if span.latest else 1]:
                before = part.last + 1 if span.before is None else min(span.before, part.last + 1)
                yield span._replace(after=max(span.after, part.first - 1), before=before)
            rest = rest._replace(before=page[-1].first) if span.latest else rest._replace(after=page[-1].last)
            size = _CHAPTERS

    def _chapters(self, span: Span, limit: int) -> list[Chapter]:
        name = "chapters_latest" if span.latest else "chapters"
        return [Chapter(*row) for row in self._rows(name, limit=limit, **_bounds(span))]

    def _chaptered(self) -> tuple[int, int]:
        """Return the first and the last event with a chapter; events before and after them must be read."""
        begin, end = self._one("chapter_begin"), self._one("chapter_end")
        return (begin[0], end[0]) if begin is not None and end is not None else (0, 0)

    def marks_of_run(self, run: str) -> list[Mark]:
        return [Mark(*row) for row in self._rows("marks_of_run", run=run)]

    def lasting_of_run(self, run: str) -> list[Event]:
        return [event_of(row) for row in self._rows("lasting_of_run", run=run)]

    def gap_before(self, seq: int) -> Gap | None:
        row = self._one("gap_before", last=seq - 1)
        return Gap(*row) if row else None

    def gaps_around(self, first: int, last: int) -> list[Gap]:
        found = sorted(Gap(*row) for row in self._rows("gaps_around", before=first - 1, last=last))
        return [gap for gap in found if gap.first <= last + 1]

    def gaps_stated(self, seq: int) -> list[Gap]:
        return [Gap(*row) for row in self._rows("gaps_stated", seq=seq)]

    def gaps_after(self, last: int, limit: int) -> list[Gap]:
        return [Gap(*row) for row in self._rows("gaps_after", last=last, limit=limit)]

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


def _bounds(span: Span) -> dict[str, Any]:
    """Return the conditions that queries of events and of chapters have in common."""
    return {
        "after": span.after,
        "before": FOREVER if span.before is None else span.before,
        "since": -FOREVER if span.since is None else span.since,
        "until": FOREVER if span.until is None else span.until,
        "agent": "*" if span.agent is None else span.agent,
        "label": "*" if span.label is None else f"\n{span.label}\n",
    }


def _is_within(row: Values, span: Span) -> bool:
    """Whether a row meets the conditions that the query may have skipped: in a query, a star stands for any value."""
    return (
        (span.kinds is None or row[_KIND] in span.kinds)
        and (span.session is None or row[_SESSION] == span.session)
        and (span.agent is None or row[_AGENT] == span.agent)
        and (span.task is None or row[_TASK] == span.task)
    )


def event_of(row: Values) -> Event:
    """Return the event of a row. Raise `StoreError` if it cannot be read."""
    try:
        data: Any = decode(row[8])
    except ValueError as error:
        raise StoreError(f"event {row[1]} of '{row[0]}' cannot be read ({error}); run `remit doctor`") from error
    return _event(*row, data)
