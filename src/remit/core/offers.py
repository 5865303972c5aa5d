"""Offers: which tools and verbs a model is shown: none that is denied, and no verb that cannot succeed now."""

from typing import Final, NamedTuple

from remit.core.allow import ANY, NONE, Names, has
from remit.core.remit import Kit
from remit.core.toolgroups import GROUPS

_ASKING: Final = frozenset(("call_agent", "call_agent_async", "spawn_agent"))
_LOOKING: Final = frozenset(("check_delegation_status", "cancel_delegation"))
_HANDOFF: Final = frozenset(("handoff",))
_SPAWN: Final = frozenset(("spawn_agent",))
_LIST: Final = frozenset(("list_agents",))
_DELEGATION: Final = GROUPS["agents"] - GROUPS["context"]


class Room(NamedTuple):
    """How much room a holder has right now.

    `askable` says whether there is anyone whom it may ask, `deeper` whether the depth limit leaves room for one more
    level, `tasks`, `handoffs` and `spawns` whether one more of each is allowed. `reads` and `writes` say whether it
    sees and may write any context, `board` whether it sees or may write its session's board, and `person` whether its
    card lets its model ask a person.
    """

    askable: bool = True
    deeper: bool = True
    tasks: bool = True
    handoffs: bool = True
    spawns: bool = True
    reads: bool = True
    writes: bool = True
    board: bool = True
    person: bool = True

    @property
    def asks(self) -> bool:
        """Whether one more delegation can succeed."""
        return self.askable and self.deeper and self.tasks

    @property
    def hands(self) -> bool:
        """Whether one more handoff can succeed."""
        return self.askable and self.handoffs


class Offers(NamedTuple):
    """What a model is shown: `shows` asks for a tool or a verb by its name, `at_provider` for a tool that runs at its
    provider. A model that calls what it is not shown is told why not, as by any other rule."""

    kit: Kit
    hidden: frozenset[str] = frozenset()
    denies: Names = NONE

    def at_provider(self, name: str) -> bool:
        """Whether nobody denies a tool that runs at the provider: no card lists these."""
        return not has(self.denies, name)

    def shows_all(self, names: frozenset[str]) -> bool:
        """Whether the holder may use every tool for this task, and whether none of these verbs is hidden."""
        return self.kit.names is ANY and not self.kit.denied and self.hidden.isdisjoint(names)

    def shows(self, name: str) -> bool:
        """Whether the holder may use this tool or verb for this task, and whether a verb can succeed now."""
        return name not in self.hidden and self.kit.has(name)


def hidden(room: Room) -> frozenset[str]:
    """Return the verbs that cannot succeed with so much room."""
    found = _without_context(room)
    if not room.askable:
        return found | _DELEGATION
    if not room.asks:
        found |= _ASKING
    if not room.deeper:  # then it has given nothing away either
        found |= _LOOKING
    if not room.spawns:
        found |= _SPAWN
    if not room.handoffs:
        found |= _HANDOFF
    return found if room.asks or room.hands else found | _LIST


def _without_context(room: Room) -> frozenset[str]:
    can = {"recall": room.reads, "remember": room.writes, "blackboard": room.board, "ask_person": room.person}
    return frozenset(name for name, possible in can.items() if not possible)
