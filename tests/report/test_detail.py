"""One task in detail, folded from its record and its events."""

from collections import Counter

import pytest

from core.make import NOW, claimed, journal, moved, requeued, submitted
from remit.core.events import Unsealed
from remit.core.kinds.tasks import ended as ended_event
from remit.core.kinds.tasks import started
from remit.core.lifecycle import Record
from remit.report.detail import Detail, EarlierAttempt, Failure, detail, failures
from remit.report.tree import tree
from report.events import CODER, LEAD, REVIEWER, TESTER


def record(id_: str, parent: str = "", state: str = "running", began: int = 1, ended: int | None = None) -> Record:
    return Record(
        id=id_,
        run="t1",
        parent=parent,
        session="s1",
        holder="coder",
        state=state,
        asked_how="submit",
        led_as="",
        worker="",
        fence=1,
        attempt=1,
        failures=0,
        asked_at=NOW,
        ready_at=NOW,
        claimed_at=None,
        until=NOW + 9,
        ended_at=None,
        began=began,
        ended=ended,
        dedup_key="",
        origin="",
    )


def told(*unsealed: Unsealed, ended: bool = False) -> Detail:
    events = journal(*unsealed)
    return detail(record("t2", "t1", ended=len(events) if ended else None), events, [])


def test_a_task_says_what_it_is_who_asked_and_how_often_it_may_be_tried():
    found = told(submitted(CODER))

    assert (found.task, found.asker, found.attempts) == ("part t2", "lead", 4)
    assert (found.earlier, found.below, found.result, found.error, found.why) == ((), Counter(), None, "", "")
    assert told(started(CODER, NOW)).attempts == 1


def test_a_task_that_has_ended_has_its_outcome():
    done = ended_event(CODER, "task.completed", NOW, {"result": {"lines": 40}})
    broken = ended_event(CODER, "task.failed", NOW, {"error": "it broke", "type": "OSError"})

    assert told(started(CODER, NOW), done, ended=True).result == {"lines": 40}
    assert told(started(CODER, NOW), broken, ended=True).error == "it broke"


def test_a_task_that_is_being_cancelled_says_why():
    why = [moved(CODER, "cancelling", NOW, why="enough"), moved(CODER, "cancelling", NOW, why="more than enough")]

    assert told(submitted(CODER), *why).why == "more than enough"


@pytest.mark.parametrize(
    ("word", "data", "how"),
    [
        ("retrying", {"error": "no disk"}, "failed"),
        ("released", {}, "handed back"),
        ("lost", {"lost_by": "w1"}, "lost with its process"),
    ],
)
def test_earlier_attempts_say_how_they_ended_and_how_long_they_took(word, data, how):
    found = told(
        submitted(CODER),
        claimed(CODER, NOW + 1),
        requeued(CODER, word, NOW + 6, **data),
        requeued(CODER, word, NOW + 8, **data),
    )

    error = data.get("error", "")
    assert found.earlier == (EarlierAttempt(how, NOW + 6, 5, error), EarlierAttempt(how, NOW + 8, None, error))


def test_below_are_all_that_it_asked_for_and_nobody_else():
    run = [
        record(REVIEWER.id, CODER.id, "failed", began=4),
        record(TESTER.id, LEAD.id, "completed", began=3),
        record(CODER.id, LEAD.id, "running", began=2),
        record(LEAD.id, "", "waiting", began=1),
    ]
    events = journal(started(LEAD, NOW), started(CODER, NOW))

    assert detail(run[3], events, run).below == {"failed": 1, "completed": 1, "running": 1}
    assert detail(run[2], events, run).below == {"failed": 1}


@pytest.mark.rule("failure.trace")
def test_the_failed_attempts_of_a_task_and_its_subtasks_are_listed_with_their_chain():
    failed = {"error": "it broke", "type": "OSError", "trace": "team.py:3 in coder"}
    again = requeued(CODER, "retrying", NOW + 1, **failed)
    plain = ended_event(CODER, "task.failed", NOW + 2, {"error": "its time was up", "type": "TimedOut"})

    events = journal(started(LEAD, NOW), started(CODER, NOW), again, plain)
    whole = tree(events)
    assert whole is not None
    found = failures(events, whole)
    assert found == [
        Failure(CODER.id, ("lead", "coder"), NOW + 1, "it broke", "team.py:3 in coder"),
        Failure(CODER.id, ("lead", "coder"), NOW + 2, "its time was up", ""),
    ]
    assert failures(events, whole.children[0])[0].chain == ("coder",)
    assert failures(journal(started(LEAD, NOW)), whole) == []
