"""Processes that were killed: what they held is free as soon as someone needs it, without a worker."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import anyio
import pytest

from engine.helping import PATIENCE
from programs import Program
from remit import Card, Refused, Turn
from remit.engine.ground import StoreAround
from remit.engine.presence.peers import Peers
from remit.engine.queue.takeover import Succession
from remit.engine.system import SystemClock, TimedIds
from remit.ports import NOTHING, Store, Wants
from remit.runtime.spending import audit_of
from remit.runtime.workspace import opening_of
from teams import echo, team
from workers.crew import as_url

pytestmark = pytest.mark.anyio

# A script that holds money and the one slot of its agent, until it is killed.
SCRIPT = """
import asyncio, sys
import remit

rt = remit.Runtime(sys.argv[1])


@rt.agent(concurrency=1)
async def slow(turn):
    async with turn.paid_call("$0.50", why="call"):
        print(turn.remit.id, flush=True)
        await asyncio.Event().wait()


async def main():
    if sys.argv[2] == "submit":
        await (await rt.submit("slow", "x", credits="$5")).wait()
    else:
        await rt.run("slow", "x", **({"credits": "$5"} if sys.argv[2] == "aside" else {}))


asyncio.run(main())
"""


@pytest.fixture(params=["file", "postgres"])
def where(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return str(tmp_path / "team.db") if request.param == "file" else as_url(request.getfixturevalue("address"))


def killed(where: str, how: str) -> str:
    """Run the script until it is in its call, and kill it; gives the id of its task."""
    process = Program("-c", SCRIPT, where, how)
    try:
        return process.stdout.readline().strip()
    finally:
        process.kill()
        process.communicate()


async def killed_here(where: str, how: str) -> str:
    return await anyio.to_thread.run_sync(killed, where, how)


async def quick(turn: Turn) -> str:
    async with turn.paid_call("$0.10", why="call") as call:
        call.cost("$0.10")
    return "done"


@pytest.mark.rule("gone.money")
async def test_money_that_a_killed_script_had_set_aside_is_free_when_someone_needs_it(where: str):
    with team(where) as rt:
        rt.add(Card("slow", concurrency=1), quick)
        await rt.workspace.money.grant("$10")
        task = await killed_here(where, "aside")
        assert await rt.run("slow", "quick", credits="$8") == "done"
        account = (await rt.workspace.money.account()).credits
        assert account is not None
        assert (account.lent, account.spent) == (0, 600_000)  # the call that was begun stays uncertain
        assert [hold.credits for hold in await rt.workspace.money.uncertain()] == [500_000]
        status = await rt.workspace.tasks.get(task).status()
        assert status.state == "failed"
        assert (await rt.workspace.journal.read(audit_of, long=True)).sound
        assert (await rt.workspace.check()).sound


@pytest.mark.rule("gone.money")
async def test_money_that_a_killed_script_held_for_a_call_is_free_for_the_next_call(where: str):
    with team(where) as rt:
        rt.add(Card("shop"), quick)
        await rt.workspace.money.grant("$0.55")
        await killed_here(where, "shared")
        with pytest.raises(Exception, match="has \\$0.05 left of \\$0.55"):  # what was begun is charged whole
            await rt.run("shop", "x")
        await rt.workspace.money.reconcile((await rt.workspace.money.uncertain())[0].id, "$0.01")
        assert await rt.run("shop", "x") == "done"


@pytest.mark.rule("gone.money")
async def test_those_who_are_refused_at_once_beside_one_that_is_gone_are_all_told_so(where: str):
    """Each of them looks for what is held, and only the first finds it."""
    await killed_here(where, "shared")
    with team(where) as rt:
        rt.add(Card("shop"), quick)

        @rt.agent(asks="*")
        async def lead(turn: Turn) -> list[bool]:
            return [one.ok for one in await turn.delegate_all([("shop", str(n)) for n in range(4)], credits="$0.40")]

        assert await rt.run("lead", "x", credits="$1") == [True, True, False, False]
        refused = [event.data["rule"] for event in await rt.workspace.journal.history() if event.kind == "hop.refused"]
        assert refused == ["credits", "credits"]


@pytest.mark.rule("gone.money")
async def test_what_was_submitted_keeps_its_money_until_it_is_done(where: str):
    with team(where, hands=0) as rt:
        rt.add(Card("slow", concurrency=1), quick)
        await rt.workspace.money.grant("$10")
        task = await killed_here(where, "submit")
        with pytest.raises(Refused, match="was not asked"):
            await rt.run("slow", "quick", credits="$8")
        assert (await rt.workspace.tasks.get(task).status()).state == "pending"


class LateBeat(StoreAround):
    """A store that a killed process's last heartbeat reaches when others have seen that it has ended."""

    __slots__ = ("_late",)

    def __init__(self, store: Store, late: Callable[[], None]) -> None:
        super().__init__(store)
        self._late: Callable[[], None] | None = late

    async def tx(self, op: str, decide: Any, wants: Wants = NOTHING) -> Any:
        late, self._late = self._late, None
        if late is not None:
            await anyio.to_thread.run_sync(late)
        return await self._store.tx(op, decide, wants)


@pytest.mark.rule("gone.money")
async def test_a_last_heartbeat_that_comes_late_keeps_nothing(where: str):
    with team(where, hands=0) as rt:
        await rt.workspace.money.grant("$10")
        task = await killed_here(where, "submit")
        opening = opening_of(rt.workspace)
        [beat] = await rt.workspace.journal.read(lambda view: view.workers())
        pulse = opening.database.pulse("default")
        assert pulse is not None
        store = LateBeat(opening.database.store("default"), lambda: pulse.write(beat._replace(count=beat.count + 1)))
        clock = SystemClock()
        succession = Succession(store, clock, TimedIds(), Peers(clock, 60, 1))
        assert await succession.relieve()
        assert (await rt.workspace.tasks.get(task).status()).state == "running"  # whoever wrote it might have lived
        assert await succession.relieve()
        assert (await rt.workspace.tasks.get(task).status()).state == "pending"
        assert not await succession.relieve()
        pulse.close()


@pytest.mark.rule("gone.slots")
@pytest.mark.parametrize("patience", [0, None])
async def test_the_slot_of_a_killed_script_is_free_when_someone_needs_it(where: str, patience: int | None):
    await killed_here(where, "shared")
    with team(where) as rt:
        rt.add(Card("slow", concurrency=1), echo)
        with anyio.fail_after(PATIENCE):
            assert await rt.run("slow", "next", busy_timeout=patience) == "next"


@pytest.mark.rule("gone.cancel")
@pytest.mark.parametrize("how", ["shared", "aside"])
async def test_cancelling_ends_what_nobody_runs_at_once(where: str, how: str):
    with team(where) as owner:
        await owner.workspace.money.grant("$10")
        task = await killed_here(where, how)
        await owner.workspace.tasks.get(task).cancel("not needed")
        assert (await owner.workspace.tasks.get(task).status()).state == "cancelled"
        account = (await owner.workspace.money.account()).credits
        assert account is not None
        assert (account.reserved, account.lent) == (0, 0)


@pytest.mark.rule("gone.money")
async def test_a_worker_without_the_agents_gives_the_money_back_too(where: str):
    with team(where, silence=1) as worker, team(where) as rt:
        worker.add(Card("other"), echo)
        rt.add(Card("slow", concurrency=1), quick)
        await rt.workspace.money.grant("$10")
        async with worker.serving():
            task = await killed_here(where, "aside")
            with anyio.fail_after(PATIENCE):
                while (await rt.workspace.tasks.get(task).status()).state != "pending":  # noqa: ASYNC110
                    await anyio.sleep(0.05)
            assert await rt.run("slow", "quick", credits="$8") == "done"
