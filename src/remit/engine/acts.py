"""What an owner does to a workspace, as opposed to what agents do in their tasks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, NamedTuple, TypeVar, cast

from remit.core.kinds import owner_acted
from remit.core.text import NAME_LIMIT, plain, shown
from remit.core.values import Json, digest, encode
from remit.engine.ground import Ground
from remit.errors import Conflict
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
