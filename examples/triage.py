"""Triage: one agent looks at what comes in and hands it to a specialist, together with what it found out."""

import remit
from remit import Command, Runtime, Turn

rt = Runtime()


@rt.agent(role="looks at what comes in", asks=["billing", "support"])
async def triage(turn: Turn) -> Command:
    about_money = "charged" in turn.task
    specialist, phase = ("billing", "refund") if about_money else ("support", "diagnose")
    print(f"triage   hands to {specialist}: {turn.task}")
    return Command(specialist, {"phase": phase, "context": {"customer": "Ada", "order": 5003}})


@rt.agent(role="money matters")
async def billing(turn: Turn) -> str:
    given = turn.handoff
    print(f"billing  has it from {given.sender}, to {given.state.phase}: {given.state.context}")
    return f"order {given.state.context['order']} is refunded"


@rt.agent(role="technical matters")
async def support(turn: Turn) -> str:
    given = turn.handoff
    print(f"support  has it from {given.sender}, to {given.state.phase}: {given.state.context}")
    return "clear the cache and log in again"


for message in ("I was charged twice", "I cannot log in"):
    print(f"answer   {remit.run(rt, 'triage', message)}\n")
