"""LangGraph: a supervisor has two agents as tools."""
# pyright: basic, reportArgumentType=false, reportMissingTypeStubs=false

import asyncio

from langchain.agents import create_agent
from langchain.tools import tool
from langchain_openai import ChatOpenAI

from remit import Runtime  # remit


@tool
def measure(wall: str) -> str:
    """Measure a wall."""
    print(f"tool: measure the {wall} wall", flush=True)
    return "36 square metres"


llm = ChatOpenAI(model="gpt-5-mini")
surveyor = create_agent(llm, [measure], system_prompt="You measure walls.")
painter = create_agent(llm, system_prompt="You know paint.")


@tool
async def ask_surveyor(question: str) -> str:
    """Ask the surveyor."""
    return (await surveyor.ainvoke({"messages": [("user", question)]}))["messages"][-1].text


@tool
async def ask_painter(question: str) -> str:
    """Ask the painter."""
    return (await painter.ainvoke({"messages": [("user", question)]}))["messages"][-1].text


supervisor = create_agent(llm, [ask_surveyor, ask_painter], system_prompt="You give work to others.")


async def main() -> None:
    async with Runtime("team.db") as rt:  # remit
        rt.add(supervisor, name="supervisor", repeat="again")  # remit
        result = await rt.submit("supervisor", "Paint the north wall", key="1", credits="$0.10")  # remit
        print(await result.result())


asyncio.run(main())
