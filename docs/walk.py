"""Walks the way of a delegation, an entry, a submitted task and a model agent: calls, files, changes of file and
bytecodes.

`python docs/walk.py`; the figures in design.md come from here. With --files each file is listed when it is first
entered, with --json the figures are printed for programs.
"""

import asyncio
import gc
import json
import sys
from collections.abc import Awaitable, Callable
from itertools import count
from pathlib import Path
from types import FrameType
from typing import Any, Self

from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models.function import AgentInfo, FunctionModel

import remit

HOME = str(Path(remit.__file__).parent)
RECORDS = f"{HOME}/core/records.py"  # not counted: it stands in for `typing.NamedTuple`
_NAMELESS = {"<genexpr>", "<listcomp>", "<dictcomp>", "<setcomp>"}


class Walk:
    """Counts the functions of remit that are entered on this thread, and the bytecodes that they run; a coroutine that
    is resumed counts once."""

    def __init__(self) -> None:
        self.calls = 0
        self.changes = 0
        self.bytecodes = 0
        self.files: dict[str, int] = {}
        self._last = ""
        self._seen: list[FrameType] = []  # kept, so that no two have the same id
        self._ids: set[int] = set()

    def __call__(self, frame: FrameType, what: str, _: object) -> "Walk | None":
        if what == "opcode":
            self.bytecodes += 1
        if what != "call" or id(frame) in self._ids:
            return self
        code = frame.f_code
        if not code.co_filename.startswith(HOME) or code.co_filename == RECORDS:
            return None
        frame.f_trace_lines, frame.f_trace_opcodes = False, True
        self._ids.add(id(frame))
        self._seen.append(frame)
        if code.co_name not in _NAMELESS:
            name = code.co_filename.removeprefix(HOME + "/")
            self.calls += 1
            self.changes += name != self._last
            self._last = name
            self.files.setdefault(name, self.calls)
        return self

    def __enter__(self) -> Self:
        gc.collect()
        gc.disable()  # what is freed may call functions
        sys.settrace(self)
        return self

    def __exit__(self, *_: object) -> None:
        sys.settrace(None)
        gc.enable()

    def tell(self, name: str) -> None:
        sys.stdout.write(
            f"{name:<44}{self.calls:>6,} calls {len(self.files):>4} files {self.changes:>4} changes of file "
            f"{self.bytecodes:>7,} bytecodes\n"
        )
        if "--files" in sys.argv:
            sys.stdout.write("".join(f"    {file}\n" for file in self.files))


walks: dict[str, Walk] = {}


async def walked(name: str, act: Callable[[], Awaitable[object]]) -> None:
    for _ in range(3):  # to warm up: what is imported or read for the first time is not the way
        await act()
    found: list[Walk] = []
    for _ in range(12):
        with Walk() as walk:
            await act()
        found.append(walk)
    walks[name] = min(found, key=lambda one: one.bytecodes)  # without what a timer did in between


async def plain_agents() -> None:
    rt = remit.Runtime()

    @rt.agent(asks=["helper"])
    async def lead(turn: remit.Turn) -> None:
        numbers = count()  # not the same part again and again, which would be watched for a loop
        await walked("a delegation", lambda: turn.delegate("helper", f"part {next(numbers)}"))
        await walked("an entry", lambda: turn.context.set("notes", f"key {next(numbers)}", "value"))

    @rt.agent
    async def helper(turn: remit.Turn) -> str:
        return "done"

    async def submitted(tag: int) -> None:
        await (await rt.submit("helper", f"a part {tag}")).result()

    async with rt:
        await rt.run("lead", "walk")
        tags = count()
        await walked("a submitted task, until it is in the queue", lambda: rt.submit("helper", f"a part {next(tags)}"))
        await asyncio.sleep(0.2)
        await walked("a submitted task, until it has ended", lambda: submitted(next(tags)))


async def model_agent() -> None:
    """Walk two requests to a model that is a function, with the call of a tool in between."""

    async def says(history: list[ModelMessage], _info: AgentInfo) -> ModelResponse:
        if len(history) > 1:
            return ModelResponse(parts=[TextPart("It is open.")])
        return ModelResponse(parts=[ToolCallPart("look_up", {"day": "Sunday"})])

    async def look_up(day: str) -> str:
        """Look up when it is open."""
        return f"{day}: 9 to 5"

    model: Any = FunctionModel(says)
    async with remit.Runtime() as rt:
        rt.model_agent("desk", model, tools=[look_up])
        await walked("a model agent, two requests and a tool call", lambda: rt.run("desk", "Is it open on Sunday?"))


async def main() -> None:
    await plain_agents()
    await model_agent()
    if "--json" in sys.argv:
        found = {name: [one.calls, len(one.files), one.changes, one.bytecodes] for name, one in walks.items()}
        sys.stdout.write(json.dumps(found))
        return
    for name, walk in walks.items():
        walk.tell(name)


if __name__ == "__main__":
    asyncio.run(main())
