"""The queue from the command line: submitting, looking, waiting, mending, and workers that are stopped and killed."""

import asyncio
import json
import os
import signal
import sqlite3
import sys
from collections.abc import Awaitable, Callable, Iterator
from contextlib import closing, contextmanager
from itertools import count
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote, urlencode

import pytest
from psycopg.conninfo import conninfo_to_dict

from commands import plain_environment
from postgres import running
from programs import Program
from remit import Plan, Runtime, Step
from remit.cli.main import main
from remit.stores.sqlite.files import advice
from teams import team

TEAM = """
import asyncio
import pathlib
import anyio
import remit

rt = remit.Runtime()

async def opened(name):
    while not pathlib.Path(name).exists():
        await anyio.sleep(0.01)

@rt.agent
async def quick(turn):
    return "done: " + turn.task

@rt.agent
async def gate(turn):
    print("at the gate", flush=True)
    await opened(turn.task)
    return "through " + turn.task

@rt.agent
async def stubborn(turn):
    print("not listening", flush=True)
    while not pathlib.Path(turn.task).exists():
        try:
            await asyncio.sleep(0.05)
        except asyncio.CancelledError:
            pass
    return "persuaded"

@rt.agent(asks="*")
async def lead(turn):
    await turn.submit("gate", turn.task)
    return "left it to others"

@rt.agent(asks="*")
async def boss(turn):
    return await turn.delegate("gate", turn.task)

async def leaves():
    raise SystemExit(3)

@rt.agent
async def leaver(turn):
    await asyncio.gather(leaves(), asyncio.sleep(0))

@rt.agent
async def shaky(turn):
    if not pathlib.Path("tried").exists():
        pathlib.Path("tried").touch()
        raise ConnectionError("no \\x1b[31mline")
    return "second time lucky"
"""
_names = count(1)


class Said(NamedTuple):
    code: int
    out: str
    err: str


@pytest.fixture
def module(tmp_path: Path) -> str:
    """A module of its own for each test, because Python imports a name once."""
    name = f"queue_team_{os.getpid()}_{next(_names)}"
    (tmp_path / f"{name}.py").write_text(TEAM)
    return name


@pytest.fixture
def cli(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Callable[..., Said]:
    """The command line in this process: the same entry point, without the wait for another Python."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    for name in ("REMIT_STORE", "REMIT_WORKSPACE"):
        monkeypatch.delenv(name, raising=False)

    def run(*words: str) -> Said:
        with pytest.raises(SystemExit) as ended:
            main(words)
        printed = capsys.readouterr()
        assert "Traceback" not in printed.err
        return Said(int(ended.value.code or 0), printed.out, printed.err)

    return run


@contextmanager
def at(folder: Path, hands: int = 0) -> Iterator[Runtime]:
    """A runtime on the store that the commands look at."""
    with team(folder / "remit.db", hands=hands) as rt:

        @rt.agent
        async def quick(turn):
            return f"done: {turn.task}"

        @rt.agent
        async def broken(turn):
            raise ValueError("\x1b[31mred\x1b[0m alert")

        @rt.agent(asks="*")
        async def parent(turn):
            return await turn.delegate("quick", "a part")

        @rt.agent(asks="*")
        async def careless(turn):
            await turn.spawn("quick", "nobody asks about this")

        yield rt


def done(folder: Path, act: Callable[[Runtime], Awaitable[object]], hands: int = 0) -> str:
    """What `act` answers, as text."""

    async def all_of_it(rt: Runtime) -> str:
        answer = await act(rt)
        await rt.drain()
        return str(answer)

    with at(folder, hands) as rt:
        return asyncio.run(all_of_it(rt))


def submitted(folder: Path, agent: str = "quick", task: str = "hello", **how) -> str:
    async def act(rt: Runtime) -> str:
        return (await rt.submit(agent, task, **how)).id

    return done(folder, act)


def carried_out(folder: Path, agent: str = "quick", task: str = "hello", **how) -> str:
    """A task that was submitted and has ended."""

    async def act(rt: Runtime) -> str:
        handle = await rt.submit(agent, task, **how)
        await handle.wait(30)
        return handle.id

    return done(folder, act, hands=10)


# -- submit ------------------------------------------------------------------------------------------------------


def test_submit_prints_the_id_alone_and_a_hint_beside_it(cli, module: str):
    said = cli("submit", f"{module}:rt", "quick", "hello", "--store", "team.db")
    task = said.out.strip()
    assert (said.code, len(task)) == (0, 16)
    assert said.err == f"remit wait {task} --store team.db\n"
    shown = json.loads(cli("status", task, "--database", "team.db", "--json").out)
    assert (shown["state"], shown["attempt"], shown["agent"]) == ("pending", 0, "quick")


@pytest.mark.rule("task.dedup", "task.dedup-person")
def test_the_same_words_of_one_person_are_the_same_task_for_a_while(cli, module: str):
    words = ("submit", f"{module}:rt", "quick", "hello", "-s", "team.db", "--json")
    first = json.loads(cli(*words).out)
    assert json.loads(cli(*words).out) == {**first, "existing": True}
    assert json.loads(cli(*words, "--by", "ann").out)["existing"] is False
    assert json.loads(cli(*words, "--key", "another").out)["existing"] is False
    assert "it exists: the same task was submitted before" in cli(*words[:-1]).err


@pytest.mark.rule("run.labels", "list.filters")
def test_runs_and_tasks_are_labelled_and_found_by_their_labels(cli, module: str):
    store = ("-s", "team.db")
    week = ("--tag", "weekly", "--tag", "eu", "--meta", "ticket=T-7", "--meta", "note=a=b", "--by", "ann")
    task = cli("submit", f"{module}:rt", "quick", "the week", *store, *week).out.strip()
    other = cli("submit", f"{module}:rt", "quick", "the day", *store, "--by", "bob").out.strip()
    for command, only in (("runs", ()), ("ps", ("--all",))):
        for which in (("--tag", "eu"), ("--by", "ann"), ("--text", "WEEK"), ("--tag", "weekly", "--since", "1h")):
            found = json.loads(cli(command, *only, *which, *store, "--json").out)
            [line] = found["tasks"] if command == "ps" else found
            assert line["id"] == task, (command, which)
            labels = {"by": "ann", "tags": ["eu", "weekly"], "meta": {"ticket": "T-7", "note": "a=b"}}
            assert {name: line[name] for name in labels} == labels
        assert "#eu #weekly the week" in cli(command, *store).out
        assert other in cli(command, *only, "--asker", "person", "--state", "pending", "--agent", "quick", *store).out
        assert "no such" in cli(command, *only, "--tag", "none", *store).out
        assert "no such" in cli(command, *only, "--until", "1h", *store).out
    told = cli("status", task, *store).out
    assert "by       ann" in told
    assert "tags     eu, weekly" in told
    assert "meta     ticket=T-7" in told
    wrong = cli("submit", f"{module}:rt", "quick", "x", *store, "--meta", "ticket")
    assert (wrong.code, "--meta is NAME=VALUE, such as --meta ticket=T-7, not 'ticket'" in wrong.err) == (2, True)
    assert (
        "a run has at most 16 tags"
        in cli(
            "submit", f"{module}:rt", "quick", "x", *store, *(word for n in range(17) for word in ("--tag", f"t{n}"))
        ).err
    )


@pytest.mark.rule("figures.edges")
def test_who_asks_whom_is_shown_as_a_table_and_as_json(cli, module: str):
    store = ("-s", "team.db")
    cli("run", f"{module}:rt", "quick", "hello", *store)
    [head, row] = cli("stats", "--edges", *store).out.splitlines()
    assert head.split()[:4] == ["asker", "agent", "asked", "completed"]
    assert row.split()[:5] == ["a", "person", "quick", "1", "1"]
    told = json.loads(cli("stats", "--edges", "--agent", "Quick", *store, "--json").out)
    [edge] = told["edges"]
    assert (told["agent"], edge["asker"], edge["agent"]) == ("quick", "", "quick")
    assert (edge["asked"], edge["completed"], edge["credits"]) == (1, 1, 0)
    assert json.loads(cli("stats", "--edges", "--agent", "other", *store, "--json").out)["edges"] == []
    assert "no agent was asked in that time" in cli("stats", "--edges", "--until", "1h", *store).out


def test_the_same_key_is_the_same_task(cli, module: str):
    words = ("submit", f"{module}:rt", "quick", "hello", "-s", "team.db", "--key", "mine", "--json")
    first = json.loads(cli(*words).out)
    assert json.loads(cli(*words).out) == {**first, "existing": True}
    assert first["existing"] is False
    other = cli(*words[:3], "something else", *words[4:-1])
    assert other.code != 0
    assert f"the key 'mine' was used for another request, task {first['task']}; ask for exactly the same" in other.err


@pytest.mark.rule("key.outlives")
@pytest.mark.parametrize("wait", [(), ("--wait",)])
def test_a_key_whose_run_was_pruned_is_the_same_task_and_nothing_is_done(cli, tmp_path: Path, wait: tuple[str, ...]):
    carried_out(tmp_path)
    words = ("submit", "quick", "hello", "--key", "mine", *wait)
    first = cli("submit", "quick", "hello", "--key", "mine").out
    cli("cancel", first.strip())
    while json.loads(cli("prune", "--days", "1e-9", "--dry-run", "--json").out)["old"] != 2:
        pass  # it has to be a little older first
    cli("prune", "--days", "1e-9")
    again = cli(*words)
    if wait:
        assert "has been cancelled at" in again.err
        assert "its record was pruned" in again.err
    else:
        assert again.out == first
        assert "it exists: the same task was submitted before" in again.err


@pytest.mark.rule("delay.verbs")
@pytest.mark.parametrize(
    ("words", "seconds"),
    [(("--after", "90"), 90), (("--after", "10m"), 600), (("--after", "1.5 h"), 5_400), (("--after", "2d"), 172_800)],
)
def test_a_task_is_submitted_for_later(cli, module: str, words: tuple[str, ...], seconds: float):
    said = cli("submit", f"{module}:rt", "quick", "hello", "--store", "remit.db", *words)
    task = said.out.strip()
    assert f"remit wait {task}; due in " in said.err
    shown = json.loads(cli("status", task, "--json").out)
    assert (shown["state"], shown["ready_at"] - shown["asked_at"]) == ("pending", seconds * 1e6)
    assert "due in " in cli("ps").out
    assert "due      in " in cli("status", task).out
    assert "; due 20" in cli("history").out


@pytest.mark.rule("priority.order", "priority.input")
def test_a_task_is_submitted_with_a_priority(cli, module: str):
    words = ("submit", f"{module}:rt", "quick", "hello", "--store", "remit.db", "--priority")
    task = cli(*words, "-7").out.strip()
    assert json.loads(cli("status", task, "--json").out)["priority"] == -7
    assert "priority -7" in cli("status", task).out
    no = cli(*words, "101")
    assert (no.code, "priority is a whole number from -100 to 100, not 101" in no.err) == (2, True)


@pytest.mark.rule("delay.verbs")
@pytest.mark.parametrize(
    ("at", "utc"),
    [
        ("2999-12-01T08:00", "2999-12-01T08:00:00Z"),
        ("2999-12-01 08:00+01:00", "2999-12-01T07:00:00Z"),
        ("2999-12-01", "2999-12-01T00:00:00Z"),
    ],
)
def test_a_task_is_submitted_for_a_moment(cli, module: str, at: str, utc: str):
    cli("submit", f"{module}:rt", "quick", "hello", "--store", "remit.db", "--at", at)
    assert f"quick: hello; due {utc}" in cli("history").out


@pytest.mark.rule("delay.input")
@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("--after", "soon"), "--after is a duration such as 90s, 10m, 2h or 1d, not 'soon'"),
        (("--after", "0"), "--after must be a positive number of seconds, got 0.0"),
        (("--at", "tomorrow"), "--at is a date and time such as 2026-12-01T08:00 (UTC) or 2026-12-01T08:00+01:00"),
        (
            ("--after", "1m", "--at", "2999-12-01"),
            "--after and --at both say when the task may start; pass one of them",
        ),
    ],
)
def test_a_time_that_cannot_be_read_is_an_error_that_says_how_it_is_written(cli, module, words, sentence: str):
    said = cli("submit", f"{module}:rt", "quick", "hello", *words)
    assert said.code == 2
    assert sentence in " ".join(said.err.split())


def test_a_duplicate_says_that_it_is_one(cli, module: str):
    words = ("submit", f"{module}:rt", "quick", "hello", "-s", "team.db")
    first, second = cli(*words), cli(*words)
    assert second.out == first.out
    assert second.err == first.err.replace("\n", "; it exists: the same task was submitted before\n")


def test_agents_that_a_worker_published_are_listed_and_asked_without_importing_them(cli, tmp_path: Path):
    carried_out(tmp_path)
    listed = cli("agents")
    names = [line.split()[0] for line in listed.out.splitlines()]
    assert names[:5] == ["agent", "broken", "careless", "parent", "quick"]
    cards = {card["name"]: card for card in json.loads(cli("agents", "--json").out)}
    assert cards["parent"]["asks"] == "*"
    assert cards["quick"]["published_at"] > 0
    said = cli("submit", "quick", "from outside", "--json")
    task = json.loads(said.out)["task"]
    assert json.loads(cli("status", task, "--json").out)["state"] == "pending"


@pytest.mark.rule("asks.capability", "asks.free")
def test_agents_are_found_in_a_store_and_in_a_module(cli, tmp_path: Path, module: str):
    carried_out(tmp_path)
    found = cli("find", "someone quick")
    assert [line.split() for line in found.out.splitlines()] == [
        ["agent", "score", "why"],
        ["quick", "1.00", "named", "for", "quick"],
        ["remit", "would", "choose", "quick"],
    ]
    assert json.loads(cli("find", "something quick", "--json").out) == [
        {"agent": "quick", "score": 1.0, "why": "named for quick", "free": True, "chosen": True}
    ]
    cli("breaker", "trip", "quick", "--why", "tired")
    assert "named for quick; not now: its breaker is open" in cli("find", "quick").out
    assert [line.split()[0] for line in cli("find", f"{module}:rt", "the boss").out.splitlines()][1] == "boss"
    assert "no clear match" in cli("find", "careless parent").out


def test_a_search_that_finds_no_agent_says_so(cli, tmp_path: Path):
    carried_out(tmp_path)
    assert cli("find", "quantum physics")[:2] == (4, "no agent here can do 'quantum physics'\n")
    assert cli("find", "quantum physics", "--json")[:2] == (4, "[]\n")
    assert cli("find").code == 2
    assert cli("find", "quick", "--limit", "0").code == 2
    assert cli("find", "on").code == 4


def test_where_no_worker_has_been_there_are_no_agents(cli, tmp_path: Path):
    submitted(tmp_path)
    assert "no worker has published agents here yet" in cli("agents").out
    said = cli("submit", "quick", "something new")
    assert said.code == 3
    assert "there is no agent 'quick'" in said.err


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ((), "up to three words, not 0; quote the task"),
        (("a:rt", "quick", "two", "words"), "up to three words, not 4; quote the task"),
        (("tea",), "name an agent: remit submit AGENT 'task'"),
        (("a:rt", "tea"), "name an agent: remit submit a:rt AGENT 'task'"),
    ],
)
def test_submit_wants_an_agent_and_a_task(cli, words: tuple[str, ...], sentence: str):
    said = cli("submit", *words)
    assert said.code == 2
    assert sentence in said.err


@pytest.mark.rule("plan.written")
def test_submit_takes_a_plan_from_a_file_and_a_goal_for_a_team(cli, tmp_path: Path):
    carried_out(tmp_path)  # by a worker, which has published who there is
    step = {"id": "a", "title": "A", "agent": "quick"}
    Path("plan.json").write_text(json.dumps({"goal": "a tea", "steps": [step, {**step, "id": "b", "after": ["a"]}]}))
    plan = cli("submit", "--plan", "plan.json", "--key", "k")
    assert plan.code == 0, plan.err
    assert cli("submit", "--plan", "plan.json", "--key", "k").out == plan.out
    team = cli("submit", "--team", "parent", "a cake")
    shown = {line["id"]: line for line in json.loads(cli("ps", "--json").out)["tasks"]}
    assert (shown[plan.out.strip()]["agent"], shown[plan.out.strip()]["task"]) == ("plan", "a tea")
    assert (shown[team.out.strip()]["agent"], shown[team.out.strip()]["task"]) == ("parent", "a cake")


@pytest.mark.parametrize(
    ("text", "words", "why"),
    [
        (None, (), "the plan in plan.json cannot be read: No such file"),
        ("{", (), "plan.json is not JSON"),
        ("{}", (), 'the plan in plan.json cannot be used: a plan is a JSON object with a list "steps"'),
        ('{"steps": []}', ("quick", "hello"), "with --plan, pass only"),
        ('{"steps": []}', ("--team",), "with --plan, pass only"),
        ('{"steps": []}', (), "the plan was refused: the plan has no steps"),
    ],
)
def test_submit_refuses_a_plan_that_cannot_be_used(cli, tmp_path: Path, text: str | None, words, why: str):
    submitted(tmp_path)
    if text is not None:
        Path("plan.json").write_text(text)
    said = cli("submit", *words, "--plan", "plan.json")
    assert said.code == 2
    assert why in said.err


def test_submit_to_a_store_in_memory_is_refused(cli, module: str):
    said = cli("submit", f"{module}:rt", "quick", "hello")
    assert said.code == 2
    assert "keeps everything in memory, so no worker could run the task; add --store FILE" in said.err


def test_the_store_can_come_from_the_environment(cli, module: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("REMIT_STORE", "from-env.db")
    said = cli("submit", f"{module}:rt", "quick", "hello")
    assert said.err == f"remit wait {said.out.strip()}\n"
    assert Path("from-env.db").exists()
    assert said.out.strip() in cli("ps").out


@pytest.mark.parametrize(
    ("words", "code", "sentence"),
    [
        (["submit", "{module}:rt", "nobody", "x", "-s", "a.db"], 3, "there is no agent 'nobody'"),
        (["submit", "{module}:rt", "quick", "x", "-s", "a.db", "--attempts", "0"], 2, "attempts"),
        (["submit", "{module}:rt", "quick", "x", "-s", "a.db", "--timeout", "-1"], 2, "timeout must be a positive"),
        (["worker", "{module}:rt"], 2, "keeps everything in memory"),
        (["worker", "{module}:rt", "-s", "a.db", "--concurrency", "0"], 2, "--concurrency"),
        (["worker", "{module}:rt", "-s", "a.db", "--drain-timeout", "-1"], 2, "--drain-timeout is a number"),
        (
            ["worker", "{module}:rt", "-s", "a.db", "--heartbeat-timeout", "0"],
            2,
            "heartbeat_timeout must be a positive",
        ),
        (["worker", "nothere:rt"], 2, "cannot be imported"),
        (["ps"], 4, "there is no store at remit.db"),
        (["ps", "--state", "lazy"], 2, ""),
        (["ps", "--limit", "0"], 2, "limit is a whole number from 1"),
        (["status"], 4, "there is no store at remit.db"),
        (["wait", "x"], 4, "there is no store at remit.db"),
        (["cancel", "x"], 4, "there is no store at remit.db"),
        (["cancel"], 2, ""),
        (["retry", "x"], 4, "there is no store at remit.db"),
        (["watch"], 4, "there is no store at remit.db"),
        (["prune", "--days", "4"], 4, "there is no store at remit.db"),
        (["prune", "--days", "0"], 2, "--days must be a positive"),
        (["db", "migrate", "-s", ":memory:"], 2, "a store in memory cannot be migrated"),
        (["db", "migrate", "-s", "nowhere/a.db"], 5, "is not a folder"),
        (["runs", "--store", "postgresql://u:secret@127.0.0.1:1/x"], 5, "no PostgreSQL server answers there"),
    ],
)
def test_what_goes_wrong_is_a_sentence_and_a_code(cli, module: str, words: list[str], code: int, sentence: str):
    said = cli(*(word.format(module=module) for word in words))
    assert said.code == code, said.out + said.err
    assert sentence in said.err
    assert "secret" not in said.err
    assert not list(Path().glob("remit.db*"))  # looking never makes a file


# -- ps, status --------------------------------------------------------------------------------------------------


def test_ps_lists_what_is_open_and_says_that_nobody_is_there(cli, tmp_path: Path):
    ended = submitted(tmp_path, task="long ago")
    assert cli("cancel", ended).code == 0
    task = submitted(tmp_path, task="a\x1b[31mb", session="s1")
    said = cli("ps")
    assert "\x1b" not in said.out
    assert task in said.out
    assert ended not in said.out
    assert "no worker is running; start one: `remit worker module:runtime`" in said.out
    assert ended in cli("ps", "--all").out
    for words in (
        ["--state", "cancelled"],
        ["--agent", "nobody"],
        ["--session", "s2"],
        ["--parent", task],
        ["--asker", "quick"],
    ):
        assert task not in cli("ps", *words).out
    for words in (["--state", "pending"], ["--agent", "Quick"], ["--session", "s1"], ["--asker", "person"]):
        assert task in cli("ps", *words).out
    data = json.loads(cli("ps", "--json").out)
    assert [(one["id"], one["state"], one["where"], one["asker"]) for one in data["tasks"]] == [
        (task, "pending", "", "")
    ]
    assert (data["workers"], data["orphans"]) == ([], [])


def test_ps_of_nothing(cli, tmp_path: Path):
    ended = submitted(tmp_path)
    assert cli("cancel", ended).code == 0
    assert cli("ps").out == "no open tasks; ended ones: remit ps --all\n"
    assert cli("ps", "--agent", "someone").out == "no such tasks\n"
    assert cli("ps", "--all", "--parent", ended[:15]).out == "no such tasks\n"


def test_ps_tells_what_was_announced_to_nobody(cli, tmp_path: Path):
    task = carried_out(tmp_path, "careless", "spawn and leave")
    said = cli("ps")
    assert "1 results undelivered, because the asker had ended:" in said.out
    assert "by 'quick' completed: done: nobody asks about this" in said.out
    orphan = json.loads(cli("ps", "--json").out)["orphans"][0]
    assert (orphan["by"], orphan["to"], orphan["asker"]) == ("quick", "careless", task)


def test_a_task_is_found_by_a_part_of_its_id(cli, tmp_path: Path):
    task = submitted(tmp_path)
    other = submitted(tmp_path, task="another")
    for given in (task, task[-6:], "last"):
        expected = other if given == "last" else task
        assert json.loads(cli("status", given, "--json").out)["id"] == expected
    several = cli("status", task[:3])
    assert several.code == 4
    assert "2 tasks fit" in several.err
    assert (
        "there is no run or task 'zzz' in this workspace; `remit runs` and `remit ps --all` list them"
        in cli("status", "zzz").err
    )
    assert cli("status", "").code == 2
    assert cli("status", "--workspace", "other").code == 4


def test_status_tells_attempts_and_what_is_below(cli, tmp_path: Path):
    carried_out(tmp_path, "parent", "split it")
    said = cli("status")
    assert "subtasks 1 task: 1 completed" in said.out
    assert said.out.endswith("\n\ndone: a part\n")
    carried_out(tmp_path, "broken", "x")
    said = cli("status")
    assert "\x1b" not in said.out
    assert "attempt  1 of 4" in said.out
    assert "'broken' failed: ValueError" in said.out


# -- wait --------------------------------------------------------------------------------------------------------


def test_wait_prints_the_result_and_its_code_tells_how_it_went(cli, tmp_path: Path):
    task = carried_out(tmp_path)
    assert cli("wait", task) == Said(0, "done: hello\n", "")
    bad = carried_out(tmp_path, "broken", "x")
    assert cli("wait", bad).code == 1
    data = json.loads(cli("wait", "--json").out)
    assert (data["id"], data["state"], data["result"]) == (bad, "failed", None)
    assert "red" in data["error"]


@pytest.mark.rule("cli.wait")
def test_wait_takes_several_tasks_and_its_code_tells_how_all_of_them_went(cli, tmp_path: Path):
    good, also = carried_out(tmp_path), carried_out(tmp_path)
    said = cli("wait", good, also)
    assert (said.code, said.err) == (0, "")
    assert [line.split()[:3] for line in said.out.splitlines()[1:]] == [
        [one, "completed", "quick"] for one in (good, also)
    ]
    assert said.out.splitlines()[1].endswith("done: hello")
    bad = carried_out(tmp_path, "broken", "x")
    assert cli("wait", good, bad).code == 1
    waiting = submitted(tmp_path)
    late = cli("wait", bad, waiting, good, "--timeout", "0.05", "--json")
    assert late.code == 124
    told = json.loads(late.out)
    assert [(one["id"], one["state"]) for one in told] == [(bad, "failed"), (waiting, "pending"), (good, "completed")]
    assert "it continues" in cli("wait", waiting, good, "--timeout", "0.05").out
    assert cli("wait", good, "nonesuch").code == 4


def test_wait_gives_up_when_told_to(cli, tmp_path: Path):
    task = submitted(tmp_path)
    said = cli("wait", task, "--timeout", "0.05")
    assert said.code == 124
    assert "no worker is running; start one: `remit worker module:runtime`" in said.err
    assert f"task {task} is pending after waiting 0.05 s; it continues" in said.err
    assert "124 wait timed out" in " ".join(cli("--help").out.replace("│", "").split())


# -- cancel, retry, prune, db ------------------------------------------------------------------------------------


def test_cancel_and_retry(cli, tmp_path: Path):
    task = submitted(tmp_path)
    assert "only what failed, died or was cancelled is retried" in cli("retry", task).err
    assert cli("cancel", task[-5:], "--why", "not needed").out == f"{task} is cancelled\n"
    late = cli("cancel", task)
    assert (late.code, late.out) == (3, "")
    assert "has been cancelled already; there is nothing left to cancel" in late.err
    assert "'quick' was cancelled: not needed" in cli("status", task).out
    again = cli("retry", task)
    assert again.err == f"remit wait {again.out.strip()}\n"
    assert again.out.strip() != task
    assert json.loads(cli("status", again.out.strip(), "--json").out)["state"] == "pending"
    data = json.loads(cli("cancel", again.out.strip(), "--json").out)
    assert data == {"task": again.out.strip(), "cancelled": 1, "stopping": []}


@pytest.mark.rule("retry.from-step", "retry.from-step-refused")
def test_retry_runs_a_plan_again_from_a_step(cli, tmp_path: Path):
    steps = [Step("taste", "Taste", agent="quick"), Step("label", "Label", agent="quick", after=["taste"])]

    async def plan(rt: Runtime) -> str:
        handle = await rt.submit_plan(Plan(steps))
        await handle.wait(30)
        return handle.id

    run = done(tmp_path, plan, hands=10)
    wrong = cli("retry", "last", "--from", "labl", "--json")
    assert wrong.code == 2
    assert "there is no step 'labl' in the plan of run" in str(json.loads(wrong.out)["error"])
    assert "did you mean label?" in cli("retry", "last", "--from", "labl").err
    again = json.loads(cli("retry", "last", "--from", "label", "--json").out)["task"]
    assert f"run {again} is pending; cancel it or wait" in " ".join(cli("retry", again, "--from", "label").err.split())

    async def finish(rt: Runtime) -> str:
        return (await rt.workspace.tasks.get(again).wait(30)).state

    assert done(tmp_path, finish, hands=10) == "completed"
    shown = " ".join(cli("show", again).out.split())
    assert f"runs {run} again from step 'label'" in shown
    assert "plan 2 of 2 steps completed" in shown
    assert "Taste quick kept from task" in shown
    assert f"; runs {run} again from step 'label'" in " ".join(cli("history", "--run", again).out.split())
    events = json.loads(cli("history", "--run", run, "--json").out)
    began = max(event["seq"] for event in events if event["kind"] == "task.started")
    early = cli("fork", run, "--at", str(began))
    assert early.err.startswith("had not ended there, and run again with what was recorded: quick\n")
    assert json.loads(cli("fork", run, "--json").out)["again"] == []
    fork = cli("fork", run).out.strip()
    assert f"a fork of {run} at event" in " ".join(cli("show", fork).out.split())
    assert "Taste · quick · kept from task" in " ".join(cli("flow", again).out.split())


def test_prune_takes_away_what_ended_long_ago(cli, tmp_path: Path):
    carried_out(tmp_path)
    assert "0 runs ended more than 4 days ago and would be deleted" in cli("prune", "--days", "4", "--dry-run").out
    while json.loads(cli("prune", "--days", "1e-9", "--dry-run", "--json").out) != {"pruned": 0, "old": 1}:
        assert "completed" in cli("runs").out  # it has only just ended
    assert "1 run that ended more than 1e-09 days ago deleted" in cli("prune", "--days", "1e-9").out
    assert "no runs yet in remit.db" in cli("runs").out
    assert ": OK" in cli("doctor").out


def test_db_migrate_says_what_it_did(cli):
    assert cli("db", "migrate").out.startswith("remit.db: created, schema ")
    assert cli("db", "migrate").out.startswith("remit.db: up to date, schema ")
    data = json.loads(cli("db", "migrate", "--database", "other.db", "--json").out)
    assert (data["store"], data["done"]) == ("other.db", "made")
    assert cli("runs", "--store", "other.db").code == 0


@pytest.mark.rule("store.backup")
def test_a_store_is_copied_and_the_copy_examined(cli, tmp_path: Path):
    with at(tmp_path) as rt:
        asyncio.run(rt.submit("quick", "work"))
        said = cli("backup", "copy.db")  # while it is open
    assert said.code == 0
    assert "copy.db, copied from remit.db: OK  " in said.out
    assert json.loads(cli("ps", "--store", "copy.db", "--json").out)["tasks"][0]["task"] == "work"
    again = cli("backup", "copy.db")
    assert (again.code, again.out) == (2, "")
    assert "copy.db is there already, and a backup overwrites nothing" in again.err
    data = json.loads(cli("backup", "other.db", "--json").out)
    assert (data["store"], data["file"], data["sound"], data["findings"]) == ("remit.db", "other.db", True, [])


@pytest.mark.rule("store.backup")
def test_a_copy_of_an_older_store_stays_older(cli, tmp_path: Path):
    cli("db", "migrate")
    with closing(sqlite3.connect(tmp_path / "remit.db")) as connection:
        connection.execute("PRAGMA user_version = 12")
    assert (
        cli("backup", "copy.db").out
        == "copy.db is a copy of remit.db, of schema 12; not verified, because its schema is older\n"
    )
    assert json.loads(cli("backup", "other.db", "--json").out)["sound"] is None
    with closing(sqlite3.connect(tmp_path / "copy.db")) as connection:
        assert connection.execute("PRAGMA user_version").fetchone()[0] == 12


@pytest.mark.rule("store.backup")
def test_a_broken_copy_is_told(cli, tmp_path: Path):
    with at(tmp_path) as rt:
        asyncio.run(rt.submit("quick", "work"))
    with closing(sqlite3.connect(tmp_path / "remit.db", isolation_level=None)) as connection:
        connection.execute("DELETE FROM task")
    said = cli("backup", "copy.db")
    assert said.code == 1
    assert "copy.db, copied from remit.db: broken" in said.out


@pytest.mark.rule("store.backup")
@pytest.mark.parametrize(
    ("store", "sentence"),
    [
        (":memory:", "a store in memory has no file to copy"),
        (
            "postgresql://me:secret@host/base",
            "pg_dump --schema=remit --format=custom --file=copy.db 'postgresql://me:***@host/base'",
        ),
    ],
)
def test_what_is_no_file_is_copied_otherwise(cli, tmp_path: Path, store: str, sentence: str):
    said = cli("backup", "copy.db", "--store", store)
    assert said.code == 2
    assert sentence in said.err
    assert not (tmp_path / "copy.db").exists()


@pytest.mark.rule("doctor.advice")
def test_the_doctor_gives_advice_without_failing(cli):
    cli("db", "migrate")
    said, data = cli("doctor"), json.loads(cli("doctor", "--json").out)
    assert said.code == 0
    assert [line for line in said.err.splitlines() if line.startswith("advice: ")] == [
        f"advice: {sentence}" for sentence in advice(sqlite3.sqlite_version_info)
    ]
    assert data["advice"] == advice(sqlite3.sqlite_version_info)


# -- processes ---------------------------------------------------------------------------------------------------


class Child:
    """A command in a process of its own; what it prints is read line by line."""

    def __init__(self, folder: Path, *words: str) -> None:
        self.said = ""
        self.process = Program("-m", "remit.cli", *words, cwd=folder, env=plain_environment(), together=True)

    def until(self, words: str) -> None:
        while words not in self.said:
            line = self.process.stdout.readline()
            assert line, f"{words!r} was never said: {self.said}"
            self.said += line

    def signal(self, number: signal.Signals) -> None:
        self.process.send_signal(number)

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()

    def stop(self) -> None:
        self.process.close()

    def ends(self) -> int:
        rest, _ = self.process.communicate(timeout=60)
        self.said += rest
        assert "Traceback" not in self.said, self.said
        return self.process.wait()


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Callable[..., Child]]:
    children: list[Child] = []

    def one(*words: str) -> Child:
        children.append(Child(tmp_path, *words))
        return children[-1]

    yield one
    for child in children:
        child.stop()


@pytest.fixture
def worker(start, module: str) -> Callable[..., Child]:
    def one(*words: str) -> Child:
        child = start("worker", f"{module}:rt", "--store", "remit.db", *words)
        child.until("Ctrl-C drains")
        return child

    return one


@pytest.mark.rule("truth.own-making")
@pytest.mark.parametrize("how", ["worker", "serve"])
def test_an_agent_that_exits_in_its_own_asyncio_task_leaves_the_process_running(cli, start, module: str, how: str):
    words = ["worker"] if how == "worker" else ["serve", "--port", "0"]
    child = start(*words, f"{module}:rt", "--store", "remit.db")
    child.until("Ctrl-C drains" if how == "worker" else "commands on this machine")
    leaver = put(cli, module, "leaver", "x")
    assert cli("wait", leaver).code == 1
    assert "'leaver' failed: SystemExit: 3" in cli("status", leaver).out
    assert "done: y" in cli("wait", put(cli, module, "quick", "y")).out
    child.stop()


@pytest.mark.rule("queue.no-such-worker")
def test_a_task_for_an_agent_that_no_worker_has_says_so(cli, start, tmp_path: Path):
    task = submitted(tmp_path)
    (tmp_path / "remit.toml").write_text("[agents.a]\nprogram = ['cat']\n[store]\npath = 'remit.db'\n")
    lacking = "no worker has 'quick': such a task stays pending until a worker has its agent, or until you cancel it"
    for command in ("ps", "status"):
        assert lacking not in " ".join(cli(command).out.split())  # there is none at all
    start("worker").until("Ctrl-C drains")
    while "1 worker" not in cli("ps").out:  # its first heartbeat
        pass
    for command in (("ps",), ("status", task), ("wait", task, "--timeout", "0.05")):
        said = cli(*command)
        assert lacking in " ".join((said.out + said.err).split())
    assert cli("cancel", task).code == 0
    assert "no worker has" not in cli("ps", "--all").out + cli("status", task).out


@pytest.mark.rule("workspace.withdraw", "queue.no-such-worker")
def test_agents_says_who_has_a_worker_and_a_card_that_nobody_needs_is_withdrawn(cli, start, tmp_path: Path):
    carried_out(tmp_path)  # by a worker that has ended since
    assert "no worker has 'broken', 'careless', 'parent', 'quick'; to start one:" in " ".join(cli("agents").out.split())
    (tmp_path / "remit.toml").write_text("[agents.a]\nprogram = ['cat']\n[store]\npath = 'remit.db'\n")
    start("worker").until("Ctrl-C drains")
    while not (cards := {one["name"]: one["workers"] for one in json.loads(cli("agents", "--json").out)}).get("a"):
        pass  # until its first heartbeat
    assert cards == {"a": 1, "broken": 0, "careless": 0, "parent": 0, "quick": 0}
    task = json.loads(cli("submit", "quick", "from outside", "--json").out)["task"]
    said = cli("status", task)
    assert "no worker has 'quick': such a task stays pending" in " ".join((said.out + said.err).split())
    assert "'quick' has tasks that have not ended; wait for them or cancel them first" in cli("withdraw", "quick").err
    assert cli("cancel", task).code == 0
    assert cli("withdraw", "Quick").out == "the card of 'quick' is withdrawn\n"
    assert cli("withdraw", "a").code == 3
    assert "there is no card 'quick'" in cli("withdraw", "quick").err
    assert json.loads(cli("withdraw", "broken", "--json").out) == {"withdrawn": "broken"}
    assert "quick" not in cli("agents").out


@pytest.mark.rule("file.schedules")
@pytest.mark.parametrize(
    ("words", "ready"), [(["worker"], "Ctrl-C drains"), (["serve", "--port", "0"], "commands on this machine")]
)
def test_a_worker_sets_the_schedules_of_its_file_and_says_which_have_left_it(
    cli, start, tmp_path: Path, words: list[str], ready: str
):
    agents = "[agents.a]\nprogram = ['cat']\n[store]\npath = 'remit.db'\n"
    daily = "[schedules.daily]\ncron = '0 9 * * *'\ntask = 'x'\n"
    for text, said in (
        (agents + daily, "schedule daily added: next 20"),
        (agents + daily.replace("'x'", "'y'"), "schedule daily changed: next 20"),
        (agents, "schedule daily is not in remit.toml any more and goes on; to end it: remit schedule rm daily"),
    ):
        (tmp_path / "remit.toml").write_text(text)
        child = start(*words)
        child.until(ready)
        child.until(said)
        child.stop()
    listed = cli("schedule", "ls")
    assert "remit.toml, left" in listed.out
    assert "to end it: remit schedule rm daily" in listed.err
    assert json.loads(cli("schedule", "ls", "--json").out)[0]["left"] is True


def put(cli, module: str, agent: str, task: str, *words: str) -> str:
    return cli("submit", f"{module}:rt", agent, task, "--store", "remit.db", *words).out.strip()


def state(cli, task: str) -> dict:
    return json.loads(cli("status", task, "--json").out)


def test_a_worker_that_is_told_to_stop_lets_its_tasks_end(cli, module: str, worker, tmp_path: Path):
    task = put(cli, module, "gate", "key")
    first = worker()
    first.until("at the gate")
    listed = cli("ps").out
    assert f"here {first.process.pid}" in listed
    assert "1 worker, 100 slots" in listed
    first.signal(signal.SIGTERM)
    first.until("draining: 1 task still running; press Ctrl-C again to stop at once")
    later = put(cli, module, "quick", "too late for this worker")
    (tmp_path / "key").touch()
    assert first.ends() == 0
    assert f"completed   {task} gate" in first.said
    assert ": 1 completed\n" in first.said
    assert state(cli, task)["result"] == "through key"
    assert state(cli, later)["state"] == "pending"


@pytest.mark.rule("serve.waits")
def test_a_worker_whose_server_is_not_there_yet_waits_until_it_is_stopped(start, module: str):
    child = start("worker", f"{module}:rt", "--store", "postgresql://nobody@127.0.0.1:1/nowhere")
    child.until("the store is not there yet, waiting for it: postgresql://nobody@127.0.0.1:1/nowhere")
    child.signal(signal.SIGTERM)
    assert child.ends() == 0
    assert ": no tasks" in child.said


def test_a_worker_hands_back_what_takes_too_long_and_another_finishes_it(cli, module: str, worker, tmp_path: Path):
    task = put(cli, module, "gate", "key")
    first = worker("--drain-timeout", "0.05")
    first.until("at the gate")
    first.signal(signal.SIGTERM)
    assert first.ends() == 0
    assert f"requeued    {task} gate" in first.said
    found = state(cli, task)
    assert (found["state"], found["attempt"], found["worker"]) == ("pending", 0, "")
    assert [one["how"] for one in found["earlier"]] == ["handed back"]
    second = worker()
    second.until("at the gate")
    (tmp_path / "key").touch()
    second.until(f"completed   {task}")
    found = state(cli, task)
    assert (found["state"], found["attempt"]) == ("completed", 1)


def test_the_second_signal_stops_a_worker_whatever_its_agents_do(cli, module: str, worker, tmp_path: Path):
    task = put(cli, module, "stubborn", "key")
    first = worker()
    first.until("not listening")
    first.signal(signal.SIGINT)
    first.until("draining: 1 task still running")
    first.signal(signal.SIGINT)
    assert first.ends() == 130
    assert state(cli, task)["state"] in ("lost", "pending")
    (tmp_path / "key").touch()
    second = worker()
    second.until(f"completed   {task}")
    second.signal(signal.SIGINT)
    assert second.ends() == 0


def test_what_a_killed_worker_left_is_finished_by_another(cli, module: str, worker, tmp_path: Path):
    task = put(cli, module, "boss", "key")
    first = worker()
    first.until("at the gate")
    first.kill()
    found = state(cli, task)
    assert (found["state"], found["where"], found["below"]) == ("lost", "gone", {"running": 1})
    assert "ends or resumes abandoned tasks" in cli("ps").out
    assert json.loads(cli("runs", "--json").out)[0]["state"] == "lost"
    second = worker()
    second.until(f"taken over  {task} boss")
    second.until("attempt 2")
    (tmp_path / "key").touch()
    second.until(f"completed   {task}")
    found = state(cli, task)
    assert (found["result"], found["attempt"]) == ("through key", 1)
    assert [one["how"] for one in found["earlier"]] == ["lost with its process"]


@pytest.mark.rule("store.outgrown")
def test_a_worker_ends_when_a_newer_remit_has_changed_the_store(cli, module: str, worker, tmp_path: Path):
    first = worker()
    with closing(sqlite3.connect(tmp_path / "remit.db")) as connection:
        connection.execute("PRAGMA user_version = 99")
    assert first.ends() == 5
    assert "brought to schema 99 by a newer remit" in first.said


def test_cancel_stops_what_runs_elsewhere_and_all_below_it(cli, module: str, worker):
    task = put(cli, module, "boss", "never")
    first = worker()
    first.until("at the gate")
    said = cli("cancel", task, "--why", "enough of it")
    assert said.out == f"cancelling {task} and 1 subtask\n{task} is cancelled; all subtasks have stopped\n"
    assert (said.code, state(cli, task)["below"]) == (0, {"cancelled": 1})
    first.signal(signal.SIGTERM)
    assert first.ends() == 0
    assert "1 cancelled" in first.said


def test_cancel_ends_at_once_what_nobody_runs(cli, module: str, worker):
    task = put(cli, module, "gate", "never")
    first = worker()
    first.until("at the gate")
    first.kill()
    said = cli("cancel", task)
    assert said.out == f"{task} is cancelled\n"
    assert state(cli, task)["state"] == "cancelled"


def test_what_is_tried_again_is_told_by_the_worker_and_by_status(cli, module: str, worker):
    task = put(cli, module, "shaky", "x")
    first = worker()
    first.until(f"retrying    {task} shaky")
    first.until(f"completed   {task} shaky")
    found = state(cli, task)
    assert (found["attempt"], found["result"]) == (2, "second time lucky")
    assert "no \\x1b[31mline" in cli("status", task).out
    assert "\x1b" not in first.said


def test_a_worker_whose_reader_has_gone_works_on(cli, module: str, worker):
    first = worker()
    first.process.stdout.close()
    for task in ("one", "two"):
        assert cli("wait", put(cli, module, "quick", task), "--timeout", "30").out == f"done: {task}\n"
    first.signal(signal.SIGTERM)
    assert first.process.wait(30) == 0


@contextmanager
def ignoring(number: signal.Signals) -> Iterator[None]:
    """Start processes that ignore a signal."""
    before = signal.signal(number, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(number, before)


def test_watch_shows_what_another_process_does_until_the_run_has_ended(cli, module: str, worker, start, tmp_path: Path):
    task = put(cli, module, "gate", "key")
    one = start("watch", task)
    with ignoring(signal.SIGINT):  # as a shell has it in the background
        everything = start("watch", "--all")
    one.until("task.submitted gate: key")
    first = worker()
    for seen in (one, everything):
        seen.until("task.claimed gate")
    (tmp_path / "key").touch()
    everything.until("task.completed gate: through key")
    assert one.ends() == 0
    assert one.said.rstrip().endswith("through key")
    everything.signal(signal.SIGINT)
    assert everything.ends() == 130
    first.signal(signal.SIGTERM)
    assert first.ends() == 0


def test_submit_and_wait_prints_the_result_like_run(cli, module: str, worker, start):
    worker()
    child = start("submit", f"{module}:rt", "quick", "hello", "--store", "remit.db", "--wait")
    assert child.ends() == 0
    for words in ("Ctrl-C leaves it in the queue", "quick worked alone", "done: hello", "remit show "):
        assert words in child.said


# -- run ---------------------------------------------------------------------------------------------------------


def test_run_waits_for_what_it_left_running(start, module: str, tmp_path: Path):
    child = start("run", f"{module}:rt", "lead", "key", "--store", "remit.db")
    child.until("left it to others")
    child.until("waiting for 1 task it left running; Ctrl-C requeues them")
    (tmp_path / "key").touch()
    assert child.ends() == 0


def test_run_hands_back_what_it_left_running_when_interrupted(cli, start, module: str, tmp_path: Path):
    child = start("run", f"{module}:rt", "lead", "key", "--store", "remit.db")
    child.until("waiting for 1 task")
    child.until("at the gate") if "at the gate" not in child.said else None
    child.signal(signal.SIGINT)
    assert child.ends() == 0
    open_ = json.loads(cli("ps", "--json").out)["tasks"]
    assert [(one["agent"], one["state"], one["attempt"]) for one in open_] == [("gate", "pending", 0)]


def test_an_interrupted_run_is_cancelled_and_shown(cli, start, module: str):
    child = start("run", f"{module}:rt", "boss", "never", "--store", "remit.db")
    child.until("at the gate")
    child.signal(signal.SIGINT)
    assert child.ends() == 130
    assert "cancelling the run; press Ctrl-C again to stop at once" in child.said
    assert "2 tasks cancelled" in child.said
    assert {one["state"] for one in json.loads(cli("ps", "--all", "--json").out)["tasks"]} == {"cancelled"}


def test_the_second_interrupt_stops_a_run_whatever_its_agents_do(start, module: str):
    child = start("run", f"{module}:rt", "stubborn", "never", "--store", "remit.db")
    child.until("not listening")
    child.signal(signal.SIGINT)
    child.until("press Ctrl-C again to stop at once")
    child.signal(signal.SIGINT)
    assert child.ends() == 130
    assert "stopped at once; tasks that were running here are still open: `remit ps` lists them" in child.said


# -- PostgreSQL --------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    """The address of an empty database, as people write it."""
    with running() as found:
        made = found.database(empty=True)
        parts = {name: str(value) for name, value in conninfo_to_dict(made).items()}
        user, name = quote(parts.pop("user", "")), quote(parts.pop("dbname"))
        yield f"postgresql://{user}@/{name}?{urlencode(parts)}"
        found.drop(made)


def test_the_same_commands_on_postgresql(cli, start, module: str, server: str, tmp_path: Path):
    made, again = cli("db", "migrate", "--store", server), cli("db", "migrate", "--store", server)
    assert ": created or migrated, schema" in made.out
    assert ": up to date" in again.out
    submitted = cli("submit", f"{module}:rt", "gate", "key", "--store", server)
    task = submitted.out.strip()
    assert f"remit wait {task} --store " in submitted.err
    at = start("worker", f"{module}:rt", "--store", server)
    at.until("at the gate")
    watching = start("watch", task, "--database", server)
    watching.until("task.claimed gate")
    assert f"here {at.process.pid}" in cli("ps", "--store", server).out
    (tmp_path / "key").touch()
    assert cli("wait", task, "--store", server) == Said(0, "through key\n", "")
    assert watching.ends() == 0
    at.signal(signal.SIGTERM)
    assert at.ends() == 0
    assert ": OK" in cli("doctor", "--store", server).out
    assert not list(tmp_path.glob("*.db"))
