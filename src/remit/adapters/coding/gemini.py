"""Gemini CLI as a member: its command line, its settings, and the lines that it prints."""

from __future__ import annotations

import json
import os
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
from remit.adapters.gateway.gemini import Gemini
from remit.adapters.gateway.joining import JoinedProgram, joining
from remit.adapters.gateway.members import MAX_TOKENS
from remit.adapters.gateway.reading import count, fields

TOOLS: Final = (
    *("run_shell_command", "read_file", "read_many_files", "write_file", "replace"),
    *("glob", "grep_search", "list_directory"),
)
_VERBS: Final = "mcp_remit_*"  # how Gemini CLI names the tools of remit's MCP server
_KEY: Final = "GEMINI_API_KEY"
_DESCRIPTOR: Final = "REMIT_KEY_DESCRIPTOR"
# Node runs this first. Gemini CLI knows its key from a variable only, and a command could read the variables that it
# was started with.
_READ_KEY: Final = f"""\
process.env.{_KEY} = require("node:fs").readFileSync(Number(process.env.{_DESCRIPTOR}), "utf8");
delete process.env.{_DESCRIPTOR};
delete process.env.NODE_OPTIONS;
"""


def gemini_cli(
    model: str,
    *,
    cwd: str | os.PathLike[str] | None = None,
    worktree: bool = False,
    allow: Sequence[str] = TOOLS,
    fallback: Sequence[str] = (),
    keys: KeysGiven = (),
    base_url: UrlGiven = None,
    max_tokens: int = MAX_TOKENS,
    env: Mapping[str, str] | None = None,
    command: Sequence[str] = ("gemini",),
    home: str | os.PathLike[str] | None = None,
) -> CodingAgent:
    """Return an agent that is Gemini CLI: `gemini_cli("google:gemini-3-flash", cwd="repo", allow=["read_file"])`.

    Its model requests go through remit: within the budget and the bounds of its task, recorded, and without a key of a
    provider. It may ask the agents of its card. `allow` are those of its own tools that it has, such as "read_file" or
    "run_shell_command(git)". It uses them without asking: Gemini CLI asks no person unless somebody sits at its
    terminal. Settings that the repository has in `.gemini` apply too. The other keywords are those of `claude_code`.
    """
    models = [model, *fallback]
    named = model_names(models, Gemini("", streams=True), "Gemini CLI")[0]
    argv = installed(command, env, "@google/gemini-cli")
    program = GeminiCli(argv, named, checked_names(allow, "allow"), dict(env or {}))
    joins = joining(models, True, keys=keys, base_url=base_url, max_tokens=max_tokens, resumes=True)
    return CodingAgent(program, joins, places_of(cwd, home, worktree=worktree))


class GeminiCli(NamedTuple):
    """The command line, settings and output format of Gemini CLI."""

    command: list[str]
    model: str
    allow: list[str]
    env: dict[str, str]

    @property
    def name(self) -> str:
        return "gemini-cli"

    def sessions(self, place: TaskPlace) -> list[Path]:
        """Return the files of the session. Each folder that was worked in has a name, and sessions of its own. A file
        without a message cannot be resumed."""
        try:
            projects = fields(fields(json.loads((_own(place) / "projects.json").read_bytes())).get("projects"))
        except (OSError, ValueError):
            return []
        name = projects.get(str(place.cwd)) or projects.get(os.path.realpath(place.cwd))
        found = sorted((_own(place) / "tmp" / str(name) / "chats").glob("session-*.jsonl"))
        return [file for file in found if _has_message(file)]

    @contextmanager
    def started(
        self, joined: JoinedProgram, place: TaskPlace, *, resumes: bool, instructions: str
    ) -> Generator[ProgramStart]:
        """Write the settings, and yield the command to start. The token is in a pipe, so that a shell command of the
        agent does not inherit it."""
        own, reads_key = _own(place), place.home / "key.cjs"
        own.mkdir(mode=0o700, exist_ok=True)
        write_private(own / "settings.json", json.dumps(self._settings(joined)))
        write_private(own / "GEMINI.md", instructions)
        write_private(reads_key, _READ_KEY)
        with token_pipe(joined.member.token) as descriptor:
            yield ProgramStart(
                self._argv(resumes), self._env(joined, place, reads_key, descriptor), descriptors=(descriptor,)
            )

    def _argv(self, resumes: bool) -> list[str]:
        return [
            *(*self.command, "-m", self.model, "--output-format", "stream-json", "--approval-mode", "yolo"),
            *("--allowed-mcp-server-names", "remit", "--extensions", "none"),
            *(("--resume", "latest") if resumes else ()),
        ]

    def _env(self, joined: JoinedProgram, place: TaskPlace, reads_key: Path, descriptor: int) -> dict[str, str]:
        return {
            "GEMINI_CLI_HOME": str(place.home),
            "GOOGLE_GEMINI_BASE_URL": joined.url,
            "GEMINI_CLI_TRUST_WORKSPACE": "true",  # in other folders it uses no MCP server
            "GEMINI_CLI_NO_RELAUNCH": "true",  # the second process would not have the key
            "NODE_OPTIONS": f"--require={json.dumps(str(reads_key))}",
            _DESCRIPTOR: str(descriptor),
            **self.env,
        }

    def _settings(self, joined: JoinedProgram) -> dict[str, Any]:
        headers = {"Authorization": f"Bearer ${_KEY}"}
        server = {"httpUrl": f"{joined.url}/mcp", "headers": headers, "trust": True, "timeout": WEEK * 1_000}
        return {
            "security": {
                "auth": {"selectedType": "gemini-api-key"},
                "environmentVariableRedaction": {"enabled": True, "blocked": [_KEY]},
            },
            "privacy": {"usageStatisticsEnabled": False},
            "telemetry": {"enabled": False},
            "general": {"enableAutoUpdate": False, "enableAutoUpdateNotification": False},
            "hooksConfig": {"enabled": False},
            "tools": {"core": [*self.allow, _VERBS]},  # all others are denied
            "mcpServers": {"remit": server},
        }

    def hear(self, said: ProgramSaid, line: dict[str, Any], place: TaskPlace) -> None:
        match line:
            case {"type": "message", "role": "assistant", "content": str() as text}:
                said.answer += text
                said.doing = said.answer
            case {"type": "tool_use", "tool_name": str() as name}:
                said.answer = ""  # what it said before a tool is not its answer
                said.doing = _doing(name, fields(line.get("parameters")))
            case {"type": "error", "severity": "error", "message": str() as text}:
                said.warned = text
            case {"type": "result"}:
                said.ended = True
                for counts in fields(fields(line.get("stats")).get("models")).values():
                    said.tokens += count(fields(counts).get("total_tokens"))
                if line.get("status") != "success":
                    said.error = str(fields(line.get("error")).get("message") or said.warned or "an error")
            case _:
                pass


def _own(place: TaskPlace) -> Path:
    """Return the folder where Gemini CLI has its settings and sessions."""
    return place.home / ".gemini"


def _has_message(file: Path) -> bool:
    with file.open("rb") as lines:
        return any(line.startswith(b'{"id"') for line in lines)


def _doing(name: str, given: dict[str, Any]) -> str:
    first = next((value for value in given.values() if isinstance(value, str)), "")
    return f"{name}: {first}" if first else name
