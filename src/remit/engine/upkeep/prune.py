"""Pruning: deleting what ended long ago, and cutting the journal. It has a line of each run until that line is old too.
The idempotency keys that were used stay: asked for again under one of them, a task is not done again.

It goes in small steps, and whoever else has something to do gets to do it in between: reading a page of runs, or
deleting so many as have a few hundred rows together. A run is deleted whole, so one that has more takes as long as it
has to.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from functools import partial
from operator import methodcaller
from typing import Final, NamedTuple

from anyio.lowlevel import checkpoint

from remit.core.events import Event, Mark
from remit.core.identity import UsedKey
from remit.core.kinds import MessageSent, PrunedRun, keys_kept, read, runs_pruned
from remit.core.money import Hold
from remit.engine.ground import Ground
from remit.engine.upkeep.carrying import carried, counted_tasks
from remit.engine.upkeep.cutting import cut, gaps_left_by, outlives
from remit.engine.upkeep.tallying import keep_figures
from remit.ports import Decision, Store, View

_PAGE: Final = 500  # runs read in one step
_STEP: Final = 250  # tasks and events deleted in one step
_TASK: Final = 200  # characters


class Pruning(NamedTuple):
    """What is to be pruned: runs in which everything ended before then. `told` hears how many are gone so far.

    Runs begin in the order of time, nearly: clocks differ. One who looks every hour need not look at all that are young
    for that, so unless it is `thorough`, looking ends with a page of runs that are all too young, and nothing but the
    events of those that are pruned is cut out of the journal.
    """

    before: int
    op: str = ""
    thorough: bool = True
    told: Callable[[int], None] | None = None
    by: str = ""


async def prune(ground: Ground, pruning: Pruning) -> int:
    """Delete the runs in which everything ended before then; tells how many. It may be cancelled between two steps."""
    store, (before, op, thorough, told, by) = ground.store, pruning
    pruned = await _done(store, op) if op else 0
    kept = False
    async for old in old_runs(store, before, thorough=thorough):
        if not kept:  # their figures stay
            await keep_figures(store)
            kept = True
        rest = old
        while rest:
            id_ = _id(op, pruned) if op else ground.ids.new()
            step = partial(_step, old=rest, before=before, now=ground.clock.now(), by=by)
            gone, looked_at = await store.transact(id_, step)
            rest = rest[looked_at or 1 :]
            pruned += gone
            if told is not None:
                told(pruned)
            await checkpoint()
    if thorough:
        await cut(ground, before)
    return pruned


async def old_runs(store: Store, before: int, *, thorough: bool = True) -> AsyncGenerator[list[str]]:
    """Give the runs that ended before then, some at a time; parts of them may be open still."""
    after = 0
    while page := await store.read(lambda view, after=after: view.roots(after, _PAGE)):
        after = page[-1].began
        if old := [root.id for root in page if root.ended_at is not None and root.ended_at < before]:
            yield old
        if not thorough and all(root.asked_at >= before for root in page):
            return
        await checkpoint()


async def _done(store: Store, op: str) -> int:
    """Tell how many runs it has deleted when the same was asked for earlier."""
    pruned = 0
    while (done := await store.read(methodcaller("done", _id(op, pruned)))) is not None:
        pruned += done[0]
    return pruned


def _id(op: str, pruned: int) -> str:
    return f"prune/{op}/{pruned}"


def _step(view: View, old: list[str], before: int, now: int, by: str) -> Decision[int]:
    """Delete the first of these runs, as many as make a step; aside is how many of them were looked at."""
    runs: list[PrunedRun] = []
    keys: list[UsedKey] = []
    gone: list[Mark] = []
    ledger: list[Event] = []
    holds: list[Hold] = []
    looked_at = size = 0
    for run in old:
        looked_at += 1
        size += 1
        tasks = view.prunable(run, before)
        if tasks:
            lasting = view.lasting_of_run(run)
            messages = [read(event, MessageSent)["id"] for event in lasting if event.kind == "message.sent"]
            stays = {event.seq for event in lasting if outlives(view, event, messages)}
            goes = [mark for mark in view.marks_of_run(run) if mark.seq not in stays]
            ledger += [*lasting, *counted_tasks(view, (task for task, _, _ in tasks), now)]
            holds += view.holds_of_run(run)
            runs.append(_summary(view, run, tasks, messages))
            keys += _keys(view, run, tasks)
            gone += goes
            size += len(tasks) + len(goes)
        if size >= _STEP:
            break
    if not runs:
        return Decision(0, aside=looked_at)
    events = [runs_pruned(runs, gaps_left_by(view, gone), now, by)]
    events += carried(view, ledger, holds, now)
    if keys:
        events.append(keys_kept(keys, now))
    return Decision(len(runs), events, aside=looked_at)


def _summary(view: View, run: str, tasks: list[tuple[str, str, int]], messages: list[str]) -> PrunedRun:
    """Sum up what is told of a run."""
    record = view.record(run)
    assert record is not None
    began = view.event(record.began)
    assert began is not None
    summary: PrunedRun = {
        "id": run,
        "agent": record.holder,
        "session": record.session,
        "task": str(began.data["task"])[:_TASK],
        "state": record.state,
        "asked_at": record.asked_at,
        "ended_at": record.ended_at,
        "tasks": [task for task, _, _ in tasks],
    }
    if messages:
        summary["messages"] = messages
    if questions := view.questions_of_run(run):
        summary["questions"] = questions
    return summary


def _keys(view: View, run: str, tasks: list[tuple[str, str, int]]) -> list[UsedKey]:
    """List the idempotency keys that were used in a run, each with how its task ended."""
    used = view.keys_of_run(run)
    ends = {task: (state, ended) for task, state, ended in tasks} if used else {}
    return [key._replace(state=ends[key.task][0], ended_at=ends[key.task][1]) for key in used]
