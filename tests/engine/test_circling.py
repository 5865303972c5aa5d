"""The rules on loops in the engine: what they count is kept, and counted once."""

from pathlib import Path
from typing import Any

import anyio
import pytest

from engine.helping import PATIENCE, Shaky, doomed, ends, happened, sound, take_over
from engine.talking import Talk
from remit import Card, Refused, Runtime, Turn
from remit.errors import BadInput
from remit.ports.models import ToolCall
from remit.settings import Loops, Policy
from remit.verbs import VERBS
from teams import team

pytestmark = pytest.mark.anyio
CALL = next(verb for verb in VERBS if verb.name == "call_agent")
LONG = "the same long answer each and every time"


async def ask(turn: Turn, number: int, task: str = "look", whom: str = "worker") -> str:
    """Ask as a model does, by a tool."""
    call = ToolCall("call_agent", {"agent": whom, "task": task}, f"c{number}")
    return str(await turn.tool(call, lambda given: CALL.call(turn, given)))


def worker(rt: Runtime, answer: Any = LONG) -> list[str]:
    asked: list[str] = []

    async def work(turn: Turn) -> str:
        asked.append(turn.task)
        return str(answer(len(asked)) if callable(answer) else answer)

    rt.add(Card("worker"), work)
    return asked


async def counted(rt: Runtime) -> list[list[Any]]:
    """How often the same was asked by now, and how often in vain, after each call."""
    history = await rt.workspace.journal.history()
    rows: list[Any] = [event.data.get("asks", {}) for event in history if event.kind == "tool.done"]
    return [row[key][:2] for row in rows for key in row if key[0] not in "=!"]


@pytest.mark.rule("loops.same-ask")
async def test_the_same_ask_in_vain_is_told_and_refused(rt: Runtime):
    asked, told = worker(rt), list[str]()

    @rt.agent(asks="*", tools="call_agent")
    async def lead(turn: Turn) -> None:
        told.extend(
            [await ask(turn, number, ("look", "Look!", "please look again")[number % 3]) for number in range(4)]
        )

    await rt.run("lead", "go")
    last = "[you have asked 'worker' for this 3 times, and nothing new comes of it: it will not be asked for it again]"
    assert told[:3] == [LONG, LONG, f"{LONG}\n\n{last}"]
    assert told[3].startswith("'worker' was not asked: you have asked it for this 3 times in this run, and the latest")
    assert len(asked) == 3
    assert await counted(rt) == [[1, 1], [2, 2], [3, 3]]
    await sound(rt)


@pytest.mark.rule("loops.kept")
async def test_a_task_that_is_run_again_counts_nothing_twice(rt: Runtime, clock):
    asked, told = worker(rt), list[list[str]]()

    @rt.agent(asks="*", tools="call_agent")
    async def lead(turn: Turn) -> None:
        mine: list[str] = []
        told.append(mine)
        mine += [await ask(turn, number) for number in range(2)]
        if len(told) < 3:
            raise Shaky
        mine += [await ask(turn, number) for number in (2, 3)]

    await ends(clock, await rt.submit("lead", "go"))
    assert told[0] == told[1] == told[2][:2] == [LONG, LONG]
    assert "it will not be asked for it again" in told[2][2]
    assert "was not asked" in told[2][3]
    assert len(asked) == 3
    assert await counted(rt) == [[1, 1], [2, 2], [3, 3]]


@pytest.fixture(params=["file", "postgres"])
def where(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return str(request.getfixturevalue("address") if request.param == "postgres" else tmp_path / "team.db")


@pytest.mark.rule("loops.kept")
async def test_an_agent_that_takes_a_task_over_continues_the_count(where, clock):
    told: list[str] = []
    asked_thrice = anyio.Event()

    async def lead(turn: Turn) -> None:
        told.clear()
        told.extend([await ask(turn, number) for number in range(3)])
        if not asked_thrice.is_set():
            asked_thrice.set()
            await anyio.sleep_forever()
        told.append(await ask(turn, 3))

    with doomed(where, clock) as dead, team(where, clock=clock) as heir:
        asked = [worker(rt) for rt in (dead, heir)]
        for rt in (dead, heir):
            rt.add(Card("lead", asks="*", tools="call_agent"), lead)
        task = await dead.submit("lead", "go")
        await happened(asked_thrice)
        await take_over(heir, clock, dead)
        await heir.workspace.tasks.get(task.id).result(PATIENCE)
        assert [len(one) for one in asked] == [3, 0]
        assert told[:2] == [LONG, LONG]
        assert "it will not be asked for it again" in told[2]
        assert "was not asked: you have asked it for this 3 times in this run" in told[3]
        assert await counted(heir) == [[1, 1], [2, 2], [3, 3]]
        await sound(heir)


@pytest.mark.rule("loops.kept")
async def test_refusals_and_strikes_count_on_in_the_process_that_takes_over(where, clock):
    told: list[str] = []
    has_hung = anyio.Event()

    async def insists(turn: Turn) -> None:
        for number in range(9):
            call = ToolCall("call_agent", {"agent": "lead", "task": f"go {number}"}, f"w{number}")
            await turn.tool(call, lambda given: CALL.call(turn, given))

    async def lead(turn: Turn) -> None:
        told.clear()
        told.append(await ask(turn, 0, "look 0"))
        told.extend([await ask(turn, number, whom="nobody") for number in (1, 2)])
        if not has_hung.is_set():
            has_hung.set()
            await anyio.sleep_forever()
        told.extend([await ask(turn, number, f"look {number}") for number in (3, 4)])
        told.append(await ask(turn, 5, whom="nobody"))

    with doomed(where, clock) as dead, team(where, clock=clock) as heir:
        for rt in (dead, heir):
            rt.add(Card("lead", asks="*", tools="call_agent"), lead)
            rt.add(Card("worker", asks="*", tools="call_agent"), insists)
        task = await dead.submit("lead", "go")
        await happened(has_hung)
        await take_over(heir, clock, dead)
        outcome = await heir.workspace.tasks.get(task.id).wait(PATIENCE)
        stopped = "'worker' was stopped: it was refused again and again"
        assert [one.startswith(stopped) for one in told] == [True, False, False, True, False]
        assert told[4].startswith("'worker' is not asked in this run any more: its latest 2 tasks were stopped")
        assert "'lead' was stopped: it was refused again and again" in str(outcome.error), "at the third time"
        history = await heir.workspace.journal.history()
        strikes = [event.data["strikes"] for event in history if "strikes" in event.data]
        assert strikes == [{"worker": 1}, {"worker": 2}, {"lead": 1}]
        await sound(heir)


@pytest.mark.rule("loops.kept", "loops.requests")
async def test_requests_count_on_in_the_process_that_takes_over_and_kept_ones_count_once(where, clock):
    model, has_hung, refused = Talk("one", "two"), anyio.Event(), list[str]()

    async def lead(turn: Turn) -> None:
        await turn.model(model.call("first"))
        if not has_hung.is_set():
            has_hung.set()
            await anyio.sleep_forever()
        await turn.model(model.call("second"))
        try:
            await turn.model(model.call("third"))
        except Refused as no:
            refused.append(str(no))

    how: Any = {"loops": Loops(requests=2)}
    with doomed(where, clock, **how) as dead, team(where, clock=clock, **how) as heir:
        for rt in (dead, heir):
            rt.add(Card("lead"), lead)
        task = await dead.submit("lead", "go")
        await happened(has_hung)
        await take_over(heir, clock, dead)
        await heir.workspace.tasks.get(task.id).wait(PATIENCE)
        assert len(model.asked) == 2
        assert refused == [
            "the models of this run have been asked 2 times, which is all they may be; 'lead' stops here"
        ]


@pytest.mark.rule("loops.any-ask")
async def test_what_is_always_new_is_refused_in_the_end(rt: Runtime):
    asked, told = worker(rt, lambda number: f"a long answer that is new, number {number}"), list[str]()

    @rt.agent(asks="*", tools="call_agent")
    async def lead(turn: Turn) -> None:
        told.extend([await ask(turn, number) for number in range(14)])

    await rt.run("lead", "go")
    assert len(asked) == 13
    assert told[13] == (
        "'worker' was not asked: you have asked it for this 13 times in this run; finish with what you have"
    )


@pytest.mark.rule("loops.settings")
@pytest.mark.parametrize(("loops", "times"), [(Loops(same_ask=2), 1), (Loops(same_ask=6), 5), (Loops.off(), 10)])
async def test_thresholds_are_settings(loops: Loops, times: int, clock):
    async with team(clock=clock, loops=loops) as rt:
        asked = worker(rt)

        @rt.agent(asks="*", tools="call_agent")
        async def lead(turn: Turn) -> None:
            for number in range(10):
                await ask(turn, number)

        await rt.outcome("lead", "go")
        assert len(asked) == times


@pytest.mark.rule("loops.refusals", "loops.strikes")
async def test_a_task_that_was_stopped_is_held_against_its_agent_in_this_run_and_in_no_other(rt: Runtime):
    told: list[str] = []

    @rt.agent(asks="*", tools="call_agent")
    async def worker(turn: Turn) -> None:
        for number in range(9):
            call = ToolCall("call_agent", {"agent": "lead", "task": f"go {number}"}, f"w{number}")
            await turn.tool(call, lambda given: CALL.call(turn, given))

    @rt.agent(asks="*", tools="call_agent")
    async def lead(turn: Turn) -> None:
        told.extend([await ask(turn, number, f"look {number}") for number in range(3)])

    await rt.run("lead", "go")
    stopped = "'worker' was stopped: it was refused again and again: 'lead' is already in this delegation"
    assert [one.startswith(stopped) for one in told] == [True, True, False]
    assert told[2].startswith("'worker' is not asked in this run any more: its latest 2 tasks were stopped, as it got")
    history = await rt.workspace.journal.history()
    assert [event.data["strikes"] for event in history if "strikes" in event.data] == [{"worker": 1}, {"worker": 2}]
    assert (await rt.workspace.agents.breakers())["worker"].failures == 2
    told.clear()
    await rt.run("lead", "go")
    assert told[0].startswith(stopped)
    await sound(rt)


@pytest.mark.rule("loops.refusals")
async def test_agents_that_are_busy_are_no_reason_to_stop(clock):
    async with team(clock=clock) as rt:
        found: list[str] = []

        async def refused(_given: dict[str, Any]) -> None:
            raise Refused("it is busy", rule="concurrency")

        @rt.agent(tools="*")
        async def coder(turn: Turn) -> None:
            calls = [ToolCall("look", {}, f"c{number}") for number in range(6)]
            found.extend([str(await turn.tool(call, refused)) for call in calls])

        await rt.run("coder", "go")
        assert found == ["it is busy"] * 6


@pytest.mark.rule("loops.echo")
async def test_a_program_whose_text_only_grows_is_refused_and_stopped_if_it_goes_on(rt: Runtime):
    asked, said = worker(rt, "I agree"), list[str]()

    @rt.agent(asks="*")
    async def chair(turn: Turn) -> None:
        text = "Talk about the name of the product until all of you agree on one. " * 4
        while True:
            text += "I agree. "
            try:
                await turn.delegate("worker", text)
            except Refused as no:
                said.append(str(no))

    outcome = await rt.outcome("chair", "go")
    assert (outcome.state, len(asked), len(said)) == ("failed", 7, 10)
    assert said[0] == (
        "'worker' was not asked: 6 times in a row it said again what it had said before, to a text that only grew; "
        "finish with what you have"
    )


@pytest.mark.rule("loops.capability")
async def test_an_agent_that_is_asked_for_by_a_capability_counts_as_the_one_that_was_found(rt: Runtime):
    asked, told = list[str](), list[str]()

    async def work(turn: Turn) -> str:
        asked.append(turn.task)
        return LONG

    rt.add(Card("worker", can=["translate french texts"]), work)

    @rt.agent(asks="*", tools="call_agent")
    async def lead(turn: Turn) -> None:
        for number in range(5):
            whom = {"agent": "worker"} if number % 2 else {"capability": "translate french texts"}
            call = ToolCall("call_agent", {**whom, "task": "look"}, f"c{number}")
            told.append(str(await turn.tool(call, lambda given: CALL.call(turn, given))))

    await rt.run("lead", "go")
    assert len(asked) == 3
    assert all(one.startswith("'worker' was not asked: you have asked it for this 3 times") for one in told[3:])


@pytest.mark.rule("repeat.settings")
@pytest.mark.parametrize(("loops", "times"), [(Loops(repeat_refused=3, repeat_stopped=5), 2), (Loops.off(), 40)])
async def test_a_program_that_repeats_itself_is_refused_when_its_settings_say(loops: Loops, times: int):
    with team(loops=loops) as rt:
        asked = worker(rt)

        @rt.agent(asks="*")
        async def lead(turn: Turn) -> list[str]:
            return [(await turn.outcome("worker", "the same")).rule for _ in range(40)]

        outcome = await rt.outcome("lead", "go")
        assert len(asked) == times
        assert outcome.state == ("failed" if times == 2 else "completed")


@pytest.mark.rule("repeat.settings")
def test_thresholds_that_cannot_be_are_refused_with_a_sentence():
    with pytest.raises(BadInput, match="repeat_stopped is at most 1,000, not 2,000; None switches the rule off"):
        Loops(repeat_stopped=2_000)
    with pytest.raises(BadInput, match="inbox"):
        Policy(inbox=0)


@pytest.mark.rule("repeat.settings")
async def test_an_inbox_holds_as_many_messages_as_its_setting_says():
    with Runtime(policy=Policy(inbox=2)) as few:

        @few.agent(asks="*")
        async def lead(turn: Turn) -> str:
            await turn.send("worker", "one")
            await turn.send("worker", "two")
            with pytest.raises(Refused, match="2 of 2 messages of 'lead' wait for 'worker'"):
                await turn.send("worker", "three")
            return await turn.delegate("worker", "read")

        @few.agent
        async def worker(turn: Turn) -> int:
            return len(await turn.inbox())

        assert await few.run("lead", "go") == 2
