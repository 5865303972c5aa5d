"""Functions around every turn: in their order, whatever kind of agent answers, with the answer in their hands."""

import asyncio
import sys
from collections.abc import Awaitable, Callable
from typing import Any

import anyio
import pytest

from adapters.places import KEY, KEY_NAME, KINDS, join, served
from engine.helping import PATIENCE, Shaky, sound
from engine.test_owners_functions import nothing_is_left
from engine.test_retry import next_try
from remit import Card, Command, Plan, Runtime, Step, Turn
from remit.adapters.process import program
from remit.errors import BadInput, Failed, Refused
from remit.testing import FakeClock
from remit.testing.models import Calls, Says
from teams import echo

pytestmark = pytest.mark.anyio

Go = Callable[[], Awaitable[Any]]


def writing(log: list[str], word: str) -> Any:
    async def around(turn: Turn, go: Go) -> Any:
        log.append(f"{word} before {turn.agent}")
        answer = await go()
        log.append(f"{word} after {turn.agent}")
        return answer

    return around


@pytest.mark.rule("around.order")
async def test_functions_are_around_every_turn_and_the_first_registered_is_outermost(rt: Runtime):
    log: list[str] = []
    rt.around(writing(log, "outer"))

    @rt.agent(asks=["coder"])
    async def lead(turn: Turn) -> str:
        return await turn.delegate("coder", "x")

    rt.around(writing(log, "inner"))  # also around agents that are there already
    rt.add(Card("coder"), echo)
    assert await rt.run("lead", "go") == "x"
    assert log == [
        *("outer before lead", "inner before lead", "outer before coder", "inner before coder"),
        *("inner after coder", "outer after coder", "inner after lead", "outer after lead"),
    ]


@pytest.mark.rule("around.kinds")
@pytest.mark.parametrize("kind", KINDS)
async def test_the_answer_of_a_model_of_every_kind_is_in_the_hands_of_what_is_around(
    kind: str, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv(KEY_NAME, KEY)
    async with served([Says("hello")]) as place, Runtime() as rt:
        join(rt, kind, place)

        @rt.around
        async def loud(_turn: Turn, go: Go) -> Any:
            return (await go()).upper()

        assert await rt.run("it", "greet") == "HELLO"
        assert rt.stack("it").around == (loud.__qualname__,)
        assert rt.stack("it").models or kind == "langgraph"  # what is around hides nothing of the agent
        await sound(rt)


@pytest.mark.rule("around.kinds")
async def test_a_program_has_the_functions_around_its_turn_too():
    with Runtime() as rt:
        rt.add(Card("shouter"), program([sys.executable, "-c", "print(input().upper())"]))

        @rt.around
        async def framed(_turn: Turn, go: Go) -> str:
            return f"<{await go()}>"

        assert await rt.run("shouter", "hi") == "<HI>"


@pytest.mark.rule("around.kinds")
async def test_an_agent_that_is_replaced_for_a_test_has_the_functions_around_it_meanwhile_and_afterwards(rt: Runtime):
    rt.add(Card("a"), echo)

    async def other(_turn: Turn) -> str:
        return "other"

    with rt.override(a=other):

        @rt.around
        async def framed(_turn: Turn, go: Go) -> str:
            return f"<{await go()}>"

        assert await rt.run("a", "x") == "<other>"
    assert await rt.run("a", "x") == "<x>"


@pytest.mark.rule("around.answer")
async def test_an_agent_is_not_called_if_what_is_around_answers_without_it(rt: Runtime):
    called: list[str] = []

    @rt.agent
    async def a(turn: Turn) -> str:
        called.append(turn.task)
        return "from the agent"

    @rt.around
    async def cached(turn: Turn, go: Go) -> Any:
        return "known" if turn.task == "again" else await go()

    assert await rt.run("a", "new") == "from the agent"
    assert await rt.run("a", "again") == "known"
    assert called == ["new"]


@pytest.mark.rule("around.answer")
@pytest.mark.parametrize("kind", ["function", *KINDS])
async def test_a_handoff_is_a_command_and_may_be_kept_from_going(kind: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv(KEY_NAME, KEY)
    seen: list[object] = []
    hands = Calls("handoff", {"agent": "other"})
    async with served([hands]) as place, Runtime() as rt:
        rt.add(Card("other"), echo)
        if kind == "function":

            async def sender(_turn: Turn) -> Command:
                return Command("other", {"phase": "next"})

            rt.add(Card("it", asks=["other"]), sender)
        else:
            join(rt, kind, place, asks=["other"])

        @rt.around
        async def kept(turn: Turn, go: Go) -> Any:
            answer = await go()
            seen.append(answer)
            return "kept" if isinstance(answer, Command) else answer

        assert await rt.run("it", "go") == "kept"
    [command] = seen
    assert isinstance(command, Command)


@pytest.mark.rule("around.error")
async def test_an_error_of_its_own_fails_the_task_with_its_name_and_line_and_not_the_agents_breaker(rt: Runtime):
    rt.add(Card("a"), echo)

    @rt.around
    async def checked(_turn: Turn, go: Go) -> Any:
        raise ValueError(f"{await go()} is too short")

    for _ in range(6):
        with pytest.raises(
            Failed, match=r"'a' failed: ValueError: x is too short in .*checked, which is around its tu"
        ):
            await rt.run("a", "x")
    assert await rt.workspace.agents.breakers() == {}
    await nothing_is_left(rt)


@pytest.mark.rule("around.error")
async def test_the_agents_own_error_passes_and_counts_for_the_agent(rt: Runtime):
    @rt.agent
    async def a(_turn: Turn) -> str:
        raise KeyError("mine")

    rt.around(writing([], "x"))
    with pytest.raises(Failed, match=r"'a' failed: KeyError: 'mine' \(test_around.py:\d+ in a\)$"):
        await rt.run("a", "x")
    assert "a" in await rt.workspace.agents.breakers()


@pytest.mark.rule("around.error")
async def test_what_is_around_may_refuse_before_the_agent_is_called(rt: Runtime):
    rt.add(Card("a"), echo)

    @rt.around
    async def allowed(turn: Turn, go: Go) -> Any:
        if "secret" in turn.task:
            raise Refused("no secrets here; leave them out", rule="secrets")
        return await go()

    assert await rt.run("a", "x") == "x"
    with pytest.raises(Failed, match="'a' failed: Refused: no secrets here; leave them out"):
        await rt.run("a", "the secret")
    assert await rt.workspace.agents.breakers() == {}


@pytest.mark.rule("around.error")
async def test_an_error_may_be_caught_and_answered(rt: Runtime):
    @rt.agent
    async def a(_turn: Turn) -> str:
        raise KeyError("mine")

    @rt.around
    async def calm(_turn: Turn, go: Go) -> Any:
        try:
            return await go()
        except KeyError:
            return "nothing found"

    assert await rt.run("a", "x") == "nothing found"


@pytest.mark.rule("around.again")
async def test_a_retried_task_runs_it_again_and_what_it_did_once_stays_done(rt: Runtime, clock: FakeClock):
    entered: list[int] = []
    paid: list[str] = []

    @rt.agent
    async def a(_turn: Turn) -> str:
        if len(entered) == 1:
            raise Shaky
        return "done"

    @rt.around
    async def counted(turn: Turn, go: Go) -> Any:
        entered.append(1)
        await turn.once("note", lambda: paid.append("noted"))
        return await go()

    task = await rt.submit("a", "x")
    with anyio.fail_after(PATIENCE):
        await next_try(rt, clock, task.id)
        assert await task.result() == "done"
    assert (len(entered), paid) == (2, ["noted"])


@pytest.mark.rule("around.order")
async def test_the_steps_of_a_plan_and_a_coordinator_have_it_around_them_and_the_plan_itself_does_not():
    log: list[str] = []
    with Runtime() as rt:
        rt.around(writing(log, "x"))
        rt.add(Card("a"), echo)
        rt.add(Card("boss", asks=["a"]), echo)
        plan = Plan([Step("s", "do it", agent="a")])
        assert (await rt.run_plan(plan)).ok
        assert log == ["x before a", "x after a"]
        await rt.run_team("goal", "boss", plan=plan)
        assert log[2:] == ["x before a", "x after a", "x before boss", "x after boss"]


@pytest.mark.rule("around.answer")
async def test_go_runs_once_in_a_turn_and_a_forgotten_await_is_said(rt: Runtime):
    rt.add(Card("a"), echo)

    @rt.around
    async def twice(turn: Turn, go: Go) -> Any:
        if turn.task == "twice":
            await go()
        return go() if turn.task == "forgotten" else await go()

    with pytest.raises(Failed, match="`go` was called twice in one turn"):
        await rt.run("a", "twice")
    with pytest.raises(Failed, match="it returned a coroutine instead of an answer; write `return await go\\(\\)`"):
        await rt.run("a", "forgotten")


@pytest.mark.rule("around.error")
async def test_a_timeout_of_its_own_ends_the_agent_and_cancels_nothing_else(rt: Runtime):
    @rt.agent
    async def slow(_turn: Turn) -> None:
        await anyio.sleep_forever()

    @rt.around
    async def timed(_turn: Turn, go: Go) -> Any:
        try:
            async with asyncio.timeout(0.01):
                return await go()
        except TimeoutError:
            return "too slow"

    assert await rt.run("slow", "x") == "too slow"
    assert await rt.run("slow", "y") == "too slow"


async def one_argument(_turn: Turn) -> None: ...


@pytest.mark.rule("input.told")
def test_what_cannot_be_around_a_turn_is_refused_with_the_form():
    rt = Runtime()
    with pytest.raises(BadInput, match=r"around takes a function: `async def timing\(turn, go\)"):
        rt.around("timing")  # pyright: ignore[reportArgumentType]
    with pytest.raises(BadInput, match="must be async"):
        rt.around(lambda turn, go: go())  # pyright: ignore[reportUnknownArgumentType, reportUnknownLambdaType]
    with pytest.raises(BadInput, match="takes the turn and `go`"):
        rt.around(one_argument)  # pyright: ignore[reportArgumentType]
    fine = rt.around(writing([], "x"))
    with pytest.raises(BadInput, match="is around every turn already; register it once"):
        rt.around(fine)
