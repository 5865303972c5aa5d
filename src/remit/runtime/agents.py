"""The owner's view of agents: who there is, who can do something, and who is left alone because it fails."""

from remit.core.breaker import Breaker
from remit.core.card import Card
from remit.core.checks import between
from remit.core.match import BEST, MATCHES, Match
from remit.core.values import plain
from remit.engine.acts import act_of
from remit.engine.traces import OwnersFunctionFailed
from remit.runtime.opening import Opening


class HasAgents:
    """Agents of this process and those that workers have published, and their breakers."""

    _opening: Opening

    async def agents(self) -> list[Card]:
        """List the agents of this process and those that workers have published, by name."""
        published = await self._opening.engine.services.ground.store.read(lambda view: view.cards())
        cards = {card.name: card for card, _ in published}
        cards |= {card.name: card for card in self._opening.directory.cards()}
        return [cards[name] for name in sorted(cards)]

    async def find(self, wanted: str, *, limit: int = BEST) -> list[Match]:
        """List the agents that can do this, best first: each with its score and why. Those that cannot be asked now,
        because their breaker is open or they are busy, come last."""
        plain(wanted, "a capability", 1_000)
        between(limit, "limit", 1, MATCHES)
        try:
            return (await self._opening.engine.finder.find_in(wanted, await self.agents()))[:limit]
        except OwnersFunctionFailed as failed:
            raise failed.error from None  # of the owner, who is asking

    async def breakers(self) -> dict[str, Breaker]:
        """List the breakers of the agents that have failed of late, or were taken out."""
        return await self._opening.engine.breakers.all()

    async def trip(self, agent: str, why: str, *, op: str = "", by: str = "") -> bool:
        """Take an agent out: nobody can ask it until it is reset. Tells whether that changed anything."""
        return await self._opening.engine.breakers.trip(agent, why, act_of(op, by))

    async def reset(self, agent: str, why: str = "", *, op: str = "", by: str = "") -> bool:
        """Let an agent be asked again at once. Tells whether that changed anything."""
        return await self._opening.engine.breakers.reset(agent, why, act_of(op, by))
