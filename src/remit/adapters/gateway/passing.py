"""One request of a program: passed on to a provider, paid for and recorded like any other model request.

The bytes of the answer pass through as they come. Its end, and every finished tool call in it, is held back until the
answer is recorded and paid: what a program does next is on record before it can do it.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from dataclasses import replace
from typing import Any, Final, NamedTuple

import httpx

from remit.adapters.gateway.reading import AnswerRead, items_of, recorded, without_id
from remit.adapters.gateway.tools import ToolPermit
from remit.adapters.gateway.upstream import AnswerBroken, ProviderRefused, Upstreams
from remit.adapters.gateway.wires import ReadRequest, RefusalSent, WireFormat
from remit.core.prices import Usage
from remit.core.recovery import ModelFailure, ModelTry
from remit.ports.models import Hear, ModelAnswer

_PIECES: Final = 64  # of an answer between the provider and a slow program
_PASSED: Final = ("content-type", "request-id", "x-request-id", "openai-processing-ms", "anthropic-")


class AnswerHead(NamedTuple):
    """The head of an answer."""

    status: int
    headers: tuple[tuple[str, str], ...]


Sent = AnswerHead | bytes


class AnswerPipe:
    """A queue of the pieces of an answer for a program. `send` waits only if 64 pieces are unread: every needless turn
    of the event loop would delay the program."""

    def __init__(self) -> None:
        self._pieces: asyncio.Queue[Sent | None] = asyncio.Queue()
        self._room = asyncio.Semaphore(_PIECES)

    async def send(self, piece: Sent) -> None:
        await self._room.acquire()
        self._pieces.put_nowait(piece)

    def close(self) -> None:
        """End the answer: iteration stops after the pieces that were sent."""
        self._pieces.put_nowait(None)

    async def __aiter__(self) -> AsyncGenerator[Sent]:
        while (piece := await self._pieces.get()) is not None:
            self._room.release()
            yield piece


class ProgramRequest(NamedTuple):
    """A request of a program: the wire format, its parsed parts, the body, the size of the body in bytes, and the
    headers."""

    wire: WireFormat
    asked: ReadRequest
    body: dict[str, Any]
    size: int
    headers: Sequence[tuple[str, str]]

    def within(self, permit: ToolPermit) -> ProgramRequest:
        """Return the request without the tools that the program may not use."""
        body = self.wire.permitted_request(self.body, permit)
        if body is self.body:
            return self
        tools = frozenset(self.wire.tool_names(items_of(body.get("tools"))))
        return self._replace(body=body, asked=self.asked._replace(tools=tools))


class RequestPassage:
    """The way of one request through the gateway, and of its answer back into `out`."""

    def __init__(self, request: ProgramRequest, upstreams: Upstreams, out: AnswerPipe) -> None:
        self.request = request
        self.is_begun = False  # whether the program has been sent a part of an answer
        self.rejected: ProviderRefused | None = None
        self._upstreams = upstreams
        self._out = out
        self._held = b""
        self._head: AnswerHead | None = None
        self._read: AnswerRead | None = None

    async def send(self, attempt: ModelTry, most: int, hear: Hear | None) -> ModelAnswer:
        """Send the request to one model, and return its answer. Pass on the part of the answer that need not be
        recorded first, and call `hear` with new text. `most` limits the output tokens. Raise `AnswerBroken` if the
        answer is not complete."""
        wire, asked, body, _, headers = self.request
        sent = wire.rewritten(body, attempt.model.partition(":")[2], most, attempt.model.partition(":")[0])
        reader = wire.reader(streams=asked.streams, drops_usage=wire.drops_usage(body))
        self._read = reader.answer
        async with self._upstreams.sending(wire, attempt, sent, headers) as answer:
            self._head = _head(answer)
            async for piece in _pieces(answer):
                await self._pass(reader.feed(piece))
                if hear is not None and (text := reader.answer.fresh()):
                    hear(text)
            reader.finish()
        found = reader.answer
        if found.failed or not found.ended:
            raise AnswerBroken(found.failed or "the answer broke off before its end")
        self._held = reader.held
        calls = (*found.hosted, *(one.name for one in found.calls))
        return ModelAnswer(recorded(found.items()), found.model or attempt.model, found.usage, calls)

    def failure(self, error: Exception) -> ModelFailure | None:
        """Return the meaning of a failed try. Return None if the error is no failure of a model, or if the program has
        a part of the answer already: the answer of another model cannot replace it."""
        if self.is_begun:
            return None
        if isinstance(error, ProviderRefused) and error.is_about_request:
            self.rejected = error
        return self._upstreams.failure(error)

    def spent(self) -> Usage | None:
        """Return the most that an unfinished answer can have used: the input that the provider reported, with its
        cached parts, and a token for every character of the answer. Return None if the provider has reported no
        input."""
        read = self._read
        if read is None or not read.read:
            return None
        known = read.usage or Usage(read.read)
        return replace(known, output=max(1, read.size, known.output))

    def words(self) -> str:
        """Return the new parts of the request and the answer, without ids. Loop detection compares them with earlier
        exchanges."""
        told = [without_id(item) for item in self.request.asked.news]
        return recorded([*told, *map(without_id, self._read.items() if self._read is not None else ())])

    def calls(self) -> tuple[str, ...]:
        """Return the names of the tools that the program is to run."""
        return tuple(one.name for one in self._read.calls) if self._read is not None else ()

    async def finish(self) -> None:
        """Pass on the end of the answer, which was held back until the answer was recorded."""
        await self._pass(self._held)

    async def refuse(self, sentence: str, *, again: bool = False) -> None:
        """Send the program the reason why there is no answer, so that it stops; with `again`, report that the answer
        was cut off and that the program may ask again."""
        wire, asked = self.request.wire, self.request.asked
        if self.is_begun:
            await self._out.send(wire.cut(sentence, again=again))
        elif (rejected := self.rejected) is not None and rejected.body:  # the program knows its provider's words
            json = ("content-type", "application/json")
            await self._answer(RefusalSent(400, (json, ("x-should-retry", "false")), rejected.body))
        else:
            await self._answer(wire.refusal(sentence, streams=asked.streams))

    async def _answer(self, refusal: RefusalSent) -> None:
        self.is_begun = True
        await self._out.send(AnswerHead(refusal.status, refusal.headers))
        await self._out.send(refusal.body)

    async def _pass(self, data: bytes) -> None:
        if not data:
            return
        if not self.is_begun:
            assert self._head is not None
            self.is_begun = True
            await self._out.send(self._head)
        await self._out.send(data)


def _pieces(answer: httpx.Response) -> AsyncIterator[bytes]:
    """Return the body of a provider's answer in pieces. If the provider names a content encoding, the body is
    decompressed; requests ask for an uncompressed body."""
    return answer.aiter_bytes() if "content-encoding" in answer.headers else answer.aiter_raw()


def _head(answer: httpx.Response) -> AnswerHead:
    kept = ((name, value) for name, value in answer.headers.items() if name.startswith(_PASSED))
    return AnswerHead(answer.status_code, tuple(kept))
