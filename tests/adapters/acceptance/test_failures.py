"""Every failure of a provider, over HTTP, plain and streamed, for every kind of agent: what it is taken for, who is
asked next, and what it costs."""

import gc
import warnings
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from pydantic_ai import Agent
from pydantic_ai.models.fallback import FallbackModel
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider

import remit
from adapters.places import IMPATIENT, KEY_NAME, KINDS, data_of, join, priced, served
from adapters.serving import served_elsewhere
from engine.helping import ends, sound
from remit import Outcome, Runtime, Turn
from remit.core.recovery import FailureKind
from remit.core.times import SECOND
from remit.testing import FakeClock
from remit.testing.models import (
    Calls,
    Cut,
    Empty,
    Fails,
    Garbage,
    ModelReply,
    ModelRequest,
    Overflow,
    Reset,
    Says,
    Slow,
)

pytestmark = pytest.mark.anyio

HOUR = 3_600
SOON = 1  # second of a task: none is left for a pause


class Row(NamedTuple):
    """A reply, what it is taken for, how many seconds whoever failed rests, how often the same model is asked, whether
    another one is asked, and whether it is paid for."""

    reply: ModelReply
    why: FailureKind
    status: int | None = None
    rests: float = 0
    asked: int = 1
    next: bool = True
    charged: bool = False


ROWS = {
    "429, wait 7 s": Row(Fails(429, retry_after=7), "rate-limit", 429, rests=7),
    "429, wait 1.5 s": Row(Fails(429, retry_after=1.5), "rate-limit", 429, rests=1.5),
    "429": Row(Fails(429), "rate-limit", 429, rests=60),
    "429, quota": Row(Fails(429, code="insufficient_quota"), "billing", 429, rests=60),
    "402": Row(Fails(402), "billing", 402, rests=60),
    "401": Row(Fails(401), "auth", 401, rests=60),
    "403": Row(Fails(403), "forbidden", 403, rests=60),
    "too long": Row(Overflow(), "overflow", 400, asked=4, next=False),
    "413": Row(Fails(413), "overflow", 413, asked=4, next=False),
    "400, prompt_too_long": Row(Fails(400, code="prompt_too_long"), "rejected", 400, next=False),
    "400": Row(Fails(400), "rejected", 400, next=False),
    "422": Row(Fails(422), "rejected", 422, next=False),
    "404": Row(Fails(404), "not-found", 404),
    "408": Row(Fails(408), "unavailable", 408),
    "409": Row(Fails(409), "unavailable", 409),
    "500": Row(Fails(500), "unavailable", 500),
    "502": Row(Fails(502), "unavailable", 502),
    "503": Row(Fails(503), "unavailable", 503),
    "503, overloaded": Row(Fails(503, message="overloaded"), "unavailable", 503),
    "504": Row(Fails(504), "unavailable", 504),
    "529": Row(Fails(529), "unavailable", 529),
    "reset": Row(Reset(), "connection", charged=True),
    "cut": Row(Cut(Says("half of this does not arrive " * 8)), "connection", charged=True),
    "slow": Row(Slow(Says("too late"), 60), "timeout", charged=True),
    "garbage": Row(Garbage(), "broken", charged=True),
    "a page": Row(Garbage(content_type="text/html"), "broken", charged=True),
    "empty": Row(Empty(), "empty", asked=2, charged=True),
}

rows = pytest.mark.parametrize("row", ROWS.values(), ids=ROWS)
streams = pytest.mark.parametrize("listens", [False, True], ids=["plain", "streamed"])
CLIENTS = [("native", "chat")]
CLIENTS += [(kind, dialect) for kind in ("openai-agents", "langgraph") for dialect in ("chat", "responses")]
# To the other frameworks an answer without words is one.
MET = [(*client, name) for client in CLIENTS for name in ROWS if name != "empty" or client[0] == "native"]


def patience(row: Row) -> dict[str, Any]:
    """Clients wait for long, unless the reply is slow."""
    return {"timeout": IMPATIENT} if isinstance(row.reply, Slow) else {}


async def ran(rt: Runtime, listens: bool, **how: Any) -> Outcome:
    """Run it; if somebody listens, models are asked for streams."""
    if not listens:
        return await rt.outcome("it", "go", credits="$1", **how)
    *_, outcome = [one async for one in rt.stream("it", "go", credits="$1", **how)]
    assert isinstance(outcome, Outcome)
    return outcome


@pytest.mark.rule("model.charged")
@streams
@pytest.mark.parametrize("usage", ["right", "missing"])
async def test_an_empty_answer_costs_its_usage_and_the_whole_hold_only_without_one(usage: Any, listens: bool):
    async with served(lambda _: Empty(usage=usage), "messages") as place, priced() as rt:
        rt.model_agent("it", place.of_pydantic("m"))
        await ran(rt, listens)
        settled = await data_of(rt, "hold.settled")
        assert [one["costs"] == one["amounts"] for one in settled] == [usage == "missing"] * 2
        assert [one.get("uncertain", False) for one in settled] == [usage == "missing"] * 2
        assert all(one["costs"]["credits"] > 0 for one in settled)
        await sound(rt)


@pytest.mark.rule("guest.failures", "pydantic.failures", "model.charged")
@streams
@pytest.mark.parametrize(("kind", "dialect", "met"), MET)
async def test_a_failure_is_taken_for_what_it_is_and_charged_if_it_may_have_cost_something(
    kind: str, dialect: str, met: str, listens: bool, clock: FakeClock
):
    row = ROWS[met]
    async with served(lambda _: row.reply, dialect, **patience(row)) as place, priced(system={"clock": clock}) as rt:
        if kind == "native" and patience(row):
            rt.model_agent("it", place.of_pydantic("m"))
        else:
            join(rt, kind, place)
        outcome = await ran(rt, listens, timeout=SOON)
        failed = await data_of(rt, "model.failed")
        assert [(one["why"], one.get("status")) for one in failed] == [(row.why, row.status)] * row.asked
        assert [request.stream for request in place.server.requests] == [listens] * row.asked
        assert outcome.state == "failed"
        assert row.why in str(outcome.error)
        charged = [one["costs"]["credits"] > 0 for one in await data_of(rt, "hold.settled")]
        assert charged == [True] * (row.charged * row.asked)
        coolings = await rt.workspace.journal.read(lambda view: view.coolings())
        assert [(one.until - clock.now()) / SECOND for one in coolings.values()] == ([row.rests] if row.rests else [])
        await sound(rt)


@pytest.mark.rule("model.keys-first", "model.rejected", "model.overflow")
@rows
@streams
async def test_after_a_failure_the_next_model_is_asked_unless_it_would_fail_as_well(
    listens: bool, row: Row, clock: FakeClock
):
    def script(asked: ModelRequest) -> Any:
        return row.reply if asked.model == "m" else Says("the other answers")

    async with served(script, **patience(row)) as place, priced("m", "other", system={"clock": clock}) as rt:
        rt.model_agent("it", place.of_pydantic("m"), fallback=[place.of_pydantic("other")])
        outcome = await ran(rt, listens)
        assert [request.model for request in place.server.requests] == ["m"] * row.asked + ["other"] * row.next
        assert (outcome.value if row.next else outcome.state) == ("the other answers" if row.next else "failed")
        await sound(rt)


@pytest.mark.rule("model.overflow")
@streams
@pytest.mark.parametrize("kind", KINDS)
async def test_what_is_too_long_is_asked_again_with_less(kind: str, listens: bool, clock: FakeClock):
    def read_all() -> str:
        """Read everything."""
        return "x" * 50_000

    sizes: list[int] = []

    def script(asked: ModelRequest) -> Any:
        sizes.append(sum(len(str(message)) for message in asked.messages))
        if len(sizes) == 1:
            return Calls("read_all", {})
        return Overflow() if sizes[-1] > 20_000 else Says("short enough")

    async with served(script) as place, priced(system={"clock": clock}) as rt:
        join(rt, kind, place, tools=[read_all])
        assert (await ran(rt, listens)).value == "short enough"
        assert sizes[1] > 50_000
        assert sizes[-1] < 20_000
        assert {one["why"] for one in await data_of(rt, "model.failed")} == {"overflow"}


def stands_in(asked: ModelRequest) -> Any:
    return Fails(503) if asked.model == "m" else Says("the other answers")


@pytest.mark.rule("pydantic.loops", "model.keys-first")
def test_one_event_loop_after_another_has_clients_of_its_own_and_leaves_none_open(tmp_path: Path):
    """Of the first model and of the one that stands in for it."""
    with served_elsewhere(stands_in) as url, Runtime(tmp_path / "team.db") as rt:
        how: Any = {"base_url": f"{url}/v1", "keys": [KEY_NAME]}
        rt.model_agent("it", "openai-chat:m", fallback=["openai-chat:other"], **how)
        for _ in range(3):
            assert remit.run(rt, "it", "go") == "the other answers"
        gc.collect()  # a connection that is left open would be told now


@pytest.mark.rule("pydantic.loops", "model.keys-first")
def test_a_guest_with_a_model_that_stands_in_is_asked_from_one_event_loop_after_another(tmp_path: Path):
    def main(url: str) -> None:
        provider = OpenAIProvider(base_url=f"{url}/v1", api_key="mine")
        models = [OpenAIChatModel(name, provider=provider) for name in ("m", "other")]
        with Runtime(tmp_path / "team.db") as rt:
            rt.add(Agent(FallbackModel(*models)), name="it")
            for _ in range(3):
                assert remit.run(rt, "it", "go") == "the other answers"

    with served_elsewhere(stands_in) as url, warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)  # whoever made the models has to close their connections
        main(url)
        gc.collect()


@pytest.mark.rule("retry.which")
async def test_a_function_that_asks_a_model_itself_is_tried_again_after_a_failure_that_passes(clock: FakeClock):
    """By what the clients raise, none of which is imported for that."""
    replies = [Reset(), Fails(503), Fails(429), Says("at last"), Fails(429, code="insufficient_quota"), Fails(400)]
    async with served(replies) as place, priced(system={"clock": clock}) as rt:

        @rt.agent
        async def by_client(turn: Turn) -> str | None:
            said = await place.client.chat.completions.create(model="m", messages=[{"role": "user", "content": "go"}])
            return said.choices[0].message.content

        @rt.agent
        async def by_agent(turn: Turn) -> str:
            return (await Agent(place.of_pydantic("m")).run("go")).output

        outcome = await ends(clock, await rt.submit("by_client", "x"))
        assert outcome.value == "at last"
        for _ in range(2):
            assert (await ends(clock, await rt.submit("by_agent", "x"))).state == "failed"
        assert len(place.server.requests) == len(replies)
