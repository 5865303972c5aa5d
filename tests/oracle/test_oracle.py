"""Random trees of delegations, handoffs, plans and submissions go as an independent model foresees, on every store."""

from contextlib import closing
from pathlib import Path

import pytest

from deep import some
from oracle.checking import Worlds, differences, told
from oracle.generating import generated
from oracle.model import QUOTED, UNTRUSTED, foreseen
from oracle.playing import Player
from oracle.scenario import SET_OFF, Act, Delegate, Member, Run, Scenario, TurnScript, Within
from remit.stores.opening import database_at
from remit.stores.postgres.database import PostgresDatabase

pytestmark = pytest.mark.anyio

MEMORY, FILE, POSTGRES, REOPENED = 300, 30, 30, 10  # trees; `make torture` takes many more
PART = 150  # trees in one test, so that what fails is told soon


@pytest.mark.rule("bounds.narrow", "sight.default-deny", "sight.pass-own", "sight.writes", "asks.default-deny")
@pytest.mark.rule("trust.task", "trust.tools", "prompt.no-forging", "input.scopes", "task.dedup-person")
@pytest.mark.rule("workspace.op-content")
@pytest.mark.parametrize("first", some(range(0, MEMORY, PART)))
async def test_random_trees_go_as_the_model_foresees(first: int):
    worlds = Worlds(database_at(":memory:"))
    for seed in range(first, first + PART):
        await worlds.check(seed)


@pytest.mark.rule("bounds.narrow", "sight.default-deny", "task.guards")
async def test_so_they_do_on_a_file_that_is_closed_and_opened_again(tmp_path: Path):
    worlds = Worlds(tmp_path / "team.db")
    for seed in range(MEMORY, MEMORY + FILE):
        await worlds.check(seed)


@pytest.mark.rule("bounds.narrow", "sight.default-deny", "postgres.engine")
@pytest.mark.parametrize("first", some(range(REOPENED, POSTGRES, REOPENED), 0))
async def test_so_they_do_on_postgres(first: int, address: str):
    with closing(PostgresDatabase(address)) as database:
        worlds = Worlds(database)
        for seed in range(MEMORY + FILE + first, MEMORY + FILE + first + REOPENED):
            await worlds.check(seed)


@pytest.mark.deep
@pytest.mark.rule("bounds.narrow", "sight.default-deny", "postgres.engine")
async def test_so_they_do_on_postgres_that_is_left_and_connected_to_again(address: str):
    worlds = Worlds(lambda: PostgresDatabase(address))
    for seed in range(MEMORY + FILE, MEMORY + FILE + REOPENED):
        await worlds.check(seed)


def test_a_seed_always_gives_the_same_scenario():
    assert generated(7) == generated(7)
    assert generated(7) != generated(8)


def test_the_trees_reach_every_rule_and_every_act():
    """What the generator does not reach the oracle does not check."""
    rules: set[str] = set()
    acts: set[str] = set()
    for seed in range(MEMORY):
        for lines in foreseen(generated(seed)).values():
            for line in lines:
                acts.add(str(line[1]))
                rules |= set(_rules(line[2]))
    every = {"self", "unknown", "not-allowed", "loop", "depth", "deadline", "breaker", "tier", "not-visible"}
    assert every | {"not-writable", "tasks", "bad-input", "conflict", "existing"} <= rules
    assert {"Delegate", "DelegateAll", "Submit", "RunPlan", "Restart", "Tell", "Inbox", "Look", "Wait"} <= acts
    assert {"Brief", "Use"} <= acts


def test_the_trees_tell_models_and_quote_what_is_not_trusted():
    told = [
        str(line[2][0])
        for seed in range(MEMORY)
        for lines in foreseen(generated(seed)).values()
        for line in lines
        if line[1] in ("Brief", "Use")
    ]
    for words in (UNTRUSTED, SET_OFF, "## Context passed along", f"[{QUOTED}]", "may not use", "does not see"):
        assert any(words in text for text in told), words


def _rules(answer: object) -> list[str]:
    if isinstance(answer, tuple) and len(answer) == 2 and answer[0] in ("bad-input", "conflict", "existing", "refused"):
        return [str(answer[1] if answer[0] == "refused" else answer[0])]
    return [rule for part in answer for rule in _rules(part)] if isinstance(answer, tuple | list) else []


async def test_what_goes_wrong_in_the_middle_of_an_agent_is_no_failure_of_the_agent():
    """As when the time of the test is up: remit takes whatever an agent raises for the agent's own failure."""
    scenario = Scenario(0, (Member("ann"),), Within(), [Run("ann", "t1", "monday")])
    scenario.turns["t1"] = [TurnScript([Act()])]  # which nobody can do
    with pytest.raises(AssertionError, match="Act"):
        await Player(scenario, ":memory:", "w").played()


async def test_what_differs_is_made_small_and_told():
    scenario = next(
        one for one in map(generated, range(100)) if any(isinstance(act, Delegate) for act in one.every_act())
    )
    expected = foreseen(scenario)
    other = {**expected, "": [*expected[""][:-1], (0, "Serve", "something else")]}
    assert len(differences(expected, other)) == 1
    story = told(scenario, differences(expected, other))
    assert f"seed {scenario.seed}" in story
    assert "something else" in story
