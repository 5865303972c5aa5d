"""A compiled graph as an agent of a team."""

import inspect
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, cast

from langchain_core.messages import BaseMessage, HumanMessage, SystemMessage
from langchain_core.runnables import RunnableConfig
from langgraph.pregel import Pregel  # pyright: ignore[reportMissingTypeStubs]

from remit.adapters.guests import (
    NO_DEPS,
    Governing,
    Prompt,
    Ungoverned,
    checked_deps,
    deps_of,
    json_of,
    prompt_of,
    prompted,
)
from remit.adapters.langgraph.middleware import VERBS_OFFERED
from remit.adapters.langgraph.model import IN_GUEST, TASK_MESSAGE
from remit.core.values import Json, shown
from remit.errors import BadInput
from remit.ports.turn import TurnLike
from remit.verbs import VERBS, Verb, given

_MESSAGES: Final = "messages"
_STEPS: Final = 10_000  # effectively no limit: the turn limits the model requests


class LangGraphGuest:
    """Runs a graph on the task of each turn. `prompt` makes the input message from the turn. The result is the graph's
    structured response as JSON, or the text of its last message.

    An agent that was made with `Middleware` has these `verbs` as tools; True means all of them. `deps` is the context
    that the graph declares, or a function of the turn that returns it; `config` is passed to the graph. The graph's own
    checkpoints are not used, because the work is recorded with the task.

    The models and tools of its nodes go through the turn, wrapped or not. With `ungoverned="allow"`, only wrapped ones
    do, and the tools of its tool nodes.
    """

    tells_past = True  # the models' seam adds the session's earlier runs

    def __init__(
        self,
        graph: Pregel[Any, Any, Any, Any],
        *,
        verbs: bool | Sequence[Verb] = False,
        prompt: Prompt = prompt_of,
        deps: object = NO_DEPS,
        ungoverned: Ungoverned = "refuse",
        config: RunnableConfig | None = None,
    ) -> None:
        if not isinstance(cast("object", graph), Pregel):
            raise BadInput(f"a compiled graph can be joined, not {type(graph).__name__}: {shown(graph)}")
        if _MESSAGES not in cast("Any", graph).channels:
            raise BadInput("the state of the graph has no 'messages'; call it in an agent function of your own instead")
        self._given: Any = graph  # its types are only partly known
        self._graph: Any = graph.copy({"checkpointer": None})
        self._deps = checked_deps(graph.name, graph.context_schema, deps)
        self._allow = ungoverned == "allow"
        self._names = frozenset(_tools_of(self._graph)) - {verb.name for verb in VERBS}
        self._verbs = frozenset(verb.name for verb in given(verbs))
        self._prompt = prompt
        self._config: RunnableConfig = {"recursion_limit": _STEPS, **(config or {})}

    @property
    def name(self) -> str:
        """The name of the graph."""
        return self._graph.name

    @property
    def tool_names(self) -> frozenset[str] | None:
        """The names of the tools in nodes of the graph and of its subgraphs, without the verbs of delegation."""
        return self._names

    @property
    def instructions(self) -> str:
        """The system prompt of an agent that `create_agent` made; "" for another graph."""
        return _system_prompt(getattr(self._graph.nodes.get("model"), "bound", None))

    async def __call__(self, turn: TurnLike) -> Json:
        """Run the graph on the turn's task and return its result."""
        # A fixed id: with a new id, a rerun task would have the message twice, again in a tool's recorded result.
        asked = {_MESSAGES: [HumanMessage(await prompted(self._prompt, turn), id=TASK_MESSAGE)]}
        deps: dict[str, Any] = {} if self._deps is NO_DEPS else {"context": await deps_of(self._deps, turn)}
        token, guest = VERBS_OFFERED.set(self._verbs), IN_GUEST.set(True)
        try:
            async with Governing(turn, self._given, governed=self._graph, tools=self._names, allow=self._allow):
                state = await self._graph.ainvoke(asked, self._config, **deps)
        finally:
            VERBS_OFFERED.reset(token)
            IN_GUEST.reset(guest)
        return _answer(state)


def _system_prompt(node: Any) -> str:
    """Return the system prompt of a model node. LangChain keeps it only in the closure of the node's function."""
    function: object = getattr(node, "func", None)
    if not inspect.isfunction(function):
        return ""
    message = inspect.getclosurevars(function).nonlocals.get("system_message")
    return message.text if isinstance(message, SystemMessage) else ""


def _tools_of(graph: Any) -> Iterator[str]:
    """Yield the names of the tools in a graph's tool nodes, and in its subgraphs."""
    for node in graph.nodes.values():
        bound = getattr(node, "bound", None)
        yield from getattr(bound, "tools_by_name", ())
        for inner in (bound, *(node.subgraphs or ())):
            if isinstance(inner, Pregel):
                yield from _tools_of(cast("Any", inner))


def _answer(state: Mapping[str, Any]) -> Json:
    if "__interrupt__" in state:
        raise BadInput(
            "the graph stopped to ask someone; let remit ask instead: approve_tools=, or ask_human in a tool"
        )
    if (structured := state.get("structured_response")) is not None:
        return json_of(structured)
    messages: list[BaseMessage] = state.get(_MESSAGES) or []
    if not messages:
        raise BadInput("the graph ended without a message; have its last node add one")
    return json_of(messages[-1].text)
