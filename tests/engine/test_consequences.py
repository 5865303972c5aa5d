"""What follows from an end comes with it, whoever writes the end; and no write makes a move that the table lacks."""

import anyio
import pytest

from engine.helping import doomed, ends, happened, named, reached, serving, sound, take_over
from remit import Bounds, Card, Event, Runtime, Turn
from remit.core import lifecycle
from remit.core.events import Place, Unsealed
from remit.core.kinds.tasks import Claim, claimed, moved
from remit.core.lifecycle import Record
from remit.core.times import SECOND
from remit.engine.consequences import CONSEQUENCES
from remit.errors import Conflict
from remit.ports import Decision
from remit.runtime.workspace import opening_of
from remit.testing import FakeClock
from teams import echo, team

pytestmark = pytest.mark.anyio

# Moves after which whoever runs a task goes on running it, or nobody has run it yet.
STAYS = {"task.submitted", "task.started", "task.waiting", "task.resumed", "task.queued", "task.cancelling"}


@pytest.mark.rule("consequences.complete")
def test_every_move_that_ends_or_takes_a_task_has_its_line():
    assert CONSEQUENCES.keys() >= lifecycle.ENDS
    assert CONSEQUENCES.keys() == lifecycle.MOVES - STAYS  # a new move is put on one side or the other


async def append(rt: Runtime, *events: Unsealed) -> None:
    await opening_of(rt.workspace).ground.store.tx(
        f"by hand {len(await rt.workspace.journal.history())}", lambda _view: Decision(None, events)
    )


async def record_of(rt: Runtime, task: str) -> Record:
    record = await rt.workspace.journal.read(lambda view: view.record(task))
    assert record is not None
    return record


def place(record: Record) -> Place:
    return Place(record.run, record.session, record.id)


@pytest.mark.rule("consequences.every-end")
@pytest.mark.parametrize("kind", sorted(lifecycle.ENDS))
async def test_an_end_brings_announcement_children_and_lesson_whichever_process_writes_it(
    tmp_path, clock: FakeClock, kind: str
):
    """A spawned task that was taken over, with a child that it had delegated: one bare event ends it."""
    with doomed(tmp_path / "team.db", clock) as dead, team(tmp_path / "team.db", clock=clock) as heir:
        inside = anyio.Event()

        async def lead(turn: Turn) -> None:
            await turn.spawn("middle", "x")
            await anyio.sleep_forever()

        async def middle(turn: Turn) -> None:
            await turn.delegate("leaf", "x")

        async def leaf(turn: Turn) -> None:
            inside.set()
            await anyio.sleep_forever()

        dead.add(Card("lead", asks="*"), lead)
        dead.add(Card("middle", asks="*"), middle)
        dead.add(Card("leaf"), leaf)
        await dead.submit("lead", "go")
        await happened(inside)
        await take_over(heir, clock, dead)
        task, below = await named(heir, "middle"), await named(heir, "leaf")
        record = await record_of(heir, task)
        claim = Claim("someone", record.fence + 1, record.attempt + 1)
        await append(heir, claimed(place(record), "middle", clock.now(), claim))
        before = len(await heir.workspace.journal.history())
        data = {"result": 1} if kind == "task.completed" else {"error": "no", "type": "Failed"}
        await append(heir, moved(kind, place(record), "middle", clock.now(), data))
        events = (await heir.workspace.journal.history())[before:]
        assert [event.task for event in events if event.kind == "message.sent"] == [task]
        assert [event.task for event in events if event.kind == "task.cancelled" and event.task != task] == [below]
        assert ("middle" in await heir.workspace.agents.breakers()) == (kind in ("task.failed", "task.died"))
        await sound(heir)


@pytest.mark.rule("consequences.every-end")
@pytest.mark.parametrize("how", ["cancelled", "late", "taken over too often", "tried too often"])
async def test_an_end_that_the_engine_writes_is_announced_and_learnt_from(tmp_path, clock: FakeClock, how: str):
    path = tmp_path / "team.db"
    with team(path, clock=clock, hands=0) as rt:
        told: list[str] = []
        asked, go = anyio.Event(), anyio.Event()

        @rt.agent(asks="*")
        async def lead(turn: Turn) -> None:
            await turn.spawn("coder", "x", attempts=1, within=Bounds(deadline=clock.now() + 100 * SECOND))
            asked.set()
            await go.wait()
            told.extend(message.text for message in await turn.inbox())

        async def coder(turn: Turn) -> None:
            if how == "tried too often":
                raise ConnectionError("no")
            await anyio.sleep_forever()

        rt.add(Card("coder"), coder)
        async with anyio.create_task_group() as group:
            group.start_soon(rt.run, "lead", "go")
            await happened(asked)
            task = rt.workspace.tasks.get(await named(rt, "coder"))
            if how == "cancelled":
                await task.cancel()
            elif how == "taken over too often":
                with doomed(path, clock) as dead:
                    dead.add(Card("coder"), coder)
                    dead.lend()
                    await reached(rt, task.id, "running")
                    async with serving(rt):
                        await take_over(rt, clock, dead)
                        await ends(clock, task)
            else:
                clock.advance(101 if how == "late" else 0)
                async with serving(rt):
                    await ends(clock, task)
            go.set()
        state = {"cancelled": "cancelled", "late": "failed"}.get(how, "dead")
        assert [text.partition(":")[0] for text in told] == [f"task {task.id} by 'coder' {state}"]  # pyright: ignore[reportPossiblyUnboundVariable]
        assert ("coder" in await rt.workspace.agents.breakers()) == (how == "tried too often")
        await sound(rt)


@pytest.mark.rule("breaker.probe")
async def test_a_success_ends_a_row_of_failures_also_of_one_that_was_asked_before_them(rt: Runtime):
    inside, go = anyio.Event(), anyio.Event()

    @rt.agent
    async def coder(turn: Turn) -> str:
        if turn.task == "fail":
            raise ValueError("no")
        inside.set()
        await go.wait()
        return "ok"

    async with anyio.create_task_group() as group:
        group.start_soon(rt.run, "coder", "work")
        await happened(inside)
        for _ in range(2):
            await rt.outcome("coder", "fail")
        assert (await rt.workspace.agents.breakers())["coder"].failures == 2
        go.set()
    assert await rt.workspace.agents.breakers() == {}


# -- the table -----------------------------------------------------------------------------------------------------


async def kinds(rt: Runtime) -> list[Event]:
    return await rt.workspace.journal.history()


@pytest.mark.rule("lifecycle.asked")
async def test_a_move_that_the_table_lacks_is_refused_and_changes_nothing(clock: FakeClock):
    with team(clock=clock, hands=0) as rt:
        rt.add(Card("coder"), echo)
        task = await rt.submit("coder", "x")
        record = await record_of(rt, task.id)
        before = await kinds(rt)
        for kind in ("task.waiting", "task.handed", "task.completed", "task.queued"):
            with pytest.raises(Conflict, match="a task that is pending cannot be"):
                await append(rt, moved(kind, place(record), "coder", clock.now(), {}))
        assert await kinds(rt) == before
        assert await record_of(rt, task.id) == record
        await sound(rt)


@pytest.mark.rule("lifecycle.asked")
async def test_what_is_being_cancelled_cannot_go_on(rt: Runtime, clock: FakeClock):
    inside, go = anyio.Event(), anyio.Event()

    @rt.agent
    async def slow(turn: Turn) -> None:
        inside.set()
        with anyio.CancelScope(shield=True):
            await happened(go)

    task = await rt.submit("slow", "x")
    await happened(inside)
    await task.cancel()
    record = await record_of(rt, task.id)
    before = await kinds(rt)
    for kind in ("task.resumed", "task.completed", "task.waiting", "task.claimed"):
        with pytest.raises(Conflict, match="a task that is cancelling cannot be"):
            await append(rt, moved(kind, place(record), "slow", clock.now(), {}))
    assert await kinds(rt) == before
    assert await record_of(rt, task.id) == record
    go.set()
    assert (await task.wait()).state == "cancelled"
    with pytest.raises(Conflict, match="a task that is cancelled cannot be"):
        await append(rt, moved("task.cancelled", place(record), "slow", clock.now(), {}))
    await sound(rt)


@pytest.mark.rule("lifecycle.asked")
async def test_within_one_decision_each_move_is_asked_from_where_the_last_one_led(clock: FakeClock):
    with team(clock=clock, hands=0) as rt:
        rt.add(Card("coder"), echo)
        record = await record_of(rt, (await rt.submit("coder", "x")).id)
        first = claimed(place(record), "coder", clock.now(), Claim("w", record.fence + 1, 1))
        twice = [moved("task.waiting", place(record), "coder", clock.now(), {}) for _ in range(2)]
        with pytest.raises(Conflict, match="waiting cannot be waiting"):
            await append(rt, first, *twice)
        assert await record_of(rt, record.id) == record
        await append(rt, first, twice[0])
        assert (await record_of(rt, record.id)).state == "waiting"
