"""Requests to models and calls of tools, as adapters bring them to a turn.

A framework's adapter says what it wants asked and how that is sent; everything else is the engine's: journal, money,
recovery, policy, approval.
"""

from collections.abc import Awaitable, Callable, Mapping
from contextvars import ContextVar
from typing import Any, Final, NamedTuple, TypeAlias

from remit.core.command import Command
from remit.core.prices import Usage
from remit.core.recovery import Choice, ModelFailure, ModelTry
from remit.core.secret import Secret
from remit.core.session import EarlierExchange
from remit.core.trust import INSIDE, Trust, least
from remit.core.values import Json, encode

Hear: TypeAlias = Callable[[str], None]  # is given the text of an answer piece by piece


class Heard(NamedTuple):
    """A piece of what a model says while it says it. With `begins` it begins: what was heard of an earlier try at the
    same answer does not count."""

    agent: str
    task: str
    text: str = ""
    begins: bool = False


class RunListener:
    """Somebody who hears what the models of a run say; `run` is known once it has begun."""

    def __init__(self, hear: Callable[[Heard], None]) -> None:
        self.hear = hear
        self.run = ""


LISTENER: Final[ContextVar[RunListener | None]] = ContextVar("remit.listener", default=None)


def tell_listener(run: str) -> None:
    """Tell whoever listens which run begins."""
    listener = LISTENER.get()
    if listener is not None:
        listener.run = run


class ModelAnswer(NamedTuple):
    """What a model answered.

    `text` is the whole answer as the adapter can read it again; `response` the same as an object of its own, which only
    the process has that asked. `usage` is what the provider counted, None if it said nothing that can be true. `calls`
    are the names of the tools that the answer calls.
    """

    text: str
    model: str
    usage: Usage | None
    calls: tuple[str, ...] = ()
    response: Any = None


class Position(NamedTuple):
    """Where a request stands in a conversation that is kept.

    `talk` names the conversation within its turn and `begins` is the digest of how it begins. `told` is what the
    request tells the model beyond what it was told before, as text that the adapter can read again; `framework` says
    whose text that and the answer are, and `saw` lists the slices of the receipt that came with it.
    """

    talk: str
    begins: str = ""
    told: str = ""
    framework: str = ""
    saw: tuple[Any, ...] = ()


class KeptAnswer(NamedTuple):
    """What is on record at a position: what the model was told, and what it answered."""

    told: str
    answer: ModelAnswer


class EarlierTalk(NamedTuple):
    """A whole conversation of an earlier run: what its model was told and answered, position by position, and the
    results of tool calls by the ids of the calls. `tools` are those that were called."""

    framework: str
    positions: tuple[KeptAnswer, ...]
    results: Mapping[str, Json]
    tools: frozenset[str] = frozenset()
    trust: Trust = INSIDE

    @property
    def size(self) -> int:
        """How many characters it has, roughly."""
        words = sum(len(one.told) + len(one.answer.text) for one in self.positions)
        return words + len(encode(dict(self.results)))


class EarlierRun(NamedTuple):
    """An earlier run of a session: what was asked and answered, and its whole conversation if that may be told."""

    exchange: EarlierExchange
    talk: EarlierTalk | None = None

    @property
    def trust(self) -> Trust:
        """The label of what is told of it."""
        return self.exchange.label if self.talk is None else least((self.exchange.label, self.talk.trust))


class ModelCall(NamedTuple):
    """One request, to whichever of the `choices` answers.

    `digest` is of everything that is asked, without times and ids that change from run to run: the same digest is the
    same request. `size` tells how many tokens are read, roughly, with the context shortened so far; `most` is how many
    may be written, and `tools` are those that are offered. `send` sends one request, once: to this model with this key,
    for at most so many tokens, and tells the text to `Hear` as it comes if anyone listens. `failure` says what an error
    of `send` means; None if it is not the model's. `ready` makes what `send` needs, such as a client with its key,
    before money is held, and gives that key, which is redacted from then on. A request `at` a position of a
    conversation is known by that position, whatever it says; any other is known by its digest.
    """

    digest: str
    choices: tuple[Choice, ...]
    size: Callable[[int], int]
    most: int
    send: Callable[[ModelTry, int, Hear | None], Awaitable[ModelAnswer]]
    failure: Callable[[Exception], ModelFailure | None]
    tools: frozenset[str] = frozenset()
    ready: Callable[[ModelTry], Awaitable[Secret | None]] | None = None
    at: Position | None = None


KEY: Final = "idempotency_key"  # the parameter of a function that takes one
# The idempotency key of the tool call that runs in this flow: the same when the call is made again after a crash.
TOOL_KEY: Final[ContextVar[str]] = ContextVar("remit.tool_key", default="")


class Brought(NamedTuple):
    """What a tool brought whose result has a shape of its own: `value` without the ids that differ each time. It
    `hands_on` if it passes the work on to another agent of its framework; then `value` says to whom."""

    value: Json
    hands_on: bool = False


class ToolCall(NamedTuple):
    """A tool that a model wants used: its name, what it is given, and the id that the model gave to the call. An
    `inner` tool is one of a run inside the turn, which the card of the turn's agent does not list. What a tool brings
    that is `outside` is untrusted without being asked; `quote` quotes a result that has a shape of its own, and
    `brought` says what such a result brings, None for any other. A tool that is an agent `asks` it, for this task."""

    name: str
    arguments: Mapping[str, Json]
    id: str
    inner: bool = False
    outside: bool = False
    quote: Callable[[Json], Json] | None = None
    brought: Callable[[Json], Brought | None] | None = None
    asks: tuple[str, str] | None = None


class Rendered(NamedTuple):
    """What a tool returns that quotes its untrusted parts itself: it goes to the model as it is."""

    value: Json


ToolFunction: TypeAlias = Callable[[dict[str, Any]], Awaitable[object]]


class HandedOver(BaseException):
    """A tool call has handed the task over: the turn is done and returns `command`. It is no `Exception`, so that no
    framework tells it to its model as a failure."""

    def __init__(self, command: Command) -> None:
        super().__init__("the task was handed over")
        self.command = command
