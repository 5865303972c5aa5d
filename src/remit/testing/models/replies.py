"""The replies of a scripted model: small values, from an answer to a broken connection."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal, TypeAlias

UsageGiven: TypeAlias = Literal["right", "missing", "negative"] | tuple[int, int]
RIGHT: Final = "right"


@dataclass(frozen=True, slots=True)
class Says:
    """An answer in words. `usage` is counted from the request and the answer, unless it is set to missing, negative, or
    these tokens of input and output."""

    text: str
    usage: UsageGiven = RIGHT


@dataclass(frozen=True, slots=True)
class Calls:
    """An answer that calls a tool, and those in `also`. Arguments that are text are sent as they are, so they need not
    be JSON. Without an `id` a call is named by the number of its request: `call_1`, and `call_1_1` for the next in the
    same answer. `text` comes before the calls."""

    name: str
    arguments: Mapping[str, Any] | str
    also: Sequence["Calls"] = ()
    id: str = ""
    text: str = ""
    usage: UsageGiven = RIGHT


@dataclass(frozen=True, slots=True)
class Fails:
    """An HTTP error, such as `Fails(429, retry_after=7)` or `Fails(429, code="insufficient_quota")`. `retry_after` is
    in seconds; fractions are sent in `retry-after-ms`."""

    status: int
    code: str = ""
    message: str = ""
    retry_after: float | None = None


@dataclass(frozen=True, slots=True)
class Overflow:
    """The provider's error for a context that is too long."""


@dataclass(frozen=True, slots=True)
class Empty:
    """A valid answer without content."""

    usage: UsageGiven = RIGHT


@dataclass(frozen=True, slots=True)
class Garbage:
    """A response with status 200 that is not JSON. It has the content type that the client expects, unless
    `content_type` is set."""

    text: str = "<html>bad gateway</html>"
    content_type: str = ""


@dataclass(frozen=True, slots=True)
class Reset:
    """No response: the connection is reset after the request has been read."""


@dataclass(frozen=True, slots=True)
class Slow:
    """A reply that is sent slowly, over so many seconds."""

    reply: "ModelReply"
    seconds: float


@dataclass(frozen=True, slots=True)
class Cut:
    """A reply of which half is sent before the connection is closed."""

    reply: "ModelReply"


ModelReply: TypeAlias = Says | Calls | Fails | Overflow | Empty | Garbage | Reset | Slow | Cut
