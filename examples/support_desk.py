"""A support desk: it talks with a customer, hands refunds to a specialist, and a person approves the large ones."""

import asyncio
from collections.abc import Awaitable, Mapping

import stand_in
from remit import Runtime
from remit.settings import Limit, Policy
from remit.types import AskedQuestion

stand_in.without_key(stand_in.SUPPORT_DESK)  # scripted answers, unless OPENAI_API_KEY is set

MODEL = "openai:gpt-5-mini"
LARGE = 50  # dollars: a person approves refunds above this
ORDERS = {5003: {"item": "espresso machine", "dollars": 80, "state": "on its way, arrives today"}}

rt = Runtime("support_desk.db", policy=Policy(limits=[Limit("day", credits="$1", by="*")]))  # $1 a day per customer


@rt.tool(repeat="again")  # it only reads, so remit may call it again after a crash
def find_order(order: int) -> Mapping[str, object]:
    """Look up an order by its number."""
    return ORDERS[order]


@rt.tool
async def refund(order: int, dollars: int, idempotency_key: str) -> str:
    """Refund an order, in whole dollars. A person approves refunds above $50."""
    if dollars > LARGE:
        approved = await rt.turn.ask_approval("refund", {"order": order, "dollars": dollars})
        dollars = approved["dollars"]  # the person may have changed it
    # Call your payment provider here, with the key: after a crash, remit repeats the call with the same key.
    return f"order {order} is refunded: ${dollars}"


rt.model_agent(
    "desk",
    MODEL,
    instructions="You answer customers of a shop. Look up their orders. Hand refunds to the agent 'refunds'.",
    tools=["find_order"],
    asks=["refunds"],
    memory="session",  # it knows the earlier messages of the conversation
)
rt.model_agent(
    "refunds",
    MODEL,
    instructions="You decide on refunds. Check the order first. Answer the customer in two sentences.",
    tools=["find_order", "refund"],
)


def decide(question: AskedQuestion) -> Awaitable[None]:
    """Let the person at this terminal decide. It is not the customer, so the answer has a name of its own."""
    if input(f"{question.text}\napprove? [y/n] ") == "y":
        return question.approve(by="sam")
    return question.reject("a colleague calls the customer", by="sam")


async def main() -> None:
    async with rt:
        for message in ("Where is my order 5003?", "It arrived broken. I want my money back.", "Thank you!"):
            print(f"ann: {message}")
            answer = await rt.run("desk", message, session="ann-5003", by="ann", on_question=decide)
            print(f"desk: {answer}")


if __name__ == "__main__":
    asyncio.run(main())
