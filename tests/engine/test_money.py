"""Who may spend how much: the account, and the three words share, cap and set aside."""

from collections.abc import Callable
from typing import Any

import anyio
import pytest

from bookkeeping import correct, figures
from engine.helping import PATIENCE, happened, quiet
from remit import Bounds, Card, Outcome, Refused, Runtime, Turn
from remit.errors import BadInput
from remit.testing import FakeClock, pass_time
from teams import echo, team

pytestmark = pytest.mark.anyio

CENT = 10_000


def buyer(hold: str = "$0.10", cost: str = "$0.05") -> Callable[[Turn], Any]:
    """An agent that makes one call."""

    async def buy(turn: Turn) -> str:
        async with turn.paid_call(hold, why="a call") as call:
            await anyio.lowlevel.checkpoint()
            call.cost(cost)
        return "bought"

    return buy


# -- the account ----------------------------------------------------------------------------------------------------


@pytest.mark.rule("money.account")
async def test_without_an_account_money_is_only_counted(anywhere: Runtime):
    anywhere.add(Card("buyer"), buyer("$1000", "$999"))
    assert await anywhere.run("buyer", "go") == "bought"
    assert await anywhere.workspace.money.account() == (None, None)
    assert (await anywhere.workspace.tasks.runs())[0].facts.credits == 999_000_000
    await correct(anywhere)


@pytest.mark.rule("money.account", "money.leaves")
async def test_from_the_first_grant_on_nothing_is_spent_that_is_not_there(anywhere: Runtime):
    anywhere.add(Card("buyer"), buyer())
    assert (await anywhere.workspace.money.grant("$0.15", why="November", by="ann")).tokens is None
    assert await anywhere.run("buyer", "go") == "bought"
    assert await anywhere.run("buyer", "go") == "bought"
    no = await anywhere.outcome("buyer", "go")
    assert str(no.error).endswith(
        "'buyer' may not pay for this: $0.10 wanted, the account has $0.05 left of $0.15 ($0.10 spent, $0.00 set "
        "aside); go on without it, or finish"
    )
    await anywhere.workspace.money.grant("$0.05")
    assert await anywhere.run("buyer", "go") == "bought"
    assert await figures(anywhere) == (5 * CENT, 0, 15 * CENT)
    await correct(anywhere)


@pytest.mark.rule("money.exact")
async def test_exactly_what_is_there_may_be_held_spent_and_set_aside(rt: Runtime):
    @rt.agent(asks="*")
    async def lead(turn: Turn) -> str:
        return await turn.delegate("buyer", "x", credits="$0.10")

    rt.add(Card("buyer"), buyer("$0.10", "$0.10"))
    await rt.workspace.money.grant("$0.10")
    assert await rt.run("lead", "go", credits="$0.10") == "bought"
    assert await figures(rt) == (0, 0, 10 * CENT)
    await correct(rt)


@pytest.mark.rule("money.figures")
async def test_when_all_is_spent_nobody_is_asked_any_more(rt: Runtime):
    rt.add(Card("buyer"), buyer("$0.10", "$0.10"))
    await rt.workspace.money.grant("$0.10")
    await rt.run("buyer", "go")
    with pytest.raises(Refused, match=r"the account has used \$0\.10 of \$0\.10; 'buyer' was not asked") as no:
        await rt.run("buyer", "go")
    assert no.value.rule == "credits"
    with pytest.raises(Refused, match="was not asked"):
        await rt.submit("buyer", "go")


@pytest.mark.rule("money.account")
async def test_a_run_with_credits_of_its_own_takes_them_out_of_the_account_or_out_of_nothing(rt: Runtime):
    rt.add(Card("buyer"), buyer())
    rt.add(Card("twice"), _two_cents)
    no = await rt.outcome("twice", "go", credits="$0.04")  # there is no account yet
    assert "this run has $0.02 left of $0.04 ($0.02 spent, $0.00 set aside)" in str(no.error)
    await rt.workspace.money.grant("$1")
    assert await rt.run("buyer", "go", credits="$0.30") == "bought"
    with pytest.raises(Refused) as no:
        await rt.run("buyer", "go", credits="$2")
    assert str(no.value) == (
        "'buyer' was not asked: $2.00 wanted, the account has $0.95 left of $1.00 ($0.05 spent, $0.00 set aside); "
        "give it less, or finish with what you have"
    )
    assert await figures(rt) == (95 * CENT, 0, 5 * CENT)


def _is_there(found: list[Outcome]) -> Callable[[], Any]:
    async def look() -> bool:
        return bool(found)

    return look


async def _two_cents(turn: Turn) -> None:
    await turn.spend("$0.02", why="a stamp")
    await turn.spend("$0.03", why="a letter")


@pytest.mark.rule("money.account")
async def test_grants_are_made_once_under_one_key_and_say_what_they_are(rt: Runtime):
    for _ in range(2):
        await rt.workspace.money.grant("$1", tokens=500, why="November", op="11", by="ann")
    account = await rt.workspace.money.account()
    assert account.credits is not None
    assert account.tokens is not None
    assert (account.credits.granted, account.tokens.granted) == (1_000_000, 500)
    for bad in ({}, {"tokens": -1}):
        with pytest.raises(BadInput):
            await rt.workspace.money.grant(**bad)
    for amount in ("1", 1, True, "-$1", 0, float("nan")):
        with pytest.raises(BadInput):
            await rt.workspace.money.grant(amount)  # pyright: ignore[reportArgumentType]


# -- three words ----------------------------------------------------------------------------------------------------


@pytest.mark.rule("money.three-words")
async def test_nothing_said_shares_a_bound_limits_and_credits_are_set_aside(anywhere: Runtime):
    seen: dict[str, list[tuple[str, int, int]]] = {}

    async def look(turn: Turn) -> None:
        await turn.spend("$0.01", why=turn.task)
        leases = await anywhere.workspace.money.leases()
        seen[turn.task] = [(lease.kind, lease.available, lease.lent) for lease in leases]

    @anywhere.agent(asks="*")
    async def lead(turn: Turn) -> None:
        await turn.delegate("look", "share")
        await turn.delegate("look", "cap", within=Bounds(credits="$0.20"))
        await turn.delegate("look", "aside", credits="$0.20")

    anywhere.add(Card("look"), look)
    await anywhere.workspace.money.grant("$1")
    await anywhere.run("lead", "go")
    assert {name: sorted(rows) for name, rows in seen.items()} == {
        "share": [("account", 99 * CENT, 0)],
        "cap": [("account", 98 * CENT, 0), ("cap", 19 * CENT, 0)],
        "aside": [("account", 78 * CENT, 20 * CENT), ("carve", 19 * CENT, 0)],
    }
    assert await figures(anywhere) == (97 * CENT, 0, 3 * CENT)
    await correct(anywhere)


@pytest.mark.rule("money.three-words", "money.figures")
async def test_what_is_set_aside_is_guaranteed_and_refused_at_once_with_all_figures(rt: Runtime):
    @rt.agent(asks="*")
    async def lead(turn: Turn) -> list[str]:
        rest: list[str] = []
        async with anyio.create_task_group() as group:
            group.start_soon(turn.delegate, "waits", "x")
            await happened(inside)
            with pytest.raises(Refused) as no:
                await turn.delegate("buyer", "x", credits="$0.20")
            rest.append(str(no.value))
            rest.append(await turn.delegate("buyer", "x", credits="$0.10"))
            go.set()
        return rest

    inside, go = anyio.Event(), anyio.Event()

    async def waits(turn: Turn) -> None:
        async with turn.paid_call("$0.40", why="a call") as call:
            inside.set()
            await happened(go)
            call.not_sent()

    rt.add(Card("buyer"), buyer())
    rt.add(Card("waits"), waits)
    await rt.workspace.money.grant("$1")
    refused, bought = await rt.run("lead", "go", credits="$0.50")
    assert bought == "bought"
    assert refused == (
        "'buyer' was not asked: $0.20 wanted, this run has $0.10 left of $0.50 ($0.00 spent, $0.40 set aside); "
        "give it less, or finish with what you have"
    )
    assert (await rt.workspace.stats()).refused_credits == 20 * CENT
    await correct(rt)


@pytest.mark.rule("money.three-words")
async def test_a_cap_in_a_cap_and_a_share_set_aside_below_one_each_hold(rt: Runtime):
    said: list[str] = []

    async def spends(turn: Turn) -> None:
        try:
            await turn.spend("$0.15", why="paper")
        except Refused as no:
            said.append(str(no))

    @rt.agent(asks="*")
    async def middle(turn: Turn) -> None:
        await turn.delegate("spends", "x", within=Bounds(credits="$0.10"))
        await turn.spend("$0.06", why="ink")
        await turn.delegate("spends", "y", credits="$0.14")

    @rt.agent(asks="*")
    async def lead(turn: Turn) -> None:
        await turn.delegate("middle", "x", within=Bounds(credits="$0.20"))

    rt.add(Card("spends"), spends)
    await rt.workspace.money.grant("$1")
    await rt.run("lead", "go", credits="$0.90")
    assert said == [
        f"'spends' may not spend this: $0.15 wanted, {what} ($0.00 spent, $0.00 set aside); go on without it"
        for what in ("this part of the run has $0.10 left of $0.10", "this task has $0.14 left of $0.14")
    ]
    assert await figures(rt) == (94 * CENT, 0, 6 * CENT)
    await correct(rt)


# -- eight at once --------------------------------------------------------------------------------------------------


async def eight(rt: Runtime, given: str, how: dict[str, Any]) -> list[Outcome]:
    """Eight calls in parallel, each of which holds $0.10 and costs $0.05. They settle one after the other."""
    turns = anyio.Lock()

    async def call(turn: Turn) -> str:
        async with turn.paid_call("$0.10", why="a call") as paid:
            async with turns:
                await quiet()
            paid.cost("$0.05")
        return "done"

    @rt.agent(asks="*")
    async def lead(turn: Turn) -> list[Outcome]:
        found.extend(await turn.delegate_all([("call", f"part {number}") for number in range(8)], **how))
        return []

    found: list[Outcome] = []
    rt.add(Card("call"), call)
    await rt.workspace.money.grant("$10")
    await rt.run("lead", "go", credits=given)
    await correct(rt)
    return found


@pytest.mark.rule("money.waits")
@pytest.mark.parametrize(
    ("given", "how", "done"),
    [
        ("$0.50", {}, 8),  # they share, and wait for what the others hold
        ("$0.50", {"credits": "$0.10"}, 5),
        ("$0.50", {"credits": "$0.0625"}, 0),
        ("$0.50", {"within": Bounds(credits="$0.10")}, 8),
        ("$0.20", {}, 3),  # the fourth could never be paid
    ],
    ids=["share", "aside", "an eighth", "cap", "too little"],
)
async def test_eight_at_once(clock: FakeClock, given: str, how: dict[str, Any], done: int):
    with team(clock=clock) as rt:
        found = await eight(rt, given, how)
        assert sum(outcome.ok for outcome in found) == done
        assert (await figures(rt))[2] == done * 5 * CENT
        assert clock.ticks() == 0, "nobody waited until time was up"


@pytest.mark.rule("money.waits")
@pytest.mark.parametrize("store", ["file", "postgres"])
async def test_eight_that_share_all_get_their_turn_though_several_are_woken_at_once(request, tmp_path, store: str):
    with team(tmp_path / "team.db" if store == "file" else request.getfixturevalue("address")) as rt:
        found = await eight(rt, "$0.50", {})
        assert all(outcome.ok for outcome in found)


@pytest.mark.rule("money.waits")
async def test_who_waits_in_vain_is_refused_with_the_figures_when_time_is_up(rt: Runtime, clock: FakeClock):
    inside, go = anyio.Event(), anyio.Event()

    @rt.agent
    async def holds(turn: Turn) -> None:
        async with turn.paid_call("$0.08", why="a long call") as call:
            inside.set()
            await happened(go)
            call.cost("$0.08")

    rt.add(Card("buyer"), buyer())
    await rt.workspace.money.grant("$0.10")
    found: list[Outcome] = []

    async def buys() -> None:
        found.append(await rt.outcome("buyer", "x"))
        go.set()

    async with anyio.create_task_group() as group:
        group.start_soon(rt.run, "holds", "x")
        await happened(inside)
        group.start_soon(buys)
        await quiet()
        assert found == []
        await pass_time(clock, _is_there(found), step=5)
    assert "$0.10 wanted, the account has $0.02 left of $0.10 ($0.00 spent, $0.08 set aside)" in str(found[0].error)
    await correct(rt)


@pytest.mark.rule("money.waits")
async def test_nobody_waits_for_what_it_holds_itself(rt: Runtime, clock: FakeClock):
    @rt.agent
    async def twice(turn: Turn) -> str:
        async with turn.paid_call("$0.06", why="one") as call:
            with pytest.raises(Refused, match=r"\$0\.06 wanted, the account has \$0\.04 left") as no:
                await turn.paid_call("$0.06", why="two").__aenter__()
            call.not_sent()
        return no.value.rule

    await rt.workspace.money.grant("$0.10")
    with anyio.fail_after(PATIENCE):
        assert await rt.run("twice", "x") == "credits"
    assert clock.ticks() == 0


# -- several at once ------------------------------------------------------------------------------------------------


@pytest.mark.rule("money.batch")
@pytest.mark.parametrize("unit", ["credits", "tokens"])
async def test_a_batch_is_judged_whole_however_quick_its_first_is(anywhere: Runtime, unit: str):
    """Set aside is as much as there is: one runs, though it gives all of it back at once."""

    @anywhere.agent(asks="*")
    async def lead(turn: Turn) -> list[str]:
        told = await turn.delegate_all([("quick", f"part {number}") for number in range(8)], credits="$0.20")
        return [outcome.state if outcome.ok else str(outcome.error) for outcome in told]

    anywhere.add(Card("quick"), echo)
    await anywhere.workspace.money.grant("$1", tokens=1_000)
    found = await anywhere.run("lead", "go", credits="$0.20")
    refused = (
        "'quick' was not asked: $0.20 wanted, this run has $0.00 left of $0.20 ($0.00 spent, $0.20 set aside); "
        "give it less, or finish with what you have"
    )
    assert sorted(found) == [*[refused] * 7, "completed"]
    await correct(anywhere)
