"""A proposed hop: the remit of the task that it would begin, derived from the engine's own record of the asker."""

from remit.core import remit as remits
from remit.core.bounds import Bounds
from remit.core.kinds import Place
from remit.core.record import Record
from remit.core.refusals import Refusable
from remit.core.remit import Origin, Pass
from remit.engine.admission import Proposal
from remit.engine.attempt.live import LiveTask
from remit.engine.ground import Ground


def first_proposed(ground: Ground, wish: Pass, ceiling: Bounds, session: str, lasts: int) -> Proposal:
    """Propose what a person asks for."""
    now = ground.clock.now()
    origin = Origin(ground.ids.new(), ground.store.workspace, session or ground.ids.new())
    first = remits.begin(origin, wish, ceiling, now + lasts)
    return Proposal(first, first, wish, None, now)


def proposed(ground: Ground, asker: LiveTask, wish: Pass, lasts: int) -> Proposal:
    """Propose what an agent asks for, as part of its own task."""
    now = ground.clock.now()
    parent = asker.remit
    kit = remits.kit(parent, asker.card) if wish.tools else remits.NONE
    child = remits.derive(parent, wish, ground.ids.new(), asker.sight, kit, now + lasts)
    return Proposal(child, parent, wish, asker.card, now, tally=Refusable(asker.refusals))


def place_of(record: Record) -> Place:
    return Place(record.run, record.session, record.id)
