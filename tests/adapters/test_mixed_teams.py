"""One team of models and of agents of other frameworks, over HTTP with their real clients."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, NamedTuple

import pytest
from agents import Agent as OpenAIAgent
from agents import OpenAIChatCompletionsModel, function_tool
from langchain.agents import create_agent
from langchain_openai import ChatOpenAI
from langgraph.graph import END, START, MessagesState, StateGraph
from openai import AsyncOpenAI
from pydantic_ai import Agent
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider

from engine.helping import sound
from remit import Bounds, Runtime
from remit.adapters.langgraph import Middleware, governed
from remit.adapters.prices import KnownPrices, Price
from remit.settings import System
from remit.testing.models import Calls, ModelRequest, ModelServer, Says, model_server
from remit.testing.models.server import Script

pytestmark = pytest.mark.anyio

RATE = Price(input="$1", output="$2")


def calls(agent: str, task: str) -> Calls:
    return Calls("call_agent", {"agent": agent, "task": task})


def came_back(asked: ModelRequest) -> bool:
    """Whether the last message is what came of a tool."""
    return asked.messages[-1]["role"] == "tool"


def script(asked: ModelRequest) -> Any:
    """Each model delegates to the next with its first request, and answers with what it got; the last tries to go back
    to the first."""
    names = ["native", "guest", "oa", "lg", "plain"]
    at = names.index(asked.model)
    if came_back(asked):
        return Says(f"{asked.model}({asked.text})")
    if asked.model == "plain":
        return Says("plain answers")
    return calls(names[at + 1], f"for {names[at + 1]}")


class Place(NamedTuple):
    """A scripted model and the client that asks it; a chat model of langchain's shares the client."""

    server: ModelServer
    client: AsyncOpenAI

    @property
    def url(self) -> str:
        return f"{self.server.url}/v1"

    def chat(self, name: str) -> ChatOpenAI:
        model = ChatOpenAI(model=name, base_url=self.url, api_key="none", max_retries=0)  # pyright: ignore[reportArgumentType]
        model.root_async_client = self.client
        model.async_client = self.client.chat.completions
        return model


@asynccontextmanager
async def served(script: Script) -> AsyncIterator[Place]:
    async with (
        model_server(script) as server,
        AsyncOpenAI(base_url=f"{server.url}/v1", api_key="none", max_retries=0) as client,
    ):
        yield Place(server, client)


def team(rt: Runtime, place: Place) -> None:
    """Add an agent of each kind; every one may ask the next."""
    rt.model_agent("native", "openai-chat:native", asks=["guest"], base_url=place.url, keys=["NATIVE_KEY"])
    provider = OpenAIProvider(openai_client=place.client)
    rt.add(Agent(OpenAIChatModel("guest", provider=provider)), name="guest", asks=["oa"])
    rt.add(OpenAIAgent("oa", model=OpenAIChatCompletionsModel("oa", place.client)), asks=["lg"])
    rt.add(create_agent(place.chat("lg"), middleware=[Middleware()]), name="lg", asks=["plain", "native"])
    rt.add(plain_graph(place), name="plain")


def plain_graph(place: Place) -> Any:
    llm = governed(place.chat("plain"))

    async def think(state: MessagesState) -> dict[str, Any]:
        return {"messages": [await llm.ainvoke(state["messages"])]}

    graph = StateGraph(MessagesState)
    graph.add_node("think", think)
    graph.add_edge(START, "think")
    graph.add_edge("think", END)
    return graph.compile()


@pytest.fixture(autouse=True)
def key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NATIVE_KEY", "k")


def priced(**more: Any) -> Runtime:
    models = ("openai-chat:native", "native", "openai:guest", "guest", "oa", "lg", "plain", "openai:oa", "openai:lg")
    return Runtime(bounds=Bounds(depth=5), system=System(prices=KnownPrices(dict.fromkeys(models, RATE)), **more))


@pytest.mark.rule("model.guests")
async def test_five_kinds_of_agents_delegate_to_each_other_and_the_bill_is_the_sum_of_its_leaves():
    async with served(script) as place, priced() as rt:
        team(rt, place)
        outcome = await rt.outcome("native", "go", credits="$1")
        assert outcome.value == "native(guest(oa(lg(plain answers))))"
        assert len(place.server.requests) == 9
        history: list[Any] = await rt.workspace.history()
        answered = [event for event in history if event.kind == "model.answered"]
        settled = [event.data["costs"]["credits"] for event in history if event.kind == "hold.settled"]
        assert [event.agent for event in answered] == [
            *("native", "guest", "oa", "lg", "plain", "lg", "oa", "guest", "native")
        ]
        assert sum(settled) == sum(event.data["cost"] for event in answered) > 0
        assert [event.kind for event in history].count("tool.done") == 4
        await sound(rt)


@pytest.mark.rule("model.guests", "chain.loop")
async def test_a_loop_is_refused_inside_a_guest_as_a_sentence_to_its_model():
    told: list[str] = []

    def back(asked: ModelRequest) -> Any:
        if asked.model == "lg" and not came_back(asked):
            return calls("native", "once more")
        if came_back(asked) and asked.model == "lg":
            told.append(str(asked.text))
            return Says("so be it")
        return script(asked)

    async with served(back) as place, priced() as rt:
        team(rt, place)
        assert await rt.run("native", "go") == "native(guest(oa(so be it)))"
    assert told[0].startswith("'native' is already in this delegation (native > guest > oa > lg); ask someone else")


def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


@pytest.mark.rule("model.guests", "tool.policy")
@pytest.mark.parametrize("kind", ["native", "pydantic-ai", "openai-agents", "langgraph"])
@pytest.mark.parametrize("deny", [(), ("add",)])
async def test_tools_of_every_framework_are_used_and_denied_alike(kind: str, deny: tuple[str, ...]):
    told: list[Any] = []

    def uses(asked: ModelRequest) -> Any:
        if not came_back(asked):
            return Calls("add", {"a": 2, "b": 3})
        told.append(asked.text)
        return Says("done")

    async with served(uses) as place, Runtime() as rt:
        register(rt, kind, place, deny)
        assert await rt.run("it", "add") == "done"
        history = await rt.workspace.history()
        (used,) = [event.data["outcome"] for event in history if event.kind == "tool.done"]
    assert used == ("refused" if deny else "done")
    refused = "'it' may not use 'add' for this task; you may use no tools, or finish without it"
    assert told == [refused if deny else "5"]


def register(rt: Runtime, kind: str, place: Place, deny: tuple[str, ...]) -> None:
    if kind == "native":
        rt.model_agent("it", "openai-chat:m", tools=[add], deny=deny, base_url=place.url, keys=["NATIVE_KEY"])
    elif kind == "pydantic-ai":
        model = OpenAIChatModel("m", provider=OpenAIProvider(openai_client=place.client))
        rt.add(Agent(model, tools=[add]), name="it", deny=deny)
    elif kind == "openai-agents":
        model = OpenAIChatCompletionsModel("m", place.client)
        rt.add(OpenAIAgent("it", model=model, tools=[function_tool(add)]), deny=deny)
    else:
        rt.add(create_agent(place.chat("m"), [add], middleware=[Middleware()]), name="it", deny=deny)
