"""Admission: gathers the facts about a hop inside the transaction that decides on it, and asks the guards."""

from collections.abc import Iterable
from typing import NamedTuple

from remit.core import breaker as breakers
from remit.core.allow import ANY, has
from remit.core.breaker import CLOSED, BreakerPolicy
from remit.core.card import Card
from remit.core.events import Unsealed
from remit.core.guards import Facts, Guard, Verdict, judge
from remit.core.kinds import Place, breaker_set, place
from remit.core.record import Record
from remit.core.remit import Pass, Remit
from remit.engine.directory import Agent, Directory
from remit.ports import Span, View
from remit.report.tree import members, tokens_used

_MANY = 1_000_000


class Proposal(NamedTuple):
    """Someone wants to pass something on: `asker` is empty when a person does."""

    remit: Remit
    wish: Pass
    agent: Agent | None
    asker: Card | None
    now: int
    handoffs: int = 0
    repeats: bool = False


class Admission:
    """`concurrency` is how many tasks from the queue may be worked on in the whole workspace at a time."""

    def __init__(self, directory: Directory, breaker_policy: BreakerPolicy, concurrency: int | None = None) -> None:
        self._directory = directory
        self.breaker_policy = breaker_policy
        self._concurrency = concurrency

    def judge(self, view: View, guards: Iterable[Guard], hop: Proposal) -> tuple[Verdict, Facts]:
        facts = self._facts(view, hop)
        return judge(guards, hop.remit, hop.wish, facts), facts

    def probe(self, facts: Facts, hop: Proposal, task: str) -> tuple[Unsealed, ...]:
        """Whoever is let through a breaker that has cooled off is its one probe."""
        if facts.breaker is CLOSED or breakers.admits(facts.breaker, hop.now) != "probe":
            return ()
        trying = breakers.probing(facts.breaker, self.breaker_policy, task, hop.now)
        return (breaker_set(hop.wish.to, trying, place(hop.remit), hop.now),)

    def room(self, view: View, *, resuming: bool = False) -> int:
        """How many more tasks from the queue may be worked on in the workspace.

        `resuming` leaves room for those that have waited and want to go on: what is new stands behind them.
        """
        if self._concurrency is None:
            return _MANY
        return max(0, self._concurrency - view.working() - (view.resuming("*") if resuming else 0))

    def room_for(self, view: View, holder: str, now: int, *, resuming: bool = False) -> int:
        """How many more tasks this agent may work on; none if it is not one of ours."""
        agent = self._directory.get(holder)
        if agent is None:
            return 0
        limit = agent.card.concurrency
        if limit is None:
            return _MANY
        return max(0, limit - view.running(holder, now) - (view.resuming(holder) if resuming else 0))

    def goes_ahead(self, view: View, holder: str, now: int) -> bool:
        """Whether a task may begin right now, and nothing has stood in its queue for longer."""
        agent = self._directory.get(holder)
        limited = self._concurrency is not None or agent is None or agent.card.concurrency is not None
        if limited and (self.room(view, resuming=True) <= 0 or self.room_for(view, holder, now, resuming=True) <= 0):
            return False
        return not view.due(holder, "", now, 1)

    def trusted(self, view: View, holder: str, now: int) -> int:
        """How many tasks its breaker lets an agent begin now."""
        found = view.breaker(holder)
        return _MANY if found is CLOSED else {"yes": _MANY, "probe": 1, "no": 0}[breakers.admits(found, now)]

    def has_room(self, view: View, record: Record, now: int) -> bool:
        """Whether a task that waited may go on."""
        queued = record.asked_how != "delegate"
        return self.room_for(view, record.holder, now) > 0 and (not queued or self.room(view) > 0)

    def breaker_allows(self, view: View, record: Record, now: int) -> tuple[bool, tuple[Unsealed, ...]]:
        """Whether an agent may be asked now, and the fact that this task is its one probe, if it is."""
        found = view.breaker(record.holder)
        if found is CLOSED:
            return True, ()
        answer = breakers.admits(found, now)
        if answer != "probe":
            return answer != "no", ()
        trying = breakers.probing(found, self.breaker_policy, record.id, now)
        return True, (breaker_set(record.holder, trying, Place(record.run, record.session, record.id), now),)

    def _facts(self, view: View, hop: Proposal) -> Facts:
        remit, agent, asker = hop.remit, hop.agent, hop.asker
        asks = asker.asks if asker else ANY
        if agent is None or not has(remit.bounds.agents, agent.card.name):
            roster = self._directory.roster(remit, asker) if asker else self._directory.names()
            return Facts(hop.now, known=agent is not None, asks=asks, roster=roster)
        name, limit = agent.card.name, agent.card.concurrency
        running = 0 if limit is None else view.running(name, hop.now)
        facts = Facts(hop.now, True, asks, (), running, limit, view.breaker(name))
        if hop.handoffs or hop.repeats:
            facts = facts._replace(handoffs=hop.handoffs, repeats=hop.repeats)
        bounds = remit.bounds & hop.wish.within
        if bounds.members is None and bounds.tokens is None:
            return facts
        events = view.events(Span(run=remit.root))  # only runs with such a limit pay for looking back
        return facts._replace(members=members(events), tokens=tokens_used(events))
