"""Admission: gathers the facts about a hop inside the transaction that decides on it, and asks the guards."""

from collections.abc import Iterable
from typing import NamedTuple

from remit.core import breaker as breakers
from remit.core.allow import ANY, has
from remit.core.breaker import CLOSED, Temper
from remit.core.card import Card
from remit.core.events import Fact
from remit.core.facts import breaker_set, place
from remit.core.guards import Facts, Guard, Verdict, judge
from remit.core.remit import Pass, Remit
from remit.core.report import members, tokens_used
from remit.engine.directory import Agent, Directory
from remit.ports import Span, View


class Hop(NamedTuple):
    """Someone wants to pass something on: `asker` is empty when a person does."""

    remit: Remit
    wish: Pass
    agent: Agent | None
    asker: Card | None
    now: int
    handoffs: int = 0
    repeats: bool = False


class Admission:
    def __init__(self, directory: Directory, temper: Temper) -> None:
        self._directory = directory
        self.temper = temper

    def judge(self, view: View, guards: Iterable[Guard], hop: Hop) -> tuple[Verdict, Facts]:
        facts = self._facts(view, hop)
        return judge(guards, hop.remit, hop.wish, facts), facts

    def probe(self, facts: Facts, hop: Hop, task: str) -> tuple[Fact, ...]:
        """Whoever is let through a breaker that has cooled off is its one probe."""
        if facts.breaker is CLOSED or breakers.admits(facts.breaker, hop.now) != "probe":
            return ()
        trying = breakers.probing(facts.breaker, self.temper, task, hop.now)
        return (breaker_set(hop.wish.to, trying, place(hop.remit), hop.now),)

    def _facts(self, view: View, hop: Hop) -> Facts:
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
