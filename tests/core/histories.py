"""Histories at random: tasks of several runs that go any way the lifecycle allows, by clocks that may be wrong."""

from random import Random  # noqa: TID251 - the same for the same seed
from typing import Final

from hypothesis import strategies as st

from core.make import NOW, SECOND, UNTIL
from remit.core import lifecycle
from remit.core.bounds import TOP
from remit.core.breaker import Breaker
from remit.core.events import Unsealed
from remit.core.kinds.tasks import (
    Claim,
    Queued,
    Requeue,
    claimed,
    handed,
    moved,
    refused,
    requeued,
    started,
    submitted,
    tokens_used,
)
from remit.core.kinds.workspace import breaker_set
from remit.core.remit import NO_RIGHTS, Origin, Pass, Remit, begin, derive, handed_to
from remit.core.remit import place as place_event

AGENTS: Final = ("lead", "coder", "tester")
HOUR: Final = 3_600 * SECOND
_REQUEUES: Final = ("task.retrying", "task.released", "task.lost", "task.queued", "task.parked")
_CLAIMS: Final = ("task.claimed", "task.fenced")


class _History:
    def __init__(self, dice: Random) -> None:
        self.dice = dice
        self.at = NOW
        self.told: list[Unsealed] = []
        self.tasks: dict[str, tuple[Remit, str]] = {}

    def step(self) -> None:
        dice = self.dice
        # Mostly a little later; sometimes hours later, and sometimes a clock is set back.
        self.at += dice.choice((0, 1, 40, 3 * SECOND, 3 * SECOND, 500 * SECOND, HOUR, 30 * HOUR, -500 * SECOND, -HOUR))
        begun = [task for task, (_, state) in self.tasks.items() if state in lifecycle.OPEN]
        if not begun or dice.random() < 0.15:
            self.begin(begun)
        elif dice.random() < 0.3:
            self.tell(*self.tasks[dice.choice(begun)])
        else:
            self.move(dice.choice(begun))

    def begin(self, begun: list[str]) -> None:
        dice, id_, agent = self.dice, f"t{len(self.tasks)}", self.dice.choice(AGENTS)
        if begun and dice.random() < 0.6:
            parent = self.tasks[dice.choice(begun)][0]
            remit = derive(parent, Pass(agent, "a part"), id_, NO_RIGHTS, UNTIL)
        else:
            remit = begin(Origin(id_, "home", "s1"), Pass(agent, "all"), TOP, UNTIL)
        queued = Queued("submit", SECOND, 4, self.at)
        how = dice.choice((None, queued))
        event = submitted(remit, self.at, queued) if dice.random() < 0.4 else started(remit, self.at, queued=how)
        self.told.append(event)
        self.tasks[id_] = (remit, lifecycle.lands(event.kind))

    def tell(self, remit: Remit, _state: str) -> None:
        told = (
            tokens_used(remit, self.dice.randint(1, 9), self.at),
            refused(remit, Pass("x", "y"), self.at, rule=self.dice.choice(("loop", "deadlock")), sentence="no"),
            breaker_set(remit.holder, Breaker("open", 3, UNTIL, "", "it broke"), place_event(remit), self.at),
            Unsealed("tokens.used", self.at, {"tokens": 1}, agent="lead"),
        )
        self.told.append(self.dice.choice(told))

    def move(self, task: str) -> None:
        remit, state = self.tasks[task]
        kind = self.dice.choice(sorted(lifecycle.TRANSITIONS[state].keys() - {"task.parked"}))  # counts nothing
        place, holder = place_event(remit), remit.holder
        if kind in _REQUEUES:
            event = requeued(kind, place, holder, self.at, Requeue("", 1, self.at, 1, 1), {"error": "x"})
        elif kind in _CLAIMS:
            claim = Claim("w1", 1, 1)
            event = claimed(place, holder, self.at, claim)._replace(kind=kind)
        elif kind == "task.handed":
            to = self.dice.choice([agent for agent in AGENTS if agent != holder])
            event = handed(remit, self.dice.choice((to, [to])), self.at, {"update": {}})
            if event.data["to"] == to:
                remit = handed_to(remit, to)
        else:
            event = moved(kind, place, holder, self.at, {"error": "x"})
        self.told.append(event)
        self.tasks[task] = (remit, lifecycle.after(state, kind))


def history(seed: int, size: int) -> list[Unsealed]:
    """So many events of a history; the same ones for the same seed."""
    made = _History(Random(seed))
    while len(made.told) < size:
        made.step()
    return made.told


def ended_history(seed: int, size: int) -> list[Unsealed]:
    """The same, and in the end everything is over."""
    made = _History(Random(seed))
    while len(made.told) < size:
        made.step()
    for remit, state in made.tasks.values():
        if state in lifecycle.OPEN:
            made.told.append(moved("task.cancelled", place_event(remit), remit.holder, made.at, {"error": "x"}))
    return made.told


histories = st.builds(history, st.integers(0, 1_000_000), st.integers(1, 120))
