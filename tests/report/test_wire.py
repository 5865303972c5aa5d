"""The one way to JSON."""

from hypothesis import given

from core.make import NOW, SECOND
from remit.core import kinds
from remit.core.kinds import Begun
from remit.core.values import checked
from remit.report import wire
from remit.report.tree import tree
from report.events import CODER, LEAD, RECEIPT, completed, failed, handed, planned, refused, run_of, runs


def test_handoffs_as_data():
    root = run_of(kinds.started(LEAD, NOW), handed(LEAD, "billing", NOW + 5, "refund"))

    data = wire.tree(root)

    assert (data["first"], data["agent"]) == ("lead", "billing")
    assert data["trail"] == [
        {
            "at": NOW + 5,
            "sender": "lead",
            "to": ["billing"],
            "elapsed": 5,
            "phase": "refund",
            "receipt": RECEIPT,
            "parallel": False,
        }
    ]
    assert checked(data, "a tree") == data


def test_a_plan_as_data_is_json():
    data = wire.tree(planned(kinds.started(CODER, NOW, Begun(step="a"))))

    assert data["plans"][0][0] == {
        "id": "a",
        "title": "Gather",
        "agent": "coder",
        "after": [],
        "state": "running",
        "reason": "",
        "task": "t2",
        "tries": 1,
        "planner": "lead",
    }
    assert data["children"][0]["step"] == "a"
    assert checked(data, "a tree") == data


def test_the_tree_as_data_has_everything_in_its_place():
    root = run_of(
        kinds.started(LEAD, NOW),
        kinds.started(CODER, NOW),
        refused(CODER, "lead"),
        failed(CODER),
        completed(LEAD),
    )

    data = wire.tree(root)

    (child,) = data.pop("children")
    assert data == {
        "id": "t1",
        "agent": "lead",
        "first": "lead",
        "task": "build it",
        "state": "completed",
        "started_at": NOW,
        "ended_at": NOW + SECOND,
        "result": "done",
        "error": "",
        "sees": ["*"],
        "receipt": RECEIPT,
        "refusals": [],
        "trail": [],
        "plans": [],
        "step": "",
        "tokens": 0,
        "turn": 0,
        "asked_at": NOW,
        "asked_how": "delegate",
        "attempts": 1,
        "retries": [],
    }
    assert (child["id"], child["state"], child["error"], child["children"]) == (
        "t2",
        "failed",
        "it broke",
        [],
    )
    refusal = {"at": NOW, "to": "lead", "task": "again", "rule": "loop", "sentence": "'lead' no"}
    assert child["refusals"] == [{**refusal, "handoff": False, "turn": 0}]


@given(runs())
def test_the_tree_of_any_run_as_data_is_json(run):
    data = wire.tree(tree(run[1]))

    assert checked(data, "a tree") == data
