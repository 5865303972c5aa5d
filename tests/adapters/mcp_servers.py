"""MCP servers for tests, each a process of its own."""

import asyncio
import json
import re
import subprocess
import sys
from collections.abc import AsyncGenerator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple

from remit.adapters.mcp_tools import MCPServer
from standing_in import standing_in

HERE = Path(__file__).parent
ADD = "Add two numbers."


def small(folder: Path, manner: str = "plain", **how) -> MCPServer:
    """A server of another make, which misbehaves in some manner."""
    command = [sys.executable, str(HERE / "mcp_small.py"), str(folder), manner]
    return MCPServer("small", command, **{"allow": ["say"], "grace": 0.2, **how})


@contextmanager
def quick(folder: Path) -> Iterator[Path]:
    """A program in this folder that is a real server, and starts quickly."""
    with standing_in(folder, str(HERE / "mcp_served.py"), name="served") as program:
        yield program


def served(program: Path | None, folder: Path, how: str = "pipes", sentence: str = ADD, port: int = 0) -> list[str]:
    """The command of a real server: of this program, or in a Python of its own."""
    words = [sys.executable, str(HERE / "mcp_served.py")] if program is None else [str(program)]
    return [*words, how, str(folder), sentence, str(port)]


class Listening(NamedTuple):
    """A real server that listens."""

    process: subprocess.Popen[str]
    port: int

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/mcp"


@contextmanager
def listening(program: Path, folder: Path, how: str = "http", port: int = 0) -> Iterator[Listening]:
    with subprocess.Popen(served(program, folder, how, port=port), stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield Listening(process, int(process.stdout.readline()))
        finally:
            process.kill()


Reply = tuple[int, dict[str, str], bytes]


@asynccontextmanager
async def answering(reply: Callable[[str, dict[str, Any]], Reply], heard: list[str]) -> AsyncGenerator[str]:
    """An address where each message is answered as the test says; `heard` gets the heads of the requests."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(EOFError, OSError):
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).decode()
                heard.append(head)
                length = int((re.findall(r"content-length: (\d+)", head, re.IGNORECASE) or ["0"])[0])
                body = json.loads(await reader.readexactly(length) or b"{}")
                status, headers, content = reply(head.split()[0], body)
                lines = {"content-length": str(len(content)), "content-type": "application/json", **headers}
                text = "".join(f"{name}: {value}\r\n" for name, value in lines.items())
                writer.write(f"HTTP/1.1 {status} So\r\n{text}\r\n".encode() + content)
                await writer.drain()
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    try:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/mcp"
    finally:
        server.close()


def result(body: dict[str, Any], value: dict[str, Any]) -> bytes:
    return json.dumps({"jsonrpc": "2.0", "id": body["id"], "result": value}).encode()


def older(method: str, body: dict[str, Any]) -> Reply:
    """What a server with sessions answers, up to the call of a tool."""
    match body.get("method"):
        case "initialize":
            about = {"capabilities": {"tools": {}}, "serverInfo": {"name": "older", "version": "1"}}
            version = body["params"]["protocolVersion"]
            return 200, {"mcp-session-id": "one"}, result(body, {"protocolVersion": version, **about})
        case "tools/list":
            return 200, {}, result(body, {"tools": [{"name": "say", "inputSchema": {"type": "object"}}]})
        case "notifications/initialized":
            return 202, {}, b""
        case "tools/call":
            return 200, {}, result(body, {"content": [{"type": "text", "text": "said"}]})
        case _:
            return 405 if method != "POST" else 400, {}, b""
