"""Journals of runs at random: events of every kind, for tasks of a tree of any shape."""

from collections.abc import Iterator
from random import Random  # noqa: TID251 - seeded: the same journal each time
from typing import Any

from core.made import MADE
from core.make import NOW
from remit.core.events import Event, Head, Unsealed, seal
from remit.core.lifecycle import BEGINNINGS, ENDS
from remit.core.values import encode

AGENTS = ("lead", "coder", "tester", "writer")
STEPS = ("", "", "a", "b")
_BEGIN = [event for event in MADE if event.kind in BEGINNINGS]
_AFTER = [event for event in MADE if event.task and event.kind not in BEGINNINGS]
# Moves that leave a task open come more often: an early end would hide what follows.
_OPEN = [event for event in _AFTER if event.kind not in ENDS]


class RandomJournal:
    """One run: tasks begin below others, and then anything happens to any of them, also what cannot happen."""

    def __init__(self, seed: int) -> None:
        self._random = Random(seed)
        self._tasks: dict[str, list[str]] = {}  # the chain of each task
        self._now = NOW

    def events(self) -> Iterator[Event]:
        head = Head()
        for number in range(self._random.randrange(2, 90)):
            event, op = self._begun(number) if self._begins() else self._happened(number)
            sealed = seal(event, encode(event.data), "home", head, (op, None))
            head = Head(sealed.seq, sealed.hash)
            yield sealed

    def _begins(self) -> bool:
        return not self._tasks or self._random.random() < 0.2

    def _tick(self) -> int:
        self._now += self._random.randrange(1, 900_000)
        return self._now

    def _begun(self, number: int) -> tuple[Unsealed, str]:
        choose, made = self._random.choice, self._random.choice(_BEGIN)
        task, agent = f"t{number}", choose(AGENTS)
        parent = choose([*self._tasks]) if self._tasks else ""
        chain = [*self._tasks.get(parent, []), agent]
        self._tasks[task] = chain
        data = {**made.data, "parent": parent, "chain": chain, "step": choose(STEPS)}
        return self._placed(made, task, agent, data), f"{parent or task}/0/0/delegate/ab/{number}"

    def _happened(self, number: int) -> tuple[Unsealed, str]:
        made = self._random.choice(_AFTER if self._random.random() < 0.3 else _OPEN)
        task = self._random.choice([*self._tasks])
        data: dict[str, Any] = {**made.data}
        if made.kind == "work.kept":
            data["data"] = {**data["data"], "step": self._random.choice(STEPS)}
        placed = self._placed(made, task, self._random.choice(AGENTS), data)
        return placed, f"{task}/0/0/op/{number}"

    def _placed(self, made: Unsealed, task: str, agent: str, data: dict[str, Any]) -> Unsealed:
        return made._replace(at=self._tick(), data=data, run="t0", session="s1", task=task, agent=agent)


def journals(number: int) -> Iterator[list[Event]]:
    """Yield this many runs, the same ones each time."""
    for seed in range(number):
        yield [*RandomJournal(seed).events()]
