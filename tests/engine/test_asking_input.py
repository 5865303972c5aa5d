"""What cannot be asked or answered is said, and a question of another workspace is not found."""

from collections.abc import Callable

import pytest

from engine.people import counted, running, the_question
from remit import Runtime, Turn
from remit.errors import BadInput, NotFound
from remit.settings import Policy
from remit.testing import FakeClock
from teams import team

pytestmark = pytest.mark.anyio


@pytest.mark.rule("answer.workspace")
async def test_a_question_of_another_workspace_is_not_found(tmp_path, clock: FakeClock):
    with (
        team(tmp_path / "team.db", clock=clock, workspace="acme") as acme,
        team(tmp_path / "team.db", clock=clock, workspace="other") as other,
    ):

        @acme.agent
        async def lead(turn: Turn) -> str:
            return await turn.ask_human("Which?")

        async with running(acme, "lead") as outcome:
            question = await the_question(acme)
            missing = f"there is no question '{question.id}' in this workspace; `remit approvals` lists what is open"
            for attempt in (
                other.workspace.questions.answer(question.id, "mine"),
                other.workspace.questions.approve(question.id),
                other.workspace.questions.reject(question.id),
                other.workspace.questions.get(question.id),
            ):
                with pytest.raises(NotFound) as no:
                    await attempt
                assert str(no.value) == missing
            assert await other.workspace.questions.list() == []
            await acme.workspace.questions.answer(question.id, "ours")
        assert outcome.result().value == "ours"


BAD_VERBS: list[tuple[Callable[[Turn], object], str]] = [
    (lambda turn: turn.ask_human(""), "a question must not be empty"),
    (lambda turn: turn.ask_human("x", "red"), "choices is a list of answers"),  # pyright: ignore[reportArgumentType]
    (lambda turn: turn.ask_human("x", ["a"], default="b"), "the default 'b' is none of the choices"),
    (lambda turn: turn.ask_human("x", timeout=0), "timeout"),
    (lambda turn: turn.ask_human("x", timeout=-1), "timeout"),
    (lambda turn: turn.ask_human("x", timeout=True), "timeout"),
    (lambda turn: turn.ask_human("x", timeout=float("nan")), "timeout"),
    (lambda turn: turn.ask_human("x", timeout="soon"), "timeout"),  # pyright: ignore[reportArgumentType]
    (lambda turn: turn.ask_approval(""), "an action must not be empty"),
    (lambda turn: turn.ask_approval("two\nlines"), "an action must be one line"),
    (lambda turn: turn.ask_approval("x", ["a"]), "the arguments of an action are a dict, not ['a']"),  # pyright: ignore[reportArgumentType]
    (lambda turn: turn.ask_approval("x", {"a": object()}), "the arguments of an action"),  # pyright: ignore[reportArgumentType]
]


@pytest.mark.rule("ask.input")
@pytest.mark.parametrize(("verb", "sentence"), BAD_VERBS)
async def test_what_cannot_be_asked_is_told_to_the_agent_and_nobody_is_asked(
    clock: FakeClock, verb: Callable[[Turn], object], sentence: str
):
    with team(clock=clock) as rt:

        @rt.agent
        async def lead(turn: Turn) -> str:
            with pytest.raises(BadInput) as no:
                await verb(turn)  # pyright: ignore[reportGeneralTypeIssues]
            return str(no.value)

        assert (await rt.run("lead", "go")).startswith(sentence)
        assert await counted(rt) == {"asked": 0, "answered": 0, "used": 0}


@pytest.mark.rule("ask.input")
async def test_what_is_no_answer_leaves_the_question_open(rt: Runtime):
    @rt.agent
    async def lead(turn: Turn) -> object:
        return [await turn.ask_human("Which?", ["red", "blue"]), await turn.ask_approval("deploy", {"a": 1})]

    workspace = rt.workspace
    async with running(rt, "lead") as outcome:
        ask = (await the_question(rt)).id
        for bad, sentence in (
            (workspace.questions.answer(ask, "green"), f"'green' is none of the answers to {ask}: red, blue"),
            (workspace.questions.answer(ask, ""), "an answer must not be empty"),
            (workspace.questions.answer(ask, 5), "an answer must be text, not int: 5"),  # pyright: ignore[reportArgumentType]
            (
                workspace.questions.approve(ask),
                f"question {ask} asks for an answer, not for an approval; run `remit answer`",
            ),
            (workspace.questions.answer(ask, "red", by="two\nlines"), "by must be one line of printable characters"),
            (workspace.questions.reject(ask, why="x" * 501), "why has at most 500 characters, got 501"),
            (workspace.questions.reject(ask, by=None), "by must be text, not NoneType: None"),  # pyright: ignore[reportArgumentType]
            (workspace.questions.reject(ask, channel="x\n"), "channel must be one line of printable characters"),
            (workspace.questions.answer("", "red"), "a question's id must not be empty"),
            (workspace.questions.get("two\nlines"), "a question's id must be one line"),
            (workspace.questions.list(limit=0), "limit"),
        ):
            with pytest.raises(BadInput) as no:
                await bad
            assert str(no.value).startswith(sentence)
        await workspace.questions.answer(ask, "red")
        tool = (await the_question(rt)).id
        for bad, sentence in (
            (workspace.questions.answer(tool, "yes"), f"question {tool} asks for an approval; run `remit approve` or"),
            (
                workspace.questions.approve(tool, value="prod"),
                "the arguments of a tool, as they are approved, are a JSON object",
            ),
            (
                workspace.questions.approve(tool, value=["prod"]),
                "the arguments of a tool, as they are approved, are a JSON object",
            ),
            (workspace.questions.approve(tool, value={"a": object()}), "the arguments of a tool"),  # pyright: ignore[reportArgumentType]
        ):
            with pytest.raises(BadInput) as no:
                await bad
            assert str(no.value).startswith(sentence)
        assert (await workspace.questions.get(tool)).state == "open"
        await workspace.questions.approve(tool)
    assert outcome.result().value == ["red", {"a": 1}]
    for nobody in (workspace.questions.answer("q0", "x"), workspace.questions.get("q0")):
        with pytest.raises(NotFound):
            await nobody


@pytest.mark.rule("ask.input")
@pytest.mark.parametrize(
    ("how", "sentence"),
    [
        ({"needs_approval": 5}, "needs_approval is a function from a WantedHop to True, False or a reason, not 5"),
        ({"on_no_answer": "maybe"}, "on_no_answer is 'reject' or 'approve', not 'maybe'"),
        ({"answer_days": 0}, "answer_days"),
        ({"answer_days": float("nan")}, "answer_days"),
        ({"answer_days": True}, "answer_days"),
    ],
)
def test_a_policy_that_cannot_be_is_refused(how: dict[str, object], sentence: str):
    with pytest.raises(BadInput) as no:
        Policy(**how)  # pyright: ignore[reportArgumentType]
    assert str(no.value).startswith(sentence)


@pytest.mark.rule("ask.input")
def test_who_decides_about_hops_is_a_plain_function():
    async def later(wanted: object) -> bool:
        return False

    with pytest.raises(BadInput) as no:
        Policy(needs_approval=later)  # pyright: ignore[reportArgumentType]
    assert str(no.value) == "needs_approval is a plain function, not an async one: it is asked while a hop is decided"
