"""One connection to a server, in a task of its own: callers come and go, and are cancelled separately.

The sessions of mcp use cancel scopes, which must be left in the task that entered them. That must not be the task of
the first caller.
"""

import asyncio
import math
from collections.abc import Callable
from contextvars import Context
from importlib.metadata import version
from typing import Final, cast

import anyio
from mcp import Client, MCPError
from mcp_types import Implementation
from mcp_types import Tool as OfferedTool

from remit.adapters.mcp_tools.offers import Offer
from remit.adapters.mcp_tools.wires import Wire
from remit.core.trust import quoted
from remit.errors import BadInput
from remit.ports.tools import Tool, ToolFailed

CLOSING: Final = 10.0  # seconds for a clean shutdown

_PAGES: Final = 100
_alive: set[asyncio.Task[None]] = set()  # strong references, because a loop has only weak ones


class Link:
    """A connection that is opened at once. `over` ends it; `ended` says that the next call needs a new one."""

    CLOSED: Final = "Connection closed"  # mcp's message for a lost connection

    def __init__(
        self,
        server: str,
        dial: Callable[[asyncio.Event], Wire],
        admit: Callable[[list[Offer]], list[Tool]],
        opening: float,
        gone: Callable[["Link"], None],
    ) -> None:
        self.tools: list[Tool] = []
        self.over = asyncio.Event()
        self._server = server
        self._wire = dial(self.over)
        self._admit = admit
        self._slow = f"did not answer within {opening:g} s"
        self._gone = gone
        self._client: Client | None = None
        self._failed: Exception | None = None
        self._settled = asyncio.Event()
        self._time = anyio.CancelScope(deadline=anyio.current_time() + opening)
        # In an empty context: the connection outlives the turn that first needs it.
        self._task = asyncio.get_running_loop().create_task(self._live(), context=Context())
        _alive.add(self._task)
        self._task.add_done_callback(_alive.discard)

    @property
    def ended(self) -> bool:
        return self.over.is_set() or self._task.done()

    async def client(self) -> Client:
        """Return the client as soon as the server has listed its tools. Raise `ToolFailed` if the server did not."""
        await self._settled.wait()
        if self._failed is not None:
            raise type(self._failed)(str(self._failed))  # a new exception for each waiting caller
        if self._client is None:
            raise ToolFailed(self.lost())
        return self._client

    def lost(self) -> str:
        """Return the sentence for a lost connection."""
        return self._because(f"the connection to {self._server} was lost")

    async def close(self) -> None:
        """End the connection and wait until everything is gone, including the process."""
        self.over.set()
        if not self._settled.is_set():
            self._slow = "was closed before it answered"
            self._time.cancel()
        await asyncio.wait([self._task])

    async def _live(self) -> None:
        try:
            with self._time:
                await self._talk(self._time)
            if not self._settled.is_set():
                self._failed = ToolFailed(self._because(f"{self._server} {self._slow}"))
        except Exception as error:  # noqa: BLE001 - any error is raised to the waiting callers
            self._failed = self._told(_innermost(error))
        finally:
            self._client = None
            self.over.set()
            self._settled.set()
            self._gone(self)

    async def _talk(self, time: anyio.CancelScope) -> None:
        about = Implementation(name="remit", version=version("remit"))
        async with Client(self._wire.transport(), client_info=about, cache=None) as client:
            self.tools = self._admit(await self._offers(client))
            time.deadline = math.inf
            self._client = client
            self._settled.set()
            try:
                await self.over.wait()
            finally:
                time.deadline = anyio.current_time() + CLOSING

    def _told(self, error: BaseException) -> Exception:
        if isinstance(error, BadInput | ToolFailed):
            return error
        unusable = f"{self._server} cannot be used"
        if isinstance(error, MCPError) and error.message != self.CLOSED:
            status = f"; {self._wire.status}" if self._wire.status else ""
            return ToolFailed(f"{unusable}{status}: {quoted(error.message)}")
        kind = "it has ended" if isinstance(error, MCPError) else type(error).__name__
        return ToolFailed(self._because(f"{unusable}: {kind}"))

    def _because(self, sentence: str) -> str:
        return "; ".join(filter(None, [sentence, self._wire.why()]))

    async def _offers(self, client: Client) -> list[Offer]:
        found: list[Offer] = []
        cursor: str | None = None
        for _ in range(_PAGES):
            page = await client.list_tools(cursor=cursor)
            found += map(_offer, page.tools)
            cursor = page.next_cursor
            if cursor is None:
                return found
        raise ToolFailed(f"{self._server} offers more than {_PAGES} pages of tools, perhaps without end")


def _innermost(error: BaseException) -> BaseException:
    """Return the first error in a group of errors."""
    if not isinstance(error, BaseExceptionGroup):
        return error
    return _innermost(cast("BaseExceptionGroup[BaseException]", error).exceptions[0])


def _offer(tool: OfferedTool) -> Offer:
    """Return a tool as the server offers it. Its hints say whether repeating a call is harmless."""
    hints = tool.annotations
    harmless = hints is not None and bool(hints.read_only_hint or hints.idempotent_hint)
    return Offer(tool.name, tool.description or "", tool.input_schema, harmless)
