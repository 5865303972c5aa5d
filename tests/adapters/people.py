"""For the tests of channels: a team that asks people, and questions as channels get them."""

import base64
from typing import Any

from engine.helping import found
from remit import Card, Runtime, Turn
from remit.core.question import Inquiry
from remit.core.values import digest
from remit.ports import View
from remit.testing import CountedIds
from teams import echo, team

SECRET = "whsec_" + base64.b64encode(b"canary-secret-of-thirty-two-byte").decode()


def inquiry(**more: Any) -> Inquiry:
    """A question that nobody asked."""
    given: dict[str, Any] = {
        "id": "q2222222222222222",
        "kind": "hop",
        "text": "'lead' wants to ask 'deployer': deploy",
        "agent": "lead",
        "task": "t1",
        "run": "r1",
        "session": "s",
        "asked_at": 1_800_000_000_000_000,
        "until": 1_800_604_800_000_000,
        "state": "open",
        "chain": "boss > lead",
        "shows": {"action": "delegate", "tools": ["ssh"], "chain": "boss > lead"},
        "digest": digest("x"),
    }
    return Inquiry(**(given | more))


def crew(where: Any, clock: Any, *channels: Any, ids: Any = None, **how: Any) -> Runtime:
    """A team whose lead asks a person: for leave to deploy, for a colour, or for words."""
    rt = team(where, clock=clock, ids=ids or CountedIds(), channels=[*channels], **how)

    async def lead(turn: Turn) -> str:
        if turn.task == "colour":
            return await turn.ask_human("Which colour?", ["red", "blue"])
        if turn.task == "words":
            return await turn.ask_human("What is it called?")
        if turn.task == "money":
            await turn.spend("$0.05", why="a photo")
            return "bought"
        return str(await turn.delegate("deployer", "deploy <b>now</b> & here"))

    rt.add(Card("lead", asks="*"), lead)
    rt.add(Card("deployer", needs_approval=True, tools=["ssh"]), echo)
    return rt


async def asked(rt: Runtime) -> Inquiry:
    """Wait until something is asked, and give it."""
    await found(rt, lambda view: view.questions_open(1) or None)
    [question] = await rt.workspace.questions.list()
    return question


async def noticed(rt: Runtime, channel: str) -> Any:
    """Wait until it is on record what came of telling a channel."""

    def seen(view: View) -> Any:
        told = [view.done_under(f"{question.id}/notice/{channel}") for question in view.questions(10)]
        return next((event.data for events in told for event in events if event.kind == "notice.sent"), None)

    return await found(rt, seen)
