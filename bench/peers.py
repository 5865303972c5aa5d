"""A run with one hop in other libraries: one agent or node passes work to a second one, without any model
behind it.

Where a library cannot do without a model, a scripted one answers at once; its loop around the model is
still part of the figure, and what each library keeps and checks on the way differs. So these figures say
what a user of it waits for, not who does the same work faster. Each is imported only here and only when it
is asked for; one that is missing says so.
"""

import asyncio
from collections.abc import Awaitable, Callable
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Never, TypedDict

from measure import Effort, Samples, Skipped, each

Hop = Callable[[], Awaitable[object]]


def need(*modules: str) -> list[Any]:
    """Import the modules of a peer, or skip it if it is not there."""
    try:
        return [import_module(module) for module in modules]
    except ImportError as error:
        raise Skipped("not installed") from error


async def _measured(effort: Effort, hop: Hop) -> Samples:
    await hop()  # warm
    return [await each(effort.of(200), hop) for _ in range(effort.rounds)]


# -- langgraph: two nodes --------------------------------------------------------------------------------


class _State(TypedDict):
    said: str


def _graph(module: Any, saver: Any = None) -> Any:
    graph = module.StateGraph(_State)

    async def say(_state: _State) -> _State:
        return {"said": "ok"}

    graph.add_node("lead", say)
    graph.add_node("worker", say)
    graph.add_edge(module.START, "lead")
    graph.add_edge("lead", "worker")
    graph.add_edge("worker", module.END)
    return graph.compile(checkpointer=saver)


def langgraph(effort: Effort) -> Samples:
    (module,) = need("langgraph.graph")
    graph = _graph(module)
    return asyncio.run(_measured(effort, lambda: graph.ainvoke({"said": "go"})))


def langgraph_durable(effort: Effort) -> Samples:
    module, saving = need("langgraph.graph", "langgraph.checkpoint.sqlite.aio")

    async def all_rounds() -> Samples:
        with TemporaryDirectory() as folder:
            async with saving.AsyncSqliteSaver.from_conn_string(str(Path(folder) / "graph.db")) as saver:
                graph = _graph(module, saver)
                number = iter(range(1_000_000))

                def hop() -> Awaitable[object]:
                    return graph.ainvoke({"said": "go"}, {"configurable": {"thread_id": str(next(number))}})

                return await _measured(effort, hop)

    return asyncio.run(all_rounds())


# -- pydantic-ai: an agent whose tool runs a second agent ------------------------------------------------


def pydantic_ai(effort: Effort) -> Samples:
    library, messages, models = need("pydantic_ai", "pydantic_ai.messages", "pydantic_ai.models.function")

    def lead_says(history: list[Any], _info: Any) -> Any:
        asked = len(history) > 1
        part = messages.TextPart("ok") if asked else messages.ToolCallPart("ask", {})
        return messages.ModelResponse(parts=[part])

    def worker_says(_history: list[Any], _info: Any) -> Any:
        return messages.ModelResponse(parts=[messages.TextPart("ok")])

    worker = library.Agent(models.FunctionModel(worker_says))
    lead = library.Agent(models.FunctionModel(lead_says))

    @lead.tool_plain
    async def ask() -> str:
        return (await worker.run("go")).output

    return asyncio.run(_measured(effort, lambda: lead.run("go")))


# -- openai-agents: an agent that hands off to a second one ----------------------------------------------


def openai_agents(effort: Effort) -> Samples:
    library, items, usage, types = need("agents", "agents.items", "agents.usage", "openai.types.responses")

    class Scripted(library.Model):
        def __init__(self, output: Any) -> None:
            self.output = output

        async def get_response(self, *_: Any, **__: Any) -> Any:
            return items.ModelResponse(output=[self.output], usage=usage.Usage(), response_id=None)

        def stream_response(self, *_: Any, **__: Any) -> Any:
            raise NotImplementedError

    said = types.ResponseOutputText(text="ok", type="output_text", annotations=[])
    answer = types.ResponseOutputMessage(id="1", content=[said], role="assistant", status="completed", type="message")
    call = types.ResponseFunctionToolCall(
        id="2", call_id="2", name="transfer_to_worker", arguments="{}", type="function_call"
    )
    library.set_tracing_disabled(True)
    worker = library.Agent(name="worker", model=Scripted(answer))
    lead = library.Agent(name="lead", model=Scripted(call), handoffs=[worker])
    return asyncio.run(_measured(effort, lambda: library.Runner.run(lead, "go")))


# -- agent-framework: two executors of a workflow --------------------------------------------------------


def agent_framework(effort: Effort) -> Samples:
    (library,) = need("agent_framework")

    class Lead(library.Executor):
        @library.handler
        async def go(self, said: str, ctx: library.WorkflowContext[str]) -> None:
            await ctx.send_message(said)

    class Worker(library.Executor):
        @library.handler
        async def go(self, said: str, ctx: library.WorkflowContext[Never, str]) -> None:
            await ctx.yield_output(said)

    lead, worker = Lead(id="lead"), Worker(id="worker")
    flow = library.WorkflowBuilder(start_executor=lead).add_edge(lead, worker).build()
    return asyncio.run(_measured(effort, lambda: flow.run("go")))


RUNS = {
    "langgraph": langgraph,
    "pydantic-ai": pydantic_ai,
    "openai-agents": openai_agents,
    "agent-framework": agent_framework,
}
DURABLE_RUNS = {"langgraph": langgraph_durable}
