"""The last share: when the money of a run is used up, its first task can still pay for an answer."""

from typing import Any

import pytest

from adapters.places import KEY, KEY_NAME, join, priced, served
from engine.helping import sound
from remit import Bounds, Card, Failed, Refused, Runtime, Turn
from remit.errors import BadInput
from remit.settings import Policy
from remit.testing.models import Calls, Says
from teams import team

pytestmark = pytest.mark.anyio


def spending(rt: Runtime, cents: int, **how: Any) -> None:
    """A lead that asks workers until one may not pay, and then pays for its own answer."""

    async def lead(turn: Turn) -> str:
        for number in range(20):
            try:
                await turn.delegate("worker", f"part {number}", **how)
            except (Refused, Failed) as no:
                await turn.spend("$0.04", why="the last answer")
                return f"{number} parts; {no}"
        return "all"

    async def worker(turn: Turn) -> str:
        await turn.spend(f"${cents / 100:.2f}", why=turn.task)
        return turn.task

    rt.add(Card("lead", asks=["worker"]), lead)
    rt.add(Card("worker"), worker)


@pytest.mark.rule("money.last-word")
@pytest.mark.parametrize(
    "how", [{}, {"credits": "$0.02"}, {"within": Bounds(credits="$0.02")}], ids=["shared", "set aside", "cap"]
)
async def test_tasks_below_the_first_leave_it_the_share_that_the_policy_names(how: Any):
    with Runtime(policy=Policy(last_word=Bounds(credits="$0.04"))) as rt:
        spending(rt, 2, **how)
        said = await rt.run("lead", "go", credits="$0.10")
        assert said.startswith("3 parts; ")
        left = "this run has $0.04 left of $0.10 ($0.06 spent, $0.00 set aside)"
        assert f"{left}, of which $0.04 are kept for its last answer" in said
        await sound(rt)


@pytest.mark.rule("money.last-word")
async def test_a_share_is_at_most_half_and_without_money_of_its_own_a_run_keeps_none():
    with Runtime(policy=Policy(last_word=Bounds(credits="$9"))) as rt:
        spending(rt, 2)
        assert (await rt.run("lead", "go", credits="$0.16")).startswith("4 parts; ")
        await rt.workspace.money.grant("$1", why="for all")
        assert await rt.run("lead", "go") == "all"


@pytest.mark.rule("money.last-word")
async def test_a_first_holder_that_asks_no_model_keeps_nothing_unless_told():
    with team() as rt:
        spending(rt, 2)
        with pytest.raises(Failed, match="'lead' may not spend this"):
            await rt.run("lead", "go", credits="$0.10")
    with pytest.raises(BadInput, match="last_word"):
        Policy(last_word="$0.05")  # pyright: ignore[reportArgumentType]


@pytest.mark.rule("money.last-word")
async def test_the_answer_of_a_model_is_kept_for_it_and_it_is_told_when_its_money_ends(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv(KEY_NAME, KEY)
    scripted = [Calls("call_agent", {"agent": "worker", "task": "x"}), Says("found a, b is missing")]
    async with served(scripted) as place, priced() as rt:
        refusals: list[str] = []

        @rt.agent
        async def worker(turn: Turn) -> str:
            try:
                while True:
                    await turn.spend("$0.001", why="work")
            except Refused as no:
                refusals.append(str(no))
                return "partly"

        join(rt, "native", place, asks=["worker"], max_tokens=1_000)
        assert await rt.run("it", "go", credits="$0.02") == "found a, b is missing"
        _, last = place.server.requests
        assert "kept for its last answer" in refusals[0]
        assert "say what is missing" in str(last.messages)
        await sound(rt)
