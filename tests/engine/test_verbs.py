"""The verbs of a turn as tools for a model; and which turn is under way."""

from typing import Any

import anyio
import pytest
from jsonschema import Draft202012Validator

from engine.helping import PATIENCE, happened
from remit import Card, Command, Failed, Refused, Runtime, Turn
from remit.errors import BadInput
from remit.ports.turn import CURRENT_TURN, current_turn
from remit.settings import System
from remit.testing import FakeClock
from remit.verbs import VERBS
from teams import echo

pytestmark = pytest.mark.anyio

NAMED = {verb.name: verb for verb in VERBS}


async def asked(rt: Runtime, body: Any, **about: Any) -> Any:
    """What `body` gives, called as an agent that may ask everyone."""
    rt.add(Card("lead", **{"asks": "*", **about}), body)
    return await rt.run("lead", "go", session="s")


@pytest.mark.rule("verbs.schema")
@pytest.mark.parametrize("name", NAMED)
def test_every_schema_is_a_json_schema_of_an_object_and_takes_nothing_else(name: str):
    schema = NAMED[name].schema
    Draft202012Validator.check_schema(schema)
    assert schema["type"] == "object"
    assert schema["additionalProperties"] is False
    assert set(schema["required"]) <= schema["properties"].keys()  # pyright: ignore[reportAttributeAccessIssue]
    for part in schema["properties"].values():  # pyright: ignore[reportAttributeAccessIssue]
        assert part.get("description") or part.get("enum")  # pyright: ignore[reportAttributeAccessIssue]
    assert NAMED[name].sentence.endswith(".")


GOOD: dict[str, dict[str, object]] = {
    "list_agents": {"capability": "code"},
    "call_agent": {"agent": "coder", "task": "x", "sees": ["notes"]},
    "recall": {"namespace": "notes", "key": "k"},
    "remember": {"key": "k", "value": 1, "namespace": "notes"},
    "ask_person": {"question": "Which?", "choices": ["red", "blue"]},
    "call_agent_async": {"agent": "coder", "task": "x"},
    "check_delegation_status": {"task": "some id"},
    "cancel_delegation": {"task": "some id", "why": "enough"},
    "handoff": {"agent": "coder", "update": {"phase": "two"}},
    "spawn_agent": {"agent": "coder", "task": "x"},
    "blackboard": {"action": "write", "key": "k", "value": [1]},
}


@pytest.mark.rule("verbs.schema")
@pytest.mark.parametrize("name", NAMED)
async def test_what_the_schema_refuses_the_call_refuses_with_a_sentence(rt: Runtime, name: str):
    verb = NAMED[name]
    check = Draft202012Validator(verb.schema)
    assert check.is_valid(GOOD[name])
    bad: list[dict[str, object]] = [{**GOOD[name], "nonsense": 1}]
    bad += [{key: value for key, value in GOOD[name].items() if key != missing} for missing in verb.schema["required"]]  # pyright: ignore[reportGeneralTypeIssues]
    bad += [{**GOOD[name], key: 7} for key in GOOD[name] if key != "value"]

    async def lead(turn: Turn) -> int:
        for arguments in bad:
            assert not check.is_valid(arguments)
            with pytest.raises(BadInput, match=f"^{name}"):
                await verb.call(turn, arguments)
        return len(bad)

    rt.add(Card("coder"), echo)
    assert await asked(rt, lead) == len(bad)
    assert await rt.workspace.tasks.list(agent="coder") == []


@pytest.mark.rule("verbs.do")
async def test_agents_are_listed_and_called(rt: Runtime):
    async def lead(turn: Turn) -> None:
        listed = await NAMED["list_agents"].call(turn, {})
        assert listed == [
            {"name": "coder", "role": "writes code", "can": ["code"]},
            {"name": "tester", "role": "", "can": ["test"]},
        ]
        assert [one["name"] for one in await NAMED["list_agents"].call(turn, {"capability": "test"})] == ["tester"]  # pyright: ignore[reportGeneralTypeIssues]
        assert await NAMED["call_agent"].call(turn, {"agent": "coder", "task": "x"}) == "x"
        with pytest.raises(Refused, match="there is no agent 'nobody'"):
            await NAMED["call_agent"].call(turn, {"agent": "nobody", "task": "x"})
        with pytest.raises(Failed):
            await NAMED["call_agent"].call(turn, {"agent": "tester", "task": "x"})

    async def tester(turn: Turn) -> None:
        raise ValueError("no")

    rt.add(Card("coder", role="writes code", can="code"), echo)
    rt.add(Card("tester", can="test"), tester)
    await asked(rt, lead, asks=["coder", "tester", "nobody"])


@pytest.mark.rule("verbs.do")
async def test_what_is_passed_along_is_seen_and_nothing_else(rt: Runtime):
    async def lead(turn: Turn) -> list:
        await turn.context.set("notes", "k", "v")
        call = NAMED["call_agent"].call
        return [
            await call(turn, {"agent": "coder", "task": "x", "sees": ["notes"]}),
            await call(turn, {"agent": "coder", "task": "x"}),
        ]

    async def coder(turn: Turn) -> object:
        try:
            return await turn.context.get("notes", "k")
        except Refused:
            return "sees nothing"

    rt.add(Card("coder"), coder)
    assert await asked(rt, lead) == ["v", "sees nothing"]


@pytest.mark.rule("verbs.do")
async def test_tasks_are_given_away_looked_at_and_cancelled(rt: Runtime):
    inside = anyio.Event()

    async def lead(turn: Turn) -> None:
        given = await NAMED["call_agent_async"].call(turn, {"agent": "stuck", "task": "x"})
        await happened(inside)
        again: Any = await NAMED["call_agent_async"].call(turn, {"agent": "stuck", "task": "x"})
        assert given["existing"] is False  # pyright: ignore[reportCallIssue]
        assert (again["task"], again["existing"], again["state"]) == (given["task"], True, "running")  # pyright: ignore[reportCallIssue]
        status = await NAMED["check_delegation_status"].call(turn, {"task": given["task"], "wait": 0})  # pyright: ignore[reportCallIssue]
        times = {"asked_seconds_ago": 0, "running_seconds": 0}
        assert status == {"task": given["task"], "state": "running", "agent": "stuck", "attempt": 1, **times}  # pyright: ignore[reportCallIssue]
        cancel = {"task": given["task"], "why": "enough"}  # pyright: ignore[reportCallIssue]
        assert await NAMED["cancel_delegation"].call(turn, cancel) == {"cancelled": 1}
        outcome = await turn.submitted(given["task"]).wait(PATIENCE)  # pyright: ignore[reportCallIssue]
        assert (outcome.state, "enough" in str(outcome.error)) == ("cancelled", True)
        beside = await NAMED["spawn_agent"].call(turn, {"agent": "coder", "task": "beside"})
        await turn.submitted(beside["task"]).wait(PATIENCE)  # pyright: ignore[reportCallIssue]
        assert [message.about for message in await turn.inbox()] == [given["task"], beside["task"]]  # pyright: ignore[reportCallIssue]

    async def stuck(turn: Turn) -> None:
        inside.set()
        await anyio.sleep_forever()

    rt.add(Card("stuck"), stuck)
    rt.add(Card("coder"), echo)
    await asked(rt, lead)


@pytest.mark.rule("verbs.status")
async def test_the_status_of_a_task_says_how_long_it_has_been_running(clock: FakeClock):
    inside = anyio.Event()

    async def lead(turn: Turn) -> list[Any]:
        given: Any = await NAMED["call_agent_async"].call(turn, {"agent": "stuck", "task": "x"})
        await happened(inside)
        clock.advance(90)
        look = {"task": given["task"], "wait": 0}
        status: Any = await NAMED["check_delegation_status"].call(turn, look)
        await NAMED["cancel_delegation"].call(turn, {"task": given["task"]})
        await turn.submitted(given["task"]).wait()
        ended: Any = await NAMED["check_delegation_status"].call(turn, look)
        clock.advance(90)
        assert await NAMED["check_delegation_status"].call(turn, look) == ended  # what has ended is no news later
        return [status["asked_seconds_ago"], status["running_seconds"], ended["state"], ended["took_seconds"]]

    async def stuck(turn: Turn) -> None:
        inside.set()
        await anyio.sleep_forever()

    with Runtime(system=System(clock=clock)) as rt:
        rt.add(Card("stuck"), stuck)
        assert await asked(rt, lead) == [90, 90, "cancelled", 90]


@pytest.mark.rule("verbs.do")
async def test_a_handoff_is_the_command_to_return(rt: Runtime):
    async def lead(turn: Turn) -> object:
        command = await NAMED["handoff"].call(turn, {"agent": "next", "update": {"phase": "two"}})
        assert isinstance(command, Command)
        return command

    async def following(turn: Turn) -> list:
        return [turn.handoff.sender, turn.handoff.state.phase]

    rt.add(Card("next"), following)
    assert await asked(rt, lead) == ["lead", "two"]


@pytest.mark.rule("verbs.do")
async def test_notes_on_the_board(rt: Runtime):
    async def lead(turn: Turn) -> list:
        board = NAMED["blackboard"].call
        wrote = await board(turn, {"action": "write", "key": "k", "value": {"n": 1}})
        read = await board(turn, {"action": "read", "key": "k"})
        listed = await board(turn, {"action": "list"})
        gone = [await board(turn, {"action": "delete", "key": "k"}) for _ in range(2)]
        with pytest.raises(BadInput, match="blackboard read needs a key"):
            await board(turn, {"action": "read"})
        return [wrote, read, listed, gone]

    wrote, read, listed, gone = await asked(rt, lead)
    assert (wrote, read, gone) == ({"version": 1}, {"n": 1}, [{"deleted": True}, {"deleted": False}])
    assert "k" in listed


# -- which turn is under way -----------------------------------------------------------------------------------------


@pytest.mark.rule("turn.current")
async def test_the_current_turn_is_the_one_whose_code_runs(rt: Runtime):
    assert current_turn() is None

    @rt.agent(asks="*")
    async def lead(turn: Turn) -> bool:
        assert CURRENT_TURN.get() is turn
        below = await turn.delegate("coder", "x")
        sides = [one.value for one in await turn.delegate_all([("coder", "y"), ("coder", "z")])]
        assert current_turn() is turn
        return all((below, *sides))

    @rt.agent
    async def coder(turn: Turn) -> bool:
        await anyio.lowlevel.checkpoint()
        return current_turn() is turn

    assert await rt.run("lead", "go") is True
    assert current_turn() is None
    task = await rt.submit("lead", "go")
    assert current_turn() is None
    assert await task.result(PATIENCE) is True


@pytest.mark.rule("turn.current")
async def test_a_runtime_gives_the_turn_to_what_runs_in_it_and_to_nothing_else(rt: Runtime):
    @rt.agent
    async def coder(turn: Turn) -> bool:
        return rt.turn is turn

    assert await rt.run("coder", "x") is True
    with pytest.raises(BadInput, match="there is no turn here: rt.turn is for what an agent runs"):
        _ = rt.turn


@pytest.mark.rule("turn.current")
@pytest.mark.parametrize("how", ["raises", "hands over"])
async def test_the_current_turn_is_forgotten_however_it_ends(rt: Runtime, how: str):
    seen: list[Turn | None] = []

    @rt.agent(asks="*")
    async def lead(turn: Turn) -> object:
        if how == "raises":
            raise ValueError("no")
        return Command("second")

    @rt.agent
    async def second(turn: Turn) -> None:
        seen.append(current_turn())
        assert current_turn() is turn

    outcome = await rt.outcome("lead", "go")
    assert outcome.ok == (how == "hands over")
    assert current_turn() is None
