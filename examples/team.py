"""A team: a coordinator plans, members work apart from each other, the coordinator puts the pieces together."""

import asyncio

from remit import Runtime, Turn

rt = Runtime()

PLAN = """{"steps": [
  {"id": "market", "title": "Study the market", "agent": "analyst"},
  {"id": "survey", "title": "Ask the customers", "agent": "pollster"},
  {"id": "price", "title": "Set a price", "agent": "seller", "after": ["market"]},
  {"id": "launch", "title": "Plan the launch", "agent": "seller", "after": ["price", "survey"]}
]}"""


@rt.agent(asks="*")
async def coordinator(turn: Turn) -> str:
    """Asked for a plan, then for a synthesis; a model reads `turn.task` here and answers both."""
    return PLAN if turn.phase == "plan" else turn.task


@rt.agent(role="knows the market")
async def analyst(turn: Turn) -> str:
    return "rivals ask 20 to 25 EUR"


@rt.agent(role="asks people")
async def pollster(turn: Turn) -> str:
    raise TimeoutError("nobody picked up")


@rt.agent(role="sells")
async def seller(turn: Turn) -> str:
    print(f"--- what the seller is told\n{turn.task}\n")
    return "22 EUR"


synthesis = asyncio.run(rt.run_team("launch the new teapot", "coordinator"))
print(f"--- what the coordinator is told at the end\n{synthesis}")
