"""Images and documents that a task refers to: a model is shown them, and the journal has the reference."""

import base64
import json
from typing import Any

import pytest
from openai import AsyncOpenAI
from pydantic_ai import Agent
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider

from remit import Runtime, Turn
from remit.testing.models import Calls, ModelReply, ModelRequest, Says, model_server

pytestmark = pytest.mark.anyio

PNG = b"\x89PNG\r\n\x1a\n" + bytes(range(256)) * 8
PDF = b"%PDF-1.4 a report"


@pytest.fixture(autouse=True)
def keys(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KEY_A", "a")


def encoded(data: bytes) -> str:
    return base64.b64encode(data).decode()


def images(request: ModelRequest) -> list[str]:
    """The images and files of a request, as data URIs, in their order."""
    parts: list[Any] = [part for one in request.messages if isinstance(one["content"], list) for part in one["content"]]
    shown = [part.get("image_url", {}).get("url") or part.get("file", {}).get("file_data") for part in parts]
    return [uri for uri in shown if uri]


class Desk:
    """A model that looks something up and then answers; it keeps the requests."""

    def __init__(self) -> None:
        self.asked: list[ModelRequest] = []

    def plays(self, request: ModelRequest) -> ModelReply:
        self.asked.append(request)
        return Calls("look_up", {}, id="c1") if len(self.asked) == 1 else Says("a lamp")

    def join(self, rt: Runtime, url: str) -> None:
        def look_up() -> str:
            """Look it up."""
            return "found"

        how: Any = {"base_url": f"{url}/v1", "keys": ["KEY_A"], "tools": [look_up]}
        rt.model_agent("desk", "openai-chat:gpt-5", **how)


@pytest.mark.rule("artifact.shown")
async def test_a_model_is_shown_the_files_of_its_task_with_every_request_and_the_journal_has_the_references():
    desk = Desk()
    async with model_server(desk.plays) as server, Runtime() as rt:
        desk.join(rt, server.url)
        photo = await rt.workspace.artifacts.save(PNG, "photo.png")
        report = await rt.workspace.artifacts.save(PDF, "report.pdf")
        outcome = await rt.outcome("desk", "what is it?", data={"photo": photo, "report": report})
        written = json.dumps([event.data for event in await rt.workspace.journal.history()])
    assert (outcome.value, outcome.trust) == ("a lamp", "trusted")
    both = {f"data:image/png;base64,{encoded(PNG)}", f"data:application/pdf;base64,{encoded(PDF)}"}
    assert [{*images(request)} for request in desk.asked] == [both, both]
    assert f"[the file photo.png (image/png, {len(PNG):,} bytes)]" in json.dumps(desk.asked[0].body)
    assert encoded(PNG)[:40] not in written
    assert photo.digest in written


@pytest.mark.rule("artifact.shown")
async def test_a_retry_asks_with_the_same_bytes_and_what_came_from_outside_stays_untrusted():
    desk = Desk()
    failed: list[bool] = []
    async with model_server(desk.plays) as server, Runtime() as rt:
        desk.join(rt, server.url)

        @rt.around
        async def fails_once(turn: Turn, go: Any) -> object:
            answer = await go()
            if not failed:
                failed.append(True)
                raise ValueError("after the answer")
            return answer

        photo = await rt.workspace.artifacts.save(PNG, "photo.png", trust="untrusted")
        task = await rt.submit("desk", f"what is it? {photo}")
        assert (await task.wait()).state == "failed"
        again = await rt.workspace.tasks.retry(task.id)
        outcome = await again.wait()
    assert (outcome.value, outcome.trust) == ("a lamp", "untrusted")
    assert {uri for request in desk.asked for uri in images(request)} == {f"data:image/png;base64,{encoded(PNG)}"}


@pytest.mark.rule("artifact.shown")
async def test_a_model_is_not_shown_what_its_holder_does_not_see_or_what_it_cannot_take():
    desk = Desk()
    async with model_server(desk.plays) as server, Runtime() as rt:
        desk.join(rt, server.url)
        photo = await rt.workspace.artifacts.save(PNG, "photo.png")
        table = await rt.workspace.artifacts.save(b"a,b", "table.csv")
        large = await rt.workspace.artifacts.save(PNG * 5_000, "large.png")

        @rt.agent(asks=["desk"])
        async def guesses(turn: Turn) -> str:
            return await turn.delegate("desk", f"what is it? {photo}")

        await rt.run("guesses", "go")
        assert images(desk.asked[0]) == []
        desk.asked.clear()
        await rt.run("desk", "what is it?", data=[table, large])
    body = json.dumps(desk.asked[0].body)
    assert images(desk.asked[0]) == []
    assert "[the file large.png (image/png, 10,280,000 bytes) is not shown: it is too large; read_artifact" in body
    assert "table.csv" in body


@pytest.mark.rule("artifact.shown")
async def test_an_agent_of_pydantic_ai_is_shown_them_too():
    asked: list[ModelRequest] = []

    def plays(request: ModelRequest) -> ModelReply:
        asked.append(request)
        return Says("a lamp")

    async with (
        model_server(plays) as server,
        Runtime() as rt,
        AsyncOpenAI(base_url=f"{server.url}/v1", api_key="a", max_retries=0) as client,
    ):
        provider = OpenAIProvider(openai_client=client)
        rt.add(Agent(OpenAIChatModel("gpt-5", provider=provider), name="guest"))
        text_only = OpenAIChatModel("old", provider=provider, profile={"supports_image_input": False})
        rt.add(Agent(text_only, name="reader"))
        photo = await rt.workspace.artifacts.save(PNG, "photo.png")
        assert await rt.run("guest", "what is it?", data=photo) == "a lamp"
        await rt.run("reader", "what is it?", data=photo)
    assert images(asked[0]) == [f"data:image/png;base64,{encoded(PNG)}"]
    assert images(asked[1]) == []
    assert "is not shown: you cannot read files of this kind" in json.dumps(asked[1].body)
