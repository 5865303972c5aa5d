"""A runtime: opened when it is used, the same team elsewhere, one worker, and doubles for its agents."""

import subprocess
import sys
from pathlib import Path

import anyio
import pytest

from engine.helping import PATIENCE, happened, quiet, reached, sound
from remit import Card, Runtime, Turn
from remit.errors import BadInput
from remit.settings import Serving
from remit.testing import FakeClock, Scripted
from teams import echo, team

pytestmark = pytest.mark.anyio

DAY = 86_400


@pytest.mark.rule("runtime.lazy")
def test_importing_a_module_that_makes_a_runtime_makes_no_file(tmp_path: Path):
    (tmp_path / "team.py").write_text(
        "import remit\nrt = remit.Runtime('x.db')\nws = remit.Workspace('y.db')\n"
        "@rt.agent(asks='*')\nasync def lead(turn):\n    return 'hi'\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", "import team; print(team.rt, team.ws); team.rt.close(); team.ws.close()"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    assert done.stdout.strip() == "<Runtime of 1 agents in workspace default> <Workspace default>", done.stderr
    assert [path.name for path in tmp_path.iterdir() if path.suffix == ".db"] == []


DROPPED = """
import asyncio, gc
import remit

def once():
    rt = remit.Runtime()

    @rt.agent
    async def hello(turn):
        return "hi"

    print(asyncio.run(rt.run("hello", "x")))

once()
gc.collect()
"""


@pytest.mark.rule("runtime.lazy")
def test_a_runtime_in_memory_that_is_dropped_need_not_be_closed():
    """Only Python 3.13 and later warn of a connection that nobody closed; they print it and go on."""
    command = [sys.executable, "-W", "always", "-c", DROPPED]
    done = subprocess.run(command, capture_output=True, text=True)
    assert (done.stdout, done.stderr) == ("hi\n", "")


@pytest.mark.rule("runtime.at")
async def test_the_same_team_at_another_store_shares_agents_and_nothing_else(tmp_path: Path, clock: FakeClock):
    with team(tmp_path / "one.db", clock=clock, hands=0) as one:
        one.add(Card("coder"), echo)
        with one.at(tmp_path / "two.db", serving=Serving(concurrency=3)) as two:
            assert (one.concurrency, two.concurrency) == (0, 3)
            assert two.cards() == one.cards()
            assert await two.run("coder", "x") == "x"
            assert len(await two.workspace.tasks.list()) == 1
            assert await one.workspace.tasks.list() == []
            one.add(Card("late"), echo)
            assert await two.run("late", "y") == "y"
        assert await one.run("coder", "z") == "z"  # closing the other closes nothing here


@pytest.mark.rule("runtime.serving")
async def test_serving_twice_is_one_worker_that_stops_with_the_last_who_serves(tmp_path: Path, clock: FakeClock):
    with team(tmp_path / "team.db", clock=clock, hands=0) as rt:
        rt.add(Card("coder"), echo)
        async with rt.serving():
            async with rt.serving():
                task = await rt.submit("coder", "x")
                assert await task.result(PATIENCE) == "x"
            assert len((await rt.workspace.agents.workers()).workers) == 1
            assert await (await rt.submit("coder", "y")).result(PATIENCE) == "y"
        third = await rt.submit("coder", "z")
        await quiet()
        assert (await third.status()).state == "pending"


@pytest.mark.rule("runtime.serving")
async def test_serve_works_until_it_is_cancelled(clock: FakeClock):
    with team(clock=clock, hands=0) as rt:
        inside = anyio.Event()

        @rt.agent
        async def coder(turn: Turn) -> None:
            inside.set()
            await anyio.sleep_forever()

        task = await rt.submit("coder", "x")
        async with anyio.create_task_group() as group:
            group.start_soon(rt.serve)
            group.start_soon(rt.serve)
            await happened(inside)
            group.cancel_scope.cancel()
        await reached(rt, task.id, "pending")
        assert rt.running() == 0
        await sound(rt)


@pytest.mark.rule("runtime.override")
async def test_others_answer_while_an_override_lasts_and_cards_stay(rt: Runtime):
    rt.add(Card("coder", role="writes code"), echo)
    double = Scripted("scripted", ValueError("no"))
    with rt.override(coder=double) as same:
        assert same is rt
        assert await rt.run("coder", "one") == "scripted"
        assert (await rt.outcome("coder", "two")).state == "failed"
        assert rt.cards()[0].role == "writes code"
    assert double.tasks == ["one", "two"]
    assert await rt.run("coder", "three") == "three"
    unknown = "there is no agent 'nobody' to override; there are coder"
    with pytest.raises(BadInput, match=unknown), rt.override(coder=double, nobody=echo):
        pass
    with pytest.raises(BadInput, match="needs a function of a turn"), rt.override(coder="x"):
        pass
    assert await rt.run("coder", "four") == "four"
