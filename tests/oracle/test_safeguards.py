"""Every safeguard is missed: removed, it is noticed within a few random trees or pairs of worlds."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from deep import some
from inside import without
from oracle import spying
from oracle.checking import Worlds
from oracle.generating import generated
from oracle.safeguards import SAFEGUARDS, Safeguard, allows
from remit import Refused, Runtime, Turn
from remit.settings import System
from remit.stores.opening import database_at
from remit.testing import FakeClock, Zombie

pytestmark = pytest.mark.anyio

SEEDS = 250  # within so many it must be noticed


async def noticed(safeguard: Safeguard, folder: Path) -> bool:
    """Whether someone notices what goes on now."""
    if safeguard.witness == "zombie":
        return await the_dead_write(folder)
    if safeguard.witness == "spy":
        return await a_spy_learns(safeguard.begin)
    return await first_wrong(Worlds(database_at(":memory:")), safeguard.begin) >= 0


def seeds(begin: int) -> Iterator[int]:
    """All seeds, from this one on and round again."""
    return ((begin + number) % SEEDS for number in range(SEEDS))


async def a_spy_learns(begin: int) -> bool:
    databases = (database_at(":memory:"), database_at(":memory:"))
    for seed in seeds(begin):
        try:
            await spying.check(seed, databases)
        except AssertionError:
            return True
    return False


async def the_dead_write(folder: Path) -> bool:
    """Whether a process whose task was cancelled elsewhere, and which has not heard of it, can still write."""
    clock = FakeClock()
    owner = Runtime(folder / "team.db", system=System(clock=clock))
    database = Zombie.database(folder / "team.db")
    dead = Runtime(database, system=System(clock=Zombie.clock(clock)))
    answers: list[str] = []

    async def late(turn: Turn) -> str:
        await owner.workspace.tasks.cancel(turn.remit.id)
        try:
            await turn.context.set("notes", "a", "from the grave")
        except Refused as refusal:
            answers.append(refusal.rule)
        return "done"

    dead.agent("late", writes=["notes"])(late)
    with database, owner, dead:
        await dead.outcome("late", "go")
        found = await owner.workspace.context().get("notes", "a")
    return answers != ["over"] or found is not None


@pytest.mark.rule("door.only-yes", "sight.no-trace", "crash.fence")
@pytest.mark.parametrize("safeguard", some(SAFEGUARDS, 12), ids=lambda safeguard: safeguard.name)
async def test_a_safeguard_that_is_gone_is_missed(safeguard: Safeguard, tmp_path: Path):
    with without(safeguard.place, safeguard.instead):
        assert await noticed(safeguard, tmp_path)


async def test_what_goes_wrong_is_told_as_a_small_scenario_with_the_command_to_see_it_again():
    worlds = Worlds(database_at(":memory:"))
    with without("remit.core.guards:not_too_deep", allows):
        seed = await first_wrong(worlds)
        with pytest.raises(AssertionError, match=f"python -m oracle {seed}$") as told:
            await worlds.check(seed)
    assert "foreseen" in str(told.value)
    assert len(str(told.value).splitlines()) < 30


async def first_wrong(worlds: Worlds, begin: int = 0) -> int:
    """The first seed from `begin` on whose scenario goes other than foreseen; -1 if none does."""
    for seed in seeds(begin):
        if await worlds.differences(generated(seed)):
            return seed
    return -1


async def test_with_all_of_them_in_place_nothing_is_noticed(tmp_path: Path):
    assert not await the_dead_write(tmp_path)


def test_there_are_many():
    assert len({safeguard.place for safeguard in SAFEGUARDS}) >= 30
