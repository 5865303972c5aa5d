"""`rt.model_agent`, `@rt.agent(model=...)`: models as agents, through the whole engine."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from pydantic import BaseModel

from remit import Runtime, Turn
from remit.errors import BadInput
from remit.testing.models import Calls, Cut, Fails, ModelServer, Says, model_server
from remit.testing.models.server import Script
from remit.types import TextChunk

pytestmark = pytest.mark.anyio


class Place:
    """A scripted model, and how agents reach it."""

    def __init__(self, server: ModelServer) -> None:
        self.server = server
        self.how: Any = {"base_url": f"{server.url}/v1", "keys": ["KEY_A"]}


@asynccontextmanager
async def served(script: Script) -> AsyncIterator[tuple[Place, Runtime]]:
    async with model_server(script) as server, Runtime() as rt:
        yield Place(server), rt


@pytest.fixture(autouse=True)
def keys(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KEY_A", "a")
    monkeypatch.setenv("KEY_B", "b")


class Verdict(BaseModel):
    good: bool
    why: str


@pytest.mark.rule("model.agent")
async def test_a_function_with_a_model_says_the_prompt_and_its_docstring_and_annotation_say_the_rest():
    async with served([Calls("final_result", {"good": True, "why": "it is"})]) as (place, rt):

        @rt.agent(model="openai-chat:big", can="review code", **place.how)
        async def reviewer(turn: Turn) -> Verdict:
            """You review code."""
            return f"Review this: {turn.task}"  # pyright: ignore[reportReturnType]

        assert await rt.run("reviewer", "x = 1") == {"good": True, "why": "it is"}
        (request,) = place.server.requests
        assert request.text == "Review this: x = 1"
        assert "You review code." in str(request.messages[0])
        (card,) = rt.cards()
        assert (card.can, card.instructions) == (("review code",), "You review code.")


@pytest.mark.rule("model.agent")
async def test_a_function_that_says_nothing_leaves_the_prompt_to_the_remit():
    async with served([Says("done")]) as (place, rt):

        @rt.agent("coder", model="openai-chat:big", **place.how)
        def code(_turn: Turn) -> None:
            pass

        assert await rt.run("coder", "write it") == "done"
        assert place.server.requests[0].text == "write it"


@pytest.mark.rule("model.agent", "model.keys-first")
async def test_keys_and_fallbacks_are_asked_in_their_order():
    async with served([Fails(429, retry_after=90), Fails(503), Says("small answers")]) as (place, rt):
        rt.model_agent(
            "coder",
            "openai-chat:big",
            fallback=["openai-chat:small"],
            base_url=place.how["base_url"],
            keys=["KEY_A", "KEY_B"],
        )
        assert await rt.run("coder", "x") == "small answers"
        assert [(one.model, one.key) for one in place.server.requests] == [("big", "a"), ("big", "b"), ("small", "a")]


@pytest.mark.rule("model.agent", "pydantic.keys")
async def test_a_key_that_is_not_set_is_named_and_its_value_never_is():
    async with served([]) as (place, rt):
        rt.model_agent("coder", "openai-chat:big", base_url=place.how["base_url"], keys=["KEY_C"])
        with pytest.raises(Exception, match="there is no key: set the environment variable KEY_C"):
            await rt.run("coder", "x")


@pytest.mark.rule("model.agent")
def test_what_is_wrong_with_an_agent_is_said_when_it_is_registered():
    with Runtime() as rt:

        @rt.tool
        def read_file(path: str) -> str:
            """Read a file."""
            return path

        def wrong(sentence: str, **about: Any) -> None:
            with pytest.raises(BadInput, match=sentence):
                rt.model_agent("coder", about.pop("model", "openai-chat:big"), **about)

        wrong("there is no tool 'read_fil'; .*; there is read_file; did you mean read_file", tools=["read_fil"])
        wrong("there is no tool group 'group:fss'", tools=["group:fss"])
        wrong("no tool of group:web is registered", tools=["group:web"])
        wrong("a tool is a function", tools=[7])
        wrong(
            "approve_tools names 'reed_file', which is no tool of this agent",
            tools=["read_file"],
            approve_tools=["reed_file"],
        )
        wrong("approve_tools takes a list of tools, not True", approve_tools=True)
        wrong("needs_approval", tools=["read_file"], needs_approval=["read_file"])
        wrong("before takes a list of functions", before=[1])
        wrong("iterations", iterations=0)
        wrong("takes no 'modle'; did you mean", modle="x")
        wrong("retry takes RetryPolicy", retry=3)
        wrong("there is no provider 'nobody'", model="nobody:x")
        wrong("named as 'provider:model'", model="gpt-5")
        assert rt.cards() == []
        rt.model_agent("coder", "test", tools=["group:fs", "group:agents"], needs_approval=True)
        (card,) = rt.cards()
        assert (card.tools, card.needs_approval) == (frozenset(("read_file", "recall", "remember", "blackboard")), True)
        with pytest.raises(BadInput, match="there is a tool 'read_file' already"):
            rt.tool(read_file)
        with pytest.raises(BadInput, match="name the guest"):
            rt.add(object())
        with pytest.raises(BadInput, match="can be joined, not object"):
            rt.add(object(), name="x")

        with pytest.raises(BadInput, match="cannot be read"):

            @rt.agent(model="test")
            async def strange(turn: Turn) -> "NoSuchType":  # noqa: F821 # pyright: ignore[reportUndefinedVariable, reportReturnType]
                """Help."""


@pytest.mark.rule("stream.order", "stream.begins")
async def test_text_of_a_model_is_streamed_over_http_and_a_cut_answer_starts_again():
    async with served([Cut(Says("one two three four five six")), Says("seven eight")]) as (place, rt):
        rt.model_agent("coder", "openai-chat:big", fallback=["openai-chat:small"], **place.how)
        said: list[list[str]] = []
        async for one in rt.stream("coder", "x"):
            if isinstance(one, TextChunk):
                said = [*said, []] if one.begins else [*said[:-1], [*said[-1], one.text]]
        assert "".join(said[-1]) == "seven eight"
        assert len(said) == 2
        assert all(request.stream for request in place.server.requests)


PASTED = ("sk-live-0123456789abcdef", "AIzaSyA0123456789abcdefghi", "gsk_0123456789abcdef0123", "two words", "KÄY")


@pytest.mark.rule("secret.keys")
async def test_a_key_of_the_environment_is_redacted_from_the_first_request_that_opens_it(
    monkeypatch: pytest.MonkeyPatch,
):
    secret = "sk-canary-0123456789abcdef"
    monkeypatch.setenv("KEY_A", secret)

    def look() -> str:
        """Look at the environment."""
        return f"KEY_A={secret}"

    async with served([Calls("look", {}, text=f"your key is {secret}"), Says(f"it is {secret}")]) as (place, rt):
        rt.model_agent("curious", "openai-chat:big", tools=[look], **place.how)
        await rt.run("curious", "look around")
        history = str([event.data for event in await rt.workspace.journal.history()])
    assert secret not in history
    assert "KEY_A=[secret]" in history


@pytest.mark.rule("secret.keys")
@pytest.mark.parametrize("pasted", PASTED)
def test_a_key_in_the_place_of_the_name_of_a_variable_is_refused_without_being_shown(pasted: str):
    rt = Runtime()
    with pytest.raises(BadInput, match="keys takes names of environment variables") as info:
        rt.model_agent("it", "openai-chat:big", keys=[pasted])
    assert pasted not in str(info.value)
