"""Requests of clients of MCP and of A2A, as they send them."""

from random import Random  # noqa: TID251 - with a seed
from typing import Any, Final

import httpx

MODERN: Final = "2026-07-28"
LEGACY: Final = "2025-11-25"
_META: Final = "io.modelcontextprotocol"
_ACCEPT: Final = {"content-type": "application/json", "accept": "application/json, text/event-stream"}
_A2A: Final = {**_ACCEPT, "a2a-version": "1.0"}
_OPENING: Final = {"protocolVersion": LEGACY, "capabilities": {}, "clientInfo": {"name": "c", "version": "1"}}
_CALLS: Final[tuple[tuple[str, dict[str, Any]], ...]] = (
    ("list_agents", {}),
    ("call_agent", {"agent": "echo", "task": "x"}),
    ("call_agent", {"agent": "fails", "task": "x"}),
    ("call_agents", {"tasks": [{"agent": "echo", "task": "x"}]}),
    ("call_agent_async", {"agent": "echo", "task": "x"}),
    ("check_delegation_status", {"id": "{task}"}),
    ("cancel_delegation", {"id": "{task}"}),
    ("recall", {"namespace": "notes"}),
    ("remember", {"namespace": "notes", "key": "k", "value": 1}),
    ("list_questions", {}),
)


class Strangers:
    """What a client of MCP or of A2A asks of the agents of a world."""

    def __init__(self, http: httpx.AsyncClient) -> None:
        self._http = http
        self._session = ""
        self._task = "a" * 16

    async def request(self, chance: Random) -> tuple[str, str, Any, dict[str, str]]:
        """The next request: its method, path, body and headers."""
        way = chance.choice((self._modern, self._in_session, self._rpc, self._rest))
        if not self._session:
            await self._open()
        return way(chance)

    async def _open(self) -> None:
        """Open a session of MCP, and make a task of A2A that has ended."""
        body = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": _OPENING}
        got = await self._http.post("/mcp", json=body, headers=_ACCEPT)
        self._session = got.headers["mcp-session-id"]
        got = await self._http.post("/a2a/echo/rest/message:send", json=_message("x"), headers=_A2A)
        self._task = got.json()["task"]["id"]

    def _modern(self, chance: Random) -> tuple[str, str, Any, dict[str, str]]:
        name, arguments = _call(chance, self._task)
        meta = {
            f"{_META}/protocolVersion": MODERN,
            f"{_META}/clientInfo": {"name": "c", "version": "1"},
            f"{_META}/clientCapabilities": {"elicitation": {"form": {}}},
        }
        headers = {**_ACCEPT, "mcp-protocol-version": MODERN, "mcp-method": "tools/call", "mcp-name": name}
        params: dict[str, Any] = {"name": name, "arguments": arguments, "_meta": meta}
        if chance.random() < 0.2:
            headers, params = {**headers, "mcp-method": "tools/list"}, {"_meta": meta}
            headers.pop("mcp-name")
        return "POST", "/mcp", _rpc(headers["mcp-method"], params), headers

    def _in_session(self, chance: Random) -> tuple[str, str, Any, dict[str, str]]:
        headers = {**_ACCEPT, "mcp-protocol-version": LEGACY, "mcp-session-id": self._session}
        name, arguments = _call(chance, self._task)
        call = _rpc("tools/call", {"name": name, "arguments": arguments})
        others = (_rpc("tools/list", {}), _rpc("ping", {}), _rpc("resources/list", {}), _rpc("x", {}))
        told = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}}
        return "POST", "/mcp", chance.choice((call, call, *others, told)), headers

    def _rpc(self, chance: Random) -> tuple[str, str, Any, dict[str, str]]:
        about = {"id": self._task}
        config = {"taskId": self._task, "id": "c", "url": "https://example.com/x"}
        calls = (
            *(("SendMessage", _message("x")), ("SendStreamingMessage", _message("x"))),
            *(("SendMessage", {**_message("x"), "configuration": {"returnImmediately": True, "historyLength": 1}}),),
            *(("GetTask", {**about, "historyLength": 1}), ("ListTasks", {"pageSize": 5, "includeArtifacts": True})),
            *(("CancelTask", about), ("SubscribeToTask", about), ("GetExtendedAgentCard", {})),
            ("CreateTaskPushNotificationConfig", config),
            ("ListTaskPushNotificationConfigs", {"taskId": self._task}),
            *((f"{verb}TaskPushNotificationConfig", {"taskId": self._task, "id": "c"}) for verb in ("Get", "Delete")),
        )
        agent = chance.choice(("echo", "echo", "fails", "pays", "nobody"))
        return "POST", f"/a2a/{agent}/rpc", _rpc(*chance.choice(calls)), _A2A

    def _rest(self, chance: Random) -> tuple[str, str, Any, dict[str, str]]:
        task, configs = f"/tasks/{self._task}", f"/tasks/{self._task}/pushNotificationConfigs"
        calls = (
            *(("POST", "/message:send", _message("x")), ("POST", "/message:stream", _message("x"))),
            *(("GET", task, None), ("GET", "/tasks?pageSize=5", None), ("POST", f"{task}:cancel", {})),
            *(("POST", f"{task}:subscribe", {}), ("GET", "/.well-known/agent-card.json", None)),
            *(("POST", configs, {"url": "https://example.com/x"}), ("GET", configs, None)),
            *(("GET", f"{configs}/c", None), ("DELETE", f"{configs}/c", None), ("GET", "/extendedAgentCard", None)),
        )
        method, path, body = chance.choice(calls)
        base = "/a2a/echo" if path.startswith("/.well") else "/a2a/echo/rest"
        return method, f"{base}{path}", body, _A2A


def _call(chance: Random, task: str) -> tuple[str, dict[str, Any]]:
    name, arguments = chance.choice(_CALLS)
    return name, {key: task if one == "{task}" else one for key, one in arguments.items()}


def _rpc(method: str, params: dict[str, Any]) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}


def _message(text: str) -> dict[str, Any]:
    parts = [{"text": text}, {"data": {"n": 1}}, {"raw": "eA==", "filename": "a.txt", "mediaType": "text/plain"}]
    return {"message": {"messageId": "m", "role": "ROLE_USER", "parts": parts[:2], "contextId": "c", "metadata": {}}}
