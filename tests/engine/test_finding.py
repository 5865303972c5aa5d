"""Finding agents while they work: who is free comes first, a choice is made once, and an embedding that may fail."""

from collections.abc import Callable, Sequence
from typing import Any

import anyio
import pytest

from engine.helping import happened
from engine.lives import Stage, played, result
from remit import Card, Refused, Runtime, Turn
from remit.errors import BadInput
from remit.settings import Certainty, Policy, System
from teams import echo

pytestmark = pytest.mark.anyio

POETS = ("ann", "bob")


async def named(turn: Turn) -> str:
    return turn.agent


def poets(rt: Runtime, **more: Any) -> None:
    for name in POETS:
        rt.add(Card(name, can="write poems", **more), named)


# -- who can be asked now --------------------------------------------------------------------------------------


@pytest.mark.rule("asks.free")
@pytest.mark.parametrize("verb", ["delegate", "submit", "spawn"])
async def test_whose_breaker_is_open_stands_behind_and_another_is_asked(rt: Runtime, verb: str):
    @rt.agent(asks="*")
    async def lead(turn: Turn) -> list[object]:
        asked = await getattr(turn, verb)(capability="write poems", task="one")
        answer = asked if verb == "delegate" else await asked.result(5)
        return [answer, *[[match.card.name, match.free, match.why] for match in await turn.find("write poems")]]

    poets(rt)
    await rt.workspace.agents.trip("ann", "tired")
    expected = ["bob", True, "can write poems"], ["ann", False, "can write poems; not now: its breaker is open"]
    assert await rt.run("lead", "go") == ["bob", *expected]
    await rt.workspace.agents.reset("ann")
    assert (await rt.run("lead", "go"))[0] == "ann"


@pytest.mark.rule("asks.free")
async def test_agents_without_room_are_listed_last(rt: Runtime):
    begun, enough = anyio.Event(), anyio.Event()

    async def ann(turn: Turn) -> str:
        begun.set()
        await enough.wait()
        return "ann"

    @rt.agent(asks="*")
    async def lead(turn: Turn) -> list[str]:
        who = await turn.delegate(capability="write poems", task="one")
        return [who, *[match.why for match in await turn.find("write poems", limit=2)]]

    rt.add(Card("ann", can="write poems", concurrency=1), ann)
    rt.add(Card("bob", can="write poems", concurrency=1), named)
    async with anyio.create_task_group() as group:
        group.start_soon(rt.run, "ann", "a long one")
        await happened(begun)
        why = "can write poems; not now: it has 1 of 1 tasks"
        assert await rt.run("lead", "go") == ["bob", "can write poems", why]
        assert [match.card.name for match in await rt.workspace.agents.find("write poems")] == ["bob", "ann"]
        enough.set()


@pytest.mark.rule("asks.free")
async def test_the_only_one_who_can_do_it_is_asked_and_says_itself_why_not(rt: Runtime):
    @rt.agent(asks="*")
    async def lead(turn: Turn) -> str:
        with pytest.raises(Refused, match="'ann' was taken out by an operator: tired") as info:
            await turn.delegate(capability="write poems", task="one")
        return info.value.rule

    rt.add(Card("ann", can="write poems"), named)
    rt.add(Card("cook", can="cook dinner"), named)
    await rt.workspace.agents.trip("ann", "tired")
    assert await rt.run("lead", "go") == "breaker"


# -- a choice is made once -------------------------------------------------------------------------------------


@pytest.mark.rule("asks.chosen-again")
@pytest.mark.parametrize("verb", ["delegate", "submit", "spawn"])
async def test_a_task_that_is_run_again_asks_whom_it_asked_before(tmp_path, clock, verb: str):
    stage = Stage()

    def crew(rt: Runtime, stage: Stage) -> None:
        async def poet(turn: Turn) -> str:
            stage.did.append(turn.agent)
            return turn.agent

        @rt.agent(asks="*")
        async def lead(turn: Turn) -> str:
            asked = await getattr(turn, verb)(capability="write poems", task="one")
            answer = asked if verb == "delegate" else await asked.result(5)
            await rt.workspace.agents.trip("ann", "tired of it")  # from now on another would be chosen
            await stage.crash()
            return str(answer)

        for name in POETS:
            rt.add(Card(name, can="write poems"), poet)

    async with played(tmp_path, clock, crew, stage) as heir:
        assert await result(heir) == "ann"
    assert stage.did == ["ann"]


@pytest.mark.rule("asks.certainty", "asks.margin")
async def test_an_owner_says_how_sure_it_must_be_whom_to_ask():
    async def asked(certainty: Certainty) -> object:
        async with Runtime(policy=Policy(certainty=certainty)) as rt:
            rt.add(Card("ann", can="write poems"), named)
            rt.add(Card("bob", can="read poems aloud"), named)

            @rt.agent(asks="*")
            async def lead(turn: Turn) -> str:
                return await turn.delegate(capability="poems", task="one")

            found = [match.card.name for match in await rt.workspace.agents.find("poems") if match.chosen]
            return (await rt.outcome("lead", "go")).value, found

    assert await asked(Certainty()) == (None, [])
    assert await asked(Certainty(margin=0.0)) == ("ann", ["ann"])
    with pytest.raises(BadInput, match="certainty: score is a number from 0 to 1, not 22"):
        Policy(certainty=Certainty(score=22))


# -- cards that change -----------------------------------------------------------------------------------------


@pytest.mark.rule("asks.capability", "asks.discovery")
async def test_agents_that_are_added_later_are_found_too(rt: Runtime):
    @rt.agent(asks=["ann", "late"])
    async def lead(turn: Turn) -> list[str]:
        return [match.card.name for match in await turn.find("write poems and verses")]

    poets(rt)
    assert await rt.run("lead", "go") == ["ann"]
    assert [match.card.name for match in await rt.workspace.agents.find("write poems")] == ["ann", "bob"]
    rt.add(Card("late", instructions="You write poems, verses and songs."), named)
    assert await rt.run("lead", "go") == ["late", "ann"]
    assert [match.card.name for match in await rt.workspace.agents.find("verses")] == ["late"]


@pytest.mark.parametrize("limit", [0, 11, True, "3"])
async def test_how_many_are_listed_is_a_small_number(rt: Runtime, limit: Any):
    with pytest.raises(BadInput, match="limit"):
        await rt.workspace.agents.find("poems", limit=limit)


# -- meaning ---------------------------------------------------------------------------------------------------

Vectors = list[list[float]]
THEMES = (("rhyme", "poem", "verse", "sonnet"), ("soup", "dinner", "stew"), ("roof", "wall", "brick"))


class Embedding:
    """Knows three themes, and counts what it is asked."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    def vectors(self, texts: Sequence[str]) -> Vectors:
        self.asked += texts
        return [[0.1 + sum(word in text for word in theme) for theme in THEMES] for text in texts]

    def plain(self, texts: list[str]) -> Vectors:
        return self.vectors(texts)

    async def slow(self, texts: list[str]) -> Vectors:
        await anyio.lowlevel.checkpoint()
        return self.vectors(texts)


def trades(embed: Callable[[list[str]], Any]) -> Runtime:
    rt = Runtime(system=System(embed=embed))
    for name, can in (("ann", "write poems"), ("bob", "cook dinner"), ("cy", "build walls")):
        rt.add(Card(name, can=can), named)

    @rt.agent(asks="*")
    async def lead(turn: Turn) -> str:
        return await turn.delegate(capability=turn.task, task="do it")

    return rt


@pytest.mark.rule("asks.embed")
@pytest.mark.parametrize("how", ["plain", "slow"])
async def test_agents_are_found_by_what_is_meant(how: str):
    embedding = Embedding()
    with trades(getattr(embedding, how)) as rt:
        assert await rt.run("lead", "a sonnet for mother") == "ann"
        assert await rt.run("lead", "stew") == "bob"
        assert (await rt.workspace.agents.find("mend the roof"))[0].why == "means nearly the same"
        assert "no one you may ask can quantum physics" in str(await rt.outcome("lead", "quantum physics"))
    assert len(embedding.asked) == len(set(embedding.asked))  # each card is read once


def broken(_texts: list[str]) -> Vectors:
    raise ConnectionError("no line")


@pytest.mark.rule("asks.embed")
@pytest.mark.parametrize(
    ("embed", "why"),
    [
        (broken, "ConnectionError: no line in System(embed=...) (test_finding.py:"),
        (lambda texts: [[1.0, 0.0]], "ValueError: zip() argument 2 is shorter"),
        (lambda texts: [[0.0, 0.0] for _ in texts], "ValueError: a vector without a direction"),
        (lambda texts: [[float("nan")] for _ in texts], "ValueError: a vector without a direction"),
        (lambda texts: [[1.0] * (1 + len(text) % 2) for text in texts], "ValueError: vectors of different lengths"),
        (lambda texts: "nonsense", "TypeError"),
    ],
)
async def test_if_the_embedding_fails_the_task_fails(embed: Any, why: str):
    with trades(embed) as rt:
        ended = await rt.outcome("lead", "write poems")
        assert ended.state == "failed"
        assert why in str(ended.error)
        assert "in System(embed=...)" in str(ended.error)
        with pytest.raises((ConnectionError, ValueError, TypeError)):
            await rt.workspace.agents.find("write poems")


@pytest.mark.rule("asks.embed")
async def test_vectors_are_made_in_batches_and_of_one_agent_alone_none_are():
    sizes: list[int] = []

    def embed(texts: list[str]) -> Vectors:
        sizes.append(len(texts))
        return [[1.0, len(text)] for text in texts]

    with Runtime(system=System(embed=embed)) as rt:
        rt.add(Card("alone", can="paint"), echo)
        assert (await rt.workspace.agents.find("paint"))[0].card.name == "alone"
        assert sizes == []
        for at in range(300):
            rt.add(Card(f"agent {at}", can=f"do {at}"), echo)
        await rt.workspace.agents.find("paint")
        assert sizes == [256, 46]


def test_what_is_no_function_is_no_embedding():
    with pytest.raises(BadInput, match="embed is a function from a list of texts to a list of vectors"):
        System(embed=5)  # pyright: ignore[reportArgumentType]
