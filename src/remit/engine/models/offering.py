"""Which verbs a model is offered now: those that its remit allows and that can succeed."""

from __future__ import annotations

from typing import Final, NamedTuple

from remit.core import offers, scope
from remit.core import remit as remits
from remit.core.allow import ANY
from remit.core.offers import Offers, Room
from remit.core.record import RunFacts
from remit.core.scope import Sees, board_of
from remit.core.toolgroups import GROUPS
from remit.engine.admission import TaskLimits
from remit.engine.attempt.live import LiveTask
from remit.engine.ground import Ground
from remit.ports import View

_ASKING: Final = GROUPS["agents"] - GROUPS["context"]


class Offering(NamedTuple):
    """`hide` says whether verbs that cannot succeed are kept from models; those that no card allows always are."""

    ground: Ground
    limits: TaskLimits
    hide: bool = True

    async def room(self, live: LiveTask) -> Room:
        """Tell how much room a holder has. The store is read only if there is someone whom it may ask; for a holder
        that may ask nobody there is as much room until it writes something."""
        if live.room is None or live.card.asks:
            live.room = await self._room(live)
        return live.room

    async def _room(self, live: LiveTask) -> Room:
        remit = live.remit
        own = live.card.tools is not ANY and "ask_person" in live.card.tools  # it may be a tool of the agent's own
        person = live.card.ask_person or own
        if not self.hide:
            return Room(person=person)
        board = board_of(remit.session)
        room = Room(
            askable=self._may_ask(live),
            deeper=remit.bounds.depth is None or remit.chain.depth < remit.bounds.depth,
            reads=bool(live.sight),
            writes=bool(live.reach),
            board=_any_of(live.sight, board) or _any_of(live.reach, board),
            person=person,
        )
        if not room.askable:
            return room
        run, spawned = await self.ground.store.read(lambda view: _facts(view, live))
        most = remit.bounds.tasks
        return room._replace(
            tasks=most is None or run.tasks < most or (remit.led and run.tasks == most),
            handoffs=self._may_hand(live, run),
            spawns=spawned < self.limits.spawns,
        )

    async def offers(self, live: LiveTask) -> Offers:
        """Tell which tools and verbs a model is shown with its next request."""
        live.must_be_at_work()
        room = await self.room(live)
        if live.offered is None or live.offered[0] is not room:
            # A card does not list the tools of agents that run inside the turn: the bounds and what it denies count.
            kit = remits.kit(live.remit, live.card, inner=True)
            live.offered = room, Offers(kit, offers.hidden(room), live.card.denies)
        return live.offered[1]

    def _may_ask(self, live: LiveTask) -> bool:
        card = live.card
        return bool(card.asks) and bool(self.ground.directory.askable(live.remit, card))

    def _may_hand(self, live: LiveTask, run: RunFacts) -> bool:
        most = live.remit.bounds.handoffs
        return (most is None or run.handoffs < most) and len(live.handoff.trail) < self.limits.handoffs


def has_verbs(live: LiveTask) -> bool:
    """Whether the holder has verbs among its tools at all, as every model has: agents that are programs have none."""
    return any(live.kit.has(name) for name in (*GROUPS["context"], *_ASKING))


def _facts(view: View, live: LiveTask) -> tuple[RunFacts, int]:
    live.must_hold(view)
    return view.run(live.remit.root), view.spawned(live.remit.id)


def _any_of(sees: Sees, board: scope.Scope) -> bool:
    return bool(scope.parts(sees, board))
