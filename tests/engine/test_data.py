"""A task may be a JSON value, with a text next to it."""

import json
from dataclasses import dataclass
from typing import Any

import pytest

from engine.people import running, the_question
from remit import Command, Failed, Pass, Plan, Runtime, Send, Step, Turn, errors
from remit.adapters.process import program
from remit.core.card import Card
from remit.settings import Policy
from remit.testing.models import ModelRequest, Says, model_server

pytestmark = pytest.mark.anyio

ORDER = {"order": 7, "lines": ["blue", "red"]}
AS_TEXT = '{"lines":["blue","red"],"order":7}'


@dataclass
class Order:
    order: int
    lines: list[str]


def reading(rt: Runtime, name: str = "checker") -> None:
    """Add an agent that returns what it was given."""

    @rt.agent(name)
    async def reads(turn: Turn) -> object:
        return [turn.task, turn.data]


@pytest.mark.rule("task.data")
async def test_every_way_to_ask_takes_a_value_next_to_the_text(rt: Runtime):
    reading(rt)

    @rt.agent(asks="*")
    async def desk(turn: Turn) -> object:
        results = [await turn.delegate("checker", "delegated", data=ORDER)]
        [one] = await turn.delegate_all([Pass("checker", "passed", data=Order(7, ["blue", "red"]))])
        results.append(one.unwrap())
        submitted = await turn.submit("checker", "submitted", data=ORDER)
        spawned = await turn.spawn("checker", "spawned", data=ORDER)
        return [*results, await submitted.result(), await spawned.result()]

    words = ["delegated", "passed", "submitted", "spawned"]
    assert await rt.run("desk", "go") == [[word, ORDER] for word in words]
    assert await rt.run("checker", "run", data=ORDER) == ["run", ORDER]
    assert await (await rt.submit("checker", "queued", data=ORDER)).result() == ["queued", ORDER]


@pytest.mark.rule("task.data")
async def test_a_task_may_be_the_value_alone(rt: Runtime):
    reading(rt)
    assert await rt.run("checker", data=ORDER) == [AS_TEXT, ORDER]
    assert await rt.run("checker", data=0) == ["0", 0]
    assert await rt.run("checker", "text alone") == ["text alone", None]


@pytest.mark.rule("task.data")
async def test_an_agent_reads_the_value_as_an_object_of_its_type(rt: Runtime):
    @rt.agent
    async def typed(turn: Turn) -> object:
        order = turn.data_as(Order)
        assert isinstance(order, Order)
        return order.lines[0]

    assert await rt.run("typed", "read it", data=ORDER) == "blue"
    with pytest.raises(Failed, match=r"the data of the task of 'typed'.*order"):
        await rt.run("typed", "read it", data={"order": "seven", "lines": []})
    with pytest.raises(Failed, match="the data of the task of 'typed'"):
        await rt.run("typed", "read it")


@pytest.mark.rule("task.data")
@pytest.mark.parametrize(
    ("task", "data", "says"),
    [
        ("x", {"lines": [{1}]}, r"data has a set at lines\[0\]; use a list"),
        ("x", object(), "data is not JSON"),
        (ORDER, None, r"a task must be text, not dict: .*; pass a value as data="),
        ("", None, "a task must not be empty"),
        ("x" * 1_048_570, ORDER, "a task has at most 1,048,576 characters, its data as JSON included"),
    ],
    ids=["a set", "an object", "a value as text", "neither", "too long"],
)
async def test_a_value_that_cannot_be_one_is_an_error_that_says_where(rt: Runtime, task: Any, data: object, says: str):
    reading(rt)
    with pytest.raises(errors.BadInput, match=says):
        await rt.run("checker", task, data=data)


@pytest.mark.rule("task.data")
async def test_the_value_belongs_to_what_makes_two_tasks_the_same(rt: Runtime):
    reading(rt)
    first = await rt.submit("checker", "check", data=ORDER, same_within=300)
    again = await rt.submit("checker", "check", data={"lines": ["blue", "red"], "order": 7}, same_within=300)
    other = await rt.submit("checker", "check", data={**ORDER, "order": 8}, same_within=300)
    as_text = await rt.submit("checker", f"check\n\n{AS_TEXT}", same_within=300)
    assert again.id == first.id
    assert len({first.id, other.id, as_text.id}) == 3
    assert await as_text.result() == [f"check\n\n{AS_TEXT}", None]


@pytest.mark.rule("task.data")
async def test_a_changed_copy_changes_nothing_and_a_retry_reads_the_same_value(rt: Runtime):
    @rt.agent
    async def clumsy(turn: Turn) -> object:
        data: Any = turn.data
        data["order"] = 99
        if fails:
            raise ValueError(fails.pop())
        return turn.data

    fails = ["once"]
    task = await rt.submit("clumsy", "go", data=ORDER)
    with pytest.raises(Failed, match="once"):
        await task.result()
    again = await rt.workspace.tasks.retry(task.id)
    assert await again.result() == ORDER
    fork = await rt.workspace.fork(task.id, task="other words")
    assert await fork.result() == ORDER


@pytest.mark.rule("task.data")
async def test_a_handoff_keeps_the_value_and_parts_have_their_own(rt: Runtime):
    reading(rt)

    @rt.agent(asks="*")
    async def front(turn: Turn) -> object:
        if turn.handoff.results:
            return [one.value for one in turn.handoff.results] + [turn.data]
        if turn.task == "hand it over":
            return Command("checker")
        return Command([Send("checker", {"part": 1}), Send("checker", "beside", {"part": 2}), Send("checker", "text")])

    assert await rt.run("front", "hand it over", data=ORDER) == ["hand it over", ORDER]
    parts = [['{"part":1}', {"part": 1}], ["beside", {"part": 2}], ["text", None], ORDER]
    assert await rt.run("front", "split it", data=ORDER) == parts


@pytest.mark.rule("task.data")
async def test_a_step_of_a_plan_has_its_own_value(rt: Runtime):
    reading(rt)
    outcome = await rt.run_plan(Plan([Step("a", "Check", "check it", agent="checker", data=ORDER)]))
    found: Any = outcome.steps["a"].value
    assert found[1] == ORDER
    assert AS_TEXT not in found[0]
    queued = await rt.submit_plan(Plan([Step("b", "Check", agent="checker", data=ORDER)]))
    found = (await queued.plan_outcome()).steps["b"].value
    assert found[1] == ORDER
    with pytest.raises(errors.BadInput, match="the data of step 'c' has a set at a"):
        Step("c", "Check", agent="checker", data={"a": {1}})


@pytest.mark.rule("task.data")
async def test_the_journal_has_the_value_once_and_lists_show_it(rt: Runtime):
    reading(rt)
    outcome = await rt.outcome("checker", "check this", data=ORDER)
    [began] = [event for event in await rt.workspace.journal.history() if event.kind == "task.started"]
    assert (began.data["task"], began.data["data"]) == ("check this", ORDER)
    whole = f"check this\n\n{AS_TEXT}"
    tree = await rt.workspace.tree(outcome.id)
    assert tree is not None
    assert tree.task == whole
    assert [one.task for one in await rt.workspace.tasks.list(text="blue")] == [whole]


@pytest.mark.rule("task.data")
async def test_secrets_in_the_value_are_not_written_even_if_json_escapes_them():
    with Runtime(secrets=['pass"word\\1']) as rt:
        reading(rt)
        await rt.run("checker", "check", data={"key": 'the pass"word\\1 of ann'})
        written = json.dumps([event.data for event in await rt.workspace.journal.history()])
    assert "word" not in written.replace("[secret]", "")
    assert "the [secret] of ann" in written


@pytest.mark.rule("task.data", "approval.edited")
@pytest.mark.parametrize("verb", ["delegate", "submit"])
@pytest.mark.parametrize(
    ("edited", "becomes"),
    [
        (None, ["check", ORDER]),
        ("check twice", ["check twice", ORDER]),
        ('check\n\n{ "order": 8 }', ["check", {"order": 8}]),
        ('{"order": 9}', ['{"order":9}', {"order": 9}]),
        ("check\n\n[NaN]", ["check\n\n[NaN]", ORDER]),
    ],
)
async def test_a_person_sees_the_value_and_may_change_it(rt: Runtime, verb: str, edited: str | None, becomes: object):
    rt.add(Card("checker", needs_approval=True), lambda turn: [turn.task, turn.data])

    @rt.agent(asks="*")
    async def desk(turn: Turn) -> object:
        if verb == "delegate":
            return await turn.delegate("checker", "check", data=ORDER)
        return await (await turn.submit("checker", "check", data=ORDER)).result()

    async with running(rt, "desk") as outcome:
        question = await the_question(rt)
        assert question.shows["task"] == f"check\n\n{AS_TEXT}"
        await rt.workspace.questions.approve(question.id, value=edited)
    assert outcome.result().value == becomes


@pytest.mark.rule("task.data")
async def test_a_program_reads_the_value_below_the_text(rt: Runtime):
    rt.add(Card("cat"), program(["cat"]))
    assert await rt.run("cat", "check this", data=ORDER) == f"check this\n\n{AS_TEXT}"
    assert await rt.run("cat", data=ORDER) == AS_TEXT


@pytest.mark.rule("task.data")
async def test_a_model_reads_the_value_fenced_and_quoted_if_it_is_untrusted(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("KEY_A", "a")
    asked: list[str] = []

    def plays(request: ModelRequest) -> Says:
        asked.append(request.text)
        return Says("done")

    async with model_server(plays) as server, Runtime() as rt:
        rt.model_agent("clerk", "openai-chat:gpt-5", base_url=f"{server.url}/v1", keys=["KEY_A"])
        await rt.run("clerk", "check this", data=ORDER)
        await rt.run("clerk", data=ORDER)
        await rt.run("clerk", "check this", data=ORDER, trust="untrusted")
    fence = f"```json\n{AS_TEXT}\n```"
    assert asked[:2] == [f"check this\n\n{fence}", fence]
    assert f"> check this\n> \n> {AS_TEXT}" in asked[2]
    assert "```" not in asked[2]


@pytest.mark.rule("task.data")
async def test_a_classifier_reads_the_value_below_the_text():
    read: list[str] = []

    def classify(task: str) -> str:
        read.append(task)
        return "simple"

    with Runtime(policy=Policy(classify=classify)) as rt:
        reading(rt)
        await rt.run("checker", "check", data=ORDER)
        await rt.run("checker", "check")
    assert read == [f"check\n\n{AS_TEXT}", "check"]
