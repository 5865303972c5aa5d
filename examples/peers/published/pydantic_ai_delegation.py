"""pydantic-ai: a tool of one agent runs another agent."""

import asyncio

from pydantic_ai import Agent, RunContext

from remit import Runtime  # remit

writer = Agent("openai:gpt-5-mini", name="writer", instructions="You write about bridges.", defer_model_check=True)
librarian = Agent("openai:gpt-5-mini", name="librarian", instructions="You look things up.", defer_model_check=True)


@writer.tool
async def ask_librarian(ctx: RunContext, question: str) -> str:
    """Ask the librarian."""
    return (await librarian.run(question, usage=ctx.usage)).output


@librarian.tool
async def ask_writer(ctx: RunContext, question: str) -> str:
    """Ask the writer."""
    return (await writer.run(question, usage=ctx.usage)).output


@librarian.tool_plain
def look_up(bridge: str) -> str:
    """Look a bridge up."""
    print(f"tool: look up {bridge}", flush=True)
    return "opened in 1937, 2,737 metres long"


async def main() -> None:
    async with Runtime("team.db") as rt:  # remit
        rt.add(writer, repeat="again")  # remit
        result = await rt.submit("writer", "The Golden Gate in a sentence", key="1", credits="$0.10")  # remit
        print(await result.result())


asyncio.run(main())
