"""A turn for the tests of frameworks: it sends what it is given and keeps a journal, and knows nothing of money."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any, cast

import anyio
import anyio.lowlevel

import remit
from adapters.talks import Talk, Talks
from remit.core.allow import ANY
from remit.core.entry import Message
from remit.core.lifecycle import Outcome
from remit.core.offers import Offers
from remit.core.recovery import ModelFailure, ModelTry
from remit.core.remit import Kit
from remit.core.values import Json, encode
from remit.errors import Refused
from remit.ports.models import HandedOver, Hear, KeptAnswer, ModelAnswer, ModelCall, Rendered, ToolCall, ToolFunction
from remit.ports.turn import CURRENT_TURN, TurnLike
from remit.testing.doubles import PATIENCE

Guest = Callable[[TurnLike], Awaitable[Json]]


class Journal:
    """What has been answered, by what was asked, and how often something really went out."""

    def __init__(self) -> None:
        self.answers: dict[str, Any] = {}
        self.kept: dict[str, KeptAnswer] = {}
        self.sent = 0
        self.used: list[ToolCall] = []
        self.calls: list[ModelCall] = []
        self.replies: list[ModelAnswer] = []
        self.failures: list[ModelFailure | None] = []
        self.errors: list[Exception] = []


class StandInTurn:
    """One turn. Tools named in `refused` are refused, and `edits` says what others are given instead."""

    def __init__(self, task: str, journal: Journal | None = None, **how: Any) -> None:
        self.task = task
        self.agent = "guest"
        self.journal = journal or Journal()
        self.refused: tuple[str, ...] = how.get("refused", ())
        self.edits: dict[str, dict[str, Any]] = how.get("edits", {})
        self.hear: Hear | None = how.get("hear")
        self.trim: int = how.get("trim", 0)
        self._often: Counter[str] = Counter()
        self._talks = Talks(self.model, self.journal.kept)

    def talks(self) -> list[Talk]:
        return self._talks.latest()

    async def begin_talk(self, begins: str, name: str | None = None) -> Talk:
        return await self._talks.begin(begins, name)

    async def model(self, call: ModelCall) -> ModelAnswer:
        key = self._key(f"model/{call.digest}")
        self.journal.calls.append(call)
        if call.at is None and key in self.journal.answers:
            return self.journal.answers[key]
        self.journal.sent += 1
        try:
            reply = await call.send(ModelTry(call.choices[0].model, trim=self.trim), call.most, self.hear)
        except Exception as error:
            self.journal.failures.append(call.failure(error))
            self.journal.errors.append(error)
            raise
        self.journal.replies.append(reply)
        self.journal.answers[key] = reply._replace(response=None)
        return reply

    async def prompt(self) -> str:
        return self.task

    async def inbox(self) -> list[Message]:
        return []

    async def tool(self, call: ToolCall, do: ToolFunction) -> Json:
        if call.name in self.refused:
            return f"'{call.name}' is not among your tools; go on without it"
        key = self._key(f"tool/{call.id}/{encode(call.arguments)}")
        if key not in self.journal.answers:
            self.journal.used.append(call)
            self.journal.answers[key] = await self._done(call, do)
        self._talks.used[call.id] = self.journal.answers[key]
        return self.journal.answers[key]

    async def _done(self, call: ToolCall, do: ToolFunction) -> Json:
        try:
            found = await do(self.edits.get(call.name, dict(call.arguments)))
            return cast("Json", found.value if isinstance(found, Rendered) else found)
        except Refused as no:
            return str(no)
        except Exception as error:
            return f"'{call.name}' failed: {type(error).__name__}: {error}"

    def _key(self, name: str) -> str:
        self._often[name] += 1
        return f"{name}/{self._often[name]}"

    async def offers(self) -> Offers:
        return Offers(Kit(ANY))

    def agents(self) -> list[remit.Card]:
        return [remit.Card("reviewer", "reviews code", can="review code")]

    async def outcome(self, to: str, task: str, **how: Any) -> Outcome:
        agent = to
        if agent != "reviewer":
            raise Refused(f"there is no agent '{agent}' for you; ask reviewer", rule="asks")
        return Outcome(agent, "t1", "completed", f"{agent} did: {task}")

    async def hand_off(self, to: str, update: Any = None, **along: Any) -> remit.Command:
        return remit.Command(to, update or {})


async def run(guest: Guest, task: str = "do it", journal: Journal | None = None, **how: Any) -> Any:
    """Run a guest as an agent is run: in a turn, and in time."""
    turn = cast("TurnLike", StandInTurn(task, journal, **how))
    token = CURRENT_TURN.set(turn)
    try:
        with anyio.fail_after(PATIENCE):
            return await guest(turn)
    finally:
        CURRENT_TURN.reset(token)


async def handed_over(guest: Guest, journal: Journal) -> remit.Command:
    """Run a guest that hands its task over."""
    try:
        found = await run(guest, journal=journal)
    except HandedOver as over:
        return over.command
    raise AssertionError(f"it answered instead: {found!r}")


@asynccontextmanager
async def nothing_left() -> AsyncIterator[None]:
    """Check that no task is left that was not there before."""
    before = asyncio.all_tasks()
    yield

    def left() -> set[asyncio.Task[Any]]:
        return {task for task in asyncio.all_tasks() - before if "listening" not in repr(task)}

    with anyio.move_on_after(PATIENCE):  # those that have ended still have to be told
        while left():
            await anyio.lowlevel.checkpoint()
    assert not left(), left()
