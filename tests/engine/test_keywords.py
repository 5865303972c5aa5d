"""A keyword that a verb does not take is told, with the one that was meant."""

from collections.abc import Awaitable, Callable

import pytest

from remit import Card, Plan, Runtime, Step, Turn, Workspace
from remit.errors import BadInput
from teams import echo

pytestmark = pytest.mark.anyio

PLAN = Plan([Step("a", "A", agent="coder")])

PEOPLE: dict[str, Callable[[Runtime], Awaitable[object]]] = {
    "run": lambda rt: rt.run("coder", "x", timeot=5),  # pyright: ignore[reportCallIssue]
    "submit": lambda rt: rt.submit("coder", "x", timeot=5),  # pyright: ignore[reportCallIssue]
    "run_plan": lambda rt: rt.run_plan(PLAN, timeot=5),  # pyright: ignore[reportCallIssue]
    "run_team": lambda rt: rt.run_team("a goal", "coder", timeot=5),  # pyright: ignore[reportCallIssue]
}
AGENTS: dict[str, Callable[[Turn], Awaitable[object]]] = {
    "delegate": lambda turn: turn.delegate("coder", "x", timeot=5),  # pyright: ignore[reportCallIssue]
    "delegate_all": lambda turn: turn.delegate_all([("coder", "x")], timeot=5),  # pyright: ignore[reportCallIssue]
    "submit": lambda turn: turn.submit("coder", "x", timeot=5),  # pyright: ignore[reportCallIssue]
    "spawn": lambda turn: turn.spawn("coder", "x", timeot=5),  # pyright: ignore[reportCallIssue]
}


@pytest.mark.rule("input.keywords")
@pytest.mark.parametrize("verb", PEOPLE)
async def test_a_person_is_told_which_keyword_was_meant(rt: Runtime, verb: str):
    rt.add(Card("coder", asks="*"), echo)
    with pytest.raises(BadInput, match=f"^{verb} takes no 'timeot'; did you mean timeout\\? It takes .*, within"):
        await PEOPLE[verb](rt)
    assert await rt.workspace.journal.history() == []


@pytest.mark.rule("input.keywords")
@pytest.mark.parametrize("verb", AGENTS)
async def test_an_agent_is_told_which_keyword_was_meant(rt: Runtime, verb: str):
    rt.add(Card("coder"), echo)

    @rt.agent(asks="*")
    async def lead(turn: Turn) -> str:
        with pytest.raises(BadInput, match=f"^{verb} takes no 'timeot'; did you mean timeout\\?"):
            await AGENTS[verb](turn)
        return "told"

    assert await rt.run("lead", "go") == "told"
    assert await rt.workspace.tasks.list(agent="coder") == []


@pytest.mark.rule("input.keywords")
async def test_a_plan_of_an_agent_is_told_too(rt: Runtime):
    rt.add(Card("coder"), echo)

    @rt.agent(asks="*")
    async def lead(turn: Turn) -> str:
        with pytest.raises(BadInput, match="^run_plan takes no 'concurency'; did you mean concurrency"):
            await turn.run_plan(PLAN, concurency=2)  # pyright: ignore[reportCallIssue]
        return "told"

    assert await rt.run("lead", "go") == "told"


@pytest.mark.rule("input.keywords")
def test_a_card_is_told_before_anything_is_registered(rt: Runtime):
    with pytest.raises(BadInput, match="^agent takes no 'ask'; did you mean asks"):

        @rt.agent("coder", ask="*")  # pyright: ignore[reportCallIssue]
        async def coder(turn: Turn) -> None: ...

    with pytest.raises(BadInput, match="^agent takes no 'zzz'") as told:
        rt.agent(zzz=1)  # pyright: ignore[reportCallIssue]
    assert "did you mean" not in str(told.value)
    assert rt.cards() == []


@pytest.mark.rule("input.keywords")
@pytest.mark.parametrize(
    ("keyword", "sentence"),
    [
        ("heartbeat_timeout", r"it is a setting: serving=Serving\(heartbeat_timeout=...\), from remit.settings"),
        ("breaker", r"it is a setting: policy=Policy\(breaker=...\), from remit.settings"),
        ("clock", r"it is a setting: system=System\(clock=...\), from remit.settings"),
        ("bound", "did you mean bounds"),
    ],
)
@pytest.mark.parametrize("kind", [Runtime, Workspace])
async def test_a_setting_that_is_given_in_the_wrong_place_is_told_its_own(kind: type, keyword: str, sentence: str):
    with pytest.raises(BadInput, match=sentence):
        kind(**{keyword: 1})
