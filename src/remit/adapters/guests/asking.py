"""Shared code for a framework's requests: digest, size, usage and origin."""

import inspect
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Any, Final, TypeAlias

from remit.adapters.guests.text import clean, json_of
from remit.adapters.providers import endpoint_of
from remit.core.command import Command
from remit.core.prices import MOST_COUNTED, PER_MESSAGE, Usage
from remit.core.recovery import Choice, ModelTry, key_mark
from remit.core.secret import Secret
from remit.core.values import Json, digest, encode, tokens_in
from remit.errors import BadInput
from remit.ports.models import HandedOver, Rendered
from remit.ports.turn import TurnLike, current_turn
from remit.verbs import Verb

MAX_TOKENS: Final = 4_096  # default limit of an answer; holds need a limit
# Characters; placeholders for servers without keys are shorter, and would match ordinary words.
_SHORTEST_KEY: Final = 12

Prompt: TypeAlias = Callable[[TurnLike], str | Awaitable[str]]


async def prompted(prompt: Prompt, turn: TurnLike) -> str:
    """Return the guest's prompt for this turn."""
    made = prompt(turn)
    return await made if inspect.isawaitable(made) else made


async def prompt_of(turn: TurnLike) -> str:
    """Return the turn's own prompt, in which an untrusted task is quoted."""
    return await turn.prompt()


def the_turn(what: str) -> TurnLike:
    """Return the current turn. Raise `BadInput` outside of one: a governed model or tool works only inside a turn,
    because it could not be paid for otherwise."""
    turn = current_turn()
    if turn is None:
        raise BadInput(f"{what} works in a turn of an agent only; run it by a Runtime, or use it ungoverned")
    return turn


def choice_of(name: str, client: Any) -> Choice:
    """Return where a guest's model is reached and with which key, as far as its client reveals it: a failure puts only
    that on cooldown. The key is identified by a digest of its value."""
    url, key = str(getattr(client, "base_url", None) or ""), getattr(client, "api_key", None)
    marks = (key_mark(key),) if isinstance(key, str) and key else ()
    return Choice(name, marks=marks, endpoint=endpoint_of("", url).removeprefix("@") if url else "")


def key_inside(*clients: Any) -> Secret | None:
    """Return the first key in a provider's clients, so that it can be redacted, or None if it is a placeholder."""
    keys = [key for one in clients if isinstance(key := getattr(one, "api_key", None), str)]
    return next((Secret(key) for key in keys if len(key) >= _SHORTEST_KEY), None)


def key_of(*clients: Any) -> Callable[[ModelTry], Awaitable[Secret | None]]:
    """Return the `ready` function of a guest's request. It returns the key in the guest's client, which is redacted
    from then on."""

    async def ready(_tried: ModelTry) -> Secret | None:
        return key_inside(*clients)

    return ready


def digest_of(asked: object) -> str:
    """Return the digest of a request."""
    return digest(clean(encode(json_of(asked))))


def size_of(messages: Iterable[object]) -> int:
    """Return a rough token count; anything but text counts as its JSON."""
    return sum(tokens_in(told(json_of(message))) + PER_MESSAGE for message in messages)


def told(value: Json) -> str:
    """Return the text that a model is given for a value."""
    return value if isinstance(value, str) else encode(value)


def usage_of(read: int, written: int, cached: int = 0, cache_written: int = 0) -> Usage | None:
    """Return the provider's token count, or None if it reported none that can be true."""
    if (read <= 0 and written <= 0) or max(read, written) > MOST_COUNTED:
        return None
    try:
        return Usage(read, written, cached, cache_written)
    except BadInput:
        return None


def verb_function(verb: Verb) -> Callable[[dict[str, Any]], Awaitable[Rendered]]:
    """Return the function that runs a verb for `TurnLike.tool`. It raises `HandedOver` if the verb hands the task
    over."""

    async def do(arguments: dict[str, Any]) -> Rendered:
        done = await verb.use(the_turn(verb.name), _given(arguments))
        if isinstance(done, Command):
            raise HandedOver(done)
        return done

    return do


def _given(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments without nulls, which a model fills in if its schema requires every name."""
    return {name: value for name, value in arguments.items() if value is not None}
