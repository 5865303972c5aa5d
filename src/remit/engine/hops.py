"""A proposed hop: the remit of the task that it would begin, derived from the engine's own record of the asker."""

from remit.core import remit as remits
from remit.core.bounds import Bounds
from remit.core.kinds import Place
from remit.core.record import Record
from remit.core.refusals import Refusable
from remit.core.remit import NO_RIGHTS, Origin, Pass
from remit.core.trust import Trust
from remit.engine.admission import Proposal
from remit.engine.attempt.live import LiveTask
from remit.engine.ground import Ground


def first_proposed(ground: Ground, wish: Pass, ceiling: Bounds, session: str) -> Proposal:
    """Propose what a person asks for."""
    now = ground.clock.now()
    origin = Origin(ground.ids.new(), ground.store.workspace, session or ground.ids.new())
    first = remits.begin(origin, wish, ceiling, deadline(wish, now))
    return Proposal(first, first, wish, None, now)


def proposed(ground: Ground, asker: LiveTask, wish: Pass, trust: Trust | None = None) -> Proposal:
    """Propose what an agent asks for, as part of its own task. `trust` is the label of what it says, if that does not
    come from all that it took in."""
    now = ground.clock.now()
    parent = asker.remit
    own = asker.rights if wish.passes else NO_RIGHTS
    child = remits.derive(parent, wish, ground.ids.new(), own, deadline(wish, now), trust or asker.says)
    return Proposal(child, parent, wish, asker.card, now, tally=Refusable(asker.refusals))


def deadline(wish: Pass, now: int) -> int | None:
    """Give the deadline that was said with a wish. Its usual time is a timer of each attempt, not a deadline."""
    return None if wish.microseconds is None else now + wish.microseconds


def place_of(record: Record) -> Place:
    return Place(record.run, record.session, record.id)
