"""Run as a program: carries a scenario out again and again and kills itself, each time somewhere else.

    python crash.py FOLDER SCENARIO HOOK:TIME ...

For each case a fork of this process, which has no threads yet, works on `FOLDER/HOOK-TIME.db` and dies by
SIGKILL when the store reaches that fault hook for that time. What was acknowledged before is in
`FOLDER/HOOK-TIME.acks`, outside the database, a line of JSON each. Prints each case and its wait status.
"""

import asyncio
import json
import os
import signal
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path

import remit
from remit.core.entry import Draft
from remit.ports import Decision, View
from remit.settings import System
from remit.stores.sqlite.database import SqliteDatabase
from remit.testing import FakeClock
from remit.testing.clauses.making import entry_event


class Doom:
    """Kills the process when the hook is reached for that time, counted from when the scenario arms it."""

    def __init__(self, hook: str, times: int) -> None:
        self._hook = hook
        self._left = times
        self._armed = False

    def arm(self) -> None:
        self._armed = True

    def __call__(self, name: str) -> None:
        if self._armed and name == self._hook:
            self._left -= 1
            if self._left == 0:
                os.kill(os.getpid(), signal.SIGKILL)


class Acks:
    """Only what the store has answered for gets in here."""

    def __init__(self, path: Path) -> None:
        self._file = os.open(path, os.O_CREAT | os.O_APPEND | os.O_WRONLY)

    def __call__(self, kind: str, *what: object) -> None:
        os.write(self._file, json.dumps([kind, *what]).encode() + b"\n")


Scenario = Callable[[SqliteDatabase, Doom, Acks], Awaitable[None]]


async def sets(database: SqliteDatabase, doom: Doom, ack: Acks) -> None:
    """One after the other, each under an operation id that can be asked for again."""
    store = database.store("default")
    doom.arm()
    for number in range(6):
        draft = Draft("notes", f"key {number % 4}", {"n": number})
        version = (await store.tx(f"op {number}", lambda view, draft=draft: written(view, draft))).answer
        ack("op", f"op {number}", version)
        ack("entry", "notes", draft.key, version, draft.value)


def written(view: View, draft: Draft) -> Decision:
    event = entry_event(view, draft)
    return Decision(event.data["version"], (event,))


async def crowd(database: SqliteDatabase, doom: Doom, ack: Acks) -> None:
    """Twenty at once, four times over: they share transactions."""
    context = remit.Runtime(database, system=System(clock=FakeClock())).workspace.context()
    doom.arm()

    async def one(key: str, value: int) -> None:
        ack("entry", "notes", key, await context.set("notes", key, value), value)

    for round_ in range(4):
        await asyncio.gather(*(one(f"key {number}", round_) for number in range(20)))


async def run(database: SqliteDatabase, doom: Doom, ack: Acks) -> None:
    """A run that delegates and fans out; every worker writes."""
    rt = remit.Runtime(database)

    @rt.agent(asks=["worker", "helper"])
    async def lead(turn: remit.Turn) -> str:
        await turn.delegate("helper", "prepare")
        parts = [("worker", f"part {number}") for number in range(4)]
        for outcome in await turn.delegate_all([*parts, ("stranger", "is refused")]):
            if outcome.ok:
                ack("task", outcome.id, outcome.state)
        return "done"

    @rt.agent(reads=["notes"], writes=["notes"])
    async def helper(turn: remit.Turn) -> str:
        ack("entry", "notes", "plan", await turn.context.set("notes", "plan", "ready"), "ready")
        return "prepared"

    @rt.agent(reads=["notes"], writes=["notes"])
    async def worker(turn: remit.Turn) -> str:
        ack("entry", "notes", turn.task, await turn.context.set("notes", turn.task, "written"), "written")
        return turn.task

    doom.arm()
    for _ in range(3):
        outcome = await rt.outcome("lead", "lead the work")
        ack("task", outcome.id, outcome.state)


async def messages(database: SqliteDatabase, doom: Doom, ack: Acks) -> None:
    """Two agents write to each other; what one has taken is not handed out again."""
    rt = remit.Runtime(database)

    @rt.agent(asks=["helper"])
    async def lead(turn: remit.Turn) -> str:
        for text in ("first", "second"):
            await turn.send("helper", text)
            ack("sent", text)
        doom.arm()
        await turn.delegate("helper", "look into the inbox")
        ack("taken", [message.id for message in await turn.inbox()])
        return "done"

    @rt.agent
    async def helper(turn: remit.Turn) -> str:
        ack("taken", [message.id for message in await turn.inbox()])
        await turn.send("lead", "answer")
        ack("sent", "answer")
        return "answered"

    await rt.run("lead", "talk", session="talk")


async def cleanup(database: SqliteDatabase, doom: Doom, ack: Acks) -> None:
    """What has expired is removed, a generation at a time; what has not stays."""
    clock = FakeClock()
    rt = remit.Runtime(database, system=System(clock=clock))
    for generation in range(1, 5):
        for number in range(3):
            await rt.workspace.context().set("passing", f"{generation}/{number}", "x", ttl=generation)
    ack("entry", "notes", "for good", await rt.workspace.context().set("notes", "for good", "stays"), "stays")
    doom.arm()
    for generation in range(1, 5):
        clock.advance(1)
        ack("cleaned", await rt.workspace.context.cleanup(), [f"{generation}/{number}" for number in range(3)])


SCENARIOS: dict[str, Scenario] = {f.__name__: f for f in (sets, crowd, run, messages, cleanup)}


def die_in(scenario: Scenario, folder: Path, case: str) -> None:
    hook, times = case.split(":")
    doom = Doom(hook, int(times))
    database = SqliteDatabase(folder / f"{hook}-{times}.db", fault=doom)
    asyncio.run(scenario(database, doom, Acks(folder / f"{hook}-{times}.acks")))


def main(folder: Path, scenario: str, cases: list[str]) -> None:
    for case in cases:
        pid = os.fork()
        if pid == 0:
            try:
                die_in(SCENARIOS[scenario], folder, case)
            except BaseException as error:
                print(f"{case}: {error!r}", file=sys.stderr, flush=True)
                os._exit(1)
            os._exit(0)
        _, status = os.waitpid(pid, 0)
        print(case, status, flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], sys.argv[3:])
