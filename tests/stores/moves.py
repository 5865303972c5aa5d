"""Run as a program: moves a workspace to and fro between two databases, and kills the move at each of its steps.

    python moves.py FIRST SECOND STEP ...

The workspace has a journal, money, an open question, an artifact and a task that is due later. For each step a fork of
this process dies by SIGKILL when the move reaches it; another one writes wherever a write is taken, and moves again.
Prints a line of JSON for each step: what took a write, what the journal, the money and the questions were before and
after, and what doctor found.
"""

import asyncio
import json
import os
import signal
import sys
from collections.abc import Awaitable, Callable
from contextlib import closing, suppress
from typing import Any

import remit
from remit.engine.system import SystemClock
from remit.engine.upkeep.doctor import examine
from remit.errors import Moved
from remit.ports import Span
from remit.runtime.workspace import opening_of
from remit.stores.moving import WorkspaceMove
from remit.stores.opening import database_at, members_at
from remit.stores.several import SeveralDatabases

NAME = "moved"


def in_fork(work: Callable[[], object]) -> tuple[int, str]:
    """Do it in a fork of this process, which has no thread and no connection. Return how it ended and what it said."""
    readable, writable = os.pipe()
    child = os.fork()
    if not child:
        os.close(readable)
        with os.fdopen(writable, "w") as said:
            json.dump(work(), said)
        os._exit(0)
    os.close(writable)
    with os.fdopen(readable) as said:
        told = said.read()
    return os.waitpid(child, 0)[1], told


async def which(turn: remit.Turn) -> str:
    return await turn.ask_human("Which?", ["red", "blue"])


async def fill(first: str) -> None:
    with remit.Runtime(first, workspace=NAME) as rt:
        rt.agent(which)
        workspace = rt.workspace
        await workspace.money.grant("$10")
        await workspace.artifacts.save(b"a picture", "picture.png")
        await workspace.submit("which", "later", after=3600, credits="$0.25")
        serving = asyncio.create_task(rt.serve())
        asked = workspace.questions.asked()
        await workspace.submit("which", "now", credits="$0.50")
        await anext(asked)
        await rt.drain(0)
        await serving


def killed(first: str, second: str, target: int, step: str) -> None:
    def reached(name: str) -> None:
        if name == step:
            os.kill(os.getpid(), signal.SIGKILL)

    move(first, second, target, reached)


def move(first: str, second: str, target: int, reached: Callable[[str], object] = bool) -> None:
    with closing(SeveralDatabases(members_at((first, second), create=True))) as several:
        made = WorkspaceMove(several, NAME, SystemClock().now, reached=reached, sleep=bool)
        made.move([*several.members][target])


async def taken(addresses: tuple[str, str], key: str) -> list[str]:
    """Write to each database as to one alone. Return those that took it."""
    took: list[str] = []
    for address in addresses:
        with remit.Workspace(address, NAME) as workspace, suppress(Moved):
            await workspace.context().set("notes", f"{key} {len(took)}", address)
            took.append(address)
    return took


async def facts(address: str) -> dict[str, Any]:
    with remit.Workspace(address, NAME) as workspace:
        opening = opening_of(workspace)
        events = await opening.records.read(lambda view: view.events(Span()))
        account = await workspace.money.account()
        pictures = [
            (await (await workspace.artifacts.open(one.artifact)).read()).decode()
            for one in await workspace.artifacts.list()
        ]
        health = await examine(opening.database, opening.clock.now(), [NAME])
        return {
            "journal": [f"{event.seq} {event.hash}" for event in events],
            "money": [str(one) for one in account],
            "questions": [one.id for one in await workspace.questions.list()],
            "pictures": pictures,
            "wrong": [str(one) for one in health.findings if one.level == "broken"],
        }


def rows(address: str) -> dict[str, int]:
    """Return how many rows of the workspace each table of a database has."""
    with closing(database_at(address)) as database, database.end() as end:  # pyright: ignore[reportAttributeAccessIssue]
        found = {name: sum(map(len, end.pages(name, has, NAME))) for name, has in end.tables().items()}
        contents = len([*database.contents(NAME).stored()])
    return {name: number for name, number in {**found, "content": contents}.items() if number}


def run(work: Awaitable[Any]) -> Any:
    return asyncio.run(work)  # pyright: ignore[reportArgumentType]


def again(addresses: tuple[str, str], here: int, key: str) -> dict[str, Any]:
    took = run(taken(addresses, key))
    move(*addresses, 1 - here)
    return {"took": took, "after": run(facts(addresses[1 - here])), "left": rows(addresses[here])}


def filled(first: str) -> dict[str, Any]:
    run(fill(first))
    return run(facts(first))


def main(first: str, second: str, *steps: str) -> None:
    addresses, here = (first, second), 0
    _, told = in_fork(lambda: filled(first))
    print(told, flush=True)
    for step in steps:
        status, _ = in_fork(lambda: killed(first, second, 1 - here, step))  # noqa: B023
        _, told = in_fork(lambda: again(addresses, here, step))  # noqa: B023
        print(json.dumps({"step": step, "killed": status, **json.loads(told)}), flush=True)
        here = 1 - here


if __name__ == "__main__":
    main(*sys.argv[1:])
