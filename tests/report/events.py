"""Journals of runs, made by hand and at random."""

from hypothesis import strategies as st

from core.make import NOW, SECOND, UNTIL, first_remit, journal
from remit.core import lifecycle
from remit.core.events import Event, Unsealed
from remit.core.kinds.tasks import ended, started
from remit.core.kinds.tasks import handed as handed_event
from remit.core.kinds.tasks import refused as refused_event
from remit.core.kinds.workspace import plan_started
from remit.core.remit import NO_RIGHTS, Pass, Remit, derive, handed_to
from remit.report.tree import Node, tree

RECEIPT = {
    "saw": [["task", "task", 2, 1, "d"]],
    "tokens": 2,
    "unlisted": 0,
    "withheld": [["n/*", "not passed"]],
}


def child_of(parent: Remit, to: str, id_: str) -> Remit:
    return derive(parent, Pass(to, f"part {id_}"), id_, NO_RIGHTS, UNTIL)


def completed(remit: Remit, result: object = "done", at: int = NOW + SECOND) -> Unsealed:
    return ended(remit, "task.completed", at, {"result": result, "receipt": RECEIPT})


def failed(remit: Remit, at: int = NOW + SECOND) -> Unsealed:
    return ended(remit, "task.failed", at, {"error": "it broke", "receipt": RECEIPT})


def refused(remit: Remit, to: str, rule: str = "loop") -> Unsealed:
    return refused_event(remit, Pass(to, "again"), NOW, rule=rule, sentence=f"'{to}' no")


def handed(remit: Remit, to: str | list[str], at: int, phase: str = "", tokens: int = 0) -> Unsealed:
    data: dict = {"update": {"phase": phase} if phase else {}, "content": "d", "receipt": RECEIPT}
    return handed_event(remit, to, at, {**data, "tokens": tokens} if tokens else data)


LEAD = first_remit("lead")


CODER = child_of(LEAD, "coder", "t2")


TESTER = child_of(LEAD, "tester", "t3")


REVIEWER = child_of(CODER, "reviewer", "t4")


BILLING = handed_to(LEAD, "billing")


def run_of(*told: Unsealed) -> Node:
    found = tree(journal(*told))
    assert found is not None
    return found


@st.composite
def runs(draw) -> tuple[dict[str, str], list[Event]]:
    """A run of any shape: the parent of each task, and events in an order in which they may have happened."""
    size = draw(st.integers(1, 12))
    remits = {"t1": LEAD}
    parents = {"t1": ""}
    told = [started(LEAD, NOW)]
    for number in range(2, size + 1):
        parent = draw(st.sampled_from(sorted(remits)))
        id_ = f"t{number}"
        remits[id_] = child_of(remits[parent], f"agent {number}", id_)
        parents[id_] = parent
        told.append(started(remits[id_], NOW + number))
        told += [refused(remits[parent], "lead")] * draw(st.integers(0, 2))
    for id_ in draw(st.lists(st.sampled_from(sorted(remits)), unique=True)):
        kind = draw(st.sampled_from(sorted(lifecycle.ENDS)))
        told.append(ended(remits[id_], kind, NOW + 100, {"receipt": RECEIPT}))
    return parents, journal(*told)


STEPS = [
    {"id": "a", "title": "Gather", "agent": "coder", "capability": "", "after": []},
    {"id": "b", "title": "Compare", "agent": "tester", "capability": "", "after": []},
    {"id": "c", "title": "Write", "agent": "coder", "capability": "", "after": ["a", "b"]},
    {"id": "d", "title": "Check", "agent": "tester", "capability": "", "after": ["c"]},
]


def planned(*told: Unsealed) -> Node:
    return run_of(started(LEAD, NOW), plan_started(LEAD, STEPS, NOW, {"receipt": RECEIPT}), *told)
