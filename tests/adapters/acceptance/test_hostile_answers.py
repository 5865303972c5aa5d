"""Answers that no client expects, over HTTP, for every kind of agent: each is recorded or charged, none half done."""

from typing import Any

import pytest

from adapters.places import KINDS, data_of, join, priced, served, told
from engine.helping import ends, sound
from remit import Outcome, Runtime
from remit.testing import FakeClock
from remit.testing.models import Calls, Empty, Fails, ModelRequest, Says

pytestmark = pytest.mark.anyio

HUGE = "long " * 2**20  # five megabytes
DOWN = 4  # requests in vain: then a try has failed
SOON = 1  # second of a task: none is left for a pause
kinds = pytest.mark.parametrize("kind", KINDS)
streams = pytest.mark.parametrize("listens", [False, True], ids=["plain", "streamed"])


async def ran(rt: Runtime, listens: bool = False) -> Outcome:
    if not listens:
        return await rt.outcome("it", "go", credits="$100", timeout=SOON)
    *_, outcome = [one async for one in rt.stream("it", "go", credits="$100", timeout=SOON)]
    assert isinstance(outcome, Outcome)
    return outcome


async def accounted(rt: Runtime, requests: int) -> None:
    """Check that each request has come to one end, on record and in the ledger, and that the store is sound."""
    kinds = [event.kind for event in await rt.workspace.journal.history()]
    assert kinds.count("model.answered") + kinds.count("model.failed") == requests
    assert kinds.count("hold.placed") == kinds.count("hold.settled") + kinds.count("hold.released") == requests
    await sound(rt)


def used(texts: list[str]) -> Any:
    def note(text: str) -> str:
        """Note a text."""
        texts.append(text)
        return f"noted {text}"

    return note


@pytest.mark.rule("pydantic.answers", "guest.text")
@kinds
@streams
@pytest.mark.parametrize(
    ("said", "kept"),
    [("a\0b", ("ab", "a\ufffdb")), ("a\ud800b", ("a\ufffdb",)), ("\0", (None, "\ufffd"))],
    ids=["NUL", "half a pair", "nothing but NUL"],
)
async def test_characters_that_no_store_keeps_are_replaced(
    kind: str, said: str, kept: tuple[str | None, ...], listens: bool, clock: FakeClock
):
    async with served(lambda _: Says(said)) as place, priced(system={"clock": clock}) as rt:
        join(rt, kind, place)
        outcome = await ran(rt, listens)
        assert outcome.value in kept
        await accounted(rt, 1 if outcome.value else 2)  # a model that says nothing is asked once more


@pytest.mark.rule("pydantic.answers", "guest.text")
@kinds
async def test_characters_that_no_store_keeps_are_replaced_in_what_tools_are_given(kind: str, clock: FakeClock):
    noted: list[str] = []
    calls = Calls("note", {"text": "a\0b\ud800c"}, id="c\0d")
    async with served([calls, Says("done")], strict=False) as place, priced(system={"clock": clock}) as rt:
        join(rt, kind, place, tools=[used(noted)])
        assert (await ran(rt)).value == "done"
        assert noted in (["ab\ufffdc"], ["a\ufffdb\ufffdc"])
        await accounted(rt, 2)


@pytest.mark.rule("model.once")
@pytest.mark.parametrize("kind", ["native", "openai-agents"])  # another takes a second to spell such a message
async def test_an_answer_of_five_megabytes_is_kept_whole_and_not_asked_for_again(kind: str, clock: FakeClock):
    """It is in the conversation again when the task is tried again."""
    texts: list[str] = []

    def script(asked: ModelRequest) -> Any:
        if not told(asked):
            return Calls("note", {"text": "small"}, id="c", text=HUGE)
        texts.append(str(asked.messages))
        return Fails(503) if len(texts) <= DOWN else Says("done")

    noted: list[str] = []
    async with served(script) as place, priced(system={"clock": clock}) as rt:
        join(rt, kind, place, tools=[used(noted)])
        outcome = await ends(clock, await rt.submit("it", "go", credits="$100"))
        assert (outcome.value, noted) == ("done", ["small"])
        assert len(place.server.requests) == 1 + DOWN + 1
        assert [HUGE in text for text in texts] == [True] * (DOWN + 1)
        assert texts[0] == texts[-1]
        await accounted(rt, 1 + DOWN + 1)


@pytest.mark.rule("tool.told")
@kinds
async def test_arguments_of_five_megabytes_are_not_used_and_the_model_is_told(kind: str, clock: FakeClock):
    noted: list[str] = []
    async with served([Calls("note", {"text": HUGE}), Says("done")]) as place, priced(system={"clock": clock}) as rt:
        join(rt, kind, place, tools=[used(noted)])
        assert ((await ran(rt)).value, noted) == ("done", [])
        (sentence,) = told(place.server.requests[-1])
        assert sentence.startswith("'note' was not used: the arguments of 'note'.text has at most 1,048,576 characters")
        await accounted(rt, 2)


@kinds
async def test_a_result_of_five_megabytes_is_charged_and_said_to_be_too_long(kind: str, clock: FakeClock):
    async with served([Says(HUGE)]) as place, priced(system={"clock": clock}) as rt:
        join(rt, kind, place)
        outcome = await ran(rt)
        assert "has at most 1,048,576 characters" in str(outcome.error)
        assert [one["costs"]["credits"] > 10**6 for one in await data_of(rt, "hold.settled")] == [True]
        await accounted(rt, 1)


@pytest.mark.rule("pydantic.answers")
@kinds
async def test_an_empty_answer_is_a_failure_that_is_paid_or_an_answer_without_words(kind: str, clock: FakeClock):
    async with served(lambda _: Empty()) as place, priced(system={"clock": clock}) as rt:
        join(rt, kind, place)
        outcome = await ran(rt)
        if kind in ("openai-agents", "langgraph"):
            assert outcome.value == ""
        else:
            assert "an empty answer, without text and without a tool call; ask in another way" in str(outcome.error)
        asked = len(place.server.requests)
        assert asked == (1 if outcome.value == "" else 2)
        assert len(await data_of(rt, "hold.settled")) == asked
        await accounted(rt, asked)


@pytest.mark.rule("pydantic.answers", "tool.once")
@kinds
@streams
@pytest.mark.parametrize("same", [False, True], ids=["other arguments", "the same"])
async def test_calls_under_one_id_are_each_made(kind: str, same: bool, listens: bool, clock: FakeClock):
    noted: list[str] = []
    texts = ["one", "one" if same else "two"]
    twice = Calls("note", {"text": texts[0]}, id="c", also=[Calls("note", {"text": texts[1]}, id="c")])
    async with served([twice, Says("done")]) as place, priced(system={"clock": clock}) as rt:
        join(rt, kind, place, tools=[used(noted)])
        outcome = await ran(rt, listens)
        assert (outcome.value, sorted(noted)) == ("done", texts)
        assert [one["outcome"] for one in await data_of(rt, "tool.done")] == ["done"] * 2
        await accounted(rt, 2)
