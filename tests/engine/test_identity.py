"""One identity of a request: guards first, then the key or all that is asked; and keys outlive their runs."""

import anyio
import pytest

from engine.helping import PATIENCE, happened, sound
from remit import Bounds, Card, Runtime, Turn
from remit.errors import Conflict, NotFound, Refused
from teams import echo, team

pytestmark = pytest.mark.anyio

DAY = 86_400


async def looked(turn: Turn) -> str:
    try:
        return str(await turn.context.get("secrets", "k"))
    except Refused as no:
        return f"refused: {no.rule}"


@pytest.mark.rule("key.conflict")
@pytest.mark.parametrize(
    "other",
    [
        {"agent": "mail"},
        {"task": "invoice 2"},
        {"sees": ()},
        {"writes": ()},
        {"tools": ["exec"]},
        {"trust": "untrusted"},
        {"within": Bounds(tokens=5)},
        {"timeout": 9},
        {"session": "s"},
        {"attempts": 1},
        {"credits": "$1"},
        {"tier": "simple"},
        {"handoffs": False},
    ],
)
@pytest.mark.case("same_key")
async def test_a_key_with_another_content_is_a_conflict_and_hands_out_nothing(rt: Runtime, other: dict[str, object]):
    for name in ("pay", "mail"):
        rt.add(Card(name), echo)
    first = await rt.submit("pay", "invoice 1", key="job")
    how = {"agent": "pay", "task": "invoice 1", **other}
    with pytest.raises(Conflict, match=f"'job' was used for another request, task {first.id}; .*another key") as info:
        await rt.submit(**how, key="job")  # pyright: ignore[reportArgumentType]
    assert not info.value.retryable
    again = await rt.submit("pay", "invoice 1", key="job")
    assert (again.id, again.existing, first.existing) == (first.id, True, False)
    assert await again.result(PATIENCE) == "invoice 1"
    assert [one.id for one in await rt.workspace.tasks.list()] == [first.id]
    await sound(rt)


@pytest.mark.rule("key.scope")
async def test_a_key_of_one_task_opens_nothing_of_another(rt: Runtime):
    @rt.agent(asks="*")
    async def lead(turn: Turn) -> list[object]:
        return [await turn.delegate("one", "x"), await turn.delegate("two", "x")]

    async def part(turn: Turn) -> object:
        task = await turn.spawn("pay", f"for {turn.agent}", key="part")
        return [task.existing, await task.result(PATIENCE), [message.text for message in await turn.inbox()]]

    for name in ("one", "two"):
        rt.add(Card(name, asks="*"), part)
    rt.add(Card("pay"), echo)
    one, two = await rt.run("lead", "go")
    assert one[:2] == [False, "for one"]
    assert two[:2] == [False, "for two"]
    assert "for one" in one[2][0]
    assert "for two" in two[2][0]
    await (await rt.submit("pay", "a person's", key="part")).result(PATIENCE)
    await sound(rt)


@pytest.mark.rule("key.conflict")
async def test_an_agent_that_uses_a_key_twice_for_different_things_is_told(rt: Runtime):
    @rt.agent(asks="*")
    async def lead(turn: Turn) -> str:
        await turn.submit("pay", "x", key="k")
        for verb, how in ((turn.submit, {"sees": ["notes"]}), (turn.spawn, {})):
            with pytest.raises(Conflict, match="was used for another request"):
                await verb("pay", "x", key="k", **how)  # pyright: ignore[reportArgumentType]
        return (await turn.submit("pay", "x", key="k")).id

    rt.add(Card("pay"), echo)
    await rt.run("lead", "go")
    await sound(rt)


@pytest.mark.rule("key.identity")
@pytest.mark.case("twin_bounds")
async def test_what_one_branch_may_see_is_not_handed_to_another(rt: Runtime):
    @rt.agent(asks="*")
    async def lead(turn: Turn) -> list[object]:
        strong = await turn.delegate("worker", "strong", sees=["secrets"])
        weak = await turn.delegate("worker", "weak", within=Bounds(sees=()))
        return [strong, weak]

    @rt.agent(asks="*")
    async def worker(turn: Turn) -> object:
        return await (await turn.submit("reader", "read it", sees=["secrets"])).result(PATIENCE)

    rt.add(Card("reader"), looked)
    await rt.workspace.context().set("secrets", "k", "TOP")
    strong, weak = await rt.run("lead", "go")
    assert strong == "TOP"
    assert weak != "TOP"


@pytest.mark.rule("key.identity")
async def test_a_persons_narrower_request_is_not_answered_by_a_wider_one(rt: Runtime):
    rt.add(Card("reader"), looked)
    await rt.workspace.context().set("secrets", "k", "TOP")
    wide = await rt.submit("reader", "read", same_within=300)
    assert await wide.result(PATIENCE) == "TOP"
    for narrower in ({"sees": ()}, {"within": Bounds(sees=())}, {"session": "other", "within": Bounds(sees=["x"])}):
        task = await rt.submit("reader", "read", same_within=300, **narrower)  # pyright: ignore[reportArgumentType]
        assert (task.existing, await task.result(PATIENCE) != "TOP") == (False, True)
    assert (await rt.submit("reader", "read", same_within=300)).id == wide.id


@pytest.mark.rule("key.identity")
async def test_a_runtime_with_a_lower_ceiling_is_not_answered_from_under_a_higher_one(tmp_path):
    with team(tmp_path / "team.db") as high, team(tmp_path / "team.db", bounds=Bounds(sees=())) as low:
        for rt in (high, low):
            rt.add(Card("reader"), looked)
        await high.workspace.context().set("secrets", "k", "TOP")
        assert await (await high.submit("reader", "read", same_within=300)).result(PATIENCE) == "TOP"
        task = await low.submit("reader", "read", same_within=300)
        assert (task.existing, await task.result(PATIENCE) != "TOP") == (False, True)


@pytest.mark.rule("key.guards-first")
async def test_a_request_that_would_be_refused_is_refused_whichever_agent_made_it_before(rt: Runtime):
    rt.add(Card("pay"), echo)
    rt.add(Card("stranger"), echo)
    first = await rt.submit("pay", "x", key="k")
    assert await first.result(PATIENCE) == "x"
    await rt.workspace.agents.trip("pay", "stolen")
    with pytest.raises(Refused) as info:
        await rt.submit("pay", "x", key="k")
    assert info.value.rule == "breaker"
    with pytest.raises(Refused) as info:
        await rt.workspace.submit("pay", "x", key="k", asker="stranger")
    assert info.value.rule == "not-allowed"
    await rt.workspace.agents.reset("pay")
    assert (await rt.submit("pay", "x", key="k")).id == first.id


# -- keys outlive runs ---------------------------------------------------------------------------------------


@pytest.fixture(params=["memory", "file"])
def keeping(request, tmp_path, clock):
    where = ":memory:" if request.param == "memory" else tmp_path / "team.db"
    with team(where, clock=clock) as runtime:
        yield runtime


@pytest.mark.rule("key.outlives")
@pytest.mark.case("key_after_prune")
async def test_what_was_done_under_a_key_is_not_done_again_after_its_run_is_pruned(keeping: Runtime, clock):
    rt, paid = keeping, []

    @rt.agent
    async def pay(turn: Turn) -> str:
        paid.append(turn.task)
        if turn.task == "bad":
            raise ValueError("no")
        return "paid"

    good, bad = [await rt.submit("pay", task, key=f"invoice {task}") for task in ("good", "bad")]
    await good.wait(PATIENCE)
    await bad.wait(PATIENCE)
    clock.advance(30 * DAY)
    assert await rt.workspace.prune(4) == 2
    await sound(rt)
    for task, first, word in (("good", good, "completed"), ("bad", bad, "failed")):
        again = await rt.submit("pay", task, key=f"invoice {task}")
        assert (again.id, again.existing) == (first.id, True)
        for ask in (again.status, again.wait, again.result, again.cancel, again.retry):
            with pytest.raises(NotFound, match=f"{first.id} has {word} at .*, and its record was pruned"):
                await ask()
        with pytest.raises(Conflict, match=first.id):
            await rt.submit("pay", "another", key=f"invoice {task}")
    assert paid == ["good", "bad"]
    assert await rt.workspace.tasks.list() == []
    await sound(rt)


@pytest.mark.rule("key.outlives")
async def test_the_keys_of_parts_outlive_their_run_too(keeping: Runtime, clock):
    rt = keeping

    @rt.agent(asks="*")
    async def lead(turn: Turn) -> None:
        for key in ("a", "b"):
            await (await turn.submit("pay", "x", key=key)).wait(PATIENCE)

    rt.add(Card("pay"), echo)
    await rt.run("lead", "go")
    clock.advance(5 * DAY)
    assert await rt.workspace.prune(4) == 1
    assert len((await rt.workspace.journal.history())[-1].data["keys"]) == 2  # pyright: ignore[reportArgumentType]
    await sound(rt)


@pytest.mark.rule("prune.retention")
async def test_nothing_is_pruned_unless_the_owner_says_so(keeping: Runtime, clock):
    rt = keeping
    rt.add(Card("pay"), echo)
    old = await rt.submit("pay", "x")
    await old.wait(PATIENCE)
    clock.advance(4_000 * DAY)
    seen = anyio.Event()

    @rt.agent
    async def later(turn: Turn) -> None:
        seen.set()

    async with rt.serving():
        await (await rt.submit("later", "y")).wait(PATIENCE)
        await happened(seen)
    assert (await old.status()).state == "completed"
