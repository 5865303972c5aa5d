"""Everything that remit gives back, to import and annotate with."""

from remit.core.breaker import Breaker
from remit.core.card import Card
from remit.core.chain import Chain, Hop
from remit.core.command import Command, End, HandoffState, Move, Send
from remit.core.entry import Entry
from remit.core.events import Event, Head
from remit.core.match import Match
from remit.core.message import Message
from remit.core.outcome import Outcome
from remit.core.record import Record, RunFacts
from remit.core.remit import Remit
from remit.engine.attempt.live import Handoff
from remit.engine.plans.running import PlanOutcome, StepOutcome
from remit.engine.queue.task import Status, Task
from remit.engine.sharing.context import Board, Context
from remit.engine.toolset import Toolset
from remit.engine.turn import Turn
from remit.engine.upkeep.doctor import Finding, Health
from remit.ports.looking import RunLine
from remit.report.stats import AgentStats, BreakerStats, Stats, Times
from remit.report.tree import HandoffMade, Node, PlanStep, Refusal, Retry
from remit.runtime.following import Follow
from remit.runtime.workers import Crew, Peer

__all__ = [
    "AgentStats",
    "Board",
    "Breaker",
    "BreakerStats",
    "Card",
    "Chain",
    "Command",
    "Context",
    "Crew",
    "End",
    "Entry",
    "Event",
    "Finding",
    "Follow",
    "Handoff",
    "HandoffMade",
    "HandoffState",
    "Head",
    "Health",
    "Hop",
    "Match",
    "Message",
    "Move",
    "Node",
    "Outcome",
    "Peer",
    "PlanOutcome",
    "PlanStep",
    "Record",
    "Refusal",
    "Remit",
    "Retry",
    "RunFacts",
    "RunLine",
    "Send",
    "Stats",
    "Status",
    "StepOutcome",
    "Task",
    "Times",
    "Toolset",
    "Turn",
]
