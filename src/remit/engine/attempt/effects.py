"""Side effects with a name: recorded once, however often the task around them is run."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable
from typing import Any, NamedTuple

from remit.core.checks import callable_
from remit.core.kinds import effect_done
from remit.core.text import line
from remit.core.values import Json, checked
from remit.engine.attempt.live import LiveTask
from remit.engine.ground import Ground
from remit.ports import Decision

NAME_LIMIT = 128


class Effects(NamedTuple):
    ground: Ground

    async def once(
        self, live: LiveTask, name: str, do: Callable[..., Awaitable[object] | object], *args: object
    ) -> Any:
        """Do it and keep what came of it; or, when the task is run again, give back what was kept.

        What is kept is kept exactly once. If the process dies between doing and keeping, it is done again.
        """
        live.must_be_at_work()
        line(name, "the name of an effect", NAME_LIMIT)
        callable_(do, "once takes a function, and what to call it with")
        op = live.operations.effect(name)
        store = self.ground.store
        if live.attempt.is_rerun and (done := await store.read(lambda view: view.done(op))) is not None:
            return done[0]
        result = do(*args)
        value = checked(await result if inspect.isawaitable(result) else result, f"the result of effect '{name}'")

        def keep(_view: object) -> Decision[Json]:
            return Decision(value, (effect_done(live.remit, name, value, self.ground.clock.now()),))

        return await store.tx(op, live.guarded(keep))
