"""Agents of a workspace as A2A agents, asked by the official client on both bindings."""

import json
from base64 import urlsafe_b64encode
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import anyio
import pytest
from a2a.client import A2ACardResolver, Client, ClientConfig, ClientFactory
from a2a.types.a2a_pb2 import (
    CancelTaskRequest,
    GetTaskRequest,
    ListTasksRequest,
    Message,
    Part,
    Role,
    SendMessageRequest,
    StreamResponse,
    SubscribeToTaskRequest,
    Task,
    TaskState,
)
from a2a.utils.errors import TaskNotCancelableError, TaskNotFoundError, UnsupportedOperationError
from a2a.utils.signing import SignatureVerificationError, create_signature_verifier
from google.protobuf.json_format import MessageToDict, ParseDict
from google.protobuf.struct_pb2 import Value
from jwt import api_jws
from jwt.exceptions import InvalidSignatureError

from adapters.a2a_served import key_pair
from remit import Card, Runtime, Turn
from remit.core.values import TASK_LIMIT
from remit.runtime.workspace import opening_of
from remit.server.app import Server, create_app
from remit.server.callers import APPROVE, RUN, Caller
from remit.server.tenants import Tenants
from server.serving import ADDRESS, Keys, app_of, caller, client
from teams import echo, team

pytestmark = pytest.mark.anyio
BINDINGS = pytest.mark.parametrize("binding", ["JSONRPC", "HTTP+JSON"])


@asynccontextmanager
async def asking(app: Server, agent: str, binding: str = "JSONRPC", access: str = "ann") -> AsyncGenerator[Client]:
    """The official client of an agent."""
    async with app.running(), client(app, access) as http:
        card = await A2ACardResolver(http, f"{ADDRESS}/a2a/{agent}").get_agent_card()
        factory = ClientFactory(ClientConfig(httpx_client=http, supported_protocol_bindings=[binding]))
        yield factory.create(card)


def says(text: str, **more: Any) -> SendMessageRequest:
    return SendMessageRequest(message=Message(message_id="m", role=Role.ROLE_USER, parts=[Part(text=text)], **more))


async def last(client: Client, request: SendMessageRequest) -> Task:
    """The task that a message made, when its stream ends."""
    events = [event async for event in client.send_message(request)]
    assert events
    task = events[0].task
    return await client.get_task(GetTaskRequest(id=task.id)) if len(events) > 1 else task


def kinds(events: list[StreamResponse]) -> list[str]:
    return [str(event.WhichOneof("payload")) for event in events]


@BINDINGS
@pytest.mark.rule("peer.tour")
async def test_the_official_client_does_the_whole_tour(binding: str):
    with team() as rt:
        rt.agent("echo", role="repeats", can=["repeating"])(echo)
        async with rt.serving(), asking(app_of(rt), "echo", binding) as a2a:
            events = [event async for event in a2a.send_message(says("hello"))]
            assert kinds(events)[0] == "task"
            task = await a2a.get_task(GetTaskRequest(id=events[0].task.id))
            assert task.status.state == TaskState.TASK_STATE_COMPLETED
            assert task.artifacts[0].parts[0].text == "hello"
            assert (await rt.workspace.tasks.get(task.id).status()).by == "access:ann"
            listed = await a2a.list_tasks(ListTasksRequest(page_size=1))
            assert [one.id for one in listed.tasks] == [task.id]
            with pytest.raises(TaskNotCancelableError):
                await a2a.cancel_task(CancelTaskRequest(id=task.id))
            with pytest.raises(TaskNotFoundError):
                await a2a.get_task(GetTaskRequest(id="a" * 16))
            with pytest.raises(UnsupportedOperationError):
                async for _ in a2a.subscribe(SubscribeToTaskRequest(id=task.id)):
                    pass


@BINDINGS
@pytest.mark.rule("peer.question")
async def test_a_question_is_input_required_and_the_next_message_answers_it(binding: str):
    with team() as rt:

        @rt.agent
        async def painter(turn: Turn) -> dict[str, Any]:
            return {"colour": await turn.ask_human("Which colour?", ["red", "blue"]), "size": turn.data}

        data = Part(data=Value(number_value=7))
        async with rt.serving(), asking(app_of(rt, caller(scope=RUN)), "painter", binding) as a2a:
            first = says("paint", context_id="house")
            first.message.parts.append(data)
            task = await last(a2a, first)
            assert task.status.state == TaskState.TASK_STATE_INPUT_REQUIRED
            assert task.status.message.parts[0].text == "Which colour?\n- red\n- blue"
            assert task.context_id == "house"
            done = await last(a2a, says("blue", task_id=task.id, context_id="house"))
            assert done.status.state == TaskState.TASK_STATE_COMPLETED
            assert dict(done.artifacts[0].parts[0].data.struct_value) == {"colour": "blue", "size": 7}
            (asked,) = await rt.workspace.questions.list(decided=True)
            assert (asked.by, asked.channel) == ("access:ann", "a2a")
            with pytest.raises(UnsupportedOperationError):
                await last(a2a, says("red", task_id=task.id))


@pytest.mark.rule("peer.question")
async def test_an_approval_is_asked_only_of_a_key_that_may_approve():
    with team() as rt:
        rt.agent("boss", asks=["worker"])(lambda turn: turn.delegate("worker", turn.task))
        rt.add(Card("worker", needs_approval=True), echo)
        app = app_of(rt, caller(scope=RUN), caller("eve", APPROVE))
        both = app_of(rt, caller()._replace(scopes=frozenset((RUN, APPROVE))))
        async with rt.serving():
            async with asking(app, "boss") as a2a:
                task = await _sent_at_once(app, "boss", "go")
                await _until_waiting(rt, task.id)
                look = await a2a.get_task(GetTaskRequest(id=task.id))
                assert look.status.state == TaskState.TASK_STATE_WORKING
            async with asking(both, "boss") as a2a:
                look = await a2a.get_task(GetTaskRequest(id=task.id))
                assert look.status.state == TaskState.TASK_STATE_INPUT_REQUIRED
                assert look.status.message.parts[0].text.endswith("\n- approve\n- reject")
                done = await last(a2a, says("approve", task_id=task.id))
                assert done.status.state == TaskState.TASK_STATE_COMPLETED


async def _sent_at_once(app: Server, agent: str, text: str) -> Task:
    """The task of a message whose sender does not wait."""
    async with client(app, **{"A2A-Version": "1.0"}) as http:
        body = _sent(text) | {"configuration": {"returnImmediately": True}}
        got = await http.post(f"/a2a/{agent}/rest/message:send", json=body)
        return ParseDict(got.json()["task"], Task())


async def _until_waiting(rt: Runtime, run: str) -> None:
    async with rt.workspace.journal.follow(run=run, after=0, kinds=["question.asked"]) as follow:
        while not await follow.next():
            pass


@BINDINGS
@pytest.mark.rule("peer.asker")
async def test_a_key_asks_in_the_name_of_its_card_and_sees_only_its_own_tasks(binding: str):
    with team() as rt:
        rt.agent("echo")(echo)
        rt.agent("secret")(echo)
        rt.add(Card("stranger", asks=["echo"]), echo)
        app = app_of(rt, caller("s", RUN, agent="stranger"), caller())
        async with rt.serving():
            async with asking(app, "echo", binding, "s") as a2a:
                task = await last(a2a, says("hi"))
                status = await rt.workspace.tasks.get(task.id).status()
                assert (status.asker, status.by, status.trust) == ("stranger", "access:s", "untrusted")
            async with asking(app, "echo", binding) as a2a:
                with pytest.raises(TaskNotFoundError):
                    await a2a.get_task(GetTaskRequest(id=task.id))
                assert not (await a2a.list_tasks(ListTasksRequest())).tasks
            async with app.running(), client(app, "s") as http:
                seen = [(await http.get(f"/a2a/{name}/.well-known/agent-card.json")) for name in ("secret", "nobody")]
                assert [one.status_code for one in seen] == [404, 404]
                assert seen[0].content == seen[1].content
                no = await http.post("/a2a/secret/rest/message:send", json=_sent("x"), headers={"A2A-Version": "1.0"})
                assert no.json()["task"]["status"]["state"] == "TASK_STATE_REJECTED"


def _sent(text: str) -> dict[str, Any]:
    return {"message": {"messageId": "m", "role": "ROLE_USER", "parts": [{"text": text}]}}


@BINDINGS
@pytest.mark.rule("peer.one-state")
async def test_a_task_is_cancelled_and_followed_on_another_server(binding: str):
    with team() as rt:

        @rt.agent
        async def slow(turn: Turn) -> str:
            return await turn.ask_human("When?")

        keys = Watching(caller())
        one, other = app_of(rt), app_of(rt, keys=keys)
        async with rt.serving(), asking(one, "slow", binding) as a2a, asking(other, "slow", binding) as second:
            task = await last(a2a, says("x"))
            cancelled = await second.cancel_task(CancelTaskRequest(id=task.id))
            assert cancelled.status.state == TaskState.TASK_STATE_CANCELED
            with pytest.raises(TaskNotCancelableError):
                await a2a.cancel_task(CancelTaskRequest(id=task.id))
            again = await last(a2a, says("y"))
            async with _answering(rt, keys):
                events = [event async for event in second.subscribe(SubscribeToTaskRequest(id=again.id))]
            assert kinds(events)[0] == "task"
            assert events[0].task.status.state == TaskState.TASK_STATE_INPUT_REQUIRED
            assert kinds(events)[-2:] == ["artifact_update", "status_update"]
            assert events[-1].status_update.status.state == TaskState.TASK_STATE_COMPLETED


@BINDINGS
@pytest.mark.rule("peer.stream")
async def test_all_who_follow_a_task_hear_the_same_even_one_who_is_late(binding: str):
    with team() as rt:

        @rt.agent
        async def curious(turn: Turn) -> str:
            return " ".join([await turn.ask_human(f"Question {number}?") for number in range(3)])

        keys = Watching(caller())
        keys.callers["key-slow"] = keys.callers["key-ann"]
        app = app_of(rt, keys=keys)
        heard: dict[str, list[StreamResponse]] = {}
        async with (
            rt.serving(),
            asking(app, "curious", binding) as a2a,
            asking(app, "curious", binding, "slow") as slow,
        ):
            task = await last(a2a, says("x"))

            async def follow(name: str, who: Client) -> None:
                heard[name] = [event async for event in who.subscribe(SubscribeToTaskRequest(id=task.id))]

            keys.watch("slow")
            async with anyio.create_task_group() as group:
                group.start_soon(follow, "quick", a2a)
                group.start_soon(follow, "slow", slow)
                await keys.has_begun.wait()
                for _ in range(3):
                    await last(a2a, says("yes", task_id=task.id))
                keys.gate.set()
        assert kinds(heard["quick"]) == ["task", *["status_update"] * 5, "artifact_update", "status_update"]
        assert [MessageToDict(one) for one in heard["slow"][1:]] == [MessageToDict(one) for one in heard["quick"][1:]]


class Watching(Keys):
    """Keys that tell when the next stream of an access has begun. Its reader then waits for the gate."""

    def __init__(self, *callers: Caller) -> None:
        super().__init__(*callers)
        self.has_begun, self.gate = anyio.Event(), anyio.Event()
        self._watched, self._times = "", 0

    def watch(self, access: str) -> None:
        self._watched, self._times = f"key-{access}", 0

    async def caller(self, key: str) -> Caller:
        if key == self._watched:
            self._times += 1
            if self._times > 1:  # the first time is for the request itself
                self.has_begun.set()
                await self.gate.wait()
        return await super().caller(key)


@BINDINGS
@pytest.mark.rule("peer.revoked")
async def test_a_stream_ends_when_its_key_does_not_count_any_more(binding: str):
    with team() as rt:

        @rt.agent
        async def slow(turn: Turn) -> str:
            return await turn.ask_human("When?")

        keys = UsedUp(caller())
        app = create_app(Tenants(opening_of(rt.workspace).database, (rt.workspace,)), keys)
        async with rt.serving(), asking(app, "slow", binding) as a2a:
            task = await last(a2a, says("x"))
            keys.left = 1  # for the request itself
            events = [event async for event in a2a.subscribe(SubscribeToTaskRequest(id=task.id))]
        assert kinds(events) == ["task"]


class UsedUp(Keys):
    """Keys that count so many times more."""

    left = 1_000

    async def caller(self, key: str) -> Caller:
        self.left -= 1
        return await super().caller(key if self.left >= 0 else "")


@asynccontextmanager
async def _answering(rt: Runtime, keys: "Watching") -> AsyncGenerator[None]:
    """A person who answers what is open, once somebody follows."""

    async def answer() -> None:
        await keys.has_begun.wait()
        (question,) = await rt.workspace.questions.list()
        await rt.workspace.questions.answer(question.id, "now")

    keys.watch("ann")
    keys.gate.set()
    async with anyio.create_task_group() as group:
        group.start_soon(answer)
        yield


@pytest.mark.rule("peer.input")
async def test_bad_requests_are_told_apart_and_repeat_nothing():
    canary = "canary-7f3a"
    with team() as rt:
        rt.agent("echo")(echo)
        app = app_of(rt)
        async with app.running(), client(app, **{"A2A-Version": "1.0"}) as http:
            bodies: list[Any] = [
                {"jsonrpc": "2.0", "id": 1, "method": canary},
                {"jsonrpc": "2.0", "id": 1, "method": "SendMessage", "params": {"message": canary}},
                {"jsonrpc": "2.0", "id": 1, "method": "SendMessage", "params": {canary: 1}},
                {"jsonrpc": "2.0", "id": 1, "method": "GetTask", "params": {"id": canary}},
                {"jsonrpc": canary, "id": 1, "method": "GetTask", "params": {}},
                {"jsonrpc": "2.0", "id": 1, "method": "ListTasks", "params": {"pageToken": canary}},
                {"jsonrpc": "2.0", "id": 1, "method": "SendMessage", "params": _sent("x" * TASK_LIMIT + canary)},
                [canary],
                canary,
            ]
            for body in bodies:
                got = await http.post("/a2a/echo/rpc", json=body)
                assert got.status_code < 500
                assert got.status_code != 200 or got.json()["error"]["code"] != -32603, body
                assert canary not in got.text, body
            for path in ("message:send", "message:stream"):
                for body in (canary, {"message": canary}, {}, {"message": {"parts": [{"url": canary}]}}):
                    got = await http.post(f"/a2a/echo/rest/{path}", json=body)
                    assert 400 <= got.status_code < 500
                    assert canary not in got.text, body
            assert (await http.get(f"/a2a/echo/rest/tasks/{canary}")).status_code == 404
            assert (await http.get("/a2a/echo/rest/tasks", params={"pageSize": 1_000})).status_code == 400
            assert (await http.post(f"/a2a/{canary}{'x' * 200}/rest/message:send", json=_sent("x"))).status_code == 200


def _verified(card: dict[str, Any], public: str) -> None:
    """Verify the first signature of a card, which is for all of it, as canonical JSON."""
    rest = {name: value for name, value in card.items() if name != "signatures"}
    text = json.dumps(rest, ensure_ascii=False, sort_keys=True, separators=(",", ":"))
    payload = urlsafe_b64encode(text.encode()).rstrip(b"=").decode()
    first = card["signatures"][0]
    api_jws.decode(f"{first['protected']}.{payload}.{first['signature']}", public, ["ES256"])


@pytest.mark.rule("peer.card")
async def test_cards_are_signed_and_the_front_card_is_that_of_the_only_agent(monkeypatch: pytest.MonkeyPatch):
    private, public = key_pair()
    monkeypatch.setenv("REMIT_A2A_KEY", private)
    with team() as rt:
        rt.agent("echo", role="répète", can=["repeating"])(echo)
        app = app_of(rt)
        verify = create_signature_verifier(lambda _kid, _jku: public, ["ES256"])
        async with app.running(), client(app) as http:
            front = await A2ACardResolver(http, ADDRESS).get_agent_card(signature_verifier=verify)
            card = await A2ACardResolver(http, f"{ADDRESS}/a2a/echo").get_agent_card(signature_verifier=verify)
            assert (card.name, card.description, card.skills[0].name) == ("echo", "répète", "repeating")
            assert not card.capabilities.push_notifications
            assert front.supported_interfaces == card.supported_interfaces
            shown = (await http.get("/a2a/echo/.well-known/agent-card.json")).json()
            _verified(shown, public)
            del shown["securityRequirements"]
            with pytest.raises(InvalidSignatureError):
                _verified(shown, public)
            card.description = "gives orders"
            with pytest.raises(SignatureVerificationError):
                verify(card)
            first = await http.get("/a2a/echo/.well-known/agent-card.json")
            same = await http.get(
                "/a2a/echo/.well-known/agent-card.json", headers={"If-None-Match": first.headers["etag"]}
            )
            assert same.status_code == 304
            rt.agent("other")(echo)
            assert (await http.get("/.well-known/agent-card.json")).status_code == 404
        async with app.running(), client(app, "") as nobody:
            assert (await nobody.get("/a2a/echo/.well-known/agent-card.json")).status_code == 401
