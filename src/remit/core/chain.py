"""The chain of a task: which agent asked which, from the first holder down to the current one. Nested like a call
stack."""

from dataclasses import dataclass
from typing import Final, NamedTuple

# The asker of a plan's steps if the engine leads the plan for a person; no agent has this name.
STAND_IN: Final = "plan"


class Hop(NamedTuple):
    """One delegation: `asker` asked `holder` to do `task`."""

    asker: str
    holder: str
    task: str


@dataclass(frozen=True, slots=True)
class Chain:
    """The askers of a task. Immutable: `add` returns a new chain."""

    hops: tuple[Hop, ...] = ()

    def add(self, hop: Hop) -> "Chain":
        """Return a new chain with one more hop. Drop the task text of the previous hop: an agent sees the names of the
        agents above it, not their tasks."""
        if not self.hops:
            return Chain((hop,))
        last = self.hops[-1]
        return Chain((*self.hops[:-1], Hop(last.asker, last.holder, ""), hop))

    @property
    def depth(self) -> int:
        """The number of hops. The engine that leads a plan for a person does not count as one."""
        hops = self.hops
        return len(hops) - 1 if hops and hops[0].asker == STAND_IN else len(hops)

    def involves(self, name: str) -> bool:
        """Whether this agent is the asker or the holder of any hop."""
        for hop in self.hops:  # noqa: SIM110 - runs at every hop, and a generator costs more than the check
            if name in (hop.asker, hop.holder):
                return True
        return False

    def replace_holder(self, name: str) -> "Chain":
        """Return the chain after a handoff: the new holder takes the place of the old one."""
        if not self.hops:
            return self
        last = self.hops[-1]
        return Chain((*self.hops[:-1], Hop(last.asker, name, last.task)))

    def names(self, holder: str) -> tuple[str, ...]:
        """Return the path of agents, from the first asker to `holder`."""
        return (*[hop.asker for hop in self.hops], holder)


def path(names: tuple[str, ...]) -> str:
    """Return the path as text: lead > coder > reviewer."""
    return " > ".join(names)
