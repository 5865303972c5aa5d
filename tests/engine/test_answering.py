"""Questions in code: a function that answers a run, a loop over what is asked, and channels of a foreground run."""

import asyncio
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import anyio
import pytest

import remit
from engine.helping import PATIENCE, found, quiet, sound, until
from remit import Failed, Plan, Refused, Runtime, Step, Turn
from remit.core.question import Inquiry, Reply
from remit.engine.system import TimedIds
from remit.errors import BadInput, Conflict
from remit.ports import Desk
from remit.testing import FakeClock
from remit.types import AskedQuestion
from teams import team

pytestmark = pytest.mark.anyio


async def which(turn: Turn) -> str:
    return await turn.ask_human("Which?", ["red", "blue"])


async def deploy(turn: Turn) -> Any:
    try:
        return await turn.ask_approval("deploy", {"env": "prod"})
    except Refused as no:
        return str(no)


@pytest.mark.rule("ask.code")
async def test_a_function_answers_what_a_run_asks(anywhere: Runtime):
    anywhere.agent(which)
    asked: list[AskedQuestion] = []

    async def answer(question: AskedQuestion) -> str:
        asked.append(question)
        return "blue"

    assert await anywhere.run("which", "paint", on_question=answer, by="ann") == "blue"
    assert [(one.text, one.choices, one.agent) for one in asked] == [("Which?", ("red", "blue"), "which")]
    [decided] = await anywhere.workspace.questions.list(decided=True)
    assert (decided.value, decided.by, decided.channel) == ("blue", "ann", "code")
    await sound(anywhere)


@pytest.mark.rule("ask.code")
async def test_a_plain_function_answers_in_a_thread_that_keeps_no_process(rt: Runtime):
    rt.agent(which)
    threads: list[threading.Thread] = []
    ended = threading.Event()

    def answer(question: AskedQuestion) -> str:
        threads.append(threading.current_thread())
        return question.choices[0]

    def wait(question: AskedQuestion) -> bool:
        threads.append(threading.current_thread())
        return ended.wait(PATIENCE)

    assert await rt.run("which", "paint", on_question=answer) == "red"
    run = asyncio.create_task(rt.run("which", "paint", on_question=wait))
    await until(lambda: len(threads) == 2)
    run.cancel()
    await asyncio.gather(run, return_exceptions=True)
    assert [thread.daemon for thread in threads] == [True, True]
    ended.set()
    await asyncio.to_thread(threads[1].join, PATIENCE)


class Polite:
    async def __call__(self, question: AskedQuestion) -> bool:
        return question.kind == "tool"


DECISIONS: dict[str, tuple[Callable[[AskedQuestion], Any], Any]] = {
    "true": (lambda _: True, {"env": "prod"}),
    "yes": (lambda _: "Yes", {"env": "prod"}),
    "false": (lambda _: False, "'deploy' was not approved; go on without it"),
    "no": (lambda _: "no", "'deploy' was not approved; go on without it"),
    "rejects it itself": (lambda one: one.reject("freeze"), "'deploy' was not approved: freeze; go on without it"),
    "changes it itself": (lambda one: one.approve({"env": "test"}, by="bob"), {"env": "test"}),
    "an object": (Polite(), {"env": "prod"}),
}


@pytest.mark.rule("ask.code")
@pytest.mark.parametrize(("answer", "comes"), DECISIONS.values(), ids=[*DECISIONS])
async def test_a_function_decides_an_approval(rt: Runtime, answer: Any, comes: object):
    rt.agent(deploy)
    assert await rt.run("deploy", "go", on_question=answer) == comes


@pytest.mark.rule("ask.code")
async def test_true_and_false_mean_the_choices_yes_and_no(rt: Runtime):
    @rt.agent
    async def sure(turn: Turn) -> str:
        return await turn.ask_human("Sure?", ["Yes", "No"])

    assert await rt.run("sure", "go", on_question=lambda _: True) == "Yes"
    assert await rt.run("sure", "go", on_question=lambda _: False) == "No"


async def exits(_: AskedQuestion) -> None:
    sys.exit(2)


ERRORS: dict[str, tuple[Any, Callable[[AskedQuestion], Any], str]] = {
    "it raises": (which, lambda _: 1 / 0, "division by zero in on_question"),
    "it exits": (which, lambda _: sys.exit(2), "SystemExit: 2 in on_question"),
    "it exits later": (which, exits, "SystemExit: 2 in on_question"),
    "none of the choices": (which, lambda _: "green", "'green' is none of the answers"),
    "a bool for a text": (which, lambda _: True, "wants a text, and on_question returned True"),
    "a number for a text": (which, lambda _: 7, "an answer must be text, not int"),
    "a text for an approval": (deploy, lambda _: "perhaps", "answers an approval with True or False, not with 'perha"),
}


@pytest.mark.rule("ask.code")
@pytest.mark.parametrize(("agent", "answer", "says"), ERRORS.values(), ids=[*ERRORS])
async def test_an_error_of_the_function_fails_the_run(rt: Runtime, agent: Any, answer: Any, says: str):
    rt.agent("agent")(agent)
    with pytest.raises(Failed) as failed:
        await rt.run("agent", "go", on_question=answer)
    assert says in str(failed.value)
    assert isinstance(failed.value.__cause__, ZeroDivisionError | SystemExit | BadInput)
    [question] = await rt.workspace.questions.list(decided=True)
    assert question.state == "withdrawn"
    await sound(rt)


@pytest.mark.rule("ask.code")
async def test_none_leaves_the_question_to_others(rt: Runtime):
    rt.agent(which)
    asked: list[str] = []

    async def elsewhere() -> None:
        await until(lambda: asked)
        await rt.workspace.questions.answer(asked[0], "red", by="bob")

    async with anyio.create_task_group() as group:
        group.start_soon(elsewhere)
        assert await rt.run("which", "paint", on_question=lambda question: asked.append(question.id)) == "red"


@pytest.mark.rule("ask.code")
async def test_a_function_that_waits_is_cancelled_when_another_answer_comes(rt: Runtime):
    rt.agent(which)
    left: list[str] = []

    async def slow(question: AskedQuestion) -> None:
        try:
            await rt.workspace.questions.answer(question.id, "red", by="bob")
            await anyio.sleep_forever()
        finally:
            left.append(question.id)

    with anyio.fail_after(PATIENCE):
        assert await rt.run("which", "paint", on_question=slow) == "red"
    assert len(left) == 1


@pytest.mark.rule("ask.code")
async def test_questions_of_one_run_come_one_after_the_other_and_of_others_not_at_all(rt: Runtime):
    rt.agent(which)
    at_once: list[int] = []
    running: list[str] = []

    @rt.agent(asks=["which"])
    async def lead(turn: Turn) -> list[Any]:
        outcomes = await turn.delegate_all([remit.Pass("which", f"door {number}") for number in range(5)])
        return [outcome.value for outcome in outcomes]

    async def answer(question: AskedQuestion) -> str:
        running.append(question.id)
        at_once.append(len(running))
        await quiet_moment()
        running.remove(question.id)
        return "blue"

    async with anyio.create_task_group() as group:
        group.start_soon(rt.outcome, "which", "of another run")
        assert await rt.run("lead", "go", on_question=answer) == ["blue"] * 5
        [other] = await rt.workspace.questions.list()
        await rt.workspace.questions.answer(other.id, "red")
    assert at_once == [1] * 5


async def quiet_moment() -> None:
    for _ in range(5):
        await anyio.lowlevel.checkpoint()


@pytest.mark.rule("ask.code")
async def test_plans_teams_and_streams_take_the_function_too(rt: Runtime):
    rt.agent(which)

    @rt.agent(asks=["which"])
    async def lead(turn: Turn) -> str:
        return "told"

    def answer(_: AskedQuestion) -> str:
        return "blue"

    plan = Plan([Step("one", "paint", agent="which")])
    outcome = await rt.run_plan(plan, on_question=answer)
    assert [step.value for step in outcome.steps.values()] == ["blue"]
    assert await rt.run_team("paint", "lead", plan=plan, on_question=answer) == "told"
    last = [one async for one in rt.stream("which", "paint", on_question=answer)][-1]
    assert isinstance(last, remit.Outcome)
    assert last.value == "blue"


@pytest.mark.rule("ask.code")
async def test_what_is_no_function_is_refused_and_so_is_a_function_for_the_queue(rt: Runtime):
    rt.agent(which)
    with pytest.raises(BadInput, match="on_question is a function"):
        await rt.run("which", "paint", on_question="blue")  # pyright: ignore[reportArgumentType]
    with pytest.raises(BadInput, match="on_question"):
        await rt.submit("which", "paint", on_question=print)  # pyright: ignore[reportCallIssue]


# -- asked ------------------------------------------------------------------------------------------------------


@pytest.mark.rule("ask.loop")
async def test_a_loop_gets_the_open_questions_first_and_then_each_that_is_asked(anywhere: Runtime):
    anywhere.agent(which)
    anywhere.agent(deploy)
    results: list[Any] = []
    kinds: list[str] = []

    async def run(agent: str) -> None:
        results.append(await anywhere.run(agent, "go"))

    async with anyio.create_task_group() as group:
        group.start_soon(run, "which")
        with anyio.fail_after(PATIENCE):
            await found(anywhere, lambda view: view.questions_open(1) or None)
            async for question in anywhere.workspace.questions.asked():
                kinds.append(question.kind)
                if question.kind == "tool":
                    await question.approve({"env": "test"}, by="ann")
                    break
                await question.answer("red", by="ann")
                with pytest.raises(Conflict, match="answered by ann over code"):
                    await question.answer("blue", by="bob")
                group.start_soon(run, "deploy")
    assert kinds == ["ask", "tool"]
    assert results == ["red", {"env": "test"}]


@pytest.mark.rule("ask.loop")
async def test_a_loop_gets_what_another_process_asks_and_each_question_once(tmp_path: Path):
    with team(tmp_path / "team.db", ids=TimedIds()) as asker, team(tmp_path / "team.db", ids=TimedIds()) as other:
        asker.agent(which)
        answered: list[str] = []

        async def answer() -> None:
            async for question in other.workspace.questions.asked():
                answered.append(question.id)
                await question.answer("blue")

        async with anyio.create_task_group() as group:
            group.start_soon(answer)
            with anyio.fail_after(PATIENCE):
                assert [await asker.run("which", f"door {number}") for number in range(3)] == ["blue"] * 3
            group.cancel_scope.cancel()
        assert len(set(answered)) == len(answered) == 3


# -- channels of a foreground run ---------------------------------------------------------------------------------


class Phone:
    """A channel that tells and hears; it answers each question that it was told with the first choice."""

    name = "phone"

    def __init__(self) -> None:
        self.told: list[str] = []
        self.listening = 0
        self._rings = asyncio.Event()

    async def tell(self, _workspace: str, inquiry: Inquiry) -> str:
        self.told.append(inquiry.id)
        self._rings.set()
        return "m1"

    async def listen(self, desk: Desk) -> None:
        self.listening += 1
        try:
            await self._rings.wait()
            await desk.answer(self.told[-1], Reply("answered", "ann", "phone", value="red"))
            await anyio.sleep_forever()
        finally:
            self.listening -= 1


def calling(where: Any, clock: FakeClock | None, phone: Phone, **how: Any) -> Runtime:
    rt = team(where, clock=clock, channels=[phone], **how)
    rt.agent(which)
    return rt


@pytest.fixture(params=["memory", "file", "postgres"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[[], Any]:
    if request.param == "postgres":
        return lambda: request.getfixturevalue("address")
    return lambda: ":memory:" if request.param == "memory" else tmp_path / "team.db"


@pytest.mark.rule("channel.foreground")
async def test_a_foreground_run_tells_its_questions_to_the_channels_and_hears_the_answer(place: Any, clock: FakeClock):
    phone = Phone()
    with calling(place(), clock, phone) as rt, anyio.fail_after(PATIENCE):
        assert await rt.run("which", "paint") == "red"
        [question] = await rt.workspace.questions.list(decided=True)
        assert (question.channel, question.by) == ("phone", "ann")
        assert phone.told == [question.id]
        assert phone.listening == 0
        await sound(rt)


@pytest.mark.rule("channel.foreground")
async def test_a_run_that_asks_nothing_does_not_listen(tmp_path: Path, clock: FakeClock):
    phone = Phone()
    with calling(tmp_path / "team.db", clock, phone) as rt:

        @rt.agent
        async def heard(turn: Turn) -> int:
            await quiet_moment()
            return phone.listening

        assert await rt.run("heard", "hello") == 0


@pytest.mark.rule("channel.foreground")
async def test_a_foreground_run_leaves_questions_of_other_processes_to_their_workers(tmp_path: Path):
    phone, other = Phone(), Phone()
    with (
        calling(tmp_path / "team.db", None, phone, ids=TimedIds()) as one,
        calling(tmp_path / "team.db", None, other, ids=TimedIds()) as two,
        anyio.fail_after(PATIENCE),
    ):
        results: list[str] = []

        async def run(rt: Runtime) -> None:
            results.append(await rt.run("which", "paint"))

        async with anyio.create_task_group() as group:
            group.start_soon(run, one)
            group.start_soon(run, two)
        assert results == ["red", "red"]
        assert len(phone.told) == len(other.told) == 1
        assert phone.told != other.told


@pytest.mark.rule("channel.foreground", "channel.one")
async def test_with_a_worker_beside_it_a_question_is_told_once(tmp_path: Path, clock: FakeClock):
    phone = Phone()
    with calling(tmp_path / "team.db", clock, phone) as rt, anyio.fail_after(PATIENCE):
        async with rt.serving():
            assert await rt.run("which", "paint") == "red"
            await quiet()
            assert phone.listening == 1
        assert len(phone.told) == 1
        assert phone.listening == 0
