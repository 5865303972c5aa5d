"""Bills that are not what was held: overruns, frozen accounts, and calls that someone says the cost of later."""

from typing import Any

import pytest

from bookkeeping import account, correct, figures
from remit import Bounds, Card, Refused, Runtime, Turn
from remit.errors import BadInput, Conflict, NotFound

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
    await anywhere.workspace.grant("$1")
    await billed(anywhere, "$0.05", "$0.20")
    assert await figures(anywhere) == (80 * CENT, 0, 20 * CENT)
    lease = await account(anywhere)
    assert (lease.overrun, lease.state) == (0, "open")
    await correct(anywhere)


@pytest.mark.rule("money.overrun")
@pytest.mark.parametrize("how", [{"credits": "$0.10"}, {"within": Bounds(credits="$0.10")}], ids=["aside", "cap"])
async def test_a_bill_beyond_the_lease_is_paid_by_what_it_was_taken_from(rt: Runtime, how: Any):
    await rt.workspace.grant("$1")
    await billed(rt, "$0.10", "$0.70", **how)  # more than the lease of the run has, too
    assert await figures(rt) == (30 * CENT, 0, 70 * CENT)
    assert (await account(rt)).state == "open"
    await correct(rt)


@pytest.mark.rule("money.frozen", "money.overrun")
async def test_what_is_nowhere_freezes_the_account_until_the_owner_unfreezes_it(anywhere: Runtime):
    await anywhere.workspace.grant("$1")
    assert not await anywhere.workspace.unfreeze()
    await billed(anywhere, "$0.05", "$1.30", credits="$0.10")
    lease = await account(anywhere)
    assert (lease.available, lease.spent, lease.overrun, lease.state) == (0, 1_000_000, 300_000, "frozen")
    await correct(anywhere)
    await anywhere.workspace.grant("$1")
    with pytest.raises(Refused, match=r"the account is frozen, because \$0\.30 more was spent than it had"):
        await anywhere.run("pays", "x")
    assert await anywhere.workspace.unfreeze("paid by hand", by="ann")
    await anywhere.run("pays", "x", credits="$0.05")
    await correct(anywhere)


@pytest.mark.rule("money.frozen")
async def test_a_turn_under_way_is_refused_when_the_account_is_frozen(rt: Runtime):
    @rt.agent
    async def shop(turn: Turn) -> str:
        async with turn.paid_call("$0.05", why="call") as call:
            call.cost("$2")
        await rt.workspace.grant("$5")  # however much there is
        with pytest.raises(Refused) as no:
            await turn.spend("$0.01", why="more")
        return str(no.value)

    await rt.workspace.grant("$1")
    assert await rt.run("shop", "x") == (
        "'shop' may not spend this: the account is frozen, because $1.00 more was spent than it had; the owner "
        "unfreezes it; go on without it"
    )


@pytest.mark.rule("money.frozen", "money.reconcile")
async def test_a_call_that_turns_out_to_have_cost_more_than_there_is_freezes_the_account_too(rt: Runtime):
    await uncertain_call(rt, "$1")
    [hold] = await rt.workspace.uncertain()
    assert await rt.workspace.reconcile(hold.id, "$1.50") == {"credits": -1_450_000}
    lease = await account(rt)
    assert (lease.spent, lease.overrun, lease.state) == (1_000_000, 500_000, "frozen")
    await correct(rt)


# -- reconcile ----------------------------------------------------------------------------------------------------


async def uncertain_call(rt: Runtime, granted: str) -> None:
    @rt.agent
    async def shop(turn: Turn) -> None:
        async with turn.paid_call("$0.05", why="call"):
            pass

    await rt.workspace.grant(granted, tokens=1_000)
    await rt.run("shop", "x")


@pytest.mark.rule("money.reconcile")
async def test_what_was_charged_too_much_goes_back_to_the_account_once(anywhere: Runtime):
    await uncertain_call(anywhere, "$1")
    [hold] = await anywhere.workspace.uncertain()
    for bad in ((), ("1",), (True,)):
        with pytest.raises(BadInput):
            await anywhere.workspace.reconcile(hold.id, *bad)  # pyright: ignore[reportArgumentType]
    with pytest.raises(NotFound, match="there is no uncertain call 'nothing'"):
        await anywhere.workspace.reconcile("nothing", "$1")
    assert await anywhere.workspace.reconcile(hold.id, "$0.01", why="the bill came", by="ann") == {"credits": 4 * CENT}
    with pytest.raises(Conflict, match="was reconciled already"):  # the first word counts
        await anywhere.workspace.reconcile(hold.id, "$0.04")
    assert await figures(anywhere) == (99 * CENT, 0, CENT)
    assert await anywhere.workspace.uncertain() == []
    await correct(anywhere)


@pytest.mark.rule("money.reconcile")
async def test_a_call_is_reconciled_in_a_unit_that_it_did_not_hold(rt: Runtime):
    await uncertain_call(rt, "$1")
    [hold] = await rt.workspace.uncertain()
    assert await rt.workspace.reconcile(hold.id, tokens=700) == {"credits": 0, "tokens": -700}
    tokens = (await rt.workspace.account()).tokens
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
        [hold] = await rt.workspace.uncertain()
        async with turn.paid_call("$0.01", why="under way") as call:
            call.not_sent()
            with pytest.raises(Conflict, match="it can be reconciled once it is uncertain"):
                await rt.workspace.reconcile(call.hold, "$0.01")
        await rt.workspace.reconcile(hold.id, "$0.02")
        leases = {lease.kind: lease for lease in await rt.workspace.leases()}
        seen.extend([leases["carve"].spent, leases["carve"].available, leases["account"].spent])
        await turn.paid_call("$0.04", why="left behind").__aenter__()

    await rt.workspace.grant("$1")
    await rt.run("shop", "x", credits="$0.10")
    assert seen == [2 * CENT, 8 * CENT, 0]
    assert await figures(rt) == (94 * CENT, 0, 6 * CENT)
    await correct(rt)
