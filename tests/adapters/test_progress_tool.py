"""The tool with which models say how far they are."""

from typing import Any

import pytest
from pydantic_ai import Agent
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models.function import AgentInfo, FunctionModel

import teams
from remit import Runtime, Turn
from remit.adapters.progress import report_progress
from remit.config.teams import team
from remit.core.loops import Loops
from remit.engine.settings import Policy
from remit.errors import BadInput
from remit.testing import FakeClock
from remit.testing.models import Calls, Says, model_server
from remit.types import Progress

pytestmark = pytest.mark.anyio

TOOL = "report_progress"


def reports(texts: list[str]) -> list[Calls | Says]:
    return [*(Calls(TOOL, {"text": text, "fraction": 1}) for text in texts), Says("done")]


async def streamed(rt: Runtime) -> list[str]:
    return [str(one) async for one in rt.stream("coder", "go") if isinstance(one, Progress)]


async def outcomes(rt: Runtime) -> list[str]:
    return [str(event.data["outcome"]) for event in await rt.workspace.journal.history() if event.kind == "tool.done"]


@pytest.mark.rule("progress.tool", "loops.legitimate")
async def test_a_model_reports_and_new_texts_are_no_loop(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("OPENAI_KEY_A", "any")
    texts = [f"{number} of 20 files" for number in range(20)]
    async with model_server(reports(texts)) as server, Runtime(policy=Policy(loops=Loops(stale=5))) as rt:
        how: Any = {"keys": ["OPENAI_KEY_A"], "base_url": f"{server.url}/v1", "tools": [report_progress]}
        rt.model_agent("coder", "openai-chat:gpt-5", **how)
        assert await streamed(rt) == [f"{text} (100 %)" for text in texts]
        assert await outcomes(rt) == ["done"] * 20


@pytest.mark.rule("progress.tool")
async def test_the_same_text_again_and_again_is_a_loop(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("OPENAI_KEY_A", "any")
    async with model_server(reports(["working"] * 20)) as server, Runtime(policy=Policy(loops=Loops(stale=5))) as rt:
        how: Any = {"keys": ["OPENAI_KEY_A"], "base_url": f"{server.url}/v1", "tools": [report_progress]}
        rt.model_agent("coder", "openai-chat:gpt-5", **how)
        await streamed(rt)
        assert "refused" in await outcomes(rt)


@pytest.mark.rule("progress.tool")
async def test_reports_of_a_guest_are_cut_and_at_most_one_a_second_is_shown():
    said: list[Any] = [(TOOL, {"text": "a\n" * 300}), (TOOL, {"text": "too soon"}), (TOOL, {"text": ""}), "done"]

    def answer(_messages: list[ModelMessage], _info: AgentInfo) -> ModelResponse:
        one = said.pop(0)
        return ModelResponse([TextPart(one) if isinstance(one, str) else ToolCallPart(*one)])

    shown = ""

    async def looking(_turn: Turn, go: Any) -> object:
        nonlocal shown
        done = await go()
        [found] = (await rt.workspace.tasks.progress()).values()
        shown = str(found)
        return done

    async with teams.team(clock=FakeClock()) as rt:
        rt.around(looking)
        rt.add(Agent(FunctionModel(answer), name="coder", tools=[report_progress], retries=3))
        assert await rt.run("coder", "go") == "done"
        assert (len(shown), shown[-1], "\n" in shown) == (200, "…", False)
        assert await outcomes(rt) == ["done", "done", "failed"]
    with pytest.raises(BadInput, match="a tool of an agent"):
        await report_progress("outside")


@pytest.mark.rule("progress.tool")
async def test_a_team_file_names_the_tool_as_any_function(tmp_path: Any):
    (tmp_path / "script.toml").write_text(
        f"[[coder]]\ncall = '{TOOL}'\nwith = {{ text = 'half', fraction = 0.5 }}\n"
        f"[[coder]]\nafter = '{TOOL}'\nsay = '{{result}}'\n"
    )
    file = tmp_path / "remit.toml"
    file.write_text(
        f"[agents.coder]\nmodel = 'script:script.toml'\ntools = ['{TOOL}']\n"
        f"[tools]\n{TOOL} = 'remit.adapters.progress:{TOOL}'\n"
    )
    async with team(file).runtime as rt:
        assert await streamed(rt) == ["half (50 %)"]
