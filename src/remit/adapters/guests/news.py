"""Messages and announcements that arrive while a model is at work: told with its next request, and from then on always
in the same place."""

from typing import Final, NamedTuple
from weakref import WeakKeyDictionary

from remit.core.prompt import Note, messages_told
from remit.ports.turn import TurnLike


class _Talk(NamedTuple):
    """The conversation that a turn began with, by how it begins; and what was told in it: after how many messages."""

    beginning: str
    told: list[tuple[int, str]]


class News:
    """What each turn was told between its requests."""

    def __init__(self) -> None:
        self._talks: WeakKeyDictionary[TurnLike, _Talk] = WeakKeyDictionary()

    async def told(self, turn: TurnLike, beginning: str, messages: int) -> list[tuple[int, str]]:
        """Take what has arrived, and list all that was told so far: after how many messages, and the text.

        The first request has what was there in its prompt. `beginning` tells conversations apart: an agent may talk to
        another inside of a tool, and what came for its own conversation has no place in that one.
        """
        talk = self._talks.get(turn)
        if talk is None:
            self._talks[turn] = _Talk(beginning, [])
            return []
        if beginning != talk.beginning:
            return []
        if arrived := await turn.inbox():
            notes = [Note(one.sender, one.text, one.trust) for one in arrived]
            talk.told.append((messages, messages_told(notes)))
        return [(after, text) for after, text in talk.told if after <= messages]


NEWS: Final = News()
