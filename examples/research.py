"""Research with a plan: an editor plans, researchers work at the same time, and the editor writes from their results.

The run has $0.027. Once that is used up, remit refuses further lookups, but keeps a last share that only the editor
can spend. So the run ends in a page that says what is missing, and not in a failure.
"""

import asyncio
from datetime import UTC, datetime

import stand_in
from remit import Runtime

stand_in.without_key(stand_in.RESEARCH)  # scripted answers, unless OPENAI_API_KEY is set

MODEL = "openai:gpt-5-mini"
ARCHIVE = {
    "history": "Built from 1933 to 1937, opened on 27 May 1937.",
    "engineering": "A main span of 1,280 metres, the longest until 1964.",
    "traffic": "About 112,000 vehicles a day.",
    "colour": "International Orange, chosen by the architect Irving Morrow.",
}

rt = Runtime("research.db")


@rt.tool(repeat="again")  # it only reads, so remit may call it again after a crash
async def look_up(subject: str) -> str:
    """Look a subject up in the archive. A lookup costs $0.005."""
    await rt.turn.spend("$0.005", why=f"archive: {subject}")
    return ARCHIVE.get(subject, "The archive has nothing on this.")


rt.model_agent(
    "editor",
    MODEL,
    instructions="You edit a travel guide. Plan what to find out; then write the page, and say what is missing.",
    asks=["researcher", "checker"],
    max_tokens=1_000,
)
for name, instructions in {
    "researcher": "You find out one thing and report it in one sentence.",
    "checker": "You check what others report. Look up what is in doubt.",
}.items():
    rt.model_agent(name, MODEL, instructions=instructions, tools=["look_up"], max_tokens=500)


async def main() -> None:
    async with rt:
        started = datetime.now(UTC)
        print(await rt.run_team("The Golden Gate Bridge, for our guide", "editor", credits="$0.027", timeout=300))
        for line in (await rt.workspace.money.spend("agent", since=started)).rows:
            print(f"{line.name}: ${line.credits / 1e6:.6f} for {line.calls} requests and lookups")


if __name__ == "__main__":
    asyncio.run(main())
