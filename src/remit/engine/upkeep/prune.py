"""Taking away what ended long ago. That it happened stays in the journal, in one line a run."""

from typing import Final

from remit.core.kinds import PrunedRun, runs_pruned
from remit.core.lifecycle import TERMINAL
from remit.core.times import SECOND
from remit.ports import Clock, Decision, Ids, Store, View

KEPT_DAYS: Final = 4.0
DAY: Final = 86_400 * SECOND
_BATCH: Final = 50
_LOOKED_AT: Final = 10_000  # runs that may be open at the bottom before those behind them are not seen
_TASK: Final = 200  # characters


async def prune(store: Store, clock: Clock, ids: Ids, older_than: int) -> int:
    """Removes the runs in which everything ended before then, in batches; says how many."""
    before = clock.now() - older_than
    pruned = 0
    while True:
        gone = await store.tx(ids.new(), lambda view: _batch(view, before, clock.now()))
        pruned += gone
        if gone < _BATCH:
            return pruned


def _batch(view: View, before: int, now: int) -> Decision[int]:
    runs: list[PrunedRun] = []
    for run in view.old(before, _LOOKED_AT):
        if (summary := _summary(view, run, before)) is not None:
            runs.append(summary)
            if len(runs) == _BATCH:
                break
    return Decision(len(runs), (runs_pruned(runs, now),) if runs else ())


def _summary(view: View, run: str, before: int) -> PrunedRun | None:
    """What is kept of a run; None if a part of it is still open, or ended later than the rest."""
    tasks = view.of_run(run)
    if any(state not in TERMINAL or ended is None or ended >= before for _, state, ended in tasks):
        return None
    record = view.record(run)
    assert record is not None
    began = view.event(record.began)
    assert began is not None
    return {
        "id": run,
        "agent": record.holder,
        "session": record.session,
        "task": str(began.data["task"])[:_TASK],
        "state": record.state,
        "asked_at": record.asked_at,
        "ended_at": record.ended_at,
        "tasks": [task for task, _, _ in tasks],
    }
