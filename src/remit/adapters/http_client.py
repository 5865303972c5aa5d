"""`remit.Client`: a workspace on a server, over HTTP. It needs `remit[server]` or `remit[channels]`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

from remit.errors import BadInput
from remit.runtime.client import RemoteWorkspace

if TYPE_CHECKING:
    import httpx


class Client(RemoteWorkspace):
    """A workspace on a server: `Client("http://127.0.0.1:8377", key="rmt_...")`. The key says which workspace it is.

    It has the groups and methods of `Workspace`, and returns and raises the same. `async with Client(...) as ws` keeps
    its connections open. `journal.follow` continues by itself after a lost connection, and a change whose answer was
    lost is requested again and done once.
    """

    def __init__(self, address: str, *, key: str = "", transport: httpx.AsyncBaseTransport | None = None) -> None:
        try:  # late: `from remit import *` must work without httpx
            from remit.adapters.http_wire import HttpWire
        except ImportError as error:
            raise BadInput(f"remit.Client needs the httpx package: pip install 'remit[server]' ({error})") from error
        self._http = HttpWire(address, key, transport)
        super().__init__(self._http)

    async def __aenter__(self) -> Self:
        await self._http.open()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._http.aclose()
