"""The types of all values that remit returns, for imports and annotations."""

from remit.core.access import AccessInfo, MadeAccess
from remit.core.artifact import Artifact
from remit.core.breaker import Breaker
from remit.core.card import Card
from remit.core.command import Command, End, HandoffState, Move, Send
from remit.core.entry import Entry, Message
from remit.core.events import Event, Gap, Head, Labels
from remit.core.lifecycle import Outcome, Progress, Record, RunFacts
from remit.core.limits import LimitUse, Metered
from remit.core.match import Match
from remit.core.money import Hold, Lease
from remit.core.offers import Offers
from remit.core.prices import Usage
from remit.core.question import Inquiry, Notice, Reply
from remit.core.recovery import Resting
from remit.core.remit import Chain, Hop, Kit, Remit
from remit.core.session import EarlierExchange
from remit.core.times import Schedule
from remit.engine.answering import AskedQuestion
from remit.engine.approvals import WantedHop
from remit.engine.artifacts import OpenedArtifact, TurnArtifacts
from remit.engine.attempt.live import Handoff, SentBack
from remit.engine.context import Board, Context
from remit.engine.models.talking import KeptTalk
from remit.engine.money import PaidCall
from remit.engine.plans import PlanOutcome, StepOutcome
from remit.engine.queue.task import Status, Task
from remit.engine.turn import Toolset, Turn
from remit.engine.upkeep.doctor import Finding, Health
from remit.ports.models import KeptAnswer, ModelAnswer, TextChunk
from remit.ports.services import KeyInfo
from remit.ports.views import RunLine, RunVitals, TaskLine
from remit.report.detail import Detail, EarlierAttempt
from remit.report.edges import AskEdge
from remit.report.entries import EntryReader, EntryVersion
from remit.report.questions import AskedPerson
from remit.report.spend import LedgerAudit, Spending, SpendLine, SpendPoint
from remit.report.stats import AgentStats, BreakerStats, Stats, StatsPoint, Times
from remit.report.talk import CalledTool, TalkLine, TaskTalk
from remit.report.tree import HandoffMade, Node, PlanStep, Refusal, Retry
from remit.runtime.access import WorkspaceAccess
from remit.runtime.agents import WorkspaceAgents
from remit.runtime.artifacts import StoredArtifact, WorkspaceArtifacts
from remit.runtime.contexts import WorkspaceContext
from remit.runtime.hooks import Delivery, HookInfo, NewHook, WorkspaceHooks
from remit.runtime.journal import Follow, WorkspaceJournal
from remit.runtime.keys import CoolingList, KeyRing
from remit.runtime.looks import (
    DetailLook,
    PartLook,
    PublishedCard,
    ReaderLook,
    RecordLook,
    RunLook,
    TalkLook,
    TaskLook,
    VersionLook,
    WorkspaceLooks,
)
from remit.runtime.money import Account, WorkspaceMoney
from remit.runtime.questions import WorkspaceQuestions
from remit.runtime.schedules import WorkspaceSchedules
from remit.runtime.stacks import AgentStack
from remit.runtime.tasks import WorkspaceTasks
from remit.runtime.workers import Crew, Peer

__all__ = [
    "AccessInfo",
    "Account",
    "AgentStack",
    "AgentStats",
    "Artifact",
    "AskEdge",
    "AskedPerson",
    "AskedQuestion",
    "Board",
    "Breaker",
    "BreakerStats",
    "CalledTool",
    "Card",
    "Chain",
    "Command",
    "Context",
    "CoolingList",
    "Crew",
    "Delivery",
    "Detail",
    "DetailLook",
    "EarlierAttempt",
    "EarlierExchange",
    "End",
    "Entry",
    "EntryReader",
    "EntryVersion",
    "Event",
    "Finding",
    "Follow",
    "Gap",
    "Handoff",
    "HandoffMade",
    "HandoffState",
    "Head",
    "Health",
    "Hold",
    "HookInfo",
    "Hop",
    "Inquiry",
    "KeptAnswer",
    "KeptTalk",
    "KeyInfo",
    "KeyRing",
    "Kit",
    "Labels",
    "Lease",
    "LedgerAudit",
    "LimitUse",
    "MadeAccess",
    "Match",
    "Message",
    "Metered",
    "ModelAnswer",
    "Move",
    "NewHook",
    "Node",
    "Notice",
    "Offers",
    "OpenedArtifact",
    "Outcome",
    "PaidCall",
    "PartLook",
    "Peer",
    "PlanOutcome",
    "PlanStep",
    "Progress",
    "PublishedCard",
    "ReaderLook",
    "Record",
    "RecordLook",
    "Refusal",
    "Remit",
    "Reply",
    "Resting",
    "Retry",
    "RunFacts",
    "RunLine",
    "RunLook",
    "RunVitals",
    "Schedule",
    "Send",
    "SentBack",
    "SpendLine",
    "SpendPoint",
    "Spending",
    "Stats",
    "StatsPoint",
    "Status",
    "StepOutcome",
    "StoredArtifact",
    "TalkLine",
    "TalkLook",
    "Task",
    "TaskLine",
    "TaskLook",
    "TaskTalk",
    "TextChunk",
    "Times",
    "Toolset",
    "Turn",
    "TurnArtifacts",
    "Usage",
    "VersionLook",
    "WantedHop",
    "WorkspaceAccess",
    "WorkspaceAgents",
    "WorkspaceArtifacts",
    "WorkspaceContext",
    "WorkspaceHooks",
    "WorkspaceJournal",
    "WorkspaceLooks",
    "WorkspaceMoney",
    "WorkspaceQuestions",
    "WorkspaceSchedules",
    "WorkspaceTasks",
]
