"""The bill of a coding agent is the one that the program itself adds up: token by token, of every kind."""

import json
import logging
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from adapters.coding.crews import KEY, LIKE, Crew, command_of
from remit import Card, Runtime
from remit.core.prices import Usage
from remit.testing.models import Calls, Cut, Fails, ModelReply, ModelRequest, Says, model_server

pytestmark = pytest.mark.anyio
FIRST, SECOND, LAST = Usage(10_000, 100, 8_000, 1_000), Usage(11_000, 150, 9_000, 500), Usage(12_000, 30, 11_000)
Step = Callable[[ModelRequest], ModelReply]


def shell(usage: Usage) -> Step:
    def step(request: ModelRequest) -> ModelReply:
        if "input" in request.body:
            return Calls("exec_command", {"cmd": "echo a"}, usage=usage)
        if "contents" in request.body:
            return Calls("run_shell_command", {"command": "echo a"}, usage=usage)
        return Calls("Bash", {"command": "echo a", "description": "say it"}, usage=usage)

    return step


def says(usage: Usage) -> Step:
    return lambda _: Says("done", usage=usage)


def breaks(usage: Usage) -> Step:
    return lambda _: Cut(Says("never " * 50, usage=usage))


def fails(status: int) -> Step:
    return lambda _: Fails(status)


def asks_itself(usage: Usage) -> Step:
    """Claude Code starts an agent of its own, which makes requests beside the conversation."""
    given = {"description": "look", "prompt": "look around", "subagent_type": "general-purpose"}
    return lambda _: Calls("Agent", given, usage=usage)


RUNS: dict[str, Sequence[Step]] = {
    "several": (shell(FIRST), shell(SECOND), says(LAST)),
    "asked-again": (shell(FIRST), breaks(SECOND), says(LAST)),
    "replaced": (shell(FIRST), fails(529), says(LAST)),
    "beside": (asks_itself(FIRST), shell(SECOND), says(LAST), says(LAST)),
}


def own_figures(lines: Path) -> tuple[Usage, float | None]:
    """What the program says at its end: its tokens, and the dollars if it counts those."""
    for line in map(json.loads, lines.read_text().splitlines()):
        if line.get("type") == "turn.completed":
            one = line["usage"]
            cached, stored = one["cached_input_tokens"], one["cache_write_input_tokens"]
            return Usage(one["input_tokens"], one["output_tokens"], cached, stored), None
        if line.get("type") == "result" and "stats" in line:
            one = line["stats"]
            return Usage(one["input_tokens"], one["output_tokens"], one["cached"]), None
        if line.get("type") == "result":
            every = line["modelUsage"].values()
            names = ("inputTokens", "outputTokens", "cacheReadInputTokens", "cacheCreationInputTokens")
            plain, written, cached, stored = (sum(one[name] for one in every) for name in names)
            return Usage(plain + cached + stored, written, cached, stored), line["total_cost_usd"]
    raise AssertionError(f"{lines} has no end")


async def recorded(rt: Runtime) -> Usage:
    """The sum of the answers on record."""
    events = [one for one in await rt.workspace.journal.history() if one.kind == "model.answered"]
    usages: list[Any] = [one.data["usage"] for one in events]
    names = ("input", "output", "cached_input", "cache_written")
    return Usage(*(sum(one.get(name, 0) for one in usages) for name in names))


@pytest.mark.rule("coding.bill")
@pytest.mark.parametrize("program", LIKE)
@pytest.mark.parametrize("case", RUNS)
async def test_the_record_has_the_tokens_that_a_real_program_counts(
    program: str, case: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    if program != "claude" and case == "beside":
        pytest.skip("only Claude Code starts agents of its own here")
    monkeypatch.setenv("CODING_KEY", KEY)
    lines, left = tmp_path / "lines", iter(RUNS[case])

    def script(request: ModelRequest) -> ModelReply:
        return next(left)(request)

    command = ["bash", "-c", f'set -o pipefail; "$0" "$@" | tee {lines}', *command_of(program, real=True)]
    async with model_server(script, strict=False) as server, Runtime() as rt:
        crew = Crew(server.url, tmp_path, real=True)
        if program == "claude":
            more = {"tools": ["Bash", "Agent"], "allow": ["Bash", "Agent"]}
            agent = crew.claude(
                model="anthropic:claude-sonnet-4-5", fallback=["anthropic:claude-opus-4-5"], command=command, **more
            )
        elif program == "gemini":
            models = {"model": "google:gemini-2.5-flash", "fallback": ["google:gemini-2.5-pro"]}
            agent = crew.gemini(command=command, **models)
        else:
            agent = crew.codex(model="openai:gpt-5", fallback=["openai:gpt-5-mini"], command=command)
        rt.add(Card("coder"), agent)
        outcome = await rt.outcome("coder", "do it", credits="$5")
        assert outcome.state == "completed", outcome
        spent = (await rt.workspace.money.spend()).total
        usage, dollars = own_figures(lines)
        if (program, case) == ("gemini", "asked-again"):  # it does not count what it asks for again
            usage = replace(usage, input=22_000, output=130, cached_input=19_000)
        assert await recorded(rt) == usage
        assert next(left, None) is None
        assert bool(spent.uncertain) == (case == "asked-again"), "a program does not count an answer that broke off"
        if dollars is not None and case != "replaced":  # it does not know the model that replaced its own
            assert spent.credits - spent.uncertain == round(dollars * 1_000_000)


@pytest.mark.parametrize("program", LIKE)
@pytest.mark.parametrize("counted", [110, 111])
async def test_tokens_that_went_past_the_gateway_are_told(
    program: str, counted: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
):
    monkeypatch.setenv("CODING_KEY", KEY)
    async with model_server([Says("done", usage=(100, 10))], strict=False) as server, Runtime() as rt:
        rt.add(Card("coder"), getattr(Crew(server.url, tmp_path), program)(env={"LIKE_COUNTED": str(counted)}))
        with caplog.at_level(logging.WARNING, "remit"):
            assert await rt.run("coder", "do it") == "done"
    told = [one.getMessage() for one in caplog.records if "went through the gateway" in one.getMessage()]
    assert bool(told) == (counted > 110)
    assert all("used 111 tokens, and 110 went through the gateway" in one for one in told)
