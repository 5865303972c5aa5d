"""`remit show --talk`: what models were told, what they said, and what their tools returned."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
from rich.cells import cell_len
from rich.console import Console
from rich.text import Text

from adapters.places import KEY, KEY_NAME, join, served, told
from commands import command as remit
from remit import Runtime
from remit.cli.show import coloured, print_talk
from remit.report.talk import TalkLine, TaskTalk
from remit.testing.models import Calls, ModelRequest, Says

pytestmark = [pytest.mark.anyio, pytest.mark.rule("show.talk")]

LONG = "long words " * 8_000  # more than is kept in an event


def lookup(what: str) -> str:
    """Look something up."""
    return {"shelf": "SHELF-THREE\x1b[31m", "book": LONG}[what]


@pytest.fixture
async def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv(KEY_NAME, KEY)
    calls = [Calls("lookup", {"what": what}) for what in ("shelf", "book", "lamp")]

    def script(asked: ModelRequest) -> Any:
        return [*calls, Says("UNIQUE-WORDS found")][len(told(asked))]

    async with served(script) as place, Runtime(tmp_path / "remit.db") as rt:
        join(rt, "native", place, name="clerk", tools=[lookup])
        await rt.run("clerk", "find the lamp")
    return tmp_path


@pytest.mark.case("talk")
async def test_a_conversation_is_printed_with_calls_results_and_errors(store: Path):
    line = lookup.__code__.co_firstlineno + 2
    done = remit(store, "show", "--talk").stdout.splitlines()
    kept = [one for one in done if not re.search(r"\d (tokens|ms|µs)", one)]  # an id may have these letters
    assert kept[0].startswith("clerk  find the lamp  ")
    assert kept[1:5] == ["  > told", "    find the lamp", '    → lookup({"what": "shelf"})', "    SHELF-THREE\\x1b[31m"]
    assert kept[-4:] == [
        '    → lookup({"what": "lamp"})',
        "    'lookup' failed: KeyError: 'lamp'",
        f"    at test_talk.py:{line} in lookup",
        "    UNIQUE-WORDS found",
    ]
    assert f"    … {len(LONG) - 4_000:,} more characters; --all prints them" in done
    assert f"    {LONG}" in remit(store, "show", "--talk", "--all").stdout.splitlines()


@pytest.mark.rule("show.models")
async def test_in_a_pipe_no_line_of_a_tree_is_cut(store: Path):
    told = remit(store, "show").stdout
    assert "(test_talk.py:" in told
    (line,) = [line for line in told.splitlines() if '"book"' in line]
    assert line.endswith("long words lo…")


@pytest.mark.rule("show.models")
async def test_a_status_says_what_models_did_and_which_tool_failed(store: Path):
    told = remit(store, "status").stdout
    assert "\nmodel    openai-chat:m, 4 calls, " in told
    assert "\ntools    3 tool calls, 1 failed\n" in told
    assert """\nfailed   lookup({"what":"lamp"}): KeyError: 'lamp' (test_talk.py:""" in told
    data = json.loads(remit(store, "status", "--json").stdout)
    assert (len(data["models"]), [use["outcome"] for use in data["tools"]]) == (1, ["done", "done", "failed"])


async def test_a_conversation_is_data_too(store: Path):
    (talk,) = json.loads(remit(store, "show", "last", "--talk", "--json").stdout)
    assert [line["who"] for line in talk["lines"]] == ["prompt", *["model", "tool"] * 3, "model"]
    assert talk["lines"][4]["words"] == LONG
    assert talk == json.loads(remit(store, "show", talk["task"], "--talk", "--json").stdout)[0]


async def test_history_as_data_has_answers_long_ones_too(store: Path):
    events = json.loads(remit(store, "history", "--json").stdout)
    answers = [event["answer"] for event in events if event["kind"] == "tool.done"]
    assert [answer[:2] for answer in answers] == [
        ["SHELF-THREE\x1b[31m", "done"],
        [LONG, "done"],
        ["'lookup' failed: KeyError: 'lamp'", "failed"],
    ]
    said = [event["answer"]["text"] for event in events if event["kind"] == "model.answered"]
    assert "UNIQUE-WORDS found" in said[-1]
    assert all(event["op"] for event in events if event["answer"] is not None)


async def test_a_run_without_models_says_so(tmp_path: Path):
    async with Runtime(tmp_path / "remit.db") as rt:

        @rt.agent
        async def clerk(turn: Any) -> str:
            return "done"

        await rt.run("clerk", "x")
    assert remit(tmp_path, "show", "--talk").stdout.startswith("no model conversation for ")
    assert json.loads(remit(tmp_path, "show", "--talk", "--json").stdout) == []


def printed(talk: TaskTalk, **look: Any) -> str:
    console = Console(width=60, **look)
    with console.capture() as capture:
        print_talk(console, talk, whole=False)
    return capture.get()


async def test_a_conversation_fits_a_narrow_terminal_and_its_errors_are_red():
    wrong = TalkLine(0, "tool", "lookup", "it failed because " * 10, outcome="failed", place="team.py:8 in lookup")
    lines = [TalkLine(0, "prompt", "", "word " * 40), TalkLine(0, "model", "m", "hi", tokens=7, credits=10_000), wrong]
    talk = TaskTalk("t1", "clerk", "find the lamp", lines)
    told = printed(talk, force_terminal=True, color_system="standard")
    assert "\x1b[31mit failed because" in told
    assert "\x1b[31mat team.py:8 in lookup" in told
    assert all(cell_len(Text.from_ansi(line).plain.rstrip()) <= 60 for line in told.splitlines())
    assert "  ◆ m  7 tokens  $0.01" in printed(talk)
    assert "\x1b[" not in printed(talk)


@pytest.mark.rule("talk.restart")
async def test_a_conversation_that_could_not_be_continued_is_marked():
    lines = [
        TalkLine(0, "prompt", "", "go", lost=True),
        TalkLine(0, "model", "m", "hi", lost=True),
        TalkLine(0, "restart", "", "it cannot be read"),
        TalkLine(0, "model", "m", "hello"),
    ]
    told = [line.strip() for line in printed(TaskTalk("t1", "clerk", "go", lines)).splitlines()]
    assert told[1:] == [
        "> told (lost)",
        "go",
        "◆ m  lost",
        "hi",
        "-- restarted: the earlier conversation cannot be continued",
        "it cannot be read",
        "◆ m",
        "hello",
    ]


@pytest.mark.rule("show.models")
async def test_a_flow_in_a_terminal_has_what_went_wrong_in_red():
    console = Console(force_terminal=True, color_system="standard", width=80)
    picture = "✓ lead: x\n├─ ✗ lookup() · KeyError: 'a ✗ b'\n│  └╌ ⊘ coder: no\n└─ ◇ look() · ✗ as a result\n"
    with console.capture() as capture:
        console.print(coloured(picture), soft_wrap=True)
    red = "\x1b[31m"
    assert capture.get().splitlines() == [
        "✓ lead: x",
        f"├─ {red}✗ lookup() · KeyError: 'a ✗ b'\x1b[0m",
        f"│  └╌ {red}⊘ coder: no\x1b[0m",
        "└─ ◇ look() · ✗ as a result",
        "",
    ]
