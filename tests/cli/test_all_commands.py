"""Every command there is: in a pipe, in a terminal without colours, in one that can do nothing, and as JSON."""

import inspect
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from commands import plain_environment
from deep import some
from programs import ran
from remit.cli.commands import app

# Words, exit code. {run}, {plan} and {digest} are in the store.
ROWS: tuple[tuple[tuple[str, ...], int], ...] = (
    (("demo", "--pace", "0"), 0),
    (("watch",), 0),  # before anything is queued
    (("init", "made"), 0),
    (("check", "made/remit.toml"), 0),
    (("run", "team:rt", "worker", "x"), 0),
    (("run", "team:rt", "broken", "x"), 1),
    (("chat", "team:rt", "worker"), 0),
    (("submit", "team:rt", "worker", "x"), 0),
    (("worker", "nowhere:rt"), 2),
    (("serve", "nowhere:rt"), 2),
    (("mcp", "nowhere:rt"), 2),
    (("move", "nobody", "--to", "other.db"), 4),
    (("wait", "{run}"), 0),
    (("cancel", "last"), 0),
    (("retry", "last"), 0),
    (("stop-all",), 0),
    (("retry", "{run}"), 3),
    (("retry", "{plan}", "--from", "b"), 0),
    (("fork", "{run}"), 0),
    (("approve", "q"), 4),
    (("reject", "q", "--why", "no"), 4),
    (("answer", "q", "yes"), 4),
    (("ps", "--all"), 0),
    (("status", "{run}"), 0),
    (("watch", "{run}"), 0),
    (("agents", "team:rt", "-v"), 0),
    (("find", "team:rt", "read contracts"), 0),
    (("runs",), 0),
    (("show", "{run}"), 0),
    (("show", "{plan}", "--all"), 0),
    (("show", "{run}", "--follow"), 0),
    (("show", "{run}", "--talk"), 0),
    (("show", "{run}", "--trace"), 0),
    (("show", "{run}", "--as", "mermaid"), 0),
    (("status",), 0),
    (("agents",), 0),
    (("approvals",), 0),
    (("context", "ls", "notes"), 0),
    (("flow", "{run}"), 0),
    (("history",), 0),
    (("stats",), 0),
    (("approvals", "--decided"), 0),
    (("money",), 0),
    (("money", "grant", "$5"), 0),
    (("money", "unfreeze"), 0),
    (("money", "spend"), 0),
    (("money", "limits", "team:rt"), 0),
    (("money", "uncertain"), 0),
    (("money", "verify"), 0),
    (("money", "reconcile", "nothing", "$1"), 4),
    (("breakers",), 0),
    (("breaker", "trip", "worker", "--why", "broken"), 0),
    (("breaker", "reset", "worker"), 0),
    (("withdraw", "nobody"), 4),
    (("cooling",), 0),
    (("cooling", "clear", "nothing"), 0),
    (("trust", "--list"), 0),
    (("schedule", "add", "nightly", "0 3 * * *", "worker", "x"), 0),
    (("schedule", "ls"), 0),
    (("schedule", "pause", "nightly"), 0),
    (("schedule", "resume", "nightly"), 0),
    (("schedule", "rm", "nightly"), 0),
    (("context", "ls"), 0),
    (("context", "get", "notes", "seen"), 0),
    (("context", "set", "notes", "more", "x"), 0),
    (("context", "rm", "notes", "more"), 0),
    (("context", "cleanup"), 0),
    (("artifacts", "ls"), 0),
    (("artifacts", "put", "team.py"), 0),
    (("artifacts", "get", "{digest}", "-"), 0),
    (("keys", "master"), 0),
    (("keys", "set", "openai"), 2),
    (("keys", "ls"), 0),
    (("keys", "rm", "openai"), 4),
    (("keys", "rotate"), 2),
    (("access", "make", "ci"), 0),
    (("access", "ls"), 0),
    (("access", "revoke", "a" * 16), 4),
    (("hooks", "add", "https://example.com/hook", "task.completed"), 2),
    (("hooks", "ls"), 0),
    (("hooks", "rm", "none"), 4),
    (("hooks", "rotate", "none"), 4),
    (("hooks", "deliveries", "none"), 4),
    (("hooks", "replay", "none"), 4),
    (("prune", "--days", "400"), 0),
    (("backup", "copy.db"), 0),
    (("doctor",), 0),
    (("db", "migrate"), 0),
    (("db", "secure", "remit_app"), 2),
)
_ESCAPES = re.compile(r"\x1b.")
_COLOURS = re.compile(r"\x1b\[[0-9;]*\b(3[0-9]|4[0-9]|9[0-7]|10[0-7])\b[0-9;]*m")


def leaves(of: Any = app, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Every command with its function."""
    for name in of:
        if not name.startswith("-"):
            yield from leaves(of[name], (*path, name))
    if path and of.default_command is not None:
        yield path, of.default_command


def has_json(words: tuple[str, ...]) -> bool:
    return "--as" not in words and "json" in inspect.signature(dict(leaves())[named(words)]).parameters


def named(words: tuple[str, ...]) -> tuple[str, ...]:
    """The name of the command in these words."""
    return max((path for path, _ in leaves() if words[: len(path)] == path), key=len)


@pytest.mark.rule("screen.commands")
def test_the_table_has_every_command():
    assert {named(words) for words, _ in ROWS} == {path for path, _ in leaves()}, "add a row to ROWS"


def played(folder: Path, how: str, rows: list[tuple[str, ...]], **env: str) -> list[dict[str, Any]]:
    """Run these rows in one process, and return their exit codes and what they printed."""
    (folder / "rows.json").write_text(json.dumps(rows))
    script = str(Path(__file__).parent / "every_command.py")
    home = {"HOME": str(folder), "XDG_CONFIG_HOME": str(folder / "config"), "COLUMNS": "80"}
    around = {name: value for name, value in plain_environment().items() if name not in ("NO_COLOR", "FORCE_COLOR")}
    done = ran(script, how, "rows.json", "told.json", cwd=folder, env={**around, **home, **env})
    assert done.returncode == 0, done.stderr
    return json.loads((folder / "told.json").read_text())


MODES = [("pipe", {"TERM": "xterm-256color"}), ("terminal", {"TERM": "dumb"}), ("terminal", {"NO_COLOR": "1"})]


@pytest.mark.rule("screen.commands")
@pytest.mark.parametrize(("how", "env"), some(MODES), ids=["pipe", "dumb", "no-color"])
def test_every_command_and_its_errors_keep_to_plain_text(tmp_path: Path, how: str, env: dict[str, str]):
    wrong = [(*path, "--nonsense") for path, _ in leaves()]
    told = played(tmp_path, how, [*(words for words, _ in ROWS), *wrong], **{"TERM": "xterm-256color", **env})
    codes = dict(ROWS)
    assert {tuple(one["words"]): one["code"] for one in told} == codes | dict.fromkeys(wrong, 2)
    banned = _COLOURS if env.get("NO_COLOR") else _ESCAPES
    assert [one["words"] for one in told if banned.search(one["out"] + one["err"])] == []
    assert [one["words"] for one in told if "Traceback" in one["out"] + one["err"]] == []
    if how == "pipe":
        read = [one for one in told if one["code"] == 0 and one["words"][0] != "demo"]  # which shortens its story
        assert [one["words"] for one in read if "…" in one["out"] or not (one["out"] + one["err"]).strip()] == []
    if env.get("NO_COLOR"):
        assert any(_ESCAPES.search(one["out"]) for one in told)  # it is a terminal: there is bold text


@pytest.mark.rule("screen.commands", "json.errors")
def test_every_command_with_json_prints_one_document_also_for_its_errors(tmp_path: Path):
    good = [(*words, "--json") if has_json(words) else words for words, _ in ROWS]
    wrong = [(*path, "--nonsense", "--json") for path, _ in leaves()]
    told = played(tmp_path, "pipe", [*good, *wrong])
    codes = {(*words, "--json"): code for words, code in ROWS}
    for one in (one for one in told if "--json" in one["words"]):
        words = tuple(one["words"])
        assert one["code"] == codes.get(words, 2), one
        document = json.loads(one["out"])
        if one["code"] in (2, 3, 4, 5):
            assert document["error"]["exit_code"] == one["code"], one
            assert one["err"] == "", one
