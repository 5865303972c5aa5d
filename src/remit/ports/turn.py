"""The turn as adapters see it, and the current turn of the calling code."""

from __future__ import annotations

from collections.abc import Callable, Container, Sequence
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeAlias

if TYPE_CHECKING:
    from remit.core.card import Card
    from remit.core.command import Command
    from remit.core.entry import Message
    from remit.core.lifecycle import Outcome
    from remit.core.match import Match
    from remit.core.offers import Offers
    from remit.core.remit import Remit
    from remit.core.session import EarlierExchange
    from remit.core.trust import Trust
    from remit.core.values import Json
    from remit.ports.models import EarlierRun, KeptAnswer, ModelAnswer, ModelCall, ToolCall, ToolFunction

Hops: TypeAlias = Callable[[Sequence[Any]], list[str]]


OF_RUN: Final = "run-"  # prefix of the names of a run's later conversations


class TalkLike(Protocol):
    """A conversation with a model that is recorded position by position: requests and answers.

    `sent` is the conversation so far as messages of the framework. The adapter keeps it and builds the next request
    from it and the new messages. `given` are the messages of the framework's latest request and its answer, to find out
    whether the framework rewrites them. `before` has the earlier runs of the session as messages; None until the
    adapter has read them. `tail` are the messages that the framework added with its latest request; None if remit added
    text to them. `hops` lists the calls in an answer that pass the conversation to another agent inside the framework.
    `from_record` says whether the answer before the next request came from the record.
    """

    sent: list[Any]
    given: list[Any]
    before: list[Any] | None
    tail: list[Any] | None
    hops: Hops | None
    from_record: bool

    @property
    def is_own(self) -> bool:
        """Whether this is the conversation of the turn's agent itself, not of another agent inside it."""
        ...

    @property
    def is_of_run(self) -> bool:
        """Whether this conversation belongs to the run of the turn's agent: its own, or a later one that started
        because its framework passed none of the earlier messages on."""
        ...

    async def past(self) -> Sequence[EarlierRun]:
        """Return the earlier runs of the session that the turn is given, the oldest first."""
        ...

    async def recall(self, framework: str) -> KeptAnswer | None:
        """Return the record at the next position and advance, or None if the model must be asked. Raise the error of
        `lost_error` if the record is of another framework or cannot be read."""
        ...

    async def news(self) -> str:
        """Take the messages that arrived since the last request. Return them, and notes of the engine, as text for the
        next request; "" if there are none."""
        ...

    async def tell(self, told: str, results: int) -> None:
        """Record `told`, with this number of tool results, before the next request sends them to the model."""
        ...

    async def ask(self, call: ModelCall, told: str) -> ModelAnswer:
        """Ask the model at this position, and record `told` with its answer."""
        ...

    async def exchanged(self, words: str, *, says: bool, hands_on: bool) -> None:
        """Judge the latest round, in which no tool of the turn was used. `words` is the digest of request and answer.
        `says` is true if the answer has text or calls tools of the framework, `hands_on` if one of these passes the
        conversation on. Raise `Refused` if the same round occurs again and again."""
        ...

    def warning(self) -> str:
        """Return the warning that the model makes no progress, and clear it. Return "" if there is none."""
        ...

    async def result(self, call: str) -> tuple[Json] | None:
        """Return the recorded result of an earlier attempt's tool call, by its id, in a one-tuple. If only the start of
        the call is recorded, return a note that it may have been done. Return None if nothing is recorded."""
        ...

    def was_used(self, call: str) -> bool:
        """Whether this attempt has reached the tool call with this id."""
        ...

    def lost_error(self, why: str) -> BaseException:
        """Mark the conversation as lost. Return the exception to raise because its record cannot be continued; `why` is
        the reason."""
        ...


class TurnLike(Protocol):
    """One call of an agent: everything that adapters and verbs need of the engine."""

    @property
    def task(self) -> str: ...
    @property
    def agent(self) -> str: ...
    @property
    def card(self) -> Card: ...
    @property
    def asker(self) -> str: ...
    @property
    def remit(self) -> Remit: ...
    @property
    def context(self) -> Any: ...
    @property
    def artifacts(self) -> Any: ...
    @property
    def trust(self) -> Trust: ...
    @property
    def tools(self) -> Container[str]: ...
    def progress(self, text: str, fraction: float | None = None, *, every: float = 0) -> bool:
        """Report the progress of the task; `fraction` is the finished part, from 0 to 1. With `every`, skip the report
        if the last one was less than so many seconds ago, unless `fraction` is 1. Return whether the report was
        made."""
        ...

    def mark_untrusted(self, source: str, text: str = "") -> None: ...
    async def find(self, capability: str, *, limit: int = 3) -> list[Match]: ...
    def agents(self) -> list[Card]: ...
    async def delegate(self, to: str | None = None, task: str = "", **how: Any) -> Any: ...
    async def outcome(self, to: str | None = None, task: str = "", **how: Any) -> Outcome: ...
    async def delegate_all(self, wishes: Any, **how: Any) -> list[Outcome]: ...
    async def submit(self, to: str | None = None, task: str = "", **how: Any) -> Any: ...
    async def spawn(self, to: str | None = None, task: str = "", **how: Any) -> Any: ...
    async def hand_off(self, to: Any = None, update: Any = None, *, join: str = "", **along: Any) -> Command: ...
    async def ask_human(self, question: str, choices: list[str] | None = None) -> str: ...
    async def ask_approval(self, action: str, arguments: dict[str, Json] | None = None) -> dict[str, Any]: ...
    async def send(self, to: str, text: str) -> None: ...
    async def inbox(self) -> list[Message]: ...
    async def once(self, name: str, do: Any, *args: Any) -> Any: ...
    async def prompt(self) -> str: ...
    async def talk_so_far(self) -> list[EarlierExchange]: ...
    async def offers(self) -> Offers:
        """Return which tools and verbs a model is shown with its next request."""
        ...

    async def model(self, call: ModelCall) -> ModelAnswer:
        """Ask a model and pay for it. If the task is run again, return the recorded answer."""
        ...

    def talks(self) -> Sequence[TalkLike]:
        """Return the conversations that started in this turn, or in the running tool call; the latest first."""
        ...

    async def begin_talk(self, begins: str, name: str | None = None) -> TalkLike:
        """Start a conversation. `begins` is the digest of its first request. A rerun finds the first conversation of a
        turn however it begins, and others by `name` or by `begins`."""
        ...

    async def kept_answers(self) -> list[KeptAnswer]:
        """Return the model requests and the answers of earlier attempts of this turn, the oldest first."""
        ...

    async def tool(self, call: ToolCall, do: ToolFunction) -> Json:
        """Use a tool. Return the text for the model: the result, or the reason why the call was refused or failed."""
        ...

    def submitted(self, task: str) -> Any:
        """Return the handle of a task that this task submitted or spawned."""
        ...


CURRENT_TURN: Final[ContextVar[TurnLike | None]] = ContextVar("remit.turn", default=None)


def current_turn() -> TurnLike | None:
    """Return the turn that the calling code runs in, or None outside of one."""
    return CURRENT_TURN.get()
