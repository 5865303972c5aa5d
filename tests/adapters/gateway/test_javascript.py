"""The example in JavaScript: a program of another language that joins a team with fetch alone."""

import shutil
from pathlib import Path

import pytest

from adapters.gateway.asking import KEY
from engine.helping import sound
from remit import Card, Failed, Runtime, Turn
from remit.adapters.process import program
from remit.testing.models import Says, model_server

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.skipif(shutil.which("node") is None, reason="node is not installed, which runs the example"),
]

EXAMPLE = Path(__file__).parents[3] / "examples" / "javascript"


@pytest.fixture(autouse=True)
def real_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REAL_KEY", KEY)


def porter(url: str) -> object:
    how = {"keys": ["REAL_KEY"], "base_url": f"{url}/v1"}
    return program(["node", str(EXAMPLE / "porter.mjs")], gateway=["openai:gpt-5-mini"], verbs=True, **how)


@pytest.mark.rule("gateway.verbs", "gateway.money")
async def test_a_program_in_javascript_asks_a_model_and_a_colleague():
    async with model_server([Says("console.log(3)", usage=(10, 5))]) as server, Runtime() as rt:
        rt.add(Card("porter", asks=["reviewer"]), porter(server.url))

        @rt.agent
        async def reviewer(turn: Turn) -> str:
            return f"reviewed for {turn.asker}: {turn.task}"

        said = await rt.run("porter", "print(1 + 2)")
        assert said == "console.log(3)\nreviewed for porter: Review this: console.log(3)"
        (request,) = server.requests
        assert (request.key, request.model) == (KEY, "gpt-5-mini")
        assert request.text == "Port this to JavaScript, and say nothing else: print(1 + 2)"
        assert (await rt.workspace.money.spend()).total.tokens == 15
        await sound(rt)


@pytest.mark.rule("gateway.verbs")
async def test_a_refusal_reaches_the_program_in_javascript():
    async with model_server([Says("console.log(3)")]) as server, Runtime() as rt:
        rt.add(Card("porter"), porter(server.url))
        with pytest.raises(Failed, match="'porter' failed: ProgramFailed: 'node' ended with exit code 1"):
            await rt.run("porter", "print(1 + 2)")
        await sound(rt)


def test_the_program_is_short_and_needs_no_package():
    lines = (EXAMPLE / "porter.mjs").read_text().splitlines()
    assert len([line for line in lines if line.strip() and not line.startswith("//")]) <= 32
    assert [line for line in lines if line.startswith("import")] == ['import { text } from "node:stream/consumers";']
