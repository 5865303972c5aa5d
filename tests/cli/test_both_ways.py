"""Every command on a store and on a server of the same store: the same bytes, the same exit codes."""

import inspect
import re
from pathlib import Path
from shutil import copytree
from typing import Any

import pytest

from cli.test_all_commands import ROWS, leaves, named, played
from commands import command
from remit.cli.main import exit_code
from remit.errors import Forbidden, Malformed, NoServer, NotFound, RemitError, TooMany, Unauthorised

# They have --store because they work on the store itself, or because keys do not travel.
ITSELF = {("doctor",), *(("keys", verb) for verb in ("set", "rm", "rotate"))}
ITSELF |= {("access", "make"), *(("hooks", verb) for verb in ("add", "rotate"))}
OF_A_TEAM = "team:rt"  # a server has its own
MORE: tuple[tuple[str, ...], ...] = (
    ("submit", "worker", "y", "--key", "one"),
    ("submit", "worker", "y", "--key", "one"),
    ("submit", "nobody", "y"),
    ("ps", "--parent", "nothing"),
    ("ps", "--all", "--agent", "worker", "--since", "1h"),
    ("status", "nothing"),
    ("history", "--run", "{run}"),
    ("approvals", "nothing"),
    ("context", "get", "notes", "nothing"),
    ("prune", "--days", "400", "--dry-run"),
    ("stats", "--edges"),
    ("stats", "--by", "day"),
    ("money", "spend", "--by", "day,agent,model"),
    ("money", "spend", "--by", "agent,model"),
    ("money", "spend", "--by", "day,model", "--csv"),
    ("money", "spend", "--by", "day", "--csv"),
    ("runs", "--state", "failed"),
    ("artifacts", "get", "{digest}", "copy.txt"),
    ("artifacts", "get", "{digest}", "copy.txt"),
    ("artifacts", "get", "0123"),
    ("artifacts", "get", f"sha256:{'0' * 64}", "-"),
    ("artifacts", "put", "nowhere"),
    ("artifacts", "put", "team.py", "--name", "a/b"),
    ("artifacts", "put", "team.py", "--media-type", "odd"),
)
AFTERWARDS = [("ps", "--all"), ("runs",), ("money",), ("breakers",), ("approvals", "--decided"), ("schedule", "ls")]


def works_over_a_server(words: tuple[str, ...]) -> bool:
    parameters = inspect.signature(dict(leaves())[named(words)]).parameters
    return named(words) not in ITSELF and OF_A_TEAM not in words and bool({"place", "server"} & parameters.keys())


def acts(words: tuple[str, ...]) -> bool:
    """Whether a command changes something. A client gives each change an operation id, which the journal keeps, so
    whatever counts events comes before it."""
    return bool({"act", "server"} & inspect.signature(dict(leaves())[named(words)]).parameters.keys())


def steadied(told: list[dict[str, Any]]) -> list[tuple[list[str], int, str]]:
    """What was printed, with ids in the order in which they appear, and without times and operation ids."""
    seen: dict[str, str] = {}

    def numbered(found: re.Match[str]) -> str:
        return seen.setdefault(found[0], f"id {len(seen)}")

    def steady(text: str) -> str:
        text = re.sub(r"\b3[a-z2-7]{15}\b", numbered, text)
        text = re.sub(r'"(op|hash|head|key|request)": "[^"]*"', r'"\1": ""', text)
        text = re.sub(r"\d{4}-\d\d-\d\dT[\d:.]+Z", "TIME", text)
        text = re.sub(r"\b[\d.]+ (us|ms|s|min)\b|\bnow\b|\b\d{5,}\b|\bprocess \d+|here \d+", "TIME", text)
        return re.sub(r"[ ─]+", " ", re.sub(r'"(elapsed|time_\w+|latency_\w+|mean|p95|queue_\w+)": \d+', "", text))

    return [(one["words"], one["code"], steady(f"{one['out']}\n{one['err']}")) for one in told]


@pytest.mark.rule("client.commands")
@pytest.mark.parametrize("ending", [(), ("--json",)], ids=["text", "json"])
def test_a_command_prints_the_same_on_a_store_and_on_a_server(tmp_path: Path, ending: tuple[str, ...]):
    rows = sorted((words for words in (*(row for row, _ in ROWS), *MORE) if works_over_a_server(words)), key=acts)
    rows += AFTERWARDS
    if ending:
        rows = [(*words, *ending) for words in rows if "--csv" not in words and "--as" not in words]
        rows = [words for words in rows if "json" in inspect.signature(dict(leaves())[named(words)]).parameters]
    made = tmp_path / "made"
    made.mkdir()
    assert played(made, "pipe", []) == []
    told = [steadied(played(Path(copytree(made, tmp_path / way)), way, rows)) for way in ("pipe", "server")]
    for store, server in zip(*told, strict=True):
        assert store == server


@pytest.mark.rule("client.commands")
def test_every_command_that_reads_a_store_takes_a_server():
    both = {path for path, made in leaves() if {"place", "server"} & inspect.signature(made).parameters.keys()}
    rows = {named(words) for words in (*(row for row, _ in ROWS), *MORE) if works_over_a_server(words)}
    assert both - rows <= ITSELF, "add a row to ROWS of tests/cli/test_all_commands.py, or the command to ITSELF"


@pytest.mark.rule("client.unreachable")
def test_a_command_says_which_server_does_not_answer_and_which_commands_have_none(tmp_path: Path):
    gone = command(tmp_path, "ps", "--server", "http://127.0.0.1:1")
    assert (gone.returncode, "no server answers at http://127.0.0.1:1" in gone.stderr) == (5, True)
    local = command(tmp_path, "worker", "team:rt", "--server", "http://127.0.0.1:1")
    assert (local.returncode, "works on the store itself" in local.stderr) == (2, True)
    both = command(tmp_path, "ps", "--store", "x.db", "--server", "http://127.0.0.1:1")
    assert (both.returncode, "not both" in both.stderr) == (2, True)


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (Unauthorised("this needs a valid key"), 3),
        (Forbidden("this needs a key with the scope admin"), 3),
        (TooMany("too many requests"), 5),
        (NoServer("no server answers"), 5),
        (NotFound("there is no such task"), 4),
        (Malformed("the body is no JSON"), 2),
    ],
)
def test_what_a_server_refuses_has_the_exit_code_of_what_a_store_refuses(error: RemitError, code: int):
    assert exit_code(error) == code
