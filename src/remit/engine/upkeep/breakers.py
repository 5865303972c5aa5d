"""An operator's hand on the breakers: taking an agent out, and letting it in again."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from remit.core import breaker as breakers
from remit.core.breaker import CLOSED, Breaker
from remit.core.checks import meant
from remit.core.kinds import Place, breaker_set
from remit.core.text import canonical, plain
from remit.engine.acts import ONCE, Act, ActContent
from remit.engine.ground import Ground
from remit.errors import NotFound
from remit.ports import Decision, View

WHY_LIMIT = 200


class Breakers(NamedTuple):
    """The breakers of a workspace."""

    ground: Ground

    async def all(self) -> dict[str, Breaker]:
        """List the breakers of the agents that have failed of late, or were taken out."""
        rows = await self.ground.store.read(lambda view: view.breakers())
        return {name: breaker for name, breaker, _ in rows if breaker.state != "closed" or breaker.failures}

    async def trip(self, agent: str, why: str, act: Act = ONCE) -> bool:
        """Take an agent out: nobody can ask it until it is reset. Tells whether that changed anything."""
        reason = plain(why, "why", WHY_LIMIT)
        content = ActContent("trip", canonical(agent), reason)
        return await self._set(content, lambda before: breakers.tripped(before, reason), act)

    async def reset(self, agent: str, why: str = "", act: Act = ONCE) -> bool:
        """Let an agent be asked again at once. Tells whether that changed anything."""
        reason = plain(why, "why", WHY_LIMIT, empty=True)
        content = ActContent("reset", canonical(agent), reason)
        return await self._set(content, lambda before: before if _rests(before) else CLOSED._replace(why=reason), act)

    async def _set(self, content: ActContent, change: Callable[[Breaker], Breaker], act: Act) -> bool:
        name, now = content.target, self.ground.clock.now()

        def decide(view: View) -> Decision[bool]:
            before = view.breaker(name)
            if before == CLOSED:
                self._must_be_known(view, name)
            after = change(before)
            if after == before:
                return Decision(False)
            return Decision(True, (breaker_set(name, after, Place(), now, act.by),))

        return (await act.perform(self.ground, content, decide)).answer

    def _must_be_known(self, view: View, name: str) -> None:
        """Refuse a name that nobody here has: a slip of the fingers must not look like an agent that was taken out."""
        known = {*self.ground.directory.names(), *(card.name for card, _ in view.cards())}
        if not known:  # a store that is looked at from outside, and nobody has published who is there
            return
        known.update(agent for agent, _, _ in view.breakers())
        if name not in known:
            hint = meant(name, sorted(known)) or f"; there is {', '.join(sorted(known))}"
            raise NotFound(f"there is no agent '{name}'{hint}")


def _rests(breaker: Breaker) -> bool:
    """Whether it is closed and has no failures to forget."""
    return breaker.state == "closed" and not breaker.failures
