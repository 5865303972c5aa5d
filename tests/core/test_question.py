"""Questions as values: what may be asked, what may be answered, and what their events do to the table."""

import pytest

from core.make import journal
from remit.core import projection as people
from remit.core.change import Change
from remit.core.events import Place, read
from remit.core.kinds.people import QuestionAnswered, QuestionAsked, question_event
from remit.core.question import (
    CHOICES,
    ENDS,
    Question,
    QuestionDraft,
    QuestionState,
    accepted,
    asked_by_agent,
    decided,
    editable,
)
from remit.errors import BadInput

AT = 1_800_000_000_000_000
OPEN = Question("q1", "r", "s", "t", "a", "ask", "d", AT, AT + 9, "open", "reject", 7, None, 0)


# -- asking -------------------------------------------------------------------------------------------------------


@pytest.mark.rule("ask.input")
def test_what_an_agent_asks_is_a_text_with_choices_and_a_default():
    assert asked_by_agent("Which?", ["red", "blue"], "red") == QuestionDraft(
        "ask", "Which?", ("red", "blue"), "red", "default"
    )
    assert asked_by_agent("Why?", None, None) == QuestionDraft("ask", "Why?", (), None, "reject")
    assert asked_by_agent("Why?", [], "because") == QuestionDraft("ask", "Why?", (), "because", "default")
    assert asked_by_agent("Which?", (one for one in ("a", "b")), None).choices == ("a", "b")


@pytest.mark.rule("ask.input")
@pytest.mark.parametrize(
    ("text", "choices", "default", "sentence"),
    [
        ("", None, None, "a question must not be empty"),
        (5, None, None, "a question must be text, not int: 5"),
        (None, None, None, "a question must be text, not NoneType: None"),
        ("x" * 8_001, None, None, "a question has at most 8,000 characters, got 8,001"),
        ("Which?", "red", None, 'choices is a list of answers, such as ["red", "blue"], not \'red\''),
        ("Which?", 3, None, 'choices is a list of answers, such as ["red", "blue"], not 3'),
        ("Which?", ["red", ""], None, "a choice must not be empty"),
        ("Which?", ["red", 1], None, "a choice must be text, not int: 1"),
        ("Which?", ["x" * 201], None, "a choice has at most 200 characters, got 201"),
        ("Which?", [str(n) for n in range(CHOICES + 1)], None, "a question has at most 20 choices, got 21"),
        ("Which?", ["a", "a"], None, "two choices of a question are the same; each must be different"),
        ("Which?", ["red"], "rde", "the default 'rde' is none of the choices; did you mean red?"),
        ("Which?", ["red"], "blue", "the default 'blue' is none of the choices"),
        ("Which?", None, "", "the default answer must not be empty"),
        ("Which?", None, True, "the default answer must be text, not bool: True"),
    ],
)
def test_what_cannot_be_asked_is_said(text: object, choices: object, default: object, sentence: str):
    with pytest.raises(BadInput) as no:
        asked_by_agent(text, choices, default)
    assert str(no.value) == sentence


@pytest.mark.rule("approval.exact")
def test_the_digest_is_of_exactly_what_is_asked_for():
    draft = QuestionDraft("tool", "'a' wants to deploy", shows={"arguments": {"env": "prod"}}, about=("task", "a"))
    others = [
        draft._replace(kind="hop"),
        draft._replace(text="'a' wants to deploy it"),
        draft._replace(choices=("yes",)),
        draft._replace(shows={"arguments": {"env": "test"}}),
        draft._replace(about=("other", "a")),
        draft._replace(about=("task", "a", "b")),
    ]
    assert len({draft.digest, *(other.digest for other in others)}) == 7
    assert draft._replace(seconds=5.0, default="x", expires="approve").digest == draft.digest


# -- answering ----------------------------------------------------------------------------------------------------


@pytest.mark.rule("ask.input")
def test_an_answer_is_a_text_and_one_of_the_choices_if_there_are_any():
    assert accepted(OPEN, [], "anything") == "anything"
    assert accepted(OPEN, ["red", "blue"], "blue") == "blue"


@pytest.mark.rule("ask.input")
@pytest.mark.parametrize(
    ("choices", "value", "sentence"),
    [
        ([], None, "an answer must not be empty"),
        ([], "", "an answer must not be empty"),
        ([], 5, "an answer must be text, not int: 5"),
        ([], "x" * 8_001, "an answer has at most 8,000 characters, got 8,001"),
        (["red", "blue"], "green", "'green' is none of the answers to q1: red, blue"),
        (["red", "blue"], "blu", "'blu' is none of the answers to q1: red, blue; did you mean blue?"),
    ],
)
def test_what_is_no_answer_is_said(choices: list[str], value: object, sentence: str):
    with pytest.raises(BadInput) as no:
        accepted(OPEN, choices, value)
    assert str(no.value) == sentence


@pytest.mark.rule("answer.first")
@pytest.mark.parametrize(
    ("state", "by", "channel", "sentence"),
    [
        ("answered", "ann", "terminal", "question q1 was answered by ann over terminal at "),
        ("approved", "bob", "", "question q1 was approved by bob at "),
        ("rejected", "", "webhook", "question q1 was rejected over webhook at "),
        ("withdrawn", "", "", "question q1 was withdrawn at "),
        ("expired", "", "", "question q1 has expired at "),
    ],
)
def test_who_was_first_is_said_with_the_time_and_the_channel(
    state: QuestionState, by: str, channel: str, sentence: str
):
    told = decided(OPEN._replace(state=state), by, channel, AT)
    assert told == f"{sentence}2027-01-15T08:00:00.000000Z; the first answer counts"


def test_a_question_is_open_until_it_ends():
    assert OPEN.is_open
    for ends in ENDS.values():
        assert not any(OPEN._replace(state=state).is_open for state in ends)


@pytest.mark.rule("approval.editable")
@pytest.mark.parametrize(
    ("kind", "shows", "changes"),
    [
        ("hop", {"action": "delegate", "task": "x"}, "task"),
        ("hop", {"action": "handoff", "task": "x"}, ""),
        ("tool", {"action": "deploy", "arguments": {}}, "arguments"),
        ("tool", {"action": "step", "step": "a"}, ""),
        ("review", {"result": 1}, "result"),
        ("money", {}, "amount"),
        ("ask", {}, ""),
    ],
)
def test_a_question_says_what_a_person_may_change(kind, shows, changes):
    assert editable(kind, shows) == changes


# -- the table ----------------------------------------------------------------------------------------------------


def test_the_events_of_a_question_make_its_row_answer_it_and_use_it_up():
    place = Place("r", "s", "t")
    data = {"question": "q1", "kind": "tool", "text": "deploy?", "choices": [], "digest": "d", "until": AT + 9}
    said = {"question": "q1", "state": "approved", "by": "ann", "channel": "", "why": ""}
    asking, answer, using = journal(
        question_event("question.asked", place, "a", AT, {**data, "expires": "reject"}),
        question_event("question.answered", place, "a", AT + 1, said),
        question_event("question.used", place, "a", AT + 2, {"question": "q1"}),
    )
    row = Question("q1", "r", "s", "t", "a", "tool", "d", AT, AT + 9, "open", "reject", 1, None, 0)
    assert read(asking, QuestionAsked)["text"] == "deploy?"
    assert people.asked(asking) == [Change("question", "add", ("q1",), row._asdict())]
    assert read(answer, QuestionAnswered)["by"] == "ann"
    end = {"id": "q1", "state": "approved", "answered": 2, "task": "t"}
    assert people.answered(answer) == [Change("question", "answer", ("q1",), end)]
    assert people.used(using) == [Change("question", "use", ("q1",), {"id": "q1", "used": 1})]
