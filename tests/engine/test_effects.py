"""Side effects with a name are kept once."""

import pytest

from engine.helping import PATIENCE, Shaky, reached, sound
from remit import Runtime, Turn
from remit.errors import BadInput

pytestmark = pytest.mark.anyio


@pytest.mark.rule("effect.once")
async def test_a_step_may_be_sync_or_async_and_its_result_is_kept_through_a_retry(rt: Runtime, clock):
    did: list[str] = []

    async def later_on(what: str) -> str:
        did.append(what)
        return what

    def at_once(what: str) -> str:
        did.append(what)
        return what

    @rt.agent
    async def coder(turn: Turn) -> list:
        found = [
            await turn.once("a", later_on, "async"),
            await turn.once("b", at_once, "sync"),
            await turn.once("b", at_once, "sync, second"),
            await turn.once("nothing", lambda: None),
        ]
        if len(did) == 3:
            did.append("failed")
            raise Shaky
        return found

    task = await rt.submit("coder", "x")
    await reached(rt, task.id, "pending")
    clock.advance(2)
    assert await task.result(PATIENCE) == ["async", "sync", "sync, second", None]
    assert did == ["async", "sync", "sync, second", "failed"]
    done = [event.data["key"] for event in await rt.workspace.history() if event.kind == "effect.done"]
    assert done == ["a", "b", "b", "nothing"]
    await sound(rt)


@pytest.mark.rule("effect.once")
async def test_what_is_not_json_is_refused_and_what_raises_is_not_kept(rt: Runtime):
    @rt.agent
    async def coder(turn: Turn) -> str:
        with pytest.raises(BadInput, match="the result of effect 'a'"):
            await turn.once("a", object)
        with pytest.raises(ZeroDivisionError):
            await turn.once("b", lambda: 1 / 0)
        with pytest.raises(BadInput):
            await turn.once("", lambda: 1)
        return await turn.once("a", lambda: "fine")

    assert await rt.run("coder", "x") == "fine"
    assert sum(event.kind == "effect.done" for event in await rt.workspace.history()) == 1
    await sound(rt)
