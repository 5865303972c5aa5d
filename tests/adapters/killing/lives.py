"""Run as a program: a team of models and guests that is killed again and again, each time somewhere else.

    python lives.py FOLDER URL CASE ...

A case is `NAME=POINT,POINT`: the process is killed when the store has reached its fault hooks that many times, and the
next life by the next point; the last life ends by itself. Each life is a fork of this process, which has imported all
and has no threads yet. Prints for each case how many hooks its last life reached and what came of the task.
"""

import asyncio
import json
import os
import signal
import sys
from pathlib import Path
from typing import Any

from agents import Agent as OpenAIAgent
from agents import OpenAIChatCompletionsModel
from openai import AsyncOpenAI
from pydantic_ai import Agent
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider

from remit import Runtime
from remit.adapters.prices import KnownPrices, Price
from remit.settings import Serving, System
from remit.stores.sqlite.database import SqliteDatabase

RATE = Price(input="$1", output="$2")
PRICES = KnownPrices(dict.fromkeys(("openai-chat:boss", "openai:coder", "tester"), RATE))  # loads for long


class Doom:
    """Kills the process at one of the places where a crash is worth trying; 0 is never."""

    def __init__(self, point: int) -> None:
        self.reached = 0
        self._point = point

    def __call__(self, _hook: str) -> None:
        self.reached += 1
        if self.reached == self._point:
            os.kill(os.getpid(), signal.SIGKILL)


def team(rt: Runtime, folder: Path, url: str) -> None:
    """A boss that is a model, and two guests whom it asks; each of the guests uses a tool."""

    def write(line: str) -> str:
        """Write a line."""
        with (folder / "written").open("a") as file:
            file.write(f"{line}\n")
        return f"wrote {line}"

    client = AsyncOpenAI(base_url=url, api_key="none", max_retries=0)
    rt.model_agent("boss", "openai-chat:boss", asks=["coder", "tester"], base_url=url, keys=["BOSS_KEY"])
    rt.add(Agent(OpenAIChatModel("coder", provider=OpenAIProvider(openai_client=client)), tools=[write]), name="coder")
    rt.add(OpenAIAgent("tester", model=OpenAIChatCompletionsModel("tester", client)))


async def life(folder: Path, url: str, point: int) -> dict[str, Any]:
    doom = Doom(point)
    database = SqliteDatabase(folder / "team.db", fault=doom)
    async with Runtime(database, system=System(prices=PRICES), serving=Serving(silence=0.5)) as rt:
        team(rt, folder, url)
        async with rt.serving():
            task = await rt.submit("boss", "go", key="once", credits="$1")
            value = await task.result(60)
        health = await rt.workspace.examine()
        events = await rt.workspace.history()
    ledger = [event for event in events if event.kind == "hold.settled"]
    return {
        "reached": doom.reached,
        "value": value,
        "unsound": [finding.sentence for finding in health.findings] if not health.sound else [],
        "answered": sum(event.kind == "model.answered" for event in events),
        "uncertain": sum(bool(event.data.get("uncertain")) for event in ledger),
    }


def main(folder: Path, url: str, cases: list[str]) -> None:
    with Runtime() as warm:  # clients and frameworks import and build much when they are first used: that is done once
        team(warm, folder, url)
        AsyncOpenAI(api_key="none").chat.completions.with_raw_response  # noqa: B018
    for case in cases:
        name, _, points = case.partition("=")
        home = folder / name
        home.mkdir()
        for point in [*map(int, filter(None, points.split(","))), 0]:
            child = os.fork()
            if child == 0:
                told = asyncio.run(life(home, url, point))
                (home / "told").write_text(json.dumps(told))
                os._exit(0)
            os.waitpid(child, 0)
        print(name, flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], sys.argv[3:])
