"""Questions of agents to the person at the client: in forms, over any number of rounds and servers."""

import base64
import json
from functools import partial
from typing import Any

import anyio
import pytest
from mcp import Client, MCPError
from mcp_types import CallToolResult, ElicitResult, InputRequiredResult

from adapters.outsiders.visiting import LEGACY, MODERN, MODES, add_agents, choose, text_of, value_of, visiting
from remit import Runtime, Turn
from remit.runtime.outsiders import Outsider
from remit.testing import FakeClock
from remit.testing.doubles import pass_time
from teams import team

pytestmark = pytest.mark.anyio

PAINT = {"agent": "painter", "task": "a wall"}
UNKNOWN = "this requestState is unknown; call the tool again without it"


@pytest.fixture
def own():
    with team() as runtime:
        yield add_agents(runtime)


def action(word: str, **content: str) -> Any:
    return lambda _message, _schema: ElicitResult(action=word, content=content or None)  # pyright: ignore[reportArgumentType]


async def begun(client: Client, given: dict[str, Any] = PAINT) -> InputRequiredResult:
    """The first round of a call that needs an answer."""
    result = await client.session.call_tool("call_agent", given, allow_input_required=True)
    assert isinstance(result, InputRequiredResult)
    return result


async def again(
    client: Client, state: str | None, answer: str | None = "blue", given: dict[str, Any] = PAINT
) -> CallToolResult | InputRequiredResult:
    responses: Any = {"answer": ElicitResult(action="accept", content={"answer": answer})} if answer else None
    return await client.session.call_tool(
        "call_agent", given, input_responses=responses, request_state=state, allow_input_required=True
    )


@pytest.mark.rule("outsiders.questions")
@pytest.mark.parametrize("mode", MODES)
async def test_a_person_sees_the_whole_question_and_decides(own: Runtime, mode: str):
    @own.agent(role="pays", review=True)
    async def payer(turn: Turn) -> str:
        return "paid 5 USD"

    seen: list[tuple[str, dict[str, Any]]] = []

    def approve(message: str, schema: dict[str, Any]) -> ElicitResult:
        seen.append((message, schema["properties"]["answer"]))
        return ElicitResult(action="accept", content={"answer": "approve", "why": "fine"})

    async with visiting(Outsider(own.workspace, "mcp-1", by="access:1"), mode, approve) as client:
        assert text_of(await client.call_tool("call_agent", {"agent": "payer", "task": "the rent"})) == "paid 5 USD"
    ((message, answers),) = seen
    assert message.startswith("asked by payer, open until")
    assert "paid 5 USD" in message
    assert answers == {"type": "string", "enum": ["approve", "send back"]}
    (decided,) = await own.workspace.questions.list(decided=True)
    assert (decided.state, decided.by, decided.channel, decided.why) == ("approved", "access:1", "mcp", "fine")


@pytest.mark.rule("outsiders.questions")
@pytest.mark.parametrize("mode", MODES)
async def test_declining_an_approval_rejects_it_and_closing_the_form_leaves_it_open(own: Runtime, mode: str):
    @own.agent(role="asks first", asks=["guarded"])
    async def careful(turn: Turn) -> str:
        return await turn.delegate("guarded", "go")

    @own.agent(role="is asked", needs_approval=True)
    async def guarded(turn: Turn) -> str:
        return "done"

    outsider, given = Outsider(own.workspace, "mcp-1"), {"agent": "careful", "task": "x"}
    async with visiting(outsider, mode, action("decline")) as client:
        result = await client.call_tool("call_agent", given)
        assert result.is_error
        assert "declined in the MCP client" in text_of(result)
    async with visiting(outsider, mode, action("cancel")) as client:
        found = value_of(await client.call_tool("call_agent", given))
        assert (found["state"], found["questions"][0]["agent"]) == ("waiting", "careful")
        (waiting,) = value_of(await client.call_tool("list_questions", {}))
        await own.workspace.questions.approve(waiting["question"], by="ann")
        done = value_of(await client.call_tool("check_delegation_status", {"task": found["tasks"][0]}))
        assert done["result"] == "done"


@pytest.mark.rule("outsiders.questions")
@pytest.mark.parametrize("mode", MODES)
async def test_without_a_form_or_without_the_right_to_answer_the_call_says_who_has_to(own: Runtime, mode: str):
    async with visiting(Outsider(own.workspace, "mcp-1"), mode) as client:
        found = value_of(await client.call_tool("call_agent", PAINT))
        assert (found["state"], found["questions"][0]["text"]) == ("waiting", "Which colour?")
        assert "remit approvals" in found["next"]
    async with visiting(Outsider(own.workspace, "mcp-2", answers=False), mode, choose("blue")) as client:
        assert value_of(await client.call_tool("call_agent", PAINT))["state"] == "waiting"
    assert len(await own.workspace.questions.list()) == 2


@pytest.mark.rule("outsiders.questions")
async def test_an_answer_from_elsewhere_ends_the_form_that_is_still_open(own: Runtime):
    async def asked(_context: Any, _params: Any) -> ElicitResult:
        (question,) = await own.workspace.questions.list()
        await own.workspace.questions.answer(question.id, "red", by="ann")
        await anyio.sleep_forever()
        raise AssertionError

    async with visiting(Outsider(own.workspace, "mcp-1"), LEGACY, elicit=asked) as client:
        assert text_of(await client.call_tool("call_agent", PAINT)) == "painted it red"


@pytest.mark.rule("outsiders.questions")
@pytest.mark.parametrize("mode", MODES)
async def test_an_answer_that_does_not_fit_is_asked_again(own: Runtime, mode: str):
    said = iter(("green", "blue"))
    heard: list[str] = []

    def answer(message: str, _schema: dict[str, Any]) -> ElicitResult:
        heard.append(message)
        return ElicitResult(action="accept", content={"answer": next(said)})

    async with visiting(Outsider(own.workspace, "mcp-1"), mode, answer) as client:
        assert text_of(await client.call_tool("call_agent", PAINT)) == "painted it blue"
    assert heard[1].startswith("the answer is one of: red, blue\n")


# -- the state of a call ----------------------------------------------------------------------------------------


@pytest.mark.rule("outsiders.state")
async def test_the_answer_reaches_another_server_and_a_repeated_one_gives_the_same_result(own: Runtime):
    outsider = Outsider(own.workspace, "mcp-1")
    async with visiting(outsider, MODERN, choose("blue")) as client:
        state = (await begun(client)).request_state
    async with visiting(Outsider(own.workspace, "mcp-1"), MODERN, choose("blue")) as client:
        for colour in ("blue", "red", None):
            result = await again(client, state, colour)
            assert isinstance(result, CallToolResult)
            assert text_of(result) == "painted it blue"


@pytest.mark.rule("outsiders.state")
async def test_a_state_of_another_workspace_caller_or_call_and_a_forged_one_are_unknown(own: Runtime):
    async with visiting(Outsider(own.workspace, "mcp-1", "visitor"), MODERN, choose("blue")) as client:
        state = (await begun(client)).request_state
        assert state is not None
        raw = base64.urlsafe_b64decode(state)
        tasks, seq, rounds, question = json.loads(raw[16:])
        content = json.dumps([tasks, seq - 1, rounds, question], separators=(",", ":")).encode()
        other_seq = base64.urlsafe_b64encode(raw[:16] + content).decode()
        refused = [(state, {**PAINT, "task": "another wall"})]
        refused += [(one, PAINT) for one in (state[:-4], state + "AAAA", "", "x", "é", "A" * 50_000, other_seq)]
        made = (base64.urlsafe_b64encode(bytes(16) + one).decode() for one in (b"[]", b"{", b'[["!"],1,1,""]'))
        refused += [(one, PAINT) for one in made]
        for wrong, given in refused:
            with pytest.raises(MCPError, match=UNKNOWN):
                await again(client, wrong, given=given)
        with pytest.raises(MCPError, match=UNKNOWN):
            await client.session.call_tool("list_agents", {}, request_state=state, allow_input_required=True)
    with team(workspace="other") as elsewhere:
        add_agents(elsewhere)
        for stranger in (
            Outsider(own.workspace, "mcp-2", "visitor"),
            Outsider(own.workspace, "mcp-1"),
            Outsider(elsewhere.workspace, "mcp-1", "visitor"),
        ):
            async with visiting(stranger, MODERN, choose("blue")) as client:
                with pytest.raises(MCPError, match=UNKNOWN):
                    await again(client, state)
    (question,) = await own.workspace.questions.list()
    assert question.state == "open"


@pytest.mark.rule("outsiders.state")
async def test_a_person_may_think_for_an_hour():
    clock = FakeClock()
    with team(clock=clock) as runtime:
        add_agents(runtime)
        async with visiting(Outsider(runtime.workspace, "mcp-1"), MODERN, choose("blue")) as client:
            state = (await begun(client)).request_state
            clock.advance(3_599)
            result = await again(client, state)
            assert isinstance(result, CallToolResult)
            assert text_of(result) == "painted it blue"


@pytest.mark.rule("outsiders.rounds")
async def test_a_long_call_comes_back_every_25_seconds_and_then_goes_on_by_itself():
    clock = FakeClock()
    with team(clock=clock) as runtime:
        add_agents(runtime)
        rounds: list[float] = []
        async with visiting(Outsider(runtime.workspace, "mcp-1"), MODERN) as client:
            given, state, began, result = {"agent": "endless", "task": "x"}, None, clock.now(), None
            for _ in range(9):
                ended = anyio.Event()

                async def one_round(state: str | None = state, ended: anyio.Event = ended) -> None:
                    nonlocal result
                    result = await again(client, state, None, given)
                    ended.set()

                async with anyio.create_task_group() as group:
                    group.start_soon(one_round)

                    async def over(ended: anyio.Event = ended) -> bool:
                        return ended.is_set()

                    await pass_time(clock, over)
                rounds.append((clock.now() - began) / 1_000_000)
                state = result.request_state if isinstance(result, InputRequiredResult) else None
            assert isinstance(result, CallToolResult)
            assert rounds[0] == pytest.approx(25, abs=3)
            found = value_of(result)
            assert (found["state"], found["next"]) == (
                "open",
                "it takes long; check_delegation_status returns its result",
            )
            assert (await runtime.workspace.tasks.get(found["tasks"][0]).status()).state == "running"
            await client.call_tool("cancel_delegation", {"task": found["tasks"][0]})


@pytest.mark.rule("outsiders.rounds")
async def test_a_client_that_keeps_its_call_open_hears_that_it_goes_on():
    clock = FakeClock()
    with team(clock=clock) as runtime:
        add_agents(runtime)
        heard: list[tuple[float, str | None]] = []

        async def on_progress(done: float, _total: float | None, message: str | None) -> None:
            heard.append((done, message))

        async with visiting(Outsider(runtime.workspace, "mcp-1"), LEGACY) as client:
            asked = {"agent": "endless", "task": "x"}
            async with anyio.create_task_group() as group:
                group.start_soon(partial(client.call_tool, "call_agent", asked, progress_callback=on_progress))
                began = clock.now()

                async def over() -> bool:
                    return [message for _, message in heard].count("no news yet") == 2

                await pass_time(clock, over)
                assert (clock.now() - began) / 1_000_000 == pytest.approx(30, abs=6)
                group.cancel_scope.cancel()
        steps = [done for done, _ in heard]
        assert steps == sorted(set(steps)), "progress grows with every message"
