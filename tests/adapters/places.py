"""Agents of every kind over real HTTP, for tests of all frameworks alike: a scripted model, a client that asks it, and
an agent of each kind that works with the two."""

import socket
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any, NamedTuple

from agents import Agent as OpenAIAgent
from agents import OpenAIChatCompletionsModel, OpenAIResponsesModel, function_tool
from langchain.agents import create_agent
from langchain_openai import ChatOpenAI
from openai import AsyncOpenAI, Timeout
from pydantic_ai import Agent
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.models.openai import OpenAIResponsesModel as PydanticResponsesModel
from pydantic_ai.providers.openai import OpenAIProvider

from remit import Runtime
from remit.adapters.langgraph import Middleware
from remit.adapters.prices import KnownPrices, Price
from remit.settings import System
from remit.testing.models import ModelRequest, ModelServer, model_server
from remit.testing.models.server import Script

KINDS = ("native", "pydantic-ai", "openai-agents", "langgraph")
KEY = "sk-canary-of-the-provider"
KEY_NAME = "PLACE_KEY"
RATE = Price(input="$1", output="$2")
IMPATIENT = Timeout(60, read=0.3)  # of a client that does not wait for a slow answer


class Place(NamedTuple):
    """A scripted model and the client that asks it, in one of the two dialects; all kinds of agents share them."""

    server: ModelServer
    client: AsyncOpenAI
    dialect: str = "chat"

    @property
    def url(self) -> str:
        return str(self.client.base_url)

    def at(self, url: str) -> "Place":
        """The same, somewhere else."""
        return self._replace(client=self.client.with_options(base_url=url))

    def chat(self, name: str) -> ChatOpenAI:
        """A chat model of langchain's that shares the client."""
        model = ChatOpenAI(
            model=name,
            base_url=self.url,
            api_key=KEY,  # pyright: ignore[reportArgumentType]
            max_retries=0,
            use_responses_api=self.dialect == "responses",
        )
        model.root_async_client = self.client
        model.async_client = self.client.chat.completions
        return model

    def of_pydantic(self, name: str) -> Any:
        kind = OpenAIChatModel if self.dialect == "chat" else PydanticResponsesModel
        return kind(name, provider=OpenAIProvider(openai_client=self.client))

    def of_openai(self, name: str) -> Any:
        kind = OpenAIChatCompletionsModel if self.dialect == "chat" else OpenAIResponsesModel
        return kind(name, self.client)


@asynccontextmanager
async def served(script: Script, dialect: str = "chat", *, strict: bool = True, **client: Any) -> AsyncIterator[Place]:
    how: Any = {"api_key": KEY, "max_retries": 0, **client}
    async with model_server(script, strict=strict) as server, AsyncOpenAI(base_url=f"{server.url}/v1", **how) as asking:
        yield Place(server, asking, dialect)


def join(
    rt: Runtime,
    kind: str,
    place: Place,
    name: str = "it",
    *,
    model: str = "m",
    tools: Sequence[Callable[..., Any]] = (),
    instructions: str | None = None,
    output: Any = None,
    form: Any = None,
    **about: Any,
) -> None:
    """Add an agent of this kind to a team: it asks `model`, has these functions as tools, is told to do so and answers
    with an `output`, text unless it says otherwise. Its framework knows nothing of a `form`."""
    if form is not None:
        about["output"] = form
    match kind:
        case "native":
            about.setdefault("keys", [KEY_NAME])
            if instructions is not None:
                about["instructions"] = instructions
            if output is not None:
                about["output"] = output
            spelled = f"{'openai-chat' if place.dialect == 'chat' else 'openai'}:{model}"
            rt.model_agent(name, spelled, tools=tools, base_url=place.url, **about)
        case "pydantic-ai":
            asked = place.of_pydantic(model)
            agent = Agent(asked, tools=tools, instructions=instructions, output_type=output or str)
            rt.add(agent, name=name, **about)
        case "openai-agents":
            functions: list[Any] = [function_tool(tool) for tool in tools]
            asked = place.of_openai(model)
            guest = OpenAIAgent(name, instructions=instructions, model=asked, tools=functions, output_type=output)
            rt.add(guest, **about)
        case _:
            how: Any = {"system_prompt": instructions, "response_format": output, "middleware": [Middleware()]}
            rt.add(create_agent(place.chat(model), [*tools], **how), name=name, **about)


def priced(*models: str, **more: Any) -> Runtime:
    """A runtime that knows what these models cost, whatever a framework calls them."""
    names = [f"{before}{model}" for model in models or ("m",) for before in ("openai-chat:", "openai:", "")]
    system = System(prices=KnownPrices(dict.fromkeys(names, RATE)), **more.pop("system", {}))
    return Runtime(more.pop("store", ":memory:"), system=system, **more)


def came_back(asked: ModelRequest) -> bool:
    """Whether the last message is what came of a tool."""
    last = asked.messages[-1]
    return last.get("role") == "tool" or last.get("type") == "function_call_output"


def told(asked: ModelRequest) -> list[str]:
    """What came of the tools so far, as the model is told."""
    results = [one for one in asked.messages if one.get("role") == "tool" or one.get("type") == "function_call_output"]
    return [str(one.get("content", one.get("output"))) for one in results]


async def data_of(rt: Runtime, *kinds: str) -> list[dict[str, Any]]:
    """The data of all events of these kinds, in order."""
    return [event.data for event in await rt.workspace.journal.history() if event.kind in kinds]


def closed_port() -> int:
    """A port at which nobody listens."""
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return found.getsockname()[1]
