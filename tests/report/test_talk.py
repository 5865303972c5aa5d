"""A conversation, read from the journal: what frameworks wrote, as who said what and called which tool."""

from typing import Any

import pytest

from core.made import RESTARTED
from core.make import NOW, SECOND, journal
from remit.core.events import Event, blob_reference
from remit.core.kinds.models import model_answered, model_failed, talk_restarted, tool_done
from remit.core.kinds.tasks import handed as handed_event
from remit.core.kinds.tasks import started
from remit.core.recovery import ModelFailure, ModelTry
from remit.core.values import encode
from remit.report import wire
from remit.report.talk import GONE, TalkLine, Utterance, answer_of, conversations, said_in
from report.events import CODER, LEAD, completed
from report.said import SAID

pytestmark = pytest.mark.rule("show.talk")


def answered(answer: Any, **data: Any) -> Event:
    (event,) = journal(model_answered(LEAD, ModelTry("m"), {"named": "m", "calls": [], **data}, NOW))
    return event._replace(answer=None if answer is None else encode(answer))


def used(answer: Any, **data: Any) -> Event:
    done: Any = {"tool": "look", "call": "c1", "given": "{}", "outcome": "done", **data}
    (event,) = journal(tool_done(LEAD, done, NOW))
    return event._replace(answer=None if answer is None else encode(answer))


def talk(*events: Event, long: dict[int, str] | None = None) -> list[TalkLine]:
    (found,) = conversations([*journal(started(LEAD, NOW)), *events], long or {})
    return found.lines


# -- what frameworks write -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("kept", "said"), SAID)
def test_what_each_framework_writes_is_read_as_who_said_what(kept: Any, said: list[Utterance]):
    assert said_in(kept) == said
    if not isinstance(kept, str):
        assert said_in(encode(kept)) == said or kept is None


# -- events ----------------------------------------------------------------------------------------------------------


def test_a_conversation_begins_with_the_task_and_has_answers_failures_and_results():
    (failure,) = journal(model_failed(LEAD, ModelTry("m"), ModelFailure("rate-limit", 429), NOW))
    (timeout,) = journal(model_failed(LEAD, ModelTry("m"), ModelFailure("timeout"), NOW))
    lines = talk(
        failure,
        timeout,
        answered({"text": "hello"}, usage={"input": 10, "output": 2}, cost=7),
        used([{"n": 1}, "done"], elapsed=5),
        used(["no such file", "failed"], outcome="failed", place="team.py:8 in look"),
        used([{"langgraph": {"message": {"type": "tool", "data": {"content": "there"}}}}, "done"]),
    )
    assert lines == [
        TalkLine(NOW, "model", "m", "no answer: rate-limit (429)", outcome="failed"),
        TalkLine(NOW, "model", "m", "no answer: timeout", outcome="failed"),
        TalkLine(NOW, "prompt", "", "build it"),
        TalkLine(NOW, "model", "m", "hello", tokens=12, credits=7),
        TalkLine(NOW, "tool", "look", '{"n":1}', elapsed=5),
        TalkLine(NOW, "tool", "look", "no such file", outcome="failed", place="team.py:8 in look"),
        TalkLine(NOW, "tool", "look", "there"),
    ]


def test_what_the_record_says_that_a_model_was_told_is_told_and_each_result_once():
    messages = [
        {"role": "user", "content": "build it, with care"},
        {"type": "function_call_output", "call_id": "c1", "output": ""},
        {"type": "function_call_output", "call_id": "c2", "output": "there is no such tool"},
    ]
    first = answered({"text": "hello", "told": encode({"messages": messages, "results": ["c1"]})})
    again = answered({"text": "bye", "told": encode([{"role": "user", "content": "news"}])})
    odd = answered({"text": "what?", "told": "no json"})
    assert [(line.who, line.words) for line in talk(first, again, odd)] == [
        ("prompt", "build it, with care"),
        ("tool", "there is no such tool"),
        ("model", "hello"),
        ("prompt", "news"),
        ("model", "bye"),
        ("model", "no json"),
        ("model", "what?"),
    ]


def test_the_task_is_told_once_if_the_record_does_not_say_what_was_told():
    assert [line.words for line in talk(answered({"text": "a"}), answered({"text": "b"}))] == ["build it", "a", "b"]


def test_a_long_answer_is_read_from_beside_its_event():
    text = encode({"text": "long words"})
    event = answered(None)._replace(seq=7, answer=blob_reference(text))
    assert talk(event, long={7: text})[-1].words == "long words"
    assert talk(event)[-1].words == GONE
    assert answer_of(event) == blob_reference(text)
    assert wire.event(event, text)["answer"] == {"text": "long words"}
    assert wire.event(event._replace(answer="{no json"))["answer"] == "{no json"  # of a damaged store


def test_what_is_gone_from_the_journal_is_said_to_be_gone_and_of_a_tool_the_short_result_is_left():
    assert [line.words for line in talk(answered(None), used(None, result="6 lines"), used([]))] == [
        "build it",
        GONE,
        "6 lines",
        "",
    ]


@pytest.mark.rule("talk.restart")
def test_the_lines_of_a_conversation_that_began_again_are_marked_up_to_the_last_handoff():
    (handed,) = journal(handed_event(LEAD, "coder", NOW, {"update": {}, "content": "d"}))
    (again,) = journal(talk_restarted(LEAD, RESTARTED, NOW))
    lines = talk(answered({"text": "one"}), handed, answered({"text": "two"}), again, answered({"text": "three"}))
    assert [(line.who, line.words, line.lost) for line in lines] == [
        ("prompt", "build it", False),
        ("model", "one", False),
        ("model", "two", True),
        ("restart", "a recorded answer cannot be read", False),
        ("model", "three", False),
    ]
    (stray,) = journal(handed_event(CODER, "tester", NOW, {"update": {}, "content": "d"}))
    assert talk(stray, again)[0].who == "restart"


def test_each_task_has_a_conversation_of_its_own_and_one_without_models_has_none():
    other = model_answered(CODER, ModelTry("m"), {"named": "m", "calls": []}, NOW)
    events = journal(started(LEAD, NOW), started(CODER, NOW), other, completed(LEAD, at=NOW + SECOND))
    (found,) = conversations(events, {})
    assert (found.task, found.agent, found.about) == ("t2", "coder", "part t2")
    assert conversations([event for event in events if event.task == "t1"], {}) == []
    assert conversations([event for event in events if event.kind != "task.started"], {}) == []
    assert wire.conversation(found)["lines"][0]["who"] == "prompt"  # pyright: ignore[reportCallIssue]
