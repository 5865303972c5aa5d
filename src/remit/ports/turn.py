"""What an agent is given, as adapters see it, and which turn is under way."""

from collections.abc import Callable, Sequence
from contextvars import ContextVar
from typing import Any, Final, Protocol, TypeAlias

from remit.core.card import Card
from remit.core.command import Command
from remit.core.match import Match
from remit.core.message import Message
from remit.core.offers import Offers
from remit.core.outcome import Outcome
from remit.core.remit import Remit
from remit.core.session import EarlierExchange
from remit.core.trust import Trust
from remit.core.values import Json
from remit.ports.models import EarlierRun, KeptAnswer, ModelAnswer, ModelCall, ToolCall, ToolFunction

Hops: TypeAlias = Callable[[Sequence[Any]], list[str]]


OF_RUN: Final = "run-"  # begins the names of conversations that follow the first of a run


class TalkLike(Protocol):
    """A conversation with a model that is kept position by position: what was told and what was answered.

    `sent` is the conversation so far as messages of the framework: the adapter keeps it, and the next request is made
    of it and of what is new. `given` is the same as the framework knows it. `before` is what earlier runs of the
    session said, as such messages; None until the adapter has looked. `tail` is what the latest request told by
    itself, None if news came with it, and `hops` lists the calls in the answer to it that pass the conversation on to
    another agent inside the framework. `from_record` tells whether the answer before the next request came from the
    record.
    """

    sent: list[Any]
    given: list[Any]
    before: list[Any] | None
    tail: list[Any] | None
    hops: Hops | None
    from_record: bool

    @property
    def is_own(self) -> bool:
        """Whether this is the conversation that the turn's agent itself has, and no other inside of it."""
        ...

    @property
    def is_of_run(self) -> bool:
        """Whether the run of the turn's agent has it: its own conversation, or another that it began afterwards because
        its framework passed on nothing that was said."""
        ...

    async def past(self) -> Sequence[EarlierRun]:
        """Return the earlier runs of the session that the turn is told, the oldest first."""
        ...

    async def recall(self, framework: str) -> KeptAnswer | None:
        """Return what is on record at the next position and move on past it; None if the model is to be asked."""
        ...

    async def news(self) -> str:
        """Take the messages that arrived since the last request, as text; empty if there are none."""
        ...

    async def ask(self, call: ModelCall, told: str) -> ModelAnswer:
        """Ask the model at this position, and record `told` with its answer."""
        ...

    async def exchanged(self, words: str, *, says: bool, hands_on: bool) -> None:
        """Judge the latest round, in which no tool of the turn was used. `words` is the digest of what was told and
        answered; whether the answer `says` something or calls tools of the framework, and `hands_on` if one of them
        passes the conversation on. Raises Refused if the same is there again and again."""
        ...

    def warning(self) -> str:
        """Take what the model is to be told of its going round in circles; empty if it does not."""
        ...

    async def result(self, call: str) -> tuple[Json] | None:
        """Return what an earlier run told the model of a tool call, or that it began the call, by the call's id."""
        ...

    def was_used(self, call: str) -> bool:
        """Whether this run has come to the tool call with this id."""
        ...

    def lost(self, why: str) -> BaseException:
        """Return the error to raise when the record cannot be continued."""
        ...


class TurnLike(Protocol):
    """One call of an agent. Adapters and verbs need nothing else of the engine."""

    @property
    def task(self) -> str: ...
    @property
    def agent(self) -> str: ...
    @property
    def asker(self) -> str: ...
    @property
    def remit(self) -> Remit: ...
    @property
    def context(self) -> Any: ...
    @property
    def trust(self) -> Trust: ...
    def outside(self, what: str, text: str = "") -> None: ...
    async def find(self, capability: str, *, limit: int = 3) -> list[Match]: ...
    def agents(self) -> list[Card]: ...
    async def delegate(self, to: str | None = None, task: str = "", **how: Any) -> Any: ...
    async def outcome(self, to: str | None = None, task: str = "", **how: Any) -> Outcome: ...
    async def delegate_all(self, wishes: Any, **how: Any) -> list[Outcome]: ...
    async def submit(self, to: str | None = None, task: str = "", **how: Any) -> Any: ...
    async def spawn(self, to: str | None = None, task: str = "", **how: Any) -> Any: ...
    async def hand_off(self, to: Any = None, update: Any = None, *, join: str = "", **along: Any) -> Command: ...
    async def ask_human(self, question: str, choices: list[str] | None = None) -> str: ...
    async def send(self, to: str, text: str) -> None: ...
    async def inbox(self) -> list[Message]: ...
    async def once(self, name: str, do: Any, *args: Any) -> Any: ...
    async def prompt(self) -> str: ...
    async def talk_so_far(self) -> list[EarlierExchange]: ...
    async def offers(self) -> Offers:
        """Tell which tools and verbs a model is shown with its next request."""
        ...

    async def model(self, call: ModelCall) -> ModelAnswer:
        """Ask a model, and pay for it; when the task is run again, give back what it answered."""
        ...

    def talks(self) -> Sequence[TalkLike]:
        """List the conversations begun in this turn, or in the tool call that runs now; the latest first."""
        ...

    async def begin_talk(self, begins: str, name: str | None = None) -> TalkLike:
        """Begin a conversation. `begins` is the digest of its first request. The first one of a turn is the turn's own
        and is found again whatever it begins with; others by `name`, or by how they begin."""
        ...

    async def tool(self, call: ToolCall, do: ToolFunction) -> Json:
        """Use a tool, and give back what the model is told: what came of it, or a sentence why not."""
        ...

    def submitted(self, task: str) -> Any:
        """Give the handle of a task that this task submitted or spawned."""
        ...


CURRENT_TURN: Final[ContextVar[TurnLike | None]] = ContextVar("remit.turn", default=None)


def current_turn() -> TurnLike | None:
    """Give the turn that the calling code runs in; None outside of one."""
    return CURRENT_TURN.get()
