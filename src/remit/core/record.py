"""Rows of the task and run tables, as immutable records."""

from dataclasses import dataclass
from typing import NamedTuple

from remit.core.chain import STAND_IN


@dataclass(frozen=True, slots=True)
class Record:
    """A row of the task table. The task's text and bounds are in event number `began`, its result in event number
    `ended`.

    `asked_how` is delegate, submit, spawn, or async (submitted, and the asker gets a result message). `led_as` says
    that the engine runs a plan or leads a team in its holder's place. `worker` runs it, under the fencing token
    `fence`. `attempt` counts how often it was claimed, `failures` how often it failed and was requeued, `losses` how
    many processes died with it. `dedup_key` is equal for equal requests. `origin` is the first task of its retry
    lineage; work that any of them finished is reused. `purse` is the path along which it pays, as JSON; empty if no
    budget applies.
    """

    id: str
    run: str
    parent: str
    session: str
    holder: str
    state: str
    asked_how: str
    led_as: str
    worker: str
    fence: int
    attempt: int
    failures: int
    asked_at: int
    ready_at: int
    claimed_at: int | None
    until: int
    ended_at: int | None
    began: int
    ended: int | None
    dedup_key: str
    origin: str
    losses: int = 0
    purse: str = ""

    @property
    def led_by_program(self) -> bool:
        """Whether a program leads the plan itself, so that no other process can continue it."""
        return self.led_as != "" and self.asked_how == "delegate" and not self.parent


class Standing(NamedTuple):
    """The fields of a task that every write in its name is checked against, and that its end depends on."""

    state: str
    fence: int
    failures: int
    asked_how: str
    purse: str = ""
    ties: int = 0  # open holds and open questions

    @property
    def is_rerun(self) -> bool:
        """Whether there was an earlier attempt. The fence tells: a release lowers `attempt` again but never the
        fence."""
        return self.fence > 1 or self.failures > 0


class RunFacts(NamedTuple):
    """The totals of a run, its root included. `members` are the names of all agents that held one of its tasks. The
    task that leads a plan for a person is no member."""

    id: str
    members: frozenset[str]
    tasks: int
    handoffs: int
    tokens: int
    refusals: int
    credits: int = 0
    requests: int = 0  # to models


NO_RUN = RunFacts("", frozenset(), 0, 0, 0, 0)


def first_members(agent: str, led_as: str) -> frozenset[str]:
    """Return the members of a run that has just started."""
    return frozenset() if led_as == STAND_IN else frozenset((agent,))
