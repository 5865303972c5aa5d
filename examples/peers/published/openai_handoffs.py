"""openai-agents: a triage agent hands a customer over to a specialist."""

import asyncio

from agents import Agent, function_tool

from remit import Runtime  # remit


@function_tool
def refund(order: int) -> str:
    """Give the money for an order back."""
    print(f"tool: refund {order}", flush=True)
    return f"order {order} is refunded"


orders = Agent("orders", instructions="You know about parcels.", model="gpt-5-mini")
refunds = Agent("refunds", instructions="You know about money.", model="gpt-5-mini", tools=[refund])
triage = Agent("triage", instructions="You know who can help.", model="gpt-5-mini", handoffs=[orders, refunds])
orders.handoffs = [triage]


async def main() -> None:
    async with Runtime("team.db") as rt:  # remit
        for agent, asks in ((triage, ["orders", "refunds"]), (orders, ["triage"]), (refunds, [])):  # remit
            rt.add(agent, asks=asks)  # remit
        result = await rt.submit("triage", "I paid order 5003 twice", key="1", credits="$0.10")  # remit
        print(await result.result())


asyncio.run(main())
