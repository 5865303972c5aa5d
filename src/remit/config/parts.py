"""Parts of a team that other modules create from the file's tables: channels, tools of MCP servers, forms of
answers."""

import asyncio
import json
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from importlib import import_module
from pathlib import Path
from typing import Any, Final, cast

from remit.config.importing import found_at
from remit.config.variables import filled
from remit.core.values import shown
from remit.errors import BadInput
from remit.ports.tools import Tool, ToolFailed

# For the key that selects a channel: its module, its class, and the keyword for the key's value.
_CHANNELS: Final = {
    "telegram": ("telegram", "Telegram", "token"),
    "slack": ("slack", "Slack", "webhook_url"),
    "webhook": ("webhook", "Webhook", "url"),
    "answers": ("webhook", "AnswerServer", "port"),
}


Find = Callable[[str, Path], Any]  # `found_at`, or `named_at` if nothing may be imported


def channel(name: str, given: Any, folder: Path, find: Find = found_at) -> Any:
    """Return the channel that a table describes, or the one at module:name."""
    if isinstance(given, str):
        return find(given, folder)
    table: dict[str, Any] = filled(given)
    way = next(key for key in _CHANNELS if key in table)
    module, kind, keyword = _CHANNELS[way]
    try:
        found = import_module(f"remit.adapters.{module}")
    except ImportError as error:
        raise BadInput(f"a channel needs pip install 'remit[channels]' ({error})") from error
    return getattr(found, kind)(name=name, **{keyword: table.pop(way)}, **table)


def server(name: str, table: Mapping[str, Any], folder: Path) -> Any:
    """Return the MCP server that a table describes; it is not started yet."""
    given = dict(table)
    for key in ("env", "headers"):
        if key in given:
            given[key] = filled(given[key])
    if "command" in given:
        given["cwd"] = str(folder / given.get("cwd", ""))
    return import_module("remit.adapters.mcp_tools").MCPServer(name, **given)


def tools_of(servers: Mapping[str, Any]) -> dict[str, list[Tool] | BadInput | ToolFailed]:
    """Return the tools of every server, or the error of a server that gives none. All servers are asked concurrently,
    in a thread with its own event loop, because a team may be created while another loop runs. The servers start again
    in the loop that uses them."""
    if not servers:
        return {}
    with ThreadPoolExecutor(1) as threads:
        return threads.submit(lambda: asyncio.run(_all_tools(servers))).result()


async def _all_tools(servers: Mapping[str, Any]) -> dict[str, list[Tool] | BadInput | ToolFailed]:
    found = await asyncio.gather(*map(_tools, servers.values()))
    return dict(zip(servers, found, strict=True))


async def _tools(asked: Any) -> list[Tool] | BadInput | ToolFailed:
    try:
        return await asked.tools()
    except (BadInput, ToolFailed) as no:
        return no
    finally:
        await asked.close()


def why_away(failed: ToolFailed) -> str:
    """Return in one line why a server gives no tools. In a traceback the last line has the reason."""
    first, *rest = str(failed).splitlines() or [""]
    return f"{first.partition('[')[0].rstrip()} {rest[-1].removeprefix('> ')}" if rest else first


def placeholders(names: list[str]) -> list[Tool]:
    """Return tools that have only a name, for a team that is inspected and does not run."""

    async def call(_arguments: dict[str, Any]) -> object:
        raise ToolFailed("this team was made to be looked at, and its servers were not started")

    return [Tool(name, "", {"type": "object"}, call, untrusted=True) for name in names]


def form(given: Any, folder: Path, find: Find = found_at) -> Any:
    """Return the form of an answer: the object at module:name, or a JSON Schema, which may be in a file."""
    if not isinstance(given, str):
        return _schema(given)
    if not given.endswith(".json"):
        return find(given, folder)
    try:
        text = (folder / given).read_text(encoding="utf-8")
        schema = json.loads(text)
    except OSError as error:
        raise BadInput(f"{given} cannot be read: {error.strerror}") from error
    except (ValueError, RecursionError) as error:
        raise BadInput(f"{given} is not JSON: {error}") from error
    return _schema(schema)


def _schema(given: Any) -> dict[str, Any]:
    if not isinstance(given, dict):
        raise BadInput(f"a JSON Schema is an object, not {shown(given)}")
    try:
        adapter = import_module("remit.adapters.schema")
    except ImportError as error:
        raise BadInput(f"a JSON Schema needs pip install 'remit[schema]' ({error})") from error
    schema = cast("dict[str, Any]", given)
    adapter.check_schema(schema)
    return schema
