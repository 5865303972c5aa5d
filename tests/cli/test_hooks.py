"""`remit hooks`: what an owner does with hooks in a terminal, and workers that send the events, killed on the way."""

import json
from contextlib import AbstractContextManager
from pathlib import Path

import pytest

from adapters.standin import stand_in
from commands import command, plain_environment
from programs import Program, running
from remit import Card, Runtime
from remit.adapters.vault import fresh_master
from remit.settings import Serving
from teams import echo

pytestmark = pytest.mark.anyio

TEAM = """
import remit

rt = remit.Runtime("remit.db")


@rt.agent
async def clerk(turn):
    return turn.task
"""


@pytest.mark.rule("hook.commands")
def test_hooks_are_added_listed_rotated_and_removed(tmp_path: Path):
    add = ("hooks", "add", "https://example.com/hook", "task.*", "--by", "ann")
    missing = command(tmp_path, *add)
    assert (missing.returncode, "remit keys master" in missing.stderr) == (2, True)
    master = fresh_master().reveal()
    wrong = command(tmp_path, "hooks", "add", "http://127.0.0.1/hook", "task.*", REMIT_MASTER_KEY=master)
    assert (wrong.returncode, "127.0.0.1" in wrong.stderr) == (2, False)
    added = json.loads(command(tmp_path, *add, "--json", REMIT_MASTER_KEY=master).stdout)
    assert added["secret"].startswith("whsec_")
    listed = command(tmp_path, "hooks", "ls").stdout
    assert added["id"] in listed
    assert "https://example.com/hook" in listed
    [told] = json.loads(command(tmp_path, "hooks", "ls", "--json").stdout)
    assert (told["kinds"], told["added_by"], told["waiting"], told["failing"]) == (["task.*"], "ann", 0, "")
    assert "secret: whsec_" in command(tmp_path, "hooks", "rotate", added["id"], REMIT_MASTER_KEY=master).stdout
    assert "nothing was sent" in command(tmp_path, "hooks", "deliveries", added["id"]).stdout
    history = command(tmp_path, "history", "--json").stdout
    assert [event["kind"] for event in json.loads(history)] == ["hook.added", "hook.rotated"]
    assert "whsec_" not in history
    assert command(tmp_path, "hooks", "rm", added["id"]).stdout == f"hook {added['id']} is removed\n"
    assert command(tmp_path, "hooks", "rm", added["id"]).returncode == 4
    assert "no hooks" in command(tmp_path, "hooks", "ls").stdout
    assert command(tmp_path, "doctor").returncode == 0


@pytest.mark.rule("hook.delivered", "hook.commands")
async def test_each_event_arrives_though_workers_are_killed_at_any_moment(tmp_path: Path):
    (tmp_path / "team.py").write_text(TEAM)
    environment = {"REMIT_MASTER_KEY": fresh_master().reveal(), "REMIT_HOOK_NETWORKS": "127.0.0.0/8"}
    async with stand_in() as server:
        words = ("hooks", "add", f"{server.url}/hook", "task.completed", "--json")
        hook = json.loads(command(tmp_path, *words, **environment).stdout)["id"]
        with Runtime(tmp_path / "remit.db", serving=Serving(concurrency=0)) as rt:
            rt.add(Card("clerk"), echo)
            tasks = {(await rt.submit("clerk", str(number))).id for number in range(30)}
            for seen in (1, 5, 12):
                with _worker(tmp_path, environment) as worker:
                    await server.until(lambda seen=seen: len(server.got) >= seen)
                    worker.kill()
            with _worker(tmp_path, environment):
                await server.until(lambda: {got.json["data"]["task"] for got in server.got} == tasks)
                ids = {got.headers["webhook-id"]: got.json["data"]["task"] for got in server.got}
                assert {*ids.values()} == tasks
                assert len(ids) == len(tasks)
                log = await rt.workspace.hooks.deliveries(hook)
                assert len({one.event for one in log}) == len(log) == len(tasks)
    assert command(tmp_path, "doctor").returncode == 0


def _worker(folder: Path, environment: dict[str, str]) -> AbstractContextManager[Program]:
    words = ("-m", "remit.cli", "worker", "team:rt", "--heartbeat-timeout", "2")
    return running(*words, cwd=folder, env=plain_environment() | environment)
