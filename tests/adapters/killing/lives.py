"""Run as a program, in the folder of the tests: a team of models and guests that is killed again and again, each time
somewhere else.

    python -m adapters.killing.lives FOLDER URL

First the team works on its task once, in peace and in this very process: clients and frameworks import and build much
when they are first used, and so that is done once. Then cases are read from stdin, one a line: `NAME POINT POINT ...`.
Each life is a fork. The first is killed when the store has reached its fault hooks as often as the first point says,
the next by the second point, and so on; the last life ends by itself. For each case its name is printed when it is
over; what came of it is in its folder.
"""

import asyncio
import gc
import json
import sys
from pathlib import Path
from typing import Any

from agents import Agent as OpenAIAgent
from agents import OpenAIChatCompletionsModel
from langchain.agents import create_agent
from langchain_openai import ChatOpenAI
from langgraph.graph import END, START, MessagesState, StateGraph
from openai import AsyncOpenAI
from pydantic_ai import Agent
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider

from adapters.killing.dying import Doom, forked, was_killed
from remit import Runtime
from remit.adapters.langgraph import Middleware, governed
from remit.adapters.prices import KnownPrices, Price
from remit.settings import Serving, System
from remit.stores.sqlite.database import SqliteDatabase

RATE = Price(input="$1", output="$2")
PRICES = KnownPrices(
    dict.fromkeys(("openai-chat:boss", "openai:coder", "tester", "drawer", "planner"), RATE)
)  # loads for long


def team(rt: Runtime, folder: Path, url: str, number: int) -> AsyncOpenAI:
    """A boss that is a model, a guest of each framework whom it asks, and a plain graph; two of them use a tool. In
    each life they have other instructions and another tool, as if somebody had changed the code in between."""
    now = f"This is life {number}."

    def idle() -> str:
        """Do nothing."""
        return "nothing"

    idle.__name__ = f"idle{number}"

    def write(line: str) -> str:
        """Write a line."""
        with (folder / "written").open("a") as file:
            file.write(f"{line}\n")
        return f"wrote {line}"

    client = AsyncOpenAI(base_url=url, api_key="none", max_retries=0)

    def chat(model: str) -> ChatOpenAI:
        made = ChatOpenAI(model=model, base_url=url, api_key="none", max_retries=0)  # pyright: ignore[reportArgumentType]
        made.root_async_client, made.async_client = client, client.chat.completions
        return made

    rt.model_agent(
        "boss",
        "openai-chat:boss",
        asks="*",
        base_url=url,
        keys=["BOSS_KEY"],
        instructions=now,
        tools=[idle],
        reads=["rates"],
    )
    model = OpenAIChatModel("coder", provider=OpenAIProvider(openai_client=client))
    rt.add(Agent(model, instructions=now, tools=[write, idle]), name="coder")
    rt.add(OpenAIAgent("tester", instructions=now, model=OpenAIChatCompletionsModel("tester", client)))
    drawer = create_agent(chat("drawer"), [write, idle], system_prompt=now, middleware=[Middleware()])
    rt.add(drawer, name="drawer", repeat={"write": "again"})
    rt.add(plain_graph(governed(chat("planner"))), name="planner")
    return client


def plain_graph(llm: Any) -> Any:
    async def think(state: MessagesState) -> dict[str, Any]:
        return {"messages": [await llm.ainvoke(state["messages"])]}

    graph = StateGraph(MessagesState)
    graph.add_node("think", think)
    graph.add_edge(START, "think")
    graph.add_edge("think", END)
    return graph.compile()


async def life(folder: Path, url: str, point: int = 0, number: int = 0) -> dict[str, Any]:
    doom = Doom(point)
    serving = Serving(heartbeat_timeout=0.5)
    with SqliteDatabase(folder / "team.db", fault=doom) as database:
        async with Runtime(database, system=System(prices=PRICES), serving=serving) as rt:
            async with team(rt, folder, url, number), rt.serving():
                task = await rt.submit("boss", "go", key="once", credits="$1")
                value = await task.result(60)
            health = await rt.workspace.check()
            events = await rt.workspace.journal.history()
    ledger = [event for event in events if event.kind == "hold.settled"]
    return {
        "reached": doom.reached,
        "value": value,
        "unsound": [finding.sentence for finding in health.findings] if not health.sound else [],
        "answered": sum(event.kind == "model.answered" for event in events),
        "uncertain": sum(bool(event.data.get("uncertain")) for event in ledger),
    }


def fork(home: Path, url: str, point: int, number: int) -> bool:
    """Live once, in a process of its own; tell whether it was killed."""

    def live() -> None:
        told = asyncio.run(life(home, url, point, number))
        (home / "told").write_text(json.dumps(told))

    return was_killed(forked(live))


def main(folder: Path, url: str) -> None:
    whole = folder / "whole"
    whole.mkdir()
    (whole / "told").write_text(json.dumps({**asyncio.run(life(whole, url)), "kills": 0}))
    print("whole", flush=True)
    gc.freeze()  # a child does not touch, and so does not copy, what its parent has made
    for line in sys.stdin:
        name, *points = line.split()
        home = folder / name
        home.mkdir()
        kills = sum(fork(home, url, int(point), number) for number, point in enumerate(points))
        fork(home, url, 0, len(points))
        told = home / "told"
        told.write_text(json.dumps({**json.loads(told.read_text()), "kills": kills}))
        print(name, flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
