"""A real MCP server, run as a program by the tests: over its pipes, or over HTTP on a port of its own.

It is told where to leave signs, and what the tool `add` shall say of itself.
"""

import os
import socket
import sys
from pathlib import Path

import anyio
import uvicorn
from mcp.server import MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp_types import ImageContent, TextContent

how, folder, sentence, port = sys.argv[1], Path(sys.argv[2]), sys.argv[3], int(sys.argv[4])
server = MCPServer("served", log_level="ERROR")


def sign(name: str, text: str) -> None:
    """Put a file there in one piece."""
    draft = folder / f"{name}.draft"
    draft.write_text(text)
    draft.rename(folder / name)


@server.tool(description=sentence)
def add(a: int, b: int) -> int:
    return a + b


@server.tool()
def fail(why: str) -> str:
    """Fail."""
    raise ToolError(why)


@server.tool()
async def wait(name: str) -> str:
    """Say that it is there, and wait until someone else is, or until it is told to stop."""
    sign(name, str(os.getpid()))
    try:
        while not (folder / f"{name}.go").exists():  # noqa: ASYNC110 - the one who puts it there is another process
            await anyio.sleep(0.005)
    except anyio.get_cancelled_exc_class():
        sign(f"{name}.cancelled", "")
        raise
    return f"{name} went"


@server.tool(structured_output=False)
def large(size: int) -> str:
    """Say much."""
    return "é" * size


@server.tool()
def picture() -> list[TextContent | ImageContent]:
    """Show something."""
    return [TextContent(text="look:"), ImageContent(data="AAAA", mime_type="image/png")]


@server.tool()
def settings() -> dict[str, str]:
    """Tell the environment."""
    return dict(os.environ)


def listen() -> None:
    sock = socket.socket()
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    sock.bind(("127.0.0.1", port))
    app = server.streamable_http_app(json_response=how == "json")
    config = uvicorn.Config(app, log_level="error", timeout_graceful_shutdown=1)
    sock.listen()
    print(sock.getsockname()[1], flush=True)
    anyio.run(uvicorn.Server(config).serve, [sock])


if how == "pipes":
    server.run()
else:
    listen()
