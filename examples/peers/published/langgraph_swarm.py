"""LangGraph: two agents in one graph hand over to each other."""
# pyright: basic, reportArgumentType=false, reportMissingTypeStubs=false

import asyncio
from typing import Annotated, Any

from langchain.agents import create_agent
from langchain.tools import InjectedToolCallId, tool
from langchain_core.messages import ToolMessage
from langchain_openai import ChatOpenAI
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.prebuilt import InjectedState
from langgraph.types import Command

from remit import Runtime  # remit


def hand_over_to(name: str) -> Any:
    @tool(f"transfer_to_{name}", description=f"Hand over to {name}.")
    def transfer(state: Annotated[dict[str, Any], InjectedState], call: Annotated[str, InjectedToolCallId]) -> Command:
        done = ToolMessage(f"handed over to {name}", name=f"transfer_to_{name}", tool_call_id=call)
        return Command(goto=name, graph=Command.PARENT, update={"messages": [*state["messages"], done]})

    return transfer


@tool
def book(flight: str) -> str:
    """Book a flight."""
    print(f"tool: book {flight}", flush=True)
    return f"{flight} is booked"


llm = ChatOpenAI(model="gpt-5-mini")
hotels = create_agent(llm, [hand_over_to("flights")], system_prompt="You know hotels.", name="hotels")
flights = create_agent(llm, [hand_over_to("hotels"), book], system_prompt="You know flights.", name="flights")
graph = StateGraph(MessagesState).add_node("hotels", hotels, destinations=("flights",))
swarm = graph.add_node("flights", flights, destinations=("hotels",)).add_edge(START, "hotels").compile()


async def main() -> None:
    async with Runtime("team.db") as rt:  # remit
        rt.add(swarm, name="swarm")  # remit
        result = await rt.submit("swarm", "Fly me to Lisbon", key="1", credits="$0.10")  # remit
        print(await result.result())


asyncio.run(main())
