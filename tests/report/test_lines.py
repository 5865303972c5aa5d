"""The journal as plain lines."""

import pytest

from core.made import MADE
from core.make import NOW, first_remit, journal, submitted
from remit.core.kinds import SHAPES
from remit.core.kinds.tasks import handed
from remit.core.values import Json
from remit.report.lines import detail, plain_line
from report.money import MONEY

EVENTS = journal(*MADE, *MONEY)
SILENT = {
    "cards.published",
    "entry.touched",
    "entries.removed",
    "messages.taken",
    "notice.claimed",
}  # their kind says enough


def last(kind: str) -> str:
    """What the fullest event of a kind says."""
    return [detail(event) for event in EVENTS if event.kind == kind][-1]


def test_a_line_says_when_what_and_who():
    assert plain_line(EVENTS[0]) == "2023-11-14T22:13:20.000Z task.started coder: part 2"
    assert plain_line(EVENTS[0]._replace(agent="")).split()[2] == "person:"


def test_the_line_of_a_delayed_task_says_when_it_is_due():
    [event, *_] = [event for event in EVENTS if event.kind == "task.submitted"]
    later = event._replace(data={**event.data, "ready_at": event.at + 90_000_000})
    assert detail(later) == f"{detail(event)}; due 2023-11-14T22:14:50Z"


def test_every_kind_of_event_is_one_harmless_line():
    for event in EVENTS:
        assert plain_line(event).isprintable()
    silent = {event.kind for event in EVENTS if not detail(event)}
    assert silent == SILENT, "add a row to _SAID in report/lines.py, or the kind to SILENT"
    assert {event.kind for event in EVENTS} == set(SHAPES), "make one event of each kind in tests/core/made.py"


@pytest.mark.parametrize(
    ("kind", "said"),
    [
        ("task.submitted", ": part 2; a fork of r0 at event 7"),
        ("task.claimed", ": attempt 1 on w1"),
        ("task.waiting", ": waits for a person: q1"),
        ("task.retrying", ": attempt 1: no disk; next attempt at 22:13:20.000Z"),
        ("task.lost", ": its process died or stopped responding: w0"),
        ("task.cancelling", ": enough (by ann)"),
        ("task.completed", ": {'lines': 40}"),
        ("task.failed", ": no disk (by ann)"),
        ("task.died", ": no disk (by ann)"),
        ("task.handed", " to tester, writer (phase test)"),
        ("hop.refused", ": handoff to lead (credits, for $2.00): no"),
        ("effect.done", ": charge"),
        ("artifact.saved", ": a.txt, 5 bytes, text/plain (by ann)"),
        ("model.answered", ": openai:gpt-5, 1,200 tokens read (800 from a cache) and 7 written; calls look"),
        ("model.failed", ': openai:gpt-5: rate-limit (429), "slower"'),
        ("model.waiting", " waits 7.0 s for openai:gpt-5, second try"),
        ("model.told", ": its model gets 2 results of the program's tools"),
        ("tool.begun", ": look"),
        (
            "talk.restarted",
            ": the conversation restarts after 2 answers and 1 tool call: a recorded answer cannot be read",
        ),
        ("tool.done", ": look({}), failed: KeyError: 'a' (2 ms, at team.py:8 in look)"),
        ("session.recalled", ": its prompt contains 2 earlier runs of its session"),
        ("cooling.set", ": key:A is available again (by ann)"),
        ("plan.started", ": 1 steps: Gather"),
        ("team.planned", ": the plan is accepted: 2 steps"),
        ("step.ended", ": step a skipped: stop"),
        ("breaker.set", ": half-open after 3 failures: it broke (by ann)"),
        ("key.set", ": openai, encrypted with master key 1a2b3c4d (by ann)"),
        ("schedule.set", ": nightly, '0 3 * * *' Europe/Berlin, paused: tidy up"),
        ("schedule.removed", ": nightly"),
        ("card.withdrawn", ": lead"),
        ("hook.added", ": h1, https://example.com/hook, question.* task.completed of run r1"),
        ("hook.removed", ": h1"),
        ("hook.rotated", ": h1, secret 2 (by ann)"),
        (
            "schedule.fired",
            ": nightly of 2023-11-14T22:13:20Z submits t1; those from 2023-11-14T22:13:19Z were missed",
        ),
        ("schedule.skipped", ": nightly of 2023-11-14T22:13:20Z starts nothing: no worker ran"),
        ("work.left", ": $0.01 paid for stamps"),
        ("work.kept", ": effect.done, from event 1"),
        ("owner.acted", ": cancel t1 (by ann)"),
        ("key.removed", ": openai (by ann)"),
        ("entry.set", ": codebase/auth v1"),
        ("message.sent", " to lead"),
        ("runs.pruned", ": 1 run: t1"),
        ("keys.kept", ": 1 idempotency key"),
        ("journal.cut", ": up to event 2"),
        ("account.granted", ": $0.005 (May) (by ann)"),
        ("account.set", ": credits are open (paid) (by ann)"),
        ("hold.placed", ": $0.05 and 4,096 tokens held (photo)"),
        ("hold.settled", ": $0.01 charged, uncertain (photo)"),
        ("hold.released", ": $0.000005 released (x)"),
        ("hold.reconciled", ": $0.05 was charged, it cost $0.01 (the bill) (by ann)"),
        ("credits.spent", ": $0.02 (stamps)"),
        ("ledger.carried", ": 1 lease and 0 calls carried over unchanged"),
        ("question.asked", ": q1: Which?"),
        ("question.answered", ": q1 rejected by ann over terminal: not today"),
        ("question.used", ": q1 is used"),
        ("notice.sent", ": q1: mail could not be notified: no such address"),
    ],
)
def test_a_line_tells_what_its_event_is_about(kind, said):
    assert last(kind) == said


def test_what_has_no_figures_is_told_without_them():
    told = [detail(event) for event in journal(*MADE) if event.kind in ("model.answered", "model.failed", "tool.done")]
    assert told[:5:2] == [": openai:gpt-5, not counted", ": openai:gpt-5: timeout", ": look({})"]
    assert told[5] == ": look({}): 6 lines"
    resting, _ = [detail(event) for event in journal(*MADE) if event.kind == "cooling.set"]
    assert resting.startswith(": key:A is paused after rate-limit until 2023-11-14T22:13:20Z")


def test_a_result_that_is_sent_back_tells_by_whom_and_why():
    told = [detail(event) for event in journal(*MADE) if event.kind == "task.handed" and "sent_back" in event.data]
    assert told == [" back by ann: no"]
    plain: Json = {"result": "x", "why": "", "by": "", "times": 1}
    [event] = journal(handed(first_remit(), "lead", NOW, {"update": {}, "content": "", "sent_back": plain}))
    assert detail(event) == " back"


def test_a_schedule_says_when_it_runs_next():
    told = [detail(event) for event in journal(*MADE) if event.kind.startswith("schedule.")]
    assert told[0] == ": nightly, '0 3 * * *' Europe/Berlin, next 2023-11-14T22:13:20Z: tidy up (by ann)"
    assert told[4] == ": nightly of 2023-11-14T22:13:20Z submits t1, next 2023-11-14T22:13:20Z"
    assert told[6] == ": nightly of 2023-11-14T22:13:20Z starts nothing, next 2023-11-14T22:13:20Z: no worker ran"


@pytest.mark.parametrize(("asked_how", "said"), [("submit", ": build it"), ("spawn", ": build it (spawn)")])
def test_a_submitted_task_says_how_it_was_asked_for(asked_how, said):
    assert detail(journal(submitted(first_remit(), NOW, asked_how))[0]) == said
