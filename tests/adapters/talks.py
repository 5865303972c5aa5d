"""Conversations for the turns of adapter tests: kept in a dictionary by their positions, as a store keeps them."""

from collections import Counter
from collections.abc import Awaitable, Callable
from typing import Any

from remit.core.values import Json
from remit.errors import Failed
from remit.ports.models import EarlierRun, KeptAnswer, ModelAnswer, ModelCall
from remit.ports.turn import Hops

Ask = Callable[[ModelCall], Awaitable[ModelAnswer]]


class Talks:
    """The conversations of one turn. `kept` outlives the turn, `asks` sends a request."""

    def __init__(self, asks: Ask, kept: dict[str, KeptAnswer] | None = None) -> None:
        self.asks = asks
        self.kept: dict[str, KeptAnswer] = {} if kept is None else kept
        self.begun: dict[str, Talk] = {}
        self.used: dict[str, Json] = {}
        self.past: list[EarlierRun] = []
        self.exchanged: list[str] = []

    def latest(self) -> list["Talk"]:
        return [*reversed(self.begun.values())]

    async def begin(self, begins: str, name: str | None = None) -> "Talk":
        if name is None:
            name = "" if "" not in self.begun else begins
        return self.begun.setdefault(name, Talk(self, name))


class Talk:
    def __init__(self, talks: Talks, name: str) -> None:
        self.sent: list[Any] = []
        self.given: list[Any] = []
        self.before: list[Any] | None = None
        self.tail: list[Any] | None = None
        self.hops: Hops | None = None
        self.from_record = False
        self._talks = talks
        self._name = name
        self._count: Counter[str] = Counter()

    @property
    def _at(self) -> str:
        return f"{self._name}/{self._count['']}"

    @property
    def is_own(self) -> bool:
        return self._name == ""

    @property
    def is_of_run(self) -> bool:
        return self._name == ""

    async def past(self) -> list[EarlierRun]:
        return self._talks.past

    async def recall(self, framework: str) -> KeptAnswer | None:
        found = self._talks.kept.get(self._at)
        if found is not None:
            self._count[""] += 1
        return found

    async def news(self) -> str:
        return ""

    async def ask(self, call: ModelCall, told: str) -> ModelAnswer:
        reply = await self._talks.asks(call)
        self._talks.kept[self._at] = KeptAnswer(told, reply._replace(response=None))
        self._count[""] += 1
        return reply

    async def exchanged(self, words: str, *, says: bool, hands_on: bool) -> None:
        self._talks.exchanged.append(words)

    def warning(self) -> str:
        return ""

    async def result(self, call: str) -> tuple[Json] | None:
        return (self._talks.used[call],) if call in self._talks.used else None

    def was_used(self, call: str) -> bool:
        return call in self._talks.used

    def lost(self, why: str) -> Failed:
        return Failed(why, agent="guest", task="t1", retryable=False)
