"""The chain: who asked whom, from the first holder down to the present one. Nested like a call stack."""

from dataclasses import dataclass
from typing import Final, NamedTuple

STAND_IN: Final = "plan"  # who leads a plan in a person's place: the engine, and nobody's agent


class Hop(NamedTuple):
    """One delegation: `asker` asked `holder` to do `task`."""

    asker: str
    holder: str
    task: str


@dataclass(frozen=True, slots=True)
class Chain:
    """Immutable: adding a hop gives a new chain and leaves this one as it was."""

    hops: tuple[Hop, ...] = ()

    def add(self, hop: Hop) -> "Chain":
        """Give the chain with one more hop. It keeps the text of that hop alone: nobody reads what those above were
        told."""
        if not self.hops:
            return Chain((hop,))
        last = self.hops[-1]
        return Chain((*self.hops[:-1], Hop(last.asker, last.holder, ""), hop))

    @property
    def depth(self) -> int:
        """How many hops there are. That a plan was led in a person's place is none."""
        hops = self.hops
        return len(hops) - 1 if hops and hops[0].asker == STAND_IN else len(hops)

    def involves(self, name: str) -> bool:
        """Tell whether that agent asks or holds anywhere in the chain."""
        for hop in self.hops:  # noqa: SIM110 - asked at every hop, and a generator costs more than the question
            if name in (hop.asker, hop.holder):
                return True
        return False

    def replace_holder(self, name: str) -> "Chain":
        """Give the chain after a handoff: the new holder stands where the old one stood."""
        if not self.hops:
            return self
        last = self.hops[-1]
        return Chain((*self.hops[:-1], Hop(last.asker, name, last.task)))

    def names(self, holder: str) -> tuple[str, ...]:
        """Give the path of agents that ends with the present holder."""
        return (*[hop.asker for hop in self.hops], holder)


def path(names: tuple[str, ...]) -> str:
    """lead > coder > reviewer"""
    return " > ".join(names)
