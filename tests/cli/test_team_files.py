"""A team is a file: begun, checked, run, put to work and looked at from the command line."""

import fcntl
import json
import os
import pty
import re
import resource
import signal
import struct
import subprocess
import sys
import termios
from contextlib import suppress
from pathlib import Path

import pytest

from commands import command as remit
from programs import running
from remit.cli.options import store_at, workspace_at

TEMPLATES = {
    "support": ("my lamp of order 17 is broken, I want my money back", "$89 are on their way back to you."),
    "research": ("when does high water come?", "The notes say: Tides follow the moon."),
    "coding": ("write a function that greets somebody", "The reviewer says: it has types and a docstring"),
}


def written(folder: Path, template: str = "support") -> Path:
    done = remit(folder, "init", "--template", template)
    assert done.returncode == 0, done.stderr
    return folder


def fresh(folder: Path, *words: str) -> "subprocess.CompletedProcess[str]":
    """Run a command in a Python that has imported nothing yet, and without a key."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("REMIT_")}
    environment = {name: value for name, value in environment.items() if not name.endswith("_KEY")}
    command = [sys.executable, "-m", "remit.cli", *words]
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=60)


# -- init -------------------------------------------------------------------------------------------------------


@pytest.mark.rule("file.init")
@pytest.mark.parametrize("template", TEMPLATES)
def test_a_template_is_right_and_runs_at_once_without_a_key(template: str, tmp_path: Path):
    task, answer = TEMPLATES[template]
    told = remit(tmp_path, "init", "--template", template)
    assert told.stdout.endswith(f'\nremit run "{task}"\n')
    assert remit(tmp_path, "check").returncode == 0
    done = remit(tmp_path, "run", task)
    assert done.returncode == 0, done.stderr
    assert answer in done.stdout
    assert "model.answered" in done.stderr  # it went through the models of the engine,
    assert "tool.done" in done.stderr  # and the tools
    assert remit(tmp_path, "doctor").returncode == 0


def at_a_terminal(folder: Path, *words: str) -> str:
    """Run a command at a terminal of 80 columns, and give all that is written there."""
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
    command = [sys.executable, "-m", "remit.cli", *words]
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("REMIT_", "COLUMNS"))}
    child = subprocess.Popen(command, cwd=folder, stdout=slave, stderr=slave, env={**environment, "TERM": "xterm"})
    os.close(slave)
    seen = b""
    with suppress(OSError):  # the other end is closed
        while chunk := os.read(master, 65_536):
            seen += chunk
    os.close(master)
    assert child.wait() == 0
    return seen.decode()


@pytest.mark.rule("file.init", "terminal.words")
def test_from_an_empty_folder_to_a_streamed_answer_takes_seconds(tmp_path: Path):
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert fresh(tmp_path, "init").returncode == 0
    seen = at_a_terminal(tmp_path, "run", TEMPLATES["support"][0])
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    took = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime  # whatever else the machine does
    assert took < 5
    frames = re.split(r"\r\x1b\[2K", re.sub(r"\x1b\[[0-9;]*m", "", seen))
    words = [frame.partition("\r\n\r\n")[2] for frame in frames if "◐ desk" in frame]
    assert any(said.startswith("Thank you") and "back to you." not in said for said in words)  # as it came
    end = frames[-1]
    assert end.count("Thank you for writing to us.") == 1  # and in the end once
    assert end.index("✓ desk") < end.index("Thank you") < end.index("desk asked 1 agent") < end.index("remit show ")
    assert "pydantic" not in seen  # nobody else writes on the screen


@pytest.mark.rule("file.init")
def test_nothing_that_is_there_is_written_over(tmp_path: Path):
    (tmp_path / "tools.py").write_text("mine = 1\n")
    done = remit(tmp_path, "init")
    assert (done.returncode, done.stderr) == (
        2,
        "remit: tools.py exists already, so nothing was written; name another folder\n",
    )
    assert [file.name for file in tmp_path.iterdir()] == ["tools.py"]
    assert remit(tmp_path, "init", "desk").stdout.splitlines()[-1].startswith("cd desk && remit run ")
    assert (tmp_path / "desk" / "remit.toml").exists()
    assert remit(tmp_path, "init", "tools.py/below").returncode == 2


@pytest.mark.rule("file.described")
def test_the_schema_beside_a_template_is_the_one_that_is_printed(tmp_path: Path):
    beside = json.loads((written(tmp_path) / "remit.schema.json").read_text())
    assert beside == json.loads(remit(tmp_path, "check", "--schema").stdout)
    assert (tmp_path / "remit.toml").read_text().startswith("#:schema ./remit.schema.json\n")


# -- the others -------------------------------------------------------------------------------------------------


@pytest.mark.rule("file.found")
def test_the_team_of_this_folder_is_asked_unless_another_is_named(tmp_path: Path):
    written(tmp_path)
    written_other = remit(tmp_path, "init", "other", "--template", "research")
    assert written_other.returncode == 0
    assert "Order 18 is two bulbs for $6." in remit(tmp_path, "run", "billing", "order 18?").stdout
    assert "harbour.md" in remit(tmp_path, "run", "other/remit.toml", "which ships wait?").stdout
    asked = remit(tmp_path, "run", "other/remit.toml", "reader", "which ships wait?", "--json")
    assert json.loads(asked.stdout)["agent"] == "reader"
    assert (tmp_path / "other" / "remit.db").exists()
    module = tmp_path / "a_team.py"
    module.write_text("import remit\nrt = remit.Runtime()\n@rt.agent\nasync def echo(turn):\n    return turn.task\n")
    assert "as ever" in remit(tmp_path, "run", "a_team:rt", "echo", "as ever").stdout


@pytest.mark.rule("file.found")
@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("run", "hello"), "there is no remit.toml in this folder: `remit init` creates a team"),
        (("worker",), "there is no remit.toml in this folder"),
        (("chat", "desk"), "there is no remit.toml in this folder"),
        (("chat", "a", "b", "c"), "say [module:runtime] AGENT, not 'a b c'"),
        (("agents", "-v"), "there is no remit.toml in this folder"),
        (("run", "team:rt", "hello"), "name an agent: remit run team:rt AGENT 'task'"),
        (("run",), "pass [module:runtime] [AGENT] 'task': up to three words, not 0; quote the task"),
        (("run", "a", "b", "c", "d"), "up to three words, not 4"),
    ],
)
def test_what_is_missing_is_told(words: tuple[str, ...], sentence: str, tmp_path: Path):
    done = remit(tmp_path, *words)
    assert done.returncode == 2
    assert sentence in done.stderr


@pytest.mark.rule("file.found")
def test_whom_to_ask_is_said_by_the_file_or_by_the_person(tmp_path: Path):
    file = written(tmp_path) / "remit.toml"
    file.write_text(file.read_text().replace('agent = "desk"', ""))
    done = remit(tmp_path, "run", "hello")
    assert done.returncode == 2
    assert "name an agent: remit run AGENT 'task'; or name one in the file" in done.stderr


@pytest.mark.rule("file.found")
def test_what_a_file_says_of_runs_holds_unless_something_else_is_said(tmp_path: Path):
    file = written(tmp_path) / "remit.toml"
    file.write_text(file.read_text().replace('credits = "$0.50"', 'tier = "simple"\ntimeout = 30'))
    refused = remit(tmp_path, "run", "order 17?")
    assert "hop.refused" in refused.stderr  # one member only
    assert "Order 17" in remit(tmp_path, "run", "order 17?", "--tier", "medium").stdout


@pytest.mark.rule("file.found")
def test_find_and_submit_and_worker_take_the_team_of_this_folder(tmp_path: Path):
    written(tmp_path)
    assert remit(tmp_path, "find", "look up orders").stdout.endswith("remit would choose billing\n")
    task = remit(tmp_path, "submit", "order 17?").stdout.strip()  # to the desk, as the file says
    assert re.fullmatch(r"\w+", task)
    with running("-m", "remit.cli", "worker", cwd=tmp_path) as worker:
        waited = remit(tmp_path, "wait", task)
        assert "Order 17 is a brass lamp" in waited.stdout
        worker.send_signal(signal.SIGTERM)
        said, _ = worker.communicate(timeout=30)
    assert "remit.toml on remit.db" in said


@pytest.mark.rule("file.place")
def test_commands_that_look_take_the_store_and_the_workspace_of_the_team_in_this_folder(tmp_path: Path):
    file = written(tmp_path) / "remit.toml"
    file.write_text(file.read_text().replace('path = "remit.db"', 'path = "lamps.db"\nworkspace = "shop"'))
    done = remit(tmp_path, "run", "billing", "order 17?")
    assert re.search(r"^remit show \w+$", done.stderr, re.MULTILINE)  # and nothing more need be said
    for words in (("runs",), ("show",), ("flow",), ("history",), ("ps", "--all")):
        assert "billing" in remit(tmp_path, *words).stdout, words
    assert remit(tmp_path, "db", "migrate").stdout.startswith("lamps.db: up to date")
    assert remit(tmp_path, "backup", "copy.db").stdout.startswith("copy.db, copied from lamps.db")
    assert "billing" not in remit(tmp_path, "runs", "--workspace", "default").stdout
    assert "there is no store at other.db" in remit(tmp_path, "runs", "--store", "other.db").stderr


@pytest.mark.rule("file.place")
def test_what_is_said_goes_before_what_the_file_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    assert (store_at(None), workspace_at(None)) == ("remit.db", "default")
    file = tmp_path / "remit.toml"
    file.write_text('[store]\naddress = "postgresql://ann@db/team"\nworkspace = "shop"\n')
    monkeypatch.setenv("REMIT_TRUSTED", str(tmp_path))
    assert (store_at(None), workspace_at(None)) == ("postgresql://ann@db/team", "shop")
    assert (store_at("mine.db"), workspace_at("mine")) == ("mine.db", "mine")
    file.write_text("[agents.a]\n")  # in memory: there is nothing to look at
    assert store_at(None) == "remit.db"


@pytest.mark.rule("file.place")
@pytest.mark.parametrize("text", ["[store", "[store]\npath = 7", 'store = "a.db"\n[', "store = 7"])
def test_a_file_that_does_not_say_where_its_store_is_is_told_and_not_guessed(text: str, tmp_path: Path):
    (tmp_path / "remit.toml").write_text(text)
    done = remit(tmp_path, "runs")
    assert done.returncode == 2
    assert "or pass --store" in done.stderr


@pytest.mark.rule("file.lazy")
def test_looking_imports_nothing_that_asks_models(tmp_path: Path):
    written(tmp_path)
    assert remit(tmp_path, "run", "order 17?").returncode == 0
    code = (
        "import sys\nfrom remit.cli.main import main\n"
        "try:\n    main(sys.argv[1:])\nexcept SystemExit:\n    pass\n"
        "print([name for name in ('pydantic', 'pydantic_ai', 'httpx', 'genai_prices') if name in sys.modules])"
    )
    for words in (("ps",), ("runs",), ("show", "last"), ("agents",), ("check", "--schema"), ("init", "x")):
        done = subprocess.run([sys.executable, "-c", code, *words], cwd=tmp_path, capture_output=True, text=True)
        assert done.stdout.endswith("[]\n"), (words, done.stdout, done.stderr)


# -- how a team is put together -----------------------------------------------------------------------------------

HOOKED = """
import remit

def look(call): ...
def note(call, result): ...
def deploy(where: str) -> str: ...

rt = remit.Runtime()
rt.model_agent(
    "releaser", "openai:gpt-5", fallback=["anthropic:claude-sonnet-4-5"], keys=["KEY_A", "KEY_B"], tools=[deploy],
    approve_tools=["deploy"], deny=["group:exec"], before=[look], after=[note], iterations=7, max_tokens=900,
    concurrency=2, can="release", asks=["clerk"], reads=["plans"], writes=["notes"],
)

@rt.guard
def office_hours(hop): ...

@rt.around
async def timing(turn, go):
    return await go()

@rt.around
async def check(turn, go):
    return await go()

@rt.agent(role="files things", needs_approval=True)
async def clerk(turn): ...
"""


@pytest.mark.rule("show.stack")
def test_agents_tells_how_each_agent_of_a_module_is_put_together(tmp_path: Path):
    (tmp_path / "hooked_team.py").write_text(HOOKED)
    assert remit(tmp_path, "agents", "hooked_team:rt", "-v").stdout.splitlines() == [
        "clerk  files things",
        "  approval  a person, before it works for another agent",
        "  guards    office_hours",
        "  around    timing, then check",
        "releaser  release",
        "  models    openai:gpt-5 (KEY_A, then KEY_B), then anthropic:claude-sonnet-4-5 (ANTHROPIC_API_KEY)",
        "  asks      clerk",
        "  tools     deploy",
        "  denied    exec",
        "  approval  a person, each time: deploy",
        "  guards    office_hours",
        "  around    timing, then check",
        "  before    look",
        "  after     note",
        "  reads     plans/*",
        "  writes    notes/*",
        "  limits    7 requests a task; 900 tokens an answer; 2 at a time",
    ]


@pytest.mark.rule("show.stack")
def test_agents_tells_how_the_team_of_this_folder_is_put_together(tmp_path: Path):
    told = json.loads(remit(written(tmp_path), "agents", "-v", "--json").stdout)
    assert [(one["card"]["name"], one["models"], one["iterations"]) for one in told] == [
        ("billing", ["script:script.toml"], 50),
        ("desk", ["script:script.toml"], 50),
    ]
    assert "  tools     find_order, refund\n" in remit(tmp_path, "agents", "--verbose").stdout
