"""Model requests and tool calls, as adapters bring them to a turn.

An adapter says what to ask and how to send it. The engine does the rest: journal, money, recovery, policy, approval.
"""

from collections.abc import Awaitable, Callable, Mapping
from contextvars import ContextVar
from typing import Any, Final, Protocol, TypeAlias

from remit.core.command import Command
from remit.core.lifecycle import Progress
from remit.core.prices import Usage
from remit.core.records import NamedTuple
from remit.core.recovery import Choice, ModelFailure, ModelTry
from remit.core.secret import Secret
from remit.core.session import EarlierExchange
from remit.core.trust import TRUSTED, Trust, least
from remit.core.values import Json, encode

Hear: TypeAlias = Callable[[str], None]  # gets the text of an answer piece by piece


class TextChunk(NamedTuple):
    """A piece of a model's answer while it is streamed. `begins` marks the first piece of an answer: pieces of an
    earlier try at the same answer are void. For a listener that joins later, the first piece is the whole text so far.
    Secrets are removed from the text."""

    agent: str
    task: str
    text: str = ""
    begins: bool = False
    run: str = ""
    session: str = ""
    began: int = 0  # when the request started: an answer that has ended is not streamed again


class RunListener:
    """A listener to the streamed answers of a run's models, and to the progress of its tasks; `run` is set once the run
    has started."""

    def __init__(self, hear: Callable[[TextChunk | Progress], None]) -> None:
        self.hear = hear
        self.run = ""


LISTENER: Final[ContextVar[RunListener | None]] = ContextVar("remit.listener", default=None)


def tell_listener(run: str) -> None:
    """Set the run of the current listener, if there is one."""
    listener = LISTENER.get()
    if listener is not None:
        listener.run = run


def tell_progress(progress: Progress) -> None:
    """Pass the progress of a task to the current listener, if there is one."""
    listener = LISTENER.get()
    if listener is not None:
        listener.hear(progress)


class Listeners(Protocol):
    """The listeners to streamed text of models in this process. A store uses this to connect another process."""

    def add(self, hear: "Callable[[TextChunk], None]") -> None:
        """Pass streamed text to a listener. It first gets the text so far of the answers that are being streamed."""

    def remove(self, hear: "Callable[[TextChunk], None]") -> None: ...

    def repeat(self, hear: "Callable[[TextChunk], None]") -> None:
        """Send a listener again the text so far of the answers that are being streamed."""


class ModelAnswer(NamedTuple):
    """A model's answer.

    `text` is the whole answer in a form that the adapter can read again; `response` is the same as the framework's
    object, which exists only in the process that asked. `usage` is the provider's token count, or None if it reported
    none that can be true. `calls` are the names of the tools that the answer calls.
    """

    text: str
    model: str
    usage: Usage | None
    calls: tuple[str, ...] = ()
    response: Any = None


class Position(NamedTuple):
    """The place of a request in a recorded conversation.

    `talk` names the conversation within its turn and `begins` is the digest of its first request. `told` is the text
    that this request adds to the conversation, in a form that the adapter can read again; `framework` names the format
    of `told` and of the answer. `saw` lists the slices of the context receipt that came with `told`.
    """

    talk: str
    begins: str = ""
    told: str = ""
    framework: str = ""
    saw: tuple[Any, ...] = ()


class KeptAnswer(NamedTuple):
    """The record at a position: the text that the model was sent, and its answer."""

    told: str
    answer: ModelAnswer


class EarlierTalk(NamedTuple):
    """The whole conversation of an earlier run: requests and answers by position, and the results of tool calls by call
    id. `tools` are the tools that were called."""

    framework: str
    positions: tuple[KeptAnswer, ...]
    results: Mapping[str, Json]
    tools: frozenset[str] = frozenset()
    trust: Trust = TRUSTED

    @property
    def size(self) -> int:
        """The approximate length in characters."""
        words = sum(len(one.told) + len(one.answer.text) for one in self.positions)
        return words + len(encode(dict(self.results)))


class EarlierRun(NamedTuple):
    """An earlier run of a session: question and answer, and its whole conversation if that may be used."""

    exchange: EarlierExchange
    talk: EarlierTalk | None = None

    @property
    def trust(self) -> Trust:
        """The trust label of the parts that a model is given."""
        return self.exchange.label if self.talk is None else least((self.exchange.label, self.talk.trust))


class ModelCall(NamedTuple):
    """One request, to any model of `choices`.

    `digest` covers everything that is asked, without times and ids that change from run to run: equal digests mean
    equal requests. `size` returns the approximate number of input tokens for a degree of shortening; `most` is the
    limit of output tokens; `tools` are the offered tools. `send` sends one request, once: to this model with this key,
    with this output limit; it passes the text to `Hear` as it arrives, if there is a listener. `failure` classifies an
    exception of `send`; None means that it is not a model failure. `ready` prepares what `send` needs, such as a client
    with its key, before money is held; it returns that key, which is redacted from then on. A request with a position
    (`at`) is identified by that position, any other by its digest. `least` is the lowest output limit that makes sense:
    if less can be paid, the request is refused. `spent` returns the most that an unfinished answer can have cost so
    far, or None if that is unknown.
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
    least: int = 0
    spent: Callable[[], Usage | None] | None = None


KEY: Final = "idempotency_key"  # the parameter of a function that takes one
# The idempotency key of the current tool call: the same if the call is repeated after a crash.
TOOL_KEY: Final[ContextVar[str]] = ContextVar("remit.tool_key", default="")


class Brought(NamedTuple):
    """The result of a tool whose framework wraps results: `value` without ids that differ each time. `hands_on` is true
    if the call passes the work to another agent of the framework; then `value` names that agent."""

    value: Json
    hands_on: bool = False


class ToolCall(NamedTuple):
    """A tool call of a model: name, arguments and the id that the model gave to the call. An `inner` tool belongs to a
    run inside the turn; the card of the turn's agent does not list it. The result of an `untrusted` tool is always
    untrusted. `quote` quotes a result that has a shape of its own, and `brought` extracts its content; it returns None
    for any other result. A tool that is an agent has `asks`: the agent and its task."""

    name: str
    arguments: Mapping[str, Json]
    id: str
    inner: bool = False
    untrusted: bool = False
    quote: Callable[[Json], Json] | None = None
    brought: Callable[[Json], Brought | None] | None = None
    asks: tuple[str, str] | None = None


class Rendered(NamedTuple):
    """A tool result that quotes its untrusted parts itself: the model gets it as it is."""

    value: Json


ToolFunction: TypeAlias = Callable[[dict[str, Any]], Awaitable[object]]


class HandedOver(BaseException):
    """A tool call has handed the task over: the turn ends and returns `command`. It is a `BaseException`, so that no
    framework catches it and reports it to its model as a failure."""

    def __init__(self, command: Command) -> None:
        super().__init__("the task was handed over")
        self.command = command
