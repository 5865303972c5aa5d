"""What an owner does to a workspace, as opposed to what agents do in their tasks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, NamedTuple, TypeVar, cast

from remit.core import breaker as breakers
from remit.core.breaker import CLOSED, Breaker
from remit.core.checks import meant
from remit.core.kinds import Place, breaker_set, owner_acted
from remit.core.values import NAME_LIMIT, Json, canonical, digest, encode, plain, shown
from remit.engine.ground import Ground
from remit.errors import Conflict, NotFound
from remit.ports import Decided, Decision, View

OP_LIMIT: Final = 200  # characters
T = TypeVar("T")


class ActContent(NamedTuple):
    """What an act does: its verb, what it is done to, and everything else that was said about it."""

    verb: str
    target: str
    body: Json = None

    @property
    def digest(self) -> str:
        """The name of the content: equal for the same act, and for no other."""
        return digest(encode([self.verb, self.target, self.body]))


class Act(NamedTuple):
    """An owner's act: under which operation, so that a repeated request is one act, and who asked for it."""

    op: str = ""
    by: str = ""

    async def perform(self, ground: Ground, content: ActContent, decide: Callable[[View], Decision[T]]) -> Decided[T]:
        """Carry the act out. Under the same `op` again it returns the first answer, or raises Conflict if its content
        is another. Without an `op` it is an act of its own each time.

        The operation is kept with the digest of its content and outlives the run that it was about. Also an act that
        changes nothing is kept: the answer of its repetition must not depend on what happened since.
        """
        if not self.op:
            return await ground.store.transact(ground.ids.new(), decide)
        own = content.digest

        def named(view: View) -> Decision[Json]:
            made = decide(view)
            acted = owner_acted(content.verb, content.target, self.by, ground.clock.now())
            answer = cast("Json", made.answer)
            return cast("Decision[Json]", made)._replace(answer=[own, answer], events=(acted, *made.events))

        kept, aside = await ground.store.transact(f"owner/{self.op}", named)
        first, answer = cast("list[Any]", kept)
        if first != own:
            raise _used_for_another(self.op)
        return Decided(answer, aside)


ONCE: Final = Act()


def act_of(op: str, by: str = "") -> Act:
    """Make the act of what an owner says."""
    return Act(plain(op, "op", OP_LIMIT, empty=True), plain(by, "by", NAME_LIMIT, empty=True))


def _used_for_another(op: str) -> Conflict:
    no = Conflict(
        f"the op {shown(op)} was used for another act; repeat exactly that act to get its answer, "
        "or use another op for this one"
    )
    no.retryable = False  # asking once more for the same is the same mistake
    return no


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
