"""Side effects with a name: done once, however often the task around them is carried out."""

import inspect
from collections.abc import Awaitable, Callable
from typing import Any

from remit.core.kinds import effect_done
from remit.core.text import line
from remit.core.values import Json, checked
from remit.engine.attempt.live import LiveTask
from remit.ports import Clock, Decision, Store

NAME_LIMIT = 128


class Effects:
    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock

    async def once(
        self, live: LiveTask, name: str, do: Callable[..., Awaitable[object] | object], *args: object
    ) -> Any:
        """Does it and keeps what came of it; or, when the task is carried out again, only says what came of it.

        What is kept is kept exactly once. If the process dies between doing and keeping, it is done again.
        """
        live.must_be_at_work()
        line(name, "the name of a step", NAME_LIMIT)
        op = live.effect(name)
        if live.attempt.is_rerun and (done := await self._store.read(lambda view: view.done(op))) is not None:
            return done[0]
        found = do(*args)
        value = checked(await found if inspect.isawaitable(found) else found, f"the result of step '{name}'")

        def keep(_view: object) -> Decision[Json]:
            return Decision(value, (effect_done(live.remit, name, value, self._clock.now()),))

        return await self._store.tx(op, live.guarded(keep))
