"""Chaos for a few seconds, and whether its checker sees: each way to break what a run left behind is found."""

import asyncio
import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import closing
from itertools import islice
from pathlib import Path

import pytest

import remit
from deep import some
from torture.chaos import conductor, promises
from torture.chaos.agents import UNSURE
from torture.chaos.doctored import WAYS, Left, drop_event
from torture.chaos.harm import BUDGET, ON_A_FILE, ON_A_SERVER, harms
from torture.chaos.life import Where
from torture.chaos.picture import picture
from torture.chaos.processes import Processes

pytestmark = pytest.mark.together
TESTS = Path(__file__).parents[1]
SECONDS = "8"
PEACE = "from torture.chaos.conductor import once; print(once('sqlite', 4, 30, harm=False, into=Path(sys.argv[1]))[1])"


def program(*arguments: str) -> "subprocess.CompletedProcess[str]":
    environment = {**os.environ, "PYTHONPATH": str(TESTS)}
    return subprocess.run([sys.executable, *arguments], env=environment, capture_output=True, text=True, timeout=150)


@pytest.mark.deep
@pytest.mark.rule("crash.chaos")
def test_a_few_seconds_of_chaos_leave_nothing_wrong():
    done = program("-m", "torture", "chaos", "--store", "sqlite", "--seed", "1", "--seconds", SECONDS)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "nothing is wrong" in done.stdout


# -- the schedule ---------------------------------------------------------------------------------------------------


def test_the_same_seed_does_the_same_harm_in_the_same_order():
    one, same, other = (list(islice(harms(seed, ON_A_FILE, (0.05, 0.5)), 500)) for seed in (1, 1, 2))
    assert one == same
    assert one != other


def test_a_long_run_is_divided_into_short_ones_that_can_be_repeated_alone():
    assert conductor.rounds(7, 8) == [(7, 8)]
    assert conductor.rounds(7, 300) == [(7, 100), (8, 100), (9, 100)]
    assert all(conductor.rounds(seed, seconds) == [(seed, seconds)] for seed, seconds in conductor.rounds(1, 3_600))


@pytest.mark.parametrize("weights", [ON_A_FILE, ON_A_SERVER])
def test_every_harm_is_done_and_can_be_done(weights: dict[str, int]):
    drawn = {harm.kind for harm in islice(harms(1, weights, (0.1, 0.2)), 1_000)}
    assert drawn == set(weights)
    assert all(hasattr(conductor.Conductor, f"_{kind}") for kind in drawn)


def test_less_time_passes_in_a_run_than_a_task_has_to_begin():
    assert BUDGET < 24 * 3_600 * 1_000_000


def test_the_time_in_which_a_process_stands_still_does_not_count_until_it_has_to_have_stopped(tmp_path: Path):
    processes = Processes(tmp_path, 1, Where("", 1.0), ["worker"])
    (process,) = processes.all
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as program:
        process.pid = program.pid
        process.told = told = time.monotonic()
        processes.halt(process)
        stands = process.stopped
        while time.monotonic() == stands:
            pass
        processes.resume(process)
        goes_on = time.monotonic()
        program.kill()
    assert told < process.told <= told + goes_on - stands
    assert not process.stopped


# -- the checker ----------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def peace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("peace")
    done = program("-c", f"import sys; from pathlib import Path; {PEACE}", str(folder))
    assert "nothing is wrong" in done.stdout, done.stdout + done.stderr
    return folder


@pytest.fixture
def left(peace: Path, tmp_path: Path):
    found = Left(Path(shutil.copytree(peace, tmp_path / "left")))
    with closing(found.database):
        assert found.kinds() == set()
        yield found


@pytest.mark.parametrize(("doctored", "kind"), some(WAYS, 6))
@pytest.mark.rule("crash.chaos")
def test_the_checker_sees_what_is_wrong(left: Left, doctored: Callable[[Left], None], kind: str):
    doctored(left)
    assert kind in left.kinds()


def test_who_is_killed_between_doing_and_keeping_is_excused(left: Left):
    left.do_again(killed=True, kept=False)
    assert left.kinds() == set()


def test_who_did_it_while_it_was_being_killed_is_excused(left: Left):
    [before] = [line for line in left.call() if line["kind"] == "before"]
    left.do_again(killed=False, kept=False)
    assert "effect.repeated" in left.kinds()
    left.lines.append({"kind": "killed", "who": "", "at": before["at"] - 1, "target": before["who"]})
    left.lines.append({"kind": "ended", "who": "", "at": before["at"] + 1, "target": before["who"], "code": -9})
    assert left.kinds() == set()


def test_who_is_cancelled_between_doing_and_keeping_is_excused(left: Left):
    left.do_again(killed=False, kept=False, error="CancelledError")
    assert left.kinds() == set()


def test_who_is_stopped_between_looking_and_doing_is_excused(left: Left):
    left.do_again(killed=False, kept=True)
    stopped, before = (
        next(line for line in left.lines if line["kind"] == kind and line["who"] == "someone") for kind in _GAP
    )
    left.lines += [
        {"kind": "stopped", "who": "", "at": stopped["at"] + 1, "target": "someone"},
        {"kind": "continued", "who": "", "at": before["at"] - 1, "target": "someone"},
    ]
    assert left.kinds() == set()


_GAP = ("asks effect", "before")


def test_what_was_pruned_is_vouched_for(left: Left):
    with remit.Workspace(left.folder / "team.db") as workspace:
        assert asyncio.run(workspace.prune(1e-9)) > 0
    assert left.kinds() == set()
    left.run("UPDATE gap SET hash = 'x' WHERE last = (SELECT max(last) FROM gap)")
    assert left.kinds() == {"chain.hash", "chain.stated"}
    left.run("DELETE FROM gap")
    assert left.kinds() == {"chain.gap", "chain.hash", "chain.stated"}


def test_what_was_pruned_long_ago_is_vouched_for_by_its_key_or_op(left: Left):
    async def retry_and_prune_twice() -> str:
        with remit.Workspace(left.folder / "team.db") as workspace:
            task = await workspace.submit("pricer", "a chair")
            await task.cancel()
            again = await task.retry(op="asker 1")
            await again.cancel()
            assert await workspace.prune(1e-9) > 0
            assert await workspace.prune(1e-9) == 0  # the second removes the event that names what the first pruned
            return again.id

    retried = asyncio.run(retry_and_prune_twice())
    left.note("ack", key="retry", task=retried)
    assert "runs.pruned" not in {event.kind for event in picture(left.folder, "").events}
    assert left.kinds() == set()


def test_a_picture_of_a_server_can_be_looked_at_later(left: Left):
    seen = picture(left.folder, "")
    seen.save(left.folder / "picture.json")
    (left.folder / "team.db").unlink()
    again = picture(left.folder, "")
    assert (again.events, again.tables) == (seen.events, seen.tables)


def test_a_failure_says_the_command_that_repeats_it(left: Left):
    drop_event(left)
    done = program(str(conductor.CHECKER), str(left.folder), "--json")
    assert done.returncode == 1
    assert {json.loads(line)["kind"] for line in done.stdout.splitlines()} == left.kinds()
    assert conductor.repeat("sqlite", 7, 20.0) == 'make torture ARGS="chaos --store sqlite --seed 7 --seconds 20"'


def test_the_checker_knows_nothing_of_remit(peace: Path):
    code = "import sys; from torture.chaos import checker; checker.main([sys.argv[1]]); print('remit' in sys.modules)"
    assert program("-c", code, str(peace)).stdout.endswith("False\n")
    assert promises.UNSURE == UNSURE, "what the checker knows of the agents is what they say"
