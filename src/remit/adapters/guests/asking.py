"""What every framework's adapter says about a request: its digest, its size, what it used, and who asks."""

import inspect
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Any, Final, TypeAlias

from remit.adapters.guests.text import clean, json_of
from remit.adapters.providers import endpoint_of
from remit.core.command import Command
from remit.core.prices import MOST_COUNTED, PER_MESSAGE, Usage
from remit.core.recovery import Choice, ModelTry, key_mark
from remit.core.secret import Secret
from remit.core.text import tokens_in
from remit.core.values import Json, digest, encode
from remit.errors import BadInput
from remit.ports.models import HandedOver, Rendered
from remit.ports.turn import TurnLike, current_turn
from remit.verbs import Verb

MAX_TOKENS: Final = 4_096  # that an answer may have, unless the agent says otherwise: what is put by is then a bound
_SHORTEST_KEY: Final = 12  # characters; what is sent to a server that wants no key is shorter, and found in other words

Prompt: TypeAlias = Callable[[TurnLike], str | Awaitable[str]]


async def prompted(prompt: Prompt, turn: TurnLike) -> str:
    """Give what a guest is asked in this turn."""
    made = prompt(turn)
    return await made if inspect.isawaitable(made) else made


async def prompt_of(turn: TurnLike) -> str:
    """Ask for what the turn tells a model: an untrusted task is quoted in it."""
    return await turn.prompt()


def the_turn(what: str) -> TurnLike:
    """Give the turn that is under way. Nothing that is governed works outside of one: it would not be paid for."""
    turn = current_turn()
    if turn is None:
        raise BadInput(f"{what} works in a turn of an agent only; run it by a Runtime, or use it ungoverned")
    return turn


def choice_of(name: str, client: Any) -> Choice:
    """Say where a guest's model is reached and with which key, as far as its client tells: what it fails of rests there
    and no further. The key is known by a mark of its value."""
    url, key = str(getattr(client, "base_url", None) or ""), getattr(client, "api_key", None)
    marks = (key_mark(key),) if isinstance(key, str) and key else ()
    return Choice(name, marks=marks, endpoint=endpoint_of("", url).removeprefix("@") if url else "")


def key_inside(*clients: Any) -> Secret | None:
    """Return the key that the first of a provider's clients has that has one, to be kept out of whatever is written;
    None for a word that stands for none."""
    keys = [key for one in clients if isinstance(key := getattr(one, "api_key", None), str)]
    return next((Secret(key) for key in keys if len(key) >= _SHORTEST_KEY), None)


def key_of(*clients: Any) -> Callable[[ModelTry], Awaitable[Secret | None]]:
    """Make the `ready` of a guest's request, which gives the key inside its client: it is redacted from then on."""

    async def ready(_tried: ModelTry) -> Secret | None:
        return key_inside(*clients)

    return ready


def digest_of(asked: object) -> str:
    """Name what is asked."""
    return digest(clean(encode(json_of(asked))))


def size_of(messages: Iterable[object]) -> int:
    """Count tokens roughly; what is no text, as the JSON that is sent."""
    return sum(tokens_in(told(json_of(message))) + PER_MESSAGE for message in messages)


def told(value: Json) -> str:
    """Spell what a model is told."""
    return value if isinstance(value, str) else encode(value)


def usage_of(read: int, written: int, cached: int = 0, cache_written: int = 0) -> Usage | None:
    """Take what a provider counted; None if it said nothing, or nothing that can be true."""
    if (read <= 0 and written <= 0) or max(read, written) > MOST_COUNTED:
        return None
    try:
        return Usage(read, written, cached, cache_written)
    except BadInput:
        return None


def verb_function(verb: Verb) -> Callable[[dict[str, Any]], Awaitable[Rendered]]:
    """Make what a turn's `tool` does for a verb. Raises HandedOver if that hands the task over."""

    async def do(arguments: dict[str, Any]) -> Rendered:
        done = await verb.use(the_turn(verb.name), _given(arguments))
        if isinstance(done, Command):
            raise HandedOver(done)
        return done

    return do


def _given(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Leave out what a model fills in with null because its schema wants every name."""
    return {name: value for name, value in arguments.items() if value is not None}
