"""A process of a team: `python member.py JOB ADDRESS FOLDER [name=value...]`.

What its agents do outside the database is a line each in FOLDER/log, which all processes share. It ends when its
standard input does, so that none is left behind, and puts its work back when it is sent SIGTERM.
"""

import asyncio
import os
import signal
import sys
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

from inside import be_on_machine
from remit import Card, Runtime, Turn
from remit.adapters.process import program
from remit.errors import StoreError
from teams import team
from workers.clocks import SharedClock

Operation = Callable[[Runtime, Path, dict[str, str]], Awaitable[None]]


def note(folder: Path, *words: object) -> str:
    """A line in the log, whole however many write at once; says what it is about."""
    line = " ".join(map(str, (*words, os.getpid(), time.monotonic_ns())))
    log = os.open(folder / "log", os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    try:
        os.write(log, f"{line}\n".encode())
    finally:
        os.close(log)
    return str(words[-1])


async def opened(gate: Path) -> None:
    """Until someone made this file."""
    while not os.path.exists(gate):  # noqa: ASYNC110, ASYNC240, PTH110 - a file rings no bell
        await asyncio.sleep(0.005)


def join(rt: Runtime, folder: Path) -> None:
    """Registers everyone."""
    _join_those_who_end(rt, folder)
    _join_those_who_plan(rt, folder)
    _join_those_who_stay(rt, folder)
    _join_those_who_ask(rt, folder)


def _join_those_who_end(rt: Runtime, folder: Path) -> None:

    async def echo(turn: Turn) -> str:
        note(folder, "echo", turn.task)
        return turn.task.upper()

    async def step(turn: Turn) -> str:
        """One effect, kept by the store."""
        return await turn.once("effect", note, folder, "effect", turn.task)

    async def lead(turn: Turn) -> dict[str, Any]:
        """Much is done when it comes to the gate, and something is left to do after it."""
        first = await turn.once("first", note, folder, "step", "first")
        asked = await turn.delegate("echo", "delegated")
        sent = await (await turn.submit("echo", "submitted")).result()
        beside = await (await turn.spawn("echo", "spawned")).result()
        note(folder, "middle", turn.task)
        await opened(folder / turn.task)
        last = await turn.once("last", note, folder, "step", "last")
        told = [message.text.split(": ")[1] for message in await turn.inbox()]
        return {"did": [first, asked, sent, beside, last], "told": told}

    async def busy(turn: Turn) -> str:
        """Takes a moment, and says from when to when."""
        note(folder, "begin", turn.agent, turn.task)
        await asyncio.sleep(0.002)
        note(folder, "end", turn.agent, turn.task)
        return turn.task

    async def gated(turn: Turn) -> str:
        """Ends when its gate is opened, and says when that was."""
        note(folder, "begun", turn.task)
        await opened(folder / turn.task)
        return note(folder, "opened", turn.task)

    async def blocks(turn: Turn) -> str:
        """Holds up its loop for that long, as a client does that is not async."""
        note(folder, "blocks", turn.task)
        time.sleep(float(turn.task))  # noqa: ASYNC251 - that is the point
        return f"by {os.getpid()}"

    async def charge(turn: Turn) -> str:
        """One effect, when its gate is opened; notes if it may not have it any more."""
        note(folder, "begun", turn.task)
        try:
            await opened(folder / turn.task)
            return await turn.once("charge", note, folder, "charged", turn.task)
        except BaseException:
            note(folder, "kept-from-it", turn.task)
            raise

    rt.add(Card("echo"), echo)
    rt.add(Card("step"), step)
    rt.add(Card("lead", asks="*"), lead)
    rt.add(Card("gated"), gated)
    rt.add(Card("blocks"), blocks)
    rt.add(Card("charge"), charge)
    rt.add(Card("busy"), busy)
    rt.add(Card("narrow", concurrency=2), busy)


def _join_those_who_plan(rt: Runtime, folder: Path) -> None:
    async def parent(turn: Turn) -> list[str]:
        """Spawns some and reads what is announced; each once."""
        children = [await turn.spawn("echo", f"{turn.task}/{n}") for n in range(3)]
        for child in children:
            await child.wait()
        told = [*await turn.inbox(), *await turn.inbox()]
        return sorted(message.text.split(": ")[1] for message in told)

    async def painter(turn: Turn) -> str:
        """Does a step; the one called `gate` ends when that is opened."""
        title = turn.task.partition("\n")[0].removeprefix("# Task: ")
        note(folder, "did", title)
        if title == "gate":
            await opened(folder / title)
        return title.upper()

    async def boss(turn: Turn) -> object:
        """Plans, and counts what was brought."""
        note(folder, "asked", turn.phase)
        return PAINTING if turn.phase == "plan" else turn.task.count("(by painter): completed")

    rt.add(Card("parent", asks="*"), parent)
    rt.add(Card("painter"), painter)
    rt.add(Card("boss", asks="*"), boss)


PAINTING = {
    "steps": [
        {"id": "a", "title": "sketch", "agent": "painter"},
        {"id": "b", "title": "gate", "agent": "painter", "after": ["a"]},
        {"id": "c", "title": "frame", "agent": "painter", "after": ["b"]},
    ]
}


def _join_those_who_stay(rt: Runtime, folder: Path) -> None:
    async def stay(turn: Turn) -> None:
        """The end of a chain: never ends by itself."""
        note(folder, "at", turn.agent)
        try:
            await asyncio.Event().wait()
        finally:
            note(folder, "left", turn.agent)

    async def one(turn: Turn) -> None:
        """A chain of three: by delegation, or each submits the next one."""
        if turn.task == "delegate":
            await turn.delegate("two", turn.task)
        await turn.submit("two", turn.task)
        await stay(turn)

    async def two(turn: Turn) -> None:
        if turn.task == "delegate":
            await turn.delegate("three", turn.task)
        await (await turn.submit("three", turn.task)).wait()

    async def poison(turn: Turn) -> None:
        """Kills its process."""
        note(folder, "died", turn.task)
        os.kill(os.getpid(), signal.SIGKILL)

    rt.add(Card("poison"), poison)
    sleepers = 'echo "$$" >> pids; sleep 3600 & echo "$!" >> pids; wait'
    rt.add(Card("one", asks="*"), one)
    rt.add(Card("two", asks="*"), two)
    rt.add(Card("three"), stay)
    rt.add(Card("tool"), program(["sh", "-c", sleepers], cwd=folder))


def _join_those_who_ask(rt: Runtime, folder: Path) -> None:
    async def chief(turn: Turn) -> str:
        """A chain of three under money, whose last one asks a person and passes work on that has to be approved."""
        await turn.once("plan", note, folder, "planned", turn.task)
        return await turn.delegate("manager", turn.task)

    async def manager(turn: Turn) -> str:
        await turn.once("order", note, folder, "ordered", turn.task)
        return await turn.delegate("clerk", turn.task)

    async def clerk(turn: Turn) -> str:
        env = await turn.ask_human("Where to?", ["prod", "test"])
        note(folder, "answered", turn.task)
        return await turn.delegate("deployer", f"to {env}")

    async def deployer(turn: Turn) -> str:
        await turn.spend("$0.10", why="deploying")
        return await turn.once("deploy", note, folder, "deployed", turn.task)

    rt.add(Card("chief", asks="*"), chief)
    rt.add(Card("manager", asks="*"), manager)
    rt.add(Card("clerk", asks="*"), clerk)
    rt.add(Card("deployer", needs_approval=True), deployer)


# -- what a process may be for --------------------------------------------------------------------------------------


async def work(rt: Runtime, folder: Path, how: dict[str, str]) -> None:
    """Carries out what there is, until it is told to stop."""
    serving = asyncio.create_task(rt.serve())
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, _drain, rt)
    print("ready", flush=True)
    await serving


async def run(rt: Runtime, folder: Path, how: dict[str, str]) -> None:
    """Someone in the foreground."""
    print("ready", flush=True)
    outcome = await rt.outcome(how["agent"], how["task"])
    print(outcome.state, flush=True)


async def ask(rt: Runtime, folder: Path, how: dict[str, str]) -> None:
    """Submits one task after the other until there is a file `enough`; notes what was acknowledged."""
    print("ready", flush=True)
    number = 0
    while not (folder / "enough").exists():
        number += 1
        await _asked(rt, f"{how['agent']} {number}", how, folder)


async def same_requests(rt: Runtime, folder: Path, how: dict[str, str]) -> None:
    """Asks for the same as others, at the same moment."""
    print("ready", flush=True)
    await opened(folder / "go")
    await asyncio.gather(*(_asked(rt, f"twin {n}", {"agent": "step"}, folder) for n in range(20)))


async def _asked(rt: Runtime, text: str, how: dict[str, str], folder: Path) -> None:
    """Until it is acknowledged. Under the same key it is safe to ask again."""
    while True:
        with suppress(StoreError):
            task = await rt.submit(how["agent"], text, key=text)
            note(folder, "acknowledged", task.id)
            return


def _drain(rt: Runtime) -> None:
    rt.draining = asyncio.ensure_future(rt.drain(0))  # pyright: ignore[reportAttributeAccessIssue] - kept alive


def _export(rt: Runtime, file: Path) -> None:
    """A line for each span of this process."""
    from opentelemetry.sdk.trace import TracerProvider  # noqa: PLC0415 - most members have none
    from opentelemetry.sdk.trace.export import ConsoleSpanExporter, SimpleSpanProcessor  # noqa: PLC0415

    from remit.adapters.otel import instrument  # noqa: PLC0415

    def line(span: Any) -> str:
        return f"{' '.join(span.to_json(indent=None).split())}\n"

    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(ConsoleSpanExporter(out=file.open("a", 1), formatter=line)))
    instrument(rt, tracer_provider=provider)


async def main(job: Operation, address: str, folder: Path, how: dict[str, str]) -> None:
    if "machine" in how:
        be_on_machine(how["machine"])
    numbers = {name: int(how[name]) for name in ("hands", "concurrency") if name in how}
    clock = SharedClock(folder / how["clock"]) if "clock" in how else None
    async with team(address, silence=float(how.get("silence", 15)), clock=clock, **numbers) as rt:
        join(rt, folder)
        if "spans" in how:
            _export(rt, folder / how["spans"])
        doing = asyncio.ensure_future(job(rt, folder, how))
        alone = asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)
        await asyncio.wait([doing, alone], return_when=asyncio.FIRST_COMPLETED)
        doing.cancel()
        with suppress(asyncio.CancelledError):
            await doing
    os._exit(0)  # a thread still reads


if __name__ == "__main__":
    asyncio.run(
        main(
            {"work": work, "run": run, "ask": ask, "same_requests": same_requests}[sys.argv[1]],
            sys.argv[2],
            Path(sys.argv[3]),
            dict(word.split("=", 1) for word in sys.argv[4:]),
        )
    )
