"""`remit cooling`: what rests is listed and cleared, and no key is printed."""

import asyncio
import json
from pathlib import Path

import pytest

from commands import Said, plain_environment
from programs import ran
from remit import Runtime
from remit.testing.models import Fails, Says, model_server

KEY = "sk-of-nobody-in-particular"


def remit(folder: Path, *words: str, **more: str) -> Said:
    done = ran("-m", "remit.cli", "cooling", *words, cwd=folder, env=plain_environment() | more)
    assert KEY not in done.stdout + done.stderr
    return done


def failed(folder: Path, monkeypatch: pytest.MonkeyPatch, *status: int) -> str:
    """Have one agent for each status fail of it; gives the endpoint."""
    monkeypatch.setenv("A_KEY", KEY)

    async def main() -> str:
        async with model_server([*map(Fails, status), Says("late")]) as server, Runtime(folder / "remit.db") as rt:
            for number, _ in enumerate(status):
                rt.model_agent(f"m{number}", f"openai-chat:{number}", keys=["A_KEY"], base_url=f"{server.url}/v1")
                outcome = await rt.outcome(f"m{number}", "go", timeout=2)
                assert "`remit cooling clear` ends them" in str(outcome.error)
            return f"openai@{server.url.removeprefix('http://')}"

    return asyncio.run(main())


@pytest.mark.rule("model.cleared")
def test_what_rests_is_listed_and_cleared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    place = failed(tmp_path, monkeypatch, 429, 403, 401)

    told = json.loads(remit(tmp_path, "--json").stdout)
    assert [(one["kind"], one["model"], one["endpoint"], one["key_name"]) for one in told] == [
        ("auth", "", place, "A_KEY"),
        ("forbidden", "openai-chat:1", place, "A_KEY"),
        ("rate-limit", "openai-chat:0", place, "A_KEY"),
    ]
    table = remit(tmp_path, A_KEY="another").stdout
    assert "A_KEY" not in table  # its value is another here
    assert "every model" in table
    assert table.split()[:6] == ["key", "model", "endpoint", "after", "failures", "rests"]

    assert json.loads(remit(tmp_path, "clear", "openai-chat:1", "--json").stdout) == {"cleared": 1}
    assert "no pause matches" in remit(tmp_path, "clear", "openai-chat:1").stdout
    assert remit(tmp_path, "clear", "A_KEY").stdout == "2 pauses ended\n"
    assert "no key or model is paused" in remit(tmp_path).stdout


@pytest.mark.rule("model.cleared")
def test_everything_is_cleared_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    failed(tmp_path, monkeypatch, 429, 401)

    assert remit(tmp_path, "clear", "--by", "ann").stdout == "2 pauses ended\n"
    assert json.loads(remit(tmp_path, "--json").stdout) == []
