"""A program that stands in for Codex: the same options, variables, files and lines, as far as remit uses them.

It writes its session at once, and a call without a result is kept as aborted, as Codex does.
"""

import itertools
import json
import os
import sys
import tomllib
import uuid
from pathlib import Path
from typing import Any

from speaking import Place, say, shell, text_of


def settings(words: list[str]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for flag, value in itertools.pairwise(words):
        if flag == "-c":
            name, _, given = value.partition("=")
            found[name] = tomllib.loads(f"x = {given}")["x"]
    return found


class Rollout:
    """The items of a session, in the file where Codex has them."""

    def __init__(self, thread: str) -> None:
        folder = Path(os.environ["CODEX_HOME"], "sessions", "2026")
        self._file = folder / f"rollout-2026-01-01T00-00-00-{thread or uuid.UUID(int=1)}.jsonl"
        if thread and not self._file.exists():
            sys.exit("no rollout found")
        folder.mkdir(parents=True, exist_ok=True)
        lines = self._file.read_text().splitlines() if thread else []
        self.items = [json.loads(line)["payload"] for line in lines]
        if self.items and self.items[-1]["type"] == "function_call":
            self.add({"type": "function_call_output", "call_id": self.items[-1]["call_id"], "output": "aborted"})

    def add(self, item: dict[str, Any]) -> None:
        self.items.append(item)
        with self._file.open("a") as file:
            file.write(json.dumps({"type": "response_item", "payload": item}) + "\n")


def use(place: Place, item: dict[str, Any]) -> str:
    given = json.loads(item["arguments"])
    if item.get("namespace") == "mcp__remit":
        say({"type": "item.started", "item": {"type": "mcp_tool_call", "tool": item["name"]}})
        return text_of(place.call(item["name"], given))
    say({"type": "item.started", "item": {"type": "command_execution", "command": given["cmd"]}})
    return shell(given["cmd"])


def main() -> None:
    words = sys.argv[1:]
    assert (words[0], words[-1]) == ("exec", "-"), words
    given = settings(words)
    provider = given["model_providers.remit"]
    token = os.environ[provider["env_key"]]
    for name in [name for name in os.environ if name.startswith("REMIT_")]:
        assert given["shell_environment_policy.exclude"] == ["REMIT_*"]
        del os.environ[name]
    place = Place(provider["base_url"], token)
    verbs = [{"type": "function", "name": one["name"], "parameters": {}} for one in place.tools()]
    tools = [{"type": "function", "name": "exec_command", "parameters": {}}]
    tools.append({"type": "namespace", "name": "mcp__remit", "tools": verbs})
    rollout = Rollout(words[words.index("resume") + 1] if "resume" in words else "")
    rollout.add({"type": "message", "role": "user", "content": [{"type": "input_text", "text": sys.stdin.read()}]})
    say({"type": "thread.started", "thread_id": "1"})
    while True:
        body = {"model": words[words.index("-m") + 1], "input": rollout.items, "tools": tools}
        body["instructions"] = given.get("developer_instructions", "")
        status, text, _ = place.post("/v1/responses", body)
        if status != 200:
            say({"type": "turn.failed", "error": {"message": json.loads(text)["error"]["message"]}})
            sys.exit(1)
        output = json.loads(text)["output"]
        for item in output:
            rollout.add(item)
        if (crash := os.environ.get("LIKE_CRASH")) and len(rollout.items) > 3 and not Path(crash).exists():
            Path(crash).touch()
            os.kill(os.getpid(), 9)
        calls = [item for item in output if item["type"] == "function_call"]
        for item in calls:
            rollout.add({"type": "function_call_output", "call_id": item["call_id"], "output": use(place, item)})
        if not calls:
            counted = int(os.environ.get("LIKE_COUNTED", "0"))
            said = "".join(part["text"] for part in output[-1]["content"])
            say({"type": "item.completed", "item": {"type": "agent_message", "text": said}})
            return say({"type": "turn.completed", "usage": {"input_tokens": counted, "output_tokens": 0}})


main()
