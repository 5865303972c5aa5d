"""What people have decided about the steps of a plan: nobody is asked again because a process died."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import NamedTuple

from remit.core.kinds import effect_done
from remit.engine.attempt.live import LiveTask
from remit.engine.ground import Ground
from remit.ports import Decision, View


class Approvals(NamedTuple):
    ground: Ground
    live: LiveTask

    async def once(self, step: str, identity: str, ask: Callable[[], Awaitable[bool]]) -> bool:
        """Ask about a step and keep the answer; or, when the plan is run again, give back what was answered. A no in an
        earlier try is not held against this one."""
        ground, live = self.ground, self.live
        ops = live.operations.ids("approve", identity)

        def answered(view: View) -> bool | None:
            live.must_hold(view)
            done = [view.done(op) for op in ops]
            if done[0] is not None:
                return bool(done[0][0])
            return True if any(one is not None and one[0] for one in done) else None

        if live.attempt.is_rerun and (known := await ground.store.read(answered)) is not None:
            return known
        approved = bool(await ask())
        event = effect_done(live.remit, f"approval of step '{step}'", identity, approved, ground.clock.now())
        return await ground.store.tx(ops[0], live.guarded(lambda _view: Decision(approved, (event,))))
