"""Agents that keep failing are left alone for a while, and tried again with care."""

from collections.abc import Sequence

import anyio
import pytest

from programs import Said, ran
from remit import Command, Event, Failed, Refused, Runtime, Turn
from remit.core import breaker as breakers
from remit.core.breaker import BreakerPolicy
from remit.core.events import Place
from remit.core.kinds.workspace import breaker_set
from remit.ports import Decision
from remit.runtime.workspace import opening_of, subscribe
from remit.testing import FakeClock
from teams import team

pytestmark = pytest.mark.anyio


def flaky(rt: Runtime) -> dict[str, bool]:
    """An agent that fails as long as the switch says so."""
    switch = {"broken": True}

    @rt.agent("flaky")
    async def answer(turn: Turn) -> str:
        if switch["broken"]:
            raise ConnectionError("down")
        return "up"

    return switch


async def asked(rt: Runtime, times: int = 1) -> list[str]:
    return [(await rt.outcome("flaky", "x")).state for _ in range(times)]


@pytest.mark.rule("breaker.opens")
async def test_three_failures_in_a_row_open_it_and_it_is_not_asked_while_open(rt: Runtime):
    switch = flaky(rt)
    assert await asked(rt, 2) == ["failed", "failed"]
    switch["broken"] = False
    assert await asked(rt) == ["completed"]  # a success ends the row
    switch["broken"] = True
    assert await asked(rt, 5) == ["failed", "failed", "failed", "refused", "refused"]
    with pytest.raises(Refused, match="'flaky' failed 3 times in a row and is paused for 60 s"):
        await rt.run("flaky", "x")


@pytest.mark.rule("breaker.probe")
async def test_after_the_cool_off_one_success_closes_it_and_one_failure_opens_it_again(rt: Runtime, clock: FakeClock):
    switch = flaky(rt)
    await asked(rt, 3)
    clock.advance(60)
    assert await asked(rt, 2) == ["failed", "refused"]
    clock.advance(60)
    switch["broken"] = False
    assert await asked(rt, 3) == ["completed", "completed", "completed"]
    assert "flaky" not in await rt.workspace.agents.breakers()


@pytest.mark.rule("breaker.probe")
async def test_of_a_hundred_at_once_exactly_one_is_the_probe(rt: Runtime, clock: FakeClock):
    release = anyio.Event()
    inside: list[str] = []
    switch = {"broken": True}

    @rt.agent
    async def flaky(turn: Turn) -> str:
        if switch["broken"]:
            raise ConnectionError("down")
        inside.append(turn.task)
        await release.wait()
        return "up"

    await asked(rt, 3)
    clock.advance(60)
    switch["broken"] = False

    @rt.agent(asks="*")
    async def lead(turn: Turn) -> list[str]:
        return sorted(one.state for one in await turn.delegate_all([("flaky", str(n)) for n in range(100)]))

    refused: list[Event] = []

    def see(events: Sequence[Event]) -> None:
        refused.extend(event for event in events if event.kind == "hop.refused")
        if len(refused) == 99:
            release.set()

    subscribe(rt.workspace, see)
    assert await rt.run("lead", "go") == ["completed", *["refused"] * 99]
    assert len(inside) == 1


@pytest.mark.rule("breaker.expires")
async def test_a_probe_that_never_reports_expires(rt: Runtime, clock: FakeClock):
    switch = flaky(rt)
    await asked(rt, 3)
    clock.advance(60)
    # The probe of a process that died: let through, and never heard of again.
    before = (await rt.workspace.agents.breakers())["flaky"]
    probing = breakers.probing(before, BreakerPolicy(), "a-task-that-died", clock.now())
    await opening_of(rt.workspace).ground.store.tx(
        "probe", lambda _: Decision(None, (breaker_set("flaky", probing, Place(), clock.now()),))
    )
    switch["broken"] = False
    assert await asked(rt) == ["refused"]
    clock.advance(299)
    assert await asked(rt) == ["refused"]
    clock.advance(1)
    assert await asked(rt, 2) == ["completed", "completed"]


@pytest.mark.rule("breaker.own-failures")
async def test_refusals_and_cancellations_are_not_the_agents_failures(rt: Runtime):
    @rt.agent(asks="*")
    async def flaky(turn: Turn) -> str:
        if turn.task == "ask":
            return await turn.delegate("nobody", "x")
        await rt.workspace.tasks.cancel(turn.remit.id)
        await anyio.sleep_forever()
        return "never"

    for _ in range(4):
        assert (await rt.outcome("flaky", "ask")).state == "failed"
        assert (await rt.outcome("flaky", "stop")).state == "cancelled"
    assert await rt.workspace.agents.breakers() == {}


@pytest.mark.rule("breaker.shared")
async def test_a_breaker_survives_a_restart_and_holds_for_every_run(tmp_path):
    clock = FakeClock()
    with team(tmp_path / "team.db", clock=clock) as rt:
        flaky(rt)
        await asked(rt, 3)
    with team(tmp_path / "team.db", clock=clock) as rt:
        flaky(rt)["broken"] = False
        assert await asked(rt) == ["refused"]

        @rt.agent(asks="*")
        async def lead(turn: Turn) -> str:
            with pytest.raises(Refused) as no:
                await turn.delegate("flaky", "x")
            return no.value.rule

        assert await rt.run("lead", "go") == "breaker"
        clock.advance(60)
        assert await asked(rt) == ["completed"]
    with team(tmp_path / "team.db", workspace="other", clock=clock) as rt:
        assert await rt.workspace.agents.breakers() == {}


@pytest.mark.rule("breaker.operator")
async def test_an_operator_takes_an_agent_out_and_lets_it_in_again(rt: Runtime, clock: FakeClock):
    flaky(rt)["broken"] = False
    await rt.workspace.agents.trip("Flaky", "maintenance")
    clock.advance(1_000_000)
    with pytest.raises(Refused, match="taken out by an operator: maintenance"):
        await rt.run("flaky", "x")
    await rt.workspace.agents.reset("flaky")
    assert await rt.run("flaky", "x") == "up"


async def test_how_soon_it_opens_is_the_owners_to_say():
    with team(breaker=BreakerPolicy(failures=1, cool_off=5), clock=FakeClock()) as rt:
        flaky(rt)
        assert await asked(rt, 2) == ["failed", "refused"]


async def test_an_agent_that_is_out_is_not_handed_anything(rt: Runtime):
    flaky(rt)
    await rt.workspace.agents.trip("flaky", "away")

    @rt.agent(asks="*")
    async def lead(turn: Turn) -> str:
        with pytest.raises(Refused) as no:
            await turn.hand_off("flaky")
        return no.value.rule

    assert await rt.run("lead", "go") == "breaker"


@pytest.mark.rule("breaker.probe")
async def test_a_task_handed_to_an_agent_that_rested_is_its_probe(rt: Runtime, clock: FakeClock):
    switch = flaky(rt)
    await asked(rt, 3)
    clock.advance(60)
    switch["broken"] = False

    @rt.agent(asks="*")
    async def lead(turn: Turn) -> Command:
        return Command("flaky")

    assert await rt.run("lead", "go") == "up"
    assert "flaky" not in await rt.workspace.agents.breakers()


@pytest.mark.rule("breaker.probe")
async def test_handing_over_is_a_success_of_who_hands_over(rt: Runtime, clock: FakeClock):
    switch = {"broken": True}

    @rt.agent(asks="*")
    async def flaky(turn: Turn) -> Command:
        if switch["broken"]:
            raise ConnectionError("down")
        return Command("other")

    @rt.agent
    async def other(turn: Turn) -> str:
        return "done"

    await asked(rt, 3)
    clock.advance(60)
    switch["broken"] = False
    assert await asked(rt, 2) == ["completed", "completed"]
    assert (await rt.workspace.agents.breakers()).get("flaky") is None


@pytest.mark.rule("breaker.shared")
def test_a_probe_whose_process_is_killed_does_not_block_the_agent_forever(tmp_path):
    """The killed process is real; the wait is the breaker's own, shortened by its policy."""
    script = """
import sys, os, signal
import remit
from remit.settings import BreakerPolicy, Policy
rt = remit.Runtime(sys.argv[1], policy=Policy(breaker=BreakerPolicy(failures=1, cool_off=0.000001, probe=0.000001)))
@rt.agent
async def flaky(turn):
    if turn.task == "die":
        os.kill(os.getpid(), signal.SIGKILL)
    if turn.task == "fail":
        raise ValueError("no")
    return "up"
try:
    print(remit.run(rt, "flaky", sys.argv[2]))
except remit.Failed:
    print("failed")
"""
    where = str(tmp_path / "team.db")

    def process(task: str) -> Said:
        return ran("-c", script, where, task)

    assert process("fail").stdout.strip() == "failed"
    assert process("die").returncode == -9
    assert process("work").stdout.strip() == "up"


async def test_a_failure_of_someone_asked_is_not_the_askers_breaker(rt: Runtime):
    flaky(rt)

    @rt.agent(asks="*")
    async def lead(turn: Turn) -> str:
        with pytest.raises(Failed):
            await turn.delegate("flaky", "x")
        return "fine"

    await rt.run("lead", "go")
    assert set(await rt.workspace.agents.breakers()) == {"flaky"}
