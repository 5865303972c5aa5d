"""Claude Code and Codex as members: one team, one budget, approvals by people, and folders of their own."""

import asyncio
import json
import re
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any, cast

import pytest
from mcp import types as mcp_types

from adapters.coding.crews import KEY, LIKE, SYSTEM, Crew, repository
from remit import Card, Runtime
from remit.adapters.coding import claude_code, codex, gemini_cli
from remit.engine.directory import AgentRules
from remit.engine.people import Inquiry
from remit.errors import BadInput
from remit.testing.models import Calls, Fails, ModelReply, ModelRequest, ModelServer, Says, model_server

assert mcp_types  # imported here, because its import inside a test would be slow

pytestmark = pytest.mark.anyio
Script = Callable[[ModelRequest], ModelReply]
PROGRAMS = tuple(LIKE)


class Model:
    """The scripted model of all agents of a test: `script` is asked, and may be set later."""

    def __init__(self) -> None:
        self.script: Script = lambda _: Says("done")
        self.asked: list[ModelRequest] = []

    def __call__(self, request: ModelRequest) -> ModelReply:
        self.asked.append(request)
        return self.script(request)


@pytest.fixture
def model() -> Model:
    return Model()


@pytest.fixture
async def server(model: Model) -> AsyncIterator[ModelServer]:
    async with model_server(model, strict=False) as found:
        yield found


@pytest.fixture(params=["like", "real"])
def crew(request: pytest.FixtureRequest, server: ModelServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Crew:
    monkeypatch.setenv("CODING_KEY", KEY)
    return Crew(server.url, repository(tmp_path / "repo"), real=request.param == "real")


@pytest.fixture
async def rt() -> AsyncIterator[Runtime]:
    async with Runtime(system=SYSTEM) as made:
        yield made


def text_of(request: ModelRequest) -> str:
    return json.dumps(request.body)


def shell_of(request: ModelRequest, command: str, **about: Any) -> Calls:
    """A call of the shell, in the words of the program that asks."""
    if "input" in request.body:
        return Calls("exec_command", {"cmd": command}, **about)
    if "contents" in request.body:
        return Calls("run_shell_command", {"command": command}, **about)
    return Calls("Bash", {"command": command, "description": "try it"}, **about)


def steps(*replies: Callable[[ModelRequest], ModelReply]) -> Script:
    """A script of one reply after the other."""
    left = iter(replies)

    def script(request: ModelRequest) -> ModelReply:
        return next(left)(request)

    return script


def verb(name: str, given: dict[str, Any]) -> Callable[[ModelRequest], ModelReply]:
    """A call of a verb, in the words of the program that asks."""

    def step(request: ModelRequest) -> ModelReply:
        if "contents" in request.body:
            return Calls(f"mcp_remit_{name}", given)
        return Calls(name, given, namespace="mcp__remit")

    return step


def says(text: str) -> Callable[[ModelRequest], ModelReply]:
    return lambda _: Says(text)


async def question(rt: Runtime) -> Inquiry:
    """The first question to a person, as soon as it is asked."""
    async with rt.workspace.journal.follow(after=0) as follow:
        while True:
            if found := await rt.workspace.questions.list():
                return found[0]
            await follow.next()


@pytest.mark.rule("coding.member")
async def test_coding_agents_work_under_one_chain_and_one_budget(rt: Runtime, crew: Crew, model: Model):
    rt.add(Card("coder", asks=["reviewer", "clerk"], instructions="Be brief."), crew.claude())
    rt.add(Card("reviewer", asks=["coder", "clerk"]), crew.codex(sandbox="read-only"))
    rt.add(Card("clerk", asks=["coder", "reviewer"], instructions="Be brief."), crew.gemini())
    replies = {
        "messages": steps(
            lambda one: shell_of(one, "echo new > b.txt; env; cat /proc/$PPID/environ | tr '\\0' '\\n'"),
            verb("call_agent", {"agent": "reviewer", "task": "review b.txt"}),
            verb("call_agent", {"agent": "clerk", "task": "file it"}),
            says("written and reviewed"),
        ),
        "input": steps(
            verb("call_agent", {"agent": "coder", "task": "do it again"}),
            lambda one: shell_of(one, "env"),
            says("looks good"),
        ),
        "contents": steps(
            lambda one: shell_of(one, "env; cat /proc/$PPID/environ | tr '\\0' '\\n'"),
            verb("call_agent", {"agent": "coder", "task": "do it again"}),
            says("filed"),
        ),
    }
    model.script = lambda one: next(script for field, script in replies.items() if field in one.body)(one)
    outcome = await rt.outcome("coder", "write b.txt", credits="$2")
    assert (outcome.state, outcome.value) == ("completed", "written and reviewed")
    assert all(one in text_of(model.asked[-1]) for one in ("looks good", "filed"))
    everything = "".join(map(text_of, model.asked))
    assert "is already in this delegation (coder > reviewer)" in everything
    assert "is already in this delegation (coder > clerk)" in everything
    assert KEY not in everything
    assert "rmg_" not in everything  # no agent's shell has the token
    assert all("Be brief." in text_of(one) for one in model.asked if "input" not in one.body)
    spent = (await rt.workspace.money.spend()).total
    assert spent.uncertain == 0
    assert spent.calls == len(model.asked)
    assert not list(crew.home.iterdir())  # its session is not kept


@pytest.mark.rule("coding.approve")
@pytest.mark.parametrize("verdict", ["approve", "edit", "reject"])
async def test_a_person_is_asked_about_a_tool_that_is_not_allowed(rt: Runtime, crew: Crew, model: Model, verdict: str):
    agent = crew.claude(allow=["Bash(ls*)"])
    rt.add(Card("coder"), agent)
    model.script = steps(lambda one: shell_of(one, "touch new.txt; echo one-$((1+1))"), says("done"))
    run = asyncio.ensure_future(rt.outcome("coder", "say it", credits="$2"))
    asked = await question(rt)
    assert asked.shows["action"] == "Bash"
    if verdict == "reject":
        await rt.workspace.questions.reject(asked.id, by="ann", why="too dangerous")
    else:
        other = {**cast("dict[str, Any]", asked.shows["arguments"]), "command": "touch new.txt; echo three-$((2+2))"}
        await rt.workspace.questions.approve(asked.id, by="ann", value=other if verdict == "edit" else None)
    assert (await run).state == "completed"
    told = text_of(model.asked[-1])
    expected = {"approve": "one-2", "edit": "three-4", "reject": "too dangerous"}
    assert [word for word in expected.values() if word in told] == [expected[verdict]]


async def test_a_tool_that_nobody_may_approve_is_denied(rt: Runtime, crew: Crew, model: Model):
    rt.add(Card("coder"), crew.claude(allow=[], approve=False))
    model.script = steps(lambda one: shell_of(one, "echo one-$((1+1)) > /dev/null; touch made.txt"), says("done"))
    assert (await rt.outcome("coder", "say it", credits="$2")).state == "completed"
    assert await rt.workspace.questions.list() == []
    assert "denied" in text_of(model.asked[-1]) or "permission" in text_of(model.asked[-1])


@pytest.mark.rule("coding.money")
@pytest.mark.parametrize("program", PROGRAMS)
async def test_a_coding_agent_without_money_stops_at_once_with_the_sentence(
    rt: Runtime, crew: Crew, model: Model, program: str
):
    rt.add(Card("coder"), getattr(crew, program)())
    outcome = await rt.outcome("coder", "say it", credits="$0.000001")
    assert outcome.state == "failed"
    assert "may not pay for this" in str(outcome.error)
    assert model.asked == []


@pytest.mark.rule("coding.worktree")
@pytest.mark.parametrize("program", PROGRAMS)
async def test_a_task_has_a_worktree_of_its_own_and_its_changes_are_an_artifact(
    rt: Runtime, crew: Crew, model: Model, tmp_path: Path, program: str
):
    rt.add(Card("coder"), getattr(crew, program)(worktree=True))
    model.script = steps(lambda one: shell_of(one, "echo two >> a.txt; echo new > b.txt"), says("changed"))
    outcome = await rt.outcome("coder", "change it", credits="$2")
    found = re.search(r"sha256:[0-9a-f]{64}", str(outcome.value))
    assert found is not None, outcome
    artifact = await rt.workspace.artifacts.open(found[0])
    diff = (await artifact.read()).decode()
    assert "+two" in diff
    assert "b.txt" in diff
    assert (tmp_path / "repo" / "a.txt").read_text() == "one\n"
    assert not list(crew.home.iterdir())


async def test_a_task_that_fails_leaves_its_worktree(rt: Runtime, crew: Crew, model: Model):
    rt.add(Card("coder"), crew.claude(worktree=True))
    model.script = steps(lambda one: shell_of(one, "echo two >> a.txt"), lambda _: Fails(400, message="odd"))
    outcome = await rt.outcome("coder", "change it", credits="$2")
    assert outcome.state == "failed"
    assert "odd" in str(outcome.error)
    [home] = crew.home.iterdir()
    assert (home / "tree" / "a.txt").read_text() == "one\ntwo\n"


async def test_a_worktree_needs_a_repository(rt: Runtime, crew: Crew, tmp_path: Path):
    rt.add(Card("coder"), crew.claude(worktree=True, cwd=tmp_path))
    outcome = await rt.outcome("coder", "change it")
    assert outcome.state == "failed"
    assert "worktree=True needs a git repository" in str(outcome.error)


@pytest.mark.rule("coding.review")
async def test_a_result_that_is_sent_back_goes_on_in_the_same_session(rt: Runtime, crew: Crew, model: Model):
    rt.add(Card("coder", review=True), crew.claude(worktree=True))
    model.script = steps(lambda one: shell_of(one, "echo two >> a.txt"), says("first"), says("second"))
    run = asyncio.ensure_future(rt.outcome("coder", "change it", credits="$2"))
    for verdict in ("back", "yes"):
        asked = await question(rt)
        if verdict == "back":
            await rt.workspace.questions.reject(asked.id, why="shorter", by="ann")
        else:
            await rt.workspace.questions.approve(asked.id, by="ann")
    outcome = await run
    assert "second" in str(outcome.value)
    assert "first" in text_of(model.asked[-1])
    assert "shorter" in text_of(model.asked[-1])


async def test_an_agent_that_does_not_reach_its_team_fails(
    rt: Runtime, server: ModelServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("CODING_KEY", KEY)
    rt.add(Card("coder"), Crew(server.url, tmp_path).claude(env={"LIKE": "alone"}))
    outcome = await rt.outcome("coder", "say it")
    assert outcome.state == "failed"
    assert "did not reach the agents of its team" in str(outcome.error)


async def test_what_a_coding_agent_does_is_shown_as_progress(rt: Runtime, crew: Crew, model: Model):
    rt.add(Card("coder"), crew.codex())
    model.script = steps(lambda one: shell_of(one, "ls"), says("done"))
    shown = [str(one) async for one in rt.stream("coder", "look", credits="$2")]
    assert any("shell: " in one for one in shown)


@pytest.mark.parametrize(
    ("make", "wrong"),
    [
        (
            lambda: claude_code("anthropic:claude-x", command=["no-such-program"]),
            "npm install -g @anthropic-ai/claude-code",
        ),
        (lambda: claude_code("anthropic:claude-x", command=["true"], cwd="/nowhere"), "cwd is the folder"),
        (lambda: claude_code("anthropic:claude-x", command=["true"], allow="Edit"), "allow is a list"),
        (lambda: claude_code("claude-x", command=["true"]), "claude-x"),
        (lambda: claude_code("openai:gpt-x", command=["true"]), "Claude Code speaks the format /v1/messages"),
        (lambda: codex("anthropic:claude-x", command=["true"]), "Codex speaks the format /v1/responses"),
        (lambda: codex("openai:gpt-x", command=["true"], sandbox="none"), "sandbox is one of"),  # pyright: ignore[reportArgumentType]
        (lambda: codex("openai:gpt-x", command=["true"], max_tokens=0), "max_tokens"),
        (lambda: gemini_cli("openai:gpt-x", command=["true"]), "Gemini CLI speaks the format /v1beta/models/MODEL"),
        (lambda: gemini_cli("google:gemini-x", command=["true"], allow="glob"), "allow is a list"),
    ],
)
def test_bad_settings_of_coding_agents_are_refused(make: Callable[[], Any], wrong: str):
    with pytest.raises(BadInput, match=wrong):
        make()


async def test_a_denied_tool_is_not_offered_to_the_model_of_a_coding_agent(rt: Runtime, crew: Crew, model: Model):
    rt.add(Card("coder", deny=["Bash"]), crew.claude())
    assert (await rt.outcome("coder", "say it", credits="$2")).state == "completed"
    offered = {tool["name"] for tool in model.asked[0].body["tools"]}
    assert "Bash" not in offered
    assert "Edit" in offered


async def test_approvals_of_a_coding_agent_are_its_own_setting(rt: Runtime):
    rules = AgentRules(approve_tools=frozenset(("Bash",)))
    with pytest.raises(BadInput, match=r"is a coding agent, and remit does not see which tools it uses"):
        rt.add(Card("coder"), claude_code("anthropic:claude-x", command=["true"]), rules=rules)


async def test_a_coding_agent_has_a_name_and_a_long_attempt(rt: Runtime):
    rt.add(claude_code("anthropic:claude-x", command=["true"]), can="write code")
    assert rt.stack("claude-code").iterations == 1_000
    assert [card.name for card in rt.cards()] == ["claude-code"]
