"""The gateway for clients of your own code: a function, or a tool of a guest, that asks a model itself.

    async with gateway_for(turn, ["openai:gpt-5"]) as gateway:
        client = AsyncOpenAI(**gateway.openai)
        answer = await client.chat.completions.create(model="gpt-5", messages=[...])

The requests are those of the turn: paid, bounded and recorded, and sent with the keys of the owner.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from typing import Any, NamedTuple, Protocol

from remit.adapters.endpoints import KeysGiven, UrlGiven
from remit.adapters.gateway.joining import joining
from remit.adapters.gateway.members import MAX_TOKENS
from remit.core.remit import Remit
from remit.errors import BadInput


class AnyTurn(Protocol):
    """Any turn. It lists only attributes whose types every type checker can compare."""

    @property
    def agent(self) -> str: ...
    @property
    def remit(self) -> Remit: ...


class ClientGateway(NamedTuple):
    """The address of the gateway and the token that clients use as their key. The properties are the arguments of the
    usual clients."""

    url: str
    token: str

    def __repr__(self) -> str:
        return f"<ClientGateway at {self.url}>"

    @property
    def openai(self) -> dict[str, Any]:
        """The arguments of `openai.AsyncOpenAI`. The gateway retries itself."""
        return {"base_url": f"{self.url}/v1", "api_key": self.token, "max_retries": 0}

    @property
    def anthropic(self) -> dict[str, Any]:
        """The arguments of `anthropic.AsyncAnthropic`. The gateway retries itself."""
        return {"base_url": self.url, "api_key": self.token, "max_retries": 0}

    @property
    def google(self) -> dict[str, Any]:
        """The arguments of `google.genai.Client`."""
        return {"api_key": self.token, "http_options": {"base_url": self.url}}


@asynccontextmanager
async def gateway_for(
    turn: AnyTurn,
    models: Sequence[str] | bool = True,
    *,
    keys: KeysGiven = (),
    base_url: UrlGiven = None,
    max_tokens: int = MAX_TOKENS,
) -> AsyncGenerator[ClientGateway]:
    """Let clients ask models for a turn while the body runs. `models` are those that they may ask, or True for any;
    `keys` and `base_url` are those of `rt.model_agent`, and `max_tokens` limits each answer. The token is worthless
    when the body has ended. Use an async client, or a blocking one in a thread: the gateway is in this event loop.
    Requests are recorded, but a turn that is run again after a crash makes them again."""
    if models is False:
        raise BadInput("gateway_for takes the models that may be asked, such as ['openai:gpt-5'], or True for any")
    joins = joining(models, verbs=False, keys=keys, base_url=base_url, max_tokens=max_tokens)
    async with joins.joined(turn) as joined:
        yield ClientGateway(joined.url, joined.member.token)
