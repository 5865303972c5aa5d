"""The tools of a caller from outside, with the official client in both revisions of the protocol."""

from typing import Any

import anyio
import pytest
from mcp import MCPError

from adapters.outsiders.visiting import MODES, add_agents, choose, text_of, tour, value_of, visiting
from remit import Bounds, Runtime
from remit.runtime.outsiders import Outsider
from teams import team

pytestmark = [pytest.mark.anyio, pytest.mark.parametrize("mode", MODES)]


@pytest.fixture
def own():
    with team() as runtime:
        yield add_agents(runtime)


@pytest.mark.rule("outsiders.tools")
async def test_the_official_client_makes_the_whole_tour(own: Runtime, mode: str):
    told: list[str] = []
    async with visiting(Outsider(own.workspace, "mcp-1"), mode, choose("blue")) as client:
        await tour(client, told)
    (run,) = [one for one in await own.workspace.tasks.runs() if one.task == "a poem"]
    assert (run.record.session, run.by) == ("mcp-1", "")


@pytest.mark.rule("outsiders.card")
async def test_a_caller_with_a_card_gets_what_the_card_allows_and_nothing_else(own: Runtime, mode: str):
    outsider = Outsider(own.workspace, "mcp-2", "visitor", Bounds(agents=["writer", "painter", "failing"]))
    async with visiting(outsider, mode) as client:
        agents = value_of(await client.call_tool("list_agents", {}))
        assert [one["name"] for one in agents] == ["painter", "writer"]
        refused = await client.call_tool("call_agent", {"agent": "failing", "task": "x"})
        assert text_of(refused) == "'visitor' may not ask 'failing'; its card lets it ask endless, painter, writer"
        beyond = await client.call_tool("call_agent", {"agent": "endless", "task": "x"})
        assert beyond.is_error
        done = await client.call_tool("call_agent", {"agent": "writer", "task": "x"})
        task = (done.meta or {})["remit.task"]
    first = (await own.workspace.journal.history(run=task))[0]
    assert (first.session, first.data["asker"]) == ("mcp-2", "visitor")


@pytest.mark.rule("outsiders.card")
async def test_a_card_reads_and_writes_its_own_context_and_what_it_writes_is_untrusted(own: Runtime, mode: str):
    await own.workspace.context().set("plans", "secret", "merge")
    async with visiting(Outsider(own.workspace, "mcp-2", "visitor"), mode) as client:

        async def said(tool: str, **given: Any) -> tuple[bool, str]:
            result = await client.call_tool(tool, given)
            return result.is_error, text_of(result)

        assert await said("remember", namespace="news", key="today", value="rain") == (False, '{"version":1}')
        assert await said("remember", key="me", value="a visitor") == (False, '{"version":1}')
        for tool, given in (("recall", {}), ("remember", {"value": "x"})):
            wrong, sentence = await said(tool, namespace="plans", key="secret", **given)
            assert wrong
            assert "merge" not in sentence
        _, there = await said("recall", namespace="plans", key="secret")
        assert (True, there.replace("secret", "nothing")) == await said("recall", namespace="plans", key="nothing")
    for namespace, key in (("news", "today"), ("memory:visitor", "me")):
        entry = await own.workspace.context().entry(namespace, key)
        assert entry is not None
        assert (entry.trust, entry.agent) == ("untrusted", "visitor")


@pytest.mark.rule("outsiders.own")
async def test_the_tasks_of_others_are_as_unknown_as_those_that_never_were(own: Runtime, mode: str):
    mine, theirs = (Outsider(own.workspace, f"mcp-{one}", "visitor") for one in ("mine", "theirs"))
    owners = await own.workspace.submit("writer", "of the owner")
    async with visiting(theirs, mode) as client:
        other = value_of(await client.call_tool("call_agent_async", {"agent": "writer", "task": "theirs"}))["task"]
    async with visiting(mine, mode) as client:
        said = set[str]()
        for task in (other, owners.id, "3obpkshshsnothere", "", "\x07", "x" * 5_000):
            for tool in ("check_delegation_status", "cancel_delegation", "list_questions"):
                if tool != "list_questions" or task:
                    result = await client.call_tool(tool, {"task": task})
                    assert result.is_error
                    said.add(text_of(result))
        assert said == {"you have started no task with this id; call_agent_async returns the id of the task"}


@pytest.mark.rule("outsiders.cancel")
async def test_a_client_that_leaves_a_call_cancels_its_tasks(own: Runtime, mode: str):
    async with visiting(Outsider(own.workspace, "mcp-1"), mode) as client:
        begun, calls = anyio.Event(), [{"agent": "endless", "task": "1"}, {"agent": "endless", "task": "2"}]

        async def progress(*_: Any) -> None:
            begun.set()

        async with anyio.create_task_group() as group:
            group.start_soon(lambda: client.call_tool("call_agents", {"calls": calls}, progress_callback=progress))
            await begun.wait()
            group.cancel_scope.cancel()
        for task in await own.workspace.tasks.list(agent="endless"):
            outcome = await own.workspace.tasks.get(task.id).wait()
            assert str(outcome.error) == "'endless' was cancelled: cancelled by its caller"


@pytest.mark.rule("outsiders.tools")
async def test_wrong_arguments_are_told_in_a_sentence(own: Runtime, mode: str):
    async with visiting(Outsider(own.workspace, "mcp-1"), mode) as client:

        async def said(tool: str, **given: Any) -> str:
            result = await client.call_tool(tool, given)
            assert result.is_error
            return text_of(result)

        assert await said("call_agent", agent="writer") == "call_agent needs task"
        assert await said("call_agent", agent="writer", task=5) == "call_agent: task is string, not 5"
        assert "exactly one of the two, and was given neither" in await said("call_agent", task="x")
        assert await said("call_agents", calls=[]) == "call_agents takes 1 to 32 calls, not 0"
        assert await said("call_agents", calls=["x"]) == (
            "each of the calls of call_agents is an object with an agent and a task"
        )
        assert await said("call_agents", calls=[{"agent": "writer"}]) == "call_agent needs task"
        assert await said("recall", key="x") == (
            "recall needs a namespace: you act as the owner, which has no memory of its own"
        )
        with pytest.raises(MCPError, match="there is no such tool"):
            await client.call_tool("approve", {})


@pytest.mark.rule("outsiders.tools")
@pytest.mark.parametrize("number", [1, 2])
async def test_a_call_of_several_agents_that_are_all_refused_ends_at_once(own: Runtime, mode: str, number: int):
    async with visiting(Outsider(own.workspace, "mcp-1"), mode) as client:
        calls = [{"agent": f"nobody{one}", "task": "x"} for one in range(number)]
        with anyio.fail_after(20):
            result = await client.call_tool("call_agents", {"calls": calls})
        if number == 1:
            assert result.is_error
            assert "'nobody0'" in text_of(result)
        else:
            assert [one["state"] for one in value_of(result)] == ["refused", "refused"]
            assert "'nobody1'" in value_of(result)[1]["error"]


@pytest.mark.rule("outsiders.card")
async def test_a_card_that_is_gone_is_told(own: Runtime, mode: str):
    async with visiting(Outsider(own.workspace, "mcp-1", "nobody"), mode) as client:
        result = await client.call_tool("list_agents", {})
        assert text_of(result).startswith("there is no card 'nobody' in this workspace")
