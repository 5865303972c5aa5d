"""What models do wrong with tools, over HTTP, for every kind of agent: they are told, and whoever goes on for ever is
stopped."""

import asyncio
from typing import Any

import pytest

from adapters.places import KINDS, Place, data_of, join, served, told
from engine.helping import sound
from remit import Outcome, Runtime
from remit.testing.models import Calls, ModelRequest, Says

pytestmark = pytest.mark.anyio
kinds = pytest.mark.parametrize("kind", KINDS)

STOPPED = 12  # requests of a model that goes on with what brings nothing new, beside those that brought something


class Tools:
    """Functions that note how often they were used."""

    def __init__(self) -> None:
        self.looked: list[str] = []
        self.removed = 0

    @property
    def all(self) -> list[Any]:
        def look(at: str) -> str:
            """Look somewhere."""
            self.looked.append(at)
            return f"{at} is new for the {len(self.looked)}. time" if at == "news" else f"{at} is as it was"

        def burn(what: str) -> str:
            """Burn something."""
            raise ValueError(f"no fire for {what}")

        def remove() -> str:
            """Remove everything."""
            self.removed += 1
            return "gone"

        return [look, burn, remove]


class Ran:
    """What came of a run: its outcome, the tools, what the model was told of each call, and how often it was asked."""

    def __init__(self, outcome: Outcome, tools: Tools, place: Place, used: list[dict[str, Any]]) -> None:
        self.outcome = outcome
        self.tools = tools
        self.requests = len(place.server.requests)
        self.told = told(place.server.requests[-1])
        self.used = [(one["tool"], one["outcome"]) for one in used]


async def ran(kind: str, *calls: Calls, ends: bool = True, **about: Any) -> Ran:
    """Let a model make these calls, each in an answer of its own; it `ends` after them, or starts again."""
    tools = Tools()

    def script(asked: ModelRequest) -> Any:
        made = len(told(asked))
        return Says("done") if ends and made == len(calls) else calls[made % len(calls)]

    async with served(script) as place, Runtime() as rt:
        join(rt, kind, place, tools=tools.all, **about)
        outcome = await rt.outcome("it", "go")
        await sound(rt)
        return Ran(outcome, tools, place, await data_of(rt, "tool.done"))


@pytest.mark.rule("tool.policy")
@kinds
async def test_a_tool_that_is_denied_is_a_sentence_however_often_it_is_called(kind: str):
    found = await ran(kind, Calls("remove", {}), Calls("remove", {}), Calls("look", {"at": "a"}), deny=["remove"])
    sentence = "'it' may not use 'remove' for this task; you may use burn, look, or finish without it"
    assert found.told == [sentence, sentence, "a is as it was"]
    assert (found.outcome.value, found.tools.removed) == ("done", 0)
    assert found.used == [("remove", "refused"), ("remove", "refused"), ("look", "done")]


@pytest.mark.rule("model.unknown-tools", "guest.unknown")
@kinds
async def test_a_tool_that_does_not_exist_is_told_and_the_third_call_ends_the_task(kind: str):
    found = await ran(kind, Calls("lok", {"at": "a"}), ends=False)
    assert found.requests == 3
    assert found.outcome.state == "failed"
    assert "it called 'lok' again and again, which it does not have" in str(found.outcome.error)
    assert all("lok" in sentence for sentence in found.told)
    assert found.used == []


@pytest.mark.rule("guest.unknown", "pydantic.tools")
@kinds
async def test_arguments_that_are_none_are_told_and_nothing_is_used(kind: str):
    wrong = [Calls("look", given) for given in ("{no json", "", {"att": "a"}, {"at": ["a"]})]
    found = await ran(kind, *wrong, Calls("look", {"at": "a"}))
    assert found.outcome.value == "done"
    assert found.tools.looked == ["a"]
    assert found.told[-1] == "a is as it was"
    assert all(sentence.strip() for sentence in found.told)


@pytest.mark.rule("tool.told")
@kinds
async def test_what_a_tool_raises_is_told(kind: str):
    found = await ran(kind, Calls("burn", {"what": "paper"}), Calls("burn", {"what": "wood"}))
    assert found.told == [f"'burn' failed: ValueError: no fire for {what}" for what in ("paper", "wood")]
    assert (found.outcome.value, found.used) == ("done", [("burn", "failed")] * 2)


@pytest.mark.rule("tool.repeats")
@pytest.mark.parametrize(("kind", "places"), [*((kind, "a") for kind in KINDS), ("native", "ab")])
async def test_a_loop_is_warned_blocked_and_ended(kind: str, places: str):
    found = await ran(kind, *[Calls("look", {"at": at}) for at in places], ends=False)
    stopped = STOPPED + len(places)
    assert found.requests == stopped
    assert len(found.tools.looked) == stopped - 2
    assert "at 10 it is not done any more" in found.told[9]
    assert "10 times in a row nothing new came of what you did" in found.told[-1]
    assert found.outcome.state == "failed"
    assert "it goes on with what brings nothing new" in str(found.outcome.error)


@pytest.mark.rule("tool.repeats")
@kinds
async def test_forty_calls_with_changing_results_pass(kind: str):
    eight = Calls("look", {"at": "news"}, also=[Calls("look", {"at": "news"})] * 7)
    found = await ran(kind, *[eight] * 40)
    assert (found.outcome.value, found.requests, len(found.tools.looked)) == ("done", 6, 40)
    assert [sentence.startswith("news is new for the") for sentence in found.told] == [True] * 40


def told_once(asked: ModelRequest) -> Any:
    return Says("done") if told(asked) else Calls("fetch", {"what": "it"})


@pytest.mark.rule("tool.told")
@kinds
async def test_a_cancellation_that_a_tool_makes_itself_is_told(kind: str):
    async def fetch(what: str) -> str:
        """Fetch it."""
        inner = asyncio.ensure_future(asyncio.sleep(3_600))
        inner.cancel()
        await inner
        return what

    async with served(told_once) as place, Runtime() as rt:
        join(rt, kind, place, tools=[fetch])
        assert (await rt.outcome("it", "go")).value == "done"
        assert ["'fetch' failed: CancelledError" in one for one in told(place.server.requests[-1])] == [True]
        await sound(rt)


@pytest.mark.rule("tool.told", "task.cancel")
@kinds
async def test_a_tool_of_a_task_that_is_cancelled_is_cancelled_with_it(kind: str):
    begun, ended = asyncio.Event(), list[str]()

    async def fetch(what: str) -> str:
        """Fetch it."""
        begun.set()
        try:
            await asyncio.sleep(3_600)
        except asyncio.CancelledError:
            ended.append(what)
            raise
        return what

    async with served(told_once) as place, Runtime() as rt:
        join(rt, kind, place, tools=[fetch])
        async with rt.serving():
            task = await rt.submit("it", "go")
            await begun.wait()
            await task.cancel()
            assert (await task.wait(60)).state == "cancelled"
        assert (ended, len(place.server.requests)) == (["it"], 1)
        await sound(rt)
