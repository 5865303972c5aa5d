"""Whether the journal holds together: its chain of hashes, and whether it tells what the tables say. All of it is
computed again, not with the code that wrote it."""

import hashlib
from collections.abc import Iterator

from torture.chaos.picture import ENDS, Event, Picture, Row, Violation

_GENESIS = "0" * 64
_STATES = {
    "task.submitted": "pending",
    "task.started": "running",
    "task.claimed": "running",
    "task.fenced": "running",
    "task.resumed": "running",
    "task.waiting": "waiting",
    "task.queued": "pending",
    "task.retrying": "pending",
    "task.released": "pending",
    "task.lost": "pending",
    "task.cancelling": "cancelling",
    **ENDS,
}
_COMPARED = ("state", "holder", "fence", "began", "ended", "run", "parent")


def chain(seen: Picture) -> Iterator[Violation]:
    """Every event follows from the one before it, or from the last one of a gap that an event states."""
    last, seq = _GENESIS, 0
    for event in seen.events:
        gap = seen.gaps.get(event.seq - 1)
        if gap is not None and gap[0] == seq + 1:
            _, seq, last = gap
        seq += 1
        if event.seq != seq:
            yield Violation("chain.gap", f"event {event.seq} comes where {seq} should be", event.task)
            seq = event.seq
        if event.hash != _sealed(event, last):
            yield Violation("chain.hash", f"event {event.seq} ({event.kind}) is not what was sealed", event.task)
        last = event.hash
    for first, end, _ in sorted(_stated(seen) ^ {*seen.gaps.values()}):
        yield Violation("chain.stated", f"the gap from {first} to {end} is not as it was stated")


def _sealed(event: Event, last: str) -> str:
    names = (event.workspace, event.seq, event.kind, event.at, event.run, event.session, event.task, event.agent)
    lines = "\n".join(str(part) for part in (*names, repr(event.op), repr(event.answer), event.text))
    return hashlib.sha256(f"{last}{lines}\n".encode()).hexdigest()


def _stated(seen: Picture) -> set[tuple[int, int, str]]:
    stated: dict[int, tuple[int, int, str]] = {}
    for event in seen.events:
        for first, last, hash_ in event.data["gaps"] if event.kind in ("runs.pruned", "journal.cut") else ():
            stated = {end: gap for end, gap in stated.items() if not first <= end <= last}
            stated[last] = (first, last, hash_)
    return {*stated.values()}


def fold(seen: Picture) -> Iterator[Violation]:
    """The events of a task tell the row that stands in its table, and a task ends once."""
    told = _told(seen)
    for task in sorted(told.keys() ^ seen.tasks.keys()):
        where = "the journal, and not in the table" if task in told else "the table, and not in the journal"
        yield Violation("fold.missing", f"task {task} is in {where}", task)
    for task in sorted(told.keys() & seen.tasks.keys()):
        row = seen.tasks[task]
        pairs = [(name, row[name], told[task].get(name)) for name in _COMPARED]
        if wrong := [f"{name} {found} for {said}" for name, found, said in pairs if found != said]:
            yield Violation("fold.differs", f"task {task} has in its row {', '.join(wrong)}", task)
    for task, ends in seen.ends.items():
        if len(ends) > 1:
            yield Violation("end.twice", f"task {task} ended {len(ends)} times", task)


def _told(seen: Picture) -> dict[str, Row]:
    rows: dict[str, Row] = {}
    for event in seen.events:
        row = rows.setdefault(event.task, {}) if event.kind in _STATES else rows.get(event.task, {})
        if row.get("ended"):
            continue
        if event.kind in ("task.submitted", "task.started"):
            row |= {"holder": event.agent, "began": event.seq, "run": event.run, "parent": event.data["parent"]}
            row |= {"fence": int(event.kind == "task.started"), "ended": None}
        if event.kind == "task.handed" and isinstance(event.data["to"], str):
            row["holder"] = event.data["to"]
        if event.kind in _STATES:
            row["state"] = _STATES[event.kind]
            row["fence"] = event.data.get("fence", row.get("fence"))
        if event.kind in ENDS:
            row["ended"] = event.seq
    return rows
