"""What nothing needs any more is cut out of the journal, and all that is left folds to the same tables as before."""

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st

from deep import some
from engine.helping import PATIENCE, happened, sound
from remit import Card, Runtime, Turn
from remit.core.entry import Message
from remit.core.events import Gap, Mark
from remit.core.kinds.sharing import message_sent, messages_taken
from remit.core.kinds.tasks import Begun, ended, started
from remit.core.remit import place
from remit.engine.upkeep.prune import gaps_left_by
from remit.errors import Conflict
from remit.ports import Decision
from remit.runtime.workspace import opening_of
from remit.testing.clauses.making import Dice, first_remit
from remit.testing.doubles import FakeClock
from teams import echo, team

pytestmark = pytest.mark.anyio

DAY = 86_400


@pytest.fixture(params=["memory", "file", "postgres"])
def rt(request, tmp_path, clock):
    places = {"memory": ":memory:", "file": tmp_path / "team.db"}
    where = places.get(request.param) or request.getfixturevalue("address")
    with team(where, clock=clock, keep_days=None) as runtime:
        yield runtime


async def kinds(rt: Runtime) -> list[str]:
    return [event.kind for event in await rt.workspace.journal.history()]


async def gaps(rt: Runtime) -> list[Gap]:
    return await opening_of(rt.workspace).ground.store.read(lambda view: view.gaps_after(0, 10_000))


async def again_and_again(rt: Runtime, clock: FakeClock) -> None:
    """Prune until nothing more is old."""
    for _ in range(3):
        clock.advance(2 * DAY)
        await rt.workspace.prune(1)


def busy(rt: Runtime, dice: Dice) -> None:
    """Add agents that do a bit of everything."""

    @rt.agent(asks="*", reads="*", writes="*")
    async def lead(turn: Turn) -> str:
        for _ in range(dice.below(4)):
            key, ttl = f"k{dice.below(6)}", (None, 60, 3 * DAY)[dice.below(3)]
            match dice.below(5):
                case 0 | 1:
                    await turn.context.set("notes", key, dice.below(9), ttl=ttl)
                case 2:
                    await turn.context.touch("notes", key, 100)
                case 3:
                    await turn.context.remove("notes", key)
                case _:
                    await turn.send("helper", "hello")
        if dice.below(10) < 5:
            await turn.delegate("helper", "x")
        if dice.below(10) < 2:
            raise ValueError("no")
        return "done"

    @rt.agent
    async def helper(turn: Turn) -> int:
        return len(await turn.inbox())


async def live(rt: Runtime, clock: FakeClock, dice: Dice, step: int) -> None:
    for number in range(1 + dice.below(4)):
        await rt.outcome("lead", f"{step} {number}", session=f"s{dice.below(5)}")
    if dice.below(10) < 3:
        await (await rt.submit("helper", "x", key=f"key {step}")).wait(PATIENCE)
    if dice.below(10) < 2:
        await rt.workspace.context().set("notes", f"k{dice.below(6)}", step)
    clock.advance(1 + dice.below(2 * DAY))


@pytest.mark.untraced
@pytest.mark.rule("prune.cut")
@pytest.mark.parametrize("seed", some([1, 2]))
async def test_whatever_happened_the_journal_stays_sound_and_the_tables_as_they_are(rt: Runtime, clock, seed: int):
    dice = Dice(f"life {seed}")
    busy(rt, dice)
    context = rt.workspace.context()
    for step in range(40):
        await live(rt, clock, dice, step)
        if dice.below(10) < 4:
            before = [(one.key, one.value, one.version) for one in await context.query("notes")]
            await rt.workspace.prune((1, 3, 6)[dice.below(3)])
            await sound(rt)
            after = [(one.key, one.value, one.version) for one in await context.query("notes")]
            assert before == after
    await again_and_again(rt, clock)
    await sound(rt)
    left = [kind for kind in await kinds(rt) if kind not in ("entry.set", "entry.touched", "keys.kept", "journal.cut")]
    assert set(left) <= {"breaker.set", "cards.published", "entries.removed"}
    assert len(left) <= 5


@pytest.mark.untraced
@pytest.mark.rule("prune.flat")
async def test_a_store_that_is_pruned_every_day_does_not_grow(rt: Runtime, clock):
    @rt.agent(asks="*", writes="*")
    async def lead(turn: Turn) -> None:
        await turn.context.set("notes", f"of {turn.task}", "x" * 100, ttl=DAY)
        await turn.context.set("board", "state", turn.task)
        await turn.delegate("coder", "x")

    rt.add(Card("coder"), echo)
    sizes: list[int] = []
    for day in range(24):
        for number in range(5):
            await rt.run("lead", f"{day} {number}")
        clock.advance(DAY)
        await rt.workspace.context.cleanup()
        await rt.workspace.prune(2)
        tables = await opening_of(rt.workspace).ground.store.read(lambda view: view.tables())
        sizes.append(len(await rt.workspace.journal.history()) + len(await gaps(rt)) + sum(map(len, tables.values())))
    assert sizes[-1] <= max(sizes[8:14]) + 3, sizes
    await sound(rt)


@pytest.mark.rule("prune.cut", "entry.versions")
async def test_a_version_is_not_used_again_when_it_is_forgotten_that_it_was_used(rt: Runtime, clock):
    context = rt.workspace.context()
    for value in range(5):
        await context.set("notes", "a", value)
    await context.set("notes", "b", "x")
    stale = await context.entry("notes", "b")
    assert stale is not None
    await context.remove("notes", "a")
    await context.remove("notes", "b")
    await again_and_again(rt, clock)
    assert await kinds(rt) == ["journal.cut"]
    assert (await opening_of(rt.workspace).ground.store.read(lambda view: view.tables()))["retired"].keys() == {
        ("", "*")
    }
    for key in ("a", "b", "never there"):
        assert await context.set("notes", key, "new") == 6
    with pytest.raises(Conflict):
        await context.set("notes", "b", "lost", expect=stale.version)
    await sound(rt)


@pytest.mark.rule("prune.cut")
async def test_in_a_run_that_is_open_everything_stays_however_old_it_is(rt: Runtime, clock):
    inside, go = anyio.Event(), anyio.Event()

    @rt.agent(asks="*", writes="*")
    async def lead(turn: Turn) -> None:
        for value in range(3):
            await turn.context.set("notes", "a", value)
        inside.set()
        await go.wait()

    async with anyio.create_task_group() as group:  # it is asked in the foreground
        group.start_soon(rt.outcome, "lead", "go")
        await happened(inside)
        before = [event for event in await rt.workspace.journal.history() if event.run]
        clock.jump(10 * DAY)
        await rt.workspace.prune(1)
        assert [event for event in await rt.workspace.journal.history() if event.run] == before  # it may be done again
        go.set()
    await sound(rt)


@pytest.mark.rule("prune.cut")
async def test_what_a_task_took_that_was_tried_again_is_known_while_the_message_is_there(rt: Runtime, clock):
    now = clock.now()
    first, second = first_remit("first", session="s"), first_remit("second", session="s")
    mail = Message("m1", "s", "lead", "lead", "hello", now, "first", "about")
    events = (
        started(first, now, Begun("w")),
        message_sent(mail, place(first)),
        started(second, now, Begun("w")),
        messages_taken(["m1"], "lead", place(second), now),
        ended(second, "task.completed", now, {"result": None}),
    )
    await opening_of(rt.workspace).ground.store.tx("events", lambda _view: Decision(None, events))
    await again_and_again(rt, clock)
    assert await opening_of(rt.workspace).ground.store.read(lambda view: view.record("second")) is None
    assert "messages.taken" in await kinds(rt)
    await sound(rt)
    end = ended(first, "task.completed", clock.now(), {"result": None})
    await opening_of(rt.workspace).ground.store.tx("end", lambda _view: Decision(None, (end,)))
    await again_and_again(rt, clock)
    assert await kinds(rt) == ["journal.cut"]
    await sound(rt)


@pytest.mark.rule("prune.steps")
async def test_cutting_goes_in_steps_and_can_be_cancelled_between_them(rt: Runtime, clock):
    context = rt.workspace.context()
    for value in range(600):
        await context.set("notes", str(value % 2), value)
    clock.advance(2 * DAY)
    scope = anyio.CancelScope()
    stop = opening_of(rt.workspace).ground.store.subscribe(
        lambda events: scope.cancel() if events[0].kind == "journal.cut" else None
    )
    with scope:
        await rt.workspace.prune(1)
    stop()
    assert scope.cancelled_caught
    assert 300 <= (await kinds(rt)).count("entry.set") < 400
    await sound(rt)
    await rt.workspace.prune(1)
    assert (await kinds(rt)).count("entry.set") == 2
    await sound(rt)


@pytest.mark.rule("prune.cut")
async def test_nothing_is_cut_behind_the_first_event_that_is_young(rt: Runtime, clock):
    """A clock was wrong: what took back something must not go before that has gone."""
    context = rt.workspace.context()
    clock.jump(5 * DAY)
    await context.set("notes", "a", "from the future")
    clock.jump(-5 * DAY)
    await context.remove("notes", "a")
    clock.advance(2 * DAY)
    await rt.workspace.prune(1)
    assert await kinds(rt) == ["entry.set", "entries.removed"]
    await sound(rt)


class Around:
    """A view that knows these gaps."""

    def __init__(self) -> None:
        self.gaps: list[Gap] = []

    def gaps_around(self, first: int, last: int) -> list[Gap]:
        return [gap for gap in self.gaps if gap.last >= first - 1 and gap.first <= last + 1]

    def remove(self, places: list[int]) -> None:
        """Remove events as the table of gaps is told to."""
        for new in gaps_left_by(self, [Mark(seq, "", 0, "", "", "", "", None, str(seq)) for seq in places]):  # pyright: ignore[reportArgumentType]
            self.gaps = [*(gap for gap in self.gaps if not new.first <= gap.last <= new.last), new]


@pytest.mark.rule("prune.cut")
@given(st.lists(st.sets(st.integers(1, 12) | st.integers(580, 592), min_size=1), max_size=8))
def test_the_gaps_are_where_events_are_missing_and_no_two_of_them_touch(steps: list[set[int]]):
    view, gone = Around(), {*range(100, 560)}
    view.remove(sorted(gone))
    for step in steps:
        view.remove(sorted(step - gone))
        gone |= step
    assert sorted(seq for gap in view.gaps for seq in range(gap.first, gap.last + 1)) == sorted(gone)
    assert all(gap.hash == str(gap.last) and gap.last + 1 not in gone for gap in view.gaps)


@pytest.mark.rule("prune.cut")
def test_a_gap_between_two_that_are_far_apart_joins_them():
    view = Around()
    view.remove([*range(11, 1_000)])
    view.remove([10, 1_000])
    assert view.gaps == [Gap(10, 1_000, "1000")]


@pytest.mark.rule("prune.flat")
async def test_a_worker_cuts_the_journal_when_it_prunes(tmp_path, clock):
    with team(tmp_path / "team.db", clock=clock, keep_days=1) as rt:
        context = rt.workspace.context()
        for value in range(3):
            await context.set("notes", "a", value)
        async with rt.serving():
            heard = anyio.Event()
            opening_of(rt.workspace).ground.store.subscribe(
                lambda events: heard.set() if events[0].kind == "journal.cut" else None
            )
            clock.advance(2 * DAY)
            await happened(heard)
        assert (await kinds(rt)).count("entry.set") == 1
        await sound(rt)
