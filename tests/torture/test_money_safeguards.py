"""Every safeguard of the books is missed: removed, a test that is about it fails, or a random team notices."""

import inspect
import logging
from collections.abc import Iterator
from contextlib import ExitStack
from importlib import import_module
from pathlib import Path
from typing import Any

import anyio
import pytest

from deep import some
from inside import without
from remit import Bounds
from remit.testing import FakeClock
from teams import team
from torture import money
from torture.money_safeguards import HIDDEN, SAFEGUARDS, MoneySafeguard

pytestmark = pytest.mark.anyio

SOON, PATIENCE = 4, 60  # seconds in which something is noticed, and in which it is not
SEEDS = 20


@pytest.fixture(autouse=True)
def in_peace() -> Iterator[None]:
    logging.disable()
    yield
    logging.disable(logging.NOTSET)


class Given:
    """What a test is given: a case of each of its parameters, a runtime in memory, a clock and a folder."""

    def __init__(self, folder: Path, patch: pytest.MonkeyPatch) -> None:
        self.folder, self.patch = folder, patch

    async def play(self, witness: str, **chosen: Any) -> None:
        module, _, name = witness.partition(":")
        test = getattr(import_module(f"engine.{module}"), name)
        clock = FakeClock()
        with team(clock=clock) as rt:
            known = {
                "rt": rt,
                "anywhere": rt,
                "clock": clock,
                "tmp_path": self.folder,
                "monkeypatch": self.patch,
                **chosen,
            }
            await test(**{name: known[name] for name in inspect.signature(test).parameters})


# The cases of parametrized tests that are about the safeguard.
CASES: dict[str, list[dict[str, Any]]] = {
    "test_however_a_task_ends_what_was_held_is_released_and_what_left_is_charged": [
        {"how": "completed", "lease": {"credits": "$1.50"}}
    ],
    "test_after_a_takeover_the_dead_settle_and_pay_nothing": [{"sibling": True}],
    "test_what_outlives_its_asker_and_its_run_keeps_the_lease_open_and_gives_it_back": [
        {"verb": "spawn", "lease": {}},
        {"verb": "spawn", "lease": {"credits": "$0.20"}},
        {"verb": "submit", "lease": {"within": Bounds(credits="$0.20")}},
    ],
    "test_eight_at_once": [{"given": "$0.50", "how": {}, "done": 8}],
    "test_a_batch_is_judged_whole_however_quick_its_first_is": [{"unit": "credits"}],
    "test_a_bill_beyond_the_lease_stops_at_the_lease": [{"how": {"credits": "$0.10"}, "bill": "$0.70"}],
    "test_an_agent_pays_for_nothing_until_a_person_has_said_what_its_call_cost": [{"how": "reconcile"}],
}


async def noticed(witness: str, folder: Path, patch: pytest.MonkeyPatch, seconds: float = SOON) -> bool:
    if witness == "seeds":
        for seed in range(SEEDS):
            found, _ = await money.check(seed, money.MEMORY, seconds=seconds)
            if found:
                return True
        return False
    for number, chosen in enumerate(CASES.get(witness.partition(":")[2], [{}])):
        place = folder / str(number)
        place.mkdir()
        try:
            with anyio.fail_after(seconds):
                await Given(place, patch).play(witness, **chosen)
        except (Exception, pytest.fail.Exception):
            return True
    return False


@pytest.mark.rule("money.balanced", "money.ends", "money.zombie", "money.outlives")
@pytest.mark.parametrize("safeguard", some(SAFEGUARDS, 8), ids=lambda safeguard: safeguard.name)
async def test_a_safeguard_of_money_that_is_gone_is_missed(safeguard: MoneySafeguard, tmp_path, monkeypatch):
    with removed(safeguard):
        assert await noticed(safeguard.witness, tmp_path, monkeypatch)


@pytest.mark.parametrize("safeguard", HIDDEN, ids=lambda safeguard: safeguard.name)
async def test_what_another_safeguard_stands_behind_is_not_missed_alone(safeguard, tmp_path, monkeypatch):
    with removed(safeguard):
        assert not await noticed(safeguard.witness, tmp_path, monkeypatch, PATIENCE)


@pytest.mark.parametrize("witness", sorted({safeguard.witness for safeguard in SAFEGUARDS} - {"seeds"}))
async def test_with_all_of_them_in_place_nothing_is_noticed(witness: str, tmp_path, monkeypatch):
    assert not await noticed(witness, tmp_path, monkeypatch, PATIENCE)


def removed(safeguard: MoneySafeguard) -> ExitStack:
    stack = ExitStack()
    for place, instead in safeguard.patches:
        stack.enter_context(without(place, instead))
    return stack
