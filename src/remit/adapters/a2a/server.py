"""Agents of a workspace as A2A agents: JSON-RPC, HTTP+JSON and signed cards, over the same tasks as everything else.

An A2A task is a task of remit, with the same id; its context is a session; its question is a question to a person. The
workspace has the only state, so any server on the same store answers for a task.
"""

import re
from collections.abc import AsyncGenerator
from contextlib import aclosing
from secrets import token_hex
from typing import Any, Final

import anyio
from a2a.server.context import ServerCallContext
from a2a.server.events.event_queue import Event
from a2a.server.request_handlers.request_handler import (
    RequestHandler,
    validate_request_params,  # pyright: ignore[reportUnknownVariableType] - it returns what it is given
)
from a2a.types.a2a_pb2 import (
    AgentCard,
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
    TaskPushNotificationConfig,
    TaskState,
    TaskStatus,
)
from a2a.utils.errors import (
    ContentTypeNotSupportedError,
    InternalError,
    InvalidParamsError,
    TaskNotCancelableError,
    TaskNotFoundError,
    UnsupportedOperationError,
)

from remit.adapters.a2a.call import CONTEXT, MESSAGE, A2ACall, call_of
from remit.adapters.a2a.configs import check_config, configs_of, remove_config, set_config
from remit.adapters.a2a.files import named_file
from remit.adapters.a2a.looks import (
    ALL,
    CHANNEL,
    NOT_NOW,
    Seen,
    asks,
    looked_at,
    never,
    seen_task,
    task_of,
    watched,
)
from remit.adapters.a2a.parts import (
    ABOVE,
    HANDLE,
    MOST_ABOVE,
    ChainData,
    chain_in,
    data_in,
    text_part,
    texts_in,
)
from remit.core.bounds import Bounds
from remit.core.values import Json
from remit.errors import BadInput, Conflict, NotFound, Refused, RemitError, StoreError
from remit.runtime.handles import handle_holder

HOLD: Final = 300.0  # seconds that a request waits for the end of its task
STOP: Final = 5.0  # seconds to wait for a cancelled task
PAGE, MOST = 50, 100  # tasks on a page
_LISTED: Final = 1_000
_TOKEN: Final = re.compile(r"([0-9]{1,18})-([0-9]{1,18})", re.ASCII)
_NAME: Final = re.compile(r"[\x21-\x7e]{1,200}", re.ASCII)  # of a context, or a message


class AgentRequests(RequestHandler):
    """The requests of A2A, as calls of a workspace. `hold` is how many seconds a request waits for its task to end."""

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
        history, result = _history(params), "data" if params.include_artifacts else ""
        if not params.status and context.state.get("remit.status") not in (None, "", "TASK_STATE_UNSPECIFIED", 0):
            raise InvalidParamsError("status is the state of a task, such as TASK_STATE_WORKING")
        looks = await _matching_tasks(call, params)
        rest = [one for one in looks if before is None or _place(one) < before]
        shown = rest[:size]
        tasks = [await task_of(call, one, history, result=result) for one in shown]
        following = "-".join(map(str, _place(shown[-1]))) if len(rest) > size else ""
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
        taken = await _start_or_answer(call, params)
        if isinstance(taken, Task):
            return taken
        if not params.configuration.return_immediately:
            with anyio.move_on_after(self._hold):
                async with aclosing(watched(call, taken, asks, 0)) as events:
                    async for _ in events:
                        pass
        return await task_of(call, await looked_at(call, taken), _history(params.configuration))

    @validate_request_params
    async def on_message_send_stream(
        self, params: SendMessageRequest, context: ServerCallContext
    ) -> AsyncGenerator[Event]:
        call = call_of(context)
        taken = await _start_or_answer(call, params)
        if isinstance(taken, Task):
            yield taken
            return
        async with aclosing(watched(call, taken, asks, _history(params.configuration))) as events:
            async for event in events:
                yield event

    @validate_request_params
    async def on_subscribe_to_task(
        self, params: SubscribeToTaskRequest, context: ServerCallContext
    ) -> AsyncGenerator[Event]:
        call = call_of(context)
        if (await looked_at(call, params.id)).is_over:
            raise UnsupportedOperationError("the task has ended; get it instead")
        async with aclosing(watched(call, params.id, never)) as events:
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
        raise UnsupportedOperationError("this agent has no extended card; every caller sees the same one")


def _history(params: Any) -> int:
    """Return the requested number of messages of a task. Raise `InvalidParamsError` for a number below zero."""
    if not params.HasField("history_length"):
        return ALL
    if params.history_length < 0:
        raise InvalidParamsError("historyLength is a number from 0")
    return params.history_length


# -- pages ----------------------------------------------------------------------------------------------------------


async def _matching_tasks(call: A2ACall, params: ListTasksRequest) -> list[Seen]:
    """Return the tasks that match, the one that changed last first."""
    which: dict[str, Any] = {"agent": call.agent, "by": call.caller.by, "limit": _LISTED}
    if params.context_id:
        which["session"] = _session(call, params.context_id)
    looks = [await seen_task(call, one) for one in await call.workspace.tasks.list(**which)]
    if params.status:
        looks = [one for one in looks if one.state == params.status]
    if params.HasField("status_timestamp_after"):
        since = params.status_timestamp_after.ToMicroseconds()
        looks = [one for one in looks if one.at >= since]
    return sorted(looks, key=_place, reverse=True)


def _place(look: Seen) -> tuple[int, int]:
    """Return the sort key of a task in a list: when its state last changed, and the number of its first event."""
    return look.at, look.status.began


def _page(params: ListTasksRequest) -> tuple[int, tuple[int, int] | None]:
    """Return the requested number of tasks, and the sort key after which they start, or None for the first page. Raise
    `InvalidParamsError` if either is not valid."""
    size = params.page_size if params.HasField("page_size") else PAGE
    if not 1 <= size <= MOST:
        raise InvalidParamsError(f"pageSize is a number from 1 to {MOST}")
    if not params.page_token:
        return size, None
    found = _TOKEN.fullmatch(params.page_token)
    if found is None:
        raise InvalidParamsError("pageToken is the nextPageToken of the page before")
    return size, (int(found[1]), int(found[2]))


# -- asking ---------------------------------------------------------------------------------------------------------


async def _start_or_answer(call: A2ACall, params: SendMessageRequest) -> str | Task:
    """Handle a message: start a new task, or answer a question. Return the task's id, or an A2A task in the state
    "rejected" if remit refuses it or there is no such agent. Raise the SDK's errors for an invalid message or a failed
    store."""
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
        context = message.context_id if _NAME.fullmatch(message.context_id) else token_hex(8)
        sentence = str(no) if isinstance(no, Refused) else "there is no such agent that this key may ask"
        return _rejected(sentence, context)
    except Conflict:
        raise InvalidParamsError("this was asked or answered differently before; look at the task again") from None
    except StoreError:
        raise InternalError(NOT_NOW) from None
    except RemitError:  # bad input: its sentence may repeat what was sent
        raise InvalidParamsError(
            "the message cannot be accepted: a text or a value is too long, empty or too deep"
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
    """Submit a message as a task of the agent, and return its id. If the access key has an agent, that agent is the
    asker. The task is a subtask of the open task that the request is a part of, or else the root of a new run."""
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
        context = message.context_id or chain.key or token_hex(8)
        how["session"] = _session(call, context)
        how["meta"] = _run_metadata(call, message, context, chain)
    return (await call.workspace.submit(call.agent, text, **how)).id


def _run_metadata(call: A2ACall, message: Message, context: str, chain: ChainData) -> dict[str, str]:
    """Return the metadata that is stored with a run: the tasks of other servers that it is for, and the ids that its
    client gave."""
    handles = " ".join(one for one in (chain.handle, *chain.above) if one).split()[:MOST_ABOVE]
    kept = {ABOVE: " ".join(handles)} if handles else {}
    if call.is_long(context):
        kept[CONTEXT] = context
    if _NAME.fullmatch(message.message_id):
        kept[MESSAGE] = message.message_id
    return kept


async def _saved(call: A2ACall, message: Message, key: str) -> list[str]:
    """Save the files of a message, and return the references to them, which go into the text of the task. Raise
    `NotFound` before that if there is no such agent."""
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
    """Return "trusted" if the card of the access key's agent declares its output trusted, otherwise "untrusted"."""
    cards = {card.name: card for card in await call.workspace.agents.list()}
    card = cards.get(call.caller.agent)
    return "trusted" if card is not None and card.trusted_output else "untrusted"


async def _parent(call: A2ACall, chain: ChainData) -> str:
    """Return the id of the task that a request is a part of, or "" if the request names no task that the access key's
    agent holds.

    A handle alone permits nothing. Raise `Refused` if that task has ended.
    """
    if not call.caller.agent:
        return ""
    for handle in (chain.handle, *chain.above):
        task, _, mark = handle.partition(".")
        found = await handle_holder(call.workspace, task, HANDLE, mark) if task else None
        if found is not None and found.holder == call.caller.agent:
            if found.is_over:
                raise Refused("the task that this is a part of has ended; nothing can be asked for it", rule="over")
            return task
    return ""


async def _answered(call: A2ACall, message: Message) -> str:
    """Answer the open question of a task with a message. Return the id of the task."""
    look = await looked_at(call, message.task_id)
    if message.context_id and message.context_id != call.context_of(look.status):
        raise InvalidParamsError("the task belongs to another context")
    question = look.question
    if question is None:
        raise UnsupportedOperationError("the task has ended" if look.is_over else "the task does not ask anything now")
    said, questions = texts_in(message.parts) or _value_of(data_in(message.parts)), call.workspace.questions
    key = chain_in(message).key
    how = {"by": call.caller.by, "channel": CHANNEL, "op": call.key(key) if key else ""}
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
    if not _NAME.fullmatch(context):
        raise InvalidParamsError("contextId has 1 to 200 characters: printable ASCII, without spaces")
    return call.session_of(context)
