"""Coding agents for tests: programs that stand in for them, or the real ones, and the team around them."""

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from remit.adapters.coding import claude_code, codex, gemini_cli
from remit.adapters.coding.agent import CodingAgent
from remit.adapters.prices import KnownPrices, Price
from remit.settings import System

HERE = Path(__file__).parent
KEY = "sk-real-key-0123456789"
SYSTEM = System(prices=KnownPrices(dict.fromkeys(("claude-x", "gpt-x", "gemini-x"), Price(input="$1", output="$2"))))
INSTALLED = HERE / "real" / "node_modules" / ".bin"
LIKE = {
    "claude": (sys.executable, str(HERE / "like_claude.py")),
    "codex": (sys.executable, str(HERE / "like_codex.py")),
    "gemini": (sys.executable, str(HERE / "like_gemini.py")),
}


def command_of(program: str, real: bool) -> list[str]:
    """The command that starts a coding agent: the real one, which `make coding` installs, or what stands in for it."""
    if not real:
        return [*LIKE[program]]
    if not (found := INSTALLED / program).exists():
        pytest.skip("the real programs are tried by `make coding`, which installs them")
    return [str(found)]


def repository(folder: Path) -> Path:
    """A git repository with one commit."""
    folder.mkdir()
    (folder / "a.txt").write_text("one\n")
    who = ("-c", "user.name=x", "-c", "user.email=x@example.com")
    for words in (("init", "-q"), ("add", "."), (*who, "commit", "-qm", "one")):
        subprocess.run(["git", "-C", str(folder), *words], check=True, capture_output=True)
    return folder


class Crew:
    """Makes the coding agents of one test, which ask the scripted model at `url`."""

    def __init__(self, url: str, folder: Path, *, real: bool = False) -> None:
        self._url = url
        self._folder = folder
        self._real = real
        self.home = folder / "home"

    def claude(
        self, *, allow: Sequence[str] = ("Bash",), model: str = "anthropic:claude-x", **about: Any
    ) -> CodingAgent:
        about = {"base_url": self._url, "allow": allow, **self._usual("claude"), **about}
        return claude_code(model, **about)

    def codex(self, *, model: str = "openai:gpt-x", **about: Any) -> CodingAgent:
        about = {"base_url": f"{self._url}/v1", **self._usual("codex"), **about}
        return codex(model, **about)

    def gemini(self, *, model: str = "google:gemini-x", **about: Any) -> CodingAgent:
        about = {"base_url": self._url, **self._usual("gemini"), **about}
        return gemini_cli(model, **about)

    def _usual(self, program: str) -> dict[str, Any]:
        command = command_of(program, self._real)
        return {"cwd": self._folder, "home": self.home, "keys": ["CODING_KEY"], "command": command}
