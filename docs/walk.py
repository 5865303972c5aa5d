"""Walks the way of a delegation, a submitted task and an entry: calls, files, changes of file. `python docs/walk.py`

The figures in design.md come from here. With --files each file is listed when it is first entered.
"""

import asyncio
import sys
import threading
from collections.abc import Awaitable, Callable
from pathlib import Path
from types import FrameType
from typing import Self

import remit

HOME = str(Path(remit.__file__).parent)
_NAMELESS = {"<genexpr>", "<listcomp>", "<dictcomp>", "<setcomp>"}


class Walk:
    """Counts the functions of remit that are entered; a coroutine that is resumed counts once."""

    def __init__(self) -> None:
        self.calls = 0
        self.changes = 0
        self.files: dict[str, int] = {}
        self._last = ""
        self._seen: list[FrameType] = []  # kept, so that no two have the same id
        self._ids: set[int] = set()

    def __call__(self, frame: FrameType, what: str, _: object) -> None:
        code = frame.f_code
        if what != "call" or not code.co_filename.startswith(HOME) or code.co_name in _NAMELESS:
            return
        if id(frame) in self._ids:
            return
        self._ids.add(id(frame))
        self._seen.append(frame)
        name = code.co_filename.removeprefix(HOME + "/")
        self.calls += 1
        self.changes += name != self._last
        self._last = name
        self.files.setdefault(name, self.calls)

    def __enter__(self) -> Self:
        threading.setprofile(self)
        sys.setprofile(self)
        return self

    def __exit__(self, *_: object) -> None:
        sys.setprofile(None)
        threading.setprofile(None)

    def tell(self, name: str) -> None:
        sys.stdout.write(
            f"{name:<32}{self.calls:>5} calls {len(self.files):>4} files {self.changes:>5} changes of file\n"
        )
        if "--files" in sys.argv:
            sys.stdout.write("".join(f"    {file}\n" for file in self.files))


rt = remit.Runtime()
walks: dict[str, Walk] = {}


async def walked(name: str, act: Callable[[], Awaitable[object]]) -> None:
    await act()  # once to warm up: what is imported or read for the first time is not the way
    with Walk() as walk:
        await act()
    walks[name] = walk


@rt.agent(asks=["helper"])
async def lead(turn: remit.Turn) -> None:
    await walked("a delegation", lambda: turn.delegate("helper", "a part"))
    number = iter(range(9))
    await walked("an entry", lambda: turn.context.set("notes", f"key {next(number)}", "value"))


@rt.agent
async def helper(turn: remit.Turn) -> str:
    return "done"


async def submitted(tag: str) -> None:
    await (await rt.submit("helper", f"a part {tag}")).result()


async def main() -> None:
    await rt.run("lead", "walk")
    tags = iter("abcdefgh")
    await walked("a submitted task, to the queue", lambda: rt.submit("helper", f"a part {next(tags)}"))
    await asyncio.sleep(0.2)
    await walked("a submitted task, to its end", lambda: submitted(next(tags)))
    for name, walk in walks.items():
        walk.tell(name)


if __name__ == "__main__":
    asyncio.run(main())
