"""Scripts without a framework: what `pip install remit` alone can run."""

import subprocess
import sys
from pathlib import Path

import pytest

from commands import Said, plain_environment
from remit import Runtime, Turn
from remit.config.scripts import ScriptedModel, ScriptLine
from remit.ports.tools import Tool

PLAIN = """
import sys
frameworks = ("pydantic_ai", "openai", "anthropic", "genai_prices", "agents", "langchain", "langgraph", "httpx", "mcp")
sys.modules.update(dict.fromkeys(frameworks))
from remit.cli.main import main
main()
"""


def remit(folder: Path, *words: str) -> Said:
    """Run `remit` as it is without any of the packages that ask models."""
    command = [sys.executable, "-c", PLAIN, *words]  # not forked from a process that has them
    done = subprocess.run(command, cwd=folder, env=plain_environment(), capture_output=True, text=True)
    return Said(done.returncode, done.stdout, done.stderr)


@pytest.mark.rule("script.plain")
def test_a_team_of_scripts_runs_after_a_plain_install(tmp_path: Path):
    assert "a real model needs more: pip install 'remit[llm]'" in remit(tmp_path, "init").stdout
    done = remit(tmp_path, "run", "my lamp of order 17 is broken, I want my money back")
    assert done.returncode == 0, done.stderr
    assert "17" in done.stdout
    assert remit(tmp_path, "check").returncode == 0


@pytest.mark.rule("script.plain")
def test_a_real_model_says_what_to_install(tmp_path: Path):
    (tmp_path / "remit.toml").write_text('[agents.a]\nmodel = "openai:gpt-5"\n')
    assert "needs pip install 'remit[llm]'" in remit(tmp_path, "run", "hello").stderr


def plain(rt: Runtime, *lines: ScriptLine, **about: object) -> None:
    rt.model_agent("it", ScriptedModel("script:s.toml", "it", lines), **about)  # type: ignore[arg-type]


@pytest.mark.anyio
@pytest.mark.rule("script.plain")
async def test_it_uses_tools_of_every_kind_and_asks_others():
    async def slow(text: str) -> str:
        return f"slowly {text}"

    def quick(text: str) -> str:
        return f"quickly {text}"

    async def outside(arguments: dict[str, object]) -> object:
        return f"from outside: {arguments['text']}"

    schema = {"type": "object", "properties": {"text": {"type": "string"}}}
    far = Tool("far", "Look far away.", schema, outside, untrusted=True)
    lines = (
        ScriptLine(call="slow", arguments={"text": "{task}"}),
        ScriptLine(after="slow", call="quick", arguments={"text": "{result}"}),
        ScriptLine(after="quick", call="far", arguments={"text": "x"}),
        ScriptLine(after="far", call="call_agent", arguments={"agent": "other", "task": "help"}),
        ScriptLine(after="call_agent", call="nothing"),
        ScriptLine(after="nothing", say="{quick}, {call_agent}, {nothing}"),
    )
    async with Runtime() as rt:

        @rt.agent
        async def other(turn: Turn) -> str:
            return "helped"

        plain(rt, *lines, tools=[slow, quick, far], asks=["other"])
        outcome = await rt.outcome("it", "go")
        assert outcome.ok
        for words in ("quickly slowly go, ", "helped", "there is no tool 'nothing'; there are "):
            assert words in str(outcome.value)
        assert outcome.trust == "untrusted"


@pytest.mark.anyio
@pytest.mark.rule("script.plain")
async def test_it_hands_over_and_says_what_line_is_missing():
    async with Runtime() as rt:

        @rt.agent
        async def other(turn: Turn) -> str:
            return "mine now"

        plain(rt, ScriptLine(call="handoff", arguments={"agent": "other"}), asks=["other"])
        assert await rt.run("it", "go") == "mine now"
    async with Runtime() as rt:
        plain(rt, ScriptLine(when="something else", say="no"))
        outcome = await rt.outcome("it", "go")
        assert "script:s.toml has no line for it to begin with for 'go'; add one without `when`" in str(outcome.error)
