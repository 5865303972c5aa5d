"""What the engine needs from outside, as protocols by role: a clock, ids, views, a store."""

from remit.ports.clock import Clock, Ids, Timer
from remit.ports.looking import Beat, RunAge, RunLine, Span, Tallied, TallyRow, Which
from remit.ports.store import (
    FAULTS,
    NOTHING,
    Database,
    Decide,
    Decided,
    Decision,
    Dispatcher,
    Fault,
    Pulse,
    Sink,
    Store,
    Wants,
    no_fault,
)
from remit.ports.views import AgentView, EntryView, JournalView, MessageView, QueueView, TallyView, TaskView, View

__all__ = [
    "FAULTS",
    "NOTHING",
    "AgentView",
    "Beat",
    "Clock",
    "Database",
    "Decide",
    "Decided",
    "Decision",
    "Dispatcher",
    "EntryView",
    "Fault",
    "Ids",
    "JournalView",
    "MessageView",
    "Pulse",
    "QueueView",
    "RunAge",
    "RunLine",
    "Sink",
    "Span",
    "Store",
    "Tallied",
    "TallyRow",
    "TallyView",
    "TaskView",
    "Timer",
    "View",
    "Wants",
    "Which",
    "no_fault",
]
