"""What holds for agents of every kind alike, in both dialects, with the real turn: answers, tools, verbs, handoffs,
what is heard, and what is read again."""

from typing import Any, Literal

import anyio
import anyio.lowlevel
import pytest
from pydantic import BaseModel

from adapters.places import KEY, KEY_NAME, KINDS, came_back, data_of, join, priced, served, told
from adapters.turns import nothing_left
from engine.helping import ends, sound
from remit import Failed, Outcome, Runtime, Turn
from remit.core.allow import has
from remit.errors import BadOutput
from remit.testing import FakeClock
from remit.testing.doubles import PATIENCE
from remit.testing.models import Calls, Fails, ModelRequest, Says, Slow
from remit.types import TextChunk
from remit.verbs import VERBS

pytestmark = pytest.mark.anyio

kinds = pytest.mark.parametrize("kind", KINDS)
both = pytest.mark.parametrize("dialect", ["chat", "responses"])
DOWN = 4  # requests in vain: then a try has failed


@pytest.fixture(autouse=True)
def key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(KEY_NAME, KEY)


def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


def reviewer(rt: Runtime) -> None:
    @rt.agent(role="reviews code")
    async def reviewer(turn: Turn) -> str:
        return f"reviewed: {turn.task}"


@pytest.mark.rule("guest.model", "model.paid")
@kinds
@both
async def test_an_agent_answers_and_the_answer_is_paid_for_by_its_usage(kind: str, dialect: str):
    async with served([Says("hello there", usage=(12, 3))], dialect) as place, priced() as rt:
        join(rt, kind, place)
        assert await rt.run("it", "greet", credits="$1") == "hello there"
        (request,) = place.server.requests
        assert (request.model, request.text, request.max_tokens) == ("m", "greet", 4_096)
        (settled,) = await data_of(rt, "hold.settled")
        assert settled["costs"] == {"credits": 12 + 2 * 3, "tokens": 15}
        (answered,) = await data_of(rt, "model.answered")
        assert (answered["usage"], answered["calls"]) == ({"input": 12, "output": 3}, [])


class Review(BaseModel):
    verdict: Literal["ship", "wait"]
    lines: list[int] = []


@pytest.mark.rule("form.returns")
@kinds
async def test_an_answer_that_is_json_can_be_had_as_an_object(kind: str):
    async with served([Says('{"verdict": "ship"}'), Says("no idea")]) as place, priced() as rt:
        join(rt, kind, place)
        assert await rt.run("it", "review", returns=Review) == Review(verdict="ship")
        with pytest.raises(BadOutput, match="the result of 'it' does not fit Review: Input should be an object"):
            await rt.run("it", "again", returns=Review)


@pytest.mark.rule("form.output", "form.place")
@pytest.mark.parametrize("kind", KINDS[1:])
async def test_the_result_of_a_guest_must_fit_the_form_that_its_owner_names(kind: str):
    async with (
        served([Says('{"verdict": "ship"}'), Says('{"verdict": "ship", "lines": ["x"]}')]) as place,
        priced() as rt,
    ):
        join(rt, kind, place, form=Review)
        assert await rt.run("it", "review") == {"verdict": "ship", "lines": []}
        with pytest.raises(Failed, match=r"the result of 'it' does not fit Review: lines\[0\]: Input should be"):
            await rt.run("it", "again")


@pytest.mark.rule("money.overrun")
@kinds
async def test_a_provider_that_lies_about_tokens_takes_no_more_than_the_lease(kind: str):
    lie = Says("hello", usage=(2_000_000, 900_000))
    async with served([lie, lie]) as place, priced() as rt:
        await rt.workspace.money.grant("$100")
        join(rt, kind, place)
        assert (await rt.outcome("it", "greet", credits="$0.50")).ok
        assert (await rt.workspace.money.account()).credits.spent == 500_000
        [hold] = await rt.workspace.money.uncertain()
        assert (hold.agent, hold.credits) == ("it", 500_000)
        again = await rt.outcome("it", "greet", credits="$0.50")
        assert not again.ok
        assert (await rt.workspace.money.account()).credits.spent == 500_000
    assert len(place.server.requests) == 1  # nothing is paid for it until a person has said what the call cost


@pytest.mark.rule("secret.keys")
@kinds
async def test_the_key_of_its_client_is_redacted_from_the_first_request_that_opens_it(kind: str):
    def look() -> str:
        """Look at the environment."""
        return f"the key is {KEY}"

    async with served([Calls("look", {}, text=f"I know {KEY}"), Says(f"it is {KEY}")]) as place, Runtime() as rt:
        join(rt, kind, place, tools=[look])
        result = await rt.run("it", f"say {KEY[:3]}")
        history = str([event.data for event in await rt.workspace.journal.history()])
    assert KEY not in history
    assert "[secret]" in history
    assert KEY not in result


@pytest.mark.rule("input.calls")
@kinds
@both
async def test_of_the_tool_calls_of_one_answer_64_are_used_and_the_rest_is_told_to_the_model(kind: str, dialect: str):
    used: list[int] = []

    def note(number: int) -> str:
        """Note a number."""
        used.append(number)
        return f"noted {number}"

    many = Calls("note", {"number": 0}, also=[Calls("note", {"number": number}) for number in range(1, 100)])
    async with served([many, Says("enough")], dialect) as place, Runtime() as rt:
        join(rt, kind, place, tools=[note])
        assert await rt.run("it", "go") == "enough"
        told_next = str(place.server.requests[1].messages)
    assert sorted(used) == list(range(64))
    assert "[36 more tool calls of this answer left out, not used: at most 64 of one answer are used]" in told_next
    assert "noted 63" in told_next


@pytest.mark.rule("show.stack")
@kinds
async def test_how_an_agent_is_put_together_can_be_looked_at(kind: str):
    async with served([]) as place, Runtime() as rt:
        join(rt, kind, place, tools=[add], approve_tools=["add"], deny=["group:exec"], iterations=7)
        stack = rt.stack("it")
    models = {"native": ("openai-chat:m",), "pydantic-ai": ("openai:m",), "openai-agents": ("m",), "langgraph": ()}
    assert (stack.models, stack.approve_tools, stack.iterations) == (models[kind], ("add",), 7)
    assert has(stack.card.deny, "exec")


@pytest.mark.rule("guest.verbs")
@kinds
@both
async def test_verbs_are_tools_of_agents_that_may_ask_and_a_refusal_is_a_sentence(kind: str, dialect: str):
    asks = [Calls("call_agent", {"agent": name, "task": "look"}) for name in ("reviewer", "boss")]
    replies = [Calls("list_agents", {}), *asks, Says("done"), Says("alone")]
    async with served(replies, dialect) as place, Runtime() as rt:
        reviewer(rt)
        join(rt, kind, place, tools=[add], asks=["reviewer"])
        join(rt, kind, place, "loner", tools=[add])
        assert await rt.run("it", "go") == "done"
        first, *_, last = place.server.requests
        assert set(first.tools) == {"add", *(verb.name for verb in VERBS)} - {"ask_person"}
        listed, reviewed, refused = told(last)
        assert '"name":"reviewer"' in listed
        assert (reviewed, "boss" in refused) == ("reviewed: look", True)
        assert await rt.run("loner", "go") == "alone"
        context = {"recall", "remember", "blackboard"} if kind == "native" else set[str]()
        assert set(place.server.requests[-1].tools) == {"add"} | context


@pytest.mark.rule("prompt.news")
@kinds
@both
async def test_what_arrives_while_a_model_is_at_work_is_told_with_its_next_request_and_stays_there(
    kind: str, dialect: str
):
    adds = [Calls("add", {"a": 1, "b": b}, id=f"c{b}") for b in (2, 3)]
    spawned: list[str] = []
    go = anyio.Event()

    def noted(_turn: Turn, call: Any, told: Any) -> None:
        if call.name == "spawn_agent":
            spawned.append(told["task"])

    async def waited(turn: Turn, call: Any) -> None:
        """Let what was spawned end while numbers are added, and not before."""
        if call.name == "add":
            go.set()
            await turn.submitted(spawned[0]).wait(PATIENCE)

    replies = [Calls("spawn_agent", {"agent": "aside", "task": "x"}), *adds, Says("done")]
    async with served(replies, dialect) as place, Runtime() as rt:

        @rt.agent
        async def aside(turn: Turn) -> str:
            await go.wait()
            return "from the side"

        join(rt, kind, place, tools=[add], asks=["aside"], before=[waited], after=[noted])
        assert await rt.run("it", "go") == "done"
        heard = [[str(message) for message in request.messages] for request in place.server.requests]
        assert ["from the side" in str(one) for one in heard] == [False, False, True, True]
        assert heard[3][: len(heard[2])] == heard[2]


@pytest.mark.rule("guest.handoff", "pydantic.handed-over", "tool.handed")
@kinds
@both
async def test_a_handoff_ends_the_turn_at_once_also_beside_other_calls(kind: str, dialect: str):
    calls = Calls("add", {"a": 1, "b": 2}, also=[Calls("handoff", {"agent": "reviewer"}), Calls("list_agents", {})])
    async with served([calls], dialect) as place, Runtime() as rt:
        reviewer(rt)
        join(rt, kind, place, tools=[add], asks=["reviewer"])
        async with nothing_left():
            assert await rt.run("it", "go") == "reviewed: go"
        assert len(place.server.requests) == 1
        await sound(rt)


@pytest.mark.rule("guest.again", "model.once", "tool.once")
@kinds
@both
async def test_a_task_that_is_tried_again_reads_what_it_was_told_and_asks_nothing_twice(
    kind: str, dialect: str, clock: FakeClock
):
    """Two calls in one answer, and the conversation is the same to the letter."""
    down: list[int] = []
    added: list[int] = []

    def note(number: int) -> int:
        """Note a number."""
        added.append(number)
        return number * 2

    def script(asked: ModelRequest) -> Any:
        if not came_back(asked):
            return Calls("note", {"number": 1}, also=[Calls("note", {"number": 3})], text="let me see")
        down.append(1)
        return Fails(503) if len(down) <= DOWN else Says(" and ".join(sorted(told(asked))))

    async with served(script, dialect) as place, priced(system={"clock": clock}) as rt:
        join(rt, kind, place, tools=[note])
        assert (await ends(clock, await rt.submit("it", "go"))).value == "2 and 6"
        assert sorted(added) == [1, 3]
        first, *others = [request.messages for request in place.server.requests]
        assert len(others) == DOWN + 1
        assert others[-1] == others[0] != first


@pytest.mark.rule("guest.stream", "stream.order")
@kinds
@both
async def test_a_listener_gets_the_text_as_it_comes(kind: str, dialect: str):
    said = "the answer is three, of course"
    async with served([Calls("add", {"a": 1, "b": 2}), Says(said, usage=(9, 4))], dialect) as place, Runtime() as rt:
        join(rt, kind, place, tools=[add])
        found: list[Any] = [one async for one in rt.stream("it", "go")]
        heard = [one.text for one in found if isinstance(one, TextChunk) and not one.begins]
        assert isinstance(found[-1], Outcome)
        assert found[-1].value == "".join(heard) == said
        assert len(heard) > 1
        assert all(request.stream for request in place.server.requests)
        assert (await data_of(rt, "model.answered"))[-1]["usage"] == {"input": 9, "output": 4}
        assert (await data_of(rt, "model.answered"))[0]["receipt"]["saw"][0][0] == "task"


@pytest.mark.rule("guest.cancel")
@kinds
@both
async def test_a_run_that_is_cancelled_leaves_nothing_behind(kind: str, dialect: str):
    async with served([Slow(Says("never"), 600)], dialect) as place, Runtime() as rt:
        join(rt, kind, place)
        async with nothing_left(), anyio.create_task_group() as group:
            group.start_soon(rt.run, "it", "go")
            await place.server.asked(1)
            group.cancel_scope.cancel()


@pytest.mark.rule("guest.cancel")
@kinds
async def test_tools_that_are_cancelled_leave_nothing_behind(kind: str):
    begun = anyio.Event()

    async def wait() -> str:
        """Wait."""
        begun.set()
        await anyio.sleep_forever()
        return ""

    async with served([Calls("wait", {}, also=[Calls("wait", {})])]) as place, Runtime() as rt:
        join(rt, kind, place, tools=[wait])
        async with nothing_left(), anyio.create_task_group() as group:
            group.start_soon(rt.run, "it", "go")
            await begun.wait()
            group.cancel_scope.cancel()


class Mute(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no words")


@pytest.mark.rule("tool.told")
@pytest.mark.parametrize(
    ("error", "sentence"),
    [
        (SystemExit(2), "SystemExit: 2"),  # as of a tool that parses options
        (KeyboardInterrupt(), "KeyboardInterrupt: no message"),  # raised by the tool, not by a person
        (ValueError("half \ud800, nul \0"), "ValueError: half ?, nul \\0"),
        (ValueError(), "ValueError: no message"),
        (Mute(), "Mute: its message cannot be read"),
        (ExceptionGroup("two", [ValueError("a"), KeyError("b")]), "ExceptionGroup: ValueError: a; KeyError: 'b'"),
    ],
    ids=["exit", "interrupt", "characters", "empty", "mute", "group"],
)
@pytest.mark.parametrize("waits", [False, True], ids=["function", "coroutine"])
@kinds
async def test_whatever_a_tool_raises_is_told_to_its_model_alone(
    kind: str, waits: bool, error: BaseException, sentence: str
):
    def parse(text: str) -> str:
        """Parse a text."""
        raise error

    async def parse_later(text: str) -> str:
        """Parse a text."""
        await anyio.lowlevel.checkpoint()
        raise error

    tool = parse_later if waits else parse
    async with served([Calls(tool.__name__, {"text": "-x"}), Says("I cannot")]) as place, priced() as rt:
        join(rt, kind, place, tools=[tool])
        assert await rt.run("it", "parse it") == "I cannot"
        assert sentence in place.server.requests[-1].messages[-1]["content"]
        (done,) = await data_of(rt, "tool.done")
        assert done["outcome"] == "failed"
