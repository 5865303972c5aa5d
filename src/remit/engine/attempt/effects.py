"""Side effects with a name: recorded once, however often the task around them is run.

An effect is known by its name and its arguments. When a task is run again, whoever comes to an effect that was kept
gets its result. One that was not kept is done, but not while others of its name are kept that this run has not come to:
then it may be one of those with other arguments, and doing it would be doing it twice.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable
from types import TracebackType
from typing import Any, Final, NamedTuple, Protocol, Self

from remit.core.arguments import arguments
from remit.core.checks import callable_
from remit.core.events import Unsealed
from remit.core.kinds import EffectDone, effect_done
from remit.core.text import line, shown
from remit.core.values import Json, checked
from remit.engine.attempt import marks
from remit.engine.attempt.chains import key_of
from remit.engine.attempt.live import LiveTask
from remit.engine.attempt.operations import KeptEffects
from remit.engine.ground import Ground
from remit.engine.presence.insisting import Insisting
from remit.engine.timing import move_on_after, shielded
from remit.errors import Conflict
from remit.ports import Decision, View
from remit.ports.models import KEY

NAME_LIMIT: Final = 128
PAID: Final = "paid"
_OTHERS_COME: Final = 60.0  # seconds without a sign of those that may come to what was kept

Do = Callable[..., Awaitable[object] | object]


class Effect(NamedTuple):
    """Something to do once: its operation, name and arguments, as they are told and as they are given."""

    op: str
    name: str
    told: str
    do: Do
    args: tuple[object, ...]


class Effects(NamedTuple):
    ground: Ground
    insisting: Insisting

    async def once(self, live: LiveTask, name: str, do: Do, *args: object, paid: Paid | None = None) -> Any:
        """Do it and keep what came of it; or, when the task is run again, give back what was kept.

        Nothing is done in the name of a task that is not this process's any more. What is kept is kept exactly once;
        if the process dies between doing and keeping, it is done again, with the same idempotency key. What is `paid`
        is held before, and charged in the transaction that keeps the result.
        """
        live.must_be_at_work()
        line(name, "the name of an effect", NAME_LIMIT)
        callable_(do, "once takes a function, and what to call it with")
        told = arguments(args)
        op = live.operations.effect(name, told)
        same = op.rpartition("/")[0]
        if same in live.doing:
            raise _twice_at_once(name)
        live.doing.add(same)
        try:
            await self.ground.store.read(live.must_hold)
            if live.attempt.is_rerun and (kept := await self._kept(live, op, name)) is not None:
                return kept["result"]
            effect = Effect(op, name, told, do, args)
            if paid is None:
                return await self._done(live, effect)
            async with paid:
                return await self._done(live, effect, paid)
        finally:
            live.doing.discard(same)

    async def _done(self, live: LiveTask, effect: Effect, call: Paid | None = None) -> Json:
        op, name, told, do, args = effect
        given: dict[str, Any] = {PAID: call} if call is not None and _takes(do, args, PAID) else {}
        if _takes(do, args, KEY):
            given[KEY] = await key_of(self.ground, live, op)
        then = marks.before(live)
        result = do(*args, **given)
        value = checked(await result if inspect.isawaitable(result) else result, f"the result of effect '{name}'")
        event = effect_done(live.remit, name, told, value, self.ground.clock.now(), marks.marks(live, then))
        return await self._keep(live, op, event, value, call)

    async def _keep(self, live: LiveTask, op: str, event: Unsealed, value: Json, call: Paid | None = None) -> Json:
        """Record what was done, and insist until the store has it: a deadline or a cancel does not undo it."""
        store = self.ground.store

        def decide(view: View) -> Decision[Json]:
            live.must_own(view)
            return Decision(value, (event, *(call.charged(view) if call is not None else ())))

        what = f"effect '{event.data['key']}' of task {live.remit.id}"
        return await shielded(self.insisting.insist(live.life, what, lambda: store.tx(op, decide)))

    async def _kept(self, live: LiveTask, op: str, name: str) -> EffectDone | None:
        """Return the record of an earlier run and label the turn with it; None if the effect is to be done now. Raise
        Conflict if one of its name is recorded that may be this one with other arguments."""
        kept = await kept_effects(self.ground, live)
        if (done := kept.take(op)) is not None:
            marks.apply(live, done.get("marks", {}))
            return done
        same_name = op.rsplit("/", 2)[0] + "/"
        while (other := kept.left((same_name,))) is not None:
            if not await self._someone_comes(live, kept):
                raise _changed(name, other)
            await self.ground.store.read(live.must_hold)  # much may have happened meanwhile
        return None

    async def _someone_comes(self, live: LiveTask, kept: KeptEffects) -> bool:
        """Wait until another flow of this turn takes a recorded effect. Return whether to look again: False if no flow
        is left that could."""
        own = asyncio.current_task()
        main = live.control.calls[-1].task if live.control.calls else None
        if own is main and not live.elsewhere and len(live.doing) == 1:
            return False  # nobody else is there to come
        kept.waiting.add(own)
        try:
            with move_on_after(self.ground.clock, _OTHERS_COME) as patience:
                await kept.someone_comes()
        finally:
            kept.waiting.discard(own)
        if not patience.ran_out:
            return True
        at_work = len(live.doing) - len(kept.waiting) > 1 or live.elsewhere.keys() - kept.waiting
        return bool(at_work)


async def kept_effects(ground: Ground, live: LiveTask) -> KeptEffects:
    """Load the effects that earlier runs of the task recorded; once per run."""
    operations = live.operations
    if operations.kept is None:
        kept = KeptEffects(await ground.store.read(lambda view: view.done_under(operations.effects)))
        operations.kept = operations.kept or kept  # another may have looked meanwhile, and begun to take
    return operations.kept


async def unaccounted(ground: Ground, live: LiveTask) -> Conflict | None:
    """Return a Conflict for an effect that an earlier run recorded and this one never asked for; None if there is
    none."""
    kept = await kept_effects(ground, live)
    other = kept.left(live.operations.came_through)
    return None if other is None else _left_over(other)


class Paid(Protocol):
    """A call that is paid for: held while it is done, and charged with what is kept."""

    async def __aenter__(self) -> Self: ...
    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None: ...
    def charged(self, view: View) -> list[Unsealed]:
        """Give the events that charge it, for the transaction that keeps its result."""
        ...


def _takes(do: Do, args: tuple[object, ...], name: str) -> bool:
    """Tell whether a function takes a keyword that the caller does not give itself."""
    try:
        takes = inspect.signature(do).parameters
    except (TypeError, ValueError):  # of some built-in functions nothing is known
        return False
    known = takes.get(name)
    if known is None or known.kind in (known.POSITIONAL_ONLY, known.VAR_POSITIONAL, known.VAR_KEYWORD):
        return False
    return not (known.kind is known.POSITIONAL_OR_KEYWORD and list(takes).index(name) < len(args))


def _final(sentence: str) -> Conflict:
    error = Conflict(sentence)
    error.retryable = False  # run again it would be the same
    return error


def _changed(name: str, other: EffectDone) -> Conflict:
    return _final(
        f"effect '{name}' took place with other arguments when this task was run before, and gave "
        f"{shown(other['result'])}; it is neither done again nor taken for this one: give the same arguments each time "
        "the task is run, and effects that may come in another order a name each"
    )


def _twice_at_once(name: str) -> Conflict:
    return _final(
        f"effect '{name}' is under way with the same arguments; after a crash the two could not be told apart: "
        "give each a name of its own"
    )


def _left_over(other: EffectDone) -> Conflict:
    return _final(
        f"effect '{other['key']}' took place when this task was run before, and gave {shown(other['result'])}; "
        "this time it never came to it, so its answer does not account for it: see what was done, "
        "and ask for what is left as a new task"
    )
