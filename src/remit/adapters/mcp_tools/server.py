"""An MCP server as its owner describes it: how it is reached, and which of its tools may be used."""

import asyncio
import json
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final, cast
from urllib.parse import urlsplit

import anyio

from remit.adapters.asking.secrecy import Hidden, SecretGiven, secret_reader
from remit.adapters.mcp_tools.offers import Gate
from remit.adapters.process import GRACE, LIMIT, located
from remit.core.checks import counted, items, patience
from remit.core.secret import REDACTED
from remit.core.toolgroups import TOOL_LIMIT
from remit.core.trust import quoted
from remit.core.values import NAME_LIMIT, line, plain, shown
from remit.errors import BadInput
from remit.ports.tools import Tool, ToolFailed

if TYPE_CHECKING:
    from remit.adapters.mcp_tools.link import Link

SECONDS: Final = 60.0  # for one call
OPENING: Final = 60.0  # until a server has listed its tools: some are downloaded at the first start

_PIN: Final = re.compile(r"sha256:[0-9a-f]{64}")
_ADDRESS: Final = 2_000
_ERROR: Final = 16_384  # bytes of a server's error message
_MANUAL: Final = "errors.pydantic.dev"
_TERMINATED: Final = "Session terminated"  # mcp's message for an unknown session


@dataclass(eq=False, repr=False)
class MCPServer:
    """A server that is started with `command` and used over its pipes, or that is at `url`.

    `allow` names the tools that may be used, one by one. `pins` are their digests over name, description and schema, as
    `pins_of` returns them. `env` is the command's environment in addition to the usual variables; `headers` go with
    every request to the address. A call may take `timeout` seconds, and `limit` bytes of its result are kept. The
    server has `opening` seconds to start and list its tools, and `grace` seconds to end when asked.

    The server is started, or connected to, when it is first needed in an event loop, and is kept for that loop. If it
    dies, running calls fail, and the next call restarts it. It ends with the loop, or with `close`.
    """

    name: str
    command: Sequence[str] = ()
    _: KW_ONLY
    url: str = ""
    allow: Sequence[str] = ()
    pins: Mapping[str, str] = field(default_factory=dict[str, str])
    env: Mapping[str, SecretGiven] = field(default_factory=dict[str, SecretGiven])
    headers: Mapping[str, SecretGiven] = field(default_factory=dict[str, SecretGiven])
    cwd: str | os.PathLike[str] | None = None
    timeout: float | None = SECONDS
    limit: int = LIMIT
    opening: float = OPENING
    grace: float = GRACE

    def __post_init__(self) -> None:
        self.name = line(self.name, "the name of an MCP server", NAME_LIMIT)
        self._title = f"the MCP server '{self.name}'"
        self.allow = [
            line(each, "a tool name", TOOL_LIMIT) for each in items(self.allow, "allow takes a list of names")
        ]
        self.pins = _pins(self.pins, self.allow)
        self._env = _secret_readers(self.env, "env")
        self._headers = _secret_readers(self.headers, "headers")
        patience(self.timeout, "timeout")
        patience(self.opening, "opening")
        patience(self.grace, "grace")
        counted(self.limit, "limit")
        self._reach()
        try:
            # The import takes a second, so do it now and not while agents run.
            import_module("remit.adapters.mcp_tools.link")
        except ImportError as error:
            raise BadInput(f"{self._title} needs the mcp package: pip install 'remit[mcp]' ({error})") from None
        self._gate = Gate(self._title, self.allow, self.pins)
        self._links: list[tuple[asyncio.AbstractEventLoop, Link]] = []

    def __repr__(self) -> str:
        return f"<MCPServer '{self.name}'>"

    async def tools(self) -> list[Tool]:
        """Return the allowed tools, in the order of `allow`. Raise `BadInput` if one of them is missing or differs from
        its pin, and `ToolFailed` if the server cannot be reached."""
        link = self._link()
        await link.client()
        return [*link.tools]

    async def close(self) -> None:
        """End this event loop's connection, and the process if there is one; the next call opens a new one."""
        for link in self._here():
            await link.close()

    # -- one call ---------------------------------------------------------------------------------------

    async def _call(self, name: str, arguments: dict[str, Any]) -> str:
        from mcp import MCPError  # noqa: PLC0415 - only needed with a server

        from remit.adapters.mcp_tools.link import cut, result_text  # noqa: PLC0415

        what = f"'{name}' of {self._title}"
        _must_be_json(arguments, what)
        link, result = self._link(), None
        try:
            client = await link.client()
            with anyio.move_on_after(self.timeout):
                result = await client.call_tool(name, arguments)
        except MCPError as error:
            raise ToolFailed(_answered(what, error.message, link, cut(error.message, _ERROR))) from None
        except BadInput as error:  # the restarted server offers something else
            raise ToolFailed(str(error)) from None
        except ToolFailed:
            raise
        except Exception as error:  # noqa: BLE001 - anything that mcp and pydantic reject in an answer
            lines = [each for each in str(error).splitlines() if _MANUAL not in each]
            said = quoted(cut("\n".join(lines), _ERROR))
            raise ToolFailed(f"{what} returned a result that cannot be used: {type(error).__name__}: {said}") from None
        if result is None:
            raise ToolFailed(
                f"{what} did not answer within {self.timeout:g} s and was told to stop; it may have been done"
            )
        if result.is_error:
            raise ToolFailed(f"{what} failed: {quoted(result_text(result, _ERROR))}")
        return result_text(result, self.limit)

    # -- the connection ---------------------------------------------------------------------------------

    def _link(self) -> "Link":
        """Return the connection of this loop. It does not wait, so two concurrent callers get the same connection."""
        for link in self._here():
            if not link.ended:
                return link
        link = self._linked()
        self._links.append((asyncio.get_running_loop(), link))
        return link

    def _here(self) -> list["Link"]:
        """Return the connections of this loop: the current one, and those about to end."""
        return [link for loop, link in tuple(self._links) if loop is asyncio.get_running_loop()]

    def _linked(self) -> "Link":
        from remit.adapters.mcp_tools.link import Link, Pipes, Web, Wire  # noqa: PLC0415 - only needed with a server

        def dial(gone: asyncio.Event) -> Wire:
            if self._command:
                return Pipes(self._command, _revealed(self._env), self.cwd, self.grace, gone)
            return Web(self.url, _revealed(self._headers))

        loop = asyncio.get_running_loop()

        def forget(gone: Link) -> None:
            self._links.remove((loop, gone))

        admit = partial(self._gate.admit, call=lambda name: partial(self._call, name))
        return Link(self._title, dial, admit, self.opening, forget)

    def _reach(self) -> None:
        """Check how the server is reached. Raise `BadInput` if that is unclear."""
        if bool(self.command) == bool(self.url):
            raise BadInput(f"{self._title} has either a command, as a list, or a url")
        if self.url and (self.env or self.cwd is not None):
            raise BadInput(f"{self._title} is at a url, and env and cwd are for a command; headers are for a url")
        if self.command and self.headers:
            raise BadInput(f"{self._title} is a command, and headers are for a url; env is for a command")
        self._command = located(self.command, _revealed(self._env)) if self.command else []
        if self.url:
            query = _address(self.url).query
            # Tokens may be in the query. Headers are not logged; keep the query out of the logs as well.
            self._hidden = Hidden(lambda: [(query, REDACTED)] if query else [])


def _answered(what: str, message: str, link: "Link", said: str) -> str:
    """Return the message for the error response of a call. If the connection is unusable after it, end the
    connection."""
    if message == link.CLOSED:
        link.over.set()
        return f"{what} was under way, and it may have been done: {link.lost_sentence()}"
    if message == _TERMINATED:
        link.over.set()
        return f"{what} was not done: the server has forgotten this session; try again, and there will be another"
    return f"{what} failed: {quoted(said)}"


def _must_be_json(arguments: dict[str, Any], what: str) -> None:
    try:
        json.dumps(arguments, allow_nan=False, ensure_ascii=False).encode()
    except (TypeError, ValueError, RecursionError):
        raise ToolFailed(f"{what} was given arguments that are not JSON") from None


def _pins(given: object, allow: Sequence[str]) -> dict[str, str]:
    if not isinstance(given, Mapping):
        raise BadInput(f"pins takes the digests of tools by their names, not {shown(given)}")
    pins: dict[str, str] = {}
    for name, pin in cast("Mapping[str, object]", given).items():
        if name not in allow:
            raise BadInput(f"{shown(name)} is pinned and not allowed; add it to allow, or take its pin away")
        if not isinstance(pin, str) or not _PIN.fullmatch(pin):
            raise BadInput(
                f"the pin of {shown(name)} is 'sha256:' and 64 digits, as pins_of gives it, not {shown(pin)}"
            )
        pins[name] = pin
    return pins


def _secret_readers(given: Mapping[str, SecretGiven], what: str) -> dict[str, Any]:
    if not isinstance(given, Mapping):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise BadInput(f"{what} takes texts by their names")
    return {
        plain(name, f"a name in {what}", 1_000): secret_reader(value, f"{name} in {what}")
        for name, value in given.items()
    }


def _revealed(secrets: Mapping[str, Any]) -> dict[str, str]:
    return {name: reveal() for name, reveal in secrets.items()}


def _address(url: object) -> Any:
    """Return a web address if it is valid. Raise `BadInput` otherwise, without showing the address."""
    text = plain(url, "the url of an MCP server", _ADDRESS)
    try:
        parts = urlsplit(text)
        good = parts.scheme in ("http", "https") and bool(parts.hostname) and (parts.port or True)
    except ValueError:
        parts, good = None, False
    if not good or parts is None or not text.isascii() or not text.isprintable() or " " in text:
        raise BadInput("the url of an MCP server is one such as https://example.com/mcp; what was given is not shown")
    if parts.username is not None or parts.password is not None:
        raise BadInput("the url of an MCP server has a user name or a password in it; put that into headers")
    return parts
