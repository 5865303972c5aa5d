"""A provider's key is nowhere but in the requests to that provider, also when the provider quotes it: not in any file
of the store, not in a log at DEBUG, not in an error or a traceback, and not on stderr."""

import asyncio
import logging
import os
import sys
import traceback
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from adapters.places import KEY, KEY_NAME, KINDS, Place, join, priced, served
from forking import in_a_fork
from remit import Runtime, Turn
from remit.settings import RetryPolicy
from remit.testing.doubles import PATIENCE
from remit.testing.models import Cut, Fails, Garbage, ModelReply, Reset, Says

QUOTED = f"the key {KEY} of Bearer {KEY} is wrong"
REPLIES: list[ModelReply] = [
    Says("fine"),
    *(Fails(status, message=QUOTED) for status in (400, 401, 429, 500)),
    Fails(401, code=KEY, message=QUOTED),
    Garbage(text=QUOTED),
    Cut(Says("half of this does not arrive " * 8)),
    Reset(),
]
ONCE = RetryPolicy(attempts=1)


def by_itself(rt: Runtime, place: Place) -> None:
    """A plain function that uses a client, with a key that the runtime knows as a secret."""

    @rt.agent(retry=ONCE)
    async def it(turn: Turn) -> Any:
        said = await place.client.chat.completions.create(model="m", messages=[{"role": "user", "content": turn.task}])
        return said.choices[0].message.content


async def met(kind: str, store: Path, reply: ModelReply) -> None:
    """Run an agent that meets this reply, plain and streamed and from the queue, and print all that is told of it."""
    known = [KEY] if kind == "function" else []  # what asks through the turn is safe with any key
    async with served(lambda _: reply) as place, priced(store=store, secrets=known) as rt:
        if kind == "function":
            by_itself(rt, place)
        else:
            join(rt, kind, place, retry=ONCE)
        await shown(lambda: rt.run("it", "go", timeout=1))
        await shown(lambda: listened(rt))
        if isinstance(reply, Fails):
            task = await rt.submit("it", "go", timeout=1)
            await shown(lambda: task.result(PATIENCE))
        print(await rt.workspace.journal.history(), await rt.workspace.tasks.list(), file=sys.stderr)


async def listened(rt: Runtime) -> None:
    async for one in rt.stream("it", "go", timeout=1):
        print(repr(one), file=sys.stderr)


async def shown(act: Callable[[], Awaitable[object]]) -> None:
    """Print what comes of something as a program would that fails of it."""
    try:
        print(repr(await act()), file=sys.stderr)
    except Exception as error:
        traceback.print_exc()
        logging.getLogger("program").warning("it failed: %r", error, exc_info=error)


def everything(kind: str, folder: Path) -> str:
    """Meet every reply in a process whose stderr is a file."""
    errors = os.open(folder / "stderr", os.O_WRONLY | os.O_CREAT)
    os.dup2(errors, 2)
    sys.stderr = os.fdopen(2, "w", buffering=1)
    logging.basicConfig(level=logging.DEBUG, stream=sys.stderr, force=True)
    os.environ[KEY_NAME] = KEY

    async def main() -> None:
        for number, reply in enumerate(REPLIES):
            await met(kind, folder / f"team{number}.db", reply)

    asyncio.run(main())
    sys.stderr.flush()
    return "over"


@pytest.mark.rule("secret.nowhere", "pydantic.failures", "guest.failures")
@pytest.mark.parametrize("kind", [*KINDS, "function"])
def test_a_key_is_in_no_file_and_on_no_stderr(kind: str, tmp_path: Path):
    assert in_a_fork(lambda: everything(kind, tmp_path), PATIENCE) == "over"
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    said = (tmp_path / "stderr").read_text()
    assert "HTTP Request: POST" in said
    assert "Traceback" in said
    assert said.count("fine") >= 2
    assert {path.name for path in files} >= {"stderr", "team0.db"}
    leaks = [line for line in said.splitlines() if KEY in line]
    assert leaks == []
    assert [path.name for path in files if KEY.encode() in path.read_bytes()] == []
