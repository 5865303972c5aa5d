"""How a file's changes by other processes are noticed: soon while something happens, and at little cost otherwise."""

import asyncio
from collections.abc import Callable
from pathlib import Path

import anyio
import pytest

from remit.core.entry import Draft
from remit.core.events import Event
from remit.errors import StoreError
from remit.stores.sqlite.database import QUICK_LOOKS, QUICK_SECONDS, SLOW_SECONDS, Polling, SqliteDatabase
from remit.testing.clauses.making import putting

pytestmark = pytest.mark.anyio

PATIENCE = 30


class Timer:
    """One that goes off when the test says so."""

    def __init__(self, pause: float, call: Callable[[], None]) -> None:
        self.pause = pause
        self.call = call
        self.cancelled = False

    def cancel(self) -> None:
        self.cancelled = True


class File:
    """A file with journals, as it is polled."""

    def __init__(self) -> None:
        self.version = 1
        self.heads: dict[str, int] = {}
        self.asked = 0
        self.broken = False
        self.timers: list[Timer] = []
        self.rung: list[str] = []
        self.polling = Polling(self._version, self._head, self._later)

    def _version(self) -> int:
        if self.broken:
            raise StoreError("gone")
        return self.version

    def _head(self, workspace: str) -> int:
        self.asked += 1
        return self.heads.get(workspace, 0)

    def _later(self, pause: float, call: Callable[[], None]) -> Timer:
        self.timers.append(Timer(pause, call))
        return self.timers[-1]

    def listen(self, workspace: str) -> Callable[[], None]:
        return self.polling.add(workspace, lambda: self.rung.append(workspace))

    def look(self) -> float:
        """Let the timer go off. Return the pause before it."""
        timer = self.timers[-1]
        assert not timer.cancelled
        timer.call()
        return timer.pause

    def others_write(self, workspace: str) -> None:
        self.version += 1
        self.heads[workspace] = self.heads.get(workspace, 0) + 1

    def write(self, workspace: str) -> None:
        self.others_write(workspace)
        seq = self.heads[workspace]
        self.polling.own([Event(workspace, seq, "entry.set", 1, "", "", "", "", "", "", None, "", {})])


@pytest.mark.rule("sqlite.polling")
async def test_while_others_write_it_looks_often_and_a_second_later_seldom():
    file = File()
    file.listen("one")
    assert [file.look() for _ in range(3)] == [SLOW_SECONDS] * 3
    file.others_write("one")
    file.look()
    assert file.rung == ["one"]
    for _ in range(2):
        file.others_write("one")
        file.look()
        file.look()
    assert file.rung == ["one"] * 3
    pauses = [file.look() for _ in range(QUICK_LOOKS + 2)]
    quick = [pause for pause in pauses if pause == QUICK_SECONDS]
    assert pauses == [*quick, *[SLOW_SECONDS] * (len(pauses) - len(quick))]
    assert sum(quick) == pytest.approx(1, rel=0.1)


@pytest.mark.rule("sqlite.polling")
async def test_one_timer_serves_all_listeners_and_rings_only_where_something_was_written():
    file = File()
    stops = [file.listen(f"workspace {number}") for number in range(200)]
    assert len(file.timers) == 1
    file.others_write("workspace 7")
    file.look()  # the first change may concern any
    file.rung.clear()
    file.others_write("workspace 7")
    file.look()
    assert file.rung == ["workspace 7"]
    asked = file.asked
    for _ in range(10):
        file.look()
    assert file.asked == asked, "a look at an unchanged file asks for no journal"
    assert len(file.timers) == 13
    for stop in stops:
        stop()
    assert file.timers[-1].cancelled
    stops[0]()


@pytest.mark.rule("sqlite.polling")
async def test_its_own_writes_wake_nobody_and_make_it_look_often_only_if_others_may_react():
    file = File()
    file.listen("one")
    file.write("one")
    file.look()
    file.rung.clear()
    for _ in range(20):
        file.write("one")
        assert file.look() == SLOW_SECONDS
    assert file.rung == []
    file.others_write("one")
    file.look()
    file.look()
    for _ in range(QUICK_LOOKS + 1):
        file.look()
    assert file.look() == SLOW_SECONDS
    before = file.timers[-1]
    file.write("one")
    assert before.cancelled
    assert file.look() == QUICK_SECONDS
    file.write("one")
    assert file.look() == QUICK_SECONDS
    assert file.rung == ["one"]


@pytest.mark.rule("sqlite.polling")
async def test_an_own_write_that_is_seen_before_it_is_told_is_nobody_elses():
    file = File()
    file.listen("one")
    file.write("one")
    file.look()
    file.others_write("one")
    file.look()  # seen in the file
    file.heads["one"] -= 1
    file.write("one")  # and told now
    assert [file.look() for _ in range(3)] == [SLOW_SECONDS] * 3


@pytest.mark.rule("sqlite.polling")
async def test_a_file_that_cannot_be_read_wakes_everyone_until_it_can_be():
    file = File()
    file.listen("one")
    file.listen("two")
    file.broken = True
    file.look()
    file.look()
    assert sorted(file.rung) == ["one", "one", "two", "two"]
    file.broken = False
    file.look()
    file.rung.clear()
    assert file.look() == SLOW_SECONDS
    assert file.rung == []
    file.broken = True
    with pytest.raises(StoreError, match="gone"):
        File.listen(file_of(broken=True), "one")


def file_of(*, broken: bool) -> File:
    file = File()
    file.broken = broken
    return file


@pytest.mark.rule("sqlite.polling")
def test_another_event_loop_begins_again():
    file = File()
    asyncio.run(_listening(file))
    first = file.timers[-1]
    asyncio.run(_listening(file))
    assert first.cancelled
    file.others_write("one")
    file.look()
    assert file.rung == ["one"], "listeners of the loop that has ended are gone"
    file.polling.close()
    assert file.timers[-1].cancelled


async def _listening(file: File) -> None:
    file.listen("one")


@pytest.mark.rule("sqlite.polling")
async def test_what_another_connection_writes_is_noticed_and_closing_wakes_a_last_time(tmp_path: Path):
    rung = anyio.Event()
    with SqliteDatabase(tmp_path / "team.db") as ours, SqliteDatabase(tmp_path / "team.db") as theirs:
        ours.store("one").listen(rung.set)
        await theirs.store("one").tx("op", putting(Draft("notes", "a", "b")))
        with anyio.fail_after(PATIENCE):
            await rung.wait()
        last = anyio.Event()
        ours.store("two").listen(last.set)
        ours.close()
        with anyio.fail_after(PATIENCE):
            await last.wait()
