"""Hooks of a workspace: adding, removing and rotating them."""

from __future__ import annotations

from typing import Any, Final, NamedTuple, cast

from remit.core.events import Hook
from remit.core.kinds.workspace import hook_added, hook_removed, hook_rotated
from remit.core.lifecycle import TERMINAL
from remit.core.values import Json, shown
from remit.engine.acts import ONCE, Act, ActContent
from remit.engine.ground import Ground
from remit.errors import BadInput, Conflict, NotFound
from remit.ports import Decision, View

MOST: Final = 100  # hooks of one workspace: each event is compared with all of them
MOST_PUSHES: Final = 900  # A2A tasks with push notifications
_NO_ROOM: Final = f"the clients of at most {MOST_PUSHES} tasks are told of them; remove what nobody needs"


class Hooks(NamedTuple):
    """The hooks of a workspace, as its owner sets them."""

    ground: Ground

    async def add(self, url: str, kinds: str, run: str, act: Act = ONCE) -> Hook:
        """Add a hook, and return it. The hook is sent only events that happen after this call."""
        now = self.ground.clock.now()
        made = Hook(self.ground.ids.new(), url, kinds, run, 1, None, act.by, now, 0, 0)

        def decide(view: View) -> Decision[list[Json]]:
            if sum(not one.task for one in view.hooks()) >= MOST:
                raise BadInput(f"a workspace has at most {MOST} hooks; remove one that is not needed")
            if run and view.standing(run) is None:
                raise NotFound(f"there is no run {shown(run)}")
            return Decision([*made], (hook_added(made, now),))

        content = ActContent("hooks.add", url, [kinds, run])
        answer = (await act.perform(self.ground, content, decide)).answer
        return Hook(*cast("Any", answer))  # an earlier version has kept fewer facts

    async def push(self, task: str, run: str, url: str, kinds: str, by: str) -> tuple[Hook, list[str]]:
        """Add a hook that is sent the events of one task. Return it, and the hooks of ended tasks that were removed to
        make room. Raise `Conflict` if there is no room."""
        now = self.ground.clock.now()
        made = Hook(self.ground.ids.new(), url, kinds, run, 1, None, by, now, 0, 0, task)

        def decide(view: View) -> Decision[list[Json]]:
            pushes = [one for one in view.hooks() if one.task]
            old = [one.id for one in pushes if _has_ended(view, one.task)] if len(pushes) >= MOST_PUSHES else []
            if len(pushes) - len(old) >= MOST_PUSHES:
                raise Conflict(_NO_ROOM)
            removed = [hook_removed(one, by, now) for one in old]
            return Decision([*old], (*removed, hook_added(made, now)))

        content = ActContent("hooks.push", task, [url, kinds])
        return made, cast("list[str]", (await ONCE.perform(self.ground, content, decide)).answer)

    async def remove(self, hook: str, act: Act = ONCE) -> bool:
        """Remove a hook. Nothing more is sent to it. Return whether there was one."""

        def decide(view: View) -> Decision[bool]:
            if view.hook(hook) is None:
                return Decision(False)
            return Decision(True, (hook_removed(hook, act.by, self.ground.clock.now()),))

        return (await act.perform(self.ground, ActContent("hooks.remove", hook), decide)).answer

    async def rotate(self, hook: str, act: Act = ONCE) -> Hook:
        """Give a hook a new secret, and return the hook. For 24 hours, deliveries are signed with the old secret too.
        Raise `NotFound` if there is no such hook."""

        def decide(view: View) -> Decision[list[Json]]:
            now = self.ground.clock.now()
            before = view.hook(hook)
            if before is None:
                raise no_hook(hook)
            after = before._replace(generation=before.generation + 1, rotated_at=now)
            return Decision([*after], (hook_rotated(hook, after.generation, act.by, now),))

        answer = (await act.perform(self.ground, ActContent("hooks.rotate", hook), decide)).answer
        return Hook(*cast("Any", answer))  # an earlier version has kept fewer facts


def _has_ended(view: View, task: str) -> bool:
    standing = view.standing(task)
    return standing is None or standing.state in TERMINAL


def no_hook(hook: str) -> NotFound:
    """Return the error for an unknown hook."""
    return NotFound(f"there is no hook {shown(hook)}; ws.hooks.list() and `remit hooks ls` list them")
