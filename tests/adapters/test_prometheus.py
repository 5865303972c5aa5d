"""Figures for Prometheus: counted from the same facts, with the same labels."""

import asyncio
from pathlib import Path

import anyio
import httpx
import pytest
from prometheus_client import CollectorRegistry
from prometheus_client.parser import text_string_to_metric_families

from engine.people import asked
from remit import Card, Refused, Runtime, Turn
from remit.adapters.prometheus import collect, exposed, exposition
from remit.errors import BadInput
from remit.server.app import ServerSettings
from remit.server.callers import ADMIN, RUN
from remit.testing import FakeClock
from server.serving import app_of, caller, client
from teams import echo, team

pytestmark = pytest.mark.anyio


def samples(text: str) -> dict[str, float]:
    found = (one for family in text_string_to_metric_families(text) for one in family.samples)
    return {" ".join([one.name, *one.labels.values()]): one.value for one in found if one.name.startswith("remit")}


def join(rt: Runtime) -> None:
    @rt.agent(asks=["coder"])
    async def lead(turn: Turn) -> str:
        with pytest.raises(Refused):
            await turn.delegate("canary", "canary")
        return await turn.delegate("coder", turn.task)

    rt.add(Card("coder"), echo)


@pytest.mark.rule("metrics.prometheus")
async def test_all_runtimes_of_a_process_count_in_one_registry_and_a_port_shows_it():
    registry = CollectorRegistry()
    told = []
    for _ in range(2):
        with Runtime() as rt:
            join(rt)
            told.append(collect(rt, registry=registry))
            await rt.run("lead", "canary", session="canary")
    assert all(one.flush(20) for one in told)
    address, stop = exposed(0, registry)
    try:
        async with httpx.AsyncClient() as http:
            found = samples((await http.get(address)).text)
    finally:
        stop()
    assert found["remit_tasks_ended_total coder completed"] == 2
    assert found["remit_task_duration_seconds_count lead completed"] == 2
    assert found["remit_refusals_total lead unknown"] == 2
    assert "canary" not in exposition(registry).decode()
    for one in told:
        one.stop()


def test_a_port_that_is_taken_or_no_port_is_an_error_that_says_so():
    address, stop = exposed(0, CollectorRegistry())
    try:
        with pytest.raises(BadInput, match="cannot be used for metrics"):
            exposed(int(address.split(":")[2].split("/")[0]))
    finally:
        stop()
    with pytest.raises(BadInput, match="a port"):
        exposed(70_000)


@pytest.mark.rule("metrics.server")
async def test_a_server_shows_its_figures_to_admins_of_its_own_workspace_only():
    with Runtime() as rt:
        join(rt)
        callers = (caller("ann", ADMIN), caller("bob", RUN), caller("eve", ADMIN, workspace="other"))
        app = app_of(rt, *callers, settings=ServerSettings())
        async with app.running():
            await rt.run("lead", "canary")
            async with client(app) as ann, client(app, "bob") as bob, client(app, "eve") as eve, client(app, "") as who:
                answers = [await one.get("/metrics") for one in (ann, bob, eve, who)]
        assert [one.status_code for one in answers] == [200, 403, 403, 401]
        assert "remit_tasks_ended_total" in answers[0].text
        assert "canary" not in answers[0].text


@pytest.mark.rule("metrics.gauges")
async def test_a_server_shows_how_its_workspace_stands_and_reads_that_once_a_second(tmp_path: Path):
    clock, begun = FakeClock(), asyncio.Event()
    with team(tmp_path / "a.db", clock=clock) as rt:

        @rt.agent
        async def asks(turn: Turn) -> object:
            begun.set()
            return await turn.ask_human("which colour?")

        app = app_of(rt, settings=ServerSettings())

        async def shown() -> list[str]:
            lines = (await http.get("/metrics")).text.splitlines()
            return [line for line in lines if line.startswith(("remit_tasks_at_work", "remit_open_", "remit_workers"))]

        async with app.running(), client(app) as http:
            first = await shown()
            async with rt.serving():
                await rt.submit("asks", "x")
                with anyio.fail_after(30):
                    await begun.wait()
                    await asked(rt, 1)
                same = await shown()
                clock.advance(1)
                later = await shown()
    assert first == [*open_tasks(), "remit_tasks_at_work 0", "remit_open_questions 0", "remit_workers 0"]
    assert same == first
    assert later == [*open_tasks(waiting=1), "remit_tasks_at_work 0", "remit_open_questions 1", "remit_workers 1"]


def open_tasks(**by_state: int) -> list[str]:
    """The lines of the open tasks by state."""
    states = ("pending", "running", "waiting", "cancelling")
    return [f'remit_open_tasks{{state="{state}"}} {by_state.get(state, 0)}' for state in states]
