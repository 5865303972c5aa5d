"""What the programs that stand in for coding agents share: HTTP to the gateway, MCP, and lines on stdout. They use
nothing but Python's own library, as programs of others would."""

import http.client
import json
import subprocess
import sys
import urllib.parse
from typing import Any


class Place:
    """The gateway, as a program sees it."""

    def __init__(self, url: str, token: str) -> None:
        self._at = urllib.parse.urlsplit(url)
        self._token = token
        self._session = ""
        self._number = 0

    def post(self, path: str, body: Any, **headers: str) -> tuple[int, str, Any]:
        """Send JSON. Return the status, the text and the headers of the answer."""
        wire = http.client.HTTPConnection(self._at.hostname or "", self._at.port, timeout=120)
        always = {"content-type": "application/json", "authorization": f"Bearer {self._token}"}
        wire.request("POST", path, json.dumps(body), {**always, **headers})
        answer = wire.getresponse()
        return answer.status, answer.read().decode(), answer.headers

    def tools(self) -> list[dict[str, Any]]:
        """Connect over MCP, and list the tools."""
        about = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "like", "version": "1"}}
        self._mcp("initialize", about)
        self._mcp("notifications/initialized", None)
        return self._mcp("tools/list", {})["tools"]

    def call(self, name: str, given: Any) -> dict[str, Any]:
        """Call a tool over MCP."""
        return self._mcp("tools/call", {"name": name, "arguments": given})

    def _mcp(self, method: str, given: Any) -> Any:
        headers = {"accept": "application/json, text/event-stream", "mcp-protocol-version": "2025-06-18"}
        if self._session:
            headers["mcp-session-id"] = self._session
        body: dict[str, Any] = {"jsonrpc": "2.0", "method": method}
        if given is not None:
            self._number += 1
            body |= {"id": self._number, "params": given}
        status, text, found = self.post("/mcp", body, **headers)
        if status >= 400:
            raise ConnectionError(text)
        self._session = found.get("mcp-session-id") or self._session
        if given is None:
            return None
        lines = [line[5:] for line in text.splitlines() if line.startswith("data:")] or [text]
        found = [json.loads(line) for line in lines if line.strip()]
        return next(one.get("result") or {"content": [{"text": str(one["error"])}]} for one in found if "id" in one)


def text_of(result: dict[str, Any]) -> str:
    return "".join(part.get("text", "") for part in result["content"])


def shell(command: str) -> str:
    """Run a command in a session of its own, as Claude Code does."""
    done = subprocess.run(command, shell=True, capture_output=True, text=True, start_new_session=True, check=False)
    return done.stdout + done.stderr


def say(line: Any) -> None:
    sys.stdout.write(json.dumps(line) + "\n")
    sys.stdout.flush()
