"""Codex as a member: its command line, and the lines that it prints."""

from __future__ import annotations

import os
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple, get_args

from remit.adapters.coding.agent import WEEK, CodingAgent, ProgramSaid, ProgramStart, installed, model_names, places_of
from remit.adapters.coding.places import TaskPlace
from remit.adapters.endpoints import KeysGiven, UrlGiven
from remit.adapters.gateway.joining import JoinedProgram, joining
from remit.adapters.gateway.members import MAX_TOKENS
from remit.adapters.gateway.reading import count, fields
from remit.adapters.gateway.wires import WIRES
from remit.core.values import encode, shown
from remit.errors import BadInput

Sandbox = Literal["read-only", "workspace-write", "danger-full-access"]
_ID: Final = 36  # characters of a session's id


def codex(
    model: str,
    *,
    cwd: str | os.PathLike[str] | None = None,
    worktree: bool = False,
    sandbox: Sandbox = "workspace-write",
    fallback: Sequence[str] = (),
    keys: KeysGiven = (),
    base_url: UrlGiven = None,
    max_tokens: int = MAX_TOKENS,
    env: Mapping[str, str] | None = None,
    command: Sequence[str] = ("codex",),
    home: str | os.PathLike[str] | None = None,
) -> CodingAgent:
    """Return an agent that is Codex: `codex("openai:gpt-5", cwd="repo", sandbox="read-only")`.

    Its model requests go through remit: within the budget and the bounds of its task, recorded, and without a key of a
    provider. It may ask the agents of its card. `sandbox` is what its shell commands may do. Codex asks no person about
    them: let it ask an agent, or a person, by the verbs of its turn. The other keywords are those of `claude_code`.
    """
    if sandbox not in get_args(Sandbox):
        raise BadInput(f"sandbox is one of {', '.join(get_args(Sandbox))}, not {shown(sandbox)}")
    models = [model, *fallback]
    named = model_names(models, WIRES["/v1/responses"], "Codex")[0]
    program = Codex(installed(command, env, "@openai/codex"), named, sandbox, dict(env or {}))
    joins = joining(models, True, keys=keys, base_url=base_url, max_tokens=max_tokens, resumes=True)
    return CodingAgent(program, joins, places_of(cwd, home, worktree=worktree))


class Codex(NamedTuple):
    """The command line, settings and output format of Codex."""

    command: list[str]
    model: str
    sandbox: str
    env: dict[str, str]

    @property
    def name(self) -> str:
        return "codex"

    def sessions(self, place: TaskPlace) -> list[Path]:
        """Return the files of the session. Its home belongs to the task, so there is one session in it."""
        return sorted((place.home / "sessions").rglob("rollout-*.jsonl"))

    @contextmanager
    def started(
        self, joined: JoinedProgram, place: TaskPlace, *, resumes: bool, instructions: str
    ) -> Generator[ProgramStart]:
        yield ProgramStart(
            self._argv(joined.url, _thread(self.sessions(place)) if resumes else "", instructions),
            {"CODEX_HOME": str(place.home), "REMIT_TOKEN": joined.member.token, **self.env},
        )

    def _argv(self, url: str, thread: str, instructions: str) -> list[str]:
        provider = f'{{name="remit",base_url="{url}/v1",env_key="REMIT_TOKEN",wire_api="responses"}}'
        server = f'{{url="{url}/mcp",bearer_token_env_var="REMIT_TOKEN",tool_timeout_sec={WEEK}}}'
        settings = [
            f"model_providers.remit={provider}",
            'model_provider="remit"',
            f"mcp_servers.remit={server}",
            'mcp_servers.remit.default_tools_approval_mode="approve"',
            'shell_environment_policy.exclude=["REMIT_*"]',  # a shell command must not inherit the token
            'web_search="disabled"',
            f'sandbox_mode="{self.sandbox}"',
            *([f"developer_instructions={encode(instructions)}"] if instructions else ()),
        ]
        return [
            *(*self.command, "exec", *(("resume", thread) if thread else ()), "--json", "--skip-git-repo-check"),
            *("-m", self.model, *(word for one in settings for word in ("-c", one))),
            *("--disable", "multi_agent", "--disable", "goals", "-"),
        ]

    def hear(self, said: ProgramSaid, line: dict[str, Any], place: TaskPlace) -> None:
        match line:
            case {"type": "item.completed", "item": {"type": "agent_message", "text": str() as text}}:
                said.answer = said.doing = text
            case {"type": "item.started", "item": {"type": "command_execution", "command": str() as text}}:
                said.doing = f"shell: {text}"
            case {"type": "item.started", "item": {"type": "mcp_tool_call", "tool": str() as name}}:
                said.doing = name
            case {"type": "turn.failed", "error": {"message": str() as text}}:
                said.ended, said.error = True, text
            case {"type": "turn.completed"}:
                said.ended, usage = True, fields(line.get("usage"))
                said.tokens += count(usage.get("input_tokens")) + count(usage.get("output_tokens"))
            case _:
                pass


def _thread(sessions: list[Path]) -> str:
    """Return the id of the latest session, which ends the name of its file. Codex finds the last session by itself, but
    only one that began in the same folder."""
    return sessions[-1].stem[-_ID:]
