"""A task that an agent of another server works on: sent once, followed to its end, cancelled with ours."""

import logging
from asyncio import CancelledError
from collections.abc import AsyncGenerator, AsyncIterator, Generator
from contextlib import AsyncExitStack, aclosing, asynccontextmanager, contextmanager, suppress
from itertools import count
from secrets import token_hex
from typing import Any, Final, NoReturn, cast

import anyio
import httpcore
import httpx
from a2a.client import A2ACardResolver, Client, ClientConfig, ClientFactory
from a2a.client.errors import A2AClientError, A2AClientTimeoutError, AgentCardResolutionError
from a2a.types.a2a_pb2 import (
    AgentCard,
    Artifact,
    CancelTaskRequest,
    GetTaskRequest,
    Message,
    Role,
    SendMessageRequest,
    StreamResponse,
    SubscribeToTaskRequest,
    TaskStatus,
)
from a2a.utils.errors import A2AError, InvalidParamsError, TaskNotFoundError, UnsupportedOperationError
from a2a.utils.signing import SignatureVerificationError, create_signature_verifier
from google.protobuf.struct_pb2 import Struct

from remit.adapters.a2a.files import answer_of, files_for
from remit.adapters.a2a.parts import (
    ABOVE,
    CHAIN,
    HANDLE,
    STATES,
    ChainData,
    as_text,
    data_part,
    keepable,
    text_part,
    texts_in,
)
from remit.adapters.a2a.place import RemotePlace
from remit.adapters.vetted import Vetted, checked_form
from remit.core.prices import dollars
from remit.core.prompt import ReviewNote, sent_back
from remit.core.session import said_before
from remit.core.values import NAME_LIMIT, Json
from remit.errors import BadInput, Refused, RemitError
from remit.ports.services import Down, Undeliverable
from remit.report.printable import visible_line

CONNECT: Final = 15.0
SILENCE: Final = 60.0  # seconds without a word, after which it is asked for the state
CANCEL: Final = 3.0  # seconds to tell the other server that a task is cancelled
PAUSES: Final = (0.5, 1.0, 2.0, 5.0, 10.0)  # seconds between two looks at a task that is not streamed
ANSWER_LIMIT: Final = 16_000_000  # bytes of an answer
STREAM_LIMIT: Final = 96_000_000
_SAID: Final = 1_000  # characters of a sentence of the other server
_ALGORITHMS: Final = ["ES256", "ES384", "RS256", "PS256", "EdDSA"]
_NOT_FOUND: Final = 404
_AGAIN: Final = frozenset((408, 425, 429, 500, 502, 503, 504))

_log: Final = logging.getLogger("remit")

_ENDED: Final = frozenset(("completed", "failed", "canceled", "rejected"))
_ASKS: Final = frozenset(("input_required", "auth_required"))


class RemoteDown(ConnectionError):
    """The other server cannot be reached, or does not work now. A retry may help."""


class RemoteFailed(RuntimeError):
    """The agent of another server did not return a result."""


async def answer(remote: RemotePlace, turn: Any) -> Json:
    """Send the task of a turn to the other server, and return its result."""
    async with AsyncExitStack() as stack:
        return await RemoteWork(remote, stack, turn).result()


# -- the connection -------------------------------------------------------------------------------------------------


class VettedTransport(httpx.AsyncBaseTransport):
    """Sends the requests of a client to vetted addresses only, and limits what it reads."""

    def __init__(self, vetted: Vetted) -> None:
        self._vetted = vetted
        self._pool = httpcore.AsyncConnectionPool(network_backend=vetted.backend(), retries=0)

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        self._vetted.check(str(request.url))
        url = httpcore.URL(
            scheme=request.url.raw_scheme,
            host=request.url.raw_host,
            port=request.url.port,
            target=request.url.raw_path,
        )
        headers = [(name, value) for name, value in request.headers.raw if name.lower() != b"accept-encoding"]
        sent = httpcore.Request(
            request.method,
            url,
            headers=[*headers, (b"Accept-Encoding", b"identity")],
            content=request.stream,
            extensions=request.extensions,
        )
        got = await _network_result(self._pool.handle_async_request(sent), request)
        response = httpx.Response(got.status, headers=got.headers, extensions=got.extensions)
        if response.headers.get("content-encoding", "identity") != "identity":
            await got.aclose()
            raise httpx.DecodingError("an answer in an encoding that was not asked for", request=request)
        is_stream = "text/event-stream" in response.headers.get("content-type", "")
        body = _Body(got, request, STREAM_LIMIT if is_stream else ANSWER_LIMIT)
        return httpx.Response(got.status, headers=got.headers, stream=body, extensions=got.extensions)

    async def aclose(self) -> None:
        await self._pool.aclose()


async def _network_result(asked: Any, request: httpx.Request) -> Any:
    """Return the result of a network request. Raise failures as the exceptions that the A2A client expects."""
    try:
        return await asked
    except (Down, Undeliverable):
        raise
    except httpcore.TimeoutException as error:
        raise httpx.ReadTimeout(type(error).__name__, request=request) from None
    except (httpcore.NetworkError, httpcore.ProtocolError, OSError) as error:
        raise httpx.NetworkError(type(error).__name__, request=request) from None


class _Body(httpx.AsyncByteStream):
    """The body of an answer, up to a limit."""

    def __init__(self, got: Any, request: httpx.Request, limit: int) -> None:
        self._got = got
        self._request = request
        self._limit = limit

    async def __aiter__(self) -> AsyncIterator[bytes]:
        chunks, read = self._got.stream.__aiter__(), 0
        while True:
            try:
                chunk = await _network_result(anext(chunks), self._request)
            except StopAsyncIteration:
                return
            read += len(chunk)
            if read > self._limit:
                raise httpx.DecodingError(f"an answer of more than {self._limit:,} bytes", request=self._request)
            yield chunk

    async def aclose(self) -> None:
        await self._got.aclose()


@asynccontextmanager
async def connected(remote: RemotePlace) -> AsyncGenerator[tuple[Client, AgentCard]]:
    """Yield a client of a remote agent, made from its card, and the card."""
    headers = {} if remote.token is None else {"Authorization": f"Bearer {remote.token()}"}
    async with httpx.AsyncClient(
        transport=VettedTransport(remote.vetted()),
        headers={**headers, "A2A-Extensions": CHAIN, "User-Agent": "remit"},
        timeout=httpx.Timeout(CONNECT, read=SILENCE),
        trust_env=False,
        follow_redirects=False,
    ) as http:
        with told_apart(remote):
            card = await A2ACardResolver(http, remote.url).get_agent_card(signature_verifier=_verifier(remote.key))
        _must_stay(remote, card)
        made = ClientFactory(ClientConfig(httpx_client=http, supported_protocol_bindings=["JSONRPC", "HTTP+JSON"]))
        try:
            client = made.create(card)
        except ValueError:
            raise RemoteFailed(f"{remote.host} speaks neither JSON-RPC nor HTTP+JSON") from None
        yield client, card


def _verifier(key: str) -> Any:
    """Return a function that checks the signature of a card, or None without a key. It accepts only the pinned key,
    never one that the card names."""
    return create_signature_verifier(lambda _kid, _jku: key, _ALGORITHMS) if key else None


def _must_stay(remote: RemotePlace, card: AgentCard) -> None:
    """Raise `RemoteFailed` if a card names another host, which must not get the token, or no valid address."""
    own = remote.target[:3]
    try:
        places = [checked_form(one.url, remote.permits)[:3] for one in card.supported_interfaces]
    except BadInput:
        places = []
    if not places:
        raise RemoteFailed(f"the card of the agent at {remote.host} names no address that may be asked")
    if any(place != own for place in places):
        raise RemoteFailed(f"the card of the agent at {remote.host} names another host, so nothing is sent there")


@contextmanager
def told_apart(remote: RemotePlace) -> Generator[None]:
    """Raise the exceptions of the A2A client as `RemoteDown` if a retry may help, otherwise as `RemoteFailed`. Errors
    of remit are raised unchanged."""
    try:
        yield
    except (RemitError, RemoteDown, RemoteFailed):
        raise
    except Exception as error:  # noqa: BLE001 - the client raises what it likes
        _tell_apart(remote.host, error)


def _tell_apart(host: str, error: Exception) -> NoReturn:
    cause = error.__cause__
    status = cause.response.status_code if isinstance(cause, httpx.HTTPStatusError) else None
    if isinstance(error, Undeliverable):
        raise RemoteFailed(f"{host}: {error.why}") from None
    if isinstance(error, SignatureVerificationError):
        raise RemoteFailed(f"the card of the agent at {host} is not signed with the key that is pinned") from None
    if status in (401, 403):
        raise RemoteFailed(f"{host} does not accept the token (HTTP {status}); give another as token=") from None
    if status in _AGAIN or isinstance(error, Down | httpx.TransportError | A2AClientTimeoutError):
        why = "cannot be reached" if status is None else f"cannot answer now (HTTP {status})"
        raise RemoteDown(f"{host} {why}") from None
    if isinstance(cause, httpx.TransportError) and not isinstance(cause, httpx.DecodingError):
        raise RemoteDown(f"{host} cannot be reached ({type(cause).__name__})") from None
    if status == _NOT_FOUND:
        raise RemoteFailed(
            f"{host} has no agent at this address, or none that this token may ask (HTTP {status})"
        ) from None
    if status is not None:
        raise RemoteFailed(f"{host} answered with HTTP {status}") from None
    if isinstance(error, A2AError) and not isinstance(error, A2AClientError | AgentCardResolutionError):
        raise RemoteFailed(f"{host} refused the request: {_line(error.message)}") from None
    raise RemoteFailed(f"{host} sent an answer that is not valid A2A ({type(error).__name__})") from None


# -- the work -------------------------------------------------------------------------------------------------------


class RemoteWork:
    """The work of another server for one turn.

    Every step that another worker must not repeat is an effect of the task: its handle, the request that was sent, the
    state in which the remote task stopped, and the answer to its question. If the remote task does not complete, the
    next attempt sends a new one.
    """

    def __init__(self, remote: RemotePlace, stack: AsyncExitStack, turn: Any) -> None:
        self._remote = remote
        self._stack = stack
        self._connected: tuple[Client, AgentCard] | None = None
        self._turn = turn
        self._chain = ChainData()
        self._task = ""
        self._context = ""
        self._open = False  # whether the remote task may still work
        self._is_new = False  # whether the latest stop was seen by this attempt
        self._is_approval = False  # whether it wants to be authorised, which somebody may do there as well
        self._stream: AsyncGenerator[StreamResponse] | None = None
        self._artifacts: dict[str, Artifact] = {}

    async def _client(self) -> Client:
        """Return the client, and connect on the first call. An attempt that continues an earlier one reads the id of
        the remote task from the record first, even if the server cannot be reached."""
        if self._connected is None:
            self._connected = await self._stack.enter_async_context(connected(self._remote))
        return self._connected[0]

    async def _streams(self) -> bool:
        await self._client()
        assert self._connected is not None  # by now
        return self._connected[1].capabilities.streaming

    async def result(self) -> Json:
        """Return the result of the remote task. If an error or a cancellation ends this attempt while the remote task
        may still run, cancel the remote task, unless a later attempt follows it: after `RemoteDown` or a requeue."""
        try:
            return await self._result()
        except RemoteDown:
            raise  # it is followed again by the next attempt
        except BaseException as error:
            is_stopped = isinstance(error, CancelledError) or (isinstance(error, Refused) and error.rule == "over")
            if self._open and not (is_stopped and self._turn.is_requeued):
                await self._tell_cancelled()
            raise
        finally:
            if self._stream is not None:
                with anyio.CancelScope(shield=True):
                    await self._stream.aclose()

    async def _result(self) -> Json:
        turn = self._turn
        self._chain = await self._described()
        for number in count():
            sent = cast("dict[str, Any]", await turn.once("a2a.send", self._send, number))
            if "answer" in sent:
                return self._as_untrusted(sent["answer"])
            self._task, self._context, self._open = sent["task"], sent["context"], True
            stop = await self._followed(number)
            self._open = False
            if stop["state"] == "completed":
                return self._as_untrusted(stop["answer"])
            if self._is_new:
                self._fail(stop["state"], stop["text"])
        raise AssertionError  # count() has no end

    async def _followed(self, number: int) -> dict[str, Any]:
        """Return the final state of the remote task. Send each of its questions to a person, and the answer back to the
        task."""
        turn, host = self._turn, self._remote.host
        for step in count():
            self._is_new = False
            stop = cast("dict[str, Any]", await turn.once("a2a.follow", self._follow, number, step))
            if stop["state"] not in _ASKS:
                return stop
            self._is_approval = stop["state"] == "auth_required"
            asked = stop["text"] or "It asks for more, and does not say what."
            turn.mark_untrusted(f"question of {host}"[:NAME_LIMIT], asked)
            wants = "wants to be authorised" if self._is_approval else "asks"
            said = await turn.ask_human(f"The agent '{turn.agent}' at {host} {wants}: {asked}")
            await turn.once("a2a.answer", self._reply, number, step, said)
        raise AssertionError  # count() has no end

    async def _described(self) -> ChainData:
        """Return the data about this task that the other server gets with the request."""
        turn, remit = self._turn, self._turn.remit
        handle = await turn.once(HANDLE, token_hex, 16)
        bounds = remit.bounds
        return ChainData(
            f"{remit.id}.{handle}",
            tuple(str(turn.meta.get(ABOVE, "")).split()),
            remit.names,
            bounds.deadline,
            "" if bounds.credits is None else dollars(bounds.credits),
        )

    # -- effects ------------------------------------------------------------------------------------------------

    async def _send(self, number: int, *, idempotency_key: str) -> dict[str, Json]:
        """Send the task. Return the result of `_begin`, without waiting for the remote task to end."""
        del number
        message = Message(message_id=idempotency_key, role=Role.ROLE_USER, extensions=[CHAIN])
        message.parts.extend(await self._parts())
        self._about(message, idempotency_key)
        with told_apart(self._remote):
            return await self._begin(message)

    async def _reply(self, _number: int, _step: int, said: str, *, idempotency_key: str) -> None:
        """Send the answer to a question."""
        message = Message(
            message_id=idempotency_key,
            role=Role.ROLE_USER,
            task_id=self._task,
            context_id=self._context,
            extensions=[CHAIN],
        )
        message.parts.append(text_part(said))
        self._about(message, idempotency_key)
        with told_apart(self._remote):
            try:
                await self._begin(message)
            except UnsupportedOperationError:
                if not self._is_approval:  # somebody may have given one there: then it goes on, and is followed
                    raise

    async def _begin(self, message: Message) -> dict[str, Json]:
        """Send a message. Return the ids of the remote task and its context as `task` and `context`, or the `answer` of
        an agent that answers without a task. The rest of the stream is kept for `_follow`. Raise `RemoteFailed` if the
        stream ends before either."""
        request = SendMessageRequest(message=message)
        request.configuration.return_immediately = True  # for servers that do not stream
        request.configuration.accepted_output_modes.extend(["text/plain", "application/json", "*/*"])
        stream = cast("AsyncGenerator[StreamResponse]", (await self._client()).send_message(request))
        async for event in stream:
            if event.HasField("message"):
                await stream.aclose()
                return {"answer": await answer_of(self._turn, event.message.parts, "")}
            task, context = _whose(event)
            if not task:
                continue
            self._stream = _with_first(event, stream)
            return {"task": keepable(task), "context": keepable(context)}
        raise RemoteFailed(f"{self._remote.host} accepted the task and returned nothing")

    async def _follow(self, _number: int, _step: int) -> dict[str, Json]:
        """Follow the remote task until it ends or asks a question. Return the state in which it stopped."""
        self._is_new = True
        tries = 0
        while True:
            stop, told = await self._to_the_end_of_stream()
            if stop is None:
                with told_apart(self._remote):
                    stop = await self._look()
            if stop is not None and stop["state"] == "completed":
                parts = [part for one in self._artifacts.values() for part in one.parts]
                return {"state": "completed", "answer": await answer_of(self._turn, parts, str(stop["text"]))}
            if stop is not None:
                return stop
            tries = 0 if told else tries + 1
            if tries or not await self._streams():
                await anyio.sleep(PAUSES[min(tries, len(PAUSES)) - 1])

    async def _to_the_end_of_stream(self) -> tuple[dict[str, Json] | None, bool]:
        """Read the stream of the task. Return the state in which the task stopped, or None if the stream ended before,
        and whether the stream had more than the present state."""
        stream, self._stream = self._stream, None
        if stream is None:
            if not await self._streams():
                return None, False
            followed = (await self._client()).subscribe(SubscribeToTaskRequest(id=self._task))
            stream = cast("AsyncGenerator[StreamResponse]", followed)
        told = 0
        try:
            async with aclosing(stream):
                async for event in stream:
                    told += 1
                    if (stop := self._handle_event(event)) is not None:
                        return stop, True
        except (UnsupportedOperationError, InvalidParamsError, TaskNotFoundError):
            pass  # it has ended, or cannot be subscribed to: `_look` says which
        except (A2AClientError, httpx.TransportError) as error:
            if isinstance(error, httpx.DecodingError) or isinstance(error.__cause__, httpx.DecodingError):
                with told_apart(self._remote):
                    raise
            _log.debug("the stream of a remote task broke: %s", type(error).__name__)
        return None, told > 1  # the first event only repeats the state

    async def _look(self) -> dict[str, Json] | None:
        """Request the state of the remote task. Return it if the task has stopped, or None if the task is still
        running. If the server does not know the task, the state is "lost"."""
        try:
            task = await (await self._client()).get_task(GetTaskRequest(id=self._task))
        except TaskNotFoundError:
            return {"state": "lost", "text": ""}
        return self._handle_event(StreamResponse(task=task))

    # -- what it says -------------------------------------------------------------------------------------------

    def _handle_event(self, event: StreamResponse) -> dict[str, Json] | None:
        """Handle an event of the remote task. Return the state in which the task stopped, or None if it is still
        running. Ignore an event of another task."""
        if keepable(_whose(event)[0]) not in (self._task, ""):
            return None
        if event.HasField("artifact_update"):
            update = event.artifact_update
            known = self._artifacts.get(update.artifact.artifact_id)
            if update.append and known is not None:
                known.parts.extend(update.artifact.parts)
            else:
                self._artifacts[update.artifact.artifact_id] = update.artifact
            return None
        if event.HasField("task"):
            self._artifacts = {one.artifact_id: one for one in event.task.artifacts}
            return self._stopped(event.task.status)
        return self._stopped(event.status_update.status) if event.HasField("status_update") else None

    def _stopped(self, status: TaskStatus) -> dict[str, Json] | None:
        state, said = STATES.get(status.state, ""), texts_in(status.message.parts)
        if state == "completed":
            return {"state": state, "text": said}
        if state in _ENDED or state in _ASKS:
            return {"state": state, "text": keepable(said)[:_SAID]}
        if said:
            with suppress(RemitError):  # the turn is over: no one is shown a report then
                self._turn.progress(_line(said)[:200], every=1.0)
        return None

    def _as_untrusted(self, value: Json) -> Json:
        self._turn.mark_untrusted(f"answer of {self._remote.host}"[:NAME_LIMIT], as_text(value))
        return value

    def _fail(self, state: str, text: str) -> NoReturn:
        host, said = self._remote.host, f": {_line(text)}" if text else " and did not say why"
        if text:
            self._turn.mark_untrusted(f"answer of {host}"[:NAME_LIMIT], text)
        if state == "rejected":
            raise Refused(f"the agent at {host} rejected the task{said}", rule="remote")
        if state == "lost":
            raise RemoteFailed(f"{host} does not know the task any more; a retry asks it again")
        raise RemoteFailed(f"the agent at {host} {'cancelled the task' if state == 'canceled' else 'failed'}{said}")

    # -- requests -----------------------------------------------------------------------------------------------

    async def _parts(self) -> list[Any]:
        """Return the task: its text, its data, the earlier conversation, a result that was sent back, and its files."""
        turn = self._turn
        text = turn.task
        if before := await turn.talk_so_far():
            text = f"{text}\n\n{said_before(before)}"
        if (sent := turn.handoff.sent_back) is not None:
            text = "\n".join([text, *sent_back(ReviewNote(as_text(sent.result), sent.why, sent.by))])
        files, left_out = await files_for(turn)
        if left_out:
            names = ", ".join(left_out)[:500]
            text = f"{text}\n\n[files that were not sent, because they are too large or too many: {names}]"
        return [text_part(text), *([] if turn.data is None else [data_part(turn.data)]), *files]

    def _about(self, message: Message, key: str) -> None:
        told = Struct()
        told.update(cast("Any", self._chain._replace(key=key).metadata()))
        message.metadata.CopyFrom(told)

    async def _tell_cancelled(self) -> None:
        with anyio.move_on_after(CANCEL, shield=True) as time:
            try:
                await (await self._client()).cancel_task(CancelTaskRequest(id=self._task))
            except Exception as error:  # noqa: BLE001 - the task is cancelled here anyway; it may have ended there
                _log.info("%s was not told of a cancelled task: %s", self._remote.host, type(error).__name__)
        if time.cancelled_caught:
            _log.info("%s was not told of a cancelled task within %g s", self._remote.host, CANCEL)


def _whose(event: StreamResponse) -> tuple[str, str]:
    """Return the ids of the task and the context that an event is about."""
    if event.HasField("task"):
        return event.task.id, event.task.context_id
    one: Any = event.status_update if event.HasField("status_update") else event.artifact_update
    return one.task_id, one.context_id


async def _with_first(first: StreamResponse, rest: AsyncGenerator[StreamResponse]) -> AsyncGenerator[StreamResponse]:
    async with aclosing(rest):
        yield first
        async for event in rest:
            yield event


def _line(text: str) -> str:
    """Return a sentence of another server as one visible line."""
    return visible_line(keepable(text)[:_SAID])
