"""A team behind `remit serve` in a process of its own, for a browser."""

import os
import signal
from pathlib import Path
from typing import Any

import httpx

from programs import PATIENCE, Program

TEAM = """
import remit
rt = remit.Runtime("remit.db")

@rt.agent(asks="*")
async def lead(turn):
    return await turn.delegate("helper", turn.task)

@rt.agent
async def helper(turn):
    return f"done: {turn.task}"
"""


class Served:
    """A server, its address and its token. It can be stopped, killed and started again at the same address."""

    def __init__(self, folder: Path, team: str = TEAM, **env: str) -> None:
        self.folder = folder
        self.store = folder / "remit.db"
        (folder / "team.py").write_text(team)
        own = {name: value for name, value in os.environ.items() if not name.startswith("REMIT_")}
        self._env = {**own, "XDG_STATE_HOME": str(folder / "state"), "COLUMNS": "200", **env}
        self._program: Program | None = None
        self._port = 0
        self.start()

    def start(self) -> None:
        words = ("-m", "remit", "serve", "team:rt", "--port", self._port)
        self._program = Program(*words, cwd=self.folder, env=self._env)
        said = [self._program.stdout.readline() for _ in range(3)]
        if not said[2]:
            raise AssertionError(f"the server did not start: {said} {self._program.stderr.read()}")
        self.url, self.token, self.address = said[0].split()[1], said[1].split()[1], said[2].split()[1]
        self._port = int(self.url.rpartition(":")[2])

    def stop(self) -> None:
        """End it cleanly."""
        self._end(signal.SIGTERM)

    def kill(self) -> None:
        self._end(signal.SIGKILL)

    def again(self) -> None:
        """Start it again at the same address, after `stop` or `kill`."""
        self.start()

    def close(self) -> None:
        if self._program is not None:
            self._program.close()

    def call(self, method: str, path: str, body: Any = None, *, key: str = "") -> Any:
        """Ask the API with the token, or with a key. Return what it answers."""
        headers = {"authorization": f"Bearer {key or self.token}"}
        answer = httpx.request(method, f"{self.url}{path}", json=body, headers=headers, timeout=PATIENCE)
        assert answer.is_success, answer.text
        return answer.json() if answer.content else None

    def run(self, task: str, agent: str = "lead", **how: Any) -> str:
        """Submit a task, and return its id, which is also that of its run."""
        return self.call("POST", "/v1/tasks", {"agent": agent, "task": task, **how})["id"]

    def outcome(self, task: str) -> Any:
        """Wait for a task to end, and return how."""
        for _ in range(4):
            answer = self.call("GET", f"/v1/tasks/{task}/wait?timeout=20")
            if answer["ended"]:
                return answer["outcome"]
        raise AssertionError(f"{task} has not ended")

    def _end(self, number: int) -> None:
        assert self._program is not None
        self._program.send_signal(number)
        self._program.wait(PATIENCE)
        self._program.close()
        self._program = None
