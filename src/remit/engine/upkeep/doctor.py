"""The doctor: whether a store still keeps what it promises. The same check for users and for every test."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, cast

from remit.core import lifecycle
from remit.core.events import Event, Head, genuine
from remit.core.projection import Key, Row, Table, Tables, fold
from remit.core.text import shown
from remit.errors import StoreError
from remit.ports import Database, Span, View

_PAGE = 10_000
_SHOWN = 5  # findings of one kind that are spelled out; the rest is counted


@dataclass(frozen=True, slots=True)
class Finding:
    """`broken` means a promise does not hold; `notice` is worth knowing and breaks nothing."""

    level: Literal["broken", "notice"]
    workspace: str
    sentence: str


@dataclass(frozen=True, slots=True)
class Health:
    """What the doctor looked at and what it found."""

    events: int
    tasks: int
    entries: int
    messages: int
    findings: list[Finding]

    @property
    def sound(self) -> bool:
        return not any(finding.level == "broken" for finding in self.findings)


async def examine(database: Database, now: int, workspaces: Sequence[str] | None = None) -> Health:
    """Check every workspace of a database, or those named."""
    findings = [Finding("broken", "", f"the file itself is damaged: {what}") for what in database.faulty()]
    events = tasks = entries = messages = 0
    for workspace in database.workspaces() if workspaces is None else workspaces:
        part = await database.store(workspace).read(lambda view, name=workspace: _workspace(view, name, now))
        findings += part.findings
        events += part.events
        tasks += part.tasks
        entries += part.entries
        messages += part.messages
    return Health(events, tasks, entries, messages, findings)


def _workspace(view: View, workspace: str, now: int) -> Health:
    try:
        events = list(_events(view))
        tables = view.tables()
        told = fold(events)
    except (ValueError, KeyError, TypeError, StoreError) as error:
        sentence = f"the journal or a table has a row that cannot be read ({type(error).__name__}: {error})"
        return Health(0, 0, 0, 0, [Finding("broken", workspace, sentence)])
    sentences = [*_chain(events), *_lives(events), *_difference(told, tables)]
    findings = [Finding("broken", workspace, sentence) for sentence in sentences]
    findings += [Finding("notice", workspace, sentence) for sentence in _abandoned(tables, now)]
    return Health(len(events), len(tables["task"]), len(tables["entry"]), len(tables["message"]), findings)


def _events(view: View) -> Iterator[Event]:
    after = 0
    while page := view.events(Span(after=after, limit=_PAGE)):
        yield from page
        after = page[-1].seq


def _chain(events: list[Event]) -> Iterator[str]:
    head = Head()
    pruned = _pruned(events)
    for event in events:
        # Of a pruned event only its place and its hash are left, and the next event vouches for the hash.
        emptied = not event.text and event.run in pruned and event.seq == head.seq + 1
        if not emptied and not genuine(event, head):
            missing = event.seq - head.seq - 1
            why = f"{missing} before it are missing" if missing else "it was changed after it was sealed"
            yield f"event {event.seq} ({event.kind}) does not follow from event {head.seq}: {why}"
            return  # everything after a break is unproven; one sentence says so
        head = Head(event.seq, event.hash)


def _pruned(events: list[Event]) -> set[str]:
    """List the runs whose events were emptied."""
    told = (cast("list[dict[str, str]]", event.data["runs"]) for event in events if event.kind == "runs.pruned")
    return {run["id"] for runs in told for run in runs}


def _lives(events: list[Event]) -> Iterator[str]:
    """Check that each task begins once and ends at most once, under a parent that was there before it."""
    state: dict[str, str] = {}
    for event in events:
        if event.kind not in lifecycle.MOVES:
            continue
        parent = event.data.get("parent")
        if parent and parent not in state:
            yield f"task {event.task} began under {parent}, which never began"
        before = state.get(event.task, lifecycle.START)
        after = lifecycle.TRANSITIONS[before].get(event.kind)
        if after is None:
            yield f"event {event.seq}: task {event.task} was {before} and then {event.kind.removeprefix('task.')}"
            continue
        state[event.task] = after


def _difference(told: Tables, found: Tables) -> Iterator[str]:
    for table in told:
        wrong = sorted(told[table].keys() ^ found[table].keys())
        wrong += [key for key, row in told[table].items() if key in found[table] and found[table][key] != row]
        for key in wrong[:_SHOWN]:
            yield _how(table, key, told[table].get(key), found[table].get(key))
        if len(wrong) > _SHOWN:
            yield f"and {len(wrong) - _SHOWN} more rows of table {table} differ from the journal"


def _how(table: Table, key: Key, told: Row | None, found: Row | None) -> str:
    name = f"{table} {shown('/'.join(key))}"
    if found is None:
        return f"{name} is in the journal but not in the table"
    if told is None:
        return f"{name} is in the table but not in the journal"
    columns = [column for column in told if told[column] != found.get(column)]
    return f"{name} differs from the journal in {', '.join(columns)}"


def _abandoned(tables: Tables, now: int) -> Iterator[str]:
    """Name tasks that have not ended although their time is up: nobody runs them. A worker would end them."""
    left = [key[0] for key, row in tables["task"].items() if row["ended"] is None and _past(row, now)]
    if left:
        more = f" and {len(left) - _SHOWN} more" if len(left) > _SHOWN else ""
        yield (
            f"{len(left)} tasks have not ended although their time is up: {', '.join(left[:_SHOWN])}{more}; "
            "`remit worker` ends or resumes what a process left behind"
        )


def _past(row: Row, now: int) -> bool:
    until = row["until"]
    return isinstance(until, int) and until <= now
