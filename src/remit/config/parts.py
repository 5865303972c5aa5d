"""Parts of a team that a file's tables name or describe: objects at `module:name`, channels, tools of MCP servers,
programs as tools, forms of answers."""

import ast
import asyncio
import importlib
import json
import shutil
import sys
import traceback
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import Any, Final, NoReturn, cast

from remit.config.places import text_in
from remit.config.variables import fill_variables, unset
from remit.core.checks import meant
from remit.core.values import NAME_LIMIT, shown
from remit.errors import BadInput
from remit.ports.tools import Tool, ToolFailed
from remit.ports.turn import current_turn

# -- objects by module:name ----------------------------------------------------------------------------------


_DYNAMIC: Final = frozenset({"globals", "exec", "vars", "setattr"})  # calls that create names dynamically


def import_from(name: str, folder: Path) -> ModuleType:
    """Return the module; modules in the folder come first. Raise `BadInput` if the import fails."""
    place = str(folder.absolute())
    if place not in sys.path[:1]:
        sys.path.insert(0, place)
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise BadInput(f"module {shown(name)} cannot be imported: {error}") from error
    except Exception as error:  # the user's own code: the error must say where it failed
        raise BadInput(f"module {shown(name)} broke while it was imported: {_where(error, place)}") from error


def found_at(where: str, folder: Path) -> Any:
    """Return the object at `module:name`. Raise `BadInput` if there is none."""
    module_name, _, name = where.partition(":")
    found: Any = import_from(module_name, folder)
    for part in name.split("."):
        if not hasattr(found, part):
            raise _without(module_name, name, part, dir(found))
        found = getattr(found, part)
    return found


def _without(module: str, name: str, part: str, known: Iterable[str]) -> BadInput:
    """Return the error for a name that a module does not have, with the nearest one."""
    hint = meant(part, [one for one in known if not one.startswith("_")])
    return BadInput(f"module {shown(module)} has no {shown(name)}{hint}")


class NotImported:
    """Stands for an object of a module that was not imported, because its folder is not trusted."""

    def __init__(self, where: str) -> None:
        self.__name__ = self.__qualname__ = where.rpartition(":")[2].rpartition(".")[2]

    async def __call__(self, *_: object, **__: object) -> NoReturn:
        raise BadInput(f"{self.__name__} was not imported: its folder is not trusted")

    def as_guard(self) -> Callable[[object], str]:
        """Return a guard of this name that refuses every hop."""

        def guard(_hop: object) -> str:
            return f"the guard {self.__name__} was not imported, because its folder is not trusted"

        guard.__name__ = self.__name__
        return guard


def named_at(where: str, folder: Path) -> Any:
    """Return a `NotImported` in place of the object at `module:name`. No code of the module runs. Raise `BadInput` if
    the module or the name does not exist.

    For a module outside the folder, only its existence is checked. Names that a module creates dynamically are
    accepted.
    """
    module_name, _, name = where.partition(":")
    path = folder.joinpath(*module_name.split("."))
    file = next((one for one in (path.with_suffix(".py"), path / "__init__.py") if one.is_file()), None)
    if file is None:
        top = module_name.partition(".")[0]
        if not (folder / top).exists() and not installed(top):
            raise BadInput(f"module {shown(module_name)} cannot be imported: No module named {shown(top)}")
        return NotImported(where)
    try:
        tree = ast.parse(text_in(file), str(file))
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise BadInput(f"module {shown(module_name)} cannot be imported: {error}") from error
    made = _names_in(tree.body)
    if name.partition(".")[0] not in made and not made & {"*", "__getattr__"}:
        raise _without(module_name, name, name.partition(".")[0], made)
    return NotImported(where)


def installed(top: str) -> bool:
    """Whether a package is installed. It is not imported."""
    try:
        return find_spec(top) is not None
    except (ImportError, ValueError):
        return False


def _names_in(body: Sequence[ast.stmt]) -> set[str]:
    """Return the names that statements define, including those within if, try and with; "*" if they cannot be known."""
    made: set[str] = set()
    for node in body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            made.add(node.name)
            continue
        for inner in ast.walk(node):
            if isinstance(inner, ast.alias):
                made.add((inner.asname or inner.name).partition(".")[0])
            elif isinstance(inner, ast.Name) and isinstance(inner.ctx, ast.Store):
                made.add(inner.id)
            elif isinstance(inner, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                made.add(inner.name)
            elif isinstance(inner, ast.Call) and isinstance(inner.func, ast.Name) and inner.func.id in _DYNAMIC:
                made.add("*")
    return made


def _where(error: Exception, folder: str) -> str:
    """Return the error with its place: ValueError: no such key (team.py, line 7). If a library raised it, the place is
    the last line of the folder's own code before that."""
    what = f"{type(error).__name__}: {error}"
    frames = traceback.extract_tb(error.__traceback__)
    if isinstance(error, SyntaxError) or not frames:
        return what
    own = [one for one in frames if one.filename.startswith(folder) and "site-packages" not in one.filename]
    last = (own or frames)[-1]
    return f"{what} ({Path(last.filename).name}, line {last.lineno})"


# -- channels, servers and forms -----------------------------------------------------------------------------


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
    table: dict[str, Any] = fill_variables(given)
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
            given[key] = fill_variables(given[key])
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
        raise ToolFailed("this team was loaded only for reading, so its servers were not started")

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


# -- agents of other servers ----------------------------------------------------------------------------------


class TokenVariable:
    """A token in environment variables, read when it is sent; empty if one is not set."""

    def __init__(self, text: str) -> None:
        self._text = text

    def reveal(self) -> str:
        return "" if unset(self._text) else fill_variables(self._text)


def remote_agent(table: Mapping[str, Any]) -> Any:
    """Return the agent of another server that a table describes."""
    token = TokenVariable(table["token"]) if "token" in table else None
    return import_module("remit.adapters.a2a.agent").a2a(table["a2a"], token=token, key=table.get("key", ""))


# -- programs as tools ---------------------------------------------------------------------------------------


def program_tool(name: str, table: dict[str, Any], folder: Path) -> Callable[..., Awaitable[str]]:
    """Return a tool that runs a program in the folder. Its output is untrusted. Raise `BadInput` if the program is not
    installed."""
    from remit.adapters.process import LIMIT, last_words, printed, run_process  # noqa: PLC0415 - few files need it

    program, *rest = cast("list[str]", table["program"])
    found = shutil.which(program)  # looked up once: a later change of PATH must not replace the program
    if found is None:
        raise BadInput(f"there is no program {shown(program)} here that can be run; install it or give its full path")
    command = [str(Path(found).absolute()), *rest]
    as_argument = table.get("input", "stdin") == "argument"

    async def tool(text: str = "") -> str:
        given = [*command, text] if as_argument else command
        done = await run_process(given, text="" if as_argument else text, cwd=folder)
        said = printed(done, LIMIT)
        if done.code:
            said = last_words(done.err) or "it said nothing"
        turn = current_turn()
        if turn is not None:
            turn.mark_untrusted(f"output of {name}"[:NAME_LIMIT], said)
        if done.code:
            raise RuntimeError(f"exit code {done.code}: {said}")
        return said

    tool.__name__ = tool.__qualname__ = name
    tool.__doc__ = table.get("about") or f"Run {program} with a text and give back what it prints."
    return tool
