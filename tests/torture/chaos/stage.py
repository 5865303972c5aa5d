"""What the agents of a chaos run have in common: asking, taking effect, failing, all of it decided by the seed and
noted outside of the store.

Every answer names the question that it answers, and every receipt the effect that it is for: `q` is what was asked,
`parts` are pairs of a question that was passed on and the answer that came back, `effects` are lists of name, what it
is for, and the receipt. So whoever reads a record can tell whether an answer belongs to its question.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from itertools import count
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from remit import Card, Runtime, Turn
from remit.settings import RetryPolicy
from torture.chaos import dice
from torture.chaos.ledger import Ledger

T = TypeVar("T")

OFTEN = 1_000  # attempts: no task is to use them up by being killed
TRIES = 3  # times that something fails at most, before it passes
_PAUSE = 0.06
_RETRY = RetryPolicy(attempts=OFTEN, first=0.05, cap=0.4)


class Busy(Exception):
    """A passing trouble of someone else's server."""

    status = 503


class Life(NamedTuple):
    """Which process this is: its role, the how manieth of that role, and the seed and folder of the whole run."""

    folder: Path
    seed: int
    role: str
    number: int


class Stage:
    """Where agents act. What they decide depends on the seed, the task and the life, so it differs between lives."""

    def __init__(self, life: Life, ledger: Ledger) -> None:
        self.life = life
        self.ledger = ledger
        self._calls = count(1)
        self._tried = life.folder / "tried"
        self._tried.mkdir(exist_ok=True)

    def agent(self, rt: Runtime, **about: Any) -> Callable[[Callable[[Turn], Awaitable[object]]], None]:
        """Register an agent whose turns are noted."""

        def register(function: Callable[[Turn], Awaitable[object]]) -> None:
            async def noted(turn: Turn) -> object:
                self.ledger.note("began", task=turn.remit.id, agent=turn.agent, text=question(turn))
                await self.pause(turn, "begins")
                return await function(turn)

            rt.add(Card(function.__name__, **about), noted, retry=_RETRY)

        return register

    @property
    def mended(self) -> bool:
        """Whether nobody does any harm any more."""
        return (self.life.folder / "mended").exists()

    # -- what is decided -------------------------------------------------------------------------------------------

    async def pause(self, turn: Turn, why: str) -> None:
        """Take a moment, another one in each life: what comes back first then comes back last now."""
        await asyncio.sleep(_PAUSE * dice.chance(*self._here(turn), why))

    def shuffled(self, turn: Turn, items: Sequence[T], why: str = "") -> list[T]:
        return dice.shuffled(items, *self._here(turn), why)

    def one_of(self, turn: Turn, items: Sequence[T]) -> T:
        return dice.one_of(items, *self._here(turn))

    def fails(self, turn: Turn, why: str) -> bool:
        """Whether this try is one of those that fail: some of the first few do, none once all is mended."""
        name = f"{why} {question(turn)}"
        with (self._tried / f"{dice.chance(name):.16f}").open("a") as file:
            file.write(".")
            file.flush()
            tries = file.tell()
        return not self.mended and tries <= TRIES and dice.chance(self.life.seed, name, tries) < 0.5

    def _here(self, turn: Turn) -> tuple[object, ...]:
        return (self.life.seed, question(turn), self.life.role, self.life.number)

    # -- what is done ----------------------------------------------------------------------------------------------

    async def ask(self, turn: Turn, to: str, text: str, **how: Any) -> list[Any]:
        """Delegate, and give the question with its answer."""
        return [text, await turn.delegate(to, text, **how)]

    async def effect(self, turn: Turn, name: str, what: str, times: int = 1) -> list[str]:
        """Do something in the world outside. It is to happen so many times in the whole run, whoever has to try."""
        about = {"name": name, "what": what, "times": times, "call": f"{self.ledger.who}/{next(self._calls)}"}
        self.ledger.note("asks effect", task=turn.remit.id, **about)

        async def do(what: str, *, idempotency_key: str | None = None) -> str:
            self.ledger.note("before", task=turn.remit.id, key=idempotency_key, **about)
            await self.pause(turn, name)
            self.ledger.note("after", **about)
            return receipt(name, what)

        try:
            given = await turn.once(name, do, what)
        except BaseException as error:
            self.ledger.note("missed", error=type(error).__name__, says=str(error)[:200], **about)
            raise
        self.ledger.note("kept", receipt=given, **about)
        return [name, what, given]


def receipt(name: str, what: str) -> str:
    """Say what an effect gives back; the checker makes the same."""
    return f"{name}: {what}"


def question(turn: Turn) -> str:
    """Give what a turn was asked; of a step of a plan its title."""
    return turn.task.partition("\n")[0].removeprefix("# Task: ")


def answer(turn: Turn, *, seeing: str = "", **said: Any) -> dict[str, Any]:
    """Answer with the question in it."""
    return {"q": f"{question(turn)} seeing {seeing}" if seeing else question(turn), **said}
