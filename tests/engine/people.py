"""For the tests of questions to people: whoever answers, and agents that can be asked about."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, NamedTuple

import anyio

from engine.helping import PATIENCE, found
from remit import Card, Outcome, Runtime, Turn
from remit.engine.people import Inquiry
from remit.ports import View

HOUR = 3_600.0


async def asked(rt: Runtime, number: int = 1) -> list[Inquiry]:
    """Wait until so many questions are open and waited for, and list them in the order of asking."""

    def waited_for(view: View) -> bool | None:
        standings = [view.standing(question.task) for question in view.questions_open(100)]
        return sum(one is not None and one.state == "waiting" for one in standings) >= number or None

    await found(rt, waited_for)
    return sorted(await rt.workspace.questions.list(), key=lambda one: one.seq)


async def the_question(rt: Runtime) -> Inquiry:
    """Wait for the one open question."""
    [question] = await asked(rt)
    return question


@asynccontextmanager
async def running(rt: Runtime, agent: str, task: str = "go", **how: Any) -> AsyncIterator["asyncio.Future[Outcome]"]:
    """A run in the foreground, beside which people answer; it has to end by the end of the block."""
    outcome = asyncio.ensure_future(rt.outcome(agent, task, **how))
    try:
        yield outcome
        with anyio.fail_after(PATIENCE):
            await outcome
    finally:
        outcome.cancel()


async def counted(rt: Runtime) -> dict[str, int]:
    """How often there was a question, an answer and a use."""
    kinds = [event.kind for event in await rt.workspace.journal.history()]
    return {kind: kinds.count(f"question.{kind}") for kind in ("asked", "answered", "used")}


def deployer(rt: Runtime, **card: Any) -> list[str]:
    """An agent that works only after an approval, and what it was told."""
    told: list[str] = []

    async def deploy(turn: Turn) -> str:
        told.append(turn.task)
        return f"deployed: {turn.task}"

    rt.add(Card("deployer", needs_approval=True, **card), deploy)
    return told


async def settled(rt: Runtime, question: Inquiry, answer: str = "x") -> None:
    """Say yes, or answer."""
    if question.kind == "ask":
        await rt.workspace.questions.answer(question.id, answer, by="ann")
    else:
        await rt.workspace.questions.approve(question.id, by="ann")


class Staying(NamedTuple):
    """An agent that asks a person and then works on and on: `again` when it goes on, `stopped` when it is stopped."""

    again: anyio.Event
    stopped: anyio.Event


def staying(rt: Runtime, name: str) -> Staying:
    """Add an agent that asks, and after the answer does not end by itself."""
    made = Staying(anyio.Event(), anyio.Event())

    @rt.agent(name)
    async def stays(turn: Turn) -> None:
        await turn.ask_human("Which?")
        made.again.set()
        try:
            await anyio.Event().wait()
        finally:
            made.stopped.set()

    return made
