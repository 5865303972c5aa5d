"""The examples are small, run without a key, and print what their README says."""

import ast
import json
import os
import re
import shutil
import signal
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, NamedTuple

import anyio
import httpx
import nbformat
import pytest
from anyio import to_thread
from anyio.abc import Process
from anyio.streams.buffered import BufferedByteReceiveStream
from nbclient import NotebookClient

from deep import some
from programs import ran, running
from remit import Workspace
from remit.report import wire
from remit.testing.doubles import PATIENCE
from remit.testing.models import ModelRequest, model_server

EXAMPLES = Path(__file__).parent.parent / "examples"
PROMISED = dict(
    re.findall(
        r"^##+ \[([\w/]+\.\w+)\].*?^```text\n(.*?)^```", (EXAMPLES / "README.md").read_text(), re.MULTILINE | re.DOTALL
    )
)
TASKS = {  # of the run that the picture shows
    "coder_and_reviewer.py": "An empty list must give 0.",
    "group_chat.py": "We need a name for a tea shop at the harbour.",
    "research.py": "The Golden Gate Bridge, for our guide",
    "support_desk.py": "It arrived broken. I want my money back.",
}
SERVED = ("fastapi_app.py", "notebook.ipynb")
TYPED = {  # by a person, while the example runs
    "coder_and_reviewer.py": "add a doctest for one price\ny\n",
    "group_chat.py": "",
    "night_shift.py": "",
    "research.py": "",
    "support_desk.py": "y\n",
}
LIVES = Path(__file__).parent / "example_lives.py"


class Peer(NamedTuple):
    """An example in another framework: how often its models are asked, at which requests it is killed, counted over all
    lives, and what its tool says when it does something."""

    requests: int
    killed: tuple[int, ...]
    effect: str


PEERS = {
    "peers/langgraph_supervisor.py": Peer(8, (3,), "tool: measure the north wall"),
    "peers/openai_agents_handoff.py": Peer(6, (2, 7), "tool: refund 5003"),
    "peers/pydantic_ai_delegation.py": Peer(5, (4,), "tool: look up Golden Gate"),
}


def test_every_example_is_in_the_readme_and_the_other_way_round():
    assert sorted(PROMISED) == sorted([*TYPED, *SERVED, *PEERS])
    assert sorted([*TYPED, *SERVED, "stand_in.py"]) == sorted(path.name for path in EXAMPLES.glob("*.*y*"))
    assert sorted(PEERS) == sorted(f"peers/{path.name}" for path in (EXAMPLES / "peers").glob("*.py"))
    pictures = re.findall(r"^!\[.+\]\(pictures/(\w+)\.svg\)$", (EXAMPLES / "README.md").read_text(), re.MULTILINE)
    assert sorted(pictures) == sorted(Path(name).stem for name in (*TYPED, *SERVED))


@pytest.mark.parametrize("name", [*TYPED, "fastapi_app.py", *PEERS])
def test_an_example_is_short(name: str):
    assert len((EXAMPLES / name).read_text().splitlines()) <= 120


def prints_what_is_promised(name: str, printed: str) -> None:
    promised = PROMISED[name]
    for line in TYPED.get(name, "").splitlines():  # a pipe does not echo it
        promised = promised.replace(f" {line}\n", " ", 1)
    pattern = ".*?".join(re.escape(part) for part in promised.split("..."))
    assert re.fullmatch(pattern, printed, re.DOTALL), printed


# Fields of a run that its picture shows.
SHOWN = ("first", "task", "state", "started_at", "ended_at", "result", "error", "credits", "with_below", "retries")
SHOWN_IN = {
    "trail": ("at", "sender", "to", "phase"),
    "refusals": ("at", "to", "task", "rule", "sentence"),
    "questions": ("asked_at", "answered_at", "text", "state", "by"),
    "tools": ("at", "agent", "tool", "given", "outcome", "result", "elapsed"),
}


def drawn(node: Any) -> dict[str, Any]:
    """Return the part of a run that its picture shows."""
    found = {name: node[name] for name in SHOWN}
    found |= {name: [{key: one[key] for key in keys} for one in node[name]] for name, keys in SHOWN_IN.items()}
    return found | {"children": [drawn(child) for child in node["children"]]}


def outline(node: Any) -> list[Any]:
    """Return the part of a run that is the same each time: no times, and parallel tasks in a fixed order."""
    said = [[one["tool"] for one in node["tools"]], [(one["state"], one["by"]) for one in node["questions"]]]
    moves = [(one["sender"], one["to"]) for one in node["trail"]]
    return [node["first"], node["state"], node["task"], moves, said, sorted(map(outline, node["children"]), key=str)]


def has_its_picture(name: str, run: Any) -> None:
    """Compare a run with the recorded one that the picture of the example is drawn from. With REMIT_RECORD set, record
    this one; then draw it with `make docs`."""
    recorded = EXAMPLES / "pictures" / f"{Path(name).stem}.json"
    if "REMIT_RECORD" in os.environ:
        recorded.parent.mkdir(exist_ok=True)
        recorded.write_text(json.dumps(drawn(run), indent=1, ensure_ascii=False) + "\n")
    assert outline(run) == outline(json.loads(recorded.read_text()))


def run_in(store: str | Path, task: str) -> Any:
    """Return the run of a store that has this task."""

    async def look() -> Any:
        with Workspace(store) as workspace:
            [line] = [line for line in await workspace.tasks.runs() if line.task == task]
            root = await workspace.tree(line.record.id)
            assert root is not None
            return wire.tree(root)

    return anyio.run(look)


def without_keys(**more: str) -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if not name.startswith("OPENAI_")} | more


@pytest.mark.parametrize("name", some(["coder_and_reviewer.py", "group_chat.py", "research.py", "support_desk.py"], 2))
def test_an_example_runs_and_prints_what_the_readme_shows(name: str, tmp_path: Path):
    done = ran("-W", "error", EXAMPLES / name, cwd=tmp_path, said=TYPED[name], env=without_keys())
    assert (done.returncode, done.stderr) == (0, "")
    prints_what_is_promised(name, done.stdout)
    assert os.listdir(tmp_path) == [f"{name[:-3]}.db"], "an example leaves its store"  # noqa: PTH208
    has_its_picture(name, run_in(tmp_path / f"{name[:-3]}.db", TASKS[name]))


@pytest.mark.anyio
async def test_the_application_takes_a_task_streams_its_events_and_lets_a_person_decide(tmp_path: Path):
    words = ("-m", "uvicorn", "--app-dir", EXAMPLES, "fastapi_app:app", "--port", "0")
    with running(*words, cwd=tmp_path, env=without_keys(), together=True) as server:
        started = await to_thread.run_sync(lambda: next(line for line in server.stdout if "running on" in line))
        [address] = re.findall(r"http://[\d.:]+", started)
        async with httpx.AsyncClient(base_url=address, timeout=PATIENCE) as client:
            wish = {"task": "a post about the new Darjeeling", "by": "ann", "key": "1"}
            [task, same] = [(await client.post("/tasks", json=wish)).json()["id"] for _ in range(2)]
            assert task == same
            seen = await decides(client, task)
            assert seen[-1][1] == "task.completed"
            status = (await client.get(f"/tasks/{task}")).json()
            assert status == json.loads(PROMISED["fastapi_app.py"])
            again = await client.get(f"/tasks/{task}/events", headers={"Last-Event-ID": seen[2][0]})
            assert EVENT.findall(again.text) == seen[3:]
            assert (await client.get("/tasks/nope/events")).status_code == 404
        server.send_signal(signal.SIGINT)
        assert await to_thread.run_sync(server.wait, PATIENCE) == 0
    has_its_picture("fastapi_app.py", await to_thread.run_sync(run_in, tmp_path / "fastapi_app.db", wish["task"]))


EVENT = re.compile(r"id: (\d+)\nevent: ([\w.]+)\n")


async def decides(client: httpx.AsyncClient, task: str) -> list[tuple[str, str]]:
    """Follow a task to its end, and approve what it asks. Return its events: their numbers and kinds."""
    text, decided = "", False
    async with client.stream("GET", f"/tasks/{task}/events") as stream:
        async for part in stream.aiter_text():
            text += part
            if "question.asked" in text and not decided:
                decided = True
                [question] = (await client.get("/questions")).json()
                assert question["shows"]["arguments"]["title"] == "First flush"
                codes = [
                    (await client.post(f"/questions/{question['id']}", json={"approve": True, "by": by})).status_code
                    for by in ("sam", "kim")
                ]
                assert codes == [200, 409], "the first answer counts"
    return EVENT.findall(text)


@pytest.mark.deep
def test_the_notebook_has_no_outputs_and_its_cells_can_run_again(tmp_path: Path):
    cells = nbformat.read(EXAMPLES / "notebook.ipynb", 4)
    code = [cell for cell in cells.cells if cell.cell_type == "code"]
    assert [(cell.outputs, cell.execution_count) for cell in code] == [([], None)] * len(code)
    shutil.copy(EXAMPLES / "stand_in.py", tmp_path)
    cells.cells += [nbformat.v4.new_code_cell(cell.source) for cell in code]
    look = "import json; from remit.report import wire; print(json.dumps(wire.tree(tree)))"
    cells.cells.append(nbformat.v4.new_code_cell(look))
    client = NotebookClient(cells, timeout=PATIENCE, resources={"metadata": {"path": str(tmp_path)}})
    client.execute(env=without_keys())
    has_its_picture("notebook.ipynb", json.loads(cells.cells.pop().outputs[0].text))
    once, again = [
        [shown(output) for cell in cells.cells[half] if cell.cell_type == "code" for output in cell.outputs]
        for half in (slice(-len(code)), slice(-len(code), None))
    ]
    assert [text for text in once if text] == PROMISED["notebook.ipynb"].splitlines()
    assert again == once


def shown(output: Any) -> str:
    return "" if output.output_type == "stream" else output.data["text/plain"]


@pytest.mark.deep
@pytest.mark.rule("presence.patience", "schedule.once", "effect.once")
def test_the_night_shift_goes_on_in_the_other_worker_on_postgres(new_address: Callable[[], str], tmp_path: Path):
    store = new_address()
    done = ran(EXAMPLES / "night_shift.py", cwd=tmp_path, env=without_keys(REMIT_STORE=store))
    assert (done.returncode, done.stderr) == (0, "")
    prints_what_is_promised("night_shift.py", done.stdout)
    has_its_picture("night_shift.py", run_in(store, "close the day"))
    assert not list(tmp_path.iterdir()), "everything is in the database"


# -- examples of other frameworks ---------------------------------------------------------------------------------


class Lives:
    """Starts examples, each in a process of its own."""

    def __init__(self, process: Process) -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        self._asks, self._told = process.stdin, BufferedByteReceiveStream(process.stdout)
        self.child = 0
        self.begun = anyio.Event()

    async def live(self, name: str, folder: Path, *arguments: str, **environment: str) -> int:
        """Run an example, and tell how it ended."""
        asked = [str(EXAMPLES / name), arguments, environment, str(folder)]
        self.begun = anyio.Event()
        await self._asks.send(f"{json.dumps(asked)}\n".encode())
        with anyio.fail_after(PATIENCE * 2):
            self.child = int(await self._told.receive_until(b"\n", 20))
            self.begun.set()
            return int(await self._told.receive_until(b"\n", 20))


@asynccontextmanager
async def starting() -> AsyncIterator[Lives]:
    async with await anyio.open_process([sys.executable, LIVES], stderr=None, env=without_keys()) as process:
        lives = Lives(process)
        yield lives
        assert process.stdin is not None
        await process.stdin.aclose()
        await process.wait()


def printed(folder: Path) -> str:
    assert (folder / "stderr").read_text() == ""
    return (folder / "stdout").read_text()


def script_of(name: str) -> Any:
    """What an example says in place of its models, without the framework that it imports."""
    wanted = ast.parse((EXAMPLES / name).read_text())
    wanted.body = [
        node for node in wanted.body if ast.unparse(node).startswith(("from remit.testing", "SAID", "def script"))
    ]
    found: dict[str, Any] = {}
    exec(compile(wanted, name, "exec"), found)
    return found["script"]


def bill(text: str) -> tuple[list[int], int]:
    """What each agent spent, and the total, in millionths."""
    *lines, total = [
        int(found.replace(".", "")) for found in re.findall(r"^\$(\d+\.\d{6}) \w+, \d+ requests$", text, re.MULTILINE)
    ]
    return lines, total


@pytest.mark.deep
@pytest.mark.anyio
@pytest.mark.rule("model.guests", "model.once", "tool.once")
async def test_examples_in_other_frameworks_run_as_they_stand_and_go_on_after_kill_9(tmp_path: Path):
    async with starting() as lives:
        for name, peer in PEERS.items():
            for kind in ("whole", "killed"):
                (tmp_path / kind / name).mkdir(parents=True)
            await runs_whole(lives, name, tmp_path / "whole" / name)
            await is_killed(lives, name, peer, tmp_path / "killed" / name)


async def runs_whole(lives: Lives, name: str, folder: Path) -> None:
    assert await lives.live(name, folder) == 0, (folder / "stderr").read_text()
    prints_what_is_promised(name, printed(folder))
    lines, total = bill(printed(folder))
    assert sum(lines) == total > 0
    assert sorted(os.listdir(folder)) == ["stderr", "stdout"], "an example leaves nothing behind"  # noqa: PTH208


async def is_killed(lives: Lives, name: str, peer: Peer, folder: Path) -> None:
    script = script_of(name)

    async def killing(asked: ModelRequest) -> Any:
        await lives.begun.wait()
        if len(server.requests) in peer.killed:
            os.kill(lives.child, signal.SIGKILL)
        return script(asked)

    async with model_server(killing) as server:
        environment = {"OPENAI_BASE_URL": f"{server.url}/v1", "OPENAI_API_KEY": "none"}
        for _ in peer.killed:
            assert await lives.live(name, folder, "team.db", **environment) == -signal.SIGKILL
        assert await lives.live(name, folder, "team.db", **environment) == 0, (folder / "stderr").read_text()
        assert len(server.requests) == peer.requests + len(peer.killed)
    text = printed(folder)
    assert re.findall(r"^answer: .*", text, re.MULTILINE) == re.findall(r"^answer: .*", PROMISED[name], re.MULTILINE)
    assert text.count(peer.effect) == 1
    lines, total = bill(text)
    assert sum(lines) == total > 0
