"""kill -9 anywhere: the next process carries on, and nobody can tell from what came of it."""

from pathlib import Path

import pytest

from deep import some
from torture.points import measured, points, program, repeat, spread, told, twice
from torture.scenarios import HOOKS, SCENARIOS

ONCE = 4  # points of each scenario; `make torture` takes all of them
TWICE = 2
SURE = "store.before-commit:2+store.begin:1"  # early enough for each scenario: its first life and its second reach it
ON_A_SERVER = 4


@pytest.mark.rule("crash.enumerated", "crash.twice", "crash.disputed", "money.crash")
@pytest.mark.parametrize("scenario", some(SCENARIOS, 2))
def test_what_is_killed_is_carried_on_by_the_next_process_which_may_be_killed_as_well(scenario: str, tmp_path: Path):
    found = measured(tmp_path, scenario)
    assert found["broken"] == []
    every = points(found["reached"])
    # Second lives may be short, so they are killed at one of the first times that a hook is reached.
    again = twice(spread(every, TWICE, 0.25), start=list(SCENARIOS).index(scenario) % len(HOOKS))
    lines = check(tmp_path, scenario, [*spread(every, ONCE), *again, SURE])
    assert any(lines[:-1]), "some points are reached; on a busy machine commits come together, and there are fewer"
    assert lines[-1] == 2, "a first and a second life are killed"


@pytest.mark.deep
@pytest.mark.rule("answer.first", "approval.used", "crash.disputed")
def test_so_it_is_on_a_server_when_two_processes_disagree(tmp_path: Path, address: str):
    found = measured(tmp_path, "disputed", server=address)
    assert found["broken"] == []
    first = spread(points(found["reached"]), ON_A_SERVER)
    assert sum(check(tmp_path, "disputed", [*first, *twice(first[::3])], server=address)) >= ON_A_SERVER * 0.9


@pytest.mark.rule("crash.enumerated")
def test_the_scenarios_reach_every_hook(tmp_path: Path):
    reached = {hook for scenario in ("submit", "tree") for hook in measured(tmp_path, scenario)["reached"]}
    assert reached == set(HOOKS)


@pytest.mark.deep
@pytest.mark.rule("money.crash", "crash.enumerated", "money.short")
@pytest.mark.parametrize("scenario", ["paid", "short"])
def test_so_it_is_on_a_server(scenario: str, tmp_path: Path, address: str):
    found = measured(tmp_path, scenario, server=address)
    assert found["broken"] == []
    first = spread(points(found["reached"]), ON_A_SERVER)
    killed = check(tmp_path, scenario, [*first, *twice(first[::3])], server=address)
    assert sum(killed) >= ON_A_SERVER * 0.9


def check(folder: Path, scenario: str, cases: list[str], *, server: str = "") -> list[int]:
    """How many processes were killed in each case; nothing may be broken by it."""
    running = program(folder, scenario, cases, server=server)
    try:
        lines = list(told(running))
        _, complaints = running.communicate(timeout=100)
    finally:
        running.close()
    wrong = [f"{line['broken']}\n  {repeat(scenario, line['case'])}" for line in lines if line["broken"]]
    assert not wrong, "\n".join([*wrong, complaints])
    assert [line["case"] for line in lines] == cases, complaints
    return [line["killed"] for line in lines]
