"""The command line, as people and programs use it: real processes, real files."""

import json
import re
import signal
import sqlite3
import subprocess
from pathlib import Path

import pytest

from commands import command as remit
from programs import running
from remit.cli.breakers import next_for
from remit.core.breaker import UNTIL_RESET, Breaker
from terminals import in_terminal

TEAM = """
import anyio
import remit

rt = remit.Runtime()
not_a_runtime = 7

@rt.agent(asks="*")
async def lead(turn):
    await turn.context.set("notes", "seen", turn.task)
    try:
        await turn.delegate("lead", "again")
    except remit.Refused:
        pass
    return await turn.delegate("worker", "part of it", sees=["notes"])

@rt.agent
async def worker(turn):
    return "read " + await turn.context.get("notes", "seen")

@rt.agent
async def broken(turn):
    raise ValueError("\\x1b[31mred\\x1b[0m alert")

@rt.agent(asks="*")
async def triage(turn):
    await turn.report_tokens(120)
    return remit.Command("billing", {"phase": "refund"})

@rt.agent(asks="*")
async def billing(turn):
    if turn.handoff.refused:
        return "kept it"
    return remit.Command("nobody")

@rt.agent(asks="*")
async def chief(turn):
    steps = [remit.Step("a", "Gather", agent="worker2"), remit.Step("b", "Break", agent="broken")]
    steps += [remit.Step(name, "Again", agent="broken") for name in ("e", "f")]
    steps.append(remit.Step("c", "Write", agent="worker2", after=["a"]))
    steps.append(remit.Step("d", "Wait", agent="lead", after=["b"]))
    await turn.run_plan(remit.Plan(steps))
    return "done"

@rt.agent
async def worker2(turn):
    return "fine"

@rt.agent
async def slow(turn):
    print("started", flush=True)
    await anyio.sleep_forever()
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "team.py").write_text(TEAM)
    (tmp_path / "broken_team.py").write_text("import remit\n1 / 0\n")
    (tmp_path / "refused_team.py").write_text("import remit\nrt = remit.Runtime()\nrt.add(3)\n")
    (tmp_path / "unfinished.py").write_text("def half(\n")
    return tmp_path


def ran(folder: Path) -> Path:
    """The folder after one run that is kept in remit.db."""
    done = remit(folder, "run", "team:rt", "lead", "the task", "--store", "remit.db")
    assert done.returncode == 0, done.stderr
    return folder


@pytest.mark.rule("terminal.pipe")
def test_a_run_in_a_pipe_gives_the_answer_alone_and_tells_beside_it_what_happens(folder: Path):
    done = remit(folder, "run", "team:rt", "lead", "the task")
    assert (done.returncode, done.stdout) == (0, "read the task\n")
    assert "task.started worker: part of it" in done.stderr
    assert "hop.refused lead: lead (self)" in done.stderr
    assert "1 delegation refused (self)" in done.stderr
    assert "this run was in memory only" in done.stderr


def test_run_draws_a_tree_in_a_terminal(folder: Path):
    seen = in_a_terminal(folder, "run", "team:rt", "lead", "the task")
    assert "✓" in seen
    assert "worker" in seen


def in_a_terminal(folder: Path, *words: str) -> str:
    seen = in_terminal(folder, *words, width=160)
    assert seen.code == 0
    return re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", seen.raw)


def test_the_doctor_says_at_a_terminal_how_far_it_is_and_nothing_in_a_pipe(folder: Path):
    remit(folder, "run", "team:rt", "worker2", "the task", "--store", "remit.db")
    assert re.search(r"default: event 0 of \d+", in_a_terminal(folder, "doctor"))
    assert "event 0" not in remit(folder, "doctor").stderr


@pytest.mark.rule("prune.steps")
def test_prune_says_on_a_terminal_how_far_it_is(folder: Path):
    seen = in_a_terminal(ran(folder), "prune", "--days", "1e-9")
    assert " 1 run deleted" in seen
    assert "1 run that ended more than 1e-09 days ago deleted" in seen
    assert remit(folder, "prune", "--days", "1e-9").stderr == ""


def test_handoffs_are_shown_as_lines_and_in_the_tree(folder: Path):
    done = remit(folder, "run", "team:rt", "triage", "charged twice", "--store", "remit.db")
    assert done.returncode == 0, done.stderr
    assert "task.handed triage to billing (phase refund)" in done.stderr
    assert "hop.refused billing: handoff to nobody (unknown)" in done.stderr
    assert "triage began and billing ended it; changed hands 1 time; 1 handoff refused (unknown)" in done.stderr
    shown = remit(folder, "show").stdout
    assert "→ billing  phase refund  triage had it" in shown
    assert "⊘ nobody  handoff refused (unknown)" in shown
    assert "1 handoff" in shown
    data = json.loads(remit(folder, "show", "--json").stdout)
    assert (data["first"], data["agent"], data["tokens"]) == ("triage", "billing", 120)
    assert "→ billing (phase refund)" in remit(folder, "flow").stdout
    assert "→ billing" in in_a_terminal(folder, "run", "team:rt", "triage", "charged twice")


@pytest.mark.rule("handoff.off")
@pytest.mark.parametrize("words", [["--no-handoffs"], ["--tier", "simple"]])
def test_a_run_may_go_without_handoffs(folder: Path, words: list[str]):
    done = remit(folder, "run", "team:rt", "triage", "charged twice", "--json", *words)
    tree = json.loads(done.stdout)
    assert done.returncode == 1
    assert (tree["agent"], tree["trail"], tree["refusals"][0]["rule"]) == ("triage", [], "handoffs")


def test_a_plan_and_the_breakers_it_opens_are_shown(folder: Path):
    done = remit(folder, "run", "team:rt", "chief", "plan it", "--store", "remit.db")
    assert done.returncode == 0, done.stderr
    for words in (
        "plan.started chief: 6 steps: Gather, Break, Again, Again, Write, Wait",
        'step.ended chief: step d failed: dependency "b" failed',
        "breaker.set broken: open after 3 failures: ",
        "chief asked 2 agents; 2 of 6 steps completed, 4 failed; 3 tasks failed",
    ):
        assert words in done.stderr
    assert "\x1b" not in done.stderr
    assert "breaker.set broken: closed" not in done.stderr  # only that it opens
    shown = in_a_terminal(folder, "run", "team:rt", "chief", "plan it")
    for words in (
        "plan  2 of 6 steps completed, 4 failed",
        "✓ worker2  c: Write",
        "breaker broken: open after 3",
    ):
        assert words in shown


def test_stats_as_tables_and_as_json(folder: Path):
    ran(folder)
    for agent in ("triage", "chief"):
        assert remit(folder, "run", "team:rt", agent, "x", "--store", "remit.db").returncode == 0
    done = remit(folder, "stats")
    assert done.returncode == 0, done.stderr
    for words in ("runs      3 completed", "handoffs  1, 0.11 a task, at most 1", "deadlocks 0", "broken", "unknown"):
        assert words in done.stdout
    data = json.loads(remit(folder, "stats", "--json").stdout)
    assert (data["runs"], data["tasks"], data["handoffs"]["total"]) == ({"completed": 3}, 9, 1)
    assert data["agents"]["triage"]["tokens"] == 120
    assert data["agents"]["broken"]["failed"] == 3
    assert data["breakers"]["broken"]["state"] == "open"
    assert data["refusals"] == {"self": 1, "unknown": 1}


def test_stats_of_a_time_and_of_an_agent(folder: Path):
    ran(folder)
    for since in ("1h", "30 min", "2d", "2020-01-01", "2020-01-01T10:00+02:00"):
        data = json.loads(remit(folder, "stats", "--since", since, "--agent", "Worker", "--json").stdout)
        assert (data["agent"], list(data["agents"]), data["events"]) == ("worker", ["worker"], 2)
    assert "no events in that time" in remit(folder, "stats", "--until", "1h").stdout
    assert "no events yet" in remit(folder, "stats", "--workspace", "other").stdout
    assert "worker" in remit(folder, "stats", "--agent", "worker").stdout


@pytest.mark.rule("breaker.operator")
def test_an_operator_takes_an_agent_out_and_lets_it_in_again(folder: Path):
    ran(folder)
    assert "no agent has failed recently" in remit(folder, "breakers").stdout
    tripped = remit(folder, "breaker", "trip", "Worker2", "--why", "on \x1b[31mholiday")
    assert "'worker2' is out of service; to undo: remit breaker reset worker2" in tripped.stdout
    refused = remit(folder, "run", "team:rt", "worker2", "x", "--store", "remit.db")
    assert refused.returncode == 3
    assert "was taken out by an operator" in refused.stderr
    table = remit(folder, "breakers").stdout
    assert "out of service until reset" in table
    assert "\x1b" not in table
    again = json.loads(remit(folder, "breaker", "trip", "worker2", "--why", "on \x1b[31mholiday", "--json").stdout)
    assert again == {"agent": "worker2", "state": "open", "changed": False}
    assert "is back in service" in remit(folder, "breaker", "reset", "worker2", "--why", "back").stdout
    assert "nothing changed" in remit(folder, "breaker", "reset", "worker2").stdout
    assert remit(folder, "run", "team:rt", "worker2", "x", "--store", "remit.db").returncode == 0
    assert json.loads(remit(folder, "breakers", "--json").stdout) == []
    assert ": OK" in remit(folder, "doctor").stdout


def test_breakers_say_what_comes_next(folder: Path):
    fail = ("run", "team:rt", "broken", "x", "--store", "remit.db")
    assert remit(folder, *fail).returncode == 1
    assert re.search(r"broken +closed +available +1 ", remit(folder, "breakers").stdout)
    assert [remit(folder, *fail).returncode for _ in range(3)] == [1, 1, 3]
    assert re.search(r"broken +open +paused for [0-9.]+ s +3 ", remit(folder, "breakers").stdout)
    assert json.loads(remit(folder, "breakers", "--json").stdout)[0]["failures"] == 3
    assert "is back in service" in remit(folder, "breaker", "reset", "broken").stdout
    assert "no agent has failed recently" in remit(folder, "breakers").stdout


@pytest.mark.parametrize(
    ("breaker", "sentence"),
    [
        (Breaker(), "available"),
        (Breaker("open", 3, 90_000_000), "paused for 30.0 s"),
        (Breaker("open", 3, 60_000_000), "ready for a test call"),
        (Breaker("half-open", 3, 90_000_000, "t1"), "test call running, 30.0 s left"),
        (Breaker("open", 0, UNTIL_RESET), "out of service until reset"),
    ],
)
def test_every_state_of_a_breaker_says_what_comes_next(breaker: Breaker, sentence: str):
    assert next_for(breaker, 60_000_000) == sentence


def test_run_as_json_is_one_document(folder: Path):
    done = remit(folder, "run", "team:rt", "lead", "the task", "--json")
    tree = json.loads(done.stdout)
    assert (tree["agent"], tree["state"], tree["result"]) == ("lead", "completed", "read the task")
    assert tree["refusals"][0]["rule"] == "self"
    assert tree["children"][0]["receipt"]["saw"][1][0] == "notes/seen"


@pytest.mark.parametrize(
    ("words", "code", "sentence"),
    [
        (["run", "team", "lead", "x"], 2, "module:name"),
        (["run", "nothere:rt", "lead", "x"], 2, "cannot be imported"),
        (["run", "broken_team:rt", "lead", "x"], 2, "ZeroDivisionError: division by zero (broken_team.py, line 2)"),
        (["run", "refused_team:rt", "lead", "x"], 2, "(refused_team.py, line 3)"),  # not the line of remit
        (["run", "unfinished:rt", "lead", "x"], 2, "SyntaxError"),
        (["run", "team:not_a_runtime", "lead", "x"], 2, "it has rt"),
        (["run", "team:rt", "nobody", "x"], 3, "there is no agent 'nobody'"),
        (["run", "team:rt", "lead", ""], 2, "must not be empty"),
        (["run", "team:rt", "lead", "x", "--credits", "$lots"], 2, "an amount is written"),
        (["run", "team:rt", "lead", "x", "--credits", "$-1"], 2, "an amount is not negative"),
        (["submit", "team:rt", "lead", "x", "--credits", "bash.50"], 2, "'$0.50' in single quotes"),
        (["run", "team:rt", "lead", "x", "--timeout", "-1"], 2, "positive"),
        (["run", "team:rt", "broken", "x"], 1, ""),
        (["runs"], 4, "there is no store at remit.db"),
        (["runs", "--store", "."], 5, "is a folder"),
        (["runs", "--store", "team.py"], 5, "not a SQLite database"),
        (["nonsense"], 2, ""),
        (["runs", "--nonsense"], 2, ""),
        (["runs", "--limit", "0"], 2, "limit is a whole number from 1"),
        (["history", "--limit", "-5"], 2, "limit is a whole number from 1"),
        (["run", "team:rt", "lead", "x", "--tier", "huge"], 2, ""),
        (["stats"], 4, "there is no store at remit.db"),
        (["stats", "--since", "yesterday"], 2, "--since is a time ago such as 30m, 1h or 2d, or a date"),
        (["stats", "--until", "2026-13-01"], 2, "--until is a time ago"),
        (["stats", "--since", "1h", "--until", "2h"], 2, "--since must be before --until"),
        (["stats", "--since", "9999-01-01"], 2, "--since must be before --until"),
        (["stats", "--agent", "!"], 2, "an agent's name needs"),
        (["breakers"], 4, "there is no store at remit.db"),
        (["breaker", "trip", "worker"], 2, ""),
        (["breaker", "trip", "worker", "--why", "x"], 4, "there is no store at remit.db"),
        (["breaker", "reset", "worker"], 4, "there is no store at remit.db"),
        (["context", "set", "a", "b", "c", "--ttl", "0"], 2, "ttl must be a positive"),
        (["context", "set", "a", "b", "{", "--as-json"], 2, "not JSON"),
    ],
)
def test_what_goes_wrong_is_a_sentence_and_a_code(folder: Path, words: list[str], code: int, sentence: str):
    done = remit(folder, *words)
    assert done.returncode == code, done.stdout + done.stderr
    assert sentence in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.rule("credits.shell")
@pytest.mark.parametrize("typed", ['"$0.50"', '"$0"', '"$5"', '"$10"', '"$12.34"'])
@pytest.mark.parametrize("shell", ["bash", "sh"])
def test_what_a_shell_leaves_of_an_amount_is_not_taken_for_one(folder: Path, typed: str, shell: str):
    said = subprocess.run([shell, "-c", f"printf %s {typed}"], capture_output=True, text=True, check=True).stdout

    for words in (["run", "team:rt", "lead", "x"], ["submit", "team:rt", "lead", "x", "--store", "remit.db"]):
        done = remit(folder, *words, "--credits", said)

        assert (done.returncode, done.stdout) == (2, "")
        assert f"0.50USD, or '$0.50' in single quotes, not {said!r}" in done.stderr


@pytest.mark.rule("credits.shell")
@pytest.mark.parametrize("left", [".50", "bash.50", "-bash.50", "sh.50", "/bin/zsh.50", "0.5", "1"])
def test_an_amount_without_its_unit_is_refused_on_the_command_line(folder: Path, left: str):
    done = remit(folder, "run", "team:rt", "lead", "x", "--credits", left)

    assert done.returncode == 2
    assert f"0.50USD, or '$0.50' in single quotes, not {left!r}" in done.stderr


@pytest.mark.rule("credits.shell")
@pytest.mark.parametrize(
    ("typed", "millionths"), [("0.50USD", 500_000), ("$0.50", 500_000), (" 1 usd", 10**6), ("0USD", 0)]
)
def test_an_amount_with_its_unit_bounds_what_is_run_and_what_is_submitted(folder: Path, typed: str, millionths: int):
    remit(folder, "run", "team:rt", "lead", "x", "--store", "remit.db", "--credits", typed)
    remit(folder, "submit", "team:rt", "lead", "y", "--store", "remit.db", "--credits", typed)

    events = json.loads(remit(folder, "history", "--json").stdout)
    first = [
        event for event in events if event["kind"] in ("task.started", "task.submitted") and event["agent"] == "lead"
    ]
    assert [event["data"]["bounds"]["credits"] for event in first] == [millionths] * 2


def test_what_agents_say_cannot_steer_a_terminal(folder: Path):
    done = remit(folder, "run", "team:rt", "broken", "x", "--store", "remit.db")
    shown = remit(folder, "show")
    flow = remit(folder, "flow")
    for output in (done.stdout, shown.stdout, flow.stdout):
        assert "\x1b" not in output
        assert "red" in output


def test_runs_and_show(folder: Path):
    ran(folder)
    table = remit(folder, "runs").stdout
    found = json.loads(remit(folder, "runs", "--json").stdout)
    assert found[0]["id"] in table
    assert (found[0]["state"], found[0]["tasks"], found[0]["refused"]) == ("completed", 2, 1)
    for name in (found[0]["id"], found[0]["id"][:14], found[0]["id"][-5:], "last"):
        shown = remit(folder, "show", name).stdout
        assert "lead asked 1 agent; 1 delegation refused (self)" in shown
        assert "notes/seen" in shown
    assert remit(folder, "show", "zzzz").returncode == 4
    assert remit(folder, "show", "x", "--workspace", "other").returncode == 4


@pytest.mark.rule("failure.trace")
def test_show_tells_where_a_task_failed(folder: Path):
    remit(folder, "run", "team:rt", "broken", "x", "--store", "remit.db")
    [run] = json.loads(remit(folder, "runs", "--json").stdout)
    shown = remit(folder, "show", "--trace", run["id"]).stdout
    assert " in broken" in shown
    [failure] = json.loads(remit(folder, "show", "--trace", run["id"], "--json").stdout)["failures"]
    assert failure["trace"].splitlines()[-1] == "ValueError"
    assert "team.py:" in failure["error"]
    assert remit(folder, "show", "--trace", "zzzz").returncode == 4


@pytest.mark.parametrize(("format", "start"), [("text", ""), ("mermaid", "flowchart"), ("svg", "<svg")])
def test_flow_in_every_format(folder: Path, format: str, start: str):
    ran(folder)
    printed = remit(folder, "flow", "last", "--format", format)
    assert printed.stdout.startswith(start)
    assert "worker" in printed.stdout
    written = remit(folder, "flow", "last", "--format", format, "--output", "picture")
    assert "written to picture" in written.stdout
    assert (folder / "picture").read_text().strip() == printed.stdout.strip()


def test_history_by_agent_and_as_json(folder: Path):
    ran(folder)
    lines = remit(folder, "history", "--agent", "Worker").stdout.splitlines()
    assert len(lines) == 2
    events = json.loads(remit(folder, "history", "--json").stdout)
    assert [event["seq"] for event in events] == list(range(1, len(events) + 1))


def test_context_commands(folder: Path):
    assert "version 1" in remit(folder, "context", "set", "notes", "a", "hello").stdout
    assert "version 2" in remit(folder, "context", "set", "notes", "a", '{"x": 1}', "--as-json").stdout
    assert json.loads(remit(folder, "context", "get", "notes", "a").stdout) == {"x": 1}
    assert json.loads(remit(folder, "context", "get", "notes", "a", "--json").stdout)["version"] == 2
    assert "1  notes" in remit(folder, "context", "ls").stdout
    assert json.loads(remit(folder, "context", "ls", "notes", "--json").stdout)[0]["key"] == "a"
    assert remit(folder, "context", "rm", "notes", "a").returncode == 0
    assert remit(folder, "context", "rm", "notes", "a").returncode == 4
    assert remit(folder, "context", "get", "notes", "a").returncode == 4
    assert "0 expired entries" in remit(folder, "context", "cleanup").stdout
    assert "nothing in notes" in remit(folder, "context", "ls", "notes").stdout


def test_doctor_says_what_is_wrong(folder: Path):
    ran(folder)
    assert "remit.db: OK" in remit(folder, "doctor").stdout
    with sqlite3.connect(folder / "remit.db") as connection:
        connection.execute("UPDATE entry SET value = 'forged'")
        connection.execute("UPDATE event SET agent = 'someone' WHERE seq = 2")
    done = remit(folder, "doctor")
    assert done.returncode == 1
    assert "entry 'notes/seen' differs from the journal in value" in done.stdout
    assert "event 2 (entry.set) does not follow from event 1: it was changed after it was written" in done.stdout
    found = json.loads(remit(folder, "doctor", "--json").stdout)
    assert found["sound"] is False


def test_a_run_that_died_is_shown_as_lost_not_as_running(folder: Path):
    words = ["run", "team:rt", "slow", "x", "--store", "remit.db", "--timeout", "0.5"]
    with running("-m", "remit.cli", *words, cwd=folder) as child:
        while "started" not in child.stdout.readline():
            assert child.poll() is None
    assert json.loads(remit(folder, "runs", "--json").stdout)[0]["state"] == "lost"  # at once: its process is gone
    while "`remit worker` ends or resumes" not in (said := remit(folder, "doctor").stdout):  # until its time is up
        assert ": OK" in said


def test_an_interrupt_is_recorded_and_ends_with_130(folder: Path):
    words = ["run", "team:rt", "slow", "x", "--store", "remit.db"]
    with running("-m", "remit.cli", *words, cwd=folder) as child:
        while "started" not in child.stdout.readline():
            assert child.poll() is None
        child.send_signal(signal.SIGINT)
        _, errors = child.communicate(timeout=30)
        assert child.wait() == 130
    assert "Traceback" not in errors
    assert json.loads(remit(folder, "runs", "--json").stdout)[0]["state"] == "cancelled"


def test_the_demo_shows_the_main_job(folder: Path):
    done = remit(folder, "demo", "--pace", "0")
    assert done.returncode == 0
    for words in (
        "'coder' is already in this delegation (lead > coder > reviewer)",
        "at most 3 is allowed",
        "2 of 3 researchers answered",
        "codebase/auth",
        "remit doctor --store remit-demo.db",
    ):
        assert words in done.stdout
    assert ": OK" in remit(folder, "doctor", "--store", "remit-demo.db").stdout


def test_the_demo_shows_the_same_again_in_a_store_that_it_has_filled(folder: Path):
    shown: list[str] = []
    for _ in range(5):
        done = remit(folder, "demo", "--pace", "0")
        assert done.returncode == 0
        lines = done.stdout[done.stdout.index("\nlead began") :]
        shown.append(re.sub(r"[\d.]+ m?s\b", "…", lines))  # the times differ
    assert shown == shown[:1] * 5


def test_help_names_the_exit_codes(folder: Path):
    assert "Exit codes" in remit(folder, "--help").stdout
    assert remit(folder, "--version").stdout.startswith("remit 0.")
