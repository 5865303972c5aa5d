"""What calls cost by the prices of models, what a key of one's own changes, and how much may be spent in a time."""

from typing import Any

import pytest

from adapters.test_vault import OLD
from bookkeeping import calls, correct, figures
from engine.helping import quiet
from remit import Card, Refused, Runtime, Secret, Turn
from remit.adapters.prices import KnownPrices
from remit.core.limits import Limit
from remit.core.prices import Price, Usage
from remit.settings import Policy, System
from remit.testing import FakeClock

pytestmark = pytest.mark.anyio

CENT = 10_000


# -- prices and keys --------------------------------------------------------------------------------------------


def priced(clock: FakeClock, **policy: Any) -> Runtime:
    prices = KnownPrices({"writer-1": Price(input="$1", output="$10")})
    return Runtime(policy=Policy(**policy), system=System(clock=clock, prices=prices))


@pytest.mark.rule("money.price")
async def test_a_model_is_charged_by_its_price(clock: FakeClock):
    with priced(clock) as rt:

        @rt.agent
        async def writes(turn: Turn) -> None:
            async with turn.paid_call(model="writer-1", usage=Usage(1_000, 2_000)) as call:
                call.report_usage(Usage(900, 100))

        await rt.workspace.money.grant("$1", tokens=10_000)
        await rt.run("writes", "x")
        (_, placed), (_, settled) = await calls(rt)
        assert (placed["amounts"], placed["why"]) == ({"credits": 21_000, "tokens": 3_000}, "writer-1")
        assert settled["costs"] == {"credits": 1_900, "tokens": 1_000}
        await correct(rt)


@pytest.mark.rule("money.price")
async def test_a_price_that_is_not_known_is_refused_or_only_tokens_count(clock: FakeClock):
    async def writes(turn: Turn) -> None:
        async with turn.paid_call(model="nobody-knows", usage=Usage(1_000, 2_000)) as call:
            call.report_usage(Usage(900, 100))

    with priced(clock) as rt:
        rt.add(Card("writes"), writes)
        no = await rt.outcome("writes", "x")
        assert "the price of 'nobody-knows' is not known; name it with System(prices=KnownPrices(" in str(no.error)
    with Runtime(system=System(clock=clock)) as rt:
        rt.add(Card("writes"), writes)
        assert "the price of 'nobody-knows' is not known" in str((await rt.outcome("writes", "x")).error)
    with priced(clock, unknown_price="tokens") as rt:
        rt.add(Card("writes"), writes)
        await rt.workspace.money.grant("$1", tokens=10_000)
        await rt.run("writes", "x")
        assert [data.get("costs") for _, data in await calls(rt)] == [None, {"tokens": 1_000}]
        await correct(rt)


@pytest.mark.rule("money.own-key")
async def test_with_a_key_of_its_own_the_workspace_is_charged_nothing_and_limits_hold(
    clock: FakeClock, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("REMIT_MASTER_KEY", OLD)
    with Runtime(policy=Policy(limits=[Limit("day", credits="$0.10")]), system=System(clock=clock)) as rt:

        @rt.agent
        async def shop(turn: Turn) -> str:
            async with turn.paid_call("$0.05", why="call", provider="openai") as call:
                call.cost("$0.04")
            await turn.spend("$0.03", why="photo", provider="openai")
            with pytest.raises(Refused) as no:
                await turn.spend("$0.04", why="more", provider="openai")
            return str(no.value)

        await rt.workspace.keys.set("openai", Secret("a-key"))
        await rt.workspace.money.grant("$0.01")
        assert await rt.run("shop", "x") == (
            "'shop' may not spend this: $0.04 wanted, and the workspace has used $0.07 of $0.10 a day; go on without it"
        )
        assert await figures(rt) == (CENT, 0, 0)
        assert [data.get("own_key") for _, data in await calls(rt)] == ["openai"] * 3
        await correct(rt)
        await rt.workspace.keys.remove("openai")
        assert "the account has $0.01 left" in str((await rt.outcome("shop", "x")).error)


# -- limits -------------------------------------------------------------------------------------------------------


@pytest.mark.rule("limits.figures", "limits.scopes")
async def test_all_limits_that_something_does_not_fit_are_listed(clock: FakeClock):
    limits = [
        Limit("day", credits="$0.30"),
        Limit("week", credits="$0.20", agent="*"),
        Limit("month", credits="$0.25", session="s"),
        Limit("hour", tokens=1_000),
        Limit("hour", credits="$0.01", agent="another"),
        Limit("hour", credits="$0.01", session="another"),
    ]
    with Runtime(policy=Policy(limits=limits), system=System(clock=clock)) as rt:

        @rt.agent
        async def b(turn: Turn) -> str:
            await turn.spend("$0.15", why="paper")
            with pytest.raises(Refused) as no:
                async with turn.paid_call("$0.20", tokens=1_001, why="print"):
                    pass
            return str(no.value)

        await rt.workspace.money.grant("$0.25")
        assert await rt.run("b", "x", session="s") == (
            "'b' may not pay for this: $0.20 wanted, the account has $0.10 left of $0.25 ($0.15 spent, $0.00 set "
            "aside); $0.20 wanted, and the workspace has used $0.15 of $0.30 a day; "
            "$0.20 wanted, and agent 'b' has used $0.15 of $0.20 a week; "
            "$0.20 wanted, and session 's' has used $0.15 of $0.25 a month; "
            "1,001 tokens wanted, and the workspace has used 0 tokens of 1,000 tokens an hour; "
            "go on without it, or finish"
        )
        await correct(rt)


@pytest.mark.rule("limits.person")
@pytest.mark.parametrize("way", ["spend", "paid_call", "report_tokens"])
async def test_a_limit_of_a_person_holds_in_every_subtask_and_each_way_of_paying(clock: FakeClock, way: str):
    limits = [Limit("day", credits="$0.30", by="*"), Limit("day", tokens=150, by="ann")]
    with Runtime(policy=Policy(limits=limits), system=System(clock=clock)) as rt:

        @rt.agent(asks="*")
        async def lead(turn: Turn) -> str:
            return await turn.delegate("buyer", turn.task)

        @rt.agent
        async def buyer(turn: Turn) -> str:
            try:
                if way == "report_tokens":
                    async with turn.paid_call("$0.01", tokens=60, why="read"):
                        pass
                    await turn.report_tokens(40)
                elif way == "spend":
                    await turn.spend("$0.20", why="paper")
                else:
                    async with turn.paid_call("$0.20", why="print") as call:
                        call.cost("$0.20")
            except Refused as no:
                return str(no)
            return "paid"

        for by in ("ann", "bob"):
            assert await rt.run("lead", "x", by=by) == "paid"
        again = await rt.run("lead", "x", by="ann")
        if way == "report_tokens":
            assert "60 tokens wanted, and person 'ann' has used 100 tokens of 150 tokens a day" in again
            assert await rt.run("lead", "x", by="bob") == "paid"  # the limit on tokens is of ann alone
        else:
            assert "$0.20 wanted, and person 'ann' has used $0.20 of $0.30 a day" in again
            assert await rt.run("lead", "x") == await rt.run("lead", "x") == "paid"  # of nobody in particular
        uses = {str(use.metered): use.used for use in await rt.workspace.money.limits() if use.unit == "credits"}
        spent = {line.name: line.credits for line in (await rt.workspace.money.spend("person")).lines}
        if way != "report_tokens":
            assert uses == {"person 'ann'": 200_000, "person 'bob'": 200_000}
            assert spent == {"": 400_000, "ann": 200_000, "bob": 200_000}
        await correct(rt)


@pytest.mark.rule("limits.person")
async def test_what_is_held_for_a_person_counts_and_what_is_uncertain_stays_theirs(clock: FakeClock):
    with Runtime(policy=Policy(limits=[Limit("day", credits="$0.30", by="*")]), system=System(clock=clock)) as rt:

        @rt.agent
        async def buyer(turn: Turn) -> str:
            async with turn.paid_call("$0.20", why="print"):
                return str((await rt.workspace.money.limits())[0].held)

        assert await rt.run("buyer", "x", by="ann") == "200000"
        [use] = await rt.workspace.money.limits()
        assert (str(use.metered), use.used, use.held) == ("person 'ann'", 200_000, 0)
        [call] = await rt.workspace.money.uncertain()
        await rt.workspace.money.reconcile(call.id, "$0.05")
        [use] = await rt.workspace.money.limits()
        assert (str(use.metered), use.used) == ("person 'ann'", 50_000)
        await correct(rt)
        clock.jump(3_600)
        await rt.workspace.prune(days=0.01)
        [use] = await rt.workspace.money.limits()
        assert (str(use.metered), use.used) == ("person 'ann'", 50_000)
        assert not (await rt.workspace.check()).findings


@pytest.mark.rule("limits.rolling")
@pytest.mark.parametrize(("per", "hours"), [("hour", 1), ("day", 24), ("week", 168), ("month", 720)])
async def test_a_limit_is_free_again_when_its_time_has_passed(clock: FakeClock, per: str, hours: int):
    with Runtime(policy=Policy(limits=[Limit(per, credits="$0.10")]), system=System(clock=clock)) as rt:

        @rt.agent
        async def shop(turn: Turn) -> None:
            await turn.spend("$0.10", why=turn.task)

        await rt.run("shop", "at first")
        clock.jump(hours * 3_600 - 1)
        assert not (await rt.outcome("shop", "too early")).ok
        clock.jump(3_601)
        assert (await rt.outcome("shop", "in time")).ok
        await correct(rt)


@pytest.mark.rule("limits.rolling", "money.waits")
async def test_what_is_held_counts_against_a_limit_and_is_waited_for(clock: FakeClock):
    with Runtime(policy=Policy(limits=[Limit("day", credits="$0.10")]), system=System(clock=clock)) as rt:

        @rt.agent(asks="*")
        async def lead(turn: Turn) -> list[bool]:
            return [one.ok for one in await turn.delegate_all([("shop", f"{number}") for number in range(3)])]

        @rt.agent
        async def shop(turn: Turn) -> None:
            async with turn.paid_call("$0.08", why="call") as call:
                await quiet()
                call.cost("$0.01")

        assert await rt.run("lead", "x") == [True] * 3
        assert clock.ticks() == 0
        await correct(rt)
