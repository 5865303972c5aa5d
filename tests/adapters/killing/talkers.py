"""Run as a program, in the folder of the tests: one agent of each kind that talks to its model, is killed, and goes on
although something has changed in between.

    python -m adapters.killing.talkers FOLDER URL

First each kind works in peace, in this very process, so that the frameworks are imported and warm. Then cases are read
from stdin, a list in JSON a line: their first lives are forks that are killed, their second ones end by themselves, and
all of one line live side by side. When a line is done, `done` is printed; what came of a case is in its folder.
"""

import asyncio
import gc
import json
import os
import ssl
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from openai import AsyncOpenAI, DefaultAsyncHttpxClient

from adapters.killing.dying import Doom, die, forked, was_killed
from adapters.places import KEY_NAME, KINDS, RATE, Place, join
from remit import Runtime, Turn
from remit.adapters.prices import KnownPrices
from remit.settings import Serving, System
from remit.stores.sqlite.database import SqliteDatabase
from teams import Closing

NEWS = "news from the scout"
TLS = ssl.create_default_context()  # loads for long, as the prices do
PRICES = KnownPrices(dict.fromkeys(("openai-chat:m", "m"), RATE))


class Case(NamedTuple):
    """A conversation, what changes in its middle, and where it is killed: when the store has reached so many hooks, in
    the tool that is used with this number, or, by its model, while this request is under way. 0 is never."""

    name: str
    kind: str
    change: str = ""
    hook: int = 0
    tool: int = 0
    request: int = 0


class Life(NamedTuple):
    """One life of a case: which one it is, and where it leaves its traces."""

    case: Case
    home: Path
    number: int

    @property
    def is_changed(self) -> bool:
        return self.number > 0

    def use(self, number: int) -> str:
        """Use a tool: its number is written, for ever."""
        with (self.home / "used").open("a") as file:
            file.write(f"{number}\n")
        if not self.number and number == self.case.tool:
            die()
        return f"did {number}"

    def tools(self) -> list[Callable[..., Any]]:
        async def note(number: int) -> str:
            """Note a number."""
            return self.use(number)

        async def again(number: int) -> str:
            """Note a number, and again if need be."""
            return self.use(number)

        async def look() -> str:
            """Look around."""
            return "nothing"

        return [note, again, look] if self.case.change == "tools" and self.is_changed else [note, again]

    def instructions(self) -> str:
        if self.case.change == "clock":
            return f"It is {time.time_ns()}."
        return "Be brief." if self.case.change == "instructions" and self.is_changed else "Take your time."

    async def talk(self, rt: Runtime, place: Place) -> Any:
        """Have the agent asked by a lead, while a scout has news in the second life."""
        repeat = {"again": "again"}
        tools, instructions = self.tools(), self.instructions()
        join(rt, self.case.kind, place, tools=tools, instructions=instructions, repeat=repeat, reads=["rates"])

        answered = asyncio.Event()

        @rt.agent(asks=["it"])
        async def scout(turn: Turn) -> None:
            if self.case.change == "news" and self.is_changed:
                await turn.send("it", NEWS)
            elif self.case.change == "news":
                await answered.wait()  # it has nothing to tell in this life, and something in the next one

        @rt.agent(asks="*", reads=["rates"])
        async def lead(turn: Turn) -> Any:
            looks = await turn.spawn("scout", "look")
            value = await turn.delegate("it", turn.task, sees=["rates"])
            answered.set()
            await looks.wait()
            return value

        if not self.is_changed or self.case.change == "context":
            await rt.workspace.context().set("rates", "usd", f"1.0{self.number}")
        async with rt.serving():
            task = await rt.submit("lead", "go", key="once", credits="$1")
            return await task.result(60)

    async def live(self, url: str) -> None:
        os.environ[KEY_NAME] = self.case.name
        doom = Doom(0 if self.number else self.case.hook)
        database = SqliteDatabase(self.home / "team.db", fault=doom)
        (self.home / "process").write_text(str(os.getpid()))
        http = DefaultAsyncHttpxClient(verify=TLS)
        client = AsyncOpenAI(base_url=url, api_key=self.case.name, max_retries=0, http_client=http)
        async with (
            Closing(database, system=System(prices=PRICES), serving=Serving(heartbeat_timeout=0.5)) as rt,
            client,
        ):
            value = await self.talk(rt, Place(None, client))  # pyright: ignore[reportArgumentType]
            health = await rt.workspace.check()
            events = [(event.kind, event.data) for event in await rt.workspace.journal.history()]
        told = {
            "reached": doom.reached,
            "value": value,
            "unsound": [] if health.sound else [finding.sentence for finding in health.findings],
            "answered": [data for kind, data in events if kind == "model.answered"],
            "settled": [data for kind, data in events if kind == "hold.settled"],
        }
        (self.home / "told").write_text(json.dumps(told))


def lives(folder: Path, url: str, cases: list[Case], number: int) -> list[bool]:
    """Live once in each case, side by side; tell which were killed."""
    children: list[int] = []
    for case in cases:
        life = Life(case, folder / case.name, number)
        life.home.mkdir(exist_ok=True)
        children.append(forked(lambda life=life: asyncio.run(life.live(url))))
    return [was_killed(child) for child in children]


def main(folder: Path, url: str) -> None:
    for kind in KINDS:
        whole = Life(Case(kind, kind), folder / kind, 0)
        whole.home.mkdir()
        asyncio.run(whole.live(url))
    print("done", flush=True)
    gc.freeze()  # a child does not touch, and so does not copy, what its parent has made
    for line in sys.stdin:
        cases = [Case(*case) for case in json.loads(line)]
        killed = lives(folder, url, cases, 0)
        lives(folder, url, cases, 1)
        for case, was in zip(cases, killed, strict=True):
            (folder / case.name / "killed").write_text(str(was))
        print("done", flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
