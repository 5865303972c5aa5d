"""A compiled graph as an agent of a team, and middleware for `create_agent`: models, tools and verbs, all through the
turn."""

import inspect
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextvars import ContextVar
from typing import Any, Final, cast

from langchain.agents.middleware import AgentMiddleware, ModelRequest, ModelResponse
from langchain.agents.middleware.types import ToolCallRequest
from langchain_core.language_models.chat_models import BaseChatModel
from langchain_core.messages import AIMessage, AnyMessage, BaseMessage, HumanMessage, SystemMessage, ToolMessage
from langchain_core.runnables import RunnableConfig
from langgraph.pregel import Pregel  # pyright: ignore[reportMissingTypeStubs]
from langgraph.types import Command

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
    the_turn,
)
from remit.adapters.langgraph.model import CONVERSES, IN_GUEST, TASK_MESSAGE, governed, inside
from remit.adapters.langgraph.talking import quoted_result, result_data, result_of
from remit.adapters.langgraph.tools import VerbTool, bare_verbs, exit_proof, tool_errors
from remit.core.values import Json, shown
from remit.errors import BadInput
from remit.ports.models import ToolCall
from remit.ports.turn import TurnLike
from remit.verbs import ASKING, VERBS, Verb, selected_verbs

# -- middleware for create_agent -----------------------------------------------------------------------------


VERBS_OFFERED: Final[ContextVar[frozenset[str]]] = ContextVar("remit.langgraph.verbs", default=frozenset())
_REMEMBERED: Final = 16  # models; an agent has one, or a few that it chooses from


class Middleware(AgentMiddleware[Any, Any, Any]):
    """Sends every request and every tool call of an agent through the turn. Put it last, so that it sees the final
    request.

    The model is offered the verbs of the guest that runs the graph. `verbs=True` offers all of them always, False none.
    """

    def __init__(self, *, verbs: bool | None = None) -> None:
        super().__init__()
        self.tools = bare_verbs()
        self._names = frozenset(tool.name for tool in self.tools)
        self._verbs = verbs
        self._governed: dict[int, tuple[BaseChatModel, BaseChatModel]] = {}

    async def awrap_model_call(
        self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], Awaitable[ModelResponse[Any]]]
    ) -> ModelResponse[Any]:
        """Ask the model through the turn. A recorded answer passes the same checks as a new one, including those of
        structured output."""
        own = [tool for tool in request.tools if not any(tool is verb for verb in self.tools)]
        taken = frozenset(str(getattr(tool, "name", "")) for tool in own)
        if clash := sorted(ASKING & taken):
            raise BadInput(f"'{clash[0]}' is a verb of every agent that may ask others; give your tool another name")
        has = self._offered - taken
        tools = [*own, *(verb for verb in self.tools if verb.name in has)]
        asked = request.override(model=self._seam(request.model), tools=tools)
        said: list[BaseMessage] = []  # the framework would treat an unreadable call as the end
        while True:
            asked = asked.override(messages=[*request.messages, *cast("list[AnyMessage]", said)])
            token = CONVERSES.set(True)
            try:
                response = await handler(asked)
            finally:
                CONVERSES.reset(token)
            unread = _unread(response.result)
            if not unread:
                return ModelResponse([*said, *response.result], response.structured_response)
            said += [*response.result, *unread]

    async def awrap_tool_call(
        self, request: ToolCallRequest, handler: Callable[[ToolCallRequest], Awaitable[ToolMessage | Command[Any]]]
    ) -> ToolMessage | Command[Any]:
        """Use the tool through the turn. The framework itself reports an unknown tool."""
        if (own := request.tool) is None:
            return await handler(request)
        asked = request.tool_call
        call = ToolCall(
            asked["name"], cast("dict[str, Json]", json_of(asked["args"])), asked["id"] or "", quote=quoted_result
        )
        if call.name in self._names - self._offered and any(own is verb for verb in self.tools):
            return ToolMessage(f"there is no tool '{call.name}' here", name=call.name, tool_call_id=call.id)

        async def do(arguments: dict[str, Any]) -> object:
            if isinstance(own, VerbTool):
                return await own.do(arguments)
            tool = exit_proof(own)
            with tool_errors(), inside(tool):
                return result_data(await handler(request.override(tool=tool, tool_call={**asked, "args": arguments})))

        value = await the_turn(f"the tool '{call.name}'").tool(call, do)
        return cast("ToolMessage | Command[Any]", result_of(value, call))

    @property
    def _offered(self) -> frozenset[str]:
        if self._verbs is None:
            return VERBS_OFFERED.get()
        return self._names if self._verbs else frozenset()

    def _seam(self, model: BaseChatModel) -> BaseChatModel:
        known = self._governed.get(id(model))
        if known is None:
            if len(self._governed) >= _REMEMBERED:
                self._governed.clear()
            known = self._governed[id(model)] = (model, governed(model))
        return known[1]


def _unread(result: Sequence[BaseMessage]) -> list[ToolMessage]:
    """Return an error result for each unreadable call, if the answer has no readable ones."""
    message = result[-1] if result else None
    if not isinstance(message, AIMessage) or message.tool_calls:
        return []
    return [
        ToolMessage(
            f"the arguments of '{call['name']}' are no JSON object; call it again with one",
            name=call["name"],
            tool_call_id=call["id"] or "",
        )
        for call in message.invalid_tool_calls
    ]


# -- the guest -----------------------------------------------------------------------------------------------


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
        self._verbs = frozenset(verb.name for verb in selected_verbs(verbs))
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
