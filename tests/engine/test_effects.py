"""Side effects with a name are kept once."""

from collections.abc import Awaitable, Callable

import anyio
import anyio.lowlevel
import pytest

from engine.helping import PATIENCE, Shaky, doomed, ends, happened, reached, sound, take_over
from remit import Card, Runtime, Turn
from remit.core.events import INLINE
from remit.errors import BadInput, Conflict, Refused
from teams import team

pytestmark = pytest.mark.anyio


@pytest.mark.rule("effect.once")
async def test_a_step_may_be_sync_or_async_and_its_result_is_kept_through_a_retry(rt: Runtime, clock):
    did: list[str] = []

    async def later_on(what: str) -> str:
        did.append(what)
        return what

    def at_once(what: str) -> str:
        did.append(what)
        return what

    @rt.agent
    async def coder(turn: Turn) -> list:
        found = [
            await turn.once("a", later_on, "async"),
            await turn.once("b", at_once, "sync"),
            await turn.once("b", at_once, "sync, second"),
            await turn.once("nothing", lambda: None),
        ]
        if len(did) == 3:
            did.append("failed")
            raise Shaky
        return found

    task = await rt.submit("coder", "x")
    await reached(rt, task.id, "pending")
    clock.advance(2)
    assert await task.result(PATIENCE) == ["async", "sync", "sync, second", None]
    assert did == ["async", "sync", "sync, second", "failed"]
    done = [event.data["key"] for event in await rt.workspace.journal.history() if event.kind == "effect.done"]
    assert done == ["a", "b", "b", "nothing"]
    await sound(rt)


@pytest.mark.rule("effect.long")
@pytest.mark.parametrize("by_hand", [False, True])
async def test_a_long_result_is_kept_once_and_given_again(tmp_path, clock, *, by_hand: bool):
    """Also to a task that is tried again by hand, which is another task."""
    drafts: list[str] = []

    with team(tmp_path / "team.db", clock=clock) as rt:

        @rt.agent
        async def coder(turn: Turn) -> int:
            found = [await turn.once(name, write, name) for name in ("short", "long")]
            if len(drafts) == 2:
                drafts.append("failed")
                raise ValueError("not this time") if by_hand else Shaky
            return len(found[1])

        def write(name: str) -> str:
            drafts.append(name)
            return "text" if name == "short" else "ä" * 2 * INLINE

        if by_hand:
            failed = await rt.outcome("coder", "x")
            task = await rt.workspace.tasks.retry(failed.id)
        else:
            task = await rt.submit("coder", "x")
            await reached(rt, task.id, "pending")
            clock.advance(2)
        async with rt.serving():
            assert await task.result(PATIENCE) == 2 * INLINE
        assert drafts == ["short", "long", "failed"]
        short, long = await rt.workspace.journal.history(kinds=frozenset(("effect.done",)))
        assert short.data["result"] == "text"
        assert "result" not in long.data
        assert len(long.text) < 1_000
        await sound(rt)
    assert (tmp_path / "team.db").read_bytes().count("ä".encode() * 200) <= 2 * INLINE // 200 + 1


@pytest.mark.rule("effect.arguments")
async def test_a_long_result_is_not_spelled_out_in_an_error(rt: Runtime, clock):
    tries: list[int] = []

    @rt.agent
    async def coder(turn: Turn) -> None:
        tries.append(len(tries))
        try:
            await turn.once("draft", lambda _: "x" * 2 * INLINE, tries[-1])
        except Conflict as error:
            assert "and gave a long result; it is neither done again" in str(error)  # noqa: PT017 - it ends the task
            raise
        raise Shaky

    task = await rt.submit("coder", "x")
    await reached(rt, task.id, "pending")
    clock.advance(2)
    await reached(rt, task.id, "failed")
    assert tries == [0, 1]


@pytest.mark.rule("effect.once")
async def test_what_is_not_json_is_refused_and_what_raises_is_not_kept(rt: Runtime):
    @rt.agent
    async def coder(turn: Turn) -> str:
        with pytest.raises(BadInput, match="the result of effect 'a'"):
            await turn.once("a", object)
        with pytest.raises(ZeroDivisionError):
            await turn.once("b", lambda: 1 / 0)
        with pytest.raises(BadInput):
            await turn.once("", lambda: 1)
        return await turn.once("a", lambda: "fine")

    assert await rt.run("coder", "x") == "fine"
    assert sum(event.kind == "effect.done" for event in await rt.workspace.journal.history()) == 1
    await sound(rt)


@pytest.mark.rule("effect.arguments")
@pytest.mark.case("step_with_other_arguments")
async def test_an_effect_with_other_arguments_on_a_re_run_is_told_and_ends_the_task(rt: Runtime, clock):
    """It is neither done again nor answered with what came of the other."""
    charged: list[int] = []
    errors: list[Exception] = []

    def charge(amount: int) -> str:
        charged.append(amount)
        return f"charged {amount}"

    @rt.agent
    async def shop(turn: Turn) -> str:
        try:
            receipt = await turn.once("charge", charge, 10 * (len(charged) + 1))
        except Conflict as error:
            errors.append(error)
            raise
        if len(charged) == 1:
            raise Shaky
        return receipt

    outcome = await ends(clock, await rt.submit("shop", "x"))
    assert (outcome.state, charged, len(errors)) == ("failed", [10], 1)
    assert "effect 'charge' already ran in an earlier attempt with other arguments" in str(outcome.error)
    assert "'charged 10'" in str(outcome.error)
    await sound(rt)


@pytest.mark.rule("effect.arguments", "effect.once")
async def test_effects_of_one_name_that_come_in_another_order_on_a_re_run_get_their_own_results(rt: Runtime, clock):
    charged: list[str] = []

    def charge(what: str) -> str:
        charged.append(what)
        return f"paid for {what}"

    @rt.agent
    async def shop(turn: Turn) -> list[str]:
        wanted = ["bread", "apples"] if not charged else ["apples", "bread"]
        receipts = [await turn.once("charge", charge, what) for what in wanted]
        if charged == ["bread", "apples"]:
            charged.append("failed")
            raise Shaky
        return receipts

    outcome = await ends(clock, await rt.submit("shop", "x"))
    assert outcome.value == ["paid for apples", "paid for bread"]
    assert charged == ["bread", "apples", "failed"]


@pytest.mark.rule("effect.arguments")
async def test_a_task_retried_by_hand_is_told_of_other_arguments_too(rt: Runtime):
    amounts = [10, 20]
    charged: list[int] = []

    @rt.agent
    async def shop(turn: Turn) -> object:
        amount = amounts.pop(0)
        receipt = await turn.once("charge", lambda paid: charged.append(paid) or paid, amount)
        if amount == 10:
            raise ValueError("no")
        return receipt

    first = await rt.submit("shop", "x")
    assert (await first.wait(PATIENCE)).state == "failed"
    second = await (await first.retry()).wait(PATIENCE)
    assert second.state == "failed"
    assert "with other arguments" in str(second.error)
    assert charged == [10]


@pytest.mark.rule("effect.fence")
async def test_a_process_that_lost_its_task_does_no_effect_and_reads_nothing(tmp_path, clock):
    inside, go, left = anyio.Event(), anyio.Event(), anyio.Event()
    did: list[str] = []
    rules: list[str] = []

    async def lives_on(turn: Turn) -> None:
        await turn.context.set("memory:shop", "k", "v")
        child = await turn.submit("helper", "x")
        inside.set()
        await go.wait()
        verbs: list[Callable[[], Awaitable[object]]] = [
            lambda: turn.once("charge", did.append, "charged by the dead"),
            lambda: turn.context.get("memory:shop", "k"),
            lambda: turn.context.query("memory:shop"),
            lambda: turn.context.query("memory:shop", prefix="k"),
            turn.inbox,
            child.wait,
        ]
        for verb in verbs:
            try:
                await verb()
            except Refused as no:
                rules.append(no.rule)
        left.set()

    async def takes_over(turn: Turn) -> str:
        return await turn.once("charge", lambda: did.append("charged once") or "paid")

    async def helper(_turn: Turn) -> str:
        return "helped"

    with doomed(tmp_path / "team.db", clock) as dead, team(tmp_path / "team.db", clock=clock) as heir:
        dead.add(Card("shop", asks="*"), lives_on)
        heir.add(Card("shop", asks="*"), takes_over)
        dead.add(Card("helper"), helper)
        heir.add(Card("helper"), helper)
        task = await dead.submit("shop", "go")
        await happened(inside)
        await take_over(heir, clock, dead)
        assert await heir.workspace.tasks.get(task.id).result(PATIENCE) == "paid"
        go.set()
        await happened(left)
        assert (did, rules) == (["charged once"], ["over"] * 6)
        await sound(heir)


@pytest.mark.rule("effect.fence")
async def test_a_cancelled_turn_that_goes_on_does_no_effect(rt: Runtime):
    did: list[str] = []
    rules: list[str] = []
    inside, left = anyio.Event(), anyio.Event()

    @rt.agent
    async def stubborn(turn: Turn) -> None:
        inside.set()
        try:
            await anyio.sleep_forever()
        finally:
            with anyio.CancelScope(shield=True):
                for verb in (lambda: turn.once("charge", did.append, "x"), turn.inbox):
                    try:
                        await verb()
                    except Refused as no:
                        rules.append(no.rule)
                left.set()

    task = await rt.submit("stubborn", "x")
    await happened(inside)
    await task.cancel()
    await happened(left)
    assert (did, rules) == ([], ["over", "over"])


@pytest.mark.rule("effect.insist")
async def test_what_was_done_when_the_time_was_up_is_kept_for_the_next_attempt(rt: Runtime, clock):
    charged: list[str] = []

    async def charge() -> str:
        charged.append("5")
        with anyio.CancelScope(shield=True):
            clock.advance(261)
            await anyio.lowlevel.checkpoint()
        return "receipt"

    @rt.agent
    async def till(turn: Turn) -> str:
        return await turn.once("charge", charge)

    outcome = await ends(clock, await rt.submit("till", "order 7"))
    assert (outcome.value, charged) == ("receipt", ["5"])
