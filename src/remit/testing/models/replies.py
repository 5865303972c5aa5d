"""What a scripted model replies: a few small values, from an answer to a connection that breaks."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal, TypeAlias

UsageGiven: TypeAlias = Literal["right", "missing", "negative"] | tuple[int, int]
RIGHT: Final = "right"


@dataclass(frozen=True, slots=True)
class Says:
    """An answer in words. `usage` is counted from what was asked and said unless it is to be missing, negative, or
    these tokens of input and output."""

    text: str
    usage: UsageGiven = RIGHT


@dataclass(frozen=True, slots=True)
class Calls:
    """An answer that calls a tool, and those that are in `also`. Arguments that are text are sent as they are, so they
    need not be JSON. Without an `id` a call is named by the number of its request: `call_1`, and `call_1_1` for the
    next in the same answer. `text` is said before the calls."""

    name: str
    arguments: Mapping[str, Any] | str
    also: Sequence["Calls"] = ()
    id: str = ""
    text: str = ""
    usage: UsageGiven = RIGHT


@dataclass(frozen=True, slots=True)
class Fails:
    """An HTTP status that is no answer, such as `Fails(429, retry_after=7)` or `Fails(429, code="insufficient_quota")`.
    `retry_after` is in seconds; parts of one are told in `retry-after-ms`."""

    status: int
    code: str = ""
    message: str = ""
    retry_after: float | None = None


@dataclass(frozen=True, slots=True)
class Overflow:
    """The context is too long, told as each provider tells it."""


@dataclass(frozen=True, slots=True)
class Empty:
    """An answer in good form that says nothing."""

    usage: UsageGiven = RIGHT


@dataclass(frozen=True, slots=True)
class Garbage:
    """A status of 200, and what follows is no JSON. It says that it is what the client waits for, unless it says what
    else it is."""

    text: str = "<html>bad gateway</html>"
    content_type: str = ""


@dataclass(frozen=True, slots=True)
class Reset:
    """No answer: the connection is reset once the request has been read."""


@dataclass(frozen=True, slots=True)
class Slow:
    """A reply that drips in over so many seconds."""

    reply: "ModelReply"
    seconds: float


@dataclass(frozen=True, slots=True)
class Cut:
    """A reply of which half arrives before the connection is closed."""

    reply: "ModelReply"


ModelReply: TypeAlias = Says | Calls | Fails | Overflow | Empty | Garbage | Reset | Slow | Cut
