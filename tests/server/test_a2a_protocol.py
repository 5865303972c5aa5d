"""A2A on the wire: media types, versions, error codes, pages and the length of histories, on both bindings."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx
import pytest

from remit import Turn
from server.serving import app_of, caller, client
from teams import echo, team

pytestmark = pytest.mark.anyio
MEDIA = "application/a2a+json"
HEADERS = {"content-type": "application/json", "a2a-version": "1.0"}


async def asks(turn: Turn) -> str:
    return await turn.ask_human("when?")


@asynccontextmanager
async def served() -> AsyncIterator[httpx.AsyncClient]:
    with team() as rt:
        rt.agent("echo")(echo)
        rt.agent("asks")(asks)
        app = app_of(rt, caller())
        async with rt.serving(), app.running(), client(app, **HEADERS) as http:
            yield http


def message(text: str, **configuration: Any) -> dict[str, Any]:
    said = {"messageId": "m", "role": "ROLE_USER", "parts": [{"text": text}]}
    return {"message": said, "configuration": configuration} if configuration else {"message": said}


async def rpc(http: httpx.AsyncClient, method: str, params: Any, agent: str = "echo", **headers: str) -> Any:
    body = {"jsonrpc": "2.0", "id": "one", "method": method, "params": params}
    got = await http.post(f"/a2a/{agent}/rpc", json=body, headers=headers)
    assert (got.status_code, got.headers["content-type"]) == (200, "application/json")
    answer = got.json()
    assert (answer["jsonrpc"], answer["id"]) == ("2.0", "one")
    return answer


async def sent(http: httpx.AsyncClient, text: str, agent: str = "echo", **configuration: Any) -> dict[str, Any]:
    return (await rpc(http, "SendMessage", message(text, **configuration), agent))["result"]["task"]


@pytest.mark.rule("peer.wire")
async def test_media_types_of_http_json_are_those_of_a2a_and_both_are_taken():
    async with served() as http:
        for given in ("application/json", MEDIA):
            got = await http.post(
                "/a2a/echo/rest/message:send", content=json.dumps(message("x")), headers={"content-type": given}
            )
            assert (got.status_code, got.headers["content-type"]) == (200, MEDIA)
            assert "result" in await rpc(http, "SendMessage", message("x"), **{"content-type": given})
        stream = await http.post("/a2a/echo/rest/message:stream", json=message("x"))
        assert stream.headers["content-type"].startswith("text/event-stream")
        wrong = await http.post("/a2a/echo/rest/message:send", content=b"x", headers={"content-type": "text/plain"})
        assert (wrong.status_code, _reason(wrong)) == (400, "CONTENT_TYPE_NOT_SUPPORTED")
        wrong = await http.post("/a2a/echo/rpc", content=b"x", headers={"content-type": "text/plain"})
        assert (wrong.status_code, wrong.json()["error"]["code"]) == (200, -32005)


def _reason(answer: httpx.Response) -> str:
    """The reason in an error of HTTP+JSON, which says its status again."""
    error = answer.json()["error"]
    assert answer.headers["content-type"] == "application/json"
    assert error["code"] == answer.status_code
    assert error["status"].isupper()
    assert error["message"]
    info = error["details"][0]
    assert (info["@type"], info["domain"]) == ("type.googleapis.com/google.rpc.ErrorInfo", "a2a-protocol.org")
    return info["reason"]


@pytest.mark.rule("peer.wire")
async def test_all_errors_of_http_json_have_one_form():
    rest, canary = "/a2a/echo/rest", "canary-7f3a"
    async with served() as http:
        done = await sent(http, "x")
        send, config = f"{rest}/message:send", f"{rest}/tasks/{done['id']}/pushNotificationConfigs"
        answers = [
            (await http.get(f"{rest}/tasks/{canary}"), 404, "TASK_NOT_FOUND"),
            (await http.post(f"{rest}/tasks/{done['id']}:cancel"), 400, "TASK_NOT_CANCELABLE"),
            (await http.post(f"{rest}/tasks/{done['id']}:subscribe"), 400, "UNSUPPORTED_OPERATION"),
            (await http.get(f"{rest}/extendedAgentCard"), 400, "UNSUPPORTED_OPERATION"),
            (await http.post(config, json={"url": "https://example.com"}), 400, "PUSH_NOTIFICATION_NOT_SUPPORTED"),
            (await http.post(config, json={"url": {canary: 1}}), 400, "INVALID_REQUEST"),
            (await http.post(send, json={"message": {"parts": canary}}), 400, "INVALID_REQUEST"),
            (await http.post(send, content=b"{"), 400, "INVALID_REQUEST"),
            (await http.post(send, json={}), 400, "INVALID_PARAMS"),
            (await http.get(f"{rest}/{canary}"), 404, "METHOD_NOT_FOUND"),
            (await http.get(f"{rest}/tasks", headers={"authorization": ""}), 401, "UNAUTHORISED"),
        ]
        for answer, status, reason in answers:
            assert (answer.status_code, _reason(answer)) == (status, reason)
            assert canary not in answer.text
        assert answers[-1][0].headers["www-authenticate"] == "Bearer"


@pytest.mark.rule("peer.wire")
@pytest.mark.parametrize("version", ["9.9", "0.3", "x", ""])
async def test_another_version_is_refused_on_both_bindings(version: str):
    async with served() as http:
        answer = await rpc(http, "GetTask", {"id": "x"}, **{"a2a-version": version})
        assert answer["error"]["code"] == -32009
        got = await http.get("/a2a/echo/rest/tasks/x", headers={"a2a-version": version})
        assert got.status_code == 400
        assert got.json()["error"]["details"][0]["reason"] == "VERSION_NOT_SUPPORTED"


@pytest.mark.rule("peer.wire")
async def test_errors_have_the_codes_of_the_protocol():
    async with served() as http:
        done, open_ = await sent(http, "x"), await sent(http, "x", "asks")
        assert open_["status"]["state"] == "TASK_STATE_INPUT_REQUIRED"
        wrong: list[tuple[str, Any, int]] = [
            ("GetTask", {"id": "nothing"}, -32001),
            ("CancelTask", {"id": done["id"]}, -32002),
            ("SubscribeToTask", {"id": done["id"]}, -32004),
            ("GetExtendedAgentCard", {}, -32004),
            ("NoSuchMethod", {}, -32601),
            ("GetTask", {"id": 5}, -32602),
            ("GetTask", {}, -32602),
            ("SendMessage", {"message": {"messageId": "m", "role": "ROLE_USER", "parts": []}}, -32602),
            ("ListTasks", {"pageSize": 0}, -32602),
            ("ListTasks", {"pageSize": 101}, -32602),
            ("ListTasks", {"pageToken": "x"}, -32602),
            ("ListTasks", {"status": "TASK_STATE_DONE"}, -32602),
            ("GetTask", {"id": done["id"], "historyLength": -1}, -32602),
        ]
        for method, params, code in wrong:
            answer = await rpc(http, method, params)
            assert answer.get("error", {}).get("code") == code, (method, params, answer)
        for content, code in ((b"{", -32700), (b'{"a": NaN}', -32700), (b'{"jsonrpc":"1.0","id":1}', -32600)):
            got = await http.post("/a2a/echo/rpc", content=content)
            assert (got.status_code, got.json()["error"]["code"]) == (200, code), content
        for path, status in (
            ("tasks/nothing", 404),
            (f"tasks/{done['id']}:nothing", 404),
            ("tasks?pageSize=0", 400),
            ("tasks?status=x", 400),
        ):
            assert (await http.get(f"/a2a/echo/rest/{path}")).status_code == status, path
        ended = await http.post(f"/a2a/echo/rest/tasks/{done['id']}:cancel", json={})
        assert ended.json()["error"]["details"][0]["reason"] == "TASK_NOT_CANCELABLE"
        assert (await http.post("/a2a/echo/rest/message:send", content=b"{")).status_code == 400


@pytest.mark.rule("peer.wire")
async def test_pages_have_every_task_once_and_histories_the_wanted_length():
    async with served() as http:
        made = [(await sent(http, f"{number}"))["id"] for number in range(5)]
        seen, token = list[str](), ""
        while True:
            page = (await rpc(http, "ListTasks", {"pageSize": 2, "pageToken": token, "historyLength": 0}))["result"]
            assert (page["pageSize"], page["totalSize"]) == (2, 5)
            assert not any(one.get("history") or one.get("artifacts") for one in page["tasks"])
            seen += [one["id"] for one in page["tasks"]]
            token = page.get("nextPageToken", "")
            if not token:
                break
        assert seen == made[::-1]
        for length, said in ((0, 0), (1, 1), (10, 1)):
            task = (await rpc(http, "GetTask", {"id": made[0], "historyLength": length}))["result"]
            assert len(task.get("history", [])) == said
            task = await sent(http, "x", historyLength=length)
            assert len(task.get("history", [])) == said
        by_context = (await rpc(http, "ListTasks", {"contextId": task["contextId"]}))["result"]
        assert [one["id"] for one in by_context["tasks"]] == [task["id"]]
        open_ = await sent(http, "x", "asks", returnImmediately=True)
        assert open_["status"]["state"] in ("TASK_STATE_SUBMITTED", "TASK_STATE_WORKING", "TASK_STATE_INPUT_REQUIRED")


@pytest.mark.rule("peer.tour")
@pytest.mark.parametrize(
    "context", ["short", "0b0e7f4e-5f3c-4b7e-9d55-0d8a4b8f1c11", "ADK$app$user$" + "7" * 150, "=" * 25]
)
async def test_a_context_may_have_any_name_that_clients_give(context: str):
    with team() as rt:
        rt.agent("echo")(echo)
        app = app_of(rt, caller("a" * 16), caller("b" * 16))
        async with rt.serving(), app.running():
            async with client(app, "a" * 16, **HEADERS) as http:
                said = {
                    "messageId": "of-the-client",
                    "role": "ROLE_USER",
                    "parts": [{"text": "x"}],
                    "contextId": context,
                }
                made = (await rpc(http, "SendMessage", {"message": said}))["result"]["task"]
                assert (made["contextId"], made["history"][0]["messageId"]) == (context, "of-the-client")
                listed = (await rpc(http, "ListTasks", {"contextId": context}))["result"]["tasks"]
                assert [(one["id"], one["contextId"]) for one in listed] == [(made["id"], context)]
                wrong = await rpc(http, "SendMessage", {"message": said | {"contextId": f"{context} "}})
                assert wrong["error"]["code"] == -32602
            async with client(app, "b" * 16, **HEADERS) as http:
                assert not (await rpc(http, "ListTasks", {"contextId": context}))["result"]["tasks"]


@pytest.mark.rule("peer.wire")
async def test_the_task_that_changed_last_is_listed_first():
    async with served() as http:
        first = await sent(http, "x", "asks")
        second = await sent(http, "y", "asks")
        answer = message("now") | {"configuration": {"historyLength": 0}}
        answer["message"]["taskId"] = first["id"]
        done = (await rpc(http, "SendMessage", answer, "asks"))["result"]["task"]
        assert done["status"]["state"] == "TASK_STATE_COMPLETED"

        async def ids(**which: Any) -> list[str]:
            listed = (await rpc(http, "ListTasks", which, "asks"))["result"]["tasks"]
            stamps = [one["status"]["timestamp"] for one in listed]
            assert stamps == sorted(stamps, reverse=True)
            return [one["id"] for one in listed]

        assert await ids() == [first["id"], second["id"]]
        assert await ids(statusTimestampAfter=done["status"]["timestamp"]) == [first["id"]]
        assert await ids(statusTimestampAfter=second["status"]["timestamp"]) == [first["id"], second["id"]]
        assert await ids(status="TASK_STATE_INPUT_REQUIRED") == [second["id"]]


@pytest.mark.rule("peer.wire")
async def test_the_history_of_a_task_has_its_questions_and_the_answers_of_the_caller():
    async with served() as http:
        task = await sent(http, "x", "asks")
        answer = message("now")
        answer["message"]["taskId"] = task["id"]
        await rpc(http, "SendMessage", answer, "asks")
        for length, said in ((0, []), (1, ["now"]), (2, ["when?", "now"]), (9, ["x", "when?", "now"])):
            got = (await rpc(http, "GetTask", {"id": task["id"], "historyLength": length}, "asks"))["result"]
            history = got.get("history", [])
            assert [one["parts"][0]["text"] for one in history] == said
        assert [one["role"] for one in history] == ["ROLE_USER", "ROLE_AGENT", "ROLE_USER"]
        assert history[1]["messageId"] == task["status"]["message"]["messageId"]
        assert len({one["messageId"] for one in history}) == 3
