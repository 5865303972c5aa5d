"""The verbs of a turn over MCP, for a program that works on a task: call an agent, hand the task over, ask a person.

A call is a tool call of the turn: the agent's card decides, it is recorded, and loops are noticed.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
from contextvars import Context
from typing import Any, Final, cast

from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp.shared.exceptions import MCPError
from mcp_types import (
    INVALID_PARAMS,
    CallToolRequestParams,
    CallToolResult,
    ListToolsResult,
    PaginatedRequestParams,
    TextContent,
    Tool,
)

from remit import __version__
from remit.adapters.gateway.listener import Receive, Scope, Send
from remit.adapters.gateway.members import GatewayMember
from remit.core.values import Json, encode
from remit.errors import RemitError
from remit.ports.models import HandedOver, ToolCall
from remit.verbs import Verb, offered

HEARTBEAT: Final = 15.0  # seconds between two progress messages of a call that waits: some clients give up in silence
_MEMBER: Final = "remit.member"  # where a request keeps its member
_HANDED: Final = "The task was handed over; you are done. Stop now."
_INSTRUCTIONS: Final = (
    "You are one agent of a team. list_agents lists those whom you may ask, call_agent gives one of them a part of "
    "your task. An agent sees nothing of your conversation, so write the whole task."
)

_APPROVE: Final = Tool(
    name="approve",
    description="Ask a person whether a tool may be used. Permission prompts of coding agents come here.",
    input_schema={
        "type": "object",
        "properties": {
            "tool_name": {"type": "string"},
            "input": {"type": "object"},
            "tool_use_id": {"type": "string"},
        },
        "required": ["tool_name", "input"],
    },
)

_log = logging.getLogger("remit")


class MemberVerbs:
    """The MCP server of a listener. It has a task of its own, because the SDK ties it to the task that starts it.
    `heartbeat` is the number of seconds between two progress messages of a call that waits."""

    def __init__(self, heartbeat: float = HEARTBEAT) -> None:
        self._heartbeat = heartbeat
        server: Server[Any] = Server(
            "remit",
            version=__version__,
            instructions=_INSTRUCTIONS,
            on_list_tools=_list_tools,
            on_call_tool=self._call_tool,
        )
        self._manager = StreamableHTTPSessionManager(server)
        self._over = asyncio.Event()
        self._ready = asyncio.Event()
        self._running = asyncio.get_running_loop().create_task(self._run(), context=Context())

    async def _run(self) -> None:
        async with self._manager.run():
            self._ready.set()
            await self._over.wait()

    async def __call__(self, member: GatewayMember, scope: Scope, receive: Receive, send: Send) -> None:
        await self._ready.wait()
        await self._manager.handle_request({**scope, _MEMBER: member}, receive, cast("Any", send))

    async def aclose(self) -> None:
        self._over.set()
        await asyncio.wait([self._running])

    async def _call_tool(
        self, context: ServerRequestContext[Any, Any], params: CallToolRequestParams
    ) -> CallToolResult:
        """Use a verb. A refusal or a failure is a result that says so; only an unknown verb is an error of the
        protocol."""
        member = _member(context)
        work = member.start(_use_verb(member, params))
        try:
            beats = 0
            while not (await asyncio.wait([work], timeout=self._heartbeat))[0]:
                beats += 1
                await context.session.report_progress(beats, None, f"{params.name} is not finished")
            found = await work
        except asyncio.CancelledError:  # the program has dropped the call, or the turn has ended
            work.cancel()
            raise
        if found is None:
            raise MCPError(code=INVALID_PARAMS, message="there is no such tool; tools/list lists those there are")
        return found


def _member(context: ServerRequestContext[Any, Any]) -> GatewayMember:
    assert context.request is not None  # every request comes by HTTP
    return context.request.scope[_MEMBER]


async def _list_tools(
    context: ServerRequestContext[Any, Any], _params: PaginatedRequestParams | None
) -> ListToolsResult:
    member = _member(context)
    verbs = [_described(verb) for verb in await member.start(offered(member.turn))]
    return ListToolsResult(tools=[*verbs, _APPROVE] if member.approves else verbs)


def _described(verb: Verb) -> Tool:
    return Tool(name=verb.name, description=verb.sentence, input_schema=verb.schema)


async def _use_verb(member: GatewayMember, params: CallToolRequestParams) -> CallToolResult | None:
    """Return the result of a verb, or None if there is no such verb for this member."""
    if member.approves and params.name == _APPROVE.name:
        return await _approved(member, params.arguments or {})
    verb = {one.name: one for one in await offered(member.turn)}.get(params.name)
    if verb is None:
        return None
    given = params.arguments or {}
    # Its card lists no tools: what it may use is decided by what it may ask, and by the bounds.
    call = ToolCall(verb.name, given, member.call_id(verb.name, given), inner=True)

    async def do(given: dict[str, Any]) -> object:
        return await verb.use(member.turn, given)

    try:
        return _result(await member.turn.tool(call, do))
    except HandedOver as handed:
        member.hand_over(handed.command)
        return _result(_HANDED)
    except RemitError as error:
        if error.addressee == "operator":
            _log.error("a verb of '%s' failed: %s", member.turn.agent, error)
            return _failure("the store is not available now; try again later")
        return _failure(str(error))


async def _approved(member: GatewayMember, given: dict[str, Any]) -> CallToolResult:
    """Ask a person about a tool of the program. The answer has the form that permission prompts read: the arguments,
    which the person may have changed, or the reason why not."""
    name, wanted, id_ = given.get("tool_name"), given.get("input"), given.get("tool_use_id")
    if not isinstance(name, str) or not isinstance(wanted, dict):
        return _failure("approve takes tool_name, a text, and input, an object")
    call = ToolCall(
        name, cast("dict[str, Any]", wanted), id_ if isinstance(id_, str) and id_ else secrets.token_hex(8), inner=True
    )
    approved: list[dict[str, Any]] = []

    async def do(wanted: dict[str, Any]) -> object:
        approved.append(await member.turn.ask_approval(name, wanted))
        return f"approved: {call.id}"  # the id, because equal results of equal calls look like a loop

    try:
        said = await member.turn.tool(call, do)
    except RemitError as error:
        said = str(error)
    if approved:
        return _result({"behavior": "allow", "updatedInput": approved[0]})
    return _result({"behavior": "deny", "message": said if isinstance(said, str) else encode(said)})


def _result(value: Json) -> CallToolResult:
    text = value if isinstance(value, str) else encode(value)
    return CallToolResult(content=[TextContent(text=text)])


def _failure(sentence: str) -> CallToolResult:
    return CallToolResult(content=[TextContent(text=sentence)], is_error=True)
