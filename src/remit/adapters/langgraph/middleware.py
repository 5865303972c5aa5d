"""Middleware for `create_agent`: models, tools and verbs, all through the turn."""

from collections.abc import Awaitable, Callable, Sequence
from contextvars import ContextVar
from typing import Any, Final, cast

from langchain.agents.middleware import AgentMiddleware, ModelRequest, ModelResponse
from langchain.agents.middleware.types import ToolCallRequest
from langchain_core.language_models.chat_models import BaseChatModel
from langchain_core.messages import AIMessage, AnyMessage, BaseMessage, ToolMessage
from langgraph.types import Command

from remit.adapters.guests import json_of, the_turn
from remit.adapters.langgraph.mixing import inside
from remit.adapters.langgraph.model import CONVERSES, governed
from remit.adapters.langgraph.recording import quoted_result, result_data, result_of
from remit.adapters.langgraph.tools import VerbTool, bare_verbs
from remit.core.values import Json
from remit.errors import BadInput
from remit.ports.models import ToolCall
from remit.verbs import ASKING

VERBS_OFFERED: Final[ContextVar[frozenset[str]]] = ContextVar("remit.langgraph.verbs", default=frozenset())
_REMEMBERED: Final = 16  # models; an agent has one, or a few that it chooses from


class Middleware(AgentMiddleware[Any, Any, Any]):
    """Sends every request and every tool call of an agent through the turn. Put it last, so that it sees the final
    request.

    The model is offered the verbs if the guest that runs the graph says so; set `verbs` here to offer them always.
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
        if request.tool is None:
            return await handler(request)
        asked = request.tool_call
        call = ToolCall(
            asked["name"], cast("dict[str, Json]", json_of(asked["args"])), asked["id"] or "", quote=quoted_result
        )
        if call.name in self._names - self._offered and any(request.tool is verb for verb in self.tools):
            return ToolMessage(f"there is no tool '{call.name}' here", name=call.name, tool_call_id=call.id)

        async def do(arguments: dict[str, Any]) -> object:
            if isinstance(request.tool, VerbTool):
                return await request.tool.do(arguments)
            with inside(request.tool):
                return result_data(await handler(request.override(tool_call={**asked, "args": arguments})))

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
