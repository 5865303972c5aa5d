"""openai-agents: a triage agent hands a customer over to a specialist. What remit adds is marked."""

import asyncio
import os
import sys

from agents import Agent, function_tool

from remit import Bounds, Runtime  # remit
from remit.report.flow import text  # remit
from remit.testing.models import Calls, ModelReply, ModelRequest, Says, model_server

MODEL = "gpt-5-mini"
rt = Runtime(*sys.argv[1:2], bounds=Bounds(handoffs=9))  # remit


@function_tool
def refund(order: int) -> str:
    """Give the money for an order back."""
    print(f"tool: refund {order}", flush=True)
    return f"order {order} is refunded"


orders = Agent("orders", instructions="You know about parcels.", model=MODEL)
refunds = Agent("refunds", instructions="You know about money.", model=MODEL, tools=[refund])
triage = Agent("triage", instructions="You know who can help.", model=MODEL, handoffs=[orders, refunds])
orders.handoffs = [triage]

rt.add(triage, asks=["orders", "refunds"])  # remit
rt.add(orders, asks=["triage"])  # remit
rt.add(refunds)  # remit


async def main() -> None:
    async with rt:  # remit
        task = await rt.submit("triage", "I paid order 5003 twice", key="1", credits="$0.10", timeout=60)  # remit
        print(f"answer: {await task.result()}")
        if root := await rt.workspace.tree(task.id):  # remit
            print(text(root, root.until), end="")  # remit
        for line in (await rt.workspace.money.spend("agent")).rows:  # remit
            print(f"${line.credits / 1e6:.6f} {line.name}, {line.calls} requests")  # remit


# Stands in for the models, so that this runs at once. With a key of your own, call main and leave the rest out.
SAID: list[tuple[str, str, ModelReply]] = [  # who is asked, what was last said, and the answer
    ("who can help", "has just handed the same thing", Calls("transfer_to_refunds", {})),
    ("who can help", "", Calls("transfer_to_orders", {})),
    ("about parcels", "", Calls("transfer_to_triage", {})),
    ("about money", "is refunded", Says("Order 5003 is refunded.")),
    ("about money", "", Calls("refund", {"order": 5003})),
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
