"""One process of a chaos run: a worker that carries out, an asker that asks, cancels, retries and prunes, or the last
worker, which has nobody to disturb it."""

import asyncio
import mmap
import signal
import struct
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from inside import be_on_machine
from remit import Runtime
from remit.core.lifecycle import GONE
from remit.engine.system import SystemClock
from remit.errors import Conflict, NotFound, StoreError
from remit.settings import BreakerPolicy, Pace, Policy, Serving, System
from torture.chaos import dice
from torture.chaos.agents import ATTEMPT, FAILING, ROOTS, engage
from torture.chaos.ledger import Ledger
from torture.chaos.stage import OFTEN, Life, Stage

HANDS = 8
DRAIN = 0.2  # seconds that what runs has when a process is told to stop
ACT = 3.0  # seconds in which an asker that is told to stop ends what it is about
OPEN = 24  # tasks at which an asker waits
_NEVER = 1_000_000  # failures in a row: agents that fail on purpose are not to be left alone
_PRUNED = 0.15  # days after which a run is pruned
_ASKER = {"submit": 70, "run": 8, "cancel": 8, "retry": 13, "prune": 1}
_PACE = Pace(poll_interval=0.1, retry_store=(0.05, 0.2, 0.5), spawn_timeout=600, busy_timeout=600)


class MovedClock(SystemClock):
    """The machine's clock, and as much later as a file says that all processes share: so an hour passes at once for
    those that are asleep, and between two lives. Timers and ticks know nothing of it: the machine sleeps."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        with path.open("rb") as file:
            self._later = mmap.mmap(file.fileno(), 8, access=mmap.ACCESS_READ)

    def now(self) -> int:
        return super().now() + struct.unpack("<q", self._later[:8])[0]


def move_clock(path: Path, microseconds: int) -> None:
    """Say how much later it is than the machine says."""
    with path.open("r+b" if path.exists() else "wb") as file:
        file.write(struct.pack("<q", microseconds))


class Where(NamedTuple):
    """The store of a run, for how many seconds a process may be silent there, and whether this one is to pass for one
    of another machine: then nobody can look it up in the process list, and only its silence tells that it is gone."""

    store: str
    silence: float
    elsewhere: bool = False


def runtime(life: Life, where: Where, hands: int) -> Runtime:
    """Make the team of one process."""
    if where.elsewhere:
        be_on_machine(f"machine of {life.role}")
    clock = MovedClock(life.folder / "later")
    policy = Policy(breaker=BreakerPolicy(failures=_NEVER), concurrency=6 if life.seed % 2 else None)
    serving = Serving(concurrency=hands, heartbeat_timeout=where.silence, pace=_PACE)
    return Runtime(where.store, policy=policy, serving=serving, system=System(clock=clock, check_clock=False))


async def live(life: Life, where: Where) -> None:
    """Be that process until it is told to stop."""
    ledger = Ledger(life.folder / "ledger", life.role, life.number)
    working = not life.role.startswith("asker")
    rt = runtime(life, where, HANDS if working else 0)
    engage(rt, Stage(life, ledger))
    told = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, told.set)
    await rt.workspace.journal.read(lambda view: view.head())
    ledger.note("opened")
    if life.role == "last":
        await _finish(rt)
        return
    doing = asyncio.create_task(rt.serve() if working else Asker(rt, life, ledger).ask(told))
    stopping = asyncio.create_task(told.wait())
    await asyncio.wait([doing, stopping], return_when=asyncio.FIRST_COMPLETED)
    if doing.done():
        doing.result()
        if not told.is_set():  # an asker that is told ends at once
            raise RuntimeError("it stopped by itself")
    await asyncio.wait([doing], timeout=0 if working else ACT)
    await rt.drain(DRAIN)
    if not working:
        doing.cancel()
    with suppress(asyncio.CancelledError):
        await doing
    ledger.note("left")


async def _finish(rt: Runtime) -> None:
    """Work until nothing is open any more."""
    async with rt.serving():
        while await rt.workspace.tasks.list(state="open", limit=1):  # noqa: ASYNC110 - others may end the last one
            await asyncio.sleep(0.05)
    await rt.drain(1)


class Asker:
    """Asks for one thing after the other, each under a key of its own, and goes on where its last life was killed."""

    def __init__(self, rt: Runtime, life: Life, ledger: Ledger) -> None:
        self._rt = rt
        self._life = life
        self._ledger = ledger
        lines = ledger.lines()
        acked = {line["key"] for line in lines if line["kind"] == "ack"}
        self._asked = max((line["number"] for line in lines if line["kind"] == "acts"), default=0)
        self._unheard = [
            line for line in lines if line["kind"] == "asks" and line["how"] == "submit" and line["key"] not in acked
        ]

    async def ask(self, told: asyncio.Event) -> None:
        """Go on until told to stop."""
        unheard = {line["key"]: line for line in self._unheard}
        for line in unheard.values():
            await self._submit(line["key"], line["agent"], line["text"])
        while not told.is_set():
            self._asked += 1
            act = self._act()
            self._ledger.note("acts", act=act, number=self._asked)  # in its next life it goes on after this
            try:
                await getattr(self, f"_{act}_one")()
            except StoreError as error:
                self._ledger.note("told no", act=act, error=type(error).__name__)
            except (Conflict, NotFound) as error:  # someone was faster
                self._ledger.note("too late", act=act, error=str(error)[:200])
            await asyncio.sleep(dice.between(0.01, 0.15, self._life.seed, self._asked))

    async def _submit_one(self) -> None:
        while len(await self._rt.workspace.tasks.list(state="open", limit=OPEN)) >= OPEN:  # noqa: ASYNC110
            await asyncio.sleep(0.1)  # it asks for no more than can be carried out
        agent, text = self._next()
        key = f"{self._life.role} {self._asked}"
        self._ledger.note("asks", how="submit", key=key, agent=agent, text=text)
        await self._submit(key, agent, text)

    async def _submit(self, key: str, agent: str, text: str) -> None:
        """Ask until the store has said yes, as a client would."""
        seconds = ATTEMPT.get(agent, 60.0)
        while True:
            try:
                task = await self._rt.submit(agent, text, key=key, attempts=OFTEN, timeout=seconds)
            except StoreError as error:
                self._ledger.note("told no", act="submit", error=type(error).__name__)
                await asyncio.sleep(0.1)
            else:
                self._ledger.note("ack", key=key, task=task.id)
                return

    async def _run_one(self) -> None:
        """Carry one out in this process; should it be killed, a worker goes on with it."""
        agent, text = self._next()
        if agent in FAILING:  # nobody tries it again
            return
        self._ledger.note("asks", how="run", key="", agent=agent, text=text)
        try:
            outcome = await self._rt.outcome(agent, text)
        except asyncio.CancelledError:  # told to stop while the store was away for long
            self._ledger.note("gives up", text=text)
            raise
        self._ledger.note("told", task=outcome.id, state=outcome.state, value=outcome.value)

    async def _cancel_one(self) -> None:
        found = await self._rt.workspace.tasks.list(state="open", limit=50)
        if found:
            one = dice.one_of(found, self._life.seed, self._asked, "cancel")
            self._ledger.note("cancels", task=one.id, run=one.run)
            await self._rt.workspace.tasks.cancel(one.id)
            self._ledger.note("cancelled", task=one.id, run=one.run)

    async def _retry_one(self) -> None:
        state = dice.one_of(sorted(GONE), self._life.seed, self._asked, "gone")
        gone = [one for one in await self._rt.workspace.tasks.list(state=state, limit=100) if not one.parent]
        if gone:
            one = dice.one_of(gone, self._life.seed, self._asked, "retry")
            self._ledger.note("retries", task=one.id)
            op = f"{self._life.role} {self._asked}"  # what is done under an op is on record when its run is pruned
            again = await self._rt.workspace.tasks.retry(one.id, op=op)
            self._ledger.note("ack", key=f"retry of {one.id} as {again.id}", task=again.id)

    async def _prune_one(self) -> None:
        self._ledger.note("pruned", runs=await self._rt.workspace.prune(_PRUNED))

    def _act(self) -> str:
        """Say what comes next: first one of each is asked for, then anything."""
        if self._asked <= len(ROOTS):
            return "submit"
        return dice.weighed(_ASKER, self._life.seed, self._life.role, self._asked, "act")

    def _next(self) -> tuple[str, str]:
        """Say what is asked for next: all kinds in turn, each time in another order."""
        time, place = divmod(self._asked - 1, len(ROOTS))
        agent = dice.shuffled(ROOTS, self._life.seed, self._life.role, time)[place]
        return agent, f"{agent} {self._asked} of {self._life.role}"
