"""pydantic-ai: a tool of one agent asks another agent. What remit adds is marked."""

import asyncio
import os
import sys

from pydantic_ai import Agent

from remit import Bounds, Runtime  # remit
from remit.report.flow import text  # remit
from remit.testing.models import Calls, ModelReply, ModelRequest, Says, model_server

rt = Runtime(*sys.argv[1:2], bounds=Bounds(depth=2))  # remit


async def ask_librarian(question: str) -> str:
    """Ask the librarian."""
    return await rt.turn.delegate("librarian", question)  # remit, instead of (await librarian.run(question)).output


async def ask_writer(question: str) -> str:
    """Ask the writer."""
    return await rt.turn.delegate("writer", question)  # remit


def look_up(bridge: str) -> str:
    """Look a bridge up."""
    print(f"tool: look up {bridge}", flush=True)
    return "opened in 1937, 2,737 metres long"


def team() -> None:
    model = "openai:gpt-5-mini"
    writer = Agent(model, name="writer", instructions="You write about bridges.", tools=[ask_librarian])
    librarian = Agent(model, name="librarian", instructions="You look things up.", tools=[ask_writer, look_up])
    rt.add(writer, asks=["librarian"], repeat="again")  # remit
    rt.add(librarian, asks=["writer"], repeat="again")  # remit


async def main() -> None:
    team()
    async with rt:  # remit
        task = await rt.submit("writer", "The Golden Gate in a sentence", key="1", credits="$0.10", timeout=60)  # remit
        print(f"answer: {await task.result()}")
        if root := await rt.workspace.tree(task.id):  # remit
            print(text(root, root.until), end="")  # remit
        for line in (await rt.workspace.money.spend("agent")).rows:  # remit
            print(f"${line.credits / 1e6:.6f} {line.name}, {line.calls} requests")  # remit


# Stands in for the models, so that this runs at once. With a key of your own, call main and leave the rest out.
SAID: list[tuple[str, str, ModelReply]] = [  # who is asked, what was last said, and the answer
    ("write about", "1937", Says("The Golden Gate, opened in 1937, is 2,737 metres long.")),
    ("write about", "", Calls("ask_librarian", {"question": "What is known of the Golden Gate?"})),
    ("look things up", "1937", Says("It was opened in 1937 and is 2,737 metres long.")),
    ("look things up", "already in this delegation", Calls("look_up", {"bridge": "Golden Gate"})),
    ("look things up", "", Calls("ask_writer", {"question": "Which Golden Gate?"})),
]


def script(asked: ModelRequest) -> ModelReply:
    return next(reply for who, last, reply in SAID if who in asked.body["instructions"] and last in asked.text)


async def scripted() -> None:
    async with model_server(script) as server:
        os.environ.setdefault("OPENAI_BASE_URL", f"{server.url}/v1")
        os.environ.setdefault("OPENAI_API_KEY", "none")
        await main()


if __name__ == "__main__":
    asyncio.run(scripted())
