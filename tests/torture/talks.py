"""Conversations at random, of agents of every kind: they use tools one by one and side by side, fail, call what does
not exist and hand over; are interrupted during a request or in a tool, and go on although something has changed. What
comes of each is what came of it undisturbed: the same tools, answers and charges.

`python -m torture talks --seeds N`; `--seed S` for one of them again.
"""

import argparse
import logging
import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from random import Random  # noqa: TID251 - the same for the same seed
from time import perf_counter
from typing import Any, NamedTuple, cast

import anyio

from adapters.lives import Interrupted, Life, live_until, lived
from adapters.places import KEY, KEY_NAME, KINDS, Place, join, priced, served, told
from remit import Runtime
from remit.testing.models import Calls, ModelReply, ModelRequest, Says

NAME = "talks"
CHANGES = ("nothing", "instructions", "tools", "context", "model")
SIDE_BY_SIDE = 3  # calls of one answer at most
_ENDS = "said"


class Tale(NamedTuple):
    """What the models of two agents say, answer after answer, and what happens to them. The first life ends during a
    request, or in a call of a tool, of this number; 0 is none of them."""

    kind: str
    plans: dict[str, list[ModelReply]]
    change: str = "nothing"
    request: int = 0
    tool: int = 0


class Came(NamedTuple):
    """What came of a tale."""

    ended: list[str]
    used: list[str]
    answered: list[Any]
    charged: list[int]


def drawn(dice: Random) -> Tale:
    """Draw a tale that nothing happens to."""
    kind = dice.choice(KINDS)
    hands = dice.random() < 0.3
    first = _plan(dice, "a", hands=hands)
    return Tale(kind, {"a": first, "b": _plan(dice, "b", hands=False) if hands else []})


def _plan(dice: Random, who: str, *, hands: bool) -> list[ModelReply]:
    plan: list[ModelReply] = []
    for number in range(dice.randint(1, 4)):
        calls = [_call(dice, f"{who}{number}{at}") for at in range(dice.choice((1, 1, 1, 2, SIDE_BY_SIDE)))]
        first, *also = calls
        said = f"{who} says {number}" if dice.random() < 0.3 else ""
        usage = (10 + number, 5)
        plan.append(Calls(first.name, first.arguments, also=also, id=first.id, text=said, usage=usage))
    last = Calls("handoff", {"agent": "b"}, id=f"{who}-hands", usage=(7, 7)) if hands else Says(_ENDS, usage=(8, 8))
    return [*plan, last]


def _call(dice: Random, what: str) -> Calls:
    name = dice.choices(("step", "stumble", "fly"), (8, 2, 1))[0]
    return Calls(name, {"what": what}, id=f"c-{what}")


def disturbed(dice: Random, tale: Tale, undisturbed: Came) -> Tale:
    """Draw what happens to a tale."""
    change = dice.choice(CHANGES)
    if undisturbed.used and dice.random() < 0.5:
        return tale._replace(change=change, tool=dice.randint(1, len(undisturbed.used)))
    return tale._replace(change=change, request=dice.randint(1, len(undisturbed.answered)))


class Stage:
    """A tale as it is played, in one life or in two."""

    def __init__(self, tale: Tale, store: Path) -> None:
        self.tale = tale
        self.store = store
        self.life = Life()
        self.used: list[str] = []

    def script(self, asked: ModelRequest) -> ModelReply:
        """Say what is next in the conversation of whoever asks."""
        plan = self.tale.plans["a" if asked.model.startswith("a") else "b"]
        reply = plan[sum(message["role"] == "assistant" for message in asked.messages)]
        if not isinstance(reply, Says):
            return reply
        results = ["no such tool" if "fly" in one else one for one in told(asked)]  # frameworks list those there are
        return Says(f"{_ENDS} {' | '.join(results)}", reply.usage)

    async def use(self, what: str) -> None:
        self.used.append(what)
        if self.life.is_first and len(self.used) == self.tale.tool:
            await self.life.hold()

    def tools(self) -> list[Callable[..., Any]]:
        async def step(what: str) -> str:
            """Go a step."""
            await self.use(what)
            return f"went {what}"

        async def stumble(what: str) -> str:
            """Stumble."""
            await self.use(what)
            raise ValueError(f"stumbled over {what}")

        async def look() -> str:
            """Look around."""
            return "nothing"

        return [step, stumble, *([look] if self.is_changed("tools") else [])]

    def is_changed(self, what: str) -> bool:
        return self.tale.change == what and not self.life.is_first

    def team(self, place: Place) -> Callable[[Runtime], None]:
        def add(rt: Runtime) -> None:
            said = "Be brief." if self.is_changed("instructions") else "Take your time."
            for name, asks in (("a", ["b"]), ("b", [])):
                model = f"{name}2" if self.is_changed("model") else name
                repeat = {"step": "again", "stumble": "again"}
                how: dict[str, Any] = {"tools": self.tools(), "repeat": repeat, "asks": asks, "reads": ["rates"]}
                join(rt, self.tale.kind, place, name, model=model, instructions=said, **how)

        return add

    async def change(self, rt: Runtime) -> None:
        if self.is_changed("context"):
            await rt.workspace.context().set("rates", "usd", "1.07")

    async def play(self) -> Came:
        script = Interrupted(self.script, self.life, self.tale.request)
        async with served(script) as place:
            team = self.team(place)
            if self.tale.request or self.tale.tool:
                await live_until(self.store, team, self.life, "a", opens=_opened)
            async with lived(self.store, team, "a", self.change, opens=_opened) as (rt, outcome):
                events = await rt.workspace.journal.history()
                health = await rt.workspace.check()
        assert health.sound, [finding.sentence for finding in health.findings]
        answered = [event.data for event in events if event.kind == "model.answered"]
        settled = [event.data for event in events if event.kind == "hold.settled"]
        return Came(
            [outcome.state, str(outcome.value), str(outcome.error).replace(outcome.id, "ID"), outcome.trust],
            self.used,
            [[one["calls"], one["usage"]] for one in answered],
            [cast("Any", one)["costs"]["credits"] for one in settled if not one.get("uncertain")],
        )


def _opened(store: Path) -> Runtime:
    return priced("a", "b", "a2", "b2", store=store)


async def check(seed: int, folder: Path) -> list[str]:
    """Play a tale twice, undisturbed and disturbed; tell what differs."""
    os.environ[KEY_NAME] = KEY
    dice = Random(seed)
    tale = drawn(dice)
    expected = await Stage(tale, folder / f"{seed}.db").play()
    happens = disturbed(dice, tale, expected)
    found = await Stage(happens, folder / f"{seed}-disturbed.db").play()
    pairs = zip(Came._fields, _used_once(found), _used_once(expected), strict=True)
    wrong = [f"{name}: {one}, and not {other}" for name, one, other in pairs if one != other]
    return [f"{happens.kind}, {happens.change} changed: {one}" for one in wrong]


def _used_once(came: Came) -> Came:
    """Count a tool that was begun in the first life once, as it may be used again: those of one answer at most."""
    once = sorted({*came.used})
    return came._replace(used=once if len(came.used) - len(once) <= SIDE_BY_SIDE else came.used)


def repeat(seed: int) -> str:
    """The command that plays it again."""
    return f"make torture ARGS='talks --seed {seed}'"


async def wrong_among(seeds: range | list[int]) -> int:
    """How many of them come to something else."""
    wrong = 0
    with tempfile.TemporaryDirectory() as name:
        for seed in seeds:
            found = await check(seed, Path(name))
            if found:
                wrong += 1
                print("\n".join([*found, f"  {repeat(seed)}"]), flush=True)
    return wrong


def main(arguments: list[str]) -> int:
    options = argparse.ArgumentParser(prog="torture talks", description=__doc__)
    options.add_argument("--seeds", type=int, default=300)
    options.add_argument("--seed", type=int, default=None, help="this one alone")
    options.add_argument("--from", dest="first", type=int, default=0)
    given = options.parse_args(arguments)
    seeds = [given.seed] if given.seed is not None else range(given.first, given.first + given.seeds)
    began = perf_counter()
    logging.disable()  # tools fail here, which is logged
    wrong = anyio.run(wrong_among, seeds)
    print(f"{len(seeds)} conversations: {wrong} wrong; {perf_counter() - began:.0f} s")
    return 1 if wrong else 0
