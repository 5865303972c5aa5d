"""The tools that a program offers its model: those that its agent may not use are taken out of the request.

Tools of the program itself are like those of a guest: no card lists them, but bounds and denials apply. A tool that the
provider runs costs money that no token count shows, so it stays only if the agent's card lists it.
"""

from collections.abc import Container
from typing import Any, Final, NamedTuple

from remit.adapters.gateway.reading import fields, items_of
from remit.core.remit import Kit

# Prefixes of the types of tools that a provider runs, by the names under which a card lists them.
_HOSTED: Final = ("web_search", "web_fetch", "code_execution", "code_interpreter", "file_search", "image_generation")
_MCP: Final = ("mcp", "mcp_toolset")
_VERBS: Final = ("mcp__remit__", "mcp_remit_")  # how programs name the verbs of a turn
_WITHOUT_TOOLS: Final = ("tools", "tool_choice", "parallel_tool_calls")  # fields that providers refuse without tools


class ToolPermit(NamedTuple):
    """The tools that a program's model may use: `kit` are the program's own tools, `listed` those on the agent's
    card."""

    kit: Kit
    listed: Container[str]

    def shows(self, name: str) -> bool:
        """Whether the program may use this tool, which it runs itself."""
        return self.kit.has(bare(name))

    def at_provider(self, name: str) -> bool:
        """Whether the program may use this tool, which its provider runs."""
        return name in self.listed


def bare(name: str) -> str:
    """Return the name of a tool, and for a verb of the turn its own name."""
    for prefix in _VERBS:
        name = name.removeprefix(prefix)
    return name


def hosted(kind: object) -> str:
    """Return the name of the tool of this type if its provider runs it, otherwise ""."""
    if not isinstance(kind, str):
        return ""
    return "mcp" if kind in _MCP else next((name for name in _HOSTED if kind.startswith(name)), "")


def name_of(tool: dict[str, Any]) -> str:
    """Return the name of a tool that the program runs; its type if it has no name."""
    inner = fields(tool.get("function") or tool.get("custom"))
    name = tool.get("name") or inner.get("name") or tool.get("type")
    return name if isinstance(name, str) else ""


def permitted(body: dict[str, Any], permit: ToolPermit) -> dict[str, Any]:
    """Return a request with the tools that are permitted, and without a choice of one that is not."""
    given = items_of(body.get("tools"))
    kept = [one for tool in given if (one := _permitted_part(fields(tool), permit))]
    if kept == given:
        return body
    if not kept:
        return {name: value for name, value in body.items() if name not in _WITHOUT_TOOLS}
    chosen = fields(body.get("tool_choice"))
    left = {name_of(fields(tool)) for tool in kept}
    is_gone = bool(chosen) and name_of(chosen) not in left and name_of(chosen) in map(name_of, map(fields, given))
    return {name: value for name, value in body.items() if not (is_gone and name == "tool_choice")} | {"tools": kept}


def _permitted_part(tool: dict[str, Any], permit: ToolPermit) -> dict[str, Any] | None:
    if tool.get("type") == "namespace":  # the tools of one MCP server
        prefix, inner = tool.get("name"), items_of(tool.get("tools"))
        kept = [one for one in inner if permit.shows(f"{prefix}__{name_of(fields(one))}")]
        return {**tool, "tools": kept} if kept else None
    provided = hosted(tool.get("type"))
    may = permit.at_provider(provided) if provided else permit.shows(name_of(tool))
    return tool if may else None
