"""Questions from the command line: listed, approved, rejected and answered from another process."""

import asyncio
import json
from collections.abc import AsyncGenerator, Awaitable
from contextlib import asynccontextmanager
from functools import partial
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

import remit as package
from commands import Said
from commands import command as remit
from remit import Runtime
from remit.cli.approvals import print_question
from remit.settings import Policy, System
from remit.testing import FakeClock
from remit.types import Inquiry

pytestmark = pytest.mark.anyio


@asynccontextmanager
async def waiting(folder: Path, agent: str, **how: Any) -> AsyncGenerator[tuple[Runtime, Inquiry, Awaitable[object]]]:
    """A run that waits for a person, in this process."""
    rt = Runtime(folder / "remit.db", **how)

    @rt.agent(asks="*")
    async def asking(turn: package.Turn) -> str:
        return await turn.ask_human("Which colour?", ["red", "blue"])

    @rt.agent(asks="*")
    async def boss(turn: package.Turn) -> str:
        return await turn.delegate("deployer", "ship it")

    @rt.agent(needs_approval=True, tools=["exec"])
    async def deployer(turn: package.Turn) -> str:
        return f"did {turn.task}"

    @rt.agent
    async def padding(turn: package.Turn) -> str:
        note = "routine maintenance " * 400
        return str(await turn.ask_approval("deploy", {"note": note, "target": "PRODUCTION"}))

    @rt.agent
    async def acting(turn: package.Turn) -> str:
        return str(await turn.ask_approval("deploy", {"env": "prod"}))

    @rt.agent
    async def buying(turn: package.Turn) -> str:
        await turn.spend("$0.05", why="a photo")
        return "bought"

    with rt:
        await rt.workspace.money.grant("$1")
        async with rt.workspace.journal.follow(after=0, kinds=frozenset(("question.asked",))) as follow:
            run = asyncio.create_task(rt.run(agent, "go", credits="$0.03"))
            while not await follow.next():
                pass
        (question,) = await rt.workspace.questions.list()
        try:
            yield rt, question, run
        finally:
            run.cancel()
            await asyncio.gather(run, return_exceptions=True)


async def said(folder: Path, *words: str) -> Said:
    return await asyncio.to_thread(partial(remit, folder, *words))


@pytest.mark.rule("people.commands", "show.waits")
async def test_what_waits_for_a_person_is_listed_and_shown(tmp_path: Path):
    async with waiting(tmp_path, "boss") as (_, question, _run):
        listed = (await said(tmp_path, "approvals")).stdout
        for words in ("'boss' wants to ask 'deployer': ship it", "tools: exec", f"remit approve {question.id}", "left"):
            assert words in listed
        hint = f"waits for a person: 'boss' wants to ask 'deployer': ship it (remit approvals {question.id})"
        shown = (await said(tmp_path, "show")).stdout
        assert "? waits for a person: 'boss' wants to ask 'deployer': ship it\n" in shown
        assert f"── remit approvals {question.id}\n" in shown
        assert hint in (await said(tmp_path, "flow")).stdout
        assert hint.removeprefix("waits ") in (await said(tmp_path, "status")).stdout
        (told,) = json.loads((await said(tmp_path, "approvals", "--json")).stdout)
        assert (told["id"], told["shows"]["task"]) == (question.id, "ship it")


@pytest.mark.rule("people.shown", "people.commands")
async def test_a_question_of_which_a_part_is_listed_is_read_whole_before_it_is_approved(tmp_path: Path):
    async with waiting(tmp_path, "padding") as (rt, question, _run):
        listed = (await said(tmp_path, "approvals")).stdout
        assert '\n     target: "PRODUCTION"\n' in listed
        assert "characters left out]" in listed
        assert f"   shortened; show the whole question: remit approvals {question.id}\n" in listed
        assert "remit approve " not in listed
        assert [line for line in listed.splitlines() if not line.startswith("  ")] == [listed.splitlines()[0]]
        shown = (await said(tmp_path, "approvals", question.id[-6:])).stdout
        assert shown.count("routine maintenance") >= 400
        assert f"   remit approve {question.id}, or: remit reject {question.id} --why ...\n" in shown
        assert json.loads((await said(tmp_path, "approvals", question.id, "--json")).stdout)["id"] == question.id
        await rt.workspace.questions.reject(question.id, by="ann", why="no")
        decided = (await said(tmp_path, "approvals", question.id)).stdout
        assert "rejected by ann" in decided
        assert "remit approve " not in decided
        assert (await said(tmp_path, "approvals", "nope")).returncode == 4


@pytest.mark.rule("answer.in-time", "people.commands")
async def test_of_a_question_whose_time_is_up_no_way_to_answer_is_told(tmp_path: Path):
    long_ago = FakeClock(1_700_000_000_000_000)
    async with waiting(tmp_path, "asking", system=System(clock=long_ago)) as (_rt, question, _run):
        listed = (await said(tmp_path, "approvals")).stdout
        assert ", expired" in listed
        assert "   this question expired at " in listed
        assert "remit answer" not in listed
        late = await said(tmp_path, "answer", question.id, "red")
        assert (late.returncode, "has expired at" in late.stderr) == (3, True)


@pytest.mark.rule("people.commands")
async def test_an_answer_from_another_process_counts_and_the_second_is_told_who_was_first(tmp_path: Path):
    async with waiting(tmp_path, "asking") as (_, question, run):
        wrong = await said(tmp_path, "answer", question.id, "green")
        assert (wrong.returncode, "none of the answers" in wrong.stderr) == (2, True)
        assert (await said(tmp_path, "approve", question.id)).returncode == 2
        done = await said(tmp_path, "answer", question.id[-6:], "red", "--by", "ann")
        assert (done.returncode, done.stdout) == (0, f"question {question.id} is answered\n")
        assert await run == "red"
        again = await said(tmp_path, "answer", question.id, "blue")
        assert again.returncode == 3
        assert "was answered by ann over terminal at" in again.stderr
        assert "the first answer counts" in again.stderr
        decided = (await said(tmp_path, "approvals", "--decided")).stdout
        assert "answered by ann over terminal at" in decided
        assert "Which colour? → red" in decided
        assert "answered by ann over terminal at" in (await said(tmp_path, "show")).stdout


@pytest.mark.parametrize(
    ("agent", "words", "result"),
    [
        ("boss", ("approve", "--why", "fine"), "did ship it"),
        ("boss", ("approve", "--edit", "ship half"), "did ship half"),
        ("acting", ("approve", "--args", '{"env": "test"}'), "{'env': 'test'}"),
    ],
)
async def test_what_is_used_is_what_was_approved(tmp_path: Path, agent: str, words: tuple[str, ...], result: str):
    async with waiting(tmp_path, agent) as (_, question, run):
        done = await said(tmp_path, words[0], question.id, *words[1:], "--json")
        assert json.loads(done.stdout) == {"question": question.id, "state": "approved"}
        assert await run == result


async def test_a_rejection_says_why(tmp_path: Path):
    async with waiting(tmp_path, "boss") as (_, question, run):
        assert (await said(tmp_path, "reject", question.id)).returncode == 2
        assert (await said(tmp_path, "reject", question.id, "--why", "freeze")).returncode == 0
        with pytest.raises(package.RemitError, match="freeze"):
            await run
    assert "(freeze)" in remit(tmp_path, "approvals", "--decided").stdout


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (("approve", "nope"), 4),
        (("approve", ""), 2),
        (("approve", "q1", "--edit", "a", "--args", "{}"), 2),
        (("approve", "q1", "--args", "[1]"), 2),
        (("approve", "q1", "--args", "{"), 2),
        (("answer", "q1"), 2),
        (("approvals", "--limit", "0"), 2),
    ],
)
async def test_what_makes_no_sense_is_a_sentence(tmp_path: Path, words: tuple[str, ...], code: int):
    assert remit(tmp_path, "db", "migrate").returncode == 0
    refused = remit(tmp_path, *words)
    assert (refused.returncode, refused.stderr.count("\n")) == (code, 1)


async def test_nothing_to_decide_is_said(tmp_path: Path):
    assert remit(tmp_path, "db", "migrate").returncode == 0
    assert "no open questions" in remit(tmp_path, "approvals").stdout
    assert "no decisions yet" in remit(tmp_path, "approvals", "--decided").stdout


TEAM = """
import remit

rt = remit.Runtime()

@rt.agent
async def asking(turn):
    return await turn.ask_human("Which colour?", ["red", "blue"], default="red", timeout=0.3)
"""


@pytest.mark.rule("terminal.prompt")
@pytest.mark.parametrize(
    ("words", "hint"),
    [
        (("--store", "team.db"), " CHOICE --store team.db"),
        ((), "nobody else can answer, because the run is kept in memory only: add --store FILE"),
        (("--json",), "the run waits for a person: Which colour?"),
    ],
)
async def test_where_nobody_can_type_a_run_says_how_to_answer(tmp_path: Path, words: tuple[str, ...], hint: str):
    (tmp_path / "team.py").write_text(TEAM)
    done = remit(tmp_path, "run", "team:rt", "asking", "go", *words)
    assert done.returncode == 0
    assert hint in done.stderr
    assert "waits for a person" not in done.stdout


@pytest.mark.rule("people.lines")
def test_a_diff_is_coloured_in_a_terminal_and_plain_elsewhere():
    shows: Any = {"action": "patch", "arguments": {"diff": "@@ -1 +1 @@\n-red\n+blue"}}
    one = Inquiry("q1", "tool", "patch", "lead", "t1", "t1", "s", 0, 1, "open", shows=shows)
    told: list[str] = []
    for terminal in (True, False):
        written = StringIO()
        colours = "standard" if terminal else None
        print_question(Console(file=written, force_terminal=terminal, color_system=colours, width=60), one, 0)
        told.append(written.getvalue())
    assert "\x1b[31m       | -red\x1b[0m" in told[0]
    assert "\x1b[32m       | +blue\x1b[0m" in told[0]
    assert "       | -red\n       | +blue" in told[1]


@pytest.mark.rule("money.short", "people.commands")
async def test_a_question_for_money_has_its_figures_and_takes_another_amount(tmp_path: Path):
    async with waiting(tmp_path, "buying", policy=Policy(short="ask")) as (_rt, question, run):
        listed = (await said(tmp_path, "approvals")).stdout
        for line in ("account: $0.97", "has: $0.03 of $0.03", "needs: $0.02", "proposed: $0.02", "wants: $0.05"):
            assert f"   {line}\n" in listed
        assert f"remit approve {question.id} [--edit AMOUNT]" in listed
        wrong = await said(tmp_path, "approve", question.id, "--edit", "5USD")
        assert (wrong.returncode, "at most $0.97 can be given" in wrong.stderr) == (2, True)
        assert (await said(tmp_path, "approve", question.id, "--edit", "0.20USD", "--why", "go on")).returncode == 0
        assert await run == "bought"
        assert "Give it $0.02 more? → $0.20 (go on)" in (await said(tmp_path, "approvals", "--decided")).stdout
        assert "$0.20 more (go on)" in (await said(tmp_path, "history")).stdout
