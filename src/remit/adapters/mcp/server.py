"""The MCP server: the tools for each caller, and the results of their calls.

It knows both revisions of the protocol: 2026-07-28, where a call that needs more time or a person's answer returns, and
the client comes back; and the earlier ones, where the call stays open and the server asks the client.
"""

import logging
from collections.abc import Awaitable, Callable
from typing import Any, Final, NamedTuple, TypeAlias

from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.shared.exceptions import MCPError
from mcp_types import (
    INVALID_PARAMS,
    CallToolRequestParams,
    CallToolResult,
    ElicitRequest,
    ElicitRequestFormParams,
    ElicitResult,
    InputRequiredResult,
    ListToolsResult,
    PaginatedRequestParams,
    TextContent,
    Tool,
    ToolAnnotations,
)
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from remit import __version__
from remit.adapters.mcp.calls import CallEnd, ComeBack, Ended, Response, StillOpen, followed, started
from remit.adapters.mcp.questions import QuestionForm, question_data
from remit.adapters.mcp.state import sealed, sealing_key, unknown, unsealed
from remit.adapters.mcp.tools import BY_NAME, CALL, CALL_MANY, TOOLS, OutsideTool, outcome_data, starts_of, use_tool
from remit.core.values import Json, encode, whole_digest
from remit.errors import NotFound, RemitError
from remit.runtime.outsiders import Outsider
from remit.verbs import value_of

Context: TypeAlias = ServerRequestContext[Any, Any]
Result: TypeAlias = CallToolResult | InputRequiredResult

_ASKED: Final = "answer"  # the key of the form in a result
_TASK: Final = "remit.task"  # the key of the task's id beside a result
_INSTRUCTIONS: Final = (
    "Agents of a team work for you: list_agents lists them, call_agent gives one of them a task. An agent sees nothing "
    "of your conversation, so write the whole task. For a task that takes long use call_agent_async."
)

_log = logging.getLogger("remit")


async def _stays_valid() -> None:
    """Accept the caller: it has no key that could become invalid."""


class CallPeer(NamedTuple):
    """The caller of a request, and whether its client has disconnected. `check` raises an error of remit if the caller
    may not call any more."""

    outsider: Outsider
    was_left: Callable[[], bool] = lambda: True
    check: Callable[[], Awaitable[object]] = _stays_valid


class ClientWire:
    """The `CallWire` of one request of a client."""

    def __init__(self, context: Context, peer: CallPeer) -> None:
        self._context = context
        self.was_left = peer.was_left
        self.check = peer.check
        self.comes_back = context.protocol_version in MODERN_PROTOCOL_VERSIONS

    @property
    def shows_forms(self) -> bool:
        session = self._context.session
        able = session.client_capabilities
        if able is None or able.elicitation is None:
            return False
        only_links = able.elicitation.form is None and able.elicitation.url is not None
        return not only_links and (self.comes_back or session.can_send_request)

    async def progress(self, done: float, text: str) -> None:
        await self._context.session.report_progress(done, None, text)

    async def ask(self, form: QuestionForm) -> Response:
        try:
            answer = await self._context.session.elicit_form(form.message, form.schema, self._context.request_id)
        except MCPError as error:
            _log.warning("the MCP client did not show a question: %s", error)
            return Response("cancel")
        return Response(answer.action, answer.content)


class OutsideServer:
    """The handlers of the server. `who` returns the caller of a request."""

    def __init__(self, who: Callable[[Context], CallPeer]) -> None:
        self._who = who

    async def list_tools(self, _context: Context, _params: PaginatedRequestParams | None) -> ListToolsResult:
        return ListToolsResult(tools=[_described(tool) for tool in TOOLS])

    async def call_tool(self, context: Context, params: CallToolRequestParams) -> Result:
        """Use a tool. A refusal or a failure is a result that says so; only an unknown tool or state is an error of the
        protocol."""
        tool = BY_NAME.get(params.name)
        if tool is None:
            raise MCPError(code=INVALID_PARAMS, message="there is no such tool; tools/list lists those there are")
        peer = self._who(context)
        try:
            if tool.verb.name in (CALL, CALL_MANY):
                return await self._call_tool(tool, params, peer.outsider, ClientWire(context, peer))
            if params.request_state is not None:
                raise _unknown_state()
            return _result(await use_tool(tool, await peer.outsider.turn(), params.arguments or {}))
        except RemitError as error:
            if error.addressee == "operator":
                _log.error("a call over MCP failed: %s", error)
                return _failure("the store is not available now; try again later")
            return _failure(str(error))

    async def _call_tool(
        self, tool: OutsideTool, params: CallToolRequestParams, outsider: Outsider, wire: ClientWire
    ) -> Result:
        given = params.arguments or {}
        call = whole_digest(encode([tool.verb.name, given]))
        response = None
        if params.request_state is not None:
            try:
                state = await unsealed(params.request_state, outsider, call)
            except NotFound:
                raise _unknown_state() from None
            answer = (params.input_responses or {}).get(_ASKED)
            response = Response(answer.action, answer.content) if isinstance(answer, ElicitResult) else None
        else:
            state = await started(starts_of(tool, await outsider.turn(), given), outsider, wire)
        end = await followed(state, outsider, wire, response)
        if isinstance(end, ComeBack):
            key = await sealing_key(outsider, end.state.tasks, call)
            return InputRequiredResult(input_requests=_requests(end.form), request_state=sealed(end.state, key))
        return _ended(tool, end)


def server_for(who: Callable[[Context], CallPeer]) -> Server[Any]:
    """Return a server for the callers that `who` returns."""
    handlers = OutsideServer(who)
    return Server(
        "remit",
        version=__version__,
        instructions=_INSTRUCTIONS,
        on_list_tools=handlers.list_tools,
        on_call_tool=handlers.call_tool,
    )


def _described(tool: OutsideTool) -> Tool:
    hints = ToolAnnotations(
        read_only_hint=tool.reads_only, destructive_hint=tool.destroys, idempotent_hint=tool.reads_only
    )
    return Tool(name=tool.verb.name, description=tool.verb.sentence, input_schema=tool.verb.schema, annotations=hints)


def _unknown_state() -> MCPError:
    return MCPError(code=INVALID_PARAMS, message=str(unknown()))


def _requests(form: QuestionForm | None) -> dict[str, Any] | None:
    if form is None:
        return None
    shown = ElicitRequestFormParams(message=form.message, requested_schema=form.schema)
    return {_ASKED: ElicitRequest(params=shown)}


def _ended(tool: OutsideTool, end: CallEnd) -> CallToolResult:
    if isinstance(end, StillOpen):
        return _result(_still_open(end))
    assert isinstance(end, Ended)
    if tool.verb.name == CALL_MANY:
        return _result([outcome_data(one) for one in end.outcomes])
    (outcome,) = end.outcomes
    assert not isinstance(outcome, str)  # the refusal of a single call was raised
    if outcome.error is not None and not outcome.id:
        raise outcome.error
    try:
        return _result(value_of(outcome), task=outcome.id)
    except RemitError as error:
        return _failure(str(error), task=outcome.id)


def _still_open(end: StillOpen) -> Json:
    found: dict[str, Json] = {"tasks": [*end.tasks]}
    if not end.questions:
        return {**found, "state": "open", "next": "it takes long; check_delegation_status returns its result"}
    waits = "a person has to answer elsewhere (`remit approvals`); check_delegation_status returns the result then"
    return {**found, "state": "waiting", "questions": [question_data(one) for one in end.questions], "next": waits}


def _result(value: Json, task: str = "") -> CallToolResult:
    text = value if isinstance(value, str) else encode(value)
    made = CallToolResult(
        content=[TextContent(text=text)], structured_content=value if isinstance(value, dict) else None
    )
    return made if not task else made.model_copy(update={"meta": {_TASK: task}})


def _failure(sentence: str, task: str = "") -> CallToolResult:
    made = CallToolResult(content=[TextContent(text=sentence)], is_error=True)
    return made if not task else made.model_copy(update={"meta": {_TASK: task}})
