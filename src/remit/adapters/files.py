"""Tools with which a model reads and saves text files: `tools=[read_artifact, save_artifact]`.

They have no rights of their own: an agent reads the files that it was given, and its card and rules say whether it may
use the tools.
"""

from typing import Any, Final

from remit.core.values import excerpt
from remit.errors import BadInput
from remit.ports.turn import TurnLike, current_turn

_READ: Final = 40_000  # characters of a file that a model is given at once


async def read_artifact(digest: str) -> str:
    """Return the text of a file that you were given, by its digest (sha256:...). Of a long file, return the beginning
    and the end."""
    opened = await _turn().artifacts.open(digest)
    return excerpt(await opened.text(), _READ)


async def save_artifact(name: str, text: str) -> dict[str, Any]:
    """Save a text as a file and return the reference to it. Put its digest into your answer to pass the file on."""
    saved = await _turn().artifacts.save(text.encode(), name)
    return saved.data()


def _turn() -> TurnLike:
    turn = current_turn()
    if turn is None:
        raise BadInput("read_artifact and save_artifact are tools of an agent: they work during its turn")
    return turn
