"""Tasks with several lives, for tests of all kinds of agents alike: put back in the middle of a tool, and run again by
another runtime on the same store."""

import asyncio
import json
import sqlite3
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from contextlib import asynccontextmanager, closing
from pathlib import Path
from typing import Any, NamedTuple

import anyio

from engine.helping import found, sound
from remit import Outcome, Runtime, Task
from remit.ports import Span
from remit.testing.doubles import PATIENCE
from remit.testing.models import Calls, ModelRequest, Says

Team = Callable[[Runtime], None]
Change = Callable[[Runtime], Any]
Opens = Callable[[Path], Runtime]
_USED = Span(kinds=frozenset(("tool.done",)))


class Life:
    """Which life it is, and the moment at which the first one ends: `hold` waits there for ever. The life ends once so
    many hold, and so many tool calls are on record."""

    def __init__(self, holds: int = 1, recorded: int = 0) -> None:
        self.number = 1
        self.begun = asyncio.Event()
        self.recorded = recorded
        self._left = holds

    @property
    def is_first(self) -> bool:
        return self.number == 1

    async def hold(self, until: int = 1) -> None:
        """Wait for ever, in every life up to this one."""
        if self.number <= until:
            self._left -= 1
            if self._left <= 0:
                self.begun.set()
            await asyncio.Event().wait()

    def next(self) -> None:
        self.number += 1
        self.begun = asyncio.Event()


class Till:
    """A tool that charges. The first life ends in the second charge."""

    def __init__(self) -> None:
        self.life = Life()
        self.charged: list[int] = []

    async def charge(self, number: int) -> str:
        """Charge a customer."""
        self.charged.append(number)
        if number == 2:
            await self.life.hold()
        return f"charged {number}"


class Lived(NamedTuple):
    rt: Runtime
    outcome: Outcome


async def submitted(rt: Runtime, agent: str = "it") -> Task:
    """Submit the task, which is the same in every life."""
    return await rt.submit(agent, "go", key="k", credits="$1")


async def live_until(store: Path, team: Team, life: Life, agent: str = "it", *, opens: Opens = Runtime) -> None:
    """Run a task until its life holds, and put it back into the queue, as a process does that stops."""
    with anyio.fail_after(PATIENCE):
        async with opens(store) as rt:
            team(rt)
            await submitted(rt, agent)
            await life.begun.wait()
            await found(rt, lambda view: len(view.events(_USED)) >= life.recorded or None)
            await rt.drain(0)
    life.next()


@asynccontextmanager
async def lived(
    store: Path, team: Team, agent: str = "it", change: Change | None = None, *, opens: Opens = Runtime
) -> AsyncIterator[Lived]:
    """Run the same task to its end; `change` something before."""
    async with opens(store) as rt:
        if change is not None:
            await change(rt)
        team(rt)
        with anyio.fail_after(PATIENCE):
            outcome = await (await submitted(rt, agent)).wait()
        yield Lived(rt, outcome)


@asynccontextmanager
async def two_lives(
    store: Path, team: Team, life: Life, agent: str = "it", change: Change | None = None
) -> AsyncIterator[Lived]:
    """Run a task until its life holds, and again to its end. The store is sound afterwards."""
    await live_until(store, team, life, agent)
    async with lived(store, team, agent, change) as both:
        yield both
        await sound(both.rt)


def damage(
    store: Path, change: Callable[[dict[str, Any]], Mapping[str, Any]], position: int = 1, place: str = "/talk/"
) -> None:
    """Change the record of an answer behind remit's back, as if another version had written it."""
    with closing(sqlite3.connect(store)) as connection, connection:
        select = "SELECT seq, answer FROM event WHERE kind = 'model.answered' AND op LIKE ? ORDER BY seq"
        seq, answer = connection.execute(select, (f"%{place}/{position}",)).fetchone()
        kept = {**json.loads(answer), **change(json.loads(answer))}
        connection.execute("UPDATE event SET answer = ? WHERE seq = ?", (json.dumps(kept), seq))


# -- as without an interruption --------------------------------------------------------------------------------------


class Account(NamedTuple):
    """What a task came to, without anything that differs from run to run: how it ended, the requests that its models
    were asked, and what the journal has of answers and tools."""

    ended: dict[str, Any]
    requests: list[Any]
    journal: list[Any]


async def account(rt: Runtime, outcome: Outcome, requests: Iterable[ModelRequest]) -> Account:
    """Give the account of the one run of a store."""
    ended: dict[str, Any] = {"state": outcome.state, "value": outcome.value, "trust": outcome.trust, "by": outcome.by}
    ended["error"] = str(outcome.error).replace(outcome.id, "ID")
    journal: list[Any] = []
    for event in await rt.workspace.journal.history():
        data = {name: said for name, said in event.data.items() if name not in _PASSING}
        if event.kind in _ENDS and event.task == outcome.id:
            ended |= {name: data[name] for name in ("receipt", "tokens", "trust") if name in data}
        elif event.kind in _KEPT:
            journal.append([event.kind, data])
    return Account(ended, [one.body for one in requests], sorted(journal, key=str))


_PASSING = ("elapsed", "place", "hold", "lease", "took")
_ENDS = ("task.completed", "task.failed")
_KEPT = ("model.answered", "tool.done", "task.handed")


class Interrupted:
    """A script during whose request of this number the first life ends; 0 is none of them. `answered` lists the
    requests that it has answered."""

    def __init__(self, script: Callable[[ModelRequest], Any], life: Life, at: int = 0) -> None:
        self.answered: list[ModelRequest] = []
        self._asked = 0
        self._script = script
        self._life = life
        self._at = at

    async def __call__(self, asked: ModelRequest) -> Any:
        self._asked += 1
        if self._asked == self._at:
            await self._life.hold()
        reply = self._script(asked)
        if isinstance(reply, Says | Calls):
            self.answered.append(asked)
        return reply
