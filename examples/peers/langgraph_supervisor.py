"""LangGraph: a supervisor gives work to two workers. What remit adds is marked."""

import asyncio
import os
import sys

from langchain.agents import create_agent  # pyright: ignore[reportUnknownVariableType]
from langchain_openai import ChatOpenAI

from remit import Bounds, Runtime  # remit
from remit.adapters.langgraph import Middleware  # remit
from remit.report.flow import text  # remit
from remit.testing.models import Calls, ModelReply, ModelRequest, Says, model_server

rt = Runtime(*sys.argv[1:2], bounds=Bounds(depth=2))  # remit


def measure(wall: str) -> str:
    """Measure a wall."""
    print(f"tool: measure the {wall} wall", flush=True)
    return "36 square metres"


def litres(square_metres: int) -> str:
    """Tell how much paint that takes."""
    return f"{square_metres / 8} litres"


def team() -> None:
    llm = ChatOpenAI(model="gpt-5-mini")
    governed = [Middleware()]  # remit
    surveyor = create_agent(llm, [measure], system_prompt="You measure walls.", middleware=governed)
    painter = create_agent(llm, [litres], system_prompt="You know paint.", middleware=governed)
    supervisor = create_agent(llm, system_prompt="You give work to others.", middleware=governed)
    rt.add(surveyor, name="surveyor")  # remit
    rt.add(painter, name="painter", asks=["supervisor"])  # remit
    rt.add(supervisor, name="supervisor", asks=["surveyor", "painter"])  # remit


async def main() -> None:
    team()
    async with rt:  # remit
        task = await rt.submit("supervisor", "Paint the north wall", key="1", credits="$0.10", timeout=60)  # remit
        print(f"answer: {await task.result()}")
        if root := await rt.workspace.tree(task.id):  # remit
            print(text(root, root.until), end="")  # remit
        for line in (await rt.workspace.money.spend("agent")).rows:  # remit
            print(f"${line.credits / 1e6:.6f} {line.name}, {line.calls} requests")  # remit


# Stands in for the models, so that this runs at once. With a key of your own, call main and leave the rest out.
SAID: list[tuple[str, str, ModelReply]] = [  # who is asked, what was last said, and the answer
    ("work to others", "litres", Says("Buy 4.5 litres of paint.")),
    ("work to others", "metres", Calls("call_agent", {"agent": "painter", "task": "How much for 36 square metres?"})),
    ("work to others", "", Calls("call_agent", {"agent": "surveyor", "task": "How large is the north wall?"})),
    ("measure walls", "metres", Says("It has 36 square metres.")),
    ("measure walls", "", Calls("measure", {"wall": "north"})),
    ("know paint", "litres", Says("It takes 4.5 litres.")),
    ("know paint", "already in this delegation", Calls("litres", {"square_metres": 36})),
    ("know paint", "", Calls("call_agent", {"agent": "supervisor", "task": "Which colour?"})),
]


def script(asked: ModelRequest) -> ModelReply:
    return next(reply for who, last, reply in SAID if who in asked.messages[0]["content"] and last in asked.text)


async def scripted() -> None:
    async with model_server(script) as server:
        os.environ.setdefault("OPENAI_BASE_URL", f"{server.url}/v1")
        os.environ.setdefault("OPENAI_API_KEY", "none")
        await main()


if __name__ == "__main__":
    asyncio.run(scripted())
