"""What is drawn of a run: cards for tasks in somebody's hands, for refused hops, and for what is too many to show.

Trees are walked with a list, not with recursion: a run may be deeper than Python's stack.
"""

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Final, NamedTuple, TypeAlias

from remit.report.flow.stays import Stay, stays
from remit.report.tree import Node, Refusal
from remit.report.words import states

SIBLINGS: Final = 8
_NO_LIMIT: Final = 10**9

Hop: TypeAlias = Node | Refusal | Stay


class Stack(NamedTuple):
    """Siblings, or stays of one task, folded into one card."""

    hidden: tuple[Hop, ...]

    @property
    def states(self) -> list[str]:
        return [_state(hop) for hop in self.hidden]

    @property
    def below(self) -> int:
        """How many tasks are folded away under these."""
        under = (child for hop in self.hidden for child in _under(hop))
        return sum(sum(1 for _ in node.walk()) for node in under)

    def sentence(self) -> str:
        return f"+{len(self.hidden):,} more ({states(self.states)})"


@dataclass(slots=True, eq=False)  # a card is itself: places are kept per card
class Tile:
    """`children` are those it asked, `heir` is the same task in the next hands."""

    shows: Stay | Refusal | Stack
    depth: int = 0
    children: "list[Tile]" = field(default_factory=list["Tile"])
    heir: "Tile | None" = None


def _state(hop: Hop) -> str:
    return "refused" if isinstance(hop, Refusal) else hop.state


def outline(root: Node, at_most: int = _NO_LIMIT) -> Tile:
    """The cards to draw. It goes level by level: under a limit, the tasks nearest to the root stay."""
    made = _strung(root, 0, at_most)
    top, room = made[0], at_most - len(made)
    waiting = deque(made)
    while waiting:
        card = waiting.popleft()
        hops = card.shows.hops() if isinstance(card.shows, Stay) else []
        for at, hop in enumerate(hops):
            if at == SIBLINGS or room <= 0:
                card.children.append(Tile(Stack(tuple(hops[at:])), card.depth + 1))
                break
            made = _strung(hop, card.depth + 1, room)
            card.children.append(made[0])
            room -= len(made)
            waiting.extend(made)
    return top


def cards_of(top: Tile) -> Iterator[Tile]:
    """Every card in tree order: who was asked comes before who took over."""
    waiting = [top]
    while waiting:
        card = waiting.pop()
        yield card
        if card.heir is not None:
            waiting.append(card.heir)
        waiting.extend(reversed(card.children))


def _strung(hop: Node | Refusal, depth: int, room: int) -> list[Tile]:
    """One card for each stay of a task; of very many, the first ones and the last."""
    if isinstance(hop, Refusal):
        return [Tile(hop, depth)]
    found = stays(hop)
    most = max(3, min(SIBLINGS, room))
    shown: list[Stay | Stack] = [*found]
    if len(found) > most:
        shown = [*found[: most - 2], Stack(tuple(found[most - 2 : -1])), found[-1]]
    cards = [Tile(one, depth) for one in shown]
    for card, heir in pairwise(cards):
        card.heir = heir
    return cards


def _under(hop: Hop) -> list[Node]:
    if isinstance(hop, Stay):
        return [child for child in hop.hops() if isinstance(child, Node)]
    return hop.children if isinstance(hop, Node) else []
