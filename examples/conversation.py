"""Conversation: a moderator lets two agents talk in turn, and ends it when the critic is content."""

import remit
from remit import Runtime, Turn

rt = Runtime()
ROUNDS = 6  # at most


@rt.agent(role="leads the talk", asks=["poet", "critic"])
async def moderator(turn: Turn) -> str:
    said = [f"moderator: {turn.task}"]
    for _ in range(ROUNDS):
        for speaker in ("poet", "critic"):
            line = await turn.delegate(speaker, "\n".join(said))
            said.append(f"{speaker}: {line}")
            print(f"{speaker:<7}{line}")
        if "content" in line:
            return said[-2].removeprefix("poet: ")
    return "no poem: they did not agree"


@rt.agent(role="writes")
async def poet(turn: Turn) -> str:
    drafts = ["Tea is hot.", "Tea is hot, and so am I.", "Steam writes what the cup forgets."]
    return drafts[min(turn.task.count("poet:"), 2)]


@rt.agent(role="judges")
async def critic(turn: Turn) -> str:
    last = turn.task.rpartition("poet: ")[2]
    return "I am content" if "cup" in last else f"{len(last.split())} words, and no picture"


print(f"poem   {remit.run(rt, 'moderator', 'a poem about tea')}")
