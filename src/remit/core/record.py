"""Records: a task and a run as their tables have them."""

from dataclasses import dataclass
from typing import NamedTuple


@dataclass(frozen=True, slots=True)
class Record:
    """A task as the table has it; its text, bounds and result are in the events `began` and `ended`.

    `asked_how` is delegate, submit or spawn. `led_as` is what the engine itself does in its holder's place: run a plan
    or lead a team. `worker` has it, under `fence`; `attempt` counts how often it was claimed, `failures` how often it
    failed and was requeued. `dedup_key` is what another request for the same would have too.
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


class Standing(NamedTuple):
    """What a write in the name of a task is checked against, and what its end depends on."""

    state: str
    fence: int
    failures: int
    asked_how: str

    @property
    def is_rerun(self) -> bool:
        """Whether an earlier attempt was made: releasing a task gives its attempt back but never lowers the fence."""
        return self.fence > 1 or self.failures > 0


class RunFacts(NamedTuple):
    """What a whole run has come to, its root included. `by` is who started it; `members` are the names of all who held
    a task of it."""

    id: str
    by: str
    members: str
    tasks: int
    handoffs: int
    tokens: int
    refusals: int

    def has_member(self, name: str) -> bool:
        return name in self.names

    @property
    def names(self) -> frozenset[str]:
        return frozenset(self.members.split())


NO_RUN = RunFacts("", "", "", 0, 0, 0, 0)
