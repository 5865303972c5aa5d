"""Pruning: deleting what ended long ago. That it happened stays in the journal, in one line a run, with the
idempotency keys that were used: asked for again under one of them, a task is not done again."""

from __future__ import annotations

from typing import Final

from remit.core.events import outline
from remit.core.identity import UsedKey
from remit.core.kinds import PrunedRun, runs_pruned
from remit.core.lifecycle import TERMINAL
from remit.engine.ground import Ground
from remit.engine.upkeep.tallying import keep_figures
from remit.ports import Decision, Span, View

_BATCH: Final = 50
_LOOKED_AT: Final = 10_000  # runs that may be open at the bottom before those behind them are not seen
_TASK: Final = 200  # characters


async def prune(ground: Ground, older_than: int, op: str = "") -> int:
    """Delete the runs in which everything ended before then, in batches; tells how many. Their figures stay."""
    before = ground.clock.now() - older_than
    if await ground.store.read(lambda view: view.old(before, 1)):
        await keep_figures(ground.store)
    pruned = 0
    while True:
        id_ = f"prune/{op}/{pruned}" if op else ground.ids.new()
        gone = await ground.store.tx(id_, lambda view: _batch(view, before, ground.clock.now()))
        pruned += gone
        if gone < _BATCH:
            return pruned


def _batch(view: View, before: int, now: int) -> Decision[int]:
    runs: list[PrunedRun] = []
    needed = view.lineage_runs(before)  # what was finished there is found again by those tried again
    for run in view.old(before, _LOOKED_AT):
        if run not in needed and (summary := _summary(view, run, before)) is not None:
            runs.append(summary)
            if len(runs) == _BATCH:
                break
    return Decision(len(runs), (runs_pruned(runs, now),) if runs else ())


def _summary(view: View, run: str, before: int) -> PrunedRun | None:
    """Sum up what is kept of a run; None if a part of it is still open, or ended later than the rest."""
    tasks = view.of_run(run)
    if any(state not in TERMINAL or ended is None or ended >= before for _, state, ended in tasks):
        return None
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
        "outline": outline(view.events(Span(run=run))),
    }
    if used := view.keys_of_run(run):
        ends = {task: (state, ended) for task, state, ended in tasks}
        summary["keys"] = [[*_ended(key, *ends[key.task])] for key in used]
    return summary


def _ended(key: UsedKey, state: str, ended_at: int | None) -> UsedKey:
    return key._replace(state=state, ended_at=ended_at)
