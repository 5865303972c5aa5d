"""A stand-in for the turn that the engine gives to an agent, for tests of the adapter alone.

It records what the adapter brings, asks the first model with its first key, and uses tools without any policy. It keeps
no journal and holds no money: what comes of those is tested with a real turn.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from adapters.talks import Talk, Talks
from remit.core.allow import ANY
from remit.core.command import Command
from remit.core.offers import Offers
from remit.core.recovery import ModelFailure, ModelTry
from remit.core.remit import Kit
from remit.errors import Refused
from remit.ports.models import HandedOver, KeptAnswer, ModelAnswer, ModelCall, Rendered, ToolCall, ToolFunction
from remit.ports.turn import CURRENT_TURN


class ModelDown(Exception):
    """No model answered."""

    def __init__(self, failure: ModelFailure) -> None:
        super().__init__(failure.kind)
        self.failure = failure


class StandInTurn:
    """`tries` are made in order, one for each request; without any, the first model is asked. `kept` is what is on
    record of its conversations; another turn may go on with it."""

    def __init__(
        self,
        task: str = "hello",
        *,
        tries: list[ModelTry] | None = None,
        listens: bool = False,
        kept: dict[str, KeptAnswer] | None = None,
    ) -> None:
        self.task = task
        self.calls: list[ModelCall] = []
        self.replies: list[ModelAnswer] = []
        self.used: list[ToolCall] = []
        self.heard: list[str] = []
        self.kept: dict[str, KeptAnswer] = {} if kept is None else kept
        self.changes: dict[str, dict[str, Any]] = {}  # arguments that a person has changed, by tool
        self._talks = Talks(self.model, self.kept)
        self._tries = tries or []
        self._listens = listens

    def talks(self) -> list[Talk]:
        return self._talks.latest()

    async def begin_talk(self, begins: str, name: str | None = None) -> Talk:
        return await self._talks.begin(begins, name)

    async def model(self, call: ModelCall) -> ModelAnswer:
        self.calls.append(call)
        first = call.choices[0]
        tried = self._tries.pop(0) if self._tries else ModelTry(first.model, first.keys[0] if first.keys else "")
        try:
            reply = await call.send(tried, call.most, self.heard.append if self._listens else None)
        except Exception as error:
            failure = call.failure(error)
            if failure is None:
                raise
        else:
            self.replies.append(reply)
            return reply
        raise ModelDown(failure)

    async def prompt(self) -> str:
        return self.task

    async def inbox(self) -> list[Any]:
        return []

    async def tool(self, call: ToolCall, do: ToolFunction) -> Any:
        self.used.append(call)
        self._talks.used[call.id] = None
        try:
            found = await do(dict(self.changes.get(call.name, call.arguments)))
        except Refused as no:
            return str(no)
        except Exception as error:
            return f"{call.name!r} failed: {type(error).__name__}: {error}"
        if isinstance(found, Command):
            raise HandedOver(found)
        return found.value if isinstance(found, Rendered) else found

    async def hand_off(self, to: str = "", update: Any = None) -> Command:
        return Command(to, update=update or {})

    async def offers(self) -> Offers:
        return Offers(Kit(ANY))

    def agents(self) -> list[Any]:
        return []


@contextmanager
def under_way(turn: StandInTurn) -> Iterator[StandInTurn]:
    """Let code run inside of a turn."""
    token = CURRENT_TURN.set(turn)  # type: ignore[arg-type] - a stand-in has no more than the adapter needs
    try:
        yield turn
    finally:
        CURRENT_TURN.reset(token)
