"""Teams at random that share, cap and set aside, hold, pay, fail, hang, are cancelled, lose their process, and outlive
each other. Afterwards the books have to be right, and have to say what the world outside says.

`python -m torture money --seeds N --store memory|file|postgres`; `--seed S` for one of them again.
"""

import argparse
import logging
import os
import re
import tempfile
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from random import Random  # noqa: TID251 - the same for the same seed
from time import perf_counter
from typing import Any, cast

import anyio

from bookkeeping import Books, hold_of, misbooked, opened
from engine.helping import quiet, take_over
from postgres import running
from remit import Bounds, RemitError, Runtime
from remit.core.breaker import BreakerPolicy
from remit.core.limits import Limit
from remit.core.money import UNITS
from remit.core.times import HOUR, hour_of
from remit.errors import BadInput, Conflict
from remit.ports import Database
from remit.settings import Policy, Serving, System
from remit.stores.opening import database_at
from remit.testing import FakeClock, Zombie, pass_time
from teams import Closing
from torture.money_team import Life, Refusals, World

NAME = "money"
MEMORY = ":memory:"
_MISTAKE = re.compile(r"(Attribute|Type|Key|Name|Assertion|Index)Error")


# -- one seed ---------------------------------------------------------------------------------------------------------


class Trial:
    """A workspace of its own, from its grant to its last look."""

    def __init__(self, seed: int, store: str) -> None:
        self.seed = seed
        self.store: str | Database = database_at(store) if store == MEMORY else store
        self.dice = Random(seed)
        self.clock = FakeClock()
        self.world = World(seed)
        self.counted: Counter[str] = Counter()

    def runtime(self, *, doomed: bool = False) -> Runtime:
        store, clock = self.store, self.clock
        limits = [Limit("day", credits="$2", agent="*")] if self.seed % 7 == 3 else []
        if not doomed:
            system = System(clock=clock)
        else:
            store = Zombie.database(cast("str", store))
            system = System(clock=Zombie.clock(clock))
        short = "ask" if self.seed % 3 == 1 else "refuse"
        policy = Policy(breaker=BreakerPolicy(failures=1_000), limits=limits, short=short)
        serving = Serving(keep_days=None)
        kind = Runtime if isinstance(store, str) else Closing
        return kind(store, workspace=f"seed-{self.seed}", policy=policy, serving=serving, system=system)

    async def played(self) -> list[str]:
        """Play it, and list what is wrong with the books."""
        with ExitStack() as stack:
            if self.seed % 4 == 1 and not isinstance(self.store, str):  # two processes share no memory
                folder = stack.enter_context(tempfile.TemporaryDirectory(dir=_in_memory()))
                self.store = str(Path(folder) / "team.db")
            rt = stack.enter_context(self.runtime())
            await self.granted(rt)
            dead = stack.enter_context(self.runtime(doomed=True)) if self.seed % 4 == 1 else None
            await (self.in_one_life(rt) if dead is None else self.in_two_lives(dead, rt))
            found = await self.looked(rt)
            await self.retried(rt)
            await self.reconciled(rt)
            found += await self.looked(rt)
            return found or await self.pruned(rt)

    async def granted(self, rt: Runtime) -> None:
        if self.seed % 10 != 9:
            await rt.workspace.money.grant(f"${self.dice.choice((0.3, 1, 3, 20)):.2f}")
        if self.seed % 3 == 0:
            await rt.workspace.money.grant(tokens=self.dice.choice((60, 400)))

    def asked(self) -> list[dict[str, Any]]:
        words = ({}, {"credits": "$0.90"}, {"within": Bounds(credits="$0.60")}, {"within": Bounds(tokens=150)})
        return [self.dice.choice(words) for _ in range(self.dice.randint(1, 3))]

    async def submit(self, rt: Runtime, asked: list[dict[str, Any]]) -> None:
        for number, how in enumerate(asked):
            with Refusals():
                await rt.submit("a0", f"r{number}", attempts=2, timeout=60, **how)

    async def in_one_life(self, rt: Runtime) -> None:
        Life(self.world).agents(rt)
        await self.submit(rt, self.asked())
        stop = self.world.doom.setdefault(self.dice.randint(3, 25), anyio.Event())
        async with anyio.create_task_group() as group:
            if self.dice.random() < 0.5:
                group.start_soon(self.cancelled, rt, stop)
            await self.over(rt)
            group.cancel_scope.cancel()

    async def cancelled(self, rt: Runtime, stop: anyio.Event) -> None:
        await stop.wait()
        tasks = sorted(await rt.workspace.tasks.list(state="open"), key=lambda status: status.task)
        if tasks:
            try:
                await rt.workspace.tasks.cancel(self.dice.choice(tasks).id, "enough")
            except RemitError:
                return  # it has just ended

    async def in_two_lives(self, dead: Runtime, rt: Runtime) -> None:
        """Someone else takes over in the middle of it; when all is done the dead go on where they were."""
        first, second = Life(self.world), Life(self.world)
        self.world.doom[self.dice.randint(2, 20)] = first.dead
        first.agents(dead)
        try:
            await self.submit(dead, self.asked())
            await self.still(first)
            first.dead.set()
            second.agents(rt)
            await take_over(rt, self.clock, dead)
            await self.over(rt)
        finally:  # also when time is up, or whoever waits for the dead to end waits for ever
            first.again.set()
        await self.still(first)
        self.counted["zombies"] += 1

    async def still(self, life: Life) -> None:
        """Wait until a process does nothing any more: it has died, or all that it has is waiting or hanging."""
        acts = -1
        while acts != self.world.acts and not (life.dead.is_set() and not life.again.is_set()):
            acts = self.world.acts
            await quiet()

    async def over(self, rt: Runtime) -> None:
        async def ended() -> bool:
            await self.answered(rt)
            return not await rt.workspace.tasks.list(state="open")

        rt.lend()
        await pass_time(self.clock, ended, step=0.5)

    async def answered(self, rt: Runtime) -> None:
        """A person gives more money, or does not; others have decided some of it already, or there is less by now."""
        for question in await rt.workspace.questions.list():
            if question.kind != "money":
                continue
            dice = Random(f"{self.seed}/{question.text}")
            said = dice.choice((None, None, "$0.50" if "$" in question.text else "100", "no"))
            with suppress(Conflict, BadInput):
                if said != "no":
                    await rt.workspace.questions.approve(question.id, value=said)
                    self.counted["raised"] += 1
                    continue
            with suppress(Conflict):
                await rt.workspace.questions.reject(question.id)

    # -- afterwards -------------------------------------------------------------------------------------------------

    async def looked(self, rt: Runtime) -> list[str]:
        health = await rt.workspace.check()
        books = await rt.workspace.journal.read(opened)
        self.counted.update(
            {"leases": sum(len(cast("list[Any]", event.data.get("opens", ()))) for event in books.events)}
        )
        self.counted.update(event.kind for event in books.events if event.kind in ("hold.placed", "task.lost"))
        sentences = [finding.sentence for finding in health.findings]
        return [*sentences, *misbooked(books), *outside(books, self.world)]

    async def retried(self, rt: Runtime) -> None:
        """A person has one of those that did not complete tried again."""
        gone = [status for status in await rt.workspace.tasks.list() if status.state in ("failed", "dead", "cancelled")]
        if gone:
            status = self.dice.choice(sorted(gone, key=lambda status: (status.task, status.id)))
            try:
                await rt.workspace.tasks.get(status.id).retry()
                self.counted["retried"] += 1
            except RemitError:
                return  # there is no money left for it, or it was tried again already
        await self.over(rt)

    async def reconciled(self, rt: Runtime) -> None:
        for hold in (await rt.workspace.money.uncertain())[:3]:
            await rt.workspace.money.reconcile(hold.id, self.dice.choice(("$0.01", "$0.03", "$0.15", "$0.00")))
            self.counted["reconciled"] += 1

    async def pruned(self, rt: Runtime) -> list[str]:
        """What all of it has cost stays when all of it is gone, for as long as it is metered."""
        before, metered = await rt.workspace.money.account(), await self.metered(rt)
        self.clock.advance(10 * 86_400)
        await rt.workspace.prune(5)
        found = [finding.sentence for finding in (await rt.workspace.check()).findings]
        if await rt.workspace.money.account() != before:
            found.append(
                f"the account was {before} and is {await rt.workspace.money.account()} since its runs are pruned"
            )
        if await self.metered(rt) != metered:
            found.append(f"{metered} was metered, and {await self.metered(rt)} since all runs are pruned")
        return found

    async def metered(self, rt: Runtime) -> list[int]:
        since = hour_of(self.clock.now() - 700 * HOUR)
        return await rt.workspace.journal.read(
            lambda view: [view.metered("workspace", "", unit, since) for unit in UNITS]
        )


def _charged_as_far_as_it_goes(data: dict[str, Any]) -> bool:
    """Whether a call that is uncertain was charged its hold, or what its lease had if a higher bill is in doubt."""
    billed = data.get("billed")
    if billed is None:
        return data["costs"] == data["amounts"]
    return all(cost <= billed.get(unit, data["amounts"].get(unit, 0)) for unit, cost in data["costs"].items())


def outside(books: Books, world: World) -> Iterator[str]:
    """Compare with the world: what left is charged, what is certain is what was billed, nothing is paid twice."""
    settled = {hold_of(event): cast("dict[str, Any]", event.data) for event in books.of("hold.settled")}
    for hold, sent in world.sent.items():
        data = settled.get(hold)
        if sent.left and data is None:
            yield f"call {hold} left and was not charged"
        elif data is not None and not data.get("uncertain") and data["costs"].get("credits", 0) != sent.bill:
            yield f"call {hold} billed {sent.bill} and was charged {data['costs']}"
        elif data is not None and data.get("uncertain") and not _charged_as_far_as_it_goes(data):
            yield f"call {hold} is uncertain and was not charged whole: {data}"
    for event in books.of("task.failed", "task.died"):
        if _MISTAKE.search(str(event.data["error"])):
            yield f"the torture is wrong: {event.data['error']}"
    paid = Counter(event.data["why"] for event in books.of("credits.spent"))
    done = Counter(event.data["key"] for event in books.of("effect.done"))
    yield from (f"{what} was paid {times} times" for what, times in (*paid.items(), *done.items()) if times > 1)


# -- many seeds -------------------------------------------------------------------------------------------------------


def _in_memory() -> Path | None:
    memory = Path("/dev/shm")
    return memory if os.access(memory, os.W_OK) else None


async def check(seed: int, store: str, seconds: float = 60) -> tuple[list[str], Counter[str]]:
    trial = Trial(seed, store)
    try:
        with anyio.fail_after(seconds):
            return await trial.played(), trial.counted
    except Exception as error:
        return [f"{type(error).__name__}: {error}"], trial.counted


@contextmanager
def kept_in(name: str) -> Iterator[str]:
    if name == "memory":
        yield MEMORY
    elif name == "file":
        with tempfile.TemporaryDirectory() as folder:
            yield str(Path(folder) / "team.db")
    else:
        with running() as server:
            address = server.database()
            yield address
            server.drop(address)


async def wrong_among(seeds: Any, store: str, told: Callable[[str], Awaitable[None]]) -> tuple[int, Counter[str]]:
    wrong, counted = 0, Counter[str]()
    for seed in seeds:
        found, more = await check(seed, store)
        counted += more
        if found:
            wrong += 1
            await told("\n  ".join((f"seed {seed}: {found[0]}", *found[1:6])))
    return wrong, counted


def repeat(seed: int, store: str) -> str:
    """The command that does it again."""
    return f'make torture ARGS="money --seed {seed} --store {store}"'


def main(arguments: list[str]) -> int:
    options = argparse.ArgumentParser(prog="torture money", description=__doc__)
    options.add_argument("--seeds", type=int, default=1_000)
    options.add_argument("--seed", type=int, default=None, help="this one alone")
    options.add_argument("--from", dest="first", type=int, default=0)
    options.add_argument("--store", choices=("memory", "file", "postgres"), default="memory")
    given = options.parse_args(arguments)
    seeds = [given.seed] if given.seed is not None else range(given.first, given.first + given.seeds)
    began = perf_counter()
    logging.disable()  # those who are taken for dead complain

    async def told(text: str) -> None:
        print(text, flush=True)

    with kept_in(given.store) as store:
        wrong, counted = anyio.run(wrong_among, seeds, store, told)
    figures = ", ".join(f"{what} {count:,}" for what, count in sorted(counted.items()))
    print(f"{len(seeds)} seeds in {given.store}: {wrong} wrong; {figures}; {perf_counter() - began:.0f} s")
    return 1 if wrong else 0
