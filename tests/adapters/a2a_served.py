"""A server of another vendor, with the SDK's own routes: its agent does what the text of the task says."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator
from contextlib import asynccontextmanager, contextmanager
from typing import Any, cast

import anyio
import uvicorn
from a2a.server.context import ServerCallContext
from a2a.server.events.event_queue import Event
from a2a.server.request_handlers.request_handler import RequestHandler
from a2a.server.routes import create_agent_card_routes, create_jsonrpc_routes, create_rest_routes
from a2a.types.a2a_pb2 import (
    AgentCapabilities,
    AgentCard,
    AgentInterface,
    AgentSkill,
    Artifact,
    Message,
    Part,
    Role,
    SendMessageRequest,
    Task,
    TaskArtifactUpdateEvent,
    TaskState,
    TaskStatus,
    TaskStatusUpdateEvent,
)
from a2a.utils.errors import TaskNotFoundError, UnsupportedOperationError
from a2a.utils.signing import create_agent_card_signer
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat
from google.protobuf.json_format import MessageToDict
from starlette.applications import Starlette
from starlette.routing import Route
from starlette.types import ASGIApp

from remit.adapters.a2a.parts import CHAIN
from remit.server.serve import listening

W, C, F = TaskState.TASK_STATE_WORKING, TaskState.TASK_STATE_COMPLETED, TaskState.TASK_STATE_FAILED
R, Q, X = TaskState.TASK_STATE_REJECTED, TaskState.TASK_STATE_INPUT_REQUIRED, TaskState.TASK_STATE_CANCELED
A = TaskState.TASK_STATE_AUTH_REQUIRED
ENDS = {"fail": F, "reject": R, "ask": Q, "login": A}
SAYS = {"fail": "no ink", "reject": "not on Sundays", "ask": "Which?", "login": "May I?"}


class Stranger(RequestHandler):
    """An agent of another server. It keeps what it was sent, and works on "hang" until somebody opens the gate."""

    def __init__(self, then: Callable[[Message], Awaitable[str]] | None = None) -> None:
        self.sent: list[Message] = []
        self.tokens: set[str] = set()
        self.cancelled: list[str] = []
        self.tasks: dict[str, Task] = {}
        self.working = anyio.Event()
        self.followed = anyio.Event()
        self.gate = anyio.Event()
        self.gives: list[Part] = []  # beside its text
        self._then = then

    @property
    def chains(self) -> list[dict[str, Any]]:
        """What came along with each message."""
        return [MessageToDict(one.metadata)[CHAIN] for one in self.sent]

    async def on_message_send(self, params: SendMessageRequest, context: ServerCallContext) -> Task | Message:
        events = [event async for event in self.on_message_send_stream(params, context)]
        first = events[0]
        return first if isinstance(first, Message) else self.tasks[cast("Task", first).id]

    async def on_message_send_stream(
        self, params: SendMessageRequest, context: ServerCallContext
    ) -> AsyncGenerator[Event]:
        message = params.message
        self.sent.append(message)
        self.tokens.add(context.state["headers"].get("authorization", ""))
        text = message.parts[0].text
        if text == "hello":
            yield Message(message_id="1", role=Role.ROLE_AGENT, parts=[Part(text="hello yourself")])
            return
        if text == "late":  # somebody else has answered
            self._now(self.tasks[message.task_id], W)
            self.gate.set()
            raise UnsupportedOperationError
        task = self.tasks.setdefault(message.task_id or f"t{len(self.sent)}", Task(context_id="c"))
        task.id = message.task_id or f"t{len(self.sent)}"
        self._now(task, W)
        yield task
        if params.configuration.return_immediately and text == "later":
            return
        async for event in self._events(task, text, message):
            yield event

    async def _events(self, task: Task, text: str, message: Message) -> AsyncGenerator[Event]:
        yield self._now(task, W, "half way")
        if text == "mixed":
            yield TaskStatusUpdateEvent(task_id="another", context_id="c", status=TaskStatus(state=F))
        if text == "hang":
            self.working.set()
            await self.gate.wait()
        if task.status.state == X:
            yield self._now(task, X)
            return
        said = await self._then(message) if self._then is not None else f"did {text}"
        state = ENDS.get(text, C)
        if state == C:
            parts = [Part(text=said)] if said else []
            task.artifacts.append(Artifact(artifact_id="a", parts=[*parts, *self.gives]))
            yield TaskArtifactUpdateEvent(task_id=task.id, context_id="c", artifact=task.artifacts[0])
        yield self._now(task, state, SAYS.get(text, ""))

    def _now(self, task: Task, state: Any, text: str = "") -> TaskStatusUpdateEvent:
        status = TaskStatus(state=state)
        if text:
            status.message.CopyFrom(Message(message_id="s", role=Role.ROLE_AGENT, parts=[Part(text=text)]))
        task.status.CopyFrom(status)
        return TaskStatusUpdateEvent(task_id=task.id, context_id="c", status=status)

    async def on_subscribe_to_task(self, params: Any, context: ServerCallContext) -> AsyncGenerator[Event]:
        task = self._task(params.id)
        if task.status.state != W:
            raise UnsupportedOperationError
        self.followed.set()
        yield task
        async for event in self._events(task, "hang", Message()):
            yield event

    async def on_get_task(self, params: Any, context: ServerCallContext) -> Task:
        task = self._task(params.id)
        if task.status.state == W and self.gate.is_set():
            task.artifacts.append(Artifact(artifact_id="a", parts=[Part(text="did it later")]))
            self._now(task, C)
        return task

    async def on_cancel_task(self, params: Any, context: ServerCallContext) -> Task:
        self.cancelled.append(params.id)
        task = self._task(params.id)
        self._now(task, X)
        self.gate.set()
        return task

    def _task(self, id: str) -> Task:
        if id not in self.tasks:
            raise TaskNotFoundError
        return self.tasks[id]

    async def on_list_tasks(self, params: Any, context: ServerCallContext) -> Any:
        raise UnsupportedOperationError

    async def on_create_task_push_notification_config(self, params: Any, context: ServerCallContext) -> Any:
        raise UnsupportedOperationError

    async def on_get_task_push_notification_config(self, params: Any, context: ServerCallContext) -> Any:
        raise UnsupportedOperationError

    async def on_list_task_push_notification_configs(self, params: Any, context: ServerCallContext) -> Any:
        raise UnsupportedOperationError

    async def on_delete_task_push_notification_config(self, params: Any, context: ServerCallContext) -> Any:
        raise UnsupportedOperationError

    async def on_get_extended_agent_card(self, params: Any, context: ServerCallContext) -> Any:
        raise UnsupportedOperationError


class Unsignalled(uvicorn.Server):
    """uvicorn that leaves signals alone."""

    @contextmanager
    def capture_signals(self) -> Generator[None]:
        yield


@asynccontextmanager
async def on_port(app: ASGIApp, port: int = 0) -> AsyncGenerator[str]:
    """Serve an application on this machine, and tell its address."""
    listener = listening("127.0.0.1", port)
    config = uvicorn.Config(app, log_config=None, lifespan="on", timeout_graceful_shutdown=1)
    server = Unsignalled(config)
    running = asyncio.create_task(server.serve([listener]))
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    finally:
        server.should_exit = True
        await running


@asynccontextmanager
async def stranger(
    handler: Stranger, *, binding: str = "JSONRPC", streams: bool = True, leads_to: str = "", key: str = ""
) -> AsyncGenerator[str]:
    """Serve an agent of another vendor, and tell its address."""
    card = AgentCard(
        name="stranger",
        description="d",
        version="1",
        capabilities=AgentCapabilities(streaming=streams),
        default_input_modes=["text/plain"],
        default_output_modes=["text/plain"],
        skills=[AgentSkill(id="s", name="s", description="s", tags=["s"])],
    )
    rest = [one for one in create_rest_routes(handler, path_prefix="/agent/rest") if isinstance(one, Route)]
    routes = [*create_jsonrpc_routes(handler, "/agent/rpc"), *rest]
    app = Starlette(routes=routes)
    async with on_port(app) as address:
        place = f"{leads_to or address}/agent/{'rpc' if binding == 'JSONRPC' else 'rest'}"
        card.supported_interfaces.append(AgentInterface(url=place, protocol_binding=binding, protocol_version="1.0"))
        if key:
            create_agent_card_signer(key, {"alg": "ES256", "kid": "k", "typ": "JOSE", "jku": None})(card)
        app.routes.extend(create_agent_card_routes(card, card_url="/agent/.well-known/agent-card.json"))
        yield f"{address}/agent"


def key_pair() -> tuple[str, str]:
    """A private key that signs cards, and its public key."""
    made = ec.generate_private_key(ec.SECP256R1())
    private = made.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    public = made.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    return private.decode(), public.decode()
