"""Decisions read from their view and touch nothing else: a store can run a decision twice, with the same effect."""

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import anyio
import pytest

from engine.helping import Shaky, doomed, ends, found, happened, named, reached, sound, take_over
from remit import Card, Command, Plan, Runtime, Send, Step, Turn
from remit.core.times import SECOND
from remit.ports import Database
from remit.settings import BreakerPolicy
from remit.testing import CountedIds, FakeClock, Zombie
from teams import echo, team
from wrapped import Twice

pytestmark = pytest.mark.anyio

Scene = Callable[[Runtime, FakeClock], Awaitable[object]]


async def delegate(rt: Runtime, clock: FakeClock) -> object:
    @rt.agent(asks="*", concurrency=1)
    async def lead(turn: Turn) -> list:
        first = await turn.delegate("coder", "x")
        await turn.context.set("notes", "k", first)
        await turn.send("coder", "hello")
        await turn.once("pay", lambda: 5)
        rest = await turn.delegate_all([("coder", "y"), ("nobody", "z"), ("bad", "w"), ("lead", "v")])
        return [first, *(str(one) for one in rest)]

    @rt.agent
    async def bad(turn: Turn) -> None:
        raise ValueError("no")

    @rt.agent
    async def coder(turn: Turn) -> list[str]:
        return [message.text for message in await turn.inbox()]

    return await rt.run("lead", "go", session="s")


async def submit(rt: Runtime, clock: FakeClock) -> object:
    @rt.agent(asks="*")
    async def lead(turn: Turn) -> list:
        tasks = [await turn.submit("coder", "x"), await turn.submit("coder", "x"), await turn.spawn("coder", "y")]
        results = [await task.result() for task in tasks]
        return [*results, len(await turn.inbox())]

    rt.add(Card("coder", concurrency=1), echo)
    task = await rt.submit("lead", "go", session="s", key="k")
    return [await task.result(), (await rt.submit("lead", "go", session="s", key="k")).existing]


async def handoff(rt: Runtime, clock: FakeClock) -> object:
    @rt.agent(asks="*")
    async def first(turn: Turn) -> Command:
        return await turn.hand_off("second", {"phase": "two"})

    @rt.agent(asks="*")
    async def second(turn: Turn) -> object:
        return turn.handoff.refused or Command("nobody")

    return await rt.run("first", "go", session="s")


async def fan_out(rt: Runtime, clock: FakeClock) -> object:
    @rt.agent(asks="*")
    async def first(turn: Turn) -> Command:
        return Command([Send("coder", "a"), Send("coder", "b")], join="last")

    @rt.agent
    async def last(turn: Turn) -> list[str]:
        return [str(one) for one in turn.handoff.results]

    rt.add(Card("coder"), echo)
    return await rt.run("first", "go", session="s")


async def cancel(rt: Runtime, clock: FakeClock) -> object:
    inside = anyio.Event()

    @rt.agent(asks="*")
    async def lead(turn: Turn) -> None:
        await turn.delegate("stuck", "x")

    @rt.agent
    async def stuck(turn: Turn) -> None:
        inside.set()
        await anyio.sleep_forever()

    task = await rt.submit("lead", "go", session="s")
    await happened(inside)
    return [await task.cancel("enough"), (await task.wait()).state]


async def retry(rt: Runtime, clock: FakeClock) -> object:
    tries: list[int] = []

    @rt.agent(asks="*")
    async def shaky(turn: Turn) -> int:
        tries.append(1)
        await turn.once("pay", lambda: 5)
        if len(tries) in (1, 3):
            raise Shaky
        if len(tries) == 2:
            raise ValueError("no")
        return len(tries)

    task = await rt.submit("shaky", "go", session="s")
    await reached(rt, task.id, "pending")
    clock.advance(1)
    assert (await task.wait()).state == "failed"
    again = await task.retry()
    ready_at = await found(rt, lambda view: view.record(again.id).ready_at or None)  # it has failed once more
    clock.advance((ready_at - clock.now()) / SECOND)
    return await again.result()


async def plan(rt: Runtime, clock: FakeClock) -> object:
    @rt.agent
    async def bad(turn: Turn) -> None:
        raise ValueError("no")

    rt.add(Card("coder"), echo)
    steps = [
        Step("a", "A", agent="coder"),
        Step("b", "B", agent="bad", retries=1),
        Step("c", "C", agent="coder", after=["a"]),
        Step("d", "D", agent="coder", after=["b"]),
    ]
    outcome = await rt.run_plan(Plan(steps), session="s", concurrency=1)
    return outcome.states()


SCENES: dict[str, Scene] = {one.__name__: one for one in (delegate, submit, handoff, fan_out, cancel, retry, plan)}


async def told(database: str | Database, scene: Scene) -> tuple[object, list[Any], str]:
    """What came of it, all that is on record, and how many ids and operations that took."""
    clock, ids = FakeClock(), CountedIds()
    with team(database, clock=clock, ids=ids, breaker=BreakerPolicy(failures=1_000)) as rt:
        with anyio.fail_after(5):
            result = await scene(rt, clock)
        history = await rt.workspace.journal.history()
        await sound(rt)
        events = [(event.kind, event.at, event.task, event.agent, event.op, event.data) for event in history]
        return result, events, ids.new()


@pytest.mark.rule("decision.pure")
@pytest.mark.parametrize("name", SCENES)
async def test_deciding_twice_changes_nothing(name: str):
    once = await told(":memory:", SCENES[name])
    database = Twice(":memory:")
    assert await told(database, SCENES[name]) == once
    assert database.decisions >= 5


@pytest.mark.rule("decision.pure")
async def test_taking_over_twice_changes_nothing(tmp_path: Path):
    """Two processes commit when they can, so what they record is compared and not in which order."""

    async def taken_over(path: Path, around: Callable[[Any], Any]) -> tuple[object, list[str]]:
        clock, inside = FakeClock(), anyio.Event()
        did: list[str] = []
        with doomed(around(Zombie.database(path)), clock) as dead, team(around(path), clock=clock) as heir:

            async def lead(turn: Turn) -> list:
                paid = await turn.once("pay", lambda: did.append("pay") or 5)
                return [paid, await turn.delegate("coder", "x"), await turn.delegate("slow", "x")]

            async def slow(turn: Turn) -> str:
                if not inside.is_set():
                    inside.set()
                    await anyio.sleep_forever()
                return "done"

            for rt in (dead, heir):
                rt.add(Card("lead", asks="*"), lead)
                rt.add(Card("coder"), echo)
                rt.add(Card("slow"), slow)
            await dead.submit("lead", "go")
            await happened(inside)
            await take_over(heir, clock, dead)
            outcome = await ends(clock, heir.workspace.tasks.get(await named(heir, "lead")))
            events = [event for event in await heir.workspace.journal.history() if event.kind != "cards.published"]
            await sound(heir)
            return [outcome.value, did], sorted(f"{event.kind} {event.agent}" for event in events)

    once = await taken_over(tmp_path / "once.db", lambda store: store)
    assert await taken_over(tmp_path / "twice.db", Twice) == once
    assert once[0] == [[5, "x", "done"], ["pay"]]
