"""Every way in which a task ends or is taken away: its calls end with it, and its lease gives back what is left."""

from typing import Any

import anyio
import pytest

from bookkeeping import account, calls, correct, figures, told
from engine.helping import PATIENCE, Shaky, doomed, ends, found, happened, sound, take_over
from remit import Bounds, Card, Command, Refused, Runtime, Task, Turn
from remit.core.times import DAY
from remit.errors import BadInput
from remit.ports import View
from remit.testing import FakeClock
from teams import echo, team

pytestmark = pytest.mark.anyio

CENT = 10_000
_WORDS = ["share", "aside", "cap"]


class Caller:
    """An agent with a call that is only held and one that has left, and then an end."""

    def __init__(self, how: str) -> None:
        self.how = how
        self.inside = anyio.Event()

    async def __call__(self, turn: Turn) -> str:
        await turn.paid_call("$0.10", why="held", start=False).__aenter__()
        await turn.paid_call("$0.20", why="left").__aenter__()
        async with turn.paid_call("$0.10", why="settled") as call:
            call.cost("$0.05")
        self.inside.set()
        if self.how == "failed":
            raise ValueError("no")
        if self.how == "retried":
            self.how = "completed"
            raise Shaky
        if self.how != "completed":
            await anyio.sleep_forever()
        return "done"


@pytest.mark.rule("money.ends")
@pytest.mark.parametrize("how", ["completed", "failed", "timed out", "cancelled", "retried"])
@pytest.mark.parametrize("lease", [{}, {"credits": "$1.50"}, {"within": Bounds(credits="$1.50")}], ids=_WORDS)
async def test_however_a_task_ends_what_was_held_is_released_and_what_left_is_charged(
    rt: Runtime, clock: FakeClock, how: str, lease: dict[str, Any]
):
    caller = Caller(how)
    rt.add(Card("caller"), caller)
    await rt.workspace.money.grant("$2")
    task = await rt.submit("caller", "x", timeout=30, **lease)
    await happened(caller.inside)
    if how == "cancelled":
        await task.cancel()
    outcome = await ends(clock, task)
    assert outcome.state == {"timed out": "dead", "retried": "completed"}.get(how, how)
    tries = (await told(rt)).count("placed") // 3
    assert tries == {"retried": 2, "timed out": 4}.get(how, 1)
    assert await figures(rt) == ((200 - 25 * tries) * CENT, 0, 25 * tries * CENT)
    assert [hold.why for hold in await rt.workspace.money.uncertain()] == ["left"] * tries
    await correct(rt)


@pytest.mark.rule("money.ends")
async def test_a_cancelled_tree_returns_all_that_was_set_aside_in_it(anywhere: Runtime):
    inside = anyio.Event()

    async def middle(turn: Turn) -> None:
        async with anyio.create_task_group() as group:
            for number in range(2):
                group.start_soon(lambda n=number: turn.delegate("leaf", f"{turn.task} {n}", credits="$0.10"))

    working: list[str] = []

    async def leaf(turn: Turn) -> None:
        await turn.paid_call("$0.04", why="left").__aenter__()
        await turn.paid_call("$0.04", why="held", start=False).__aenter__()
        working.append(turn.task)
        if len(working) == 4:
            inside.set()
        await anyio.sleep_forever()

    @anywhere.agent(asks="*")
    async def lead(turn: Turn) -> None:
        await turn.delegate_all([("middle", "a"), ("middle", "b")], credits="$0.30")

    anywhere.add(Card("middle", asks="*"), middle)
    anywhere.add(Card("leaf"), leaf)
    await anywhere.workspace.money.grant("$2")
    task = await anywhere.submit("lead", "x", credits="$1")
    await happened(inside)
    assert len(await anywhere.workspace.money.leases()) == 8
    await task.cancel()
    assert (await task.wait(PATIENCE)).state == "cancelled"
    await _no_open_tasks(anywhere)
    assert await figures(anywhere) == (184 * CENT, 0, 16 * CENT)
    await correct(anywhere)


async def _no_open_tasks(rt: Runtime) -> None:
    def look(view: View) -> bool | None:
        return all(row["ended"] is not None for row in view.tables()["task"].values()) or None

    await found(rt, look)


@pytest.mark.rule("money.ends", "money.batch")
async def test_the_end_of_an_asker_ends_what_it_does_not_wait_for_any_more(rt: Runtime):
    """In one transaction: the asker's lease waits for those that were taken out of it."""
    inside = anyio.Event()

    async def slow(turn: Turn) -> None:
        await turn.paid_call("$0.02", why="left").__aenter__()
        inside.set()
        await anyio.sleep_forever()

    @rt.agent(asks="*")
    async def lead(turn: Turn) -> str:
        async with anyio.create_task_group() as group:
            group.start_soon(lambda: turn.delegate("slow", "x", credits="$0.10"))
            await happened(inside)
            group.cancel_scope.cancel()
        return "without it"

    rt.add(Card("slow"), slow)
    await rt.workspace.money.grant("$1")
    assert await rt.run("lead", "x", credits="$0.50") == "without it"
    await _no_open_tasks(rt)
    assert await figures(rt) == (98 * CENT, 0, 2 * CENT)
    await correct(rt)


# -- a process that is gone -----------------------------------------------------------------------------------------


@pytest.mark.rule("money.zombie", "money.ends")
@pytest.mark.parametrize("sibling", [True, False])
async def test_after_a_takeover_the_dead_settle_and_pay_nothing(tmp_path, clock: FakeClock, sibling: bool):
    """The call is charged once, uncertain. With another call of the same lease open no check of the table hides it."""
    inside, go, left, over = anyio.Event(), anyio.Event(), anyio.Event(), anyio.Event()
    rules: list[str] = []

    async def lives_on(turn: Turn) -> None:
        await turn.paid_call("$0.03", why="only held", start=False).__aenter__()
        async with turn.paid_call("$0.10", why="call") as call:
            inside.set()
            with anyio.CancelScope(shield=True):
                await go.wait()
            call.cost("$0.01")
        for verb in (
            lambda: turn.spend("$0.07", why="from the grave"),
            lambda: turn.paid_call("$0.01", why="from the grave").__aenter__(),
            lambda: turn.once("x", lambda: 1, estimate="$0.01"),
            lambda: turn.report_tokens(5),
        ):
            try:
                await verb()
            except Refused as no:
                rules.append(no.rule)
        left.set()

    async def takes_over(turn: Turn) -> str:
        if sibling:
            async with turn.paid_call("$0.10", why="call") as call:
                go.set()
                await happened(left)
                call.cost("$0.04")
        else:
            go.set()
            await happened(left)
        over.set()
        return "done"

    with doomed(tmp_path / "team.db", clock) as dead, team(tmp_path / "team.db", clock=clock) as heir:
        dead.add(Card("shop"), lives_on)
        heir.add(Card("shop"), takes_over)
        await heir.workspace.money.grant("$1", tokens=100)
        task = await dead.submit("shop", "go", credits="$0.30")
        await happened(inside)
        await take_over(heir, clock, dead)
        assert await heir.workspace.tasks.get(task.id).result(PATIENCE) == "done"
        assert rules == ["over"] * 4
        became = [data for kind, data in await calls(heir) if kind != "placed"]
        ended = [(data["why"], data.get("costs"), data.get("uncertain")) for data in became]
        lost = [("only held", None, None), ("call", {"credits": 10 * CENT}, True)]
        assert sorted(ended[:2], key=str) == sorted(lost, key=str)
        assert ended[2:] == ([("call", {"credits": 4 * CENT}, None)] if sibling else [])
        assert (await figures(heir))[2] == (14 if sibling else 10) * CENT
        await correct(heir)


# -- what outlives --------------------------------------------------------------------------------------------------


@pytest.mark.rule("money.outlives")
@pytest.mark.parametrize("verb", ["spawn", "submit"])
@pytest.mark.parametrize(
    "lease",
    [{}, {"within": Bounds(credits="$0.20")}, {"credits": "$0.20"}, {"within": Bounds(tokens=50)}],
    ids=["share", "cap", "aside", "tokens"],
)
async def test_what_outlives_its_asker_and_its_run_keeps_the_lease_open_and_gives_it_back(
    anywhere: Runtime, clock: FakeClock, verb: str, lease: dict[str, Any]
):
    go, inside = anyio.Event(), anyio.Event()

    async def later(turn: Turn) -> str:
        inside.set()
        await go.wait()
        async with turn.paid_call("$0.10", tokens=10, why="late") as call:
            call.cost("$0.05", tokens=5)
        return "late"

    @anywhere.agent(asks="*")
    async def middle(turn: Turn) -> None:
        await getattr(turn, verb)("later", "x", **lease)
        await turn.spend("$0.03", why="now")

    @anywhere.agent(asks="*")
    async def lead(turn: Turn) -> None:
        await turn.delegate("middle", "x", credits="$0.40")

    anywhere.add(Card("later"), later)
    await anywhere.workspace.money.grant("$1", tokens=1_000)
    await anywhere.run("lead", "x", credits="$0.60")
    await happened(inside)
    assert [row.state for row in await anywhere.workspace.money.leases() if row.kind == "carve"].count("closing") >= 2
    assert await figures(anywhere) == (40 * CENT, 60 * CENT, 0)
    go.set()
    await _no_open_tasks(anywhere)
    assert await figures(anywhere) == (92 * CENT, 0, 8 * CENT)
    await correct(anywhere)
    clock.advance(40 * DAY / 1_000_000)
    assert await anywhere.workspace.prune(30) == 1
    assert await figures(anywhere) == (92 * CENT, 0, 8 * CENT)
    await sound(anywhere)


@pytest.mark.rule("money.handoff", "money.outlives")
@pytest.mark.parametrize("verb", ["run", "spawn"])
async def test_a_handoff_keeps_the_lease_and_a_narrower_bound_limits_it_from_then_on(rt: Runtime, verb: str):
    said: list[str] = []

    @rt.agent(asks="*")
    async def first(turn: Turn) -> Command:
        await turn.spend("$0.02", why="a")
        return Command("second", {"phase": "b"}, within=Bounds(credits="$0.10"))

    async def second(turn: Turn) -> str:
        await turn.spend("$0.03", why="b")
        try:
            await turn.spend("$0.08", why="c")
        except Refused as no:
            said.append(str(no))
        return "done"

    @rt.agent(asks="*")
    async def lead(turn: Turn) -> None:
        await turn.spawn("first", "x")

    rt.add(Card("second"), second)
    await rt.workspace.money.grant("$1")
    await rt.run("first" if verb == "run" else "lead", "x", credits="$0.50")
    await _no_open_tasks(rt)
    [sentence] = said
    assert "$0.08 wanted, this part of the run has $0.07 left of $0.10 ($0.03 spent, $0.00 set aside)" in sentence
    events = await rt.workspace.journal.history(kinds=frozenset(("credits.spent",)))
    spent = [(event.agent, event.data["why"]) for event in events]
    assert spent == [("first", "a"), ("second", "b")]
    assert await figures(rt) == (95 * CENT, 0, 5 * CENT)
    await correct(rt)


# -- by hand --------------------------------------------------------------------------------------------------------


@pytest.mark.rule("money.retry", "money.once")
async def test_a_task_that_is_retried_by_hand_gets_a_lease_of_its_own_again(anywhere: Runtime):
    tried: list[int] = []

    async def coder(turn: Turn) -> str:
        await turn.spend("$0.05", why="paper")
        tried.append(1)
        if len(tried) == 1:
            raise ValueError("no")
        leases = [(lease.kind, lease.granted, lease.available) for lease in await anywhere.workspace.money.leases()]
        assert ("carve", 20 * CENT, 20 * CENT) in leases
        await happened(seen)
        await turn.spend("$0.05", why="ink")
        return "done"

    @anywhere.agent(asks="*")
    async def lead(turn: Turn) -> str:
        failed = await turn.submit("coder", "x", credits="$0.20", attempts=1)
        assert (await failed.wait(PATIENCE)).state == "failed"
        children.append(failed)
        inside.set()
        await happened(go)
        return "ok"

    children: list[Task] = []
    inside, seen, go = anyio.Event(), anyio.Event(), anyio.Event()
    anywhere.add(Card("coder"), coder)
    await anywhere.workspace.money.grant("$1")
    root = await anywhere.submit("lead", "x", credits="$0.50")
    await happened(inside)
    again = await anywhere.workspace.tasks.get(children[0].id).retry()
    leases = {lease.id: lease for lease in await anywhere.workspace.money.leases()}
    assert leases[again.id].above == (root.id,)  # its asker is still at work
    seen.set()
    assert await again.result(PATIENCE) == "done"
    go.set()
    await root.result(PATIENCE)
    assert await figures(anywhere) == (90 * CENT, 0, 10 * CENT)
    await correct(anywhere)


@pytest.mark.rule("money.retry")
async def test_a_retry_takes_from_the_account_when_its_askers_have_ended_or_is_refused(rt: Runtime):
    tried: list[int] = []

    @rt.agent
    async def coder(turn: Turn) -> str:
        tried.append(1)
        if len(tried) < 3:
            raise ValueError("no")
        await turn.spend("$0.15", why="paper")
        return "done"

    @rt.agent
    async def wastes(turn: Turn) -> None:
        await turn.spend("$0.85", why="gold")

    await rt.workspace.money.grant("$1")
    task = await rt.submit("coder", "x", credits="$0.20")
    assert (await task.wait(PATIENCE)).state == "failed"
    task = await task.retry()
    assert (await task.wait(PATIENCE)).state == "failed"
    await rt.run("wastes", "x")
    with pytest.raises(Refused) as no:
        await task.retry()
    assert str(no.value) == (
        "'coder' was not asked: $0.20 wanted, the account has $0.15 left of $1.00 ($0.85 spent, $0.00 set aside); "
        "give it less, or finish with what you have"
    )
    await rt.workspace.money.grant("$0.05")
    assert await (await task.retry()).result(PATIENCE) == "done"
    assert await figures(rt) == (5 * CENT, 0, 100 * CENT)
    await correct(rt)


# -- pruned -----------------------------------------------------------------------------------------------------------


@pytest.mark.rule("money.pruned", "money.reconcile")
async def test_a_call_is_reconciled_after_its_run_is_pruned(anywhere: Runtime, clock: FakeClock):
    @anywhere.agent
    async def shop(turn: Turn) -> None:
        await turn.spend("$0.10", why="paper")
        async with turn.paid_call("$0.05", why="lost"):
            pass

    anywhere.add(Card("echo"), echo)
    await anywhere.workspace.money.grant("$1")
    await anywhere.run("shop", "x", credits="$0.30")
    [hold] = await anywhere.workspace.money.uncertain()
    clock.advance(20 * 86_400)
    await anywhere.run("echo", "x")
    assert await anywhere.workspace.prune(10) == 1
    assert await figures(anywhere) == (85 * CENT, 0, 15 * CENT)
    await sound(anywhere)
    assert await anywhere.workspace.money.reconcile(hold.id, "$0.01") == {"credits": 4 * CENT}
    assert await figures(anywhere) == (89 * CENT, 0, 11 * CENT)
    await sound(anywhere)
    clock.advance(100 * 86_400)  # the event that carried it is old by now, and stated again
    await anywhere.run("echo", "y")
    assert await anywhere.workspace.prune(10) == 1
    clock.advance(100 * 86_400)
    await anywhere.workspace.prune(10)
    assert await figures(anywhere) == (89 * CENT, 0, 11 * CENT)
    await sound(anywhere)


@pytest.mark.rule("money.pruned")
async def test_a_run_is_pruned_while_another_holds_money(rt: Runtime, clock: FakeClock):
    inside, go = anyio.Event(), anyio.Event()

    @rt.agent
    async def spends(turn: Turn) -> None:
        await turn.spend("$0.10", why="paper")

    @rt.agent
    async def holds(turn: Turn) -> None:
        async with turn.paid_call("$0.20", why="long") as call:
            inside.set()
            await happened(go)
            call.cost("$0.07")

    await rt.workspace.money.grant("$1")
    await rt.run("spends", "x")
    clock.advance(20 * 86_400)
    async with anyio.create_task_group() as group:
        group.start_soon(lambda: rt.run("holds", "x", credits="$0.30"))
        await happened(inside)
        assert await rt.workspace.prune(10) == 1
        await sound(rt)
        go.set()
    assert await figures(rt) == (83 * CENT, 0, 17 * CENT)
    await sound(rt)


async def test_another_workspace_has_another_account(tmp_path, clock: FakeClock):
    path = tmp_path / "team.db"
    with team(path, clock=clock, workspace="a") as a, team(path, clock=clock, workspace="b") as b:
        await a.workspace.money.grant("$1")
        assert (await b.workspace.money.account()).credits is None
        with pytest.raises(BadInput):
            await a.workspace.money.reconcile("", "$1")
        assert (await account(a)).granted == 1_000_000
