"""Offers: the tools and verbs that a model is shown. Denied tools and verbs that cannot succeed now are left out."""

from typing import Final

from remit.core.allow import ANY, NONE, Names, has
from remit.core.records import NamedTuple
from remit.core.remit import Kit
from remit.core.toolgroups import GROUPS

_ASKING: Final = frozenset(("call_agent", "call_agent_async", "spawn_agent"))
_LOOKING: Final = frozenset(("check_delegation_status", "cancel_delegation"))
_HANDOFF: Final = frozenset(("handoff",))
_SPAWN: Final = frozenset(("spawn_agent",))
_LIST: Final = frozenset(("list_agents",))
_DELEGATION: Final = GROUPS["agents"] - GROUPS["context"]


class Room(NamedTuple):
    """What a holder can still do right now.

    `askable` says whether there is an agent that it may ask, `deeper` whether the depth limit allows one more level,
    `tasks`, `handoffs` and `spawns` whether one more of each is allowed. `reads` and `writes` say whether it may read
    and write any context, `board` whether it may read or write its session's board, and `person` whether its card lets
    its model ask a person.
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
    """The tools and verbs that a model is shown: `shows` is for a tool or a verb, `at_provider` for a tool that runs at
    its provider. If a model calls one that it is not shown, it is refused with the reason."""

    kit: Kit
    hidden: frozenset[str] = frozenset()
    deny: Names = NONE

    def at_provider(self, name: str) -> bool:
        """Whether a tool that runs at the provider is offered: all are, unless denied. No card lists these tools."""
        return not has(self.deny, name)

    def shows_all(self, names: frozenset[str]) -> bool:
        """Whether the holder may use all tools for this task, and none of these verbs is hidden."""
        return self.kit.names is ANY and not self.kit.denied and self.hidden.isdisjoint(names)

    def shows(self, name: str) -> bool:
        """Whether the holder may use this tool for this task; for a verb, also whether it can succeed now."""
        return name not in self.hidden and self.kit.has(name)


def hidden(room: Room) -> frozenset[str]:
    """Return the verbs that cannot succeed in this situation."""
    found = _without_context(room)
    if not room.askable:
        return found | _DELEGATION
    if not room.asks:
        found |= _ASKING
    if not room.deeper:  # then it cannot have submitted anything either
        found |= _LOOKING
    if not room.spawns:
        found |= _SPAWN
    if not room.handoffs:
        found |= _HANDOFF
    return found if room.asks or room.hands else found | _LIST


def _without_context(room: Room) -> frozenset[str]:
    can = {"recall": room.reads, "remember": room.writes, "blackboard": room.board, "ask_person": room.person}
    return frozenset(name for name, possible in can.items() if not possible)
