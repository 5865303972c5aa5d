"""A group chat of three: they talk in turn until all agree, or until the last round; then a person can go on."""

import asyncio

from pydantic import BaseModel

import stand_in
from remit import Runtime, Turn

stand_in.without_key(stand_in.GROUP_CHAT)  # scripted answers, unless OPENAI_API_KEY is set

MODEL = "openai:gpt-5-mini"
ROUNDS = 4  # at most
SPEAKERS = {
    "poet": "You find names for shops. You like a picture.",
    "seller": "You sell. You like names that customers remember.",
    "lawyer": "You know which names of shops are taken.",
}


class Line(BaseModel):
    text: str
    name: str  # the name that the speaker is for now


rt = Runtime("group_chat.db")
for speaker, about in SPEAKERS.items():
    rule = "Reply to the conversation in one sentence, and say which name you are for."
    rt.model_agent(speaker, MODEL, instructions=f"{about} {rule}", output=Line, max_tokens=500)


@rt.agent(asks=[*SPEAKERS], memory="session")
async def table(turn: Turn) -> str:
    """Let everyone speak in turn, with everything that was said as the task. It ends when all are for one name."""
    said = [f"{turn.by}: {one.said}\nall: {one.answer}" for one in await turn.talk_so_far()]
    said.append(f"{turn.by}: {turn.task}")
    votes: list[str] = []
    for number in range(ROUNDS):
        turn.progress(f"round {number + 1} of {ROUNDS}", fraction=number / ROUNDS)
        for speaker in SPEAKERS:
            line = await turn.delegate(speaker, "\n".join(said), returns=Line)
            print(f"{speaker}: {line.text}")
            said.append(f"{speaker}: {line.text}")
            votes.append(line.name)
        if len(set(votes[-len(SPEAKERS) :])) == 1:
            return votes[-1]
    return f"no agreement after {ROUNDS} rounds; the last names were {', '.join(votes[-len(SPEAKERS) :])}"


async def main() -> None:
    async with rt:
        for message in ("We need a name for a tea shop at the harbour.", "Shorter, please."):
            print(f"ann: {message}")
            answer = await rt.run("table", message, session="tea shop", by="ann", credits="$0.10")
            print(f"all: {answer}")


if __name__ == "__main__":
    asyncio.run(main())
