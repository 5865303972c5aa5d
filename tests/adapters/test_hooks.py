"""Hooks: every wanted event arrives signed, at least once, whatever the receiver and the processes do."""

import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

import anyio
import pytest
import standardwebhooks

from adapters.standin import Got, Says, StandIn, stand_in
from engine.helping import sound
from remit import Runtime, Turn
from remit.adapters.vault import MasterVault, fresh_master
from remit.adapters.vetted import Vetted, networks
from remit.core.hook import delivery_id
from remit.core.secret import Secret
from remit.core.times import DAY, SECOND
from remit.engine.system import SystemClock
from remit.errors import BadInput, Conflict, NotFound
from remit.runtime.delivering import LONGEST, Follower, HookCarrier
from remit.runtime.hooks import RETRY, Delivery
from remit.runtime.workspace import opening_of
from remit.settings import Serving, System
from remit.testing import FakeClock, pass_time

pytestmark = pytest.mark.anyio

LOOPBACK = networks("127.0.0.0/8")


@pytest.fixture(autouse=True)
def permitted(monkeypatch: pytest.MonkeyPatch) -> None:
    """The operator permits this machine."""
    monkeypatch.setenv("REMIT_HOOK_NETWORKS", "127.0.0.0/8")


def shop(store: Any = ":memory:", clock: Any = None, **more: Any) -> Runtime:
    """A team of one, with a master key."""
    system = System(clock=clock or SystemClock(), vault=MasterVault(fresh_master()))
    rt = Runtime(store, system=system, serving=Serving(keep_events=None), **more)

    @rt.agent
    async def clerk(turn: Turn) -> str:
        return turn.task

    return rt


@asynccontextmanager
async def carried(rt: Runtime) -> AsyncIterator[HookCarrier]:
    """Make the deliveries of a workspace meanwhile."""
    opening = opening_of(rt.workspace)
    carrier = HookCarrier(opening, Vetted(LOOPBACK), Runtime)
    async with anyio.create_task_group() as group:
        group.start_soon(carrier.carry, opening)
        yield carrier
        group.cancel_scope.cancel()


def events(server: StandIn) -> list[int]:
    return [got.json["data"]["seq"] for got in server.got]


async def delivered(
    rt: Runtime, hook: str, true: Callable[[list[Delivery]], bool], clock: FakeClock | None = None
) -> list[Delivery]:
    """Wait until this is true of the log, which is written after the answer; a little time passes meanwhile."""
    with anyio.fail_after(30):
        while not true(found := await rt.workspace.hooks.deliveries(hook)):
            await anyio.sleep(0.01)
            if clock is not None:
                clock.advance(0.01)
    return found


def _waits(tries: int, found: list[Delivery]) -> bool:
    """Whether the only delivery was tried so often, and waits for its next try."""
    return [(one.state, one.attempt) for one in found] == [("pending", tries)]


@pytest.mark.rule("hook.delivered", "hook.signed")
async def test_every_wanted_event_arrives_signed_and_no_other():
    async with stand_in() as server, shop() as rt:
        hook = await rt.workspace.hooks.add(f"{server.url}/hook", ["task.completed", "hook.*"], by="ann")
        async with carried(rt):
            await rt.run("clerk", "one")
            other = await rt.workspace.hooks.add(f"{server.url}/other", ["task.started"])
            await rt.run("clerk", "two")
            await server.until(lambda: len(server.got) == 4)
        assert sorted((got.path, got.json["type"]) for got in server.got) == [
            ("/hook", "hook.added"),
            ("/hook", "task.completed"),
            ("/hook", "task.completed"),
            ("/other", "task.started"),
        ]
        for got in server.got:
            secret = hook.secret if got.path == "/hook" else other.secret
            standardwebhooks.Webhook(secret.reveal()).verify(got.body, got.headers)
            seq = got.json["data"]["seq"]
            assert got.headers["webhook-id"] == delivery_id("default", seq)
            [event] = await rt.workspace.journal.history(after=seq - 1, limit=1)
            assert (got.json["type"], got.json["data"]["data"]) == (event.kind, event.data)
        assert hook.secret.reveal() not in json.dumps([str(one) for one in await rt.workspace.journal.history()])
        await sound(rt)


@pytest.mark.rule("hook.retried", "hook.log")
async def test_a_hook_that_fails_is_retried_under_the_same_id_and_marked_after_a_day():
    clock = FakeClock()
    async with stand_in() as server, shop(clock=clock) as rt:
        server.answers = lambda _: Says(503)
        hook = await rt.workspace.hooks.add(f"{server.url}/hook", ["task.completed"])
        began = clock.now()
        await rt.run("clerk", "one")

        async with carried(rt):
            for tries in range(1, RETRY.attempts):
                [one] = await delivered(rt, hook.id, partial(_waits, tries), clock)
                assert one.error == "it answered 503"
                assert one.next_at is not None
                clock.advance((one.next_at - clock.now()) / SECOND)
            await delivered(rt, hook.id, lambda found: found[0].state == "dead", clock)
            assert len(server.got) == RETRY.attempts
            assert len({got.headers["webhook-id"] for got in server.got}) == 1
            assert 0.9 * DAY < clock.now() - began < 1.4 * DAY
            [info] = await rt.workspace.hooks.list()
            assert (info.waiting, info.failing) == (0, "it answered 503; that was attempt 26 of 26")
            server.answers = lambda _: Says(204)
            [lost] = await rt.workspace.hooks.deliveries(hook.id)
            assert (lost.state, lost.attempt, lost.error) == ("dead", RETRY.attempts, info.failing)
            again = await rt.workspace.hooks.replay(lost.id, by="ann")

            async def arrived() -> bool:
                return bool(await rt.workspace.hooks.deliveries(hook.id, state="completed"))

            await pass_time(clock, arrived)
            assert server.got[-1].headers["webhook-id"] == server.got[0].headers["webhook-id"]
            assert [one.id for one in await rt.workspace.hooks.deliveries(hook.id)] == [again, lost.id]
            [info] = await rt.workspace.hooks.list()
            assert (info.failing, info.failing_since) == ("", None)


@pytest.mark.rule("hook.delivered")
async def test_any_number_of_processes_and_a_killed_one_make_one_delivery_of_each_event():
    async with stand_in() as server, shop() as rt:
        hook = await rt.workspace.hooks.add(f"{server.url}/hook", ["task.completed"])
        for number in range(5):
            await rt.run("clerk", str(number))
        opening = opening_of(rt.workspace)
        carriers = [HookCarrier(opening, Vetted(LOOPBACK), Runtime) for _ in range(3)]
        root = await carriers[0].log.signing_key()
        followers = [Follower(carrier, opening, root) for carrier in carriers]
        await followers[0].pass_on()
        cursor = carriers[0].runtime.workspace.context()
        [entry] = await cursor.query("cursors")
        await cursor.remove("cursors", entry.key)  # as if it had been killed before it wrote the cursor
        async with anyio.create_task_group() as group:
            for follower in followers:
                group.start_soon(follower.pass_on)
        found = await rt.workspace.hooks.deliveries(hook.id)
        assert len({one.event for one in found}) == len(found) == 5
        async with carried(rt):
            await server.until(lambda: len(server.got) == 5)
        assert len(set(events(server))) == 5


@pytest.mark.rule("hook.alone")
async def test_a_hanging_hook_delays_no_other():
    async with stand_in() as good, stand_in() as bad, shop() as rt:

        async def hangs(_: Got) -> Says:
            await anyio.sleep_forever()
            raise AssertionError

        bad.answers = hangs
        await rt.workspace.hooks.add(f"{bad.url}/hook", ["task.*"])
        async with carried(rt):
            for number in range(30):
                await rt.run("clerk", str(number))
            await bad.until(lambda: bad.got)
            hook = await rt.workspace.hooks.add(f"{good.url}/hook", ["task.completed"])
            await rt.run("clerk", "last")
            await good.until(lambda: good.got)
            await delivered(rt, hook.id, lambda found: [one.state for one in found] == ["completed"])
        assert len(bad.got) <= 4


@pytest.mark.rule("hook.gap")
async def test_events_that_were_removed_before_they_were_sent_are_in_the_log():
    clock = FakeClock()
    async with stand_in() as server, shop(clock=clock) as rt:
        hook = await rt.workspace.hooks.add(f"{server.url}/hook", ["task.completed"])
        await rt.run("clerk", "one")
        clock.advance(10 * 86_400)
        await rt.run("clerk", "two")
        assert await rt.workspace.prune(5) == 1
        async with carried(rt):

            async def logged() -> bool:
                found = await rt.workspace.hooks.deliveries(hook.id)
                return {one.state for one in found} == {"completed", "failed"}

            await pass_time(clock, logged)
        lost, _ = sorted(await rt.workspace.hooks.deliveries(hook.id), key=lambda one: one.event)
        assert (lost.event, lost.kind, lost.attempt) == (0, "gap", 1)
        assert "were removed from the journal before they were sent" in lost.error
        assert len(server.got) == 1


@pytest.mark.rule("hook.rotate")
async def test_after_a_rotation_both_secrets_verify_for_a_day():
    clock = FakeClock(SystemClock().now())
    async with stand_in() as server, shop(clock=clock) as rt:
        hook = await rt.workspace.hooks.add(f"{server.url}/hook", ["task.completed"])
        rotated = await rt.workspace.hooks.rotate(hook.id, op="once", by="ann")
        assert (
            await rt.workspace.hooks.rotate(hook.id, op="once", by="ann")
        ).secret.reveal() == rotated.secret.reveal()
        async with carried(rt):
            await rt.run("clerk", "one")
            await pass_time(clock, _has(server, 1), step=0.1)
        for one in (hook, rotated):
            standardwebhooks.Webhook(one.secret.reveal()).verify(server.got[0].body, server.got[0].headers)
        clock.advance(DAY // SECOND)
        async with carried(rt):
            await rt.run("clerk", "two")
            await pass_time(clock, _has(server, 2), step=0.1)
        assert len(server.got[1].headers["webhook-signature"].split()) == 1


def _has(server: StandIn, count: int) -> Callable[[], Awaitable[bool]]:
    async def has() -> bool:
        return len(server.got) >= count

    return has


@pytest.mark.rule("hook.removed")
async def test_a_removed_hook_gets_nothing_more_and_a_receiver_that_is_gone_is_not_retried():
    async with stand_in() as server, shop() as rt:
        server.answers = lambda _: Says(410)
        hook = await rt.workspace.hooks.add(f"{server.url}/hook", ["task.completed"])
        async with carried(rt):
            await rt.run("clerk", "one")
            [lost] = await delivered(rt, hook.id, lambda found: [one.state for one in found] == ["failed"])
            assert (lost.attempt, lost.error) == (1, "it answered 410")
            assert await rt.workspace.hooks.remove(hook.id, by="ann")
            assert not await rt.workspace.hooks.remove(hook.id)
            await rt.run("clerk", "two")
        assert len(server.got) == 1
        assert await rt.workspace.hooks.list() == []
        with pytest.raises(NotFound, match="no hook"):
            await rt.workspace.hooks.deliveries(hook.id)
        with pytest.raises(NotFound, match="no delivery"):
            await rt.workspace.hooks.replay(lost.id)


async def test_a_delivery_that_arrived_can_be_sent_again_and_a_long_event_without_its_data():
    async with stand_in() as server, shop() as rt:
        hook = await rt.workspace.hooks.add(f"{server.url}/hook", ["task.completed", "entry.set"])
        async with carried(rt):
            await rt.workspace.context().set("notes", "long", "x" * (LONGEST + 1))
            [first] = await delivered(rt, hook.id, lambda found: [one.state for one in found] == ["completed"])
            assert server.got[0].json["data"]["is_cut"]
            assert server.got[0].json["data"]["data"] is None
            again = await rt.workspace.hooks.replay(first.id, op="again")
            assert await rt.workspace.hooks.replay(first.id, op="again") == again
            await server.until(lambda: len(server.got) == 2)
            await delivered(rt, hook.id, lambda found: {one.state for one in found} == {"completed"})
        assert server.got[0].body == server.got[1].body
        page = await rt.workspace.hooks.deliveries(hook.id, limit=1)
        assert [one.id for one in page] == [again]
        assert await rt.workspace.hooks.deliveries(hook.id, before=again) == [first]


@pytest.mark.rule("hook.owner")
async def test_hooks_are_checked_and_belong_to_one_workspace(tmp_path):
    async with shop(tmp_path / "team.db") as rt:
        hooks = rt.workspace.hooks
        with pytest.raises(BadInput, match="https://"):
            await hooks.add("http://10.0.0.1/hook", ["task.completed"])
        with pytest.raises(BadInput, match="no kind of event"):
            await hooks.add("https://example.com/hook", ["task.complete"])
        with pytest.raises(NotFound, match="no run"):
            await hooks.add("https://example.com/hook", ["task.completed"], run="none")
        made = await hooks.add("https://example.com/hook", ["task.completed"], op="one", by="ann")
        assert await hooks.add("https://example.com/hook", ["task.completed"], op="one", by="ann") == made
        with pytest.raises(Conflict):
            await hooks.add("https://example.com/other", ["task.completed"], op="one", by="ann")
        with pytest.raises(NotFound, match="no hook"):
            await hooks.rotate("none")
        assert "whsec" not in repr(made)
        async with shop(opening_of(rt.workspace).database, workspace="other") as other:
            assert await other.workspace.hooks.list() == []
            with pytest.raises(NotFound, match="no hook"):
                await other.workspace.hooks.deliveries(made.id)
        for number in range(99):
            await hooks.add(f"https://example.com/{number}", ["task.completed"])
        with pytest.raises(BadInput, match="at most 100 hooks"):
            await hooks.add("https://example.com/hook", ["task.completed"])


@pytest.mark.rule("hook.delivered")
async def test_events_on_a_server_are_sent_and_the_cursor_is_written_for_deliveries_only(address: str):
    async with stand_in() as server, shop(address) as rt:
        hook = await rt.workspace.hooks.add(f"{server.url}/hook", ["task.completed"])
        async with carried(rt) as carrier:
            await rt.workspace.context().set("notes", "unwanted", 1)
            await rt.run("clerk", "one")
            await delivered(rt, hook.id, lambda found: [one.state for one in found] == ["completed"])
            written = await carrier.runtime.workspace.journal.history(kinds=["entry.set"])
            for number in range(20):
                await rt.workspace.context().set("notes", "unwanted", number)
            await rt.run("clerk", "two")
            await delivered(rt, hook.id, lambda found: [one.state for one in found] == ["completed"] * 2)
            assert len(await carrier.runtime.workspace.journal.history(kinds=["entry.set"])) <= len(written) + 2
        assert [info.waiting for info in await rt.workspace.hooks.list()] == [0]
        await sound(rt)
        assert (await carrier.runtime.workspace.check()).findings == []


async def test_a_worker_sends_events_and_says_once_that_it_has_no_master_key(
    tmp_path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
):
    async with stand_in() as server, shop(tmp_path / "team.db") as rt:
        hook = await rt.workspace.hooks.add(f"{server.url}/hook", ["task.completed"])
        monkeypatch.delenv("REMIT_MASTER_KEY", raising=False)
        clock = FakeClock(SystemClock().now())
        poor = Runtime(tmp_path / "team.db", system=System(clock=clock))
        async with poor, anyio.create_task_group() as group:
            group.start_soon(poor.serve)

            async def told() -> bool:
                return "keys and secrets are encrypted with a master key" in caplog.text

            await pass_time(clock, told)
            group.cancel_scope.cancel()
        async with anyio.create_task_group() as group:
            group.start_soon(rt.serve)
            await rt.run("clerk", "one")
            await server.until(lambda: server.got)
            await delivered(rt, hook.id, lambda found: [one.state for one in found] == ["completed"])
            await rt.drain(0)
    assert caplog.text.count("events are not sent to hooks") == 1


@pytest.mark.rule("hook.master")
async def test_secrets_stay_the_same_when_the_master_key_is_replaced(tmp_path):
    old, new = fresh_master().reveal(), fresh_master().reveal()
    shown: list[str] = []
    for masters in (old, f"{new},{old}", new):
        system = System(vault=MasterVault(Secret(masters)))
        with Runtime(tmp_path / "team.db", system=system) as rt:
            made = await rt.workspace.hooks.add("https://example.com/hook", ["task.*"], op="one", by="ann")
            shown.append(made.secret.reveal())
    assert len({*shown}) == 1
