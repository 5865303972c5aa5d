"""The A2A agents of a server as an ASGI application, below a path of it: a card, JSON-RPC and HTTP+JSON for each agent.

The server that mounts it puts the caller and its workspace into `scope["remit.caller"]` and `scope["remit.workspace"]`,
and a function that raises an error once the key does not count any more into `scope["remit.check"]`.
Bodies must be strict JSON already, because the SDK answers what it cannot parse with an internal error.
"""

import json
import re
from email.utils import formatdate
from hashlib import sha256
from typing import Any, Final, NamedTuple, cast

from a2a.server.context import ServerCallContext
from a2a.server.routes.common import ServerCallContextBuilder
from a2a.server.routes.jsonrpc_dispatcher import JsonRpcDispatcher
from a2a.server.routes.rest_dispatcher import RestDispatcher
from a2a.server.routes.rest_routes import create_rest_routes
from a2a.types.a2a_pb2 import (
    AgentCapabilities,
    AgentCard,
    AgentCardSignature,
    AgentExtension,
    AgentInterface,
    AgentSkill,
    HTTPAuthSecurityScheme,
    SecurityRequirement,
    SecurityScheme,
    SendMessageRequest,
    StringList,
    TaskPushNotificationConfig,
)
from a2a.utils.error_handlers import build_rest_error_payload
from a2a.utils.errors import A2AError, InternalError, InvalidParamsError, InvalidRequestError, MethodNotFoundError
from a2a.utils.signing import create_agent_card_signer
from cryptography.hazmat.primitives.asymmetric.ec import SECP256R1, EllipticCurvePrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat, load_pem_private_key
from google.protobuf.json_format import MessageToDict, Parse, ParseError
from jwt import api_jws
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Route, Router
from starlette.types import ASGIApp, Receive, Scope, Send

from remit.adapters.a2a.call import A2ACall
from remit.adapters.a2a.parts import CHAIN
from remit.adapters.a2a.server import AgentRequests
from remit.core import allow
from remit.core.card import Card
from remit.core.values import canonical
from remit.errors import BadInput
from remit.runtime.pushes import Pushes
from remit.runtime.workspace import opening_of

WELL_KNOWN: Final = "/.well-known/agent-card.json"
KEY: Final = "REMIT_A2A_KEY"
_VERSION: Final = re.compile(r"[0-9.]{1,10}", re.ASCII)
_INTERNAL: Final = -32603  # JSON-RPC: an internal error
_MODES: Final = ("text/plain", "application/json", "application/octet-stream")  # the last for files of all kinds


class A2ASettings(NamedTuple):
    """`prefix` is the path of the application, `address` the server's address in cards if it is not that of the request
    (behind a proxy), `front` the agent of the card at the root, and `key` the private key that signs cards: an
    EC key on P-256, as PEM."""

    prefix: str = "/a2a"
    address: str = ""
    front: str = ""
    key: str = ""


class CardMaker:
    """Makes the cards of agents. Two servers with the same key make cards with the same key id."""

    def __init__(self, settings: A2ASettings) -> None:
        self._settings = settings
        self._sign = signer(settings.key) if settings.key else None

    def card(self, card: Card, address: str, *, pushes: bool = False) -> AgentCard:
        """Return the A2A card of an agent on a server with this address. `pushes` says whether the server offers push
        notifications."""
        place = f"{self._settings.address or address}{self._settings.prefix}/{card.name}"
        bindings = (("JSONRPC", "/rpc"), ("HTTP+JSON", "/rest"))
        made = AgentCard(
            name=card.name,
            description=card.role or f"The agent {card.name}.",
            version="1",
            supported_interfaces=[
                AgentInterface(url=f"{place}{path}", protocol_binding=binding, protocol_version="1.0")
                for binding, path in bindings
            ],
            capabilities=AgentCapabilities(
                streaming=True,
                push_notifications=pushes,
                extensions=[AgentExtension(uri=CHAIN, description="The task that a request is a part of.")],
            ),
            default_input_modes=_MODES,
            default_output_modes=_MODES,
            skills=_skills(card),
            security_requirements=[SecurityRequirement(schemes={"key": StringList()})],
        )
        made.security_schemes["key"].CopyFrom(
            SecurityScheme(http_auth_security_scheme=HTTPAuthSecurityScheme(scheme="Bearer"))
        )
        return made if self._sign is None else self._sign(made)


def _skills(card: Card) -> list[AgentSkill]:
    words = card.can or ((card.role or card.name),)
    return [
        AgentSkill(id=f"{card.name}-{place}", name=one, description=one, tags=["remit"])
        for place, one in enumerate(words, 1)
    ]


def signer(key: str) -> Any:
    """Return a function that signs a card with a private key. Raise `BadInput` if the key cannot sign."""
    try:
        private = load_pem_private_key(key.encode(), None)
    except (ValueError, TypeError):
        private = None
    if not isinstance(private, EllipticCurvePrivateKey) or not isinstance(private.curve, SECP256R1):
        raise BadInput(
            f"{KEY} is a private key on the curve P-256 as PEM; make one with "
            "`openssl ecparam -name prime256v1 -genkey -noout`"
        )
    public = private.public_key().public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
    header: Any = {"alg": "ES256", "typ": "JOSE", "kid": sha256(public).hexdigest()[:16]}
    as_the_sdk = create_agent_card_signer(key, header)

    def sign(card: AgentCard) -> AgentCard:
        protected, _, signature = api_jws.encode(_signed_text(card), key, "ES256", header).split(".")
        exact = AgentCardSignature(protected=protected, signature=signature)
        signed = as_the_sdk(card)
        signed.signatures.insert(0, exact)
        return signed

    return sign


def _signed_text(card: AgentCard) -> bytes:
    """Return the text that is signed: the whole card as canonical JSON (RFC 8785). A card has no numbers, so sorted
    JSON is canonical. The SDK leaves out empty objects, such as those of security requirements, when it signs and when
    it verifies. So a card gets two signatures: of this text, and of the SDK's text."""
    return json.dumps(MessageToDict(card), ensure_ascii=False, sort_keys=True, separators=(",", ":")).encode()


# -- requests ---------------------------------------------------------------------------------------------------------


class CallBuilder(ServerCallContextBuilder):
    """Puts the `A2ACall` of a request into the context of the SDK."""

    def build(self, request: Request) -> ServerCallContext:
        version = request.headers.get("a2a-version", "")
        headers = {"a2a-version": version if _VERSION.fullmatch(version) else "0"} if version else {}
        found = {"headers": headers, "remit.call": call_in(request), "remit.status": _status_in(request)}
        return ServerCallContext(state=found)


def _status_in(request: Request) -> Any:
    """Return the state by which a request filters tasks, as it was sent, or None if it has no filter. The SDK drops a
    state that it does not know, so it is read here."""
    body: Any = request.scope.get("remit.body")
    params: Any = cast("dict[str, Any]", body).get("params") if isinstance(body, dict) else None
    if isinstance(params, dict):
        return cast("dict[str, Any]", params).get("status")
    return request.query_params.get("status")


def call_in(request: Request) -> A2ACall:
    scope = request.scope
    try:
        agent = canonical(request.path_params["agent"])
    except BadInput:  # no agent has such a name, so the request is rejected like one for an unknown agent
        agent = "nobody"
    return A2ACall(scope["remit.caller"], scope["remit.workspace"], agent, scope["remit.check"])


class QuietDispatcher(JsonRpcDispatcher):
    """JSON-RPC whose errors repeat nothing of the request."""

    def _generate_error_response(self, request_id: str | int | None, error: Any) -> JSONResponse:
        data = dict[str, Any](getattr(error, "data", None) or {})
        if isinstance(error, InvalidParamsError | InvalidRequestError) and "parseError" in data:
            error = type(error)()
        elif not isinstance(error, A2AError) and getattr(error, "code", _INTERNAL) == _INTERNAL:
            error = InternalError("the server failed; its log says why")
        return super()._generate_error_response(request_id, error)


def a2a_app(settings: A2ASettings | None = None, requests: AgentRequests | None = None) -> Router:
    """Return an ASGI application with the card, JSON-RPC and HTTP+JSON of each agent."""
    settings, handler, builder = settings or A2ASettings(), requests or AgentRequests(), CallBuilder()
    cards = Cards(settings)
    rpc = QuietDispatcher(handler, builder)
    routes: list[BaseRoute] = [
        Route(f"/{{agent}}{WELL_KNOWN}", cards.one, methods=["GET"]),
        Route("/{agent}/rpc", rpc.handle_requests, methods=["POST"]),
        Route("/{agent}/rpc/", rpc.handle_requests, methods=["POST"]),
        *_rest(handler, builder),
    ]
    return Router(routes, redirect_slashes=False, default=_nothing)


def front_app(settings: A2ASettings | None = None) -> ASGIApp:
    """Return the application of the card at the root of the server."""
    cards = Cards(settings or A2ASettings())

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope)
        answer = await cards.front(request) if request.method in ("GET", "HEAD") else Response(None, 405)
        await answer(scope, receive, send)

    return app


def _rest(handler: AgentRequests, builder: CallBuilder) -> list[BaseRoute]:
    """Return the routes of HTTP+JSON, without the SDK's mount at the root, which would take the requests of all other
    routes. These routes reject an invalid body before the SDK gets it, because the SDK repeats it in its answer."""
    made = create_rest_routes(handler, builder, path_prefix="/{agent}/rest")
    routes = [one for one in made if isinstance(one, Route)]
    dispatcher = RestDispatcher(handler, builder)
    taking: tuple[tuple[str, Any, type[Any]], ...] = (
        ("/message:send", dispatcher.on_message_send, SendMessageRequest),
        ("/message:stream", dispatcher.on_message_send_stream, SendMessageRequest),
        ("/tasks/{id}/pushNotificationConfigs", dispatcher.set_push_notification, TaskPushNotificationConfig),
    )
    checked = [
        Route(f"/{{agent}}/rest{path}", _checked(endpoint, kind), methods=["POST"]) for path, endpoint, kind in taking
    ]
    return [*checked, *routes]


def _checked(endpoint: Any, kind: type[Any]) -> Any:
    async def answer(request: Request) -> Response:
        try:
            Parse(await request.body(), kind(), ignore_unknown_fields=True)
        except ParseError:
            return _as_rest(InvalidRequestError("the body is not what this request takes; see the definition of A2A"))
        return await endpoint(request)

    return answer


def _as_rest(error: A2AError) -> Response:
    payload = build_rest_error_payload(error)
    return JSONResponse(payload, payload["error"]["code"])


async def _nothing(scope: Scope, receive: Receive, send: Send) -> None:
    """Answer a request for a path that no binding has."""
    await _as_rest(MethodNotFoundError("there is nothing at this path"))(scope, receive, send)


class Cards:
    """The cards that a caller may see: those of the agents that it may ask."""

    def __init__(self, settings: A2ASettings) -> None:
        self._front = settings.front
        self._maker = CardMaker(settings)
        self._since = formatdate(usegmt=True)

    async def one(self, request: Request) -> Response:
        call = call_in(request)
        return self._answer(request, (await _askable(call)).get(call.agent), call)

    async def front(self, request: Request) -> Response:
        """Answer with the card of the front agent: the one in the settings, or the only one there is."""
        scope = request.scope
        call = A2ACall(scope["remit.caller"], scope["remit.workspace"], "", scope["remit.check"])
        cards = await _askable(call)
        found = cards.get(canonical(self._front)) if self._front else None
        if found is None and not self._front and len(cards) == 1:
            (found,) = cards.values()
        return self._answer(request, found, call)

    def _answer(self, request: Request, card: Card | None, call: A2ACall) -> Response:
        if card is None:
            problem = {"title": "Not Found", "status": 404, "detail": "there is no such agent that this key may ask"}
            return JSONResponse(problem, 404, media_type="application/problem+json")
        address = f"{request.url.scheme}://{request.headers.get('host', '')}"
        made = self._maker.card(card, address, pushes=Pushes(opening_of(call.workspace)).are_possible)
        content = MessageToDict(made)
        unsigned = {name: value for name, value in content.items() if name != "signatures"}
        tag = f'W/"{sha256(repr(unsigned).encode()).hexdigest()[:32]}"'
        headers = {"Cache-Control": "private, max-age=60", "Last-Modified": self._since, "ETag": tag}
        if tag in (one.strip() for one in request.headers.get("if-none-match", "").split(",")):
            return Response(None, 304, headers)
        return JSONResponse(content, headers=headers)


async def _askable(call: A2ACall) -> dict[str, Card]:
    """Return the cards of the agents that the caller may ask, by name."""
    cards = {card.name: card for card in await call.workspace.agents.list()}
    caller = call.caller
    if caller.agent:
        own = cards.get(caller.agent)
        asks = allow.NONE if own is None else own.asks
        cards = {name: card for name, card in cards.items() if name != caller.agent and allow.has(asks, name)}
    return {name: card for name, card in cards.items() if allow.has(caller.bounds.agents, name)}
