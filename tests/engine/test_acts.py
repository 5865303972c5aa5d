"""What an owner does under an operation of its own: the same act once, another one never in its place."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import anyio
import pytest

from adapters.test_vault import NEW
from engine.helping import PATIENCE, sound
from engine.people import the_question
from remit import Card, Runtime, Turn
from remit.core.secret import Secret
from remit.errors import BadInput, Conflict, RemitError
from remit.report.lines import plain_line
from remit.testing import FakeClock, Scripted
from remit.types import Task
from teams import echo, team

pytestmark = pytest.mark.anyio

DAY = 86_400

Do = Callable[[], Awaitable[Any]]
Acts = tuple[Do, ...]  # an act, and others that differ from it in their target or in what is said
Make = Callable[[Runtime, str, str], Awaitable[Acts]]


async def waiting_tasks(rt: Runtime) -> list[str]:
    return [(await rt.submit("coder", f"task {number}")).id for number in range(2)]


async def cancel(rt: Runtime, op: str, by: str) -> Acts:
    ws, (one, other) = rt.workspace, await waiting_tasks(rt)
    return (
        lambda: ws.tasks.cancel(one, op=op, by=by),
        lambda: ws.tasks.cancel(other, op=op, by=by),
        lambda: ws.tasks.cancel(one, "another reason", op=op, by=by),
    )


async def retry(rt: Runtime, op: str, by: str) -> Acts:
    ws = rt.workspace
    one, other = (await rt.outcome("bad", "x")).id, (await rt.outcome("bad", "y")).id

    async def retried(task: str) -> str:
        return (await ws.tasks.retry(task, op=op, by=by)).id

    return lambda: retried(one), lambda: retried(other)


async def cancel_by_handle(rt: Runtime, op: str, by: str) -> Acts:
    one, other = [rt.workspace.tasks.get(id_) for id_ in await waiting_tasks(rt)]
    return (
        lambda: one.cancel(op=op, by=by),
        lambda: other.cancel(op=op, by=by),
        lambda: one.cancel("another reason", op=op, by=by),
    )


async def retry_by_handle(rt: Runtime, op: str, by: str) -> Acts:
    one, other = [rt.workspace.tasks.get((await rt.outcome("bad", text)).id) for text in ("x", "y")]

    async def retried(task: Task, **how: bool) -> str:
        return (await task.retry(op=op, by=by, **how)).id

    return lambda: retried(one), lambda: retried(other), lambda: retried(one, restart=True)


async def context_set(rt: Runtime, op: str, by: str) -> Acts:
    def context() -> Any:
        return rt.workspace.context("s", op=op, by=by)

    return (
        lambda: context().set("notes", "k", 1),
        lambda: context().set("notes", "k", 2),
        lambda: context().set("notes", "other", 1),
        lambda: context().set("notes", "k", 1, 60),
        lambda: context().set("notes", "k", 1, trust="untrusted"),
        lambda: context().set_with_extension("notes", "k", 1),
        lambda: context().board.set("k", 1),
        lambda: context().remove("notes", "k"),
    )


async def context_touch(rt: Runtime, op: str, by: str) -> Acts:
    def context() -> Any:
        return rt.workspace.context(op=op, by=by)

    for key in ("k", "other"):
        await rt.workspace.context().set("notes", key, 1, 60)
    return (
        lambda: context().touch("notes", "k", 120),
        lambda: context().touch("notes", "k", 240),
        lambda: context().touch("notes", "other", 120),
    )


async def context_remove(rt: Runtime, op: str, by: str) -> Acts:
    def context() -> Any:
        return rt.workspace.context(op=op, by=by)

    for key in ("k", "other"):
        await rt.workspace.context().set("notes", key, 1)
    return lambda: context().remove("notes", "k"), lambda: context().remove("notes", "other")


async def grant(rt: Runtime, op: str, by: str) -> Acts:
    ws = rt.workspace
    return (
        lambda: ws.money.grant("$1", op=op, by=by),
        lambda: ws.money.grant("$100", op=op, by=by),
        lambda: ws.money.grant("$1", tokens=5, op=op, by=by),
        lambda: ws.money.grant("$1", why="May", op=op, by=by),
    )


async def unfreeze(rt: Runtime, op: str, by: str) -> Acts:
    return lambda: rt.workspace.money.unfreeze(op=op, by=by), lambda: rt.workspace.money.unfreeze("paid", op=op, by=by)


async def reconcile(rt: Runtime, op: str, by: str) -> Acts:
    ws = rt.workspace
    await ws.money.grant("$1")
    for task in ("x", "y"):
        await rt.run("shop", task)
    one, other = [hold.id for hold in await ws.money.uncertain()]
    return (
        lambda: ws.money.reconcile(one, "$0.01", op=op, by=by),
        lambda: ws.money.reconcile(one, "$0.02", op=op, by=by),
        lambda: ws.money.reconcile(other, "$0.01", op=op, by=by),
        lambda: ws.money.reconcile(one, "$0.01", why="the bill", op=op, by=by),
    )


async def trip(rt: Runtime, op: str, by: str) -> Acts:
    ws = rt.workspace
    return (
        lambda: ws.agents.trip("coder", "away", op=op, by=by),
        lambda: ws.agents.trip("bad", "away", op=op, by=by),
        lambda: ws.agents.trip("coder", "ill", op=op, by=by),
        lambda: ws.agents.reset("coder", op=op, by=by),
    )


async def reset(rt: Runtime, op: str, by: str) -> Acts:
    ws = rt.workspace
    return lambda: ws.agents.reset("coder", op=op, by=by), lambda: ws.agents.reset(
        "bad", op=op, by=by
    )  # nothing to reset


async def prune(rt: Runtime, op: str, by: str) -> Acts:
    return lambda: rt.workspace.prune(4, op=op, by=by), lambda: rt.workspace.prune(5, op=op, by=by)


async def cleanup(rt: Runtime, op: str, by: str) -> Acts:
    return lambda: rt.workspace.context.cleanup(op=op, by=by), lambda: rt.workspace.prune(5, op=op, by=by)


async def set_key(rt: Runtime, op: str, by: str) -> Acts:
    keys = rt.workspace.keys
    return (
        lambda: keys.set("openai", Secret("sk-one"), op=op, by=by),
        lambda: keys.set("openai", Secret("sk-two"), op=op, by=by),
        lambda: keys.set("anthropic", Secret("sk-one"), op=op, by=by),
        lambda: keys.remove("openai", op=op, by=by),
        lambda: keys.rotate(op=op, by=by),
    )


async def clear_cooling(rt: Runtime, op: str, by: str) -> Acts:
    cooling = rt.workspace.keys.cooling
    return lambda: cooling.clear(op=op, by=by), lambda: cooling.clear("openai", op=op, by=by)


MAKERS: dict[str, Make] = {
    one.__name__: one
    for one in (
        cancel,
        retry,
        cancel_by_handle,
        retry_by_handle,
        context_set,
        context_touch,
        context_remove,
        grant,
        unfreeze,
        reconcile,
        trip,
        reset,
        prune,
        cleanup,
        set_key,
        clear_cooling,
    )
}
CHANGING = sorted(MAKERS.keys() - {"unfreeze", "reset", "prune", "cleanup", "clear_cooling"})  # in this empty workspace


@pytest.fixture(autouse=True)
def master(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REMIT_MASTER_KEY", NEW)


@asynccontextmanager
async def workspace_of(clock: FakeClock) -> AsyncIterator[Runtime]:
    async def shop(turn: Turn) -> None:
        async with turn.paid_call("$0.05", why="call"):
            pass

    with team(clock=clock, hands=0) as rt:
        rt.add(Card("coder"), echo)
        rt.add(Card("bad"), Scripted(ValueError("no"), ValueError("no")))
        rt.add(Card("shop"), shop)
        yield rt
        await sound(rt)


@pytest.mark.rule("workspace.op", "workspace.op-content")
@pytest.mark.parametrize("verb", MAKERS)
async def test_the_same_act_is_answered_again_and_another_one_is_a_conflict(clock: FakeClock, verb: str):
    async with workspace_of(clock) as rt:
        act, *others = await MAKERS[verb](rt, "click", "ann")
        first = await act()
        before = await rt.workspace.journal.history()
        for other in others:
            with pytest.raises(Conflict, match="the op 'click' was used for another act") as no:
                await other()
            assert not no.value.retryable
        assert await act() == first
        assert await rt.workspace.journal.history() == before


@pytest.mark.rule("workspace.op")
@pytest.mark.parametrize("said", [{"op": "click"}, {"by": "ann"}])
async def test_an_agent_that_holds_a_task_does_no_act_of_an_owner(rt: Runtime, said: dict[str, str]):
    async def lead(turn: Turn) -> list[str]:
        task, told = await turn.submit("coder", "x"), list[str]()
        for verb in (task.cancel, task.retry):
            with pytest.raises(BadInput) as no:
                await verb(**said)
            told.append(str(no.value))
        return told

    rt.add(Card("lead", asks="*"), lead)
    rt.add(Card("coder"), echo)
    assert await rt.run("lead", "x") == [
        f"{verb} takes op and by of an owner only; 'lead' is an agent" for verb in ("cancel", "retry")
    ]


@pytest.mark.rule("workspace.op-content")
async def test_one_operation_serves_one_verb(clock: FakeClock):
    async with workspace_of(clock) as rt:
        await rt.workspace.agents.trip("shop", "away", op="click")
        for verb in ("grant", "cancel", "context_set", "prune"):
            act, *_ = await MAKERS[verb](rt, "click", "")
            with pytest.raises(Conflict, match="was used for another act"):
                await act()


@pytest.mark.rule("workspace.op-content")
async def test_an_act_that_changed_nothing_keeps_its_operation(clock: FakeClock):
    async with workspace_of(clock) as rt:
        keys = rt.workspace.keys
        assert await keys.remove("openai", op="click") is False
        await keys.set("openai", Secret("sk-one"))
        assert await keys.remove("openai", op="click") is False
        assert [key.name for key in await keys.names()] == ["openai"]


@pytest.mark.rule("workspace.op-content")
async def test_an_operation_outlives_the_run_it_was_about(clock: FakeClock):
    async with workspace_of(clock) as rt:
        one, other = await waiting_tasks(rt)
        assert await rt.workspace.tasks.cancel(one, op="click") == 1
        clock.advance(5 * DAY)
        assert await rt.workspace.prune(4) == 1
        assert await rt.workspace.tasks.cancel(one, op="click") == 1
        with pytest.raises(Conflict, match="was used for another act"):
            await rt.workspace.tasks.cancel(other, op="click")


@pytest.mark.rule("workspace.op-content")
async def test_an_act_that_failed_leaves_its_operation_free(clock: FakeClock):
    async with workspace_of(clock) as rt:
        with pytest.raises(RemitError, match="there is no task"):
            await rt.workspace.tasks.cancel("nothing", op="click")
        one, _ = await waiting_tasks(rt)
        assert await rt.workspace.tasks.cancel(one, op="click") == 1


@pytest.mark.rule("workspace.by")
@pytest.mark.parametrize("verb", CHANGING)
async def test_history_tells_who_did_it(clock: FakeClock, verb: str):
    async with workspace_of(clock) as rt:
        act, *_ = await MAKERS[verb](rt, "", "ann")
        before = (await rt.workspace.journal.read(lambda view: view.head())).seq
        await act()
        told = await rt.workspace.journal.history(after=before)
        assert told
        assert any(event.data.get("by") == "ann" and plain_line(event).endswith("(by ann)") for event in told)


@pytest.mark.rule("workspace.by")
async def test_upkeep_tells_who_did_it(clock: FakeClock):
    async with workspace_of(clock) as rt:
        await rt.workspace.context().set("notes", "k", 1, 60)
        await rt.run("coder", "x")
        clock.advance(5 * DAY)
        assert await rt.workspace.context.cleanup(by="ann", op="tidy") == 1
        assert await rt.workspace.prune(4, by="bob") == 1
        told = {event.kind: event.data.get("by") for event in await rt.workspace.journal.history()}
        assert told["entries.removed"] == "ann"
        assert told["owner.acted"] == "ann"
        assert told["runs.pruned"] == "bob"
        await rt.workspace.context().set("notes", "k", 1, 60)
        clock.advance(DAY)
        assert await rt.workspace.context.cleanup(by="ann", op="tidy") == 1, (
            "what had expired when it was asked for first"
        )
        assert await rt.workspace.context.cleanup() == 1


@pytest.mark.rule("workspace.op-content", "answer.first")
async def test_an_answer_under_an_operation_is_one_answer(rt: Runtime):
    @rt.agent
    async def asker(turn: Turn) -> Any:
        return [await turn.ask_human("Which?", choices=["red", "blue"]), await turn.ask_human("Really?")]

    task = await rt.submit("asker", "go")
    with anyio.fail_after(PATIENCE):
        question = (await the_question(rt)).id
        await rt.workspace.questions.answer(question, "red", op="click", by="ann")
        await rt.workspace.questions.answer(question, "red", op="click", by="ann")
        with pytest.raises(Conflict, match="was used for another act"):
            await rt.workspace.questions.answer(question, "blue", op="click", by="ann")
        with pytest.raises(Conflict, match="was used for another act"):
            await rt.workspace.questions.reject(question, op="click", by="ann")
        with pytest.raises(Conflict, match="ann"):
            await rt.workspace.questions.answer(question, "red", op="another click", by="bob")
        with pytest.raises(Conflict, match="ann"):
            await rt.workspace.questions.answer(question, "red", by="bob")
        second = (await the_question(rt)).id
        with pytest.raises(Conflict, match="was used for another act"):
            await rt.workspace.questions.answer(second, "red", op="click", by="ann")
        await rt.workspace.questions.answer(second, "yes", op="next", by="ann")
        assert await task.result(PATIENCE) == ["red", "yes"]


@pytest.mark.rule("money.reconcile", "workspace.op-content")
async def test_a_call_is_reconciled_with_one_amount(clock: FakeClock):
    async with workspace_of(clock) as rt:
        await rt.workspace.money.grant("$1")
        await rt.run("shop", "x")
        [hold] = await rt.workspace.money.uncertain()
        back = await rt.workspace.money.reconcile(hold.id, "$0.01", by="ann")
        assert back == await rt.workspace.money.reconcile(hold.id, "$0.01")
        assert back == await rt.workspace.money.reconcile(hold.id, "$0.01", op="click")
        before = await rt.workspace.journal.history()
        for op in ("", "another click"):
            with pytest.raises(Conflict, match=r"was reconciled already, with \$0.01") as no:
                await rt.workspace.money.reconcile(hold.id, "$0.04", op=op)
            assert not no.value.retryable
        with pytest.raises(Conflict, match="was reconciled already"):
            await rt.workspace.money.reconcile(hold.id, "$0.01", tokens=7)
        assert [event.kind for event in (await rt.workspace.journal.history())[len(before) :]] in ([], ["owner.acted"])
