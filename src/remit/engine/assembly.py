"""Putting the engine together, once for every store that a runtime opens."""

from collections.abc import Callable
from typing import NamedTuple

from remit.core.breaker import BreakerPolicy
from remit.engine.admission import Admission
from remit.engine.attempt.effects import Effects
from remit.engine.attempt.endings import Endings
from remit.engine.attempt.live import LiveTask
from remit.engine.attempt.slots import Slots
from remit.engine.attempt.stops import StopListener
from remit.engine.attempt.turns import Conductor
from remit.engine.delegation import Delegations, Services
from remit.engine.directory import Directory
from remit.engine.plans.running import PlanRunner, Schemas
from remit.engine.presence.bell import Bell
from remit.engine.presence.heartbeat import Presence
from remit.engine.queue.submitting import TaskQueue
from remit.engine.sharing.entries import Entries
from remit.engine.sharing.inbox import Inbox
from remit.engine.turn import Turn, TurnServices
from remit.engine.upkeep.breakers import Breakers
from remit.ports import Clock, Ids, Store


class EngineSettings(NamedTuple):
    """What the owner of a runtime decides about it."""

    clock: Clock
    ids: Ids
    breaker_policy: BreakerPolicy
    concurrency: int | None
    silence: float
    lasting: bool
    schemas: Callable[[], Schemas]


class Engine(NamedTuple):
    """The parts that a runtime speaks to."""

    services: Services
    delegations: Delegations
    tasks: TaskQueue
    entries: Entries
    breakers: Breakers
    plan_runner: PlanRunner


def assembled(store: Store, directory: Directory, means: EngineSettings) -> Engine:
    clock, ids = means.clock, means.ids
    admission = Admission(directory, means.breaker_policy, means.concurrency)
    bell = Bell(store)
    presence = Presence(store, ids, lasting=means.lasting, silence=means.silence)
    conductor = Conductor(store, directory, admission, clock, Endings(store, admission, clock, ids, bell))
    stops = StopListener(store, conductor.alive, presence.worker)
    slots = Slots(store, clock, ids, admission, conductor.alive, bell, presence)
    services = Services(store, directory, clock, ids, admission, conductor, bell, presence, stops, slots)
    delegations, tasks, entries = Delegations(services), TaskQueue(services), Entries(store, clock, ids)
    inbox = Inbox(store, directory, clock, ids)
    plan_runner = PlanRunner(store, directory, delegations, inbox, clock, means.schemas)
    turn_services = TurnServices(
        delegations, conductor, directory, inbox, entries, plan_runner, tasks, Effects(store, clock)
    )

    # Delegation is recursive: delegate -> carry -> turn -> delegate. The knot is tied here and nowhere else.
    def take_turn(live: LiveTask) -> Turn:
        return Turn(turn_services, live)

    conductor.take_turn = take_turn
    conductor.send = delegations.delegate
    return Engine(services, delegations, tasks, entries, Breakers(store, clock, ids), plan_runner)
