"""A program that stands in for Claude Code: the same options, variables, files and lines, as far as remit uses them.

It writes its session late, as Claude Code does: the results of tools only when the model has answered them. A session
that is resumed has lost the tool calls without a result.
"""

import argparse
import fnmatch
import json
import os
import re
import sys
from pathlib import Path
from typing import Any

from speaking import Place, say, shell, text_of


def options() -> argparse.Namespace:
    read = argparse.ArgumentParser()
    for name in ("--verbose", "--strict-mcp-config", "-p"):
        read.add_argument(name, action="store_true")
    for name in ("--output-format", "--model", "--setting-sources", "--mcp-config", "--tools", "--resume"):
        read.add_argument(name)
    for name in ("--session-id", "--permission-prompt-tool", "--append-system-prompt"):
        read.add_argument(name)
    read.add_argument("--allowedTools", nargs="*", default=[])
    return read.parse_args()


class Session:
    """The messages of a session, in the file where Claude Code has them."""

    def __init__(self, given: argparse.Namespace) -> None:
        folder = Path(os.environ["CLAUDE_CONFIG_DIR"], "projects", re.sub(r"[^A-Za-z0-9]", "-", str(Path.cwd())))
        folder.mkdir(parents=True, exist_ok=True)
        self.file = folder / f"{given.resume or given.session_id}.jsonl"
        if given.resume and not self.file.exists():
            sys.exit("No conversation found")
        if given.session_id and self.file.exists():
            sys.exit("Session ID is already in use")
        self.messages = [json.loads(line) for line in self.file.read_text().splitlines()] if given.resume else []
        if self.messages and self.messages[-1]["role"] == "assistant":
            self.messages.pop()

    def write(self) -> None:
        self.file.write_text("".join(json.dumps(one) + "\n" for one in self.messages))


def is_allowed(name: str, given: dict[str, Any], allowed: list[str]) -> bool:
    if name.startswith("mcp__remit__"):
        return "mcp__remit" in allowed
    return any(one == name or fnmatch.fnmatch(f"{name}({given.get('command')})", one) for one in allowed)


def use(place: Place, part: dict[str, Any], given: argparse.Namespace) -> str:
    name, arguments = part["name"], part["input"]
    if not is_allowed(name, arguments, given.allowedTools):
        if not given.permission_prompt_tool:
            return f"{name} was denied"
        wanted = {"tool_name": name, "input": arguments, "tool_use_id": part["id"]}
        verdict = json.loads(text_of(place.call(given.permission_prompt_tool.removeprefix("mcp__remit__"), wanted)))
        if verdict["behavior"] != "allow":
            return verdict["message"]
        arguments = verdict["updatedInput"]
    if name.startswith("mcp__remit__"):
        return text_of(place.call(name.removeprefix("mcp__remit__"), arguments))
    return shell(arguments["command"])


def work(place: Place, session: Session, given: argparse.Namespace, tools: list[Any]) -> None:
    while True:
        body = {"model": given.model, "max_tokens": int(os.environ["CLAUDE_CODE_MAX_OUTPUT_TOKENS"]), "tools": tools}
        body |= {"messages": session.messages, "system": given.append_system_prompt or ""}
        status, text, _ = place.post("/v1/messages", body)
        if status != 200:
            say(
                {
                    "type": "result",
                    "subtype": "success",
                    "is_error": True,
                    "result": json.loads(text)["error"]["message"],
                }
            )
            sys.exit(1)
        session.write()  # only now: what came before this answer
        parts = json.loads(text)["content"]
        session.messages.append({"role": "assistant", "content": parts})
        say({"type": "assistant", "message": {"content": parts}})
        calls = [part for part in parts if part["type"] == "tool_use"]
        if not calls:
            session.write()
            said = "".join(part.get("text", "") for part in parts)
            used = {"m": {"inputTokens": int(os.environ.get("LIKE_COUNTED", "0"))}}
            return say({"type": "result", "subtype": "success", "is_error": False, "result": said, "modelUsage": used})
        results = [
            {"type": "tool_result", "tool_use_id": one["id"], "content": use(place, one, given)} for one in calls
        ]
        session.messages.append({"role": "user", "content": results})


def main() -> None:
    given = options()
    task = sys.stdin.read()
    descriptor = int(os.environ["CLAUDE_CODE_API_KEY_FILE_DESCRIPTOR"])
    token = os.read(descriptor, 1_000).decode()
    server = json.loads(Path(given.mcp_config).read_text())["mcpServers"]["remit"]
    assert server["headers"]["Authorization"] == f"Bearer {token}"
    place = Place(os.environ["ANTHROPIC_BASE_URL"], token)
    session = Session(given)
    try:
        verbs = [] if os.environ.get("LIKE") == "alone" else place.tools()
        status = "failed" if os.environ.get("LIKE") == "alone" else "connected"
    except ConnectionError:
        verbs, status = [], "failed"
    say({"type": "system", "subtype": "init", "mcp_servers": [{"name": "remit", "status": status}]})
    shown = [one["name"] for one in verbs if one["name"] != "approve"]
    tools = [{"name": name, "input_schema": {"type": "object"}} for name in given.tools.split(",")]
    tools += [{"name": f"mcp__remit__{name}", "input_schema": {"type": "object"}} for name in shown]
    session.messages.append({"role": "user", "content": task})
    work(place, session, given, tools)


main()
