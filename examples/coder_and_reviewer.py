"""A coder and a reviewer work until the reviewer approves, at most three rounds; then a person sees the diff."""

import asyncio
import difflib
import subprocess
import sys
from collections.abc import Awaitable
from pathlib import Path
from tempfile import TemporaryDirectory

from pydantic import BaseModel

import stand_in
from remit import Runtime, Turn
from remit.types import AskedQuestion

stand_in.without_key(stand_in.CODER_AND_REVIEWER)  # scripted answers, unless OPENAI_API_KEY is set

MODEL = "openai:gpt-5-mini"
ROUNDS = 3  # at most
SOURCE = '''\
def total(prices: list[int]) -> float:
    """Return the mean price.

    >>> total([2, 4])
    3.0
    """
    return sum(prices) / len(prices)
'''


class Review(BaseModel):
    approved: bool
    comments: list[str]


rt = Runtime("coder_and_reviewer.db")


@rt.tool(repeat="again")
def run_doctests(source: str) -> str:
    """Run the doctests of a Python module, given as text."""
    with TemporaryDirectory() as folder:  # for code that you do not trust: in a container
        file = Path(folder, "candidate.py")
        file.write_text(source)
        command = [sys.executable, "-m", "doctest", "-v", str(file)]
        return subprocess.run(command, check=False, capture_output=True, text=True, timeout=10).stdout


rt.model_agent(
    "coder",
    MODEL,
    instructions="You change Python code. Run its doctests. Answer with the whole new file and nothing else.",
    tools=["run_doctests"],
)
rt.model_agent("reviewer", MODEL, instructions="You review diffs of Python code. Be strict.", output=Review)


@rt.agent(asks=["coder", "reviewer"], review=True)  # a person sees each result before it counts
async def lead(turn: Turn) -> str:
    """Let the coder work until the reviewer approves, and return the diff."""
    wishes = [turn.task]
    if sent := turn.handoff.sent_back:  # by the person, with a reason
        wishes.append(f"{sent.by} sent this back, and said: {sent.why}\n{sent.result}")
    for _ in range(ROUNDS):
        source = await turn.delegate("coder", "\n".join([*wishes, SOURCE]), returns=str)
        diff = "\n".join(difflib.unified_diff(SOURCE.splitlines(), source.splitlines(), "old", "new", lineterm=""))
        review = await turn.delegate("reviewer", diff, returns=Review)
        if review.approved:
            return diff
        wishes += [f"The reviewer says: {comment}" for comment in review.comments]
    raise RuntimeError(f"no approval after {ROUNDS} rounds: {'; '.join(wishes[1:])}")


def decide(question: AskedQuestion) -> Awaitable[None]:
    """Show the diff to the person at this terminal."""
    said = input(f"{question.shows['result']}\ny to approve, or what to change: ")
    return question.approve(by="kim") if said == "y" else question.reject(said, by="kim")


async def main() -> None:
    async with rt:
        diff = await rt.run("lead", "An empty list must give 0.", credits="$0.20", on_question=decide)
        print(f"approved, {len(str(diff).splitlines())} lines of diff")


if __name__ == "__main__":
    asyncio.run(main())
