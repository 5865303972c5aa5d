"""The same runs as bare graphs of langgraph: nodes that say something, no agents and no models."""

import asyncio
import operator
from collections.abc import AsyncGenerator, Awaitable
from contextlib import asynccontextmanager
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, Any, TypedDict

from measure import Work, need
from subjects.library import Pause, no_pause


class _State(TypedDict):
    said: Annotated[list[str], operator.add]


async def _say(_state: _State) -> dict[str, list[str]]:
    return {"said": ["ok"]}


def _row(length: int, saver: Any = None) -> Any:
    (module,) = need("langgraph.graph")
    graph = module.StateGraph(_State)
    names = [f"holder_{number}" for number in range(length + 1)]
    for before, name in zip([module.START, *names], names, strict=False):
        graph.add_node(name, _say)
        graph.add_edge(before, name)
    graph.add_edge(names[-1], module.END)
    return graph.compile(checkpointer=saver)


@asynccontextmanager
async def handoffs(length: int, folder: Path | None = None) -> AsyncGenerator[Work]:
    if folder is None:
        graph = _row(length)
        yield lambda: graph.ainvoke({"said": ["go"]})
        return
    (saving,) = need("langgraph.checkpoint.sqlite.aio")
    with TemporaryDirectory(dir=folder) as place:
        async with saving.AsyncSqliteSaver.from_conn_string(str(Path(place) / "graph.db")) as saver:
            graph, numbers = _row(length, saver), count()

            def work() -> Awaitable[object]:
                return graph.ainvoke({"said": ["go"]}, {"configurable": {"thread_id": str(next(numbers))}})

            yield work


@asynccontextmanager
async def delegation(pause: Pause = no_pause, folder: Path | None = None) -> AsyncGenerator[Work]:
    """A graph whose only node runs another graph."""
    assert folder is None
    (module,) = need("langgraph.graph")

    async def works(_state: _State) -> dict[str, list[str]]:
        await pause(1)
        return {"said": ["ok"]}

    async def leads(_state: _State) -> dict[str, list[str]]:
        await pause(0)
        answer = await worker.ainvoke({"said": ["go"]})
        await pause(2)
        return {"said": answer["said"][-1:]}

    def alone(name: str, node: Any) -> Any:
        graph = module.StateGraph(_State)
        graph.add_node(name, node)
        graph.add_edge(module.START, name)
        graph.add_edge(name, module.END)
        return graph.compile()

    worker = alone("worker", works)
    lead = alone("lead", leads)
    yield lambda: lead.ainvoke({"said": ["go"]})


@asynccontextmanager
async def fan_out(members: int, seconds: float) -> AsyncGenerator[Work]:
    module, types = need("langgraph.graph", "langgraph.types")

    async def works(_state: _State) -> dict[str, list[str]]:
        await asyncio.sleep(seconds)
        return {"said": ["ok"]}

    def sends(_state: _State) -> list[Any]:
        return [types.Send("worker", {"said": ["go"]}) for _ in range(members)]

    graph = module.StateGraph(_State)
    graph.add_node("lead", _say)
    graph.add_node("worker", works)
    graph.add_edge(module.START, "lead")
    graph.add_conditional_edges("lead", sends, ["worker"])
    graph.add_edge("worker", module.END)
    flow = graph.compile()
    yield lambda: flow.ainvoke({"said": ["go"]}, {"max_concurrency": members + 1})
