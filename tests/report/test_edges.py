"""Who asks whom, from events."""

import pytest

from core.make import NOW, first_remit, journal
from remit.core.events import Event
from remit.core.kinds.money import ledger_event
from remit.core.kinds.tasks import refused, started
from remit.core.remit import Pass, place
from remit.report.edges import AskEdge, Asking, EdgeSums, asking_in


def sums_of(events: list[Event], known: dict[str, Asking]) -> list[AskEdge]:
    sums = EdgeSums(known.get)
    for event in events:
        sums.add(event)
    return sums.result()


@pytest.mark.rule("figures.edges")
def test_requests_refusals_and_charges_are_counted_for_their_pair():
    root = first_remit()
    paid = {"costs": {"credits": 5}, "steps": {}, "why": "x"}
    spent = ledger_event("credits.spent", place(root), root.holder, NOW, paid)
    no = refused(root, Pass("helper", "x"), NOW, rule="loop", sentence="no")
    events = journal(started(root, NOW), spent, no, no._replace(data={**no.data, "handoff": True}), no._replace(run=""))
    asking = asking_in(events[0])
    assert asking == Asking("", root.holder)
    assert sums_of(events, {root.id: asking}) == [
        AskEdge("", root.holder, asked=1, credits=5),
        AskEdge("", "helper", refused=1),
        AskEdge(root.holder, "helper", refused=1),
    ]
    assert sums_of(events[1:2], {}) == []
