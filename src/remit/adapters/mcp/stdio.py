"""The server over standard input and output: one client, one message on a line.

Nothing else reaches the output: while the server runs, what the program prints goes to standard error, and programs
that it starts read no input.
"""

import asyncio
import os
import sys
import threading
from collections.abc import Generator, Iterator
from contextlib import contextmanager, suppress
from typing import Any, Final, NamedTuple

import anyio
from anyio import to_thread
from mcp.shared.message import SessionMessage
from mcp_types import INVALID_REQUEST, PARSE_ERROR, jsonrpc_message_adapter
from pydantic import ValidationError

from remit.adapters.mcp.server import CallPeer, server_for
from remit.codec import encode
from remit.codec.strict import parse
from remit.core.values import Json
from remit.errors import Malformed
from remit.runtime.outsiders import Outsider

LIMIT: Final = 2 * 1024 * 1024  # bytes of a message
_PART: Final = 65_536


class ClientPipes(NamedTuple):
    """The descriptors of the client: where its messages come from, and where ours go."""

    reads: int
    writes: int


@contextmanager
def own_pipes() -> Generator[ClientPipes]:
    """Reserve standard input and output for the protocol while the body runs, and yield their descriptors. Prints go to
    standard error."""
    sys.stdout.flush()
    pipes = ClientPipes(os.dup(0), os.dup(1))
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.dup2(2, 1)
    os.close(nothing)
    try:
        yield pipes
    finally:
        sys.stdout.flush()
        os.dup2(pipes.reads, 0)
        os.dup2(pipes.writes, 1)
        os.close(pipes.writes)  # the other one stays open: a thread may still read from it


async def serve_pipes(outsider: Outsider, pipes: ClientPipes) -> None:
    """Serve one client until it closes its side. Calls that are open then are cancelled."""
    server = server_for(lambda _context: CallPeer(outsider))
    inbox, messages = anyio.create_memory_object_stream[SessionMessage | Exception](0)
    answers, outbox = anyio.create_memory_object_stream[SessionMessage](0)
    lines, incoming = anyio.create_memory_object_stream[bytes | None](0)
    output = _Output(pipes.writes)

    async def take() -> None:
        async with inbox:
            async for line in incoming:
                message, refusal = _message(line)
                if message is not None:
                    await inbox.send(SessionMessage(message))
                elif refusal:
                    await output.write(refusal)

    async def give() -> None:
        async for answer in outbox:
            await output.write(answer.message.model_dump_json(by_alias=True, exclude_unset=True).encode())

    loop = asyncio.get_running_loop()
    threading.Thread(target=_read, args=(pipes.reads, lines, loop), name="remit-mcp", daemon=True).start()
    async with anyio.create_task_group() as group:
        group.start_soon(take)
        group.start_soon(give)
        with suppress(anyio.BrokenResourceError, anyio.ClosedResourceError):  # the client does not read any more
            await server.run(messages, answers, server.create_initialization_options())
        group.cancel_scope.cancel()


class _Output:
    """Writes whole lines. A client that has closed its side gets none."""

    def __init__(self, pipe: int) -> None:
        self._pipe = pipe
        self._turn = anyio.Lock()

    async def write(self, text: bytes) -> None:
        async with self._turn:
            await to_thread.run_sync(self._write, text + b"\n")

    def _write(self, data: bytes) -> None:
        with suppress(BrokenPipeError):
            while data:
                data = data[os.write(self._pipe, data) :]


def _read(pipe: int, lines: Any, loop: asyncio.AbstractEventLoop) -> None:
    """Pass on the lines of a pipe, None for one that is too long. It runs in a thread of its own, because a read of a
    pipe cannot be cancelled."""
    with suppress(RuntimeError, anyio.BrokenResourceError, anyio.ClosedResourceError, asyncio.CancelledError):
        for line in _lines(pipe):
            asyncio.run_coroutine_threadsafe(lines.send(line), loop).result()
    with suppress(RuntimeError):  # the loop has ended
        loop.call_soon_threadsafe(lines.close)


def _lines(pipe: int) -> Iterator[bytes | None]:
    kept, is_too_long = bytearray(), False
    while part := os.read(pipe, _PART):
        *whole, rest = part.split(b"\n")
        for end in whole:
            kept += end
            yield None if is_too_long or len(kept) > LIMIT else bytes(kept)
            kept, is_too_long = bytearray(), False
        kept += rest
        if len(kept) > LIMIT:
            kept, is_too_long = bytearray(), True
    if kept:
        yield bytes(kept)


def _message(line: bytes | None) -> tuple[Any, bytes]:
    """Return the message of a line and b"". If the line is not a message, return None and the error to answer with,
    which is b"" for an empty line."""
    if line is None:
        return None, _refusal(INVALID_REQUEST, f"the message has more than {LIMIT:,} bytes")
    if not line.strip():
        return None, b""
    try:
        value = parse(line)
    except Malformed as error:
        return None, _refusal(PARSE_ERROR, str(error))
    try:
        return jsonrpc_message_adapter.validate_python(value, by_name=False), b""
    except ValidationError:
        id_ = value.get("id") if isinstance(value, dict) else None
        known = id_ if isinstance(id_, str | int) and not isinstance(id_, bool) else None
        return None, _refusal(INVALID_REQUEST, "a line is one JSON-RPC request, notification or response", known)


def _refusal(code: int, sentence: str, id_: str | int | None = None) -> bytes:
    answer: Json = {"jsonrpc": "2.0", "id": id_, "error": {"code": code, "message": sentence}}
    return encode(answer).encode()
