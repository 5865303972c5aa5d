"""Idempotency keys: derived from the chain of operations that led to an effect, not from the ids of tasks.

Ids are random. After a store is restored from a copy, what was begun since the copy is begun again under other ids; its
effects keep their keys, so that whoever is given such a key recognises what it has done.
"""

from __future__ import annotations

from remit.core.identity import KEYED
from remit.core.kinds import FirstData, read
from remit.core.record import Record
from remit.core.values import whole_digest
from remit.engine.attempt.live import LiveTask
from remit.engine.attempt.resume import origin_of
from remit.engine.ground import Ground
from remit.ports import View


async def key_of(ground: Ground, live: LiveTask, op: str) -> str:
    """Return the idempotency key of an operation of a task: the same each time it is done, another for any other."""
    operations = live.operations
    position = operations.position_of(op)
    if operations.chain is None:
        operations.chain = await ground.store.read(lambda view: chain_of(view, live.remit.id))
    return whole_digest(f"{ground.store.workspace}\0{operations.chain}\0{position}")[:32]


def chain_of(view: View, task: str) -> str:
    """Return what led to a task: what identifies its run, then the position of each operation down to it.

    A run is identified by the key that it was asked for with; without one by its id, which is in the copy if the run
    was begun before. A task that was tried again is led to as the first one was.
    """
    steps: list[str] = []
    record = view.record(task)
    while record is not None:
        first = view.record(origin_of(record)) or record
        parent = view.record(first.parent) if first.parent else None
        steps.append(_position(view, first, parent))
        record = parent
    return "\n".join(reversed(steps))


def _position(view: View, record: Record, parent: Record | None) -> str:
    """Return where a task was asked for in its parent; of a run, or of what was asked for from outside, what it is."""
    began = view.event(record.began)
    assert began is not None  # a row points at the event that made it
    data = read(began, FirstData)
    if position := data.get("position", ""):
        return position
    if parent is not None and began.op is not None and began.op.startswith(f"{origin_of(parent)}/"):
        return began.op.removeprefix(f"{origin_of(parent)}/").partition("/")[2]
    key = data.get("dedup_key", "")
    return key if key.startswith(KEYED) else record.id
