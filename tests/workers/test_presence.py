"""Processes that are busy, stopped or asleep beside others that watch them: alive is alive."""

import asyncio
import os
import signal

import anyio
import psycopg
import pytest

from remit import Runtime
from workers.crew import PATIENCE, Crew, sound, until

pytestmark = pytest.mark.anyio


@pytest.fixture(params=["file", "postgres"])
def both(request: pytest.FixtureRequest, tmp_path) -> Crew:
    """A crew on a file, and on a server."""
    return request.getfixturevalue("crew_on_file" if request.param == "file" else "crew")


@pytest.mark.rule("presence.thread")
@pytest.mark.case("resume/blocking")
@pytest.mark.parametrize("machine", ["same", "other"])
async def test_an_agent_that_blocks_its_loop_for_long_completes_at_the_first_attempt(both: Crew, machine: str):
    """Six times as long as a process may be silent, seen by a worker that would take over."""
    where = {} if machine == "same" else {"machine": "elsewhere"}
    first = both.start(silence=1, **where)
    await both.ready(first)
    with both.runtime() as rt:
        task = await rt.submit("blocks", "6")
        assert (await both.until("blocks"))[0].pid == first.pid
        await both.ready(both.start(silence=1))
        assert await task.result(PATIENCE) == f"by {first.pid}"
        assert (await task.status()).attempt == 1
        assert len(both.lines("blocks")) == 1
        await sound(rt)


@pytest.mark.rule("presence.patience", "crash.fence", "crash.neighbours")
@pytest.mark.case("resume/zombie")
async def test_a_worker_that_is_stopped_for_long_is_replaced_and_has_no_effect_when_it_goes_on(both: Crew):
    first = both.start(silence=1)
    await both.ready(first)
    with both.runtime() as rt:
        task = await rt.submit("charge", "order-7")
        await both.until("begun")
        os.kill(first.pid, signal.SIGSTOP)
        both.open("order-7")
        second = both.start(silence=1)
        await both.ready(second)
        assert await task.result(PATIENCE) == "order-7"
        os.kill(first.pid, signal.SIGCONT)
        [refused] = await both.until("kept-from-it")
        assert refused.pid == first.pid
        assert [line.pid for line in both.lines("charged")] == [second.pid]
        assert (await task.status()).attempt == 1  # nobody died, so nobody is to blame
        await sound(rt)


async def beats(rt: Runtime, more: int) -> None:
    """Wait until each of the two others has said so many times more that it is there, and so has looked at the rest."""

    async def counts() -> list[int]:
        heard = await rt.workspace.journal.read(lambda view: view.workers())
        return [beat.count for beat in heard if beat.worker != rt.worker]

    before = await counts()
    with anyio.fail_after(PATIENCE):
        while len(now := await counts()) < 2 or sum(now) < sum(before) + 2 * more:  # noqa: ASYNC110
            await asyncio.sleep(0.05)  # a heartbeat rings no bell


@pytest.mark.rule("presence.watch")
async def test_those_who_were_all_stopped_take_nothing_from_each_other(both: Crew):
    """As when the lid of a laptop is closed, or a virtual machine is paused: whoever wakes first has not listened."""
    first, second = both.start(silence=1, machine="one"), both.start(silence=1, machine="two")
    await both.ready(first, second)
    with both.runtime() as rt:
        tasks = [await rt.submit("gated", f"gate{number}") for number in range(2)]
        await both.until("begun", 2)
        await beats(rt, 4)  # each has heard of the other
        for one in (first, second):
            os.kill(one.pid, signal.SIGSTOP)
        await asyncio.sleep(3)  # three times as long as one may be silent
        for one in (first, second):
            os.kill(one.pid, signal.SIGCONT)
        await beats(rt, 4)
        for number in range(2):
            both.open(f"gate{number}")
        for task in tasks:
            await task.result(PATIENCE)
            assert (await task.status()).attempt == 1
        await sound(rt)


@pytest.mark.rule("presence.thread")
async def test_a_process_has_one_connection_for_heartbeats_while_it_serves(crew: Crew, address: str):
    def beating() -> int:
        with psycopg.connect(address) as connection:
            row = connection.execute(
                "SELECT count(*) FROM pg_stat_activity WHERE query LIKE 'INSERT INTO worker %' AND state = 'idle'"
            ).fetchone()
        assert row is not None
        return row[0]

    worker = crew.start(silence=1)
    await crew.ready(worker)
    await until(lambda: beating() == 1 or None)
    worker.send_signal(signal.SIGTERM)
    await until(lambda: beating() == 0 or None)
