"""A stranger's file: whatever its columns say, no command lets it act on a terminal, and none ends in a traceback."""

import asyncio
import re
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from deep import some
from remit.cli.main import main
from remit.engine.upkeep.tallying import roll_up_all
from remit.ports.models import ToolCall
from remit.runtime.workspace import opening_of
from teams import team

HOSTILE = "\x1b]0;owned\x07\x1b[2J\x9b31m\x7f\u202etxt\u2066\r[red]:smile:"
ACTS = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")
SHOWS = [
    *(
        ["runs"],
        ["ps", "--all"],
        ["agents"],
        ["find", "txt"],
        ["breakers"],
        ["stats"],
        ["history"],
        ["doctor"],
        ["context", "ls"],
    ),
    *(["context", "ls", "notes"], ["context", "get", "notes", "k"], ["prune", "--dry-run"]),
    *(["show", "{run}"], ["show", "{run}", "--talk"], ["status", "{run}"], ["wait", "{run}", "--timeout", "1"]),
    *(["flow", "{run}"], ["flow", "{run}", "--format", "mermaid"], ["flow", "{run}", "--format", "svg"]),
]
DATA = [[*words, "--json"] for words in SHOWS if words[0] != "flow"]
# These have a form, so changing them breaks something: each is tried alone.
FORMED = {
    *(("event", column) for column in ("kind", "data", "answer", "hash", "op", "workspace", "at", "run", "task")),
    *(("task", column) for column in ("state", "id", "run", "parent", "workspace", "asked_at", "until", "asked_how")),
    *(("entry", column) for column in ("form", "value", "chain", "trust", "namespace", "key", "workspace")),
    *(("message", "id"), ("message", "workspace"), ("breaker", "state"), ("breaker", "workspace"), ("breaker", "name")),
    *(("card", column) for column in ("data", "name", "workspace")),
    *(("run", "id"), ("run", "workspace"), ("worker", "workspace"), ("worker", "id")),
    *(("tally", "data"), ("tally", "workspace"), ("tally_task", "data"), ("tally_task", "workspace")),
    *(("tally_mark", "seq"), ("tally_mark", "workspace")),
}


@pytest.fixture(scope="module")
def stranger(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """A store in which something of everything happened, with hostile text wherever agents can put it; and a run."""
    path = tmp_path_factory.mktemp("stranger") / "team.db"
    with team(path) as rt:

        async def look(given):
            raise OSError(HOSTILE)

        @rt.agent(asks="*", can=f"do {HOSTILE}", role=HOSTILE, tools=["look"])
        async def lead(turn):
            await turn.tool(ToolCall("look", {HOSTILE: HOSTILE}, HOSTILE), look)
            await turn.context.set("memory:lead", HOSTILE, HOSTILE)
            await turn.send("other", HOSTILE)
            for _ in range(4):
                await turn.delegate_all([("other", HOSTILE), ("nobody", HOSTILE)])
            return HOSTILE

        @rt.agent
        async def other(turn):
            await roll_up_all(opening_of(rt.workspace).ground.store)
            raise ValueError(HOSTILE)

        async def work() -> str:
            await rt.workspace.context().set("notes", "k", HOSTILE)
            async with rt.serving():
                await (await rt.submit("lead", HOSTILE)).wait(timeout=20)
            outcome = await rt.outcome("lead", HOSTILE)
            return outcome.id

        run = asyncio.run(work())
    return path, run


def said(words: list[str], path: Path, run: str, capsys: pytest.CaptureFixture[str]) -> tuple[str, int]:
    with pytest.raises(SystemExit) as ended:
        main([*(word.format(run=run) for word in words), "--store", str(path)])
    captured = capsys.readouterr()
    return captured.out + captured.err, int(ended.value.code or 0)


def in_one_form(turn: int) -> list[list[str]]:
    """Every command once, every other one of them as data: what they read is the same."""
    both = {tuple(words[:-1]): words for words in DATA}
    return [both.get(tuple(words), words) if (number + turn) % 2 else words for number, words in enumerate(SHOWS)]


def all_are_harmless(path: Path, run: str, capsys: pytest.CaptureFixture[str], commands: list[list[str]]) -> None:
    for words in commands:
        text, code = said(words, path, run, capsys)
        acting = ACTS.search(text.replace("\r", "") if words[:2] == ["context", "get"] else text)
        assert acting is None, (words, text[max(0, acting.start() - 60) : acting.end()] if acting else "")
        assert "Traceback" not in text, words
        assert code in (0, 1, 2, 3, 4, 5, 124), words


def plant(path: Path, *updates: str) -> None:
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("PRAGMA ignore_check_constraints = ON")
        for update in updates:
            try:
                connection.execute(update, {"hostile": HOSTILE})
            except sqlite3.IntegrityError:  # a key that is there twice: one of them will do
                connection.execute(update.replace("UPDATE", "UPDATE OR IGNORE", 1), {"hostile": HOSTILE})


def columns(path: Path) -> list[tuple[str, str, str]]:
    with closing(sqlite3.connect(path)) as connection:
        tables = [row[0] for row in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        found = [(table, row) for table in tables for row in connection.execute(f"PRAGMA table_info({table})")]
    return [(table, row[1], row[2]) for table, row in found if not table.startswith("sqlite_")]


@pytest.mark.rule("terminal.harmless")
def test_what_agents_say_does_not_act_through_any_command(stranger: tuple[Path, str], capsys):
    path, run = stranger
    text, _ = said(["show", "{run}"], path, run, capsys)
    assert "\\x1b]0;owned" in text, "it is shown, as what it is"
    all_are_harmless(path, run, capsys, [*SHOWS, *DATA])


@pytest.mark.rule("terminal.harmless")
def test_no_column_without_a_form_acts_through_any_command(stranger: tuple[Path, str], tmp_path: Path, capsys):
    path = Path(shutil.copy(stranger[0], tmp_path / "copy.db"))
    wanted = [
        (table, column) for table, column, kind in columns(path) if kind == "TEXT" and (table, column) not in FORMED
    ]
    plant(path, *(f"UPDATE {table} SET {column} = {column} || :hostile" for table, column in wanted))
    assert len(wanted) > 20
    all_are_harmless(path, stranger[1], capsys, [*SHOWS, *DATA])


@pytest.mark.rule("terminal.harmless", "terminal.garbage")
@pytest.mark.parametrize(
    ("turn", "table", "column"), some(((turn, *place) for turn, place in enumerate(sorted(FORMED))), 5)
)
def test_a_column_that_says_nonsense_is_a_sentence(
    stranger: tuple[Path, str], tmp_path: Path, capsys, turn: int, table: str, column: str
):
    path = Path(shutil.copy(stranger[0], tmp_path / "copy.db"))
    kind = next(kind for found, name, kind in columns(path) if (found, name) == (table, column))
    value = "9223372036854775807" if kind == "INTEGER" else f"{column} || :hostile"
    plant(path, f"UPDATE {table} SET {column} = {value}")
    all_are_harmless(path, stranger[1], capsys, in_one_form(turn))
