"""Parallel research: several look at the same time, apart from each other; a writer gets what they found."""

import remit
from remit import Command, Runtime, Send, Turn

rt = Runtime()


@rt.agent(asks="*")
async def editor(turn: Turn) -> Command:
    questions = {"historian": "When was it opened?", "engineer": "How long is it?", "diver": "How deep are the piers?"}
    sends = [Send(who, question) for who, question in questions.items()]
    return Command(sends, {"artifacts": {"title": turn.task}}, join="writer")


@rt.agent
async def historian(turn: Turn) -> str:
    return "opened in 1937"


@rt.agent
async def engineer(turn: Turn) -> str:
    return "2,737 metres long"


@rt.agent
async def diver(turn: Turn) -> str:
    raise ConnectionError("the current is too strong")


@rt.agent
async def writer(turn: Turn) -> str:
    title = f"{turn.handoff.state.artifacts['title']}, for the {turn.handoff.sender}"
    return "\n".join([title, *(f"  {'+' if one.ok else '-'} {one}" for one in turn.handoff.results)])


print(remit.run(rt, "editor", "The bridge in figures"))
