"""Claude Code as a member: its command line, its settings, and the lines that it prints."""

from __future__ import annotations

import json
import os
import re
import uuid
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, NamedTuple

from remit.adapters.coding.agent import (
    WEEK,
    CodingAgent,
    ProgramSaid,
    ProgramStart,
    checked_names,
    installed,
    model_names,
    places_of,
    token_pipe,
    write_private,
)
from remit.adapters.coding.places import TaskPlace
from remit.adapters.endpoints import KeysGiven, UrlGiven
from remit.adapters.gateway.joining import JoinedProgram, joining
from remit.adapters.gateway.members import MAX_TOKENS
from remit.adapters.gateway.reading import count, fields, items_of
from remit.adapters.gateway.wires import WIRES

VERBS: Final = "mcp__remit"  # how Claude Code names the tools of remit's MCP server
TOOLS: Final = ("Bash", "Edit", "Read", "Write", "Glob", "Grep")
_SESSIONS: Final = uuid.UUID("6f1d7a3e-2f0b-5c55-9c1e-6d1f6f2c8a10")
_OTHER: Final = re.compile(r"[^A-Za-z0-9]")
_CONFIG: Final = "mcp.json"
_QUIET: Final = ("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "DISABLE_TELEMETRY", "DISABLE_AUTOUPDATER")
_COUNTS: Final = ("inputTokens", "outputTokens", "cacheReadInputTokens", "cacheCreationInputTokens")
_SMALL: Final = ("ANTHROPIC_SMALL_FAST_MODEL", "ANTHROPIC_DEFAULT_HAIKU_MODEL", "CLAUDE_CODE_SUBAGENT_MODEL")


def claude_code(
    model: str,
    *,
    cwd: str | os.PathLike[str] | None = None,
    worktree: bool = False,
    allow: Sequence[str] = (),
    approve: bool = True,
    tools: Sequence[str] = TOOLS,
    fallback: Sequence[str] = (),
    keys: KeysGiven = (),
    base_url: UrlGiven = None,
    max_tokens: int = MAX_TOKENS,
    env: Mapping[str, str] | None = None,
    command: Sequence[str] = ("claude",),
    home: str | os.PathLike[str] | None = None,
) -> CodingAgent:
    """Return an agent that is Claude Code: `claude_code("anthropic:claude-sonnet-4-5", cwd="repo", allow=["Edit"])`.

    Its model requests go through remit: within the budget and the bounds of its task, recorded, and without a key of a
    provider. It may ask the agents of its card. It works in the folder `cwd`; with `worktree`, each task gets a git
    worktree of that folder's repository, and what it changed is an artifact of the result.

    `tools` are those of Claude Code's own tools that it has, and `allow` those that it may use without asking, such as
    "Edit" or "Bash(pytest*)". A person is asked about each other use; with `approve=False` it is denied.

    If `model` fails, remit asks those in `fallback`. `keys` and `base_url` are those of `rt.model_agent`, and
    `max_tokens` limits each answer. `command` starts Claude Code, with `env` added to its variables.

    If an attempt is interrupted, the next one resumes the session, and tells the model what the session lacks. Sessions
    are in `home`, by default in the user's folder for state, and are removed when the task is done.
    """
    models = [model, *fallback]
    program = ClaudeCode(
        installed(command, env, "@anthropic-ai/claude-code"),
        model_names(models, WIRES["/v1/messages"], "Claude Code")[0],
        checked_names(tools, "tools"),
        checked_names(allow, "allow"),
        approve,
        max_tokens,
        dict(env or {}),
    )
    joins = joining(models, True, keys=keys, base_url=base_url, max_tokens=max_tokens, approves=approve, resumes=True)
    return CodingAgent(program, joins, places_of(cwd, home, worktree=worktree))


class ClaudeCode(NamedTuple):
    """The command line, settings and output format of Claude Code."""

    command: list[str]
    model: str
    tools: list[str]
    allow: list[str]
    approves: bool
    max_tokens: int
    env: dict[str, str]

    @property
    def name(self) -> str:
        return "claude-code"

    def sessions(self, place: TaskPlace) -> list[Path]:
        """Return the file of the session. A session of another folder cannot be resumed, and has another id."""
        folder = _OTHER.sub("-", str(place.cwd))
        file = place.home / "projects" / folder / f"{_session(place)}.jsonl"
        return [file] if file.exists() else []

    @contextmanager
    def started(
        self, joined: JoinedProgram, place: TaskPlace, *, resumes: bool, instructions: str
    ) -> Generator[ProgramStart]:
        """Write the settings, and yield the command to start. The token is in a pipe, so that a shell command of the
        agent does not inherit it."""
        config = place.home / _CONFIG
        write_private(config, json.dumps(_servers(joined)))
        try:
            with token_pipe(joined.member.token) as descriptor:
                argv = self._argv(place, config, resumes, instructions)
                yield ProgramStart(argv, self._env(joined, place, descriptor), (descriptor,))
        finally:
            config.unlink(missing_ok=True)

    def _argv(self, place: TaskPlace, config: Path, resumes: bool, instructions: str) -> list[str]:
        asks = ["--permission-prompt-tool", f"{VERBS}__approve"] if self.approves else []
        told = ["--append-system-prompt", instructions] if instructions else []
        return [
            *(*self.command, "-p", "--output-format", "stream-json", "--verbose", "--model", self.model),
            *("--setting-sources", "", "--mcp-config", str(config), "--strict-mcp-config"),
            *(*asks, *told, "--tools", ",".join(self.tools), "--allowedTools", *self.allow, VERBS),
            *("--resume" if resumes else "--session-id", str(_session(place))),
        ]

    def _env(self, joined: JoinedProgram, place: TaskPlace, descriptor: int) -> dict[str, str]:
        return {
            "CLAUDE_CONFIG_DIR": str(place.home),
            "ANTHROPIC_BASE_URL": joined.url,
            "CLAUDE_CODE_API_KEY_FILE_DESCRIPTOR": str(descriptor),
            "MCP_TOOL_TIMEOUT": str(WEEK * 1_000),
            "CLAUDE_CODE_MCP_TOOL_IDLE_TIMEOUT": "0",  # otherwise a verb that is silent for five minutes is given up
            "CLAUDE_CODE_MAX_OUTPUT_TOKENS": str(self.max_tokens),
            **dict.fromkeys(_QUIET, "1"),
            **dict.fromkeys(_SMALL, self.model),
            **self.env,
        }

    def hear(self, said: ProgramSaid, line: dict[str, Any], place: TaskPlace) -> None:
        if line.get("type") == "system" and line.get("subtype") == "init":
            (place.home / _CONFIG).unlink(missing_ok=True)
            if not any(_is_connected(fields(one)) for one in items_of(line.get("mcp_servers"))):
                said.broken = "Claude Code did not reach the agents of its team over MCP"
        elif line.get("type") == "assistant":
            for part in items_of(fields(line.get("message")).get("content")):
                said.doing = _doing(fields(part)) or said.doing
        elif line.get("type") == "result":
            said.ended, result = True, line.get("result")
            said.answer = result if isinstance(result, str) else ""
            for counts in fields(line.get("modelUsage")).values():
                said.tokens += sum(count(fields(counts).get(name)) for name in _COUNTS)
            if line.get("is_error"):
                said.error = said.answer or str(line.get("subtype", "an error"))


def _session(place: TaskPlace) -> uuid.UUID:
    return uuid.uuid5(_SESSIONS, f"{place.home.name} {place.cwd}")


def _servers(joined: JoinedProgram) -> dict[str, Any]:
    headers = {"Authorization": f"Bearer {joined.member.token}"}
    return {"mcpServers": {"remit": {"type": "http", "url": f"{joined.url}/mcp", "headers": headers}}}


def _is_connected(server: dict[str, Any]) -> bool:
    return server.get("name") == "remit" and server.get("status") == "connected"


def _doing(part: dict[str, Any]) -> str:
    """Return one line about the agent's work, from a part of an answer."""
    if part.get("type") == "tool_use":
        first = next((value for value in fields(part.get("input")).values() if isinstance(value, str)), "")
        return f"{part.get('name')}: {first}" if first else str(part.get("name"))
    return str(part.get("text", "")) if part.get("type") == "text" else ""
