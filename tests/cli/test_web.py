"""`--web`: the dashboard beside a run, which opens in the browser and stays until Ctrl-C."""

import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import httpx
import pytest

from commands import plain_environment
from programs import PATIENCE, Program, running
from remit.cli.web import has_display
from remit.config.tokens import forget_page, keep_page

pytestmark = pytest.mark.long
TEAM = """
import remit
rt = remit.Runtime("remit.db")

@rt.agent(asks=["helper"])
async def lead(turn):
    return await turn.delegate("helper", turn.task)

@rt.agent(needs_approval=True)
async def helper(turn):
    return f"done: {turn.task}"

@rt.agent
async def echo(turn):
    return turn.task
"""
BROWSER = """#!/bin/sh
echo "$@" > opened
cat "${1#file://}" > page
echo done > noted
"""


class Shown(NamedTuple):
    """A command with a dashboard."""

    program: Program
    url: str
    key: str

    def get(self, path: str) -> httpx.Response:
        return httpx.get(f"{self.url}{path}", headers={"authorization": f"Bearer {self.key}"}, timeout=PATIENCE)

    def approve(self) -> None:
        """Wait for the question, and approve it."""
        said = self.until("waits for a person")
        assert "remit approvals" in said
        (question,) = self.get("/v1/approvals").json()["approvals"]
        decided = httpx.post(
            f"{self.url}/v1/approvals/{question['id']}/approve",
            json={"digest": question["digest"]},
            headers={"authorization": f"Bearer {self.key}"},
            timeout=PATIENCE,
        )
        assert decided.status_code == 200, decided.text

    def until(self, words: str) -> str:
        """Read what it says aside until a line has these words."""
        for line in self.program.stderr:
            if words in line:
                return line
        raise AssertionError(f"it did not say: {words}")


@contextmanager
def shown(folder: Path, *words: str, **env: str) -> Iterator[Shown]:
    own = {**plain_environment(), "XDG_STATE_HOME": str(folder / "state"), "COLUMNS": "300", **env}
    with running("-m", "remit.cli", *words, cwd=folder, env=own) as program:
        address = program.stderr.readline().split()[1]
        url, _, key = address.partition("/#key=")
        yield Shown(program, url, key)


def test_the_demo_waits_for_the_person_at_the_dashboard_and_stays_until_ctrl_c(tmp_path: Path):
    with shown(tmp_path, "demo", "--web", "--no-open", "--pace", "0") as at:
        assert httpx.get(at.url).status_code == 200
        assert httpx.get(f"{at.url}/v1/runs").status_code == 401
        at.approve()
        at.until("Ctrl-C ends it")
        (run,) = at.get("/v1/runs").json()["runs"]
        assert run["state"] == "completed"
        at.program.send_signal(signal.SIGINT)
        assert at.program.wait(PATIENCE) == 0
        assert "Handoffs" in at.program.stdout.read()
    left = {file.name for file in (tmp_path / "state" / "remit").iterdir()}
    assert left == {"sessions.secret"}


def test_ctrl_c_ends_a_demo_that_waits(tmp_path: Path):
    with shown(tmp_path, "demo", "--web", "--no-open", "--pace", "0") as at:
        at.until("waits for a person")
        at.program.send_signal(signal.SIGINT)
        assert at.program.wait(PATIENCE) == 1
        assert "Traceback" not in at.program.stderr.read()


def test_a_run_opens_its_page_without_showing_the_key_to_other_users(tmp_path: Path):
    (tmp_path / "team.py").write_text(TEAM)
    browser = tmp_path / "browser"
    browser.write_text(BROWSER)
    browser.chmod(0o755)
    os.mkfifo(tmp_path / "noted")
    env = {"DISPLAY": ":99", "BROWSER": f"{browser} %s"}
    with shown(tmp_path, "run", "team:rt", "lead", "say it", "--web", **env) as at:
        assert (tmp_path / "noted").read_text() == "done\n"
        (run,) = at.get("/v1/runs").json()["runs"]
        page = (tmp_path / "opened").read_text().strip()
        assert at.key not in page
        assert f"{at.url}/runs/{run['id']}#key={at.key}" in (tmp_path / "page").read_text()
        assert Path(page.removeprefix("file://")).stat().st_mode & 0o777 == 0o600
        at.approve()
        at.until("Ctrl-C ends it")
        again = httpx.post(
            f"{at.url}/v1/tasks",
            json={"agent": "echo", "task": "what the page starts is run, too"},
            headers={"authorization": f"Bearer {at.key}"},
            timeout=PATIENCE,
        ).json()["id"]
        assert at.get(f"/v1/tasks/{again}/wait?timeout=20").json()["outcome"]["state"] == "completed"
        at.program.send_signal(signal.SIGTERM)
        assert at.program.wait(PATIENCE) == 0
        assert "done: say it" in at.program.stdout.read()


def test_a_page_with_a_key_is_written_as_text_and_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    page = keep_page('http://127.0.0.1:1/"><script>#key=x')
    assert "<script>" not in page.read_text()
    forget_page()
    forget_page()
    assert not page.exists()


def test_a_browser_needs_a_display(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(sys, "platform", "linux")
    for name in ("DISPLAY", "WAYLAND_DISPLAY"):
        monkeypatch.delenv("DISPLAY", raising=False)
        monkeypatch.delenv("WAYLAND_DISPLAY", raising=False)
        assert not has_display()
        monkeypatch.setenv(name, "x")
        assert has_display()
