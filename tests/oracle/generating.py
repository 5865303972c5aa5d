"""Random scenarios, each from a seed: the same seed gives the same scenario."""

from dataclasses import replace
from itertools import count
from random import Random  # noqa: TID251 - from a seed
from typing import TypeVar

from oracle.scenario import (
    AGENTS,
    BOARD_NAME,
    KEYS,
    NAMESPACES,
    PERSONS,
    SESSIONS,
    STRANGER,
    TOOLS,
    Act,
    Along,
    Answer,
    Area,
    Areas,
    Breaker,
    Brief,
    Delegate,
    DelegateAll,
    Ending,
    Fail,
    FanOut,
    Get,
    HandOff,
    Inbox,
    Look,
    Member,
    OwnerPuts,
    OwnerRemoves,
    Put,
    Query,
    Queue,
    Remove,
    Restart,
    Run,
    RunPlan,
    Scenario,
    Serve,
    Submit,
    Tell,
    TurnScript,
    Use,
    Wait,
    Within,
)

T = TypeVar("T")

DEEPEST = 5
PHASES = ("", "", "draft", "final")
OPS = ("", "", "", "o1", "o2")  # of an owner
FAR = (61, 65)  # areas besides: as many as are allowed with those that are said, and too many


class Generator:
    """Makes one scenario. `restarts` says whether the store outlives its process."""

    def __init__(self, seed: int) -> None:
        self._dice = Random(seed)
        self._names = (f"t{number}" for number in count(1))
        self._scenario = Scenario(seed, self._team(), self._ceiling())

    def scenario(self) -> Scenario:
        dice, acts = self._dice, self._scenario.acts
        for _ in range(dice.randint(0, 6)):
            acts.append(self._owner_act())
        for _ in range(dice.randint(1, 3)):
            acts.extend(self._started())
            if self._chance(0.15):
                acts.append(self._owner_act())
        acts.append(Serve())
        return self._scenario

    # -- chance -------------------------------------------------------------

    def _chance(self, share: float) -> bool:
        return self._dice.random() < share

    def _some(self, items: tuple[str, ...], most: int) -> frozenset[str]:
        return frozenset(self._dice.sample(items, self._dice.randint(0, most)))

    def _anyone(self) -> str:
        return STRANGER if self._chance(0.03) else self._dice.choice(AGENTS)

    def _where(self) -> tuple[str, str]:
        return self._dice.choice(NAMESPACES), self._dice.choice(KEYS)

    def areas(self, most: int = 3) -> Areas:
        return tuple(self._area() for _ in range(self._dice.randint(0, most)))

    def _area(self) -> Area:
        namespace = self._dice.choice(NAMESPACES)
        shape = self._dice.random()
        if namespace == BOARD_NAME or shape < 0.4:
            return Area(namespace)
        return Area(namespace, prefix="a") if shape < 0.6 else Area(namespace, self._dice.choice(KEYS))

    # -- the team -------------------------------------------------------------

    def _team(self) -> tuple[Member, ...]:
        return tuple(self.member(name) for name in AGENTS)

    def member(self, name: str) -> Member:
        return Member(
            name,
            None if self._chance(0.7) else self._some(AGENTS, 4),
            self._some(TOOLS, 3),
            self._some(TOOLS, 1),
            self.areas(2),
            () if self._chance(0.3) else self.areas(3),
            self._chance(0.15),
        )

    def _ceiling(self) -> Within:
        return Within(depth=self._dice.choice((None, 2, 4, 6))) if self._chance(0.5) else self.within(0.3)

    def within(self, share: float) -> Within:
        """Bounds of which each part is said with this chance."""

        def maybe(value: T) -> T | None:
            return value if self._chance(share) else None

        dice = self._dice
        return Within(
            maybe(frozenset(dice.sample(AGENTS, dice.randint(2, 5)))),
            maybe(self._some(TOOLS, 4)),
            maybe(self.areas(5)),
            maybe(self.areas(5)),
            maybe(dice.randint(0, 4)),
            maybe(dice.randint(0, 3)),
            maybe(dice.randint(1, 4)),
            maybe(dice.randint(1, 6)),
        )

    def along(self, *, queued: bool = False) -> Along:
        def maybe(value: T, share: float = 0.4) -> T | None:
            return value if self._chance(share) else None

        within = self.within(0.15) if self._chance(0.4) else Within()
        if not queued and self._chance(0.06):
            within = self._until(within)
        along = Along(
            maybe(self.areas()),
            maybe(self._some(TOOLS, 3)),
            maybe(self.areas()),
            within,
            None if queued else maybe(2, 0.08),
        )
        return replace(along, sees=along.sees or (), far=self._dice.choice(FAR)) if self._chance(0.03) else along

    # -- the person -------------------------------------------------------------

    def _owner_act(self) -> Act:
        before = [act for act in self._scenario.acts if isinstance(act, OwnerPuts | OwnerRemoves) and act.op]
        if before and self._chance(0.15):
            return replace(self._dice.choice(before))
        where, session, op = self._where(), self._dice.choice(SESSIONS), self._dice.choice(OPS)
        return (
            OwnerRemoves(*where, session, op)
            if self._chance(0.15)
            else OwnerPuts(*where, session, self._strangers(where[0]), op)
        )

    def _strangers(self, namespace: str) -> bool:
        return namespace != BOARD_NAME and self._chance(0.3)

    def _started(self) -> list[Act]:
        """A run, now or from the queue, and what happens around it."""
        if self._chance(0.35):
            return [*self._queued(), *([Restart()] if self._chance(0.3) else []), Serve()]
        run = Run(self._anyone(), self._task(0), self._dice.choice(SESSIONS), self.along(), self._chance(0.1))
        after = [Restart()] if self._chance(0.1) else []
        if self._chance(0.2):
            agent = self._dice.choice(AGENTS)
            op = self._dice.choice(OPS)
            again = [Breaker(agent, "trip", op)] if op else []  # done already: it is not taken out once more
            return [Breaker(agent, "trip", op), run, Breaker(agent, "reset"), *again, *after]
        return [run, *after]

    def _queued(self) -> list[Act]:
        key = self._dice.choice(("", "", "k1", "k2"))
        session, by = self._dice.choice(SESSIONS), self._dice.choice(PERSONS) if self._chance(0.3) else ""
        window = 0 if key else self._dice.choice((0, 300))
        task = self._task(0, stops=True)
        first = Queue(self._anyone(), task, session, key, self.along(queued=True), by, window)
        if not self._chance(0.5):
            return [first]
        pause: list[Act] = [Wait(self._dice.choice((10, 400)))] if self._chance(0.4) else []
        again = replace(first)
        if self._chance(0.4):
            again.along = self.along(queued=True)
        if self._chance(0.2):
            again.to = self._anyone()
        if self._chance(0.2):
            again.by = self._dice.choice(PERSONS)
        return [first, *pause, *([Restart()] if self._chance(0.2) else []), again]

    # -- turns -------------------------------------------------------------

    def _task(self, depth: int, *, stops: bool = False, quiet: bool = False) -> str:
        """Make a task with the turns that it takes, and give its name."""
        name = next(self._names)
        turns = self._scenario.turns[name] = list[TurnScript]()
        if self._chance(0.2):
            self._scenario.forged.add(name)
        two = self._dice.sample(AGENTS, 2) if self._chance(0.3) else ()
        while True:
            ending = Answer() if quiet else self._ending(depth, len(turns))
            if two and isinstance(ending, HandOff):  # to and fro
                ending = HandOff(two[len(turns) % 2])
            script = TurnScript(self._acts(depth, quiet=quiet), ending, stops=stops and self._chance(0.2))
            turns.append(script)
            if isinstance(ending, Answer | Fail):
                return name

    def _ending(self, depth: int, turn: int) -> Ending:
        roll = self._dice.random()
        if roll < 0.04:
            return Fail()
        if turn >= 7 or roll < (0.72 if turn == 0 else 0.35):
            return Answer()
        phase = self._dice.choice(PHASES)
        if depth < DEEPEST and roll > 0.93:
            parts = tuple((self._anyone(), self._task(DEEPEST, quiet=True)) for _ in range(self._dice.randint(1, 3)))
            return FanOut(parts, self._anyone() if self._chance(0.4) else "", phase, self._handed_along())
        along = self._handed_along()
        return HandOff(self._anyone(), phase, along)

    def _handed_along(self) -> Along:
        along = replace(self.along(queued=True), far=0)
        return replace(along, within=self._until(along.within)) if self._chance(0.06) else along

    def _until(self, within: Within) -> Within:
        return replace(within, seconds=self._dice.choice((-1, 0, 2)))

    def _acts(self, depth: int, *, quiet: bool) -> list[Act]:
        acts: list[Act] = [Look()] if self._chance(0.6) else []
        if self._chance(0.25) and not quiet:  # of those that work side by side, whoever is first has the messages
            acts.append(Brief())
        for _ in range(self._dice.randint(0, 4)):
            acts.append(self._reading() if quiet else self._act(depth))
            if isinstance(acts[-1], Submit) and self._chance(0.6):
                acts.append(self._again(acts[-1]))
            if isinstance(acts[-1], Put) and self._chance(0.3):  # what it wrote, it looks at
                acts.append(Get(acts[-1].namespace, acts[-1].key))
        return acts

    def _again(self, first: Submit) -> Submit:
        """The same request once more, or nearly the same."""
        again = Submit(first.to, first.task, first.key, first.along)
        if self._chance(0.4):
            again.along = self.along(queued=True)
        if self._chance(0.2):
            again.to = self._anyone()
        return again

    def _reading(self) -> Act:
        namespace, key = self._where()
        if self._chance(0.3):
            return Query(namespace, "a" if namespace != BOARD_NAME and self._chance(0.4) else None)
        if namespace != BOARD_NAME and self._chance(0.25):
            return Use(self._dice.choice(TOOLS), namespace, key)
        return Get(namespace, key)

    def _act(self, depth: int) -> Act:
        roll = self._dice.random()
        if roll < 0.3:
            return self._reading()
        if roll < 0.55:
            expect = self._dice.choice((None, None, 0, 1, 2))
            where = self._where()
            return Put(*where, None if where[0] == BOARD_NAME else expect)
        if roll < 0.63:
            return Remove(*self._where())
        if roll < 0.66:
            return Wait(self._dice.choice((1, 3)))
        if roll < 0.72:
            return Inbox() if self._chance(0.4) else Tell(self._anyone())
        return self._asking(depth) if depth < DEEPEST else Look()

    def _asking(self, depth: int) -> Act:
        roll, dice = self._dice.random(), self._dice
        if roll < 0.72:
            return Delegate(self._anyone(), self._task(depth + 1), self.along())
        if roll < 0.8:
            wishes = tuple((self._anyone(), self._task(depth + 2)) for _ in range(dice.randint(1, 3)))
            return DelegateAll(wishes, self.along())
        if roll < 0.9:
            return Submit(self._anyone(), self._task(depth + 2), dice.choice(("", "k1")), self.along(queued=True))
        size = dice.randint(1, 4)
        after = [tuple(before for before in range(index) if self._chance(0.35)) for index in range(size)]
        return RunPlan(tuple((self._task(depth + 2), dice.choice(AGENTS), after[index]) for index in range(size)))


def generated(seed: int) -> Scenario:
    return Generator(seed).scenario()
