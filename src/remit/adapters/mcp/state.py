"""The state that a client carries between the rounds of one call.

It names the tasks of the call, the question that the person was shown, and the last event that was told. It gives no
right: remit looks each task up among those of the caller. The seal binds it to the workspace, the caller and the call,
with a key that is derived from the journal, so that any server on the same store can go on.
"""

import base64
import binascii
import hashlib
import hmac
from typing import Final, NamedTuple, cast

from remit.codec import decode, encode
from remit.core.values import Json
from remit.errors import NotFound
from remit.runtime.outsiders import Outsider

TASKS: Final = 32  # of one call
REFUSED: Final = "!"  # no id begins with it
_LENGTH: Final = 40_000  # characters
_PURPOSE: Final = b"remit-mcp-state-1"
_TAG: Final = 16  # bytes


class CallState(NamedTuple):
    """The state of a call between two rounds. `started` has the id of each task, or `REFUSED` and the reason. `seq` is
    the last event that the client was sent, `rounds` counts the rounds so far, and `question` is the question that the
    person was shown, "" for none."""

    started: tuple[str, ...]
    seq: int
    rounds: int = 0
    question: str = ""

    @property
    def tasks(self) -> tuple[str, ...]:
        """The tasks of the call."""
        return tuple(one for one in self.started if not one.startswith(REFUSED))


def sealed(state: CallState, key: bytes) -> str:
    """Return the state as text for the client."""
    content = encode([[*state.started], state.seq, state.rounds, state.question]).encode()
    return base64.urlsafe_b64encode(_tag(key, content) + content).decode()


async def unsealed(text: str, outsider: Outsider, call: str) -> CallState:
    """Return the state that a client sends back. Raise `NotFound` unless remit has signed it for this caller and this
    call; the message is the same for another workspace, another caller and a forgery."""
    tag, content, state = _read(text)
    try:
        key = await sealing_key(outsider, state.tasks, call)
    except NotFound:
        raise unknown() from None
    if not hmac.compare_digest(tag, _tag(key, content)):
        raise unknown()
    return state


async def sealing_key(outsider: Outsider, tasks: tuple[str, ...], call: str) -> bytes:
    """Return the key for the states of one call. Raise `NotFound` if a task is not one of the caller's."""
    parts = [outsider.workspace.name, outsider.session, outsider.card, call]
    material = b"".join(len(part).to_bytes(8, "big") + part for part in (one.encode() for one in parts))
    return hashlib.sha256(_PURPOSE + material + await outsider.seal(_PURPOSE, tasks)).digest()


def unknown() -> NotFound:
    """Return the error of a state that this caller does not have."""
    return NotFound("this requestState is unknown; call the tool again without it")


def _tag(key: bytes, content: bytes) -> bytes:
    return hmac.digest(key, content, "sha256")[:_TAG]


def _read(text: str) -> tuple[bytes, bytes, CallState]:
    """Return the tag, the content and the state of a text, which anybody may have written."""
    if len(text) > _LENGTH or not text.isascii():
        raise unknown()
    try:
        raw = base64.b64decode(text, altchars=b"-_", validate=True)
        tag, content = raw[:_TAG], raw[_TAG:]
        found = decode(content.decode())
    except (binascii.Error, ValueError):
        raise unknown() from None
    match found:
        case [[*started], int(seq), int(rounds), str(question)] if 0 < len(started) <= TASKS and _are_texts(started):
            state = CallState(tuple(cast("list[str]", started)), seq, rounds, question)
            if state.tasks:
                return tag, content, state
        case _:
            pass
    raise unknown()


def _are_texts(values: list[Json]) -> bool:
    return all(isinstance(one, str) for one in values)
