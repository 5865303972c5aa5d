"""Finding a task or a run by the part of its id that a person types."""

from collections.abc import Sequence
from typing import Final

from remit.core.lifecycle import Record
from remit.core.values import shown
from remit.errors import BadInput, NotFound
from remit.ports import View

LAST: Final = "last"
MANY: Final = 100_000
_NAMED: Final = 5  # matching ids listed in an error
_CALLED: Final = {"task": "run or task"}
_LISTED: Final = {
    "task": "`remit runs` and `remit ps --all` list them",
    "question": "`remit approvals` lists them",
    "uncertain call": "`remit money uncertain` lists them",
}


def task_of(view: View, given: str) -> Record:
    """Return a task by its id or a unique prefix or suffix of it; for `last`, the first task of the newest run. Raise
    `NotFound` unless exactly one matches."""
    if given == LAST:
        newest = view.runs(1)
        if not newest:
            raise NotFound("there are no runs yet; `remit run` and `remit submit` start one")
        return newest[0].record
    record = view.record(_some(given)) or view.record(_only("task", given, _fitting(view, given, runs=False)))
    assert record is not None  # its id has just been read
    return record


def run_of(view: View, given: str) -> Record:
    """Return a task as `task_of` does. If a part of an id fits a run and other tasks, return the first task of the
    run."""
    if given == LAST or view.record(_some(given)) is not None:
        return task_of(view, given)
    runs = _fitting(view, given, runs=True)
    return task_of(view, _only("run", given, runs) if runs else given)


def question_of(view: View, given: str) -> str:
    """Return the whole id of a question by its id or a unique prefix or suffix of it. If it fits an open question,
    ignore the decided ones. Raise `NotFound` unless exactly one matches."""
    if view.question(_some(given)) is not None:
        return given
    waiting, every = view.questions_open(MANY), lambda: view.questions(MANY)
    fits = _fit(given, [one.id for one in waiting]) or _fit(given, [one.id for one in every()])
    return _only("question", given, fits)


def hold_of(view: View, given: str) -> str:
    """Return the whole id of an uncertain call by its id or a unique prefix or suffix of it. A reconciled one is found
    by its whole id only. Raise `NotFound` unless exactly one matches."""
    if view.hold(_some(given)) is not None or view.done(f"{given}/reconcile") is not None:
        return given
    return _only("uncertain call", given, _fit(given, [hold.id for hold in view.holds_uncertain("", MANY)]))


def _fit(given: str, ids: Sequence[str]) -> Sequence[str]:
    """Return the ids with this prefix, or else those with this suffix: at most one more than an error lists."""
    begin = [id_ for id_ in ids if id_.startswith(given)]
    return (begin or [id_ for id_ in ids if id_.endswith(given)])[: _NAMED + 1]


def _fitting(view: View, given: str, *, runs: bool) -> Sequence[str]:
    """Return matching ids. Most people copy a whole id, some its beginning: only a suffix needs a search of all ids."""
    return view.ids_like(given, _NAMED + 1, runs=runs) or view.ids_ending(given, _NAMED + 1, runs=runs)


def _only(what: str, given: str, fits: Sequence[str]) -> str:
    if not fits:
        raise NotFound(f"there is no {_CALLED.get(what, what)} {shown(given)} in this workspace; {_LISTED[what]}")
    if len(fits) > 1:
        several = f"more than {_NAMED}" if len(fits) > _NAMED else str(len(fits))
        raise NotFound(f"{several} {what}s fit {shown(given)}; write more of the id: {', '.join(fits[:_NAMED])}")
    return fits[0]


def _some(given: str) -> str:
    if not given:
        raise BadInput("pass an id, its beginning or its end, or `last`")
    return given
