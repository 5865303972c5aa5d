"""What becomes of a task whose process is gone, and who is to blame for that.

A process that dies takes everything along that it had in its hands, and mostly one task at most is the reason. Only
that one is to pay for it with an attempt. So what was lost is noted, and whoever was lost again and again is run beside
fewer and fewer others of the kind, until the one that remains is the one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Final, NamedTuple

from remit.core.events import Unsealed
from remit.core.kinds import Claim, FirstData, Requeue, fenced, read, requeued
from remit.core.record import Record
from remit.core.remit import LASTS
from remit.core.values import Json
from remit.engine.attempt.endings import AT_ONCE
from remit.engine.consequences import ended_unrun
from remit.engine.hops import place_of
from remit.ports import View

SUSPECT: Final = 2  # losses that make a task a suspect
ALONE: Final = 3  # losses from which on it is the only suspect of its worker
_SHARE: Final = 16  # of its hands, a worker has one of so many for suspects that need not be alone


class Chosen(NamedTuple):
    """What a worker may begin now; `whole` unless suspects were left out."""

    records: list[Record]
    whole: bool


class Suspects:
    """The suspects in the hands of one worker: few at a time, and one that was lost three times is the only one."""

    def __init__(self, hands: int) -> None:
        self._few = max(1, hands // _SHARE)
        self._held: dict[str, int] = {}

    def enter(self, task: str, losses: int) -> None:
        if losses >= SUSPECT:
            self._held[task] = losses

    def leave(self, task: str) -> None:
        self._held.pop(task, None)

    def choose(self, due: Iterable[Record], waits: Callable[[str], bool]) -> Chosen:
        """Choose what may be begun now. Suspects take turns: none overtakes another. One that waits for another task
        does nothing that could end its process, and what it waits for may be a suspect too."""
        records: list[Record] = []
        at_work = [losses for task, losses in self._held.items() if not waits(task)]
        count, worst, whole = len(at_work), max(at_work, default=0), True
        for record in due:
            if record.losses >= SUSPECT:
                worst = max(worst, record.losses)
                whole = whole and count < (self._few if worst < ALONE else 1)
                if not whole:
                    continue
                count += 1
            records.append(record)
        return Chosen(records, whole)


def blamed(held: Sequence[Record]) -> str:
    """Tell which task a process most likely died of: the only one that it had, or its only suspect. Empty if that
    cannot be told. Whoever is lost for the first time is not to blame: machines are switched off."""
    own = [record for record in held if not _is_part(record)]  # what is delegated is a part of what its asker does
    own = [record for record in own if record.state == "running"] or own  # whoever waits does nothing
    if len(own) != 1:
        own = [record for record in own if record.losses >= SUSPECT]
    return own[0].id if len(own) == 1 and own[0].losses else ""


def why_dead(record: Record, most: int) -> str:
    """Say why a task is not begun once more; empty if it may be."""
    if most == 1 and record.losses:
        return "the process that carried it out died, and it may be begun only once (attempts=1)"
    if record.attempt < most:
        return ""
    if not record.losses:
        return f"its end could not be recorded, in {record.attempt} attempts"
    return f"the process that carried it out died {'once' if record.losses == 1 else f'{record.losses} times'}"


def all_left_behind(view: View, held: Sequence[Record], now: int, *, died: bool) -> list[list[Unsealed]]:
    """Say what becomes of the tasks of a process that is gone; nothing for one that waits for others to stop. Of one
    that did not die, but stands still, nobody is to blame."""
    ending: set[str] = set()
    to_blame = blamed(held) if died else ""
    # What is below comes first.
    return [_left_behind(view, record, ending, now, blame=record.id == to_blame) for record in reversed(held)]


def not_run(view: View, record: Record, now: int) -> list[Unsealed]:
    """Say what becomes of a task that is on record as run by this process, and is not. Whoever waited for one that was
    delegated or run in the foreground was told that the store failed, so it is not run again."""
    if record.state == "cancelling":
        return ended_when_alone(view, record.id, set(), now)
    if record.asked_how == "delegate":
        return [ended_unrun(record, "task.failed", "the store was away, and its end could not be recorded", now)]
    return [_lost(view, record, now, returned=0, losses=record.losses)]


def _left_behind(view: View, record: Record, ending: set[str], now: int, *, blame: bool) -> list[Unsealed]:
    if record.state == "cancelling":
        return ended_when_alone(view, record.id, ending, now)
    if _is_part(record):
        parent = view.standing(record.parent)
        if parent is None or parent.state not in ("pending", "running", "waiting"):
            return [ended_unrun(record, "task.cancelled", "its asker ended without it", now)]
        return [fenced(place_of(record), record.holder, now, Claim("", record.fence + 1, record.attempt))]
    if record.led_by_program:
        return [ended_unrun(record, "task.failed", f"the process that ran this {record.led_as} is gone", now)]
    return [_lost(view, record, now, returned=0 if blame else 1, losses=record.losses + 1)]


def _lost(view: View, record: Record, now: int, *, returned: int, losses: int) -> Unsealed:
    """Make the event of a task that goes back into the queue because nobody runs it any more."""
    back = Requeue("", record.fence + 1, AT_ONCE, max(0, record.attempt - returned), record.failures)
    data: dict[str, Json] = {"lost_by": record.worker, "losses": losses}
    began = view.event(record.began)
    if record.asked_how == "delegate" and began is not None and "deadline" not in read(began, FirstData)["bounds"]:
        data["until"] = now + LASTS  # it stands in the queue now, which has nothing to do with the time of an attempt
    return requeued("task.lost", place_of(record), record.holder, now, back, data)


def _is_part(record: Record) -> bool:
    return bool(record.parent) and record.asked_how == "delegate"


def ended_when_alone(view: View, task: str, ending: set[str], now: int) -> list[Unsealed]:
    """Cancel a task, once nothing is left under it that is not ending with it."""
    first, *rest = view.below(task)
    if any(record.id not in ending for record in rest):
        return []
    ending.add(task)
    return [ended_unrun(first, "task.cancelled", "cancelled", now)]
