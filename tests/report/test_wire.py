"""The one way to JSON: every value, with the names of its fields, as plain JSON."""

from collections import Counter
from dataclasses import asdict
from typing import NamedTuple

from hypothesis import given

from core.made import CI
from core.make import NOW, SECOND, entry, journal, json_values
from remit.core.access import info
from remit.core.backoff import USUAL
from remit.core.breaker import Breaker
from remit.core.card import Card
from remit.core.entry import Message, Writer
from remit.core.events import Labels
from remit.core.kinds.tasks import Begun, Claim, started
from remit.core.lifecycle import Outcome, Record, RunFacts
from remit.core.limits import Limit, LimitUse, Metered
from remit.core.match import Match
from remit.core.recovery import Cooling, what_rests
from remit.core.times import Schedule
from remit.core.values import checked
from remit.errors import Failed
from remit.ports import KeyInfo, RunLine, RunVitals
from remit.report import wire
from remit.report.detail import Detail, EarlierAttempt, Failure
from remit.report.edges import AskEdge
from remit.report.tree import tree
from report.events import CODER, LEAD, RECEIPT, completed, failed, handed, planned, refused, run_of, runs


def test_handoffs_as_data():
    root = run_of(started(LEAD, NOW), handed(LEAD, "billing", NOW + 5, "refund"))

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
            "sent_back": "",
        }
    ]
    assert checked(data, "a tree") == data


def test_a_plan_as_data_is_json():
    data = wire.tree(planned(started(CODER, NOW, Begun(step="a"))))

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
    assert data["children"][0]["step"] == "a"  # pyright: ignore[reportCallIssue]
    assert checked(data, "a tree") == data


def test_the_tree_as_data_has_everything_in_its_place():
    root = run_of(
        started(LEAD, NOW),
        started(CODER, NOW),
        refused(CODER, "lead"),
        failed(CODER),
        completed(LEAD),
    )

    data = wire.tree(root)

    (child,) = data.pop("children")  # pyright: ignore[reportGeneralTypeIssues]
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
        "more_refused": 0,
        "trail": [],
        "plans": [],
        "step": "",
        "tokens": 0,
        "turn": 0,
        "asked_at": NOW,
        "asked_how": "delegate",
        "attempts": 1,
        "retries": [],
        "credits": 0,
        "with_below": {"credits": 0, "tokens": 0},
        "questions": [],
        "models": [],
        "left_over": [],
        "progress": "",
        "tools": [],
    }
    assert (child["id"], child["state"], child["error"], child["children"]) == (  # pyright: ignore[reportCallIssue]
        "t2",
        "failed",
        "it broke",
        [],
    )
    refusal = {"at": NOW, "to": "lead", "task": "again", "rule": "loop", "sentence": "'lead' no"}
    assert child["refusals"] == [{**refusal, "handoff": False, "turn": 0, "asker": "coder"}]  # pyright: ignore[reportCallIssue]


@given(runs())
def test_the_tree_of_any_run_as_data_is_json(run):
    data = wire.tree(tree(run[1]))

    assert checked(data, "a tree") == data


# --- tasks, runs and what agents share ---------------------------------------------------------

RECORD = Record(
    id="t2",
    run="t1",
    parent="t1",
    session="s1",
    holder="coder",
    state="running",
    asked_how="submit",
    led_as="",
    worker="w1",
    fence=3,
    attempt=2,
    failures=1,
    asked_at=NOW,
    ready_at=NOW + 1,
    claimed_at=NOW + 2,
    until=NOW + 9,
    ended_at=None,
    began=4,
    ended=None,
    dedup_key="key/d",
    origin="",
)
TASK = {
    "id": "t2",
    "state": "lost",
    "agent": "coder",
    "task": "part 2",
    "session": "s1",
    "run": "t1",
    "parent": "t1",
    "asked_how": "submit",
    "attempt": 2,
    "worker": "w1",
    "where": "gone",
    "asked_at": NOW,
    "ready_at": NOW + 1,
    "priority": 0,
    "claimed_at": NOW + 2,
    "ended_at": None,
    "until": NOW + 9,
}


def test_a_task_says_where_it_stands_as_far_as_can_be_told_from_here():
    assert wire.task(RECORD, "part 2", state="lost", where="gone") == TASK


def test_a_task_in_detail_has_its_outcome_too():
    earlier = (EarlierAttempt("failed", NOW, 5, "no disk"),)
    found = Detail(RECORD, "part 2", "lead", 4, earlier, Counter(running=2), {"lines": 40}, "", "enough")

    assert wire.task_detail(found, state="lost", where="gone") == {
        **TASK,
        "asker": "lead",
        "by": "",
        "tags": [],
        "meta": {},
        "attempts": 4,
        "earlier": [{"how": "failed", "at": NOW, "elapsed": 5, "error": "no disk"}],
        "below": {"running": 2},
        "result": {"lines": 40},
        "error": "",
        "credits": 0,
        "questions": [],
        "models": [],
        "tools": [],
    }


def test_a_run_is_its_first_task_and_its_figures():
    line = RunLine(
        RECORD,
        "build it",
        RunFacts("t1", frozenset(("lead", "coder")), 2, 1, 70, 3, 5),
        Labels("ann", ("nightly",), (("n", 1),)),
    )

    vitals = RunVitals(2, {"completed": 1, "running": 1}, ("w1",), 7, 100, 1, NOW + 1)
    assert wire.run(line, state="running", vitals=vitals, signs=(NOW + 2, True)) == {
        "id": "t2",
        "state": "running",
        "agent": "coder",
        "task": "build it",
        "session": "s1",
        "tasks": 2,
        "states": {"completed": 1, "running": 1},
        "agents": ["coder", "lead"],
        "depth": 2,
        "handoffs": 1,
        "tokens": 70,
        "credits": 5,
        "held": 7,
        "granted": 100,
        "refused": 3,
        "questions": 1,
        "by": "ann",
        "tags": ["nightly"],
        "meta": {"n": 1},
        "asked_at": NOW,
        "ended_at": None,
        "seen_at": NOW + 2,
        "stalled": True,
    }


def test_an_outcome_has_its_value_or_the_sentence_of_its_error():
    done = Outcome("coder", "t2", "completed", {"lines": 40})
    broken = Outcome("coder", "t2", "failed", error=Failed("no disk", agent="coder", task="t2"), by="tester")

    assert wire.outcome(done)["value"] == {"lines": 40}
    assert wire.outcome(done)["error"] is None
    assert (wire.outcome(broken)["error"], wire.outcome(broken)["by"]) == ("no disk", "tester")


def test_an_event_is_its_place_and_its_data():
    event = journal(started(LEAD, NOW))[0]

    assert wire.event(event) == {
        "seq": 1,
        "at": NOW,
        "kind": "task.started",
        "run": "t1",
        "session": "s1",
        "task": "t1",
        "agent": "lead",
        "data": event.data,
        "op": None,
        "answer": None,
        "hash": event.hash,
    }


def test_an_entry_has_its_author_its_version_and_its_end():
    one = entry(value={"a": [1]}, by=Writer("coder", "t2", ("lead", "coder")), lifetime=60)

    assert wire.entry(one) == {
        "namespace": "codebase",
        "key": "auth",
        "value": {"a": [1]},
        "agent": "coder",
        "version": 1,
        "digest": one.digest,
        "created_at": NOW,
        "updated_at": NOW,
        "expires_at": NOW + 60,
        "trust": "trusted",
        "task": "t2",
        "chain": ["lead", "coder"],
    }


def test_messages_and_announcements_say_from_whom_and_for_whom():
    message = Message("t2/told", "s1", "coder", "lead", "done", NOW, reader="t1", about="t2")

    assert wire.message(message) == asdict(message)
    assert wire.announcement(message) == {
        "task": "t2",
        "by": "coder",
        "to": "lead",
        "asker": "t1",
        "text": "done",
        "at": NOW,
    }


def test_a_card_may_say_when_it_was_published():
    assert wire.card(Card("coder", can="write")) == Card("coder", can="write").data
    assert wire.card(Card("coder"), NOW)["published_at"] == NOW


def test_of_a_key_is_told_what_it_is_called_and_how_it_is_sealed():
    assert wire.key(KeyInfo("openai", "1a2b3c4d", NOW)) == {"name": "openai", "key_id": "1a2b3c4d", "set_at": NOW}


def test_of_an_access_is_told_everything_but_its_digest():
    told = wire.access(info(CI, NOW + 1, NOW))
    assert told == {
        "id": CI.id,
        "name": "ci",
        "state": "active",
        "agent": "reviewer",
        "scopes": ["run", "approve"],
        "bounds": {"depth": 2},
        "expires_at": NOW + 90,
        "made_at": NOW,
        "made_by": "ann",
        "revoked_at": None,
        "revoked_by": "",
        "used_at": NOW + 1,
    }


def test_a_breaker_names_its_agent():
    assert wire.breaker("coder", Breaker("open", 3, NOW, "", "it broke")) == {
        "agent": "coder",
        "state": "open",
        "failures": 3,
        "until": NOW,
        "probe": "",
        "why": "it broke",
    }


def test_a_worker_says_how_many_tasks_it_takes():
    class Peer(NamedTuple):
        id: str
        number: str
        concurrency: int
        seen_at: int = 0
        agents: tuple[str, ...] = ()

    told = {"id": "w1", "process": "4711", "concurrency": 8}
    assert wire.worker(Peer("w1", "4711", 8)) == {**told, "seen_at": None, "agents": []}
    assert wire.worker(Peer("w1", "4711", 8, 5, ("coder",))) == {**told, "seen_at": 5, "agents": ["coder"]}


# --- anything with named fields ----------------------------------------------------------------


def test_values_with_named_fields_become_objects_and_never_lists():
    found = wire.value([Claim("w1", 1, 2), USUAL, (1, 2.5), {"a": {"y", "x"}}, None, True, ValueError("no")])

    assert found == [
        {"worker": "w1", "fence": 1, "attempt": 2},
        asdict(USUAL),
        [1, 2.5],
        {"a": ["x", "y"]},
        None,
        True,
        "no",
    ]
    assert checked(found, "it") == found


@given(json_values)
def test_what_is_json_stays_as_it_is(value):
    assert wire.value(value) == value


def test_where_a_task_failed_as_data():
    data = wire.failures("t1", [Failure("t2", ("lead", "coder"), NOW, "no disk", "team.py:14 in coder")])

    failure = {"task": "t2", "chain": ["lead", "coder"], "at": NOW, "error": "no disk", "trace": "team.py:14 in coder"}
    assert data == {"task": "t1", "failures": [failure]}
    assert checked(data, "failures") == data


def test_an_agent_that_was_found_as_data_says_why_and_whether_it_is_the_one():
    found = Match(Card("coder"), 0.5, "can code", fits=True)
    assert wire.match(found, chosen=True) == {
        "agent": "coder",
        "score": 0.5,
        "why": "can code",
        "free": True,
        "chosen": True,
    }


def test_what_rests_is_told_with_all_that_it_is():
    told = wire.resting(what_rests("key:abc at:openai model:openai:gpt-5", Cooling(2, NOW, "rate-limit", 0)))
    assert (told["key"], told["endpoint"], told["model"]) == ("abc", "openai", "openai:gpt-5")
    assert (told["failures"], told["until"], told["kind"]) == (2, NOW, "rate-limit")


def test_how_much_of_a_limit_is_used_is_told_with_its_unit():
    used = wire.limit_use(LimitUse(Limit("day", tasks=100), "tasks", Metered("workspace", ""), 60))
    assert (used["per"], used["scope"], used["unit"], used["most"]) == ("day", "workspace", "tasks", 100)
    assert (used["used"], used["left"], used["room_at"]) == (60, 40, None)


def test_a_schedule_and_an_edge_are_told_with_their_figures():
    request = '{"keywords":{"priority":1},"ceiling":{}}'
    nightly = Schedule(
        *("nightly", "active", "0 3 * * *", "UTC", "latest", "cleaner", "tidy up", request),
        *(7, None, "", 0, "ann", 5, 1, 1),
    )
    told = wire.schedule(nightly)
    assert (told["name"], told["next"], told["last"], told["keywords"]) == ("nightly", 7, None, {"priority": 1})
    assert (told["set_by"], told["set_at"]) == ("ann", 5)
    edge = wire.edge(AskEdge("lead", "coder", asked=3, completed=2, failed=1, tokens=9))
    assert (edge["asker"], edge["agent"], edge["asked"], edge["failed"], edge["tokens"]) == ("lead", "coder", 3, 1, 9)
