"""What is drawn of a run: cards for tasks, for refused hops, and for siblings that are too many to show.

Trees are walked with a list, not with recursion: a run may be deeper than Python's stack.
"""

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from heapq import merge
from typing import Final, NamedTuple, TypeAlias

from remit.core.flow.words import statuses
from remit.core.report import Node, Refusal

SIBLINGS: Final = 8

Hop: TypeAlias = Node | Refusal


class Stack(NamedTuple):
    """Siblings folded into one card."""

    hidden: tuple[Hop, ...]

    @property
    def statuses(self) -> list[str]:
        return [status_of(hop) for hop in self.hidden]

    @property
    def nodes(self) -> list[Node]:
        return [hop for hop in self.hidden if isinstance(hop, Node)]

    @property
    def below(self) -> int:
        """How many tasks are folded away under these."""
        return sum(sum(1 for _ in node.walk()) - 1 for node in self.nodes)

    def sentence(self) -> str:
        return f"+{len(self.hidden):,} more ({statuses(self.statuses)})"


@dataclass(slots=True, eq=False)  # a card is itself: places are kept per card
class Card:
    shows: Node | Refusal | Stack
    depth: int = 0
    children: "list[Card]" = field(default_factory=list["Card"])


def status_of(hop: Hop) -> str:
    return "refused" if isinstance(hop, Refusal) else hop.status


def hops_of(node: Node) -> list[Hop]:
    """Whom a task asked, in order, with the refused ones where they happened."""
    return list(merge(node.children, node.refusals, key=_asked_at))


def outline(root: Node, at_most: int | None = None) -> Card:
    """The cards to draw. It goes level by level: under a limit, the tasks nearest to the root stay."""
    top = Card(root)
    room = None if at_most is None else at_most - 1
    waiting = deque([(top, root)])
    while waiting:
        card, node = waiting.popleft()
        hops = hops_of(node)
        shown = SIBLINGS if room is None else min(SIBLINGS, room)
        card.children = [Card(hop, card.depth + 1) for hop in hops[:shown]]
        room = None if room is None else room - len(card.children)
        waiting.extend((child, child.shows) for child in card.children if isinstance(child.shows, Node))
        if len(hops) > shown:
            card.children.append(Card(Stack(tuple(hops[shown:])), card.depth + 1))
    return top


def cards_of(top: Card) -> Iterator[Card]:
    """Every card in tree order."""
    waiting = [top]
    while waiting:
        card = waiting.pop()
        yield card
        waiting.extend(reversed(card.children))


def _asked_at(hop: Hop) -> int:
    return hop.at if isinstance(hop, Refusal) else hop.started_at
