"""Messages and announcements that arrive while a model is at work: told with its next request, and from then on always
in the same place."""

from collections.abc import Sequence
from dataclasses import replace
from weakref import WeakKeyDictionary

from pydantic_ai.messages import ModelMessage, ModelRequest, UserPromptPart

from remit.core.prompt import Note, messages_told
from remit.ports.turn import TurnLike


class News:
    """What each turn was told between its requests: after how many messages, and the text."""

    def __init__(self) -> None:
        self._told: WeakKeyDictionary[TurnLike, list[tuple[int, str]]] = WeakKeyDictionary()

    async def added(self, turn: TurnLike, messages: Sequence[ModelMessage]) -> list[ModelMessage]:
        """Give the conversation with all that has arrived. The first request has what was there in its prompt."""
        told = self._told.setdefault(turn, [])
        if len(messages) > 1 and (arrived := await turn.inbox()):
            notes = [Note(one.sender, one.text, one.trust) for one in arrived]
            told.append((len(messages) - 1, messages_told(notes)))
        found = [*messages]
        for at, text in told:
            if at < len(found) and isinstance(message := found[at], ModelRequest):
                found[at] = replace(message, parts=[*message.parts, UserPromptPart(text)])
        return found
