"""Tools of MCP servers, by the mcp package (`remit[mcp]`), which is imported when one is named.

files = MCPServer("files", ["mcp-server-files", "/data"], allow=["read_file"], pins={"read_file": "sha256:..."})
tools = await files.tools()
"""

from remit.adapters.mcp_tools.server import MCPServer
from remit.ports.tools import pin_of, pins_of

__all__ = ["MCPServer", "pin_of", "pins_of"]
