"""The providers behind the gateway: which models a member may ask, where they are, and how a request reaches them."""

import asyncio
import json
import os
import ssl
from collections.abc import AsyncGenerator, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from functools import cache
from http import HTTPStatus
from typing import Any, Final
from weakref import WeakKeyDictionary

import aiohttp
import anyio
import httpx
from httpx_aiohttp import AiohttpTransport

from remit.adapters.bodies import shown_words
from remit.adapters.endpoints import Endpoints, KeyOf, KeysGiven, MissingKey, UrlGiven, key_in_environment
from remit.adapters.gateway.reading import AnswerTooLarge, fields
from remit.adapters.gateway.wires import ReadRequest, WireFormat
from remit.adapters.providers import provider_of, usual
from remit.core.recovery import Choice, ModelFailure, ModelTry, kind_of, own_key
from remit.core.secret import Secret
from remit.core.times import SECOND
from remit.core.values import decode, shown
from remit.errors import BadInput, Refused

CONNECT: Final = 10.0  # seconds
SILENCE: Final = 600.0  # seconds without a byte; a model may think for minutes
_ERROR: Final = 64 * 1_024  # bytes of an error that are read
_HEAD: Final = 65_536  # bytes of one header of an answer
# The usual addresses of providers; all but Anthropic and Google speak OpenAI's chat completions.
_BASES: Final[Mapping[str, str]] = {
    "anthropic": "https://api.anthropic.com",
    "openai": "https://api.openai.com/v1",
    "google": "https://generativelanguage.googleapis.com",
    "groq": "https://api.groq.com/openai/v1",
    "mistral": "https://api.mistral.ai/v1",
    "deepseek": "https://api.deepseek.com/v1",
    "openrouter": "https://openrouter.ai/api/v1",
    "xai": "https://api.x.ai/v1",
    "together": "https://api.together.xyz/v1",
    "fireworks": "https://api.fireworks.ai/inference/v1",
    "cerebras": "https://api.cerebras.ai/v1",
    "moonshotai": "https://api.moonshot.ai/v1",
    "ollama": "http://127.0.0.1:11434/v1",
}
_NOT_SENT: Final = (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout, httpx.UnsupportedProtocol)
_PASSED: Final = ("x-", "anthropic-", "openai-", "session", "thread-", "conversation", "user-agent", "originator")
_NOT_PASSED: Final = ("x-api-key", "x-goog-api-key", "x-forwarded", "x-real-ip")
# The request itself is wrong: the program gets the provider's error, and no other model is asked.
_OF_REQUEST: Final = frozenset((HTTPStatus.BAD_REQUEST, HTTPStatus.REQUEST_ENTITY_TOO_LARGE, 422))


class ProviderRefused(Exception):
    """A provider answered with an error status."""

    def __init__(self, status: int, body: bytes, retry_after: int | None) -> None:
        super().__init__(f"the provider answered with {status}")
        self.status = status
        self.body = body
        self.retry_after = retry_after

    @property
    def code(self) -> str:
        error = _error_in(self.body)
        codes = (error.get(name) for name in ("code", "type", "status"))
        return next((code for code in codes if isinstance(code, str) and code), "")

    @property
    def is_about_request(self) -> bool:
        """Whether the request itself is wrong, so that no other key or model would accept it."""
        return self.status in _OF_REQUEST and not self.is_about_key

    @property
    def is_about_key(self) -> bool:
        """Whether the key is wrong: Google answers with 400 then."""
        return self.status == HTTPStatus.BAD_REQUEST and b"API_KEY_INVALID" in self.body


class AnswerBroken(Exception):
    """An answer broke off, or could not be read."""


BROKEN: Final = (httpx.HTTPError, AnswerBroken, AnswerTooLarge)  # an answer that does not come to its end


class Upstreams:
    """The models that a member may ask; any model if none is named. If the model of a request fails, the others of the
    same format replace it in this order. `keys` and `base_url` are those of `rt.model_agent`, and `key_of` returns the
    value of the key with a name."""

    def __init__(
        self,
        models: Sequence[str] = (),
        keys: KeysGiven = (),
        base_url: UrlGiven = None,
        key_of: KeyOf = key_in_environment,
    ) -> None:
        self.models = tuple(models)
        for name in self.models:
            if not all(name.partition(":")[::2]):
                raise BadInput(f"a model is named as 'provider:model', such as 'openai:gpt-5', not {shown(name)}")
        self._places = Endpoints(self.models[0] if self.models else "", keys, base_url, key_of)
        for name in self.models:
            self._base(name)
        self._sent: set[str] = set()  # values of used keys, because providers may quote them
        self._clients: WeakKeyDictionary[asyncio.AbstractEventLoop, httpx.AsyncClient] = WeakKeyDictionary()
        self._users: WeakKeyDictionary[asyncio.AbstractEventLoop, int] = WeakKeyDictionary()
        self._opening: WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Lock] = WeakKeyDictionary()

    def choices(self, wire: WireFormat, asked: ReadRequest) -> tuple[Choice, ...]:
        """Return the models for a request: the one it names, then those that may replace it, of the same format. Raise
        `Refused` if the member may not ask it."""
        if not self.models:
            return (self._places.marked(self._places.choice(f"{wire.provider}:{asked.model}")),)
        able = [name for name in self.models if wire.speaks(provider_of(name))]
        first = [name for name in able if asked.model in (name, _bare(name))]
        if not first:
            listed = ", ".join(map(_bare, able)) or "none of this format"
            raise Refused(f"the model {shown(asked.model)} is not one that may be asked: {listed}", rule="model")
        order = [*first, *(name for name in able if name not in first)]
        return tuple(self._places.marked(self._places.choice(name)) for name in order)

    def names(self, provider: str = "") -> list[str]:
        """Return the names under which a program asks for the models, of one provider or of all."""
        return [_bare(name) for name in self.models if not provider or provider_of(name) == provider]

    async def ready(self, attempt: ModelTry) -> Secret | None:
        """Return the key of a request if it comes from the environment, for redaction; None if it is the workspace's
        own, a placeholder, or not needed. Raise `MissingKey` if the variable is not set."""
        if attempt.secret is not None or not attempt.key or own_key(attempt):
            return None
        return self._places.key_to_redact(attempt.key)

    @asynccontextmanager
    async def sending(
        self, wire: WireFormat, attempt: ModelTry, body: dict[str, Any], headers: Iterable[tuple[str, str]]
    ) -> AsyncGenerator[httpx.Response]:
        """Send a request, and yield the answer once its head is there. Raise `ProviderRefused` for an error status."""
        key = self._places.key(attempt.key, attempt.secret)
        if key:
            self._sent.add(key)
        url = self._base(attempt.model).rstrip("/") + wire.place(_bare(attempt.model))
        passed = {name: value for name, value in headers if _is_passed(name)}
        given = {**passed, "content-type": "application/json", "accept-encoding": "identity", **wire.key_headers(key)}
        client = await self._client()
        async with client.stream("POST", url, content=_request_bytes(body), headers=given) as answer:
            if answer.status_code >= HTTPStatus.BAD_REQUEST:
                raise ProviderRefused(answer.status_code, await _beginning(answer), _pause(answer))
            yield answer

    def failure(self, error: Exception) -> ModelFailure | None:
        """Return the meaning of a failed request, or None if it is not a failure of a model."""
        match error:
            case MissingKey():
                return ModelFailure("no-key", sent=False, said=str(error))
            case ProviderRefused():
                status = HTTPStatus.UNAUTHORIZED if error.is_about_key else error.status
                kind = "rejected" if error.is_about_request else kind_of(status, error.code)
                said = shown_words(str(_error_in(error.body).get("message") or ""), self._sent)
                return ModelFailure(kind, error.status, error.code, error.retry_after, said=said)
            case httpx.HTTPError():
                kind = "timeout" if isinstance(error, httpx.TimeoutException) else "connection"
                return ModelFailure(kind, sent=not isinstance(error, _NOT_SENT), said=_place(error))
            case AnswerBroken() | AnswerTooLarge():
                return ModelFailure("broken", said=shown_words(str(error), self._sent))
            case _:
                return None

    @asynccontextmanager
    async def connected(self) -> AsyncGenerator[None]:
        """Keep connections open while the body runs; the last body of an event loop closes them."""
        loop = asyncio.get_running_loop()
        self._users[loop] = self._users.get(loop, 0) + 1
        try:
            yield
        finally:
            self._users[loop] -= 1
            if not self._users[loop] and (client := self._clients.pop(loop, None)) is not None:
                with anyio.CancelScope(shield=True):
                    await client.aclose()

    async def _client(self) -> httpx.AsyncClient:
        loop = asyncio.get_running_loop()
        async with self._opening.setdefault(loop, asyncio.Lock()):
            if loop not in self._clients:
                self._clients[loop] = await asyncio.to_thread(_new_client)  # it reads certificates from files
            return self._clients[loop]

    def _base(self, name: str) -> str:
        """Return the base address of a model's provider."""
        provider = provider_of(name)
        variable = usual(provider).url
        found = self._places.address(name) or (os.environ.get(variable) if variable else "") or _BASES.get(provider)
        if not found:
            raise BadInput(
                f"model {shown(name)}: the address of {shown(provider)} is not known here; give its base_url"
            )
        return found


def _new_client() -> httpx.AsyncClient:
    """Return an httpx client that uses aiohttp: its parser costs half as much as httpx's own, and passes on all data
    that has arrived at once."""
    tls = _tls()

    def session() -> aiohttp.ClientSession:
        connector = aiohttp.TCPConnector(limit=0, ssl=tls)
        jar = aiohttp.DummyCookieJar()  # no cookies
        return aiohttp.ClientSession(connector=connector, cookie_jar=jar, max_line_size=_HEAD, max_field_size=_HEAD)

    wait = httpx.Timeout(SILENCE, connect=CONNECT, pool=None)
    return httpx.AsyncClient(timeout=wait, transport=AiohttpTransport(tls, client=session), trust_env=False)


@cache
def _tls() -> ssl.SSLContext:
    """Return the TLS context with the certificates that providers are checked with. Reading them takes 40 ms, so it is
    done once."""
    return httpx.create_ssl_context(trust_env=False)


def _request_bytes(body: dict[str, Any]) -> bytes:
    """Return a request as JSON. The order of its fields is kept, because a model reads the fields of a tool in it."""
    return json.dumps(body, separators=(",", ":")).encode()


def _bare(name: str) -> str:
    return name.partition(":")[2]


def _is_passed(name: str) -> bool:
    return name.startswith(_PASSED) and not name.startswith(_NOT_PASSED)


async def _beginning(answer: httpx.Response) -> bytes:
    """Return the beginning of an error's body; what can be read of it, if it breaks off."""
    found = b""
    with suppress(httpx.HTTPError):
        async for piece in answer.aiter_bytes():
            found += piece
            if len(found) >= _ERROR:
                break
    return found[:_ERROR]


def _error_in(body: bytes) -> dict[str, Any]:
    try:
        return fields(fields(decode(body.decode(errors="replace"))).get("error"))
    except (ValueError, RecursionError):
        return {}


def _pause(answer: httpx.Response) -> int | None:
    """Return the pause that the provider asks for, in microseconds, or None if it states no number of seconds."""
    given = answer.headers.get("retry-after", "")
    if given.isascii() and given.isdigit() and len(given) < 8:
        return int(given) * SECOND
    return None  # a date, or nothing


def _place(error: httpx.HTTPError) -> str:
    try:
        url = error.request.url
    except RuntimeError:
        return "the provider did not answer"
    return f"{url.host}{f':{url.port}' if url.port else ''} did not answer"
