"""What arrives while a model is at work, in a conversation of this framework."""

from collections.abc import Sequence
from dataclasses import replace

from pydantic_ai.messages import ModelMessage, ModelRequest, UserPromptPart

from remit.adapters.guests import NEWS
from remit.ports.turn import TurnLike


async def with_news(turn: TurnLike, messages: Sequence[ModelMessage]) -> list[ModelMessage]:
    """Give the conversation with all that has arrived, each in the request that it was told with."""
    found = [*messages]
    for after, text in await NEWS.told(turn, _beginning(messages), len(messages)):
        if isinstance(message := found[after - 1], ModelRequest):
            found[after - 1] = replace(message, parts=[*message.parts, UserPromptPart(text)])
    return found


def _beginning(messages: Sequence[ModelMessage]) -> str:
    return "".join(str(getattr(part, "content", "")) for message in messages[:1] for part in message.parts)
