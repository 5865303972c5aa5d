"""Agents of a workspace as A2A agents: JSON-RPC, HTTP+JSON and signed cards, over the same tasks as everything else.

An A2A task is a task of remit, with the same id; its context is a session; its question is a question to a person. The
workspace has the only state, so any server on the same store answers for a task.
"""

import re
from collections.abc import AsyncGenerator
from contextlib import aclosing
from secrets import token_hex
from typing import Any, Final, NamedTuple, cast

import anyio
from a2a.server.context import ServerCallContext
from a2a.server.events.event_queue import Event
from a2a.server.request_handlers.request_handler import (
    RequestHandler,
    validate_request_params,  # pyright: ignore[reportUnknownVariableType] - it returns what it is given
)
from a2a.types.a2a_pb2 import (
    AgentCard,
    Artifact,
    CancelTaskRequest,
    DeleteTaskPushNotificationConfigRequest,
    GetTaskPushNotificationConfigRequest,
    GetTaskRequest,
    ListTaskPushNotificationConfigsRequest,
    ListTaskPushNotificationConfigsResponse,
    ListTasksRequest,
    ListTasksResponse,
    Message,
    Role,
    SendMessageRequest,
    SubscribeToTaskRequest,
    Task,
    TaskArtifactUpdateEvent,
    TaskPushNotificationConfig,
    TaskState,
    TaskStatus,
    TaskStatusUpdateEvent,
)
from a2a.utils.errors import (
    ContentTypeNotSupportedError,
    ExtendedAgentCardNotConfiguredError,
    InternalError,
    InvalidParamsError,
    TaskNotCancelableError,
    TaskNotFoundError,
    UnsupportedOperationError,
)

from remit.adapters.a2a.call import A2ACall, call_of
from remit.adapters.a2a.configs import check_config, configs_of, remove_config, set_config
from remit.adapters.a2a.files import files_of, named_file
from remit.adapters.a2a.parts import (
    ABOVE,
    HANDLE,
    MOST_ABOVE,
    ChainData,
    chain_in,
    data_in,
    parts_of,
    text_part,
    texts_in,
)
from remit.core.bounds import Bounds
from remit.core.lifecycle import TERMINAL
from remit.core.question import Inquiry
from remit.core.times import aware
from remit.core.values import Json
from remit.errors import BadInput, Conflict, NotFound, Refused, RemitError, StoreError, Unauthorised
from remit.runtime.handles import held
from remit.runtime.tasks import Status

HOLD: Final = 300.0  # seconds that a request waits for the end of its task
CHECK: Final = 0.3  # seconds between two looks whether the key still counts: with its cache, less than a second
LOOK: Final = 6  # checks between two looks at a task of which nothing is heard
STOP: Final = 5.0  # seconds to wait for a cancelled task
PAGE, MOST = 50, 100  # tasks on a page
_LISTED: Final = 1_000
_ID: Final = re.compile(r"[a-z2-7]{16}", re.ASCII)
_CONTEXT: Final = re.compile(r"[A-Za-z0-9._:-]{1,64}", re.ASCII)

_STATES: Final[dict[str, int]] = {
    "pending": TaskState.TASK_STATE_SUBMITTED,
    "running": TaskState.TASK_STATE_WORKING,
    "waiting": TaskState.TASK_STATE_WORKING,
    "cancelling": TaskState.TASK_STATE_WORKING,
    "completed": TaskState.TASK_STATE_COMPLETED,
    "failed": TaskState.TASK_STATE_FAILED,
    "dead": TaskState.TASK_STATE_FAILED,
    "cancelled": TaskState.TASK_STATE_CANCELED,
}


class Seen(NamedTuple):
    """A task at one moment, and what it asks of the caller."""

    status: Status
    question: Inquiry | None = None
    progress: str = ""

    @property
    def state(self) -> int:
        asks = self.question is not None
        return TaskState.TASK_STATE_INPUT_REQUIRED if asks else _STATES[self.status.state]

    @property
    def is_over(self) -> bool:
        return self.status.state in TERMINAL

    @property
    def said(self) -> str:
        """What the task says: its question, why it has no result, or how far it is."""
        if self.question is not None:
            choices = "".join(f"\n- {one}" for one in _choices(self.question))
            return f"{self.question.text}{choices}"
        return self.status.error if self.is_over else self.progress


def _choices(question: Inquiry) -> tuple[str, ...]:
    return question.choices if question.kind == "ask" else ("approve", "reject")


class AgentRequests(RequestHandler):
    """The requests of A2A, as calls of a workspace. `hold` is how long a request waits for the end of its task."""

    def __init__(self, hold: float = HOLD) -> None:
        self._hold = hold

    @validate_request_params
    async def on_get_task(self, params: GetTaskRequest, context: ServerCallContext) -> Task | None:
        call = call_of(context)
        return await task_of(call, await looked_at(call, params.id), _history(params))

    @validate_request_params
    async def on_list_tasks(self, params: ListTasksRequest, context: ServerCallContext) -> ListTasksResponse:
        call = call_of(context)
        size, before = _page(params)
        which: dict[str, Any] = {"agent": call.agent, "by": call.caller.by, "limit": _LISTED}
        if params.context_id:
            which["session"] = _session(call, params.context_id)
        if params.HasField("status_timestamp_after"):
            which["since"] = aware(max(0, params.status_timestamp_after.ToMicroseconds()))
        found = await call.workspace.tasks.list(**which)
        looks = [Seen(one, await _question(call, one)) for one in found]
        if params.status:
            looks = [one for one in looks if one.state == params.status]
        rest = [one for one in looks if before is None or one.status.began < before]
        shown = rest[:size]
        result = "data" if params.include_artifacts else ""
        tasks = [await task_of(call, one, _history(params), result=result) for one in shown]
        following = str(shown[-1].status.began) if len(rest) > size else ""
        return ListTasksResponse(tasks=tasks, next_page_token=following, page_size=size, total_size=len(looks))

    @validate_request_params
    async def on_cancel_task(self, params: CancelTaskRequest, context: ServerCallContext) -> Task | None:
        call = call_of(context)
        look = await looked_at(call, params.id)
        if look.is_over:
            raise TaskNotCancelableError
        task = call.workspace.tasks.get(look.status.id)
        await task.cancel("cancelled by its asker", by=call.caller.by)
        with anyio.move_on_after(STOP):
            await task.wait()
        return await task_of(call, await looked_at(call, params.id))

    @validate_request_params
    async def on_message_send(self, params: SendMessageRequest, context: ServerCallContext) -> Task | Message:
        call = call_of(context)
        taken = await _taken(call, params)
        if isinstance(taken, Task):
            return taken
        if not params.configuration.return_immediately:
            with anyio.move_on_after(self._hold):
                async with aclosing(_watched(call, taken)) as events:
                    async for _ in events:
                        pass
        return await task_of(call, await looked_at(call, taken), _history(params.configuration))

    @validate_request_params
    async def on_message_send_stream(
        self, params: SendMessageRequest, context: ServerCallContext
    ) -> AsyncGenerator[Event]:
        call = call_of(context)
        taken = await _taken(call, params)
        if isinstance(taken, Task):
            yield taken
            return
        async with aclosing(_watched(call, taken, _history(params.configuration))) as events:
            async for event in events:
                yield event

    @validate_request_params
    async def on_subscribe_to_task(
        self, params: SubscribeToTaskRequest, context: ServerCallContext
    ) -> AsyncGenerator[Event]:
        call = call_of(context)
        if (await looked_at(call, params.id)).is_over:
            raise UnsupportedOperationError("the task has ended; get it instead")
        async with aclosing(_watched(call, params.id, stays=True)) as events:
            async for event in events:
                yield event

    @validate_request_params
    async def on_create_task_push_notification_config(
        self, params: TaskPushNotificationConfig, context: ServerCallContext
    ) -> TaskPushNotificationConfig:
        call = call_of(context)
        return await set_config(call, (await looked_at(call, params.task_id)).status, params)

    @validate_request_params
    async def on_get_task_push_notification_config(
        self, params: GetTaskPushNotificationConfigRequest, context: ServerCallContext
    ) -> TaskPushNotificationConfig:
        call = call_of(context)
        found = await configs_of(call, (await looked_at(call, params.task_id)).status)
        for one in found:
            if one.id == params.id:
                return one
        raise TaskNotFoundError

    @validate_request_params
    async def on_list_task_push_notification_configs(
        self, params: ListTaskPushNotificationConfigsRequest, context: ServerCallContext
    ) -> ListTaskPushNotificationConfigsResponse:
        call = call_of(context)
        found = await configs_of(call, (await looked_at(call, params.task_id)).status)
        return ListTaskPushNotificationConfigsResponse(configs=found)

    @validate_request_params
    async def on_delete_task_push_notification_config(
        self, params: DeleteTaskPushNotificationConfigRequest, context: ServerCallContext
    ) -> None:
        call = call_of(context)
        await remove_config(call, (await looked_at(call, params.task_id)).status, params.id)

    async def on_get_extended_agent_card(self, params: Any, context: ServerCallContext) -> AgentCard:
        raise ExtendedAgentCardNotConfiguredError


def _history(params: Any) -> bool:
    """Whether a task is wanted with its messages. Raise `InvalidParamsError` for a number below zero."""
    if not params.HasField("history_length"):
        return True
    if params.history_length < 0:
        raise InvalidParamsError("historyLength is a number from 0")
    return params.history_length > 0


def _page(params: ListTasksRequest) -> tuple[int, int | None]:
    size = params.page_size if params.HasField("page_size") else PAGE
    if not 1 <= size <= MOST:
        raise InvalidParamsError(f"pageSize is a number from 1 to {MOST}")
    token = params.page_token
    if token and not (token.isascii() and token.isdigit() and len(token) <= 18):
        raise InvalidParamsError("pageToken is the nextPageToken of the page before")
    return size, int(token) if token else None


# -- looking --------------------------------------------------------------------------------------------------------


async def looked_at(call: A2ACall, task: str) -> Seen:
    """Return a task of the caller as it is now. An unknown one, one of somebody else and an impossible id look the
    same."""
    status = None
    if _ID.fullmatch(task):
        try:
            status = await call.workspace.tasks.get(task).status()
        except NotFound:
            status = None
        except StoreError:
            raise InternalError(_STORE) from None
    if status is None or status.by != call.caller.by:
        raise TaskNotFoundError
    return Seen(status, await _question(call, status))


async def _question(call: A2ACall, status: Status) -> Inquiry | None:
    """Return the open question of a task, or of its run, that the caller may answer: an agent's question, and with the
    scope `approve` also what needs an approval."""
    if status.state != "waiting":
        return None
    for one in await call.workspace.questions.list(limit=_LISTED):
        is_its_own = one.task == status.id or (not status.parent and one.run == status.run)
        if is_its_own and (one.kind == "ask" or call.caller.may("approve")):
            return one
    return None


async def _watched(
    call: A2ACall, task: str, history: bool = True, *, stays: bool = False
) -> AsyncGenerator[Task | TaskStatusUpdateEvent | TaskArtifactUpdateEvent]:
    """Yield a task, and then what happens to it, until it ends or the key does not count any more; unless `stays`,
    until it asks something."""
    run = (await looked_at(call, task)).status.run
    async with call.workspace.journal.follow(run=run) as follow:
        look = await looked_at(call, task)
        yield await task_of(call, look, history)
        checks = 0
        while not look.is_over and (stays or look.question is None):
            heard = await follow.next(CHECK)
            try:
                await call.check()
            except Unauthorised:
                return
            checks = 0 if heard else checks + 1
            if checks % LOOK:
                continue
            before, look = look, await looked_at(call, task)
            if not look.is_over and look.question is None:
                look = look._replace(progress=await _progress(call, task, before.progress))
            if look.status.state == "completed":
                made = await _artifact(call, look)
                yield TaskArtifactUpdateEvent(
                    task_id=task, context_id=call.context_of(look.status), artifact=made, last_chunk=True
                )
            if (look.state, look.said) != (before.state, before.said):
                yield TaskStatusUpdateEvent(
                    task_id=task, context_id=call.context_of(look.status), status=status_of(call, look)
                )


async def _progress(call: A2ACall, task: str, before: str) -> str:
    found = (await call.workspace.tasks.progress()).get(task)
    return before if found is None else found.text


async def task_of(call: A2ACall, look: Seen, history: bool = True, *, result: str = "files") -> Task:
    """Return a task as A2A has it; `result` says how: with the files that it names, only as "data", or not at all."""
    status = look.status
    task = Task(id=status.id, context_id=call.context_of(status), status=status_of(call, look))
    if result and status.state == "completed":
        task.artifacts.append(await _artifact(call, look, with_files=result == "files"))
    if history:
        said = Message(
            message_id=f"{status.id}-1",
            role=Role.ROLE_USER,
            task_id=status.id,
            context_id=task.context_id,
            parts=[text_part(status.task)],
        )
        task.history.append(said)
    return task


def status_of(call: A2ACall, look: Seen) -> TaskStatus:
    made = TaskStatus(state=cast("Any", look.state))
    status = look.status
    made.timestamp.FromMicroseconds(status.ended_at or status.claimed_at or status.asked_at)
    if look.said:
        made.message.CopyFrom(
            Message(
                message_id=f"{status.id}-{status.state}-{status.attempt}",
                role=Role.ROLE_AGENT,
                task_id=status.id,
                context_id=call.context_of(status),
                parts=[text_part(look.said)],
            )
        )
    return made


async def _artifact(call: A2ACall, look: Seen, *, with_files: bool = True) -> Artifact:
    parts, status = parts_of(look.status.result), look.status
    if with_files:
        parts += await files_of(call.workspace, status.id, status.result)
    return Artifact(artifact_id=f"{status.id}-result", name="result", parts=parts)


# -- asking ---------------------------------------------------------------------------------------------------------


async def _taken(call: A2ACall, params: SendMessageRequest) -> str | Task:
    """Take a message: a new task, or the answer to a question. Return the task's id, or a rejected task."""
    message, config = params.message, params.configuration.task_push_notification_config
    if any(part.HasField("url") for part in message.parts):
        raise ContentTypeNotSupportedError("files are not fetched from elsewhere; send their content")
    if message.task_id and any(part.HasField("raw") for part in message.parts):
        raise ContentTypeNotSupportedError("a question is answered with text, without files")
    tells = params.configuration.HasField("task_push_notification_config")
    if tells:
        check_config(call, config)
    try:
        task = await (_answered if message.task_id else _submitted)(call, message)
    except (Refused, NotFound) as no:
        context = message.context_id if _CONTEXT.fullmatch(message.context_id) else token_hex(8)
        sentence = str(no) if isinstance(no, Refused) else "there is no such agent that this key may ask"
        return _rejected(sentence, context)
    except Conflict:
        raise InvalidParamsError("this was asked or answered differently before; look at the task again") from None
    except StoreError:
        raise InternalError(_STORE) from None
    except RemitError:  # bad input: its sentence may repeat what was sent
        raise InvalidParamsError(
            "the message cannot be taken: a text or a value is too long, empty or too deep"
        ) from None
    if tells:
        look = await looked_at(call, task)
        await set_config(call, look.status, config, now=look.is_over)
    return task


def _rejected(sentence: str, context: str) -> Task:
    said = Message(message_id=token_hex(8), role=Role.ROLE_AGENT, context_id=context, parts=[text_part(sentence)])
    return Task(
        id=token_hex(8),
        context_id=context,
        status=TaskStatus(state=TaskState.TASK_STATE_REJECTED, message=said),
    )


async def _submitted(call: A2ACall, message: Message) -> str:
    """Submit a task in the name of the caller's card: as a part of the task that it is for, or as a run."""
    chain, caller = chain_in(message), call.caller
    values = data_in(message.parts)
    how: dict[str, Any] = {"by": caller.by, "key": call.key(chain.key or token_hex(16)), "ceiling": caller.bounds}
    if chain.deadline is not None or chain.credits:
        how["within"] = _narrower(chain)
    if values:
        how["data"] = values[0] if len(values) == 1 else values
    text = "\n\n".join([texts_in(message.parts), *await _saved(call, message, how["key"])]).strip()
    under = await _parent(call, chain)
    if caller.agent:
        how |= {"asker": caller.agent, "under": under, "trust": await _trust(call)}
    if not under:
        how["session"] = _session(call, message.context_id or chain.key or token_hex(8))
        if handles := " ".join(one for one in (chain.handle, *chain.above) if one).split()[:MOST_ABOVE]:
            how["meta"] = {ABOVE: " ".join(handles)}
    return (await call.workspace.submit(call.agent, text, **how)).id


async def _saved(call: A2ACall, message: Message, key: str) -> list[str]:
    """Save the files of a message, and return the references to them, which go into the text of the task."""
    files = [part for part in message.parts if part.HasField("raw")]
    if not files:
        return []
    if call.agent not in {card.name for card in await call.workspace.agents.list()}:
        raise NotFound("there is no such agent")  # before anything is kept
    save, by = call.workspace.artifacts.save, call.caller.by
    saved = [
        await save(part.raw, *named_file(part), trust="untrusted", op=f"{key}/{number}", by=by)
        for number, part in enumerate(files)
    ]
    return [str(one) for one in saved]


def _narrower(chain: ChainData) -> Bounds:
    """Return the bounds that a request asks for. Nothing in a request widens those of the key."""
    try:
        return Bounds(deadline=chain.deadline, credits=chain.credits or None)
    except BadInput:
        raise InvalidParamsError("the deadline or the credits of the request are not valid") from None


async def _trust(call: A2ACall) -> str:
    """Return the trust label of what the caller writes: that of its card."""
    cards = {card.name: card for card in await call.workspace.agents.list()}
    card = cards.get(call.caller.agent)
    return "trusted" if card is not None and card.trusted_output else "untrusted"


async def _parent(call: A2ACall, chain: ChainData) -> str:
    """Return the task that a request is a part of, or "" if it is none of ours.

    A handle has no authority: the task must be open, and held by the card of the key. Raise `Refused` if it has ended.
    """
    if not call.caller.agent:
        return ""
    for handle in (chain.handle, *chain.above):
        task, _, mark = handle.partition(".")
        found = await held(call.workspace, task, HANDLE, mark) if task else None
        if found is not None and found.holder == call.caller.agent:
            if found.is_over:
                raise Refused("the task that this is a part of has ended; nothing can be asked for it", rule="over")
            return task
    return ""


async def _answered(call: A2ACall, message: Message) -> str:
    """Answer the open question of a task with a message."""
    look = await looked_at(call, message.task_id)
    if message.context_id and message.context_id != call.context_of(look.status):
        raise InvalidParamsError("the task belongs to another context")
    question = look.question
    if question is None:
        raise UnsupportedOperationError("the task has ended" if look.is_over else "the task does not ask anything now")
    said, questions = texts_in(message.parts) or _value_of(data_in(message.parts)), call.workspace.questions
    key = chain_in(message).key
    how = {"by": call.caller.by, "channel": "a2a", "op": call.key(key) if key else ""}
    if question.kind == "ask":
        await questions.answer(question.id, said, **how)
    elif said.strip().lower() == "approve":
        await questions.approve(question.id, **how)
    elif said.strip().lower().startswith("reject"):
        await questions.reject(question.id, why=said.strip()[len("reject") :].lstrip(" :,")[:400], **how)
    else:
        raise InvalidParamsError("answer with approve, or with reject and the reason")
    return look.status.id


def _value_of(values: list[Json]) -> str:
    return values[0] if len(values) == 1 and isinstance(values[0], str) else ""


def _session(call: A2ACall, context: str) -> str:
    if not _CONTEXT.fullmatch(context):
        raise InvalidParamsError("contextId has 1 to 64 characters: letters, digits, and . _ : -")
    return f"{call.sessions}{context}"


_STORE: Final = "the store does not answer; try again later"
