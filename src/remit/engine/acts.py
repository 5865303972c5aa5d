"""Actions of an owner on a workspace, outside of tasks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, TypeVar, cast

from remit.core import breaker as breakers
from remit.core.breaker import CLOSED, Breaker
from remit.core.checks import meant
from remit.core.events import Place
from remit.core.kinds.workspace import breaker_set, card_withdrawn, owner_acted
from remit.core.records import NamedTuple
from remit.core.values import NAME_LIMIT, Json, canonical, digest, encode, plain, shown
from remit.engine.ground import Ground
from remit.errors import Conflict, NotFound
from remit.ports import Decided, Decision, View, Which

OP_LIMIT: Final = 200  # characters
T = TypeVar("T")


class ActContent(NamedTuple):
    """The content of an action: its verb, its target, and all other arguments."""

    verb: str
    target: str
    body: Json = None

    @property
    def digest(self) -> str:
        """The digest of the content: equal for the same action only."""
        return digest(encode([self.verb, self.target, self.body]))


class Act(NamedTuple):
    """The operation id of an owner's action and the person who did it. An action that is repeated with the same
    operation id happens once."""

    op: str = ""
    by: str = ""

    async def perform(self, ground: Ground, content: ActContent, decide: Callable[[View], Decision[T]]) -> Decided[T]:
        """Perform the action. With the same `op` again, return the first answer, or raise `Conflict` if the content
        differs. Without an `op` every call is a new action.

        The operation is recorded with the digest of its content and outlives the run that it was about. An action that
        changes nothing is recorded too: the answer to its repetition must not depend on later changes.
        """
        if not self.op:
            return await ground.store.tx(ground.ids.new(), decide)
        own = content.digest

        def named(view: View) -> Decision[Json]:
            made = decide(view)
            acted = owner_acted(content.verb, content.target, self.by, ground.clock.now())
            answer = cast("Json", made.answer)
            return cast("Decision[Json]", made)._replace(answer=[own, answer], events=(acted, *made.events))

        kept, aside = await ground.store.tx(f"owner/{self.op}", named)
        first, answer = cast("list[Any]", kept)
        if first != own:
            raise _used_for_another(self.op)
        return Decided(answer, aside)


ONCE: Final = Act()


def act_of(op: str, by: str = "") -> Act:
    """Return the `Act` for the arguments `op` and `by`, checked."""
    return Act(plain(op, "op", OP_LIMIT, empty=True), plain(by, "by", NAME_LIMIT, empty=True))


def _used_for_another(op: str) -> Conflict:
    no = Conflict(
        f"the op {shown(op)} was used for another act; repeat exactly that act to get its answer, "
        "or use another op for this one"
    )
    no.retryable = False  # the same request would fail again
    return no


WHY_LIMIT = 200


class Breakers(NamedTuple):
    """The breakers of a workspace."""

    ground: Ground

    async def all(self) -> dict[str, Breaker]:
        """Return the breakers of agents that have failed recently or were taken out of service."""
        rows = await self.ground.store.read(lambda view: view.breakers())
        return {name: breaker for name, breaker, _ in rows if breaker.state != "closed" or breaker.failures}

    async def trip(self, agent: str, why: str, act: Act = ONCE) -> bool:
        """Take an agent out of service: calls to it are refused until it is reset. Return whether this changed
        anything."""
        reason = plain(why, "why", WHY_LIMIT)
        content = ActContent("trip", canonical(agent), reason)
        return await self._set(content, lambda before: breakers.tripped(before, reason), act)

    async def reset(self, agent: str, why: str = "", act: Act = ONCE) -> bool:
        """Close an agent's breaker, so that it can be called at once. Return whether this changed anything."""
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
        """Raise `NotFound` for an unknown name: a typo must not look like an agent that was taken out of service."""
        known = {*self.ground.directory.names(), *(card.name for card, _ in view.cards())}
        if not known:  # a store opened without agents, in which no worker has published any
            return
        known.update(agent for agent, _, _ in view.breakers())
        if name not in known:
            hint = meant(name, sorted(known)) or f"; there is {', '.join(sorted(known))}"
            raise NotFound(f"there is no agent '{name}'{hint}")


def _rests(breaker: Breaker) -> bool:
    """Whether the breaker is closed and has no failures to clear."""
    return breaker.state == "closed" and not breaker.failures


async def withdraw(ground: Ground, agent: str, count_workers: Callable[[View, str], int], act: Act) -> None:
    """Remove the card of an agent that no worker has. Raise `NotFound` if there is no such card, `Conflict` if a worker
    has the agent or the card is still needed. `count_workers` returns how many workers have the agent."""
    name = canonical(agent)

    def decide(view: View) -> Decision[None]:
        if view.card(name) is None:
            names = [card.name for card, _ in view.cards()]
            raise NotFound(f"there is no card '{name}' in this workspace{meant(name, names)}")
        if ground.directory.get(name) is not None or count_workers(view, name):
            raise Conflict(f"a worker has '{name}': it would publish the card again; stop the worker first")
        _must_be_unused(view, name)
        return Decision(None, (card_withdrawn(name, act.by, ground.clock.now()),))

    await act.perform(ground, ActContent("withdraw", name), decide)


def _must_be_unused(view: View, name: str) -> None:
    """Raise `Conflict` if something would ask an agent for which there is no card."""
    if view.tasks(Which(agent=name, state="open", limit=1)):
        raise Conflict(f"'{name}' has tasks that have not ended; wait for them or cancel them first")
    if names := [one.name for one in view.schedules() if one.agent == name]:
        raise Conflict(f"the schedule {shown(names[0])} starts runs of '{name}'; remove it first")
    if names := [row.name for row, _ in view.accesses() if row.agent == name and row.revoked_at is None]:
        raise Conflict(f"the access key {shown(names[0])} asks in the name of '{name}'; revoke it first")
