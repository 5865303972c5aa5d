"""What the tests of the adapter share: a model behind a real client, and one request to it."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, NamedTuple

import pytest
from pydantic_ai.messages import ModelMessage, ModelRequest, ModelResponse
from pydantic_ai.models import ModelRequestParameters
from pydantic_ai.tools import ToolDefinition

from adapters.pydantic_ai.turns import StandInTurn, under_way
from remit.adapters.pydantic_ai import Clients, GovernedModel
from remit.testing.models import ModelReply, ModelServer, model_server

KEYS = {"FIRST": "sk-first-canary", "SECOND": "sk-second-canary"}
MODELS = {"chat": "openai-chat:big", "responses": "openai:big", "messages": "anthropic:big"}

dialects = pytest.mark.parametrize("dialect", MODELS)
streams = pytest.mark.parametrize("listens", [False, True], ids=["plain", "streamed"])
PROMPT: list[ModelMessage] = [ModelRequest.user_text_prompt("hello", instructions="be brief")]
TOOLS = ModelRequestParameters(function_tools=[ToolDefinition(name="look"), ToolDefinition(name="add")])


def url_for(server_url: str, dialect: str) -> str:
    """Clients of one provider want the version in it, those of the other add it."""
    return server_url if dialect == "messages" else f"{server_url}/v1"


class Asked(NamedTuple):
    """What came of one request."""

    answer: ModelResponse
    turn: StandInTurn
    server: ModelServer


@asynccontextmanager
async def governed_model(url: str, dialect: str = "chat", **more: Any) -> AsyncIterator[GovernedModel]:
    clients = Clients([MODELS[dialect]], ["FIRST", "SECOND"], url_for(url, dialect), KEYS.__getitem__)
    try:
        yield GovernedModel(clients, **more)
    finally:
        await clients.aclose()


async def ask(reply: ModelReply, dialect: str = "chat", *, listens: bool = False, settings: Any = None) -> Asked:
    """Ask once."""
    turn = StandInTurn(listens=listens)
    async with model_server([reply]) as server, governed_model(server.url, dialect) as model:
        with under_way(turn):
            answer = await model.request(PROMPT, settings, TOOLS)
    return Asked(answer, turn, server)
