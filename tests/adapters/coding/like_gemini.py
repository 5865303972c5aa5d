"""A program that stands in for Gemini CLI: the same options, variables, files and lines, as far as remit uses them.

It writes a message of its session when it is complete: a tool call together with its result, as Gemini CLI does. A call
without a result is not in a session that is resumed.
"""

import argparse
import json
import os
import sys
from pathlib import Path
from typing import Any

from speaking import Place, say, shell, text_of


def options() -> argparse.Namespace:
    read = argparse.ArgumentParser()
    for name in ("-m", "--output-format", "--approval-mode", "--allowed-mcp-server-names", "--extensions", "--resume"):
        read.add_argument(name)
    return read.parse_args()


class Chat:
    """The messages of a session, in the file where Gemini CLI has them."""

    def __init__(self, *, resumes: bool) -> None:
        own = Path(os.environ["GEMINI_CLI_HOME"], ".gemini")
        chats = own / "tmp" / "repo" / "chats"
        chats.mkdir(parents=True, exist_ok=True)
        (own / "projects.json").write_text(json.dumps({"projects": {str(Path.cwd()): "repo"}}))
        self._file = chats / "session-2026-1.jsonl"
        if resumes and not self._file.exists():
            sys.exit("No previous sessions found for this project.")
        self.contents: list[Any] = []
        if not resumes:
            self._file.write_text(json.dumps({"sessionId": "1", "kind": "main"}) + "\n")
            return
        for line in map(json.loads, self._file.read_text().splitlines()):
            if "content" in line:
                self.contents.append({"role": line["role"], "parts": line["content"]})

    def add(self, role: str, *parts: Any) -> None:
        self.contents.append({"role": role, "parts": parts})
        named = [_named(part) for part in parts]
        with self._file.open("a") as file:
            file.write(json.dumps({"id": str(len(self.contents)), "role": role, "content": named}) + "\n")


def _named(part: dict[str, Any]) -> dict[str, Any]:
    """A part as it is kept: the ids of calls begin with the name of their tool."""
    field = next((name for name in ("functionCall", "functionResponse") if name in part), "")
    return {field: part[field] | {"id": f"{part[field]['name']}__{part[field]['id']}"}} if field else part


def use(place: Place, call: dict[str, Any]) -> str:
    say({"type": "tool_use", "tool_name": call["name"], "tool_id": call["id"], "parameters": call["args"]})
    if call["name"].startswith("mcp_remit_"):
        return text_of(place.call(call["name"].removeprefix("mcp_remit_"), call["args"]))
    return shell(call["args"]["command"])


def token() -> str:
    """Read the key as the file that Node is told to run first does."""
    first = Path(json.loads(os.environ.pop("NODE_OPTIONS").removeprefix("--require=")))
    assert "REMIT_KEY_DESCRIPTOR" in first.read_text()
    return os.read(int(os.environ.pop("REMIT_KEY_DESCRIPTOR")), 1_000).decode()


def main() -> None:
    given, task, key = options(), sys.stdin.read(), token()
    own = Path(os.environ["GEMINI_CLI_HOME"], ".gemini")
    settings = json.loads((own / "settings.json").read_text())
    assert settings["mcpServers"]["remit"]["headers"] == {"Authorization": "Bearer $GEMINI_API_KEY"}
    place = Place(os.environ["GOOGLE_GEMINI_BASE_URL"], key)
    *names, verbs = settings["tools"]["core"]
    assert verbs == "mcp_remit_*"
    names += [f"mcp_remit_{one['name']}" for one in place.tools()]
    chat = Chat(resumes=given.resume == "latest")
    say({"type": "init", "session_id": "1", "model": given.m})
    chat.add("user", {"text": task})
    while True:
        body = {"contents": chat.contents, "tools": [{"functionDeclarations": [{"name": name} for name in names]}]}
        body["systemInstruction"] = {"parts": [{"text": (own / "GEMINI.md").read_text()}]}
        status, text, _ = place.post(f"/v1beta/models/{given.m}:generateContent", body)
        if status != 200:
            say({"type": "result", "status": "error", "error": {"message": json.loads(text)["error"]["message"]}})
            sys.exit(144)
        parts = json.loads(text)["candidates"][0]["content"]["parts"]
        said = "".join(part.get("text", "") for part in parts)
        say({"type": "message", "role": "assistant", "content": said, "delta": True})
        calls = [part["functionCall"] for part in parts if "functionCall" in part]
        answers = [{"id": one["id"], "name": one["name"], "response": {"output": use(place, one)}} for one in calls]
        chat.add("model", *parts)
        if not calls:
            used = {given.m: {"total_tokens": int(os.environ.get("LIKE_COUNTED", "0"))}}
            return say({"type": "result", "status": "success", "stats": {"models": used}})
        chat.add("user", *({"functionResponse": one} for one in answers))


main()
