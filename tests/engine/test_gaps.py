"""Removed events: whoever reads the journal is told which numbers are missing."""

from pathlib import Path
from typing import Any

import anyio
import pytest

from engine.helping import PATIENCE, sound
from engine.test_cutting import DAY, busy
from remit import Card, Runtime, Workspace
from remit.core.events import Event, Gap
from remit.errors import BadInput
from remit.runtime.journal import missing_numbers, stated_gaps
from remit.testing.clauses.making import Dice
from remit.testing.doubles import FakeClock
from teams import echo, team

pytestmark = pytest.mark.anyio


@pytest.fixture(params=["memory", "file", "postgres"])
def rt(request: pytest.FixtureRequest, tmp_path: Path, clock: FakeClock):
    places = {"memory": ":memory:", "file": tmp_path / "team.db"}
    with team(places.get(request.param) or request.getfixturevalue("address"), clock=clock) as runtime:
        yield runtime


class Reader:
    """Reads on whenever it is told to, in lists of at most so many events."""

    def __init__(self, workspace: Workspace, limit: int | None, **which: Any) -> None:
        more: Any = {} if limit is None else {"limit": limit}
        self._follow = workspace.journal.follow(after=0, gaps=True, **more, **which)
        self.found: list[Event | Gap] = []

    async def read(self) -> None:
        self.found += await self._follow.next(0)

    async def read_all(self) -> None:
        async with self._follow:
            while page := await self._follow.next(0):
                self.found += page

    @property
    def numbers(self) -> list[int]:
        return [number for one in self.found for number in numbers_of(one)]


def numbers_of(one: Event | Gap) -> range:
    return range(one.first, one.last + 1) if isinstance(one, Gap) else range(one.seq, one.seq + 1)


async def head(rt: Runtime) -> int:
    return (await rt.workspace.journal.read(lambda view: view.head())).seq


@pytest.mark.rule("journal.gaps")
@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("kind", ["memory", "file"])
async def test_what_is_seen_and_what_is_told_as_missing_are_all_numbers(
    kind: str, seed: int, tmp_path: Path, clock: FakeClock
):
    dice = Dice(seed)
    with team(":memory:" if kind == "memory" else tmp_path / "team.db", clock=clock) as rt:
        busy(rt, dice)
        readers = [Reader(rt.workspace, limit) for limit in (None, 3, 40)]
        some = Reader(rt.workspace, 5, kinds=frozenset(("task.started", "runs.pruned")))
        for _ in range(30):
            match dice.below(4):
                case 0 | 1:
                    await rt.outcome("lead", "go")
                case 2:
                    clock.advance(DAY * (1 + dice.below(3)))
                    await rt.workspace.prune(1 + dice.below(2))
                case _:
                    await [*readers, some][dice.below(4)].read()
        for reader in (*readers, some):
            await reader.read_all()
        everything = [*range(1, await head(rt) + 1)]
        assert [reader.numbers for reader in readers] == [everything] * 3
        assert any(isinstance(one, Gap) for one in readers[1].found)
        assert some.numbers == sorted({*some.numbers})
        gaps = await rt.workspace.journal.gaps()
        late = [event.seq for event in await rt.workspace.journal.history()]
        assert sorted([*late, *(number for gap in gaps for number in numbers_of(gap))]) == everything
        look = rt.workspace.journal.read
        assert await look(lambda view: stated_gaps(view, 0, len(everything) + 1)) == gaps
        assert await look(lambda view: missing_numbers(view, 0, len(everything) + 1)) == gaps
        await sound(rt)


@pytest.mark.rule("journal.gaps")
async def test_a_reader_before_or_in_a_gap_is_told_at_once(rt: Runtime, clock: FakeClock):
    rt.add(Card("coder"), echo)
    for number in range(20):
        await rt.run("coder", str(number))
    clock.advance(5 * DAY)
    assert await rt.workspace.prune(4) == 20
    last = await head(rt)
    [gap] = await rt.workspace.journal.gaps()
    assert (gap.first, gap.hash) == (1, "")
    for after in (0, 7, gap.last - 1):
        async with rt.workspace.journal.follow(after=after, gaps=True) as follow:
            with anyio.fail_after(PATIENCE):
                first, *rest = await follow.next()
            assert first == Gap(after + 1, gap.last)
            assert [one.seq for one in rest if isinstance(one, Event)] == [*range(gap.last + 1, last + 1)]
            assert await follow.next(0) == [], "it is told once"
        pages = rt.workspace.journal.follow(after=after, live=False, limit=1, gaps=True)
        assert [one async for page in pages for one in page] == [first, *rest]
        assert [one async for page in pages for one in page] == [first, *rest], "iterating again begins again"
    async with rt.workspace.journal.follow(after=gap.last, gaps=True) as follow:
        assert not any(isinstance(one, Gap) for one in await follow.next(0))
    async with rt.workspace.journal.follow(after=0) as follow:
        assert await follow.next(0) == rest, "nothing is told unless it is asked for"
    async with rt.workspace.journal.follow(after=3, gaps=True, run="no such run") as follow:
        assert await follow.next(0) == [Gap(4, gap.last)]


@pytest.mark.rule("journal.gaps")
async def test_gaps_between_two_numbers_are_cut_to_what_was_asked(rt: Runtime, clock: FakeClock):
    rt.add(Card("coder"), echo)
    for number in range(6):
        await rt.run("coder", str(number))
        clock.advance(2 * DAY)
        if number % 2:
            await rt.workspace.context().set("notes", str(number), number)
    await rt.workspace.prune(1)
    gaps = await rt.workspace.journal.gaps()
    assert len(gaps) > 1
    missing = {number for gap in gaps for number in numbers_of(gap)}
    end = await head(rt) + 3
    for after in range(end):
        for before in range(after, end):
            told = await rt.workspace.journal.gaps(after, before)
            assert [number for gap in told for number in numbers_of(gap)] == sorted(
                missing & {*range(after + 1, before)}
            )
    for wrong in (-1, "x", True):
        with pytest.raises(BadInput, match="after is a whole number"):
            await rt.workspace.journal.gaps(wrong)  # pyright: ignore[reportArgumentType]
        with pytest.raises(BadInput, match="before is a whole number"):
            await rt.workspace.journal.gaps(0, wrong)  # pyright: ignore[reportArgumentType]


@pytest.mark.rule("journal.gaps")
async def test_what_a_store_in_memory_does_not_keep_is_told(clock: FakeClock):
    with team(clock=clock, keep_events=50) as rt:
        rt.add(Card("coder"), echo)
        reader = Reader(rt.workspace, 30)
        for number in range(1_500):
            await rt.run("coder", str(number))
            if number in (2, 900):
                await reader.read()
        await reader.read_all()
        assert reader.numbers == [*range(1, await head(rt) + 1)]
        assert sum(isinstance(one, Gap) for one in reader.found) >= 1
        assert await rt.workspace.journal.gaps() != []
