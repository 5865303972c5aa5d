"""An operator's hand on the breakers: taking an agent out, and letting it in again."""

from collections.abc import Callable
from typing import NamedTuple

from remit.core import breaker as breakers
from remit.core.breaker import CLOSED, Breaker
from remit.core.kinds import Place, breaker_set
from remit.core.text import canonical, plain
from remit.ports import Clock, Decision, Ids, Store, View

WHY_LIMIT = 200


class Breakers(NamedTuple):
    """The breakers of a workspace, for a runtime and for the command line alike."""

    store: Store
    clock: Clock
    ids: Ids

    async def all(self) -> dict[str, Breaker]:
        """The breakers of the agents that have failed of late, or were taken out."""
        found = await self.store.read(lambda view: view.breakers())
        return {name: breaker for name, breaker, _ in found if breaker.state != "closed" or breaker.failures}

    async def trip(self, agent: str, why: str) -> bool:
        """Takes an agent out: nobody can ask it until it is reset. Says whether that changed anything."""
        reason = plain(why, "why", WHY_LIMIT)
        return await self._set(agent, lambda before: breakers.tripped(before, reason))

    async def reset(self, agent: str, why: str = "") -> bool:
        """Lets an agent be asked again at once. Says whether that changed anything."""
        reason = plain(why, "why", WHY_LIMIT, empty=True)
        return await self._set(agent, lambda before: before if _rests(before) else CLOSED._replace(why=reason))

    async def _set(self, agent: str, change: Callable[[Breaker], Breaker]) -> bool:
        name, now = canonical(agent), self.clock.now()

        def decide(view: View) -> Decision[bool]:
            before = view.breaker(name)
            after = change(before)
            if after == before:
                return Decision(False)
            return Decision(True, (breaker_set(name, after, Place(), now),))

        return await self.store.tx(self.ids.new(), decide)


def _rests(breaker: Breaker) -> bool:
    """Closed, and with no failures to forget."""
    return breaker.state == "closed" and not breaker.failures
