"""Putting the engine together, once for every store that a runtime opens."""

from collections.abc import Callable
from typing import NamedTuple

from remit.core.breaker import Temper
from remit.engine.admission import Admission
from remit.engine.bell import Bell
from remit.engine.breakers import Switchboard
from remit.engine.conduct import Conductor
from remit.engine.delegate import Delegations, Floor
from remit.engine.directory import Directory
from remit.engine.ears import Ears
from remit.engine.effects import Effects
from remit.engine.endings import Endings
from remit.engine.inbox import Inbox
from remit.engine.live import Live
from remit.engine.plans import Schemas, Workshop
from remit.engine.presence import Presence
from remit.engine.shelf import Shelf
from remit.engine.slots import Slots
from remit.engine.tasks import Tasks
from remit.engine.turn import Desk, Turn
from remit.ports import Clock, Ids, Store


class Means(NamedTuple):
    """What the owner of a runtime decides about it."""

    clock: Clock
    ids: Ids
    temper: Temper
    concurrency: int | None
    silence: float
    lasting: bool
    schemas: Callable[[], Schemas]


class Engine(NamedTuple):
    """The parts that a runtime speaks to."""

    floor: Floor
    delegations: Delegations
    tasks: Tasks
    shelf: Shelf
    switchboard: Switchboard
    shop: Workshop


def assembled(store: Store, directory: Directory, means: Means) -> Engine:
    clock, ids = means.clock, means.ids
    admission = Admission(directory, means.temper, means.concurrency)
    bell = Bell(store)
    presence = Presence(store, ids, lasting=means.lasting, silence=means.silence)
    conductor = Conductor(store, directory, admission, clock, Endings(store, admission, clock, ids, bell))
    ears = Ears(store, conductor.runs, presence.worker)
    slots = Slots(store, clock, ids, admission, conductor.runs, bell, presence)
    floor = Floor(store, directory, clock, ids, admission, conductor, bell, presence, ears, slots)
    delegations, tasks, shelf = Delegations(floor), Tasks(floor), Shelf(store, clock, ids)
    inbox = Inbox(store, directory, clock, ids)
    shop = Workshop(store, directory, delegations, inbox, clock, means.schemas)
    desk = Desk(delegations, conductor, directory, inbox, shelf, shop, tasks, Effects(store, clock))

    # Delegation is recursive: delegate -> carry -> turn -> delegate. The knot is tied here and nowhere else.
    def take_turn(live: Live) -> Turn:
        return Turn(desk, live)

    conductor.take_turn = take_turn
    conductor.send = delegations.delegate
    return Engine(floor, delegations, tasks, shelf, Switchboard(store, clock, ids), shop)
