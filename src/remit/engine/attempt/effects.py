"""Side effects with a name: recorded once, however often the task around them is run."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Iterator
from typing import Any, NamedTuple

from remit.core.arguments import arguments
from remit.core.checks import callable_
from remit.core.kinds import Effect, EffectDone, effect_done, read
from remit.core.text import line, shown
from remit.core.values import Json, checked
from remit.engine.attempt.live import LiveTask
from remit.engine.ground import Ground
from remit.errors import Conflict
from remit.ports import Decision, Span, View

NAME_LIMIT = 128
_DONE = frozenset(("effect.done",))


class Effects(NamedTuple):
    ground: Ground

    async def once(
        self, live: LiveTask, name: str, do: Callable[..., Awaitable[object] | object], *args: object
    ) -> Any:
        """Do it and keep what came of it; or, when the task is run again, give back what was kept.

        An effect is known by its name and its arguments. Nothing is done in the name of a task that is not this
        process's any more. What is kept is kept exactly once; if the process dies between doing and keeping, it is
        done again.
        """
        live.must_be_at_work()
        line(name, "the name of an effect", NAME_LIMIT)
        callable_(do, "once takes a function, and what to call it with")
        told = arguments(args)
        op, place = live.operations.effect(name, told)
        effect = Effect(name, told, place)
        store = self.ground.store
        if (done := await store.read(lambda view: _known(view, live, op, effect))) is not None:
            return done[0]
        result = do(*args)
        value = checked(await result if inspect.isawaitable(result) else result, f"the result of effect '{name}'")

        def keep(_view: object) -> Decision[Json]:
            return Decision(value, (effect_done(live.remit, effect, value, self.ground.clock.now()),))

        return await store.tx(op, live.guarded(keep))


def _known(view: View, live: LiveTask, op: str, effect: Effect) -> tuple[Json] | None:
    """Give what was kept when the task was run before; None if it is yet to be done, by whoever holds the task."""
    live.must_hold(view)
    if not live.attempt.is_rerun:
        return None
    if (done := view.done(op)) is not None:
        return done
    for earlier in _earlier(view, live):
        if earlier["place"] == effect.place and earlier["args"] != effect.args:
            raise _changed(effect.key, earlier["result"])
    return None


def _earlier(view: View, live: LiveTask) -> Iterator[EffectDone]:
    """List the effects of the task, and of the one that it is a retry of."""
    for task in {live.remit.id, live.attempt.origin or live.remit.id}:
        record = view.record(task)
        if record is not None:
            for event in view.events(Span(run=record.run, task=task, kinds=_DONE)):
                if event.text:  # it was not pruned
                    yield read(event, EffectDone)


def _changed(name: str, result: Json) -> Conflict:
    error = Conflict(
        f"effect '{name}' took place with other arguments when this task was run before, and gave {shown(result)}; "
        "it is neither done again nor taken for this one: give the same arguments each time the task is run, "
        "and effects that may come in another order a name each"
    )
    error.retryable = False  # run again it would be the same
    return error
