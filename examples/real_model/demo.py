"""`make demo-llm`: a team of a boss and a forecaster, asked through the ordinary client, and a real model answers."""

import asyncio
import os
import sys
from pathlib import Path

from smollm import local_model

from remit.errors import RemitError

HERE = Path(__file__).parent
PORT = 8135  # as in remit.toml
QUESTION = "What is the temperature in Osaka today?"
CALLS = {"call_agent": {"agent": ["forecaster"]}, "thermometer": {}}
HONESTLY = """
What this proves is the plumbing: requests, tool calls, streams, the journal
and the bill go through a model that nobody scripted. It proves nothing about
judgement: a model of 135 million parameters would call no tool by itself, so
it is told which to call, and its JSON is bound to the tool's schema while it
writes. The question that it passes on, the city that it reads and the
sentences are its own, wrong ones too. The prices are invented, and nothing has
left this machine.

Where to look next: cd examples/real_model && remit show"""


async def remit(*words: str) -> int:
    """Run a command of remit in the folder of the team, as one would by hand."""
    print(f"\n$ remit {' '.join(repr(word) if ' ' in word else word for word in words)}", flush=True)
    called = await asyncio.create_subprocess_exec(sys.executable, "-m", "remit.cli", *words, cwd=HERE)
    return await called.wait()


async def main(question: str) -> int:
    os.environ["LOCAL_KEY"] = "none"  # the client wants a key; nobody looks at it
    print("loading SmolLM2, 135 million parameters, from its wheel ...", flush=True)
    async with local_model(CALLS, port=PORT) as model:
        code = await remit("run", question)
        await remit("spend", "--by", "agent")
        print(f"\n{len(model.requests)} requests at {model.url}; {sum(one.stream for one in model.requests)} streamed")
    print(HONESTLY)
    return code


if __name__ == "__main__":
    try:
        sys.exit(asyncio.run(main(" ".join(sys.argv[1:]) or QUESTION)))
    except (RemitError, OSError) as no:
        sys.exit(f"demo-llm: {no}")
    except KeyboardInterrupt:
        sys.exit(130)
