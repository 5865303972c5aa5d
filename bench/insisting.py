"""Two agents that insist, in every library: a scripted model over HTTP that passes its task on, whatever it is told.

One script for all of them. A model finds out from its instructions who it is, and from the tools it is offered how the
other one is reached; then it goes on until the library stops it, or we do. Each library is used with the limits that it
has when nobody sets any, and is imported only when it is asked for.
"""

import itertools
import json
import os
from collections.abc import Awaitable, Callable
from typing import Any

import remit
from measure import need
from pingpong import LEAD, WORKER, Rally
from remit.testing.models import Calls, ModelReply, ModelRequest, Says, model_server

_OTHER = {LEAD: WORKER, WORKER: LEAD}
_KEY = "LIMITS_KEY"
_NUMBERS = itertools.count()
Ways = Callable[[str], tuple[str, dict[str, Any]]]  # whom -> the tool that reaches it, and what it is given


def says(name: str) -> str:
    return f"You are the {name}."


def _script(rally: Rally, way: Ways) -> Callable[[ModelRequest], ModelReply]:
    def reply(request: ModelRequest) -> ModelReply:
        said = json.dumps(request.messages)
        me = LEAD if says(LEAD) in said else WORKER
        return Calls(*way(_OTHER[me])) if rally.again() else Says("done")

    return reply


# -- how each reaches the other ------------------------------------------------------------------------------------


def by_verb(whom: str) -> tuple[str, dict[str, Any]]:
    return "call_agent", {"agent": whom, "task": f"go {next(_NUMBERS)}"}


def by_handoff_verb(whom: str) -> tuple[str, dict[str, Any]]:
    return "handoff", {"agent": whom, "update": {"context": {"n": next(_NUMBERS)}}}


def by_transfer(whom: str) -> tuple[str, dict[str, Any]]:
    return f"transfer_to_{whom}", {}


def by_tool(whom: str) -> tuple[str, dict[str, Any]]:
    return f"ask_{whom}", {"input": f"go {next(_NUMBERS)}"}


# -- remit ---------------------------------------------------------------------------------------------------------


async def _team(rally: Rally, way: Ways, join: Callable[[remit.Runtime, str, str], None]) -> str:
    os.environ[_KEY] = "any"
    async with model_server(_script(rally, way)) as server, remit.Runtime() as rt:
        for name in _OTHER:
            join(rt, name, f"{server.url}/v1")
        outcome = await rt.outcome(LEAD, "go")
        return "" if outcome.ok else type(outcome.error).__name__


def _native(rt: remit.Runtime, name: str, url: str) -> None:
    asks = [_OTHER[name]]
    rt.model_agent(name, "openai-chat:m", instructions=says(name), asks=asks, keys=[_KEY], base_url=url)


def _pydantic_guest(rt: remit.Runtime, name: str, url: str) -> None:
    rt.add(_pydantic_agent(name, url), name=name, asks=[_OTHER[name]])


def _openai_guest(rt: remit.Runtime, name: str, url: str) -> None:
    rt.add(_openai_agent(name, url), asks=[_OTHER[name]])


def _langgraph_guest(rt: remit.Runtime, name: str, url: str) -> None:
    agents, remit_graph = need("langchain.agents", "remit.adapters.langgraph")
    graph = agents.create_agent(
        _chat_model(url), [], system_prompt=says(name), middleware=[remit_graph.Middleware()], name=name
    )
    rt.add(graph, name=name, asks=[_OTHER[name]])


JOINS = {
    "native": _native,
    "pydantic-ai guests": _pydantic_guest,
    "openai-agents guests": _openai_guest,
    "langgraph guests": _langgraph_guest,
}


def of_remit(kind: str, way: Ways) -> Callable[[Rally], Awaitable[str]]:
    return lambda rally: _team(rally, way, JOINS[kind])


# -- the others ----------------------------------------------------------------------------------------------------


def _openai_agent(name: str, url: str, **more: Any) -> Any:
    library, openai = need("agents", "openai")
    library.set_tracing_disabled(True)
    model = library.OpenAIChatCompletionsModel("m", openai.AsyncOpenAI(base_url=url, api_key="any", max_retries=0))
    return library.Agent(name=name, instructions=says(name), model=model, **more)


async def openai_handoff(rally: Rally) -> str:
    (library,) = need("agents")
    async with model_server(_script(rally, by_transfer)) as server:
        lead, worker = (_openai_agent(name, f"{server.url}/v1") for name in _OTHER)
        lead.handoffs.append(worker)
        worker.handoffs.append(lead)
        await library.Runner.run(lead, "go")
    return ""


async def openai_delegation(rally: Rally) -> str:
    (library,) = need("agents")
    async with model_server(_script(rally, by_tool)) as server:
        lead, worker = (_openai_agent(name, f"{server.url}/v1") for name in _OTHER)
        lead.tools.append(worker.as_tool(f"ask_{WORKER}", "ask the worker"))
        worker.tools.append(lead.as_tool(f"ask_{LEAD}", "ask the lead"))
        await library.Runner.run(lead, "go")
    return ""


def _pydantic_agent(name: str, url: str, **more: Any) -> Any:
    library, models, providers = need("pydantic_ai", "pydantic_ai.models.openai", "pydantic_ai.providers.openai")
    model = models.OpenAIChatModel("m", provider=providers.OpenAIProvider(base_url=url, api_key="any"))
    return library.Agent(model, instructions=says(name), **more)


async def pydantic_delegation(rally: Rally) -> str:
    """The tool passes the count of usage on, as the documentation of pydantic-ai has it."""
    (library,) = need("pydantic_ai")

    def agent(name: str, url: str) -> Any:
        other = _OTHER[name]

        async def ask(ctx: library.RunContext, input: str) -> str:  # pyright: ignore[reportInvalidTypeForm]
            return (await team[other].run(input, usage=ctx.usage)).output

        return _pydantic_agent(name, url, tools=[library.Tool(ask, takes_ctx=True, name=f"ask_{other}")])

    async with model_server(_script(rally, by_tool)) as server:
        team = {name: agent(name, f"{server.url}/v1") for name in _OTHER}
        await team[LEAD].run("go")
    return ""


def _chat_model(url: str) -> Any:
    (chat,) = need("langchain_openai")
    return chat.ChatOpenAI(model="m", base_url=url, api_key="any", max_retries=0)


async def langgraph_delegation(rally: Rally) -> str:
    agents, tools = need("langchain.agents", "langchain_core.tools")

    def agent(name: str, url: str) -> Any:
        other = _OTHER[name]

        async def ask(input: str) -> str:
            """Ask the other one."""
            return str((await team[other].ainvoke({"messages": [("user", input)]}))["messages"][-1].content)

        tool = tools.StructuredTool.from_function(coroutine=ask, name=f"ask_{other}")
        return agents.create_agent(_chat_model(url), [tool], system_prompt=says(name), name=name)

    async with model_server(_script(rally, by_tool)) as server:
        team = {name: agent(name, f"{server.url}/v1") for name in _OTHER}
        await team[LEAD].ainvoke({"messages": [("user", "go")]})
    return ""
