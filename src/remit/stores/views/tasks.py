"""Tasks and runs, one by one and as lists."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from typing import Any, Final, NamedTuple

from remit.codec import decode
from remit.core.change import COLUMNS
from remit.core.identity import UsedKey
from remit.core.lifecycle import GONE, OPEN
from remit.core.loops import AskCount
from remit.core.record import NO_RUN, Record, RunFacts, Standing, first_members
from remit.ports import RunAge, RunLine, TaskLine, Which
from remit.stores.queries import after
from remit.stores.views.base import FOREVER, Queries, Values

TASK_WIDTH: Final = len(COLUMNS["task"])
_PAGE: Final = 500  # tasks that are read at a time, when they are looked through for their asker
_LATE: Final = 2_000  # events, among which a session is looked for first


class TaskQueries(Queries):
    __slots__ = ()

    def standing(self, task: str) -> Standing | None:
        rows = self._ask("standing", (self.workspace, task))  # read at every write of a turn: filled by hand
        return Standing(*rows[0]) if rows else None

    def record(self, task: str) -> Record | None:
        row = self._one("record", task=task)
        return Record(*row) if row else None

    def run(self, run: str) -> RunFacts:
        rows = self._ask("run", (self.workspace, run))  # read at every hop: filled by hand
        return run_facts(rows[0]) if rows else NO_RUN

    def asks(self, run: str, keys: tuple[str, str, str]) -> dict[str, AskCount]:
        first, second, third = keys
        rows = self._rows("asks", run=run, first=first, second=second, third=third)
        return {row[0]: AskCount(*row[1:]) for row in rows}

    def below(self, task: str) -> list[Record]:
        return self._records("below", task=task)

    def spawned(self, parent: str) -> int:
        return self._count("spawned", parent=parent)

    def same_requests(self, dedup_key: str, since: int) -> list[Record]:
        rows = self._ask("same_requests", (self.workspace, dedup_key, since))  # read at every submit: filled by hand
        return [Record(*row) for row in rows]

    def lineage(self, origin: str) -> list[Record]:
        return sorted(self._records("lineage", origin=origin), key=lambda record: record.began)

    def used_key(self, key: str) -> UsedKey | None:
        row = self._one("used_key", key=key)
        return UsedKey(*row) if row else None

    def keys_of_run(self, run: str) -> list[UsedKey]:
        return [UsedKey(*row) for row in self._rows("keys_of_run", run=run)]

    def key_of_task(self, task: str) -> UsedKey | None:
        row = self._one("key_of_task", task=task)
        return UsedKey(*row) if row else None

    def tasks(self, which: Which) -> list[tuple[Record, str]]:
        return [(line.record, line.task) for line in self.task_lines(which)]

    def task_lines(self, which: Which) -> list[TaskLine]:
        """Find tasks by the narrowest index, and check the other conditions on what it gives."""
        if which.asker is None:
            return [*islice(_lines(self._task_rows(which), which), which.limit)]
        return [*islice(self._asked_by(which), which.limit)]

    def _asked_by(self, which: Which) -> Iterator[TaskLine]:
        """Yield the tasks that one agent asked for. No index knows the asker: only the first event of a task does, so
        the list is read page by page until there are enough."""
        page = replace(which, limit=max(which.limit, _PAGE))
        while rows := self._task_rows(page):
            yield from (line for line in _lines(rows, which) if line.asker == which.asker)
            if len(rows) < page.limit or which.run is not None or which.parent:
                return  # of a run and of a parent, all rows are one page
            page = replace(page, before=Record(*rows[-1][:-1]).began)

    def _task_rows(self, which: Which) -> Sequence[Values]:
        """A run and a parent have few tasks; of what is open, or gone, there is little among all that completed."""
        before = FOREVER if which.before is None else which.before
        if which.run is not None:
            return self._rows("tasks_of_run", run=which.run, before=before)
        if which.parent:
            return self._rows("tasks_of_parent", parent=which.parent, before=before)
        names = ("session", "agent", "state", "parent")
        values = {name: "*" if (value := getattr(which, name)) is None else value for name in names}
        values |= {"before": before, "limit": which.limit}
        if which.state == "open" or which.state in OPEN:
            return self._rows("tasks_open", **values)
        if which.session is not None:
            return self._of_session(values)
        if which.state in GONE:
            return self._rows("tasks_gone", **values)
        return self._rows("tasks", after=0, **values)

    def _of_session(self, values: Mapping[str, Any]) -> Sequence[Values]:
        """Look among the latest tasks first: a session may be most of what happens. Else through its runs, wherever
        among all tasks they are."""
        newest = self._one("head")
        after = min(newest[0] if newest else 0, values["before"]) - _LATE
        rows = self._rows("tasks", after=after, **values)
        return rows if len(rows) == values["limit"] else self._rows("tasks_of_session", **values)

    def runs_of_session(self, session: str, agent: str, limit: int) -> list[Record]:
        return self._records("runs_of_session", session=session, agent=agent, limit=limit)

    def runs(self, limit: int, before: int | None = None) -> list[RunLine]:
        rows = self._rows("runs", limit=limit, before=FOREVER if before is None else before)
        return [_run_line(row) for row in rows]

    def roots(self, after: int, limit: int) -> list[RunAge]:
        return [RunAge(*row) for row in self._rows("roots", after=after, limit=limit)]

    def prunable(self, run: str, before: int) -> list[tuple[str, str, int]] | None:
        rows = self._rows("prunable", run=run, before=before)
        if any(again is not None or ended is None or ended >= before for _, _, ended, again in rows):
            return None
        return [(row[0], row[1], row[2]) for row in rows]

    def of_run(self, run: str) -> list[tuple[str, str, int | None]]:
        return [(row[0], row[1], row[2]) for row in self._rows("of_run", run=run)]

    def ids_like(self, start: str, limit: int, *, runs: bool = False) -> list[str]:
        only = "runs" if runs else ""
        return [row[0] for row in self._rows("ids_like", start=start, stop=after(start), runs=only, limit=limit)]

    def ids_ending(self, ending: str, limit: int, *, runs: bool = False) -> list[str]:
        only = "runs" if runs else ""
        return [row[0] for row in self._rows("ids_ending", ending=ending, runs=only, limit=limit)]


def _lines(rows: Iterable[Values], which: Which) -> Iterator[TaskLine]:
    for *values, text in rows:
        record = Record(*values)
        if _matches(record, which):
            began = _began_with(text)
            yield TaskLine(record, began.task, began.asker)


def _matches(record: Record, which: Which) -> bool:
    return (
        (which.session is None or record.session == which.session)
        and (which.agent is None or record.holder == which.agent)
        and (which.parent is None or record.parent == which.parent)
        and (which.state is None or record.state == which.state or (which.state == "open" and record.ended is None))
    )


def run_facts(row: Values) -> RunFacts:
    """Put together who began a run and what has been counted since. What was said when it began is not read: guards
    ask for this at every hop, and a task may be long."""
    id_, agent, led_as, members, *figures = row
    first = first_members(agent, led_as)
    if members is None:
        return RunFacts(id_, first, 1, 0, 0, 0)
    tasks, *others = figures
    return RunFacts(id_, first.union(members.split()), 1 + tasks, *others)


def _run_line(row: Values) -> RunLine:
    *facts, text = row[TASK_WIDTH:]
    began = _began_with(text)
    return RunLine(Record(*row[:TASK_WIDTH]), began.task, run_facts(facts), began.by)


class _Began(NamedTuple):
    task: str
    by: str = ""
    asker: str = ""


def _began_with(text: str) -> _Began:
    """Read the task, the person and the agent that asked for it from the data of the event that began it. One damaged
    event must not hide the others."""
    try:
        data: Any = decode(text)
        return _Began(str(data["task"]), str(data.get("by", "")), str(data.get("asker", "")))
    except (ValueError, KeyError, TypeError):
        return _Began("(its record cannot be read)")
