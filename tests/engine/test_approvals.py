"""Approvals: every way to pass work on goes by a person who has to approve it, and what is approved is what is done."""

from collections.abc import Awaitable, Callable

import pytest

from engine.helping import PATIENCE, listening, signed, sound
from engine.people import asked, counted, deployer, running, the_question
from remit import Bounds, Card, Command, Plan, Refused, Runtime, Send, Step, Turn
from remit.errors import BadInput
from remit.testing import FakeClock
from teams import team

pytestmark = pytest.mark.anyio

Door = Callable[[Turn, str], Awaitable[object]]


async def delegate(turn: Turn, task: str) -> object:
    return await turn.delegate("deployer", task)


async def submit(turn: Turn, task: str) -> object:
    return await (await turn.submit("deployer", task)).result(PATIENCE)


async def spawn(turn: Turn, task: str) -> object:
    return await (await turn.spawn("deployer", task)).result(PATIENCE)


async def delegate_all(turn: Turn, task: str) -> object:
    [outcome] = await turn.delegate_all([("deployer", task)])
    if outcome.error is not None:
        raise outcome.error
    return outcome.value


async def hand_off(turn: Turn, task: str) -> object:
    return await turn.hand_off("deployer", {"phase": task})


async def command(turn: Turn, task: str) -> object:
    if turn.handoff.refused:
        raise Refused(turn.handoff.refused, rule="approval")
    return Command("deployer", {"phase": task})


async def sends(turn: Turn, task: str) -> object:
    if not turn.handoff.results:
        return Command([Send("deployer", task)])
    [outcome] = turn.handoff.results
    if outcome.error is not None:
        raise outcome.error
    return outcome.value


async def step(turn: Turn, task: str) -> object:
    outcome = await turn.run_plan(Plan([Step("a", task, agent="deployer")]))
    if not outcome.ok:
        raise Refused(outcome.steps["a"].reason, rule="approval")
    return outcome.steps["a"].value


DOORS: list[Door] = [delegate, submit, spawn, delegate_all, hand_off, command, sends, step]
WORDS = {"spawn": "spawn", "submit": "submit", "hand_off": "handoff", "command": "handoff"}
every_door = pytest.mark.parametrize("door", DOORS, ids=lambda door: door.__name__)


def lead_by(rt: Runtime, door: Door, **card: object) -> None:
    async def lead(turn: Turn) -> object:
        return await door(turn, "to prod")

    rt.add(Card("lead", asks="*", **card), lead)


@pytest.mark.rule("approval.doors")
@every_door
async def test_every_door_asks_a_person_and_goes_on_after_the_approval(rt: Runtime, door: Door):
    told = deployer(rt)
    lead_by(rt, door)
    async with running(rt, "lead", "go") as outcome:
        question = await the_question(rt)
        assert (question.kind, question.agent, question.state) == ("hop", "lead", "open")
        assert question.shows["action"] == WORDS.get(door.__name__, "delegate")
        assert question.shows["agent"] == "deployer"
        assert question.shows["because"] == "'deployer' works only after an approval"
        assert told == []
        await rt.workspace.questions.approve(question.id, by="ann")
    assert str(outcome.result().value).startswith("deployed: ")
    assert len(told) == 1
    assert await counted(rt) == {"asked": 1, "answered": 1, "used": 1}
    await sound(rt)


@pytest.mark.rule("approval.rejected")
@every_door
async def test_a_rejection_is_a_sentence_to_the_agent(rt: Runtime, door: Door):
    told = deployer(rt)
    lead_by(rt, door)
    async with running(rt, "lead", "go") as outcome:
        question = await the_question(rt)
        await rt.workspace.questions.reject(question.id, by="bob", why="freeze")
    assert "asking 'deployer' was not approved by bob: freeze; go on without it" in str(outcome.result().error)
    assert told == []
    assert await counted(rt) == {"asked": 1, "answered": 1, "used": 0}
    assert rt.workspace is not None
    await sound(rt)


@pytest.mark.rule("approval.rejected")
async def test_an_agent_whose_request_is_rejected_can_go_on_without_it(rt: Runtime):
    deployer(rt)

    @rt.agent(asks="*")
    async def lead(turn: Turn) -> str:
        try:
            await turn.delegate("deployer", "to prod")
        except Refused as no:
            return f"{no.rule}: {no}"
        return "deployed"

    async with running(rt, "lead") as outcome:
        await rt.workspace.questions.reject((await the_question(rt)).id)
    assert outcome.result().value == "approval: asking 'deployer' was not approved; go on without it"


@pytest.mark.rule("approval.doors")
async def test_where_no_task_could_wait_nobody_is_asked(rt: Runtime):
    """A person who starts it has decided so; in the name of a card there is nobody to decide."""
    told = deployer(rt)
    rt.add(Card("lead", asks="*"), signed)
    assert await rt.run("deployer", "by a person") == "deployed: by a person"
    assert await (await rt.submit("deployer", "later")).result(PATIENCE) == "deployed: later"
    with pytest.raises(Refused) as no:
        await rt.workspace.submit("deployer", "x", asker="lead")
    assert str(no.value) == (
        "'deployer' works only after an approval, and there is no task that could wait for it; ask a person to start it"
    )
    assert told == ["by a person", "later"]
    assert await counted(rt) == {"asked": 0, "answered": 0, "used": 0}


# -- what it shows -------------------------------------------------------------------------------------------------


@pytest.mark.rule("approval.shows")
async def test_a_question_shows_what_it_permits(clock: FakeClock):
    with team(clock=clock) as rt:
        await rt.workspace.money.grant("$5")
        deployer(rt, tools=["kubectl", "helm"], asks=["auditor"])
        rt.add(Card("auditor"), signed)

        @rt.agent(asks="*")
        async def lead(turn: Turn) -> None:
            await turn.delegate("deployer", "carved", credits="$0.50")
            await turn.delegate("deployer", "capped", within=Bounds(credits="$0.25"))

        async with running(rt, "lead"):
            first = await the_question(rt)
            await rt.workspace.questions.approve(first.id)
            second = await the_question(rt)
            await rt.workspace.questions.approve(second.id)
    assert first.text == "'lead' wants to ask 'deployer': carved"
    assert first.shows == {
        "action": "delegate",
        "agent": "deployer",
        "task": "carved",
        "chain": "lead",
        "because": "'deployer' works only after an approval",
        "tools": ["helm", "kubectl"],
        "asks": ["auditor"],
        "credits": "$0.50",
    }
    assert second.shows["credits"] == "at most $0.25, shared"


# -- exactly this ---------------------------------------------------------------------------------------------------


@pytest.mark.rule("approval.exact", "approval.used")
async def test_an_approval_is_for_one_hop_with_exactly_this_text(rt: Runtime):
    told = deployer(rt)

    @rt.agent(asks="*")
    async def lead(turn: Turn) -> list[str]:
        return [await turn.delegate("deployer", task) for task in ("to prod", "to prod", "to mars")]

    async with running(rt, "lead") as outcome:
        for text in ("to prod", "to prod", "to mars"):  # the same once more is asked about once more
            question = await the_question(rt)
            assert question.shows["task"] == text
            await rt.workspace.questions.approve(question.id)
    assert outcome.result().ok
    assert told == ["to prod", "to prod", "to mars"]
    assert await counted(rt) == {"asked": 3, "answered": 3, "used": 3}


@pytest.mark.rule("approval.exact")
async def test_an_approval_of_one_task_is_none_of_another(rt: Runtime):
    told = deployer(rt)

    @rt.agent(asks="*")
    async def lead(turn: Turn) -> str:
        return await turn.delegate("deployer", "to prod")

    async with running(rt, "lead", "one") as one, running(rt, "lead", "two") as two:
        first, second = await asked(rt, 2)
        assert first.digest != second.digest
        await rt.workspace.questions.approve(first.id)
        await rt.workspace.questions.reject(second.id)
    assert sorted([one.result().state, two.result().state]) == ["completed", "failed"]
    assert told == ["to prod"]


@pytest.mark.rule("approval.edited")
@pytest.mark.parametrize("door", [delegate, submit, spawn, delegate_all, sends], ids=lambda door: door.__name__)
async def test_the_task_is_done_as_it_was_approved_and_what_was_asked_stays_on_record(rt: Runtime, door: Door):
    told = deployer(rt)
    lead_by(rt, door)
    async with running(rt, "lead") as outcome:
        question = await the_question(rt)
        assert question.editable == "task"
        await rt.workspace.questions.approve(question.id, by="ann", value="to test first")
    assert outcome.result().value == "deployed: to test first"
    assert told == ["to test first"]
    kept = await rt.workspace.questions.get(question.id)
    assert (kept.shows["task"], kept.value, kept.used) == ("to prod", "to test first", True)
    assert kept.editable == "", "it is decided"
    assert {status.task for status in await rt.workspace.tasks.list(agent="deployer")} == {"to test first"}
    assert await counted(rt) == {"asked": 1, "answered": 1, "used": 1}
    await sound(rt)


@pytest.mark.rule("approval.edited")
async def test_the_text_of_a_step_is_approved_as_any_other(rt: Runtime):
    told = deployer(rt)
    lead_by(rt, step)
    async with running(rt, "lead") as outcome:
        question = await the_question(rt)
        assert str(question.shows["task"]).startswith("# Task: to prod")
        await rt.workspace.questions.approve(question.id, value="to test first")
    assert (outcome.result().value, told) == ("deployed: to test first", ["to test first"])


@pytest.mark.rule("approval.edited", "approval.editable", "ask.input")
@pytest.mark.parametrize("door", [hand_off, command], ids=lambda door: door.__name__)
async def test_a_task_that_is_handed_over_stays_what_it_is(rt: Runtime, door: Door):
    """Nothing that was approved in other words is done in the old ones."""
    told = deployer(rt)
    lead_by(rt, door)
    async with running(rt, "lead", "the whole") as outcome:
        question = await the_question(rt)
        assert question.editable == ""
        with pytest.raises(BadInput) as no:
            await rt.workspace.questions.approve(question.id, value="only a part")
        assert str(no.value) == (
            f"question {question.id} is about handing a task over, which stays as it is; "
            "approve it without a value, or reject it and say why"
        )
        assert (await rt.workspace.questions.get(question.id)).state == "open"
        await rt.workspace.questions.approve(question.id)
    assert (outcome.result().value, told) == ("deployed: the whole", ["the whole"])


@pytest.mark.rule("approval.doors", "ask.once")
@pytest.mark.parametrize("later", [False, True], ids=["at first", "after a handoff"])
async def test_who_joins_the_parts_is_asked_about_once_before_anyone_works(rt: Runtime, later: bool):
    told, worked = deployer(rt), listening(rt, "part")["part"]

    @rt.agent(asks="*")
    async def lead(turn: Turn) -> object:
        return Command([Send("part", "a"), Send("part", "b")], {"phase": "joined"}, join="deployer")

    @rt.agent(asks="*")
    async def first(turn: Turn) -> object:
        return Command("lead")

    async with running(rt, "first" if later else "lead") as outcome:
        question = await the_question(rt)
        assert (question.shows["action"], worked) == ("handoff", [])
        await rt.workspace.questions.approve(question.id)
    assert outcome.result().value == "deployed: go"
    assert (told, sorted(worked)) == (["go"], ["a", "b"])
    assert await counted(rt) == {"asked": 1, "answered": 1, "used": 1}
    await sound(rt)
