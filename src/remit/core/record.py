"""Records: a task and a run as their tables have them."""

from dataclasses import dataclass
from typing import NamedTuple

from remit.core.chain import STAND_IN


@dataclass(frozen=True, slots=True)
class Record:
    """A task as the table has it; its text, bounds and result are in the events `began` and `ended`.

    `asked_how` is delegate, submit, spawn, or async: submitted, and its end is announced. `led_as` is what the engine
    itself does in its holder's place: run a plan or lead a team. `worker` has it, under `fence`; `attempt` counts how
    often it was claimed, `failures` how often it failed and was requeued, `losses` how often a process died that had
    it. `dedup_key` is what another request for the same would have too. `origin` is the first task of those that were
    tried for the same: what they finished is found again. `purse` is the path along which it pays, as JSON; empty if
    nothing bounds that.
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
        """Whether a program leads it itself: nobody else can go on with it."""
        return self.led_as != "" and self.asked_how == "delegate" and not self.parent


class Standing(NamedTuple):
    """What a write in the name of a task is checked against, and what its end depends on."""

    state: str
    fence: int
    failures: int
    asked_how: str
    purse: str = ""
    ties: int = 0  # calls that are held and questions that are open

    @property
    def is_rerun(self) -> bool:
        """Whether an earlier attempt was made: releasing a task gives its attempt back but never lowers the fence."""
        return self.fence > 1 or self.failures > 0


class RunFacts(NamedTuple):
    """What a whole run has come to, its root included. `members` are the names of all who held a task of it; whoever
    leads a plan in a person's place is none of them."""

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
    """Tell who takes part in a run that has just begun."""
    return frozenset() if led_as == STAND_IN else frozenset((agent,))
