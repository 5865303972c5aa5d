"""`ws.agents`: the agents and workers of a workspace, and the breakers of agents that fail."""

from __future__ import annotations

from remit.core.breaker import Breaker
from remit.core.card import Card
from remit.core.checks import between
from remit.core.match import BEST, MATCHES, Match
from remit.core.values import plain
from remit.engine.acts import act_of, withdraw
from remit.engine.traces import OwnersFunctionFailed
from remit.ports import View
from remit.runtime.opening import Opening
from remit.runtime.workers import Crew, crew_of


class WorkspaceAgents:
    """The agents of this process and those that workers have published, their breakers, and the workers."""

    __slots__ = ("_opening",)

    def __init__(self, opening: Opening) -> None:
        self._opening = opening

    async def find(self, wanted: str, *, limit: int = BEST) -> list[Match]:
        """Return the agents that match a wanted capability, best first, each with its score and the reason. Agents that
        cannot be called now, because their breaker is open or they are busy, come last."""
        plain(wanted, "a capability", 1_000)
        between(limit, "limit", 1, MATCHES)
        try:
            return (await self._opening.engine.finder.find_in(wanted, await self.list()))[:limit]
        except OwnersFunctionFailed as failed:
            raise failed.error from None  # the caller is the owner, so raise its function's own error

    async def breakers(self) -> dict[str, Breaker]:
        """Return the breakers of the agents that have failed recently, or were taken out of service."""
        return await self._opening.engine.breakers.all()

    async def trip(self, agent: str, why: str, *, op: str = "", by: str = "") -> bool:
        """Take an agent out of service: calls to it are refused until it is reset. Return whether this changed
        anything."""
        return await self._opening.engine.breakers.trip(agent, why, act_of(op, by))

    async def reset(self, agent: str, why: str = "", *, op: str = "", by: str = "") -> bool:
        """Close an agent's breaker, so that it can be called at once. Return whether this changed anything."""
        return await self._opening.engine.breakers.reset(agent, why, act_of(op, by))

    async def withdraw(self, agent: str, *, op: str = "", by: str = "") -> None:
        """Remove the published card of an agent that no worker has any more: it is no longer listed, found or given
        tasks. Raise `Conflict` while a worker has the agent, or an open task, a schedule or an access key needs it."""

        def count_workers(view: View, name: str) -> int:
            return len(crew_of(view.workers(), self._opening.clock.now()).workers_of(name))

        await withdraw(self._opening.ground, agent, count_workers, act_of(op, by))

    async def workers(self) -> Crew:
        """Return the processes with a heartbeat."""
        return crew_of(await self._opening.records.read(lambda view: view.workers()), self._opening.clock.now())

    async def list(self) -> list[Card]:
        """Return the cards of the agents of this process and of those that workers have published, by name."""
        published = await self._opening.records.read(lambda view: view.cards())
        cards = {card.name: card for card, _ in published}
        cards |= {card.name: card for card in self._opening.directory.cards()}
        return [cards[name] for name in sorted(cards)]
