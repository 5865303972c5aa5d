"""A team with money, drawn from a seed: what its agents do is the same whenever they are run, and what really happened
is kept outside of the store."""

from collections import Counter
from contextlib import suppress
from random import Random  # noqa: TID251 - the same for the same seed
from typing import Any, NamedTuple

import anyio

from engine.helping import Shaky, a_few_rounds
from remit import Bounds, Card, Command, Refused, RemitError, Runtime, Send, Turn

DEPTH = 3
LATER = "+"  # the name of what takes its time, and may outlive its asker
KINDS = (
    *("call", "call", "call", "unsent", "unstarted", "unsaid", "broken", "spend", "once", "used"),
    *("delegate", "delegate", "fan", "spawn", "submit"),
)
ENDS = ("answer", "answer", "answer", "answer", "hand", "send", "shaky", "fail", "hang")


class Sent(NamedTuple):
    """What the world outside knows of a call: whether it left, and what it billed; None if nobody was told."""

    left: bool
    bill: int | None


class World:
    """What really happened, whatever the store says."""

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.sent: dict[str, Sent] = {}
        self.tries: Counter[str] = Counter()
        self.acts = 0
        self.doom: dict[int, anyio.Event] = {}  # what happens at which act

    def act(self) -> None:
        self.acts += 1
        if self.acts in self.doom:
            self.doom[self.acts].set()


class Life:
    """A process: what it does until it is taken for dead, and what it tries to do after that."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.dead = anyio.Event()
        self.again = anyio.Event()

    async def gate(self) -> None:
        self.world.act()
        if self.dead.is_set() and not self.again.is_set():
            with anyio.CancelScope(shield=True):
                await self.again.wait()

    def agents(self, rt: Runtime) -> None:
        for depth in range(DEPTH + 1):
            for letter in "abc":
                rt.add(Card(f"{letter}{depth}", asks="*"), self.turn)

    async def turn(self, turn: Turn) -> object:
        return await Act(self, turn).played()


class Act:
    """One turn: what it does is the same whenever it is run, but for when it fails."""

    def __init__(self, life: Life, turn: Turn) -> None:
        self.life, self.turn = life, turn
        self.path = turn.task.split()[0]
        self.depth = int(turn.agent[1:])
        self.dice = Random(f"{life.world.seed}/{self.path}/{turn.agent}")
        life.world.tries[f"{self.path}/{turn.agent}"] += 1
        self.tried = life.world.tries[f"{self.path}/{turn.agent}"]

    async def played(self) -> object:
        if self.turn.handoff.refused:  # it is asked again in the same task: what it did, it did
            return self.path
        dice = self.dice
        if self.path.endswith(LATER):
            await a_few_rounds(dice.choice((0, 30, 200)))
        kinds = [kind for kind in KINDS if self.depth < DEPTH or kind not in ("delegate", "fan", "spawn", "submit")]
        script = [dice.choice(kinds) for _ in range(dice.randint(0, 4))]
        seeds = [dice.random() for _ in script]
        end, fails_at = dice.choice(ENDS), dice.choice((1, 1, 2))
        narrower = dice.choice(({}, {}, {"within": Bounds(credits=self.amount(40))}, {"within": Bounds(tokens=60)}))
        for number, kind in enumerate(script):
            await self.life.gate()
            self.dice = Random(f"{seeds[number]}")
            with Refusals():
                await getattr(self, kind)(f"{self.path}.{self.turn.agent[0]}{number}")
        await self.life.gate()
        return await self.ended(end, fails_at, narrower)

    async def ended(self, end: str, fails_at: int, narrower: dict[str, Any]) -> object:
        if end in ("shaky", "fail") and self.tried <= fails_at:
            raise Shaky if end == "shaky" else ValueError("it is broken")
        if end == "hang" and self.tried == 1:
            await anyio.sleep_forever()
        letter = self.turn.agent[0]
        if letter in "ab" and not self.turn.handoff.refused:
            if end == "hand":
                to = f"{'bc'['ab'.index(letter)]}{self.depth}"
                return Command(to, {"phase": letter}, **narrower)
            if end == "send" and letter == "a" and self.depth < DEPTH:
                parts = [Send(f"a{self.depth + 1}", f"{self.path}.s{number}") for number in range(2)]
                return Command(parts, {"phase": letter}, join=f"b{self.depth}")
        return self.path

    def amount(self, most: int) -> str:
        return f"${self.dice.randint(1, most) / 100:.2f}"

    # -- calls ------------------------------------------------------------------------------------------------

    async def call(self, name: str) -> None:
        """One that leaves, and costs less, the same or more."""
        hold, bill = self.dice.randint(2, 12), self.dice.choice((1, 2, 5, 12, 12, 30))
        tokens = self.dice.choice((0, 0, 20))
        async with self.turn.paid_call(f"${hold / 100:.2f}", tokens=tokens, why=name) as call:
            self.life.world.sent[call.hold] = Sent(left=True, bill=None)
            await a_few_rounds(self.dice.randint(0, 6))
            await self.life.gate()
            self.life.world.sent[call.hold] = Sent(left=True, bill=bill * 10_000)
            call.cost(f"${bill / 100:.2f}", tokens=self.dice.choice((0, 15, 25)))

    async def unsent(self, name: str) -> None:
        async with self.turn.paid_call(self.amount(10), why=name) as call:
            self.life.world.sent[call.hold] = Sent(left=False, bill=0)
            await a_few_rounds(self.dice.randint(0, 3))
            call.not_sent()

    async def unstarted(self, name: str) -> None:
        """Held, and only sometimes started; now and then it fails before."""
        async with self.turn.paid_call(self.amount(10), why=name, start=False) as call:
            self.life.world.sent[call.hold] = Sent(left=False, bill=0)
            await self.life.gate()
            what = self.dice.choice(("start", "no", "error"))
            if what == "error":
                raise Shaky
            if what == "start":
                await call.start()
                self.life.world.sent[call.hold] = Sent(left=True, bill=10_000)
                call.cost("$0.01")

    async def unsaid(self, name: str) -> None:
        async with self.turn.paid_call(self.amount(10), why=name) as call:
            self.life.world.sent[call.hold] = Sent(left=True, bill=None)
            await self.life.gate()

    async def broken(self, name: str) -> None:
        with suppress(ConnectionError):
            async with self.turn.paid_call(self.amount(10), why=name) as call:
                self.life.world.sent[call.hold] = Sent(left=True, bill=None)
                _fails()

    async def spend(self, name: str) -> None:
        await self.turn.spend(self.amount(8), why=name)

    async def once(self, name: str) -> None:
        bill = self.dice.choice((None, 1, 4, 20))

        async def buy(paid: Any) -> str:
            self.life.world.sent[paid.hold] = Sent(left=True, bill=bill * 10_000 if bill else None)
            await self.life.gate()
            if bill:
                paid.cost(f"${bill / 100:.2f}")
            else:
                self.life.world.sent[paid.hold] = Sent(left=True, bill=40_000)
            return name

        await self.turn.once(name, buy, estimate="$0.04")

    async def used(self, name: str) -> None:
        await self.turn.report_tokens(self.dice.randint(1, 30))

    # -- others -------------------------------------------------------------------------------------------------

    def lease(self, more: str = "share") -> dict[str, Any]:
        word = self.dice.choice(("share", "cap", "aside", "tokens", more, more))
        if word == "aside":
            return {"credits": self.amount(40)}
        if word == "cap":
            return {"within": Bounds(credits=self.amount(40))}
        return {"within": Bounds(tokens=self.dice.randint(10, 80))} if word == "tokens" else {}

    async def delegate(self, name: str) -> None:
        how = {**self.lease(), "timeout": self.dice.choice((5, 40))}
        await self.turn.delegate(f"a{self.depth + 1}", name, **how)

    async def fan(self, name: str) -> None:
        parts = [(f"a{self.depth + 1}", f"{name}.f{number}") for number in range(self.dice.randint(2, 3))]
        await self.turn.delegate_all(parts, **self.lease())

    async def spawn(self, name: str) -> None:
        how = {**self.lease("aside"), "attempts": 2, "timeout": self.dice.choice((5, 40))}
        await self.turn.spawn(f"a{self.depth + 1}", f"{name}{LATER}", **how)

    async def submit(self, name: str) -> None:
        how = {**self.lease(), "attempts": 2, "timeout": self.dice.choice((5, 40))}
        waits = self.dice.random() < 0.5
        task = await self.turn.submit(f"a{self.depth + 1}", name if waits else f"{name}{LATER}", **how)
        if waits:
            await task.wait()


def _fails() -> None:
    raise ConnectionError("no line")


class Refusals:
    """Goes on without what was refused or failed; a turn that is over goes on in vain."""

    def __enter__(self) -> None:
        return

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: object) -> bool:
        return isinstance(error, RemitError) and not (isinstance(error, Refused) and error.rule == "over")
