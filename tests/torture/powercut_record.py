"""Run as a program: several processes submit and carry out tasks on one file, and everything is recorded.

    python powercut_record.py FOLDER PROCESSES SYNCHRONOUS TASKS

Leaves `log` in the folder: what was done to the files and, in the same order, what was told to whom.
"""

import asyncio
import logging
import os
import signal
import sys
from contextlib import closing, nullcontext
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from remit import Command, Event, Runtime, Turn
from remit.errors import Conflict
from remit.runtime.workspace import subscribe
from remit.stores.sqlite.database import SqliteDatabase
from teams import team
from torture.powercut_shim import Log, Recorder

OWN = "own"  # as remit has it; otherwise the word of SQLite for how much is synced
SHIFTS = 2  # how often each process opens the file and closes it again
HANDS = 2  # fewer than what is asked for at a time, so that there is a queue, and others claim from it
PAGES = 250  # in the write-ahead log before it is copied into the file: less than usual, so that it happens often
SECONDS = 30.0
ALARM = 60  # after which a process is killed from outside


class Told:
    """Where it is noted what someone was told; nobody listens when a store is reopened after the cut."""

    def __init__(self, log: Log | None = None) -> None:
        self._log = log

    def __call__(self, *what: object) -> None:
        if self._log is not None:
            self._log.told(*what)

    def events(self, events: tuple[Event, ...]) -> None:
        self("journal", events[-1].seq, events[-1].hash)


def agents(rt: Runtime, told: Told) -> None:
    """A team that does a bit of everything: effects, entries, delegations, announcements, handoffs."""

    async def effect(turn: Turn, name: str) -> str:
        said = await turn.once(name, lambda: f"{name} of {turn.task}")
        told("effect", turn.remit.id, f"{name} of {turn.task}")
        return said

    async def note(turn: Turn, value: str) -> None:
        await turn.context.set("notes", turn.task, value)
        told("entry", "notes", turn.task, value)

    @rt.agent(asks=["builder", "clerk", "archive"], reads=["notes"], writes=["notes"])
    async def lead(turn: Turn) -> object:
        await note(turn, "begun")
        parts = [("builder", f"{turn.task}, part {number}") for number in range(2)]
        built = [str(one.value) for one in await turn.delegate_all(parts)]
        spawned = await turn.spawn("clerk", f"{turn.task}, a letter")
        outcome = await spawned.wait()
        told("ended", spawned.id, f"{outcome.state}")
        return Command("archive", {"context": {"built": built}})

    @rt.agent(reads=["notes"], writes=["notes"])
    async def builder(turn: Turn) -> object:
        await note(turn, "x" * 3_000)
        return await effect(turn, "build")

    @rt.agent(reads=["notes"], writes=["notes"])
    async def clerk(turn: Turn) -> object:
        await effect(turn, "write")
        await note(turn, "sent")
        return f"{turn.task} is sent"

    @rt.agent
    async def archive(turn: Turn) -> object:
        return await effect(turn, "file")

    @rt.agent
    async def sleeper(turn: Turn) -> object:
        await effect(turn, "dream")
        await asyncio.sleep(0.2)
        return "awake"


async def ask(rt: Runtime, told: Told, name: str, tasks: int, *, waits: bool) -> None:
    """Submit, be told, wait for the ends; have every third thing cancelled."""

    async def one(number: int) -> None:
        agent = ("lead", "clerk", "sleeper")[number % 3]
        task = await rt.submit(agent, f"{name}.{number}", key=f"{name}.{number}")
        told("submitted", task.id, f"{name}.{number}")
        if agent == "sleeper":
            try:
                await task.cancel("no longer wanted")
            except Conflict:  # it was quicker
                return
            told("cancelled", task.id)
            return
        if not waits:
            return
        outcome = await task.wait()
        told("ended", task.id, f"{outcome.state}")

    for start in range(0, tasks, 3):
        await asyncio.gather(*(one(number) for number in range(start, min(start + 3, tasks))))


async def shift(store: Path, told: Told, name: str, synchronous: str, tasks: int, *, serves: bool) -> None:
    """One process from opening the file to closing it; one that does not serve leaves its tasks to the others."""
    with closing(SqliteDatabase(store)) as database:
        if synchronous != OWN:
            database.writer.connection.execute(f"PRAGMA synchronous = {synchronous}")
        database.writer.connection.execute(f"PRAGMA wal_autocheckpoint = {PAGES}")
        rt = team(database, hands=HANDS if serves else 0)
        agents(rt, told)
        stop = subscribe(rt.workspace, told.events)
        async with asyncio.timeout(SECONDS), rt, rt.serving() if serves else nullcontext():
            await ask(rt, told, name, tasks, waits=serves)
        stop()


def work(store: Path, log: Log, number: int, synchronous: str, tasks: int) -> None:
    for turn in range(SHIFTS):
        serves = number == 0 or turn > 0
        asyncio.run(shift(store, Told(log), f"{number}.{turn}", synchronous, tasks, serves=serves))


def main(folder: Path, processes: int, synchronous: str, tasks: int) -> int:
    logging.getLogger("remit").setLevel(logging.ERROR)
    store, log = folder / "store.db", Log(folder / "log")
    Recorder(store, log).install()
    children: list[int] = []
    for number in range(processes):
        child = os.fork()
        if child == 0:
            signal.alarm(ALARM)
            try:
                work(store, log, number, synchronous, tasks)
            except BaseException as error:
                print(f"{type(error).__name__}: {error}", file=sys.stderr, flush=True)
                os._exit(1)
            os._exit(0)
        children.append(child)
    statuses = [os.waitpid(child, 0)[1] for child in children]
    return 1 if any(statuses) else 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3], int(sys.argv[4])))
