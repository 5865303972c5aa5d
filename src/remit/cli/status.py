"""`remit status`: one task, and how it came to be where it is."""

import asyncio
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple, cast

from rich.console import Console
from rich.text import Text

from remit.cli.options import HERE, AsJson, Where, emit, opened, out
from remit.cli.ps import COLOURS, record_data, took
from remit.core.events import Event
from remit.core.record import Record
from remit.core.times import iso
from remit.core.values import Json, encode
from remit.engine.system import SystemClock
from remit.ports import Span, View, Which
from remit.report.printable import block, escaped
from remit.report.words import count, duration
from remit.runtime.finding import MANY, task_of
from remit.runtime.workers import Crew

# What ends an attempt without ending the task, and how it is told.
_BACK: Final = {"task.retrying": "failed", "task.released": "handed back", "task.lost": "lost with its process"}


class EarlierAttempt(NamedTuple):
    """One that did not end the task. Only those that failed, or whose process died, count."""

    how: str
    at: int
    elapsed: int | None
    error: str


class Detail(NamedTuple):
    """All that is known of a task."""

    record: Record
    task: str
    asker: str
    attempts: int
    earlier: list[EarlierAttempt]
    below: Counter[str]
    ended: Event | None
    why: str
    crew: Crew

    @property
    def result(self) -> Json:
        return self.ended.data.get("result") if self.ended is not None else None

    @property
    def error(self) -> str:
        return str(self.ended.data.get("error", "")) if self.ended is not None else ""


def status(task: str = "last", *, place: Where = HERE, json: AsJson = False) -> None:
    """One task: where it stands, its attempts, what is below it, and what came of it.

    Parameters
    ----------
    task
        Its id, the id's beginning or end as long as only one fits, or `last`.
    json
        Print JSON instead.
    """
    with opened(place) as (_, store):
        found = asyncio.run(store.read(lambda view: detail(view, task)))
    now = SystemClock().now()
    if json:
        emit(detail_data(found, now))
    else:
        _print(out(), found, now)


def detail(view: View, given: str) -> Detail:
    """What the store has of a task."""
    record = task_of(view, given)
    events = [event for event in view.events(Span(run=record.run)) if event.task == record.id]
    began = next(event for event in events if event.seq == record.began)
    stopping = [str(event.data.get("why", "")) for event in events if event.kind == "task.cancelling"]
    return Detail(
        record=record,
        task=str(began.data["task"]),
        asker=str(began.data.get("asker", "")),
        attempts=cast("int", began.data.get("attempts", 1)),
        earlier=list(_earlier(events)),
        below=Counter(_below(view, record)),
        ended=view.event(record.ended) if record.ended is not None else None,
        why=stopping[-1] if stopping else "",
        crew=Crew(view.workers()),
    )


def _earlier(events: Sequence[Event]) -> Iterator[EarlierAttempt]:
    began: int | None = None
    for event in events:
        if event.kind in ("task.claimed", "task.started"):
            began = event.at
        elif event.kind in _BACK:
            elapsed = event.at - began if began is not None else None
            yield EarlierAttempt(_BACK[event.kind], event.at, elapsed, str(event.data.get("error", "")))
            began = None


def _below(view: View, record: Record) -> Iterator[str]:
    """The states of all tasks under it."""
    under = {record.id}
    listed = view.tasks(Which(run=record.run, limit=MANY))
    for one, _ in sorted(listed, key=lambda found: found[0].began):
        if one.parent in under:
            under.add(one.id)
            yield one.state


def _print(console: Console, found: Detail, now: int) -> None:
    record = found.record
    state = found.crew.state(record, now)
    console.print(Text.assemble((record.id, "bold"), "  ", (state, COLOURS[state])))
    for name, told in _lines(found, now):
        console.print(Text.assemble((f"{name:<9}", "dim"), told))
    for number, one in enumerate(found.earlier, 1):
        console.print(Text.assemble((f"{'earlier' if number == 1 else '':<9}", "dim"), _attempt(one)))
    if found.ended is None:
        return
    console.print()
    console.print(outcome_text(record.state, found.result, found.error))


def _lines(found: Detail, now: int) -> Iterator[tuple[str, str]]:
    record = found.record
    yield "agent", escaped(record.holder, 64)
    yield "task", escaped(found.task, 400)
    by = f"'{escaped(found.asker, 64)}', a part of {record.parent}" if record.parent else "a person"
    yield "asked", f"{iso(record.asked_at)[:19]}Z by {by}"
    yield "session", escaped(record.session, 80)
    if record.asked_how != "delegate":
        where = found.crew.where(record.worker) if record.ended is None else ""
        at = {"": "", "gone": "; the process that has it is gone"}.get(where, f"; {where}")
        yield "attempt", f"{record.attempt} of {found.attempts}{at}"
    if record.state == "pending":
        yield "due", f"in {duration(record.ready_at - now)}" if record.ready_at > now else "now"
    else:
        yield "took", took(record, now)
    if found.why:
        yield "stopped", escaped(found.why, 200)
    if found.below:
        states = ", ".join(f"{number:,} {state}" for state, number in sorted(found.below.items()))
        yield "below", f"{count(found.below.total(), 'task')}: {states}"


def _attempt(one: EarlierAttempt) -> str:
    after = f" after {duration(one.elapsed)}" if one.elapsed is not None else ""
    return f"{one.how}{after}" + (f": {escaped(one.error, 300)}" if one.error else "")


def outcome_text(state: str, result: Json, error: str) -> Text:
    """What came of a task."""
    if state == "completed":
        return Text(block(result if isinstance(result, str) else encode(result)))
    return Text(block(error or state), "red")


def detail_data(found: Detail, now: int) -> dict[str, Json]:
    """All of it for programs."""
    return {
        **record_data(found.record, found.task, found.crew, now),
        "asker": found.asker,
        "attempts": found.attempts,
        "earlier": [cast("Json", one._asdict()) for one in found.earlier],
        "below": {**found.below},
        "result": found.result,
        "error": found.error,
    }
