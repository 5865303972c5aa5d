"""Functions and verbs as tools: the model sees what it always saw, and every call goes through the turn."""

import asyncio
import threading
from collections.abc import Callable
from datetime import date
from enum import Enum
from typing import Annotated, Any

import anyio
import anyio.lowlevel
import pytest
from pydantic import BaseModel, Field
from pydantic_ai import Agent, ModelRetry, RunContext, Tool, ToolReturn
from pydantic_ai.messages import ImageUrl, ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models.function import AgentInfo, FunctionModel
from pydantic_ai.toolsets import FunctionToolset

from adapters.pydantic_ai.turns import StandInTurn, under_way
from remit.adapters.pydantic_ai.tools import GovernedToolset, governed, verb_tools
from remit.core.command import Command
from remit.errors import BadInput
from remit.ports.models import HandedOver, ToolCall
from remit.ports.turn import current_turn
from remit.verbs import VERBS

pytestmark = pytest.mark.anyio

WEEKS = 4 * 7 * 86_400


def calls(*wanted: tuple[str, Any]) -> FunctionModel:
    """A model that calls these tools at once, and then says what it was told."""

    def answer(messages: list[Any], _: AgentInfo) -> ModelResponse:
        if len(messages) == 1:
            return ModelResponse([ToolCallPart(name, args, f"c{at}") for at, (name, args) in enumerate(wanted)])
        told = " | ".join(part.model_response_str(wrap_if_error=False) for part in messages[-1].parts)
        return ModelResponse([TextPart(told or "nothing")])

    return FunctionModel(answer)


async def used(
    tool: Any, args: Any, turn: StandInTurn | None = None, *, deps: Any = None, name: str = "", **more: Any
) -> str:
    """Have a model call one tool; give what it was told."""
    made = governed(tool)
    agent: Agent[Any, str] = Agent(calls((name or made.name, args)), tools=[made], **more)
    with under_way(turn or StandInTurn()):
        return (await agent.run("go", deps=deps)).output


class Colour(Enum):
    RED = "red"


class Point(BaseModel):
    x: int
    y: int = 0


async def plain(a: int, b: int = 2) -> int:
    """Add.

    Args:
        a: the first
        b: the second
    """
    return a + b


def of_many_kinds(when: date, colour: Colour, where: Point, sizes: tuple[int, ...], *, note: str = "") -> str:
    return f"{when.year} {colour.name} {where.x + where.y} {sum(sizes)} {note}"


def one_model(point: Point) -> int:
    """Take a point."""
    return point.x


def positional(a: int, /, *rest: int, **more: int) -> int:
    return a + sum(rest) + sum(more.values())


async def with_context(ctx: RunContext[str], word: str) -> str:
    return f"{ctx.deps} {word} {ctx.tool_call_id}"


def strict(a: Annotated[date, Field(strict=True)]) -> int:
    return a.year


def checked_only() -> None:
    return None


@pytest.mark.rule("pydantic.tools")
@pytest.mark.parametrize("function", [plain, of_many_kinds, one_model, positional, with_context, strict, checked_only])
def test_the_model_is_shown_the_same_as_before(function: Callable[..., Any]):
    assert governed(function).tool_def == Tool(function).tool_def


@pytest.mark.parametrize(
    ("function", "args", "told"),
    [
        (plain, {"a": 1}, "3"),
        (plain, '{"a": 1, "b": 5}', "6"),
        (
            of_many_kinds,
            {"when": "2020-01-02", "colour": "red", "where": {"x": 1}, "sizes": [1, 2]},
            "2020 RED 1 3 ",
        ),
        (one_model, {"x": 4}, "4"),
        (positional, {"a": 1, "rest": [2, 3], "c": 4}, "10"),
        (strict, {"a": "2021-02-03"}, "2021"),
        (checked_only, "", "nothing"),
    ],
)
async def test_arguments_are_read_as_the_function_takes_them(function: Any, args: Any, told: str):
    turn = StandInTurn()
    assert await used(function, args, turn) == told
    [call] = turn.used
    expected = {"a": 1, "b": 5} if isinstance(args, str) and args else args or {}
    assert call == ToolCall(function.__name__, expected, "c0")


async def test_a_function_may_take_the_context():
    assert await used(with_context, {"word": "x"}, deps="mine", deps_type=str) == "mine x c0"


@pytest.mark.rule("pydantic.tools")
async def test_arguments_that_somebody_changed_are_read_again():
    turn = StandInTurn()
    turn.changes["plain"] = {"a": "40"}
    assert await used(plain, {"a": 1}, turn) == "42"
    turn.changes["plain"] = {"a": "forty"}
    assert "failed: ValidationError" in await used(plain, {"a": 1}, turn)


@pytest.mark.parametrize("args", ['{"a": "x"}', '{"b": 1}', '{"a": 1, "z": 1}', "[1]", '{"a": ', "7"])
async def test_arguments_that_do_not_fit_are_told_to_the_model_and_reach_no_turn(args: str):
    turn = StandInTurn()
    assert "validation error" in await used(plain, args, turn) or turn.used == []


@pytest.mark.rule("pydantic.tools")
async def test_functions_that_wait_do_not_hold_up_the_loop():
    """A function that is not async runs in a thread, and sees the turn that it belongs to."""
    others = threading.Event()

    def waits() -> str:
        assert others.wait(30)
        assert current_turn() is not None
        return threading.current_thread().name

    class Seen(StandInTurn):
        async def tool(self, call: ToolCall, do: Any) -> Any:
            asyncio.get_running_loop().call_soon(others.set)  # which only comes if the loop goes on
            return await super().tool(call, do)

    assert await used(waits, {}, Seen()) != threading.main_thread().name


async def test_a_function_that_gives_something_to_await_is_awaited():
    async def later() -> str:
        return "later"

    def gives() -> Any:
        return later()

    assert await used(gives, {}) == "later"


async def test_a_tool_keeps_its_own_settings():
    made = governed(Tool(plain, name="sum", description="Sum up.", strict=True, sequential=True, max_retries=4))
    assert (made.name, made.description, made.strict, made.sequential, made.max_retries) == (
        *("sum", "Sum up.", True, True, 4),
    )


async def test_a_check_of_arguments_is_given_them_as_the_function_is():
    seen: list[Any] = []

    async def check(ctx: RunContext[Any], point: Point) -> None:
        seen.append(point)
        if point.x > 5:
            raise ModelRetry("too far")

    turn = StandInTurn()
    assert await used(Tool(one_model, args_validator=check), {"x": 1}, turn) == "1"
    assert await used(Tool(one_model, args_validator=check), {"x": 9}, turn) == "too far"
    assert (seen, len(turn.used)) == ([Point(x=1), Point(x=9)], 1)


async def test_a_timeout_applies_to_the_function_and_not_to_the_person_who_approves_it():
    async def slow() -> None:
        await anyio.sleep_forever()

    left: list[float] = []

    class Asking(StandInTurn):
        async def tool(self, call: ToolCall, do: Any) -> Any:
            left.append(anyio.current_effective_deadline() - anyio.current_time())
            return await super().tool(call, do)

    assert await used(Tool(plain, timeout=0.02), {"a": 1}, Asking()) == "3"
    assert "failed: TimeoutError" in await used(Tool(slow, timeout=0.02), {}, Asking())
    assert min(left) > WEEKS


async def test_what_a_tool_returns_becomes_json():
    def point() -> Point:
        return Point(x=1)

    def with_notes() -> ToolReturn:
        return ToolReturn("value", metadata={"for": "me"})

    assert await used(point, {}) == '{"x":1,"y":0}'
    assert await used(with_notes, {}) == "value"


async def test_what_cannot_be_recorded_is_said():
    def file() -> ImageUrl:
        return ImageUrl("https://example.com/a.png")

    def beside() -> ToolReturn:
        return ToolReturn("value", content=["more"])

    assert "returned a file, which cannot be recorded" in await used(file, {})
    assert "returned a file" in await used(Tool(lambda: [file()], name="files"), {})
    assert "returned content beside its value" in await used(beside, {})


async def test_a_tool_that_raises_does_not_end_the_run():
    def wrong() -> None:
        raise KeyError("x")

    assert await used(wrong, {}) == "'wrong' failed: KeyError: 'x'"


async def test_outside_of_a_turn_a_tool_does_nothing():
    with pytest.raises(BadInput, match="tool plain works inside of a turn only"):
        await Agent(calls(("plain", {"a": 1})), tools=[governed(plain)]).run("go")


def test_what_is_no_tool_is_refused():
    with pytest.raises(BadInput, match="a tool is a function, or a Tool of pydantic-ai, not 'read_file'"):
        governed("read_file")

    def odd(a: int, ctx: RunContext[Any]) -> None: ...

    with pytest.raises(BadInput, match="a tool cannot be made of"):
        governed(odd)


# --- tools of toolsets --------------------------------------------------------------------------


async def test_tools_that_are_found_in_a_run_go_through_the_turn_too():
    toolset = GovernedToolset(FunctionToolset([plain]).prefixed("far"))
    turn = StandInTurn()
    agent = Agent(calls(("far_plain", {"a": 1})), toolsets=[toolset])
    with under_way(turn):
        assert (await agent.run("go")).output == "3"
        turn.changes["far_plain"] = {"a": 5}
        assert (await agent.run("go")).output == "7"
    assert turn.used[0] == ToolCall("far_plain", {"a": 1, "b": 2}, "c0")


# --- verbs --------------------------------------------------------------------------------------


def test_every_verb_is_a_tool_with_its_own_schema():
    made = {tool.name: tool.tool_def for tool in verb_tools(VERBS)}
    assert list(made) == [verb.name for verb in VERBS]
    for verb in VERBS:
        assert made[verb.name].parameters_json_schema == verb.schema
        assert made[verb.name].description == verb.sentence


async def verb(*wanted: tuple[str, Any], turn: StandInTurn | None = None, **more: Any) -> str:
    with under_way(turn or StandInTurn()):
        agent = Agent(calls(*wanted), tools=[*verb_tools(VERBS), *more.get("tools", ())])
        return (await agent.run("go")).output


async def test_a_verb_is_called_on_the_turn():
    turn = StandInTurn()
    assert await verb(("list_agents", {}), turn=turn) == "[]"
    assert turn.used == [ToolCall("list_agents", {}, "c0")]


async def test_a_verb_that_is_misused_says_so():
    assert "call_agent needs task" in await verb(("call_agent", {"agent": "x"}))


@pytest.mark.parametrize("args", ["[]", "3", '"x"', "{"])
async def test_arguments_of_a_verb_that_are_no_object_are_told_to_the_model(args: str):
    turn = StandInTurn()
    told = await verb(("call_agent", args), turn=turn)
    assert turn.used == []
    assert "list_agents" not in told


@pytest.mark.rule("pydantic.handed-over")
@pytest.mark.parametrize("place", [0, 1, 2])
async def test_handing_over_comes_out_unchanged_beside_other_calls(place: int):
    """And it costs no further request."""
    began, asked = anyio.Event(), []

    async def slow() -> str:
        began.set()
        await anyio.sleep_forever()
        return "never"

    class Patient(StandInTurn):
        async def hand_off(self, to: str = "", update: Any = None) -> Command:
            await began.wait()
            return await super().hand_off(to, update)

    wanted: list[tuple[str, Any]] = [("slow", {}), ("plain", {"a": 1})]
    wanted.insert(place, ("handoff", {"agent": "next", "update": {"phase": "two"}}))
    answer: Any = calls(*wanted).function
    counted = FunctionModel(lambda messages, info: asked.append(1) or answer(messages, info))
    tools = [*verb_tools(VERBS), governed(slow), governed(plain)]
    with under_way(Patient()), pytest.raises(HandedOver) as handed:
        await Agent(counted, tools=tools).run("go")
    assert handed.value.command == Command("next", update={"phase": "two"})
    assert len(asked) == 1
