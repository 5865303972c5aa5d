"""openai-agents: an orchestrator has two translators as tools."""

import asyncio

from agents import Agent

from remit import Runtime  # remit

spanish = Agent("spanish", instructions="You translate into Spanish.", model="gpt-5-mini")
french = Agent("french", instructions="You translate into French.", model="gpt-5-mini")
orchestrator = Agent(
    "orchestrator",
    instructions="You have texts translated by your tools.",
    model="gpt-5-mini",
    tools=[
        spanish.as_tool("translate_to_spanish", "Translate a text into Spanish."),
        french.as_tool("translate_to_french", "Translate a text into French."),
    ],
)


async def main() -> None:
    async with Runtime("team.db") as rt:  # remit
        rt.add(orchestrator)  # remit
        result = await rt.submit("orchestrator", "Say good morning in both", key="1", credits="$0.10")  # remit
        print(await result.result())


asyncio.run(main())
