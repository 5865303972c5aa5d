"""What everything that passes work on shares."""

from typing import NamedTuple

from remit.engine.admission import Admission
from remit.engine.attempt.busy import BusyAgents
from remit.engine.attempt.handoffs import Handoffs
from remit.engine.attempt.slots import Slots
from remit.engine.attempt.stops import StopListener
from remit.engine.attempt.turns import Conductor
from remit.engine.ground import Ground
from remit.engine.people.questions import Questions
from remit.engine.presence.bell import Bell
from remit.engine.presence.heartbeat import Heartbeat
from remit.engine.presence.insisting import Insisting


class Services(NamedTuple):
    ground: Ground
    admission: Admission
    conductor: Conductor
    handoffs: Handoffs
    bell: Bell
    heartbeat: Heartbeat
    stops: StopListener
    slots: Slots
    busy: BusyAgents
    insisting: Insisting
    questions: Questions
