"""Bills that are not what was held: overruns, frozen accounts, and calls that someone says the cost of later."""

from typing import Any

import pytest

from bookkeeping import account, correct, figures
from remit import Bounds, Card, Failed, Refused, Runtime, Turn
from remit.errors import BadInput, Conflict, NotFound
from remit.settings import Limit, Policy

pytestmark = pytest.mark.anyio

CENT = 10_000


# -- overruns -----------------------------------------------------------------------------------------------------


async def billed(rt: Runtime, hold: str, cost: str, **how: Any) -> None:
    """One call that costs something else than it holds."""

    async def pays(turn: Turn) -> None:
        async with turn.paid_call(hold, why="call") as call:
            call.cost(cost)

    @rt.agent("lead", asks="*")
    async def lead(turn: Turn) -> None:
        await turn.delegate("pays", "x", **how)

    rt.add(Card("pays"), pays)
    await rt.run("lead", "go", credits="$0.50")


@pytest.mark.rule("money.overrun")
async def test_a_bill_above_its_hold_that_fits_the_lease_hurts_nobody(anywhere: Runtime):
    await anywhere.workspace.money.grant("$1")
    await billed(anywhere, "$0.05", "$0.20")
    assert await figures(anywhere) == (80 * CENT, 0, 20 * CENT)
    lease = await account(anywhere)
    assert (lease.overrun, lease.state) == (0, "open")
    await correct(anywhere)


@pytest.mark.rule("money.overrun")
@pytest.mark.parametrize("how", [{"credits": "$0.10"}, {"within": Bounds(credits="$0.10")}], ids=["aside", "cap"])
@pytest.mark.parametrize("bill", ["$0.11", "$0.70", "$1000"])
async def test_a_bill_beyond_the_lease_stops_at_the_lease(rt: Runtime, how: Any, bill: str):
    await rt.workspace.money.grant("$1")
    await billed(rt, "$0.04", bill, **how)
    assert await figures(rt) == (90 * CENT, 0, 10 * CENT)
    lease = await account(rt)
    assert (lease.overrun, lease.state) == (0, "open")
    [hold] = await rt.workspace.money.uncertain()
    assert (hold.agent, hold.credits) == ("pays", 10 * CENT)
    await correct(rt)


@pytest.mark.rule("money.overrun")
@pytest.mark.parametrize(
    ("bill", "spent"), [("$0.10", 10), ("$0.11", 5), ("$1000", 5)], ids=["as much again", "more", "absurd"]
)
async def test_a_call_that_draws_on_the_account_itself_may_cost_as_much_again(anywhere: Runtime, bill: str, spent: int):
    await anywhere.workspace.money.grant("$1")

    @anywhere.agent
    async def pays(turn: Turn) -> None:
        async with turn.paid_call("$0.05", why="call") as call:
            call.cost(bill)

    await anywhere.run("pays", "x")
    assert await figures(anywhere) == ((100 - spent) * CENT, 0, spent * CENT)
    assert len(await anywhere.workspace.money.uncertain()) == (spent == 5)
    await correct(anywhere)


@pytest.mark.rule("money.overrun")
async def test_a_limit_is_not_used_up_by_a_bill_that_nobody_believes():
    with Runtime(policy=Policy(limits=[Limit("day", credits="$1")])) as rt:

        @rt.agent
        async def pays(turn: Turn) -> None:
            async with turn.paid_call("$0.05", why="call") as call:
                call.cost("$1000")

        await rt.run("pays", "x")

        @rt.agent
        async def other(turn: Turn) -> None:
            await turn.spend("$0.40", why="photo")

        await rt.run("other", "x")
        assert [hold.agent for hold in await rt.workspace.money.uncertain()] == ["pays"]


@pytest.mark.rule("money.overrun")
@pytest.mark.parametrize(("tokens", "believed"), [(900, True), (1_001, False)])
async def test_tokens_of_a_call_that_held_none_count_as_far_as_the_account_has_them(
    rt: Runtime, tokens: int, believed: bool
):
    @rt.agent
    async def pays(turn: Turn) -> None:
        async with turn.paid_call("$0.05", why="call") as call:
            call.cost("$0.04", tokens=tokens)

    await rt.workspace.money.grant("$1", tokens=1_000)
    await rt.run("pays", "x")
    found = (await rt.workspace.money.account()).tokens
    assert found is not None
    assert (found.spent, found.state) == (tokens if believed else 0, "open")
    assert (await rt.workspace.money.uncertain() == []) == believed
    await correct(rt)


async def test_where_nothing_is_limited_a_bill_is_only_counted(rt: Runtime):
    @rt.agent
    async def pays(turn: Turn) -> None:
        async with turn.paid_call("$0.05", why="call") as call:
            call.cost("$1000")

    await rt.run("pays", "x")
    assert await rt.workspace.money.uncertain() == []
    assert (await rt.workspace.money.spend()).total.credits == 1_000_000_000


async def disputed(rt: Runtime) -> str:
    """A call of 'pays' that says $1000 under a lease of $0.10; the agent's next call is refused."""
    await rt.workspace.money.grant("$1")
    await billed(rt, "$0.05", "$1000", credits="$0.10")
    [hold] = await rt.workspace.money.uncertain()
    assert hold.claimed == {"credits": 1_000_000_000}
    for _ in range(2):
        with pytest.raises(Failed, match="'pays' may not pay for this: its money is frozen, because its call for"):
            await rt.run("pays", "x")

    @rt.agent
    async def other(turn: Turn) -> None:
        await turn.spend("$0.01", why="photo")

    await rt.run("other", "x")
    [question] = await rt.workspace.questions.list()
    assert question.text.startswith(
        "'pays' says that its call for 'call' cost $1000.00; $0.05 was held for it, and $0.10 is charged. Until"
    )
    assert question.id == f"q{hold.id}"
    return hold.id


@pytest.mark.rule("money.disputed")
@pytest.mark.parametrize("how", ["reconcile", "answer", "reject"])
async def test_an_agent_pays_for_nothing_until_a_person_has_said_what_its_call_cost(anywhere: Runtime, how: str):
    rt, workspace = anywhere, anywhere.workspace
    hold = await disputed(rt)
    if how == "reconcile":
        await workspace.money.reconcile(hold, "$0.07", why="the bill came", by="ann")
    elif how == "answer":
        for bad in ("a lot", "7", "-$1"):
            with pytest.raises(BadInput):
                await workspace.questions.answer(f"q{hold}", bad, by="ann")
        await workspace.questions.answer(f"q{hold}", "0.07 USD", by="ann")
    else:
        await workspace.questions.reject(f"q{hold}", why="it lies", by="ann")
    assert await workspace.money.uncertain() == []
    assert await workspace.questions.list() == []
    [question] = await workspace.questions.list(decided=True)
    assert question.by == "ann"
    with pytest.raises(Conflict, match="the first answer counts"):
        await workspace.questions.answer(f"q{hold}", "$1")
    cost = 10 if how == "reject" else 7
    assert await figures(rt) == ((99 - cost) * CENT, 0, (1 + cost) * CENT)
    if how != "reconcile":
        with pytest.raises(NotFound, match="there is no uncertain call"):
            await workspace.money.reconcile(hold, "$0.02")
    await correct(rt)
    with rt.override(pays=fair):
        await rt.run("pays", "x")


@pytest.mark.rule("money.overrun", "money.reconcile")
async def test_a_bill_that_a_person_confirms_is_paid_by_what_the_lease_was_taken_from(rt: Runtime):
    hold = await disputed(rt)
    assert await rt.workspace.money.reconcile(hold, "$0.70") == {"credits": -60 * CENT}
    assert await figures(rt) == (29 * CENT, 0, 71 * CENT)
    await correct(rt)


async def fair(turn: Turn) -> None:
    async with turn.paid_call("$0.05", why="fair") as call:
        call.cost("$0.05")


@pytest.mark.rule("money.overrun")
@pytest.mark.parametrize("tokens", [3_000, 1_000_000_000_000])
async def test_tokens_that_an_agent_reports_stop_at_its_lease_too(rt: Runtime, tokens: int):
    @rt.agent
    async def thinks(turn: Turn) -> None:
        await turn.report_tokens(tokens)

    await rt.workspace.money.grant(tokens=10_000)
    no = await rt.outcome("thinks", "x", within=Bounds(tokens=1_000))
    assert f"this run has used {tokens:,} of 1,000 tokens" in str(no.error)
    found = (await rt.workspace.money.account()).tokens
    assert found is not None
    assert (found.spent, found.overrun, found.state) == (1_000, 0, "open")
    [question] = await rt.workspace.questions.list()
    for bad in ("many", "-3", "9" * 13):
        with pytest.raises(BadInput):
            await rt.workspace.questions.answer(question.id, bad)
    await rt.workspace.questions.answer(question.id, "1,500 tokens")
    assert await rt.workspace.money.uncertain() == []
    await correct(rt)


@pytest.mark.rule("money.frozen")
async def test_an_account_that_was_overrun_pays_for_nothing_until_the_owner_unfreezes_it(anywhere: Runtime):
    await uncertain_call(anywhere, "$1")
    assert not await anywhere.workspace.money.unfreeze()
    [hold] = await anywhere.workspace.money.uncertain()
    await anywhere.workspace.money.reconcile(hold.id, "$1.30")
    lease = await account(anywhere)
    assert (lease.available, lease.spent, lease.overrun, lease.state) == (0, 1_000_000, 300_000, "frozen")
    await correct(anywhere)
    await anywhere.workspace.money.grant("$1")
    with pytest.raises(Refused, match=r"the account is frozen, because \$0\.30 more was spent than it had"):
        await anywhere.run("shop", "x")
    assert await anywhere.workspace.money.unfreeze("paid by hand", by="ann")
    await anywhere.run("shop", "x", credits="$0.05")
    await correct(anywhere)


@pytest.mark.rule("money.frozen")
async def test_a_turn_under_way_is_refused_when_the_account_is_frozen(rt: Runtime):
    @rt.agent
    async def shop(turn: Turn) -> str:
        async with turn.paid_call("$0.05", why="call"):
            pass
        [hold] = await rt.workspace.money.uncertain()
        await rt.workspace.money.reconcile(hold.id, "$2")
        await rt.workspace.money.grant("$5")  # however much there is
        with pytest.raises(Refused) as no:
            await turn.spend("$0.01", why="more")
        return str(no.value)

    await rt.workspace.money.grant("$1")
    assert await rt.run("shop", "x") == (
        "'shop' may not spend this: the account is frozen, because $1.00 more was spent than it had; the owner "
        "unfreezes it; go on without it"
    )


@pytest.mark.rule("money.frozen", "money.reconcile")
async def test_a_call_that_turns_out_to_have_cost_more_than_there_is_freezes_the_account_too(rt: Runtime):
    await uncertain_call(rt, "$1")
    [hold] = await rt.workspace.money.uncertain()
    assert await rt.workspace.money.reconcile(hold.id, "$1.50") == {"credits": -1_450_000}
    lease = await account(rt)
    assert (lease.spent, lease.overrun, lease.state) == (1_000_000, 500_000, "frozen")
    await correct(rt)


# -- reconcile ----------------------------------------------------------------------------------------------------


async def uncertain_call(rt: Runtime, granted: str) -> None:
    @rt.agent
    async def shop(turn: Turn) -> None:
        async with turn.paid_call("$0.05", why="call"):
            pass

    await rt.workspace.money.grant(granted, tokens=1_000)
    await rt.run("shop", "x")


@pytest.mark.rule("money.reconcile")
async def test_what_was_charged_too_much_goes_back_to_the_account_once(anywhere: Runtime):
    await uncertain_call(anywhere, "$1")
    [hold] = await anywhere.workspace.money.uncertain()
    for bad in ((), ("1",), (True,)):
        with pytest.raises(BadInput):
            await anywhere.workspace.money.reconcile(hold.id, *bad)  # pyright: ignore[reportArgumentType]
    with pytest.raises(NotFound, match="there is no uncertain call 'nothing'"):
        await anywhere.workspace.money.reconcile("nothing", "$1")
    assert await anywhere.workspace.money.reconcile(hold.id, "$0.01", why="the bill came", by="ann") == {
        "credits": 4 * CENT
    }
    with pytest.raises(Conflict, match="was reconciled already"):  # the first word counts
        await anywhere.workspace.money.reconcile(hold.id, "$0.04")
    assert await figures(anywhere) == (99 * CENT, 0, CENT)
    assert await anywhere.workspace.money.uncertain() == []
    await correct(anywhere)


@pytest.mark.rule("money.reconcile")
async def test_a_call_is_reconciled_in_a_unit_that_it_did_not_hold(rt: Runtime):
    await uncertain_call(rt, "$1")
    [hold] = await rt.workspace.money.uncertain()
    assert await rt.workspace.money.reconcile(hold.id, tokens=700) == {"credits": 0, "tokens": -700}
    tokens = (await rt.workspace.money.account()).tokens
    assert tokens is not None
    assert tokens.spent == 700
    await correct(rt)


@pytest.mark.rule("money.reconcile", "money.ends")
async def test_a_lease_that_is_still_open_gets_it_back_and_the_next_call_still_ends_with_the_task(rt: Runtime):
    seen: list[int] = []

    @rt.agent
    async def shop(turn: Turn) -> None:
        async with turn.paid_call("$0.05", why="first"):
            pass
        [hold] = await rt.workspace.money.uncertain()
        async with turn.paid_call("$0.01", why="under way") as call:
            call.not_sent()
            with pytest.raises(Conflict, match="it can be reconciled once it is uncertain"):
                await rt.workspace.money.reconcile(call.hold, "$0.01")
        await rt.workspace.money.reconcile(hold.id, "$0.02")
        leases = {lease.kind: lease for lease in await rt.workspace.money.leases()}
        seen.extend([leases["carve"].spent, leases["carve"].available, leases["account"].spent])
        await turn.paid_call("$0.04", why="left behind").__aenter__()

    await rt.workspace.money.grant("$1")
    await rt.run("shop", "x", credits="$0.10")
    assert seen == [2 * CENT, 8 * CENT, 0]
    assert await figures(rt) == (94 * CENT, 0, 6 * CENT)
    await correct(rt)
