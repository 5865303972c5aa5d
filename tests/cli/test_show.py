"""A run as `remit show` and `remit ps` tell it: who really did it, what went wrong first, each thing once."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from rich.console import Console

from remit import Command, Plan, Refused, Runtime, Step, Turn, run
from remit.cli.drawing import FOLD, receipts, refusals, tree_view
from remit.cli.main import main
from remit.report.flow.text import text as flow
from remit.report.stats import stats
from remit.report.tree import Node, tree
from teams import team

pytestmark = pytest.mark.anyio


def lines(root: Node, *, whole: bool = False, width: int = 120) -> list[str]:
    console = Console(width=width)
    with console.capture() as capture:
        console.print(tree_view(root, 0, whole=whole))
    return [line.strip("│├└─ ") for line in capture.get().splitlines()]


async def root_of(rt: Runtime) -> Node:
    root = tree(await rt.workspace.journal.history())
    assert root is not None
    return root


def handing(rt: Runtime) -> None:
    @rt.agent(asks=["b", "c"])
    async def a(turn: Turn) -> Command:
        with pytest.raises(Refused):
            await turn.delegate("nobody", "x")
        await turn.delegate("b", "help a")
        return Command("c", {"phase": "later"})

    @rt.agent(asks=["b"])
    async def c(turn: Turn) -> str:
        with pytest.raises(Refused):
            await turn.delegate("somebody", "y")
        return "done"

    @rt.agent
    async def b(turn: Turn) -> int:
        return 1


@pytest.mark.rule("show.who")
@pytest.mark.case("refused_then_handed")
async def test_events_name_the_agent_that_held_the_task_at_the_time():
    with team() as rt:
        handing(rt)
        await rt.run("a", "go")
        events = await rt.workspace.journal.history()
        root = await root_of(rt)
    told = [line.plain.split("  ")[0] for line in refusals(root)]
    assert told == ["⊘ a > nobody", "⊘ c > somebody"]
    assert [line.split()[1] for line in lines(root)] == ["a", "nobody", "b", "c", "somebody"]  # as it happened
    assert "saw" not in lines(root)[0]  # it was c who saw what was handed over
    assert lines(root)[3].endswith("saw 1")
    drawn_as_text = flow(root, 0).splitlines()
    assert [line.strip("│├└─╌ ").split()[1].strip(":") for line in drawn_as_text] == [
        "a",
        "nobody",
        "b",
        "c",
        "somebody",
    ]
    for agent, figures in (("a", (1, 0)), ("c", (0, 1))):
        counted = stats(events, agent)
        assert (counted.agents[agent].handed, counted.agents[agent].completed) == figures
        assert dict(counted.refusals) == {"unknown": 1}


def planning(rt: Runtime, sources: int, bad: int) -> None:
    @rt.agent(asks="*")
    async def lead(turn: Turn) -> None:
        steps = [Step(f"q{number}", f"Source {number}", agent="searcher") for number in range(sources)]
        last = Step("digest", "Write the digest", agent="searcher", after=[step.id for step in steps])
        await turn.run_plan(Plan([*steps, last]))

    @rt.agent
    async def searcher(turn: Turn) -> str:
        if turn.task.startswith(f"# Task: Source {bad}\n") or turn.task == f"# Task: Source {bad}":
            raise ValueError("paywall")
        return "found"


@pytest.mark.rule("show.urgent-first")
@pytest.mark.case("wide_plan")
async def test_of_a_wide_plan_what_failed_comes_first_and_every_step_is_there_once():
    with team() as rt:
        planning(rt, 40, 30)
        await rt.run("lead", "go")
        root = await root_of(rt)
    some = lines(root)
    assert some[1] == "plan  39 of 41 steps completed, 2 failed"
    assert "q30: Source 30" in some[2]
    assert some[3].startswith("'searcher' failed: ValueError: paywall (test_show.py:")
    assert some[4].startswith("✗ Write the digest")
    assert some[5] == 'dependency "q30" failed'
    assert len(some) == 2 + FOLD + 2 + 1
    assert some[-1] == f"… and {41 - FOLD} more ({41 - FOLD} completed); `remit show {root.id} --all` lists them"
    whole = lines(root, whole=True)
    assert [sum(f"q{number}: " in line for line in whole) for number in range(40)] == [1] * 40
    assert "q0: " in whole[2]  # where all of it fits, in the order of the plan
    narrow = lines(root, width=40)
    assert 'dependency "q30" failed' in narrow
    assert sum("saw its task" in line.plain for line in receipts(root)) == 2  # those of one kind are told once
    assert "  (40 turns)" in "".join(line.plain for line in receipts(root))


@pytest.mark.rule("show.urgent-first")
async def test_of_many_tasks_refusals_and_handoffs_the_rest_is_counted():
    with team() as rt:

        @rt.agent(asks="*")
        async def lead(turn: Turn) -> None:
            await turn.delegate_all([("worker", str(number)) for number in range(20)])
            for number in range(15):
                with pytest.raises(Refused):
                    await turn.delegate(f"nobody {number}", "x")

        @rt.agent
        async def worker(turn: Turn) -> None:
            if turn.task == "19":
                raise ValueError("late")

        await rt.run("lead", "go")
        root = await root_of(rt)
    some = lines(root)
    assert some[1] == f"… 3 refusals before; `remit show {root.id} --all` lists them"
    assert any(line.startswith("✗ worker  19") for line in some)
    assert some[-1] == f"… and 8 more (8 completed); `remit show {root.id} --all` lists them"
    assert not any(line.startswith("…") for line in lines(root, whole=True))


@pytest.mark.rule("show.urgent-first")
def test_ps_lists_what_failed_first_and_says_when_there_may_be_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    monkeypatch.chdir(tmp_path)
    with team(tmp_path / "remit.db") as rt:
        planning(rt, 5, 2)
        run(rt, "lead", "go")
    shown: Callable[..., str] = lambda *words: _printed(words, capsys)  # noqa: E731
    first = shown("ps", "--all").splitlines()[1]
    assert "failed" in first
    assert "there may be more" in shown("ps", "--all", "--limit", "3")
    assert "there may be more" not in shown("ps", "--all")
    assert len(json.loads(shown("ps", "--all", "--json"))["tasks"]) == 6
    assert "Source 4" in shown("show", "--all")


def _printed(words: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> str:
    with pytest.raises(SystemExit):
        main(words)
    return capsys.readouterr().out
