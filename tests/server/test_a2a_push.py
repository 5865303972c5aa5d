"""Clients of A2A that are told of their tasks at an address of theirs."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import anyio
import httpx
import pytest
from a2a.client import Client
from a2a.types.a2a_pb2 import (
    AuthenticationInfo,
    DeleteTaskPushNotificationConfigRequest,
    GetTaskPushNotificationConfigRequest,
    ListTaskPushNotificationConfigsRequest,
    SendMessageRequest,
    StreamResponse,
    TaskPushNotificationConfig,
    TaskState,
)
from a2a.utils.errors import InvalidParamsError, PushNotificationNotSupportedError, TaskNotFoundError
from google.protobuf.json_format import ParseDict

from adapters.standin import StandIn, stand_in
from engine.people import asked
from remit import Runtime, Turn
from remit.adapters.vault import fresh_master
from remit.runtime.workspace import opening_of
from remit.server.callers import APPROVE, RUN, Caller
from remit.server.carrying import carrying
from remit.server.tenants import Tenants
from server.serving import app_of, caller, client
from server.test_a2a import BINDINGS, asking, says
from teams import team

pytestmark = pytest.mark.anyio


async def works(turn: Turn) -> object:
    return await turn.ask_human("which colour?") if turn.task == "ask" else turn.task.upper()


@pytest.fixture(autouse=True)
def permitted(monkeypatch: pytest.MonkeyPatch) -> None:
    """The operator has a master key, and permits this machine."""
    monkeypatch.setenv("REMIT_MASTER_KEY", fresh_master().reveal())
    monkeypatch.setenv("REMIT_HOOK_NETWORKS", "127.0.0.0/8")


@asynccontextmanager
async def told(binding: str = "JSONRPC") -> AsyncIterator[tuple[Runtime, StandIn, Client, str]]:
    """A team, a receiver, a client with a key of the store, and the id of that key."""
    with team() as rt:
        rt.agent("works")(works)
        access = (await rt.workspace.access.make("c", scopes=["run", "approve"])).id
        who = Caller(access, "default", frozenset((RUN, APPROVE)), by=f"access:{access}")
        tenants = Tenants(opening_of(rt.workspace).database, (rt.workspace,))
        app = app_of(rt, who, caller())
        async with stand_in() as server, rt.serving(), carrying(tenants), asking(app, "works", binding, access) as own:
            yield rt, server, own, access


def wanting(text: str, url: str, **more: Any) -> SendMessageRequest:
    request = says(text)
    request.configuration.return_immediately = True
    config = TaskPushNotificationConfig(url=url, token="t0k3n", **more)
    request.configuration.task_push_notification_config.CopyFrom(config)
    return request


def messages(server: StandIn) -> list[StreamResponse]:
    return [ParseDict(got.json, StreamResponse()) for got in server.got]


def states(server: StandIn) -> list[int]:
    return [one.task.status.state or one.status_update.status.state for one in messages(server)]


async def first(client: Client, request: SendMessageRequest) -> str:
    async for event in client.send_message(request):
        return event.task.id
    raise AssertionError


async def forgotten(rt: Runtime) -> None:
    """Wait until no address is left."""
    async with rt.workspace.journal.follow(after=0) as follow:
        with anyio.fail_after(60):
            while await rt.workspace.hooks.list():
                await follow.next(1)


@BINDINGS
@pytest.mark.rule("peer.push")
async def test_a_client_is_told_of_its_task_until_the_end(binding: str):
    async with told(binding) as (rt, server, own, _):
        login = AuthenticationInfo(scheme="Bearer", credentials="s3cr3t")
        task = await first(own, wanting("ask", f"{server.url}/push", authentication=login, id="mine"))
        await server.until(lambda: TaskState.TASK_STATE_INPUT_REQUIRED in states(server))
        found = await own.list_task_push_notification_configs(ListTaskPushNotificationConfigsRequest(task_id=task))
        assert [(one.id, one.task_id, one.token, one.authentication.credentials) for one in found.configs] == [
            ("mine", task, "", "")
        ]
        [question] = await asked(rt, 1)
        await rt.workspace.questions.answer(question.id, "red")
        await server.until(lambda: TaskState.TASK_STATE_COMPLETED in states(server))
        end = next(one.task for one in messages(server) if one.HasField("task"))
        assert (end.id, end.artifacts[0].parts[0].text) == (task, "red")
        got = server.got[0]
        assert got.headers["content-type"] == "application/a2a+json"
        assert got.headers["x-a2a-notification-token"] == "t0k3n"
        assert got.headers["authorization"] == "Bearer s3cr3t"
        await forgotten(rt)  # an address that was told of the end
        found = await own.list_task_push_notification_configs(ListTaskPushNotificationConfigsRequest(task_id=task))
        assert not found.configs
        journal = "".join(str(one) for one in await rt.workspace.journal.history())
        assert "s3cr3t" not in journal
        assert "t0k3n" not in journal


@BINDINGS
@pytest.mark.rule("peer.push")
async def test_addresses_of_a_task_are_set_shown_replaced_and_removed(binding: str):
    async with told(binding) as (_, server, own, _):
        task = await first(own, says("ask"))
        for path in ("one", "two"):
            config = TaskPushNotificationConfig(task_id=task, id="c", url=f"{server.url}/{path}")
            made = await own.create_task_push_notification_config(config)
            assert (made.id, made.url) == ("c", f"{server.url}/{path}")
        one = GetTaskPushNotificationConfigRequest(task_id=task, id="c")
        assert (await own.get_task_push_notification_config(one)).url == f"{server.url}/two"
        await own.delete_task_push_notification_config(DeleteTaskPushNotificationConfigRequest(task_id=task, id="c"))
        with pytest.raises(TaskNotFoundError):
            await own.get_task_push_notification_config(one)
        for url in (
            "http://10.0.0.1/x",
            "https://example.com:8443/x",
            "ftp://example.com",
            "x",
            f"{server.url}/\r\nx: y",
        ):
            with pytest.raises(InvalidParamsError) as no:
                await own.create_task_push_notification_config(TaskPushNotificationConfig(task_id=task, url=url))
            assert url not in str(no.value)
        for number in range(10):
            config = TaskPushNotificationConfig(task_id=task, id=f"{number}", url=server.url)
            await own.create_task_push_notification_config(config)
        with pytest.raises(InvalidParamsError, match="at most 10 addresses"):
            await own.create_task_push_notification_config(TaskPushNotificationConfig(task_id=task, url=server.url))


@pytest.mark.rule("peer.push")
async def test_nothing_is_told_once_the_key_does_not_count_any_more():
    async with told() as (rt, server, own, access):
        await first(own, wanting("ask", f"{server.url}/push"))
        await server.until(lambda: TaskState.TASK_STATE_INPUT_REQUIRED in states(server))
        await rt.workspace.access.revoke(access)
        before = len(server.got)
        [question] = await asked(rt, 1)
        await rt.workspace.questions.answer(question.id, "red")
        [hook] = await rt.workspace.hooks.list()
        await forgotten(rt)
        assert len(server.got) == before
        assert hook.url == f"{server.url}/push"


@pytest.mark.rule("peer.push")
async def test_a_key_reaches_no_addresses_of_others_tasks():
    async with told() as (rt, server, own, _):
        task = await first(own, says("ask"))
        await own.create_task_push_notification_config(
            TaskPushNotificationConfig(task_id=task, id="c", url=f"{server.url}/one")
        )
        async with asking(app_of(rt, caller()), "works") as other:
            for wanted in (
                other.get_task_push_notification_config(GetTaskPushNotificationConfigRequest(task_id=task, id="c")),
                other.create_task_push_notification_config(
                    TaskPushNotificationConfig(task_id=task, id="c", url=f"{server.url}/two")
                ),
            ):
                with pytest.raises(TaskNotFoundError):
                    await wanted


@pytest.mark.rule("peer.push", "peer.card")
async def test_without_a_master_key_the_card_says_that_nobody_is_told(monkeypatch: pytest.MonkeyPatch):
    with team() as rt:
        rt.agent("works")(works)
        app = app_of(rt, caller())
        async with app.running(), client(app) as http:
            assert await _can_push(http)
            monkeypatch.delenv("REMIT_MASTER_KEY")
            assert not await _can_push(http)
        async with rt.serving(), asking(app, "works") as own:
            with pytest.raises(PushNotificationNotSupportedError):
                await first(own, wanting("x", "https://example.com/x"))
        assert await rt.workspace.tasks.list() == []


async def _can_push(http: httpx.AsyncClient) -> bool:
    card = (await http.get("/a2a/works/.well-known/agent-card.json")).json()
    return card["capabilities"].get("pushNotifications", False)
