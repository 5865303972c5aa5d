"""Cards that workers publish: asked by whoever has the store, and asking by name."""

from pathlib import Path

import anyio
import anyio.lowlevel
import pytest
from anyio import to_thread

from commands import plain_environment
from engine.helping import PATIENCE, found, happened, reached, serving, sound
from programs import ran, running
from remit import Card, Refused, Runtime, Turn, Workspace
from remit.errors import BadInput, Conflict, NotFound
from remit.settings import System
from remit.testing import FakeClock
from teams import echo, team

pytestmark = pytest.mark.anyio

DAY = 86_400
TEAM = """
from remit import Runtime
rt = Runtime("team.db")
@rt.agent()
async def coder(turn):
    return turn.task
"""


@pytest.mark.rule("workspace.cards")
async def test_cards_that_a_worker_publishes_can_be_read_by_every_process_with_the_store(
    tmp_path: Path, clock: FakeClock
):
    path = tmp_path / "team.db"
    with team(path, clock=clock) as worker, Workspace(path, system=System(clock=clock)) as owner:
        worker.add(Card("coder", role="writes code", can="code"), echo)
        assert await owner.agents.list() == []
        with pytest.raises(Refused, match="there is no agent 'coder'"):
            await owner.submit("coder", "too soon")
        async with serving(worker):  # they are there before it begins to work
            assert await owner.journal.read(lambda view: view.card("coder")) == worker.cards()[0]
            assert [card.name for card in await owner.agents.list()] == ["coder"]
            assert [match.card.name for match in await owner.agents.find("code")] == ["coder"]
            task = await owner.submit("coder", "x", by="ann")
            assert await task.result(PATIENCE) == "x"
        assert (await owner.tasks.runs())[0].by == "ann"
        assert (await owner.check()).sound


@pytest.mark.rule("workspace.cards")
async def test_another_process_submits_to_a_published_card(tmp_path: Path):
    path = tmp_path / "team.db"
    script = """
import asyncio, sys, remit
async def main():
    with remit.Workspace(sys.argv[1]) as owner:
        print([card.name for card in await owner.agents.list()])
        print(await (await owner.submit("coder", "from afar")).result(30))
asyncio.run(main())
"""
    with Runtime(path) as worker:
        worker.add(Card("coder"), echo)
        async with serving(worker):
            done = await to_thread.run_sync(ran, "-c", script, path)
    assert done.stdout.splitlines() == ["['coder']", "from afar"]


@pytest.mark.rule("workspace.cards")
@pytest.mark.parametrize("words", [("worker", "team:rt"), ("serve", "team:rt", "--port", "0")])
async def test_a_worker_that_says_it_has_started_can_be_submitted_to_from_elsewhere(
    tmp_path: Path, words: tuple[str, ...]
):
    (tmp_path / "team.py").write_text(TEAM)
    with running("-m", "remit.cli", *words, cwd=tmp_path, env=plain_environment()) as worker:
        await to_thread.run_sync(worker.stdout.readline)
        with Workspace(tmp_path / "team.db") as owner:
            assert await (await owner.submit("coder", "at once")).result(PATIENCE) == "at once"


@pytest.mark.rule("workspace.cards")
async def test_cards_are_published_again_only_when_they_have_changed(tmp_path: Path, clock: FakeClock):
    async def publishes(card: Card) -> None:
        with team(tmp_path / "team.db", clock=clock) as worker:
            worker.add(card, echo)
            async with serving(worker):
                await found(worker, lambda view: True if view.card("coder") == card else None)

    async def times() -> int:
        with Workspace(tmp_path / "team.db") as owner:
            return len(await owner.journal.history(kinds=frozenset(("cards.published",))))

    await publishes(Card("coder", role="old"))
    await publishes(Card("coder", role="old"))
    assert await times() == 1
    await publishes(Card("coder", role="new"))
    assert await times() == 2


async def recorded(owner: Workspace) -> None:
    """Wait until a worker has said which agents it has."""
    with anyio.fail_after(PATIENCE):
        while not any(one.agents for one in (await owner.agents.workers()).workers):
            await anyio.lowlevel.checkpoint()


@pytest.mark.rule("workspace.withdraw")
async def test_a_card_is_withdrawn_when_nothing_needs_it(tmp_path: Path, clock: FakeClock):
    path = tmp_path / "team.db"
    with team(path, clock=clock) as worker, Workspace(path, system=System(clock=clock)) as owner:
        worker.add(Card("coder"), echo)
        async with serving(worker):
            await recorded(owner)
            assert [one.workers for one in await owner.looks.cards()] == [1]
            for ws in (owner, worker.workspace):
                with pytest.raises(Conflict, match="a worker has 'coder': it would publish the card again"):
                    await ws.agents.withdraw("coder")
        clock.advance(31)
        assert [one.workers for one in await owner.looks.cards()] == [0]
        task = await owner.submit("Coder", "x")
        with pytest.raises(Conflict, match="'coder' has tasks that have not ended"):
            await owner.agents.withdraw("coder")
        await task.cancel()
        await owner.schedules.add("nightly", "0 3 * * *", "coder", "x")
        with pytest.raises(Conflict, match="the schedule 'nightly' starts runs of 'coder'; remove it first"):
            await owner.agents.withdraw("coder")
        await owner.schedules.remove("nightly")
        access = await owner.access.make("ci", agent="coder")
        with pytest.raises(Conflict, match="the access key 'ci' asks in the name of 'coder'; revoke it first"):
            await owner.agents.withdraw("coder")
        await owner.access.revoke(access.id)
        await owner.agents.withdraw("Coder", op="tidy", by="ann")
        await owner.agents.withdraw("coder", op="tidy", by="ann")  # repeated, not another
        assert await owner.agents.list() == []
        with pytest.raises(Refused, match="there is no agent 'coder'"):
            await owner.submit("coder", "too late")
        with pytest.raises(NotFound, match="there is no card 'coder' in this workspace"):
            await owner.agents.withdraw("coder")
        async with serving(worker):
            assert [card.name for card in await owner.agents.list()] == ["coder"]
        assert (await owner.check()).sound


@pytest.fixture
def house(clock: FakeClock):
    with team(clock=clock, hands=0) as rt:
        rt.add(Card("stranger", asks=["lead"]), echo)
        rt.add(Card("lead", asks=["coder", "stranger"]), echo)
        rt.add(Card("coder", asks="*"), echo)
        yield rt


@pytest.mark.rule("workspace.asker")
async def test_a_card_may_ask_whom_it_may_ask_and_its_run_says_so(house: Runtime):
    remits: list = []

    @house.agent
    async def target(turn: Turn) -> str:
        remits.append(turn.remit)
        return turn.asker

    house.add(Card("outsider", asks=["target"]), echo)
    task = await house.workspace.submit("target", "x", asker="Outsider", session="s")
    async with serving(house):
        assert await task.result(PATIENCE) == "outsider"
    status = await task.status()
    assert (status.run, status.parent, status.session) == (task.id, "", "s")
    assert remits[0].names == ("outsider", "target")
    await sound(house)


@pytest.mark.rule("workspace.asker")
async def test_a_card_may_not_ask_whom_it_may_not_ask(house: Runtime):
    with pytest.raises(Refused, match="'stranger' may not ask 'coder'") as no:
        await house.workspace.submit("coder", "x", asker="stranger")
    assert no.value.rule == "not-allowed"
    with pytest.raises(Refused) as no:
        await house.workspace.submit("stranger", "x", asker="stranger")
    assert no.value.rule == "self"
    with pytest.raises(NotFound, match="there is no card"):
        await house.workspace.submit("coder", "x", asker="nobody")
    with pytest.raises(BadInput, match="asker="):
        await house.workspace.submit("coder", "x", under="some task")
    assert await house.workspace.tasks.list() == []


@pytest.mark.rule("workspace.asker")
async def test_a_loop_through_an_outsider_is_caught(house: Runtime):
    said: list[str] = []

    async def lead(turn: Turn) -> None:
        with pytest.raises(Refused) as no:
            await turn.delegate("stranger", "back to you")
        said.append(str(no.value))

    with house.override(lead=lead):
        task = await house.workspace.submit("lead", "x", asker="stranger")
        async with serving(house):
            await task.result(PATIENCE)
    assert "stranger > lead" in said[0]
    await sound(house)


@pytest.mark.rule("workspace.asker")
async def test_under_a_task_it_is_a_part_of_it(house: Runtime):
    inside, go = anyio.Event(), anyio.Event()

    async def lead(turn: Turn) -> str:
        inside.set()
        await go.wait()
        return "led"

    with house.override(lead=lead):
        async with serving(house):
            whole = await house.submit("lead", "the whole", session="s")
            await happened(inside)
            part = await house.workspace.submit("coder", "a part", asker="lead", under=whole.id)
            assert await part.result(PATIENCE) == "a part"
            status = await part.status()
            assert (status.parent, status.run, status.session) == (whole.id, whole.id, "s")
            with pytest.raises(NotFound, match="that 'coder' holds"):
                await house.workspace.submit("lead", "x", asker="coder", under=whole.id)
            with pytest.raises(NotFound, match="that 'lead' holds"):
                await house.workspace.submit("coder", "x", asker="lead", under="no such task")
            with pytest.raises(Refused) as no:
                await house.workspace.submit("lead", "x", asker="lead", under=whole.id)
            assert no.value.rule == "self"
            go.set()
            assert await whole.result(PATIENCE) == "led"
            with pytest.raises(Conflict, match="is completed; nothing can be asked as a part of it"):
                await house.workspace.submit("coder", "y", asker="lead", under=whole.id)
    await sound(house)


@pytest.mark.rule("workspace.asker")
async def test_what_is_cancelled_takes_what_was_asked_under_it_along(house: Runtime):
    async def stay(turn: Turn) -> None:
        await anyio.sleep_forever()

    with house.override(lead=stay, coder=stay):
        async with serving(house):
            whole = await house.submit("lead", "the whole")
            part = await house.workspace.submit("coder", "a part", asker="lead", under=whole.id)
            await reached(house, part.id, "running")
            assert await house.workspace.tasks.cancel(whole.id) == 2
            assert (await whole.wait(PATIENCE)).state == "cancelled"
            assert (await part.status()).state == "cancelled"
            with pytest.raises(Conflict, match="is cancelled; nothing can be asked"):
                await house.workspace.submit("coder", "too late", asker="lead", under=whole.id)
    await sound(house)
