"""What people were asked, and what a run spent, wherever a run is shown."""

import pytest

from core.make import NOW, journal
from remit.core.kinds.tasks import moved, started
from remit.core.lifecycle import Record
from remit.errors import StoreError
from remit.report import flow, wire
from remit.report.detail import detail
from remit.report.questions import asked_in
from remit.report.spend import Spends
from remit.report.stats import stats
from remit.report.summary import Subtotal, sentence, subtotals, summary
from remit.report.words import how_to_answer, nodes_first, notes, spending_text, waits
from report.events import CODER, LEAD, TESTER, completed, run_of
from report.money import T1, T2, answered, asked, hold, lease, reconciled, settled, spent, used

STARTED = (started(LEAD, NOW), started(CODER, NOW))
WAITING = moved("task.waiting", T2, "coder", NOW, {})


@pytest.mark.rule("show.money")
def test_each_charge_is_at_one_task_and_the_root_comes_to_the_run():
    root = run_of(*STARTED, spent(20_000), settled({"credits": 10_000, "tokens": 50}, at=T2, agent="coder"))
    (coder,) = root.children

    assert (root.credits, coder.credits, coder.tokens) == (20_000, 10_000, 50)
    assert subtotals(root) == {"t1": Subtotal(30_000, 50), "t2": Subtotal(10_000, 50)}
    assert (summary(root).credits, summary(root).tokens) == (30_000, 50)
    assert spending_text(root, subtotals(root)) == "$0.02, $0.01 below"
    assert spending_text(coder, subtotals(root)) == "$0.01"
    assert wire.tree(root)["with_below"] == {"credits": 30_000, "tokens": 50}


def test_what_is_charged_after_the_end_counts_too():
    root = run_of(*STARTED, completed(LEAD), settled({"credits": 50_000}, uncertain=True), reconciled(50_000, 10_000))

    assert (root.state, root.credits) == ("completed", 10_000)


def test_pictures_say_what_was_spent():
    root = run_of(*STARTED, spent(20_000), settled({"credits": 10_000}, at=T2, agent="coder"))

    assert "· $0.02, $0.01 below" in flow.text(root, NOW)
    assert "#36;#8288;0.02, #36;#8288;0.01 below" in flow.mermaid(root, NOW)
    assert "$0.03 spent" in flow.svg(root, NOW)
    assert "$0.01 · 0 ms" in flow.svg(root, NOW)
    assert "$" not in flow.text(run_of(*STARTED), NOW)


def test_figures_of_agents_have_what_they_spent():
    figures = stats(journal(*STARTED, spent(20_000), settled({"credits": 1, "tokens": 9}, at=T2, agent="coder")))

    assert (figures.credits, figures.tokens) == (20_001, 9)
    assert figures.agents["coder"].credits == 1
    assert wire.stats(figures)["agents"]["lead"]["credits"] == 20_000  # pyright: ignore[reportCallIssue]


@pytest.mark.rule("show.waits")
def test_a_question_that_is_open_says_how_to_answer_it():
    root = run_of(*STARTED, asked("q1", at=T2, choices=["a", "b"]), WAITING)
    (coder,) = root.children

    assert waits(coder.questions[0]) == "waits for a person: Which? (remit answer q1 CHOICE)"
    assert notes(coder) == ["waits for a person"]
    assert "└─ ? waits for a person: Which? (remit answer q1 CHOICE)" in flow.text(root, NOW)
    assert "waits for a person" in flow.mermaid(root, NOW)
    assert "waits for a person: Which?" in flow.svg(root, NOW)
    assert "1 question for a person" in sentence(root)


@pytest.mark.rule("people.shown")
def test_what_is_not_all_on_one_line_is_to_be_read_first():
    kinds_ = (asked("q1", kind="hop"), asked("q2"), asked("q3", text="x" * 161), asked("q4", text="a\nb"))

    assert [how_to_answer(one) for one in asked_in(journal(*kinds_))] == [
        "remit approvals q1",
        "remit answer q2 ANSWER",
        "remit approvals q3",
        "remit approvals q4",
    ]


def test_an_answer_says_who_when_and_over_which_channel():
    told = (asked(), answered("approved", value={"env": "test"}, why="fine"), used(), answered(question="q9"))
    (question,) = asked_in(journal(*STARTED, *told))

    assert not question.is_open
    assert (question.state, question.by, question.channel, question.why) == ("approved", "ann", "terminal", "fine")
    assert (question.value, question.answered_at, question.used) == ({"env": "test"}, NOW + 9, True)
    assert run_of(*STARTED, *told).open_questions == []


def test_a_task_in_detail_has_its_questions_and_what_it_spent():
    events = journal(started(LEAD, NOW), spent(20_000), asked())
    names = dict.fromkeys(Record._fields, "")
    found = detail(Record(**{**names, "id": "t1", "began": 1, "ended": None}), events, [])

    assert found.credits == 20_000
    assert [question.id for question in found.questions] == ["q1"]
    told = wire.task_detail(found, state="running", where="")
    assert (told["credits"], told["questions"][0]["text"]) == (20_000, "Which?")  # pyright: ignore[reportCallIssue]


def test_leases_calls_and_spending_as_data_have_the_names_of_their_fields():
    assert wire.lease(lease(granted=5))["granted"] == 5
    assert wire.hold(hold())["why"] == "photo"
    assert wire.spending(Spends("day", lambda _lease, _unit: False).result())["total"]["credits"] == 0  # pyright: ignore[reportCallIssue]


def test_a_move_that_the_table_does_not_have_changes_nothing_that_is_shown():
    assert run_of(started(LEAD, NOW), moved("task.queued", T1, "lead", NOW, {})).state == "running"


def test_a_task_without_its_beginning_is_for_the_doctor():
    names = dict.fromkeys(Record._fields, "")
    with pytest.raises(StoreError, match="remit doctor"):
        detail(Record(**{**names, "id": "t1", "began": 1, "ended": None}), [], [])


def test_where_not_all_tasks_fit_the_urgent_ones_come_first():
    root = run_of(*STARTED, started(TESTER, NOW), completed(CODER))
    shown, rest = nodes_first(root.children, 1)
    assert ([node.id for node in shown], [node.id for node in rest]) == (["t3"], ["t2"])
